# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention whose heads have any size: what a seed draws, for family.py, which times it, and for artifacts.py,
which compiles it on a machine without torch (--heads SEED). So a set has draws of its own, which do not
depend on the sets before it.
"""

import math
import random

FORWARD, BACKWARD = "head_sizes", "head_sizes_backward"
KINDS = (FORWARD, BACKWARD)


def spread(rng, low, high, step=1):
    """A multiple of step, every power of two as likely as the next."""
    return max(step, round(math.exp(rng.uniform(math.log(low), math.log(high))) / step) * step)


def draw_heads(rng):
    """Heads of queries, and of keys."""
    return rng.choice([(16, 16), (32, 8), (16, 2), (8, 8)])


def draw_lengths(rng, tokens, high):
    """Sequences, and the keys of one."""
    keys = spread(rng, 512, high, rng.choice([1, 8, 64]))
    return max(1, tokens // keys), keys


def random_of(kind, seed):
    return random.Random(f"{kind} {seed}")


def draw(kind):
    """A function that draws an artifact and a size. One of four has values of another size than keys."""
    def one(rng):
        size = values = 8 * rng.randint(1, 32)
        if kind == FORWARD and rng.randrange(4) == 0:
            values = 8 * rng.randint(1, 32)
        causal = rng.choice([True, False])
        heads, groups = draw_heads(rng)
        batch, keys = draw_lengths(rng, 16384, 8192)
        return artifact(kind, size, values, causal), (batch, heads, groups, keys, size, values, causal)
    return one


def artifact(kind, size, values, causal):
    what = "causal" if causal else "full"
    return f"{'forward' if kind == FORWARD else 'backward'}.{what}{size}" + (f"x{values}" if values != size else "")


def rows(examples, seed, cases):
    """The artifacts of a seed: name -> (file, kernel, metas)."""
    found = {}
    for kind in KINDS:
        rng, one = random_of(kind, seed), draw(kind)
        for _ in range(cases):
            name, (*_, size, values, causal) = one(rng)
            if kind == FORWARD:
                found[name] = (examples / "attention/forward.tir", "causal" if causal else "full",
                               {"D": size, "DV": values})
            else:
                found[name] = (examples / "attention/backward.tir", "backward",
                               {"D": size, "CAUSAL": "true" if causal else "false"})
    return found
