# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks tools/blackwell_model.py against what others published: a roofline that it must reproduce, times that no
bound may exceed, and that each number names its source, but for the guesses that are listed here.

Usage: blackwell_numbers.py
"""

import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))

import blackwell_model as model  # noqa: E402

GUESSES = {"tmem_store_rate", "global_load", "emulation", "score_slots", "half_rows"}
# A paper with its section or table, a section of the PTX ISA or the guide, a file of a commit.
SOURCE = re.compile(r"arXiv:\d{4}\.\d{5}, (section|table) [\d.]+|PTX ISA \d+(\.\d+)+|"
                    r"CUDA C\+\+ Programming Guide, \"[^\"]+\"|\w+/[\w-]+ [0-9a-f]{7,}, \S+")
# FlashAttention-4, arXiv:2603.05451, table 1: clocks for 128 and for 256 queries, all exponentials on MUFU.
ROOFLINE = {1: {"tensor core": 1024, "shared memory": 768, "exponential": 1024},
            2: {"tensor core": 2048, "shared memory": 1536, "exponential": 2048}}


def sources():
    for number in model.NUMBERS:
        is_guess = number.kind == "guess"
        if is_guess != (number.name in GUESSES):
            yield f"{number.name} is {'' if is_guess else 'not '}called a guess"
        if not is_guess and not SOURCE.search(number.source):
            yield f"{number.name}: no source in \"{number.source}\""
        if number.kind not in ("guess", "published"):
            yield f"{number.name} is {number.kind}"


def roofline():
    for blocks, wanted in ROOFLINE.items():
        found = model.Attention("", blocks=blocks, rescaled=False).resources()
        for name, clocks in wanted.items():
            if found[name] != clocks:
                yield f"{blocks} blocks, {name}: {found[name]} clocks, in the paper {clocks}"


def bounds():
    """A bound that is above a measurement has a number or a formula that is wrong."""
    for step in model.LADDER:
        if step.book:
            predicted, _ = (step.theirs or step.product).time(4096, 4096, 4096)
            if predicted > step.book * 1e-3:
                yield f"step {step.number}: {predicted * 1e3:.3f} ms, but the book measured {step.book}"
    attention = model.ATTENTION[-1]
    clocks, _ = attention.round()
    if attention.rate(clocks) < model.FA4_RATE:
        yield f"{attention.name}: {attention.rate(clocks):.3g} FLOP/s, but {model.FA4_RATE:.3g} were measured"
    for latency, depth in (("mma_k64", 64), ("mma_k128", 128)):
        busy = model.tensor(128, 128, depth)
        if not busy < model.latency(busy) <= model.VALUE[latency]:
            yield f"128x128x{depth}: {model.latency(busy)} clocks, measured {model.VALUE[latency]}"


def limits():
    """What does not fit on a multiprocessor cannot be predicted for it."""
    for product in [*(s.product for s in model.LADDER), *(s.theirs for s in model.LADDER if s.theirs),
                    *model.TILES.values()]:
        columns = product.buffers * product.rows // model.LANES * product.columns
        if columns > model.VALUE["columns"]:
            yield f"{product.rows}x{product.columns}: {columns} columns"
        if product.stages * product.step_bytes() > model.VALUE["shared_cta"]:
            yield f"{product.rows}x{product.columns}: {product.stages} slots of {product.step_bytes()} bytes"
    pair = model.LADDER[7].product
    clocks, _ = pair.step()
    if pair.resources()["tensor core"] < 0.9 * clocks:
        yield "a pair of CTAs has less than 90 % of the peak"


def main():
    wrong = [*sources(), *roofline(), *bounds(), *limits()]
    print("\n".join(wrong) or f"{len(model.NUMBERS)} numbers, {len(GUESSES)} of them guesses")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
