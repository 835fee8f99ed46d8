#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Buffers under other types, in random layouts, on the interpreter and on the emulator.

usage: aliases.py TIRC [--seed=N] [--count=N]

A program fills a slot of a buffer, reads its bytes under another type, writes them there and reads
them as the buffer. The interpreter keeps elements in order and finds bytes by the layouts of both;
the device has addresses: what they give must be the same. Where no layout is stated for the alias,
the bytes are those of the elements in order, which the program asserts itself. An alias may be
refused where the bytes of an element do not lie together; too few that are not are an error.
"""

import os
import random
import subprocess
import sys
import tempfile

NAMES = {1: "u8", 2: "u16", 4: "u32", 8: "u64"}


def split(rng, n, parts):
    """n as a product of `parts` numbers."""
    out, prime = [1] * parts, 2
    while n > 1:
        while n % prime:
            prime += 1
        out[rng.randrange(parts)] *= prime
        n //= prime
    return out


def layout(rng, shape, size):
    """None, row_major, a swizzle, or digits of all dimensions in any order."""
    row = shape[-1] * size
    swizzles = [s for s in (32, 64, 128) if row % s == 0] if len(shape) > 1 else []
    kind = rng.choice(["", "row_major", "digits", "swizzle", "swizzle"])
    if kind == "swizzle" and swizzles:
        return f" in swizzle({rng.choice(swizzles)})"
    if kind != "digits":
        return " in row_major" if kind == "row_major" else ""
    extents = [e for n in shape for e in split(rng, n, 2)]
    order, strides, stride = list(range(len(extents))), [0] * len(extents), 1
    rng.shuffle(order)
    if rng.random() < 0.7:  # neighbours stay together
        order.remove(len(extents) - 1)
        order.insert(0, len(extents) - 1)
    for i in order:
        strides[i] = stride
        stride *= extents[i]
    joined = ", ".join
    swizzle = " swizzle(128)" if stride * size % 1024 == 0 and rng.random() < 0.3 else ""
    return f" in S[({joined(map(str, extents))}) : ({joined(map(str, strides))})]{swizzle}"


def coordinates(shape, linear):
    out, rest = [], linear
    for n in reversed(shape):
        out.insert(0, f"{rest} % {n}")
        rest = f"{rest} / {n}"
    return ", ".join(out)


def program(rng):
    size, other, slots = rng.choice([1, 2, 4, 8]), rng.choice([1, 2, 4, 8]), rng.choice([1, 2, 3])
    whole = rng.choice([2048, 2048, 3072, 2304, 1680, 5120])  # bytes of a slot
    count = whole // size
    rows = split(rng, count, 2)[0]
    shape = [rows, count // rows]
    words = whole // other
    view = split(rng, words, rng.choice([1, 2, 3]))
    own = layout(rng, shape, size)
    stated = layout(rng, view, other) if rng.random() < 0.4 else ""
    if own.startswith(" in S"):  # of one slot: the slots follow each other
        head, tail = own.split(" : (")
        own = f"{head.replace('S[(', f'S[({slots}, ')} : ({count}, {tail}"
    bits = 8 * size
    value = lambda e: f"(({e}) * 40503 + 77 & {(1 << min(bits, 32)) - 1})"
    byte = lambda k: f"({value(f'({k}) / {size}')} >> 8 * (({k}) % {size}) & 255)"
    expected = " | ".join(f"({byte(f'i64(j) * {other} + {i}')} << {8 * i})"
                          for i in range(min(other, 7)))
    mask = (1 << min(8 * other, 56)) - 1
    check = "" if stated else f"""
        assert((i64(v[{coordinates(view, 'j')}]) & {mask}) == ({expected}), "in order");"""
    return f"""
kernel k(Y: out {NAMES[other]}[{words}], Z: out {NAMES[size]}[{rows}, {count // rows}], s: i32)
    grid(1) threads(128)
{{
    shared A: {NAMES[size]}[{slots}, {rows}, {count // rows}]{own};
    let v: shared {NAMES[other]}[{', '.join(map(str, view))}]{stated} = alias(A[s]);
    let e = full(i64(0), i64, {rows}, {count // rows});
    let n = i64(rows(e)) * {count // rows} + i64(cols(e));
    A[s, :, :] = {NAMES[size]}({value('n')});
    bar_sync();
    for j in range(tid(), {words}, 128) {{
        let w = v[{coordinates(view, 'j')}];
        Y[j] = w;{check}
    }}
    bar_sync();
    for j in range(tid(), {words}, 128) {{
        v[{coordinates(view, 'j')}] = v[{coordinates(view, 'j')}] + {NAMES[other]}(j & 15);
    }}
    bar_sync();
    Z[:, :] = A[s, :, :];
}}
""", slots


def main():
    tirc = sys.argv[1]
    options = dict(a[2:].split("=") for a in sys.argv[2:])
    seed, count = int(options.get("seed", 1)), int(options.get("count", 30))
    ran = failures = 0
    with tempfile.TemporaryDirectory() as folder:
        for number in range(count):
            rng = random.Random(seed * 100003 + number)
            text, slots = program(rng)
            path = os.path.join(folder, "alias.tir")
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            target = rng.choice(["sm_80", "sm_90a", "sm_100a"])
            command = [tirc, "run", path, f"s={rng.randrange(slots)}", "--device=emu",
                       f"--arch={target}", "--check", "--emu-check=full"]
            done = subprocess.run(command, capture_output=True, text=True, timeout=100)
            said = done.stdout + done.stderr
            refused = "error[E0103]" in said and "several pieces" in said
            refused |= "error[E0103]" in said and "begins at a multiple" in said
            if done.returncode and not refused:
                failures += 1
                print(f"--- seed {seed}, program {number}\n{text}\n{' '.join(command)}\n{said}")
            ran += not done.returncode
    if ran < count / 3:
        print(f"only {ran} of {count} programs were not refused")
        failures += 1
    return failures > 0


sys.exit(main())
