#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random programs whose results follow from the language page alone: they are computed here, without the compiler.

Usage: meanings.py TIRC [--seed N] [--count N]

Expressions have as few parentheses as the table of precedence allows, and literals, names of compile-time values and types that
widen, tiles that broadcast, products that are contracted, slices beyond the edges, gathers, reductions, scans, tiles that are put
together and taken apart, functions of elements and of tiles, branches, loops with exits, stores to parts of buffers and tensors. The
program is one on tiles, or a kernel by hand. What it stores, on the emulator and by the interpreter, is compared with what exact
numbers give. Seed 0 is that of the day.
"""

import pathlib
import sys

import npy
import seeds
from meaning import FLOATS, bits_in, bits_of
from meaning_program import Maker

ARCHS = ["sm_80", "sm_90a", "sm_100a", "sm_120a"]


def draw(seed):
    maker = Maker(seed)
    text = maker.program()
    return text, maker, seed


def differs(name, of, got, wanted):
    width = bits_in(of)
    step = width // 8
    for i, number in enumerate(wanted):
        bits = int.from_bytes(got[i * step:(i + 1) * step], "little")
        if of in FLOATS and number != number and is_nan(of, bits):
            continue
        if bits != bits_of(of, number) and not (of in FLOATS and number == 0 and bits in (0, 1 << (width - 1))):  # of any sign
            return f"{name}[{i}] is {bits:#x}, not {bits_of(of, number):#x} ({number})\n"
    return None


def is_nan(of, bits):
    exponent, fraction = FLOATS[of]
    return bits >> fraction & ((1 << exponent) - 1) == (1 << exponent) - 1 and bits & ((1 << fraction) - 1) != 0


def run(tirc, path, maker, seed):
    given = []
    for name, (of, numbers, shape) in maker.given.items():
        file = pathlib.Path(path.parent, f"{name}.npy")
        npy.write(file, bits_in(of), [bits_of(of, x) for x in numbers], "V" if of == "bf16" else of[0], shape)
        given.append(f"{name}=@{file}")
    for name in maker.wanted:
        given.append(f"{name}=zeros,save={path.parent}/{name}.npy")
    why = seeds.failure([tirc, "run", str(path), f"--arch={ARCHS[seed % len(ARCHS)]}", "--device=emu", "--emu-check=full",
                         "--check=0", *given, *maker.sizes])
    if why:
        return why
    for name, (of, wanted) in maker.wanted.items():
        wrong = differs(name, of, npy.read(pathlib.Path(path.parent, f"{name}.npy")), wanted)
        if wrong:
            return wrong
    return None


if __name__ == "__main__":
    sys.exit(seeds.main(__doc__, draw, run))
