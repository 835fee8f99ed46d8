#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random CUDA C++ whose PTX, as nvcc makes it, runs on the emulator; compared bit by bit with what g++ makes of the same source.

Usage: foreign.py TIRC [--seed N] [--count N] [--pairs N] [--steps N] [--keep FOLDER]

A kernel is a list of steps over the state of its threads. A step of single threads is a function that is compiled for
both: expressions of all widths, loops, switches, recursion, calls through pointers and virtual functions, arrays, structs,
unions. In a step of several threads (shuffles, votes, shared memory, atomics, groups, copies, barriers, clusters, products
of matrices) the host has the state of all threads in an array and does the same by a loop. Each program is compiled for
some pairs of an architecture and options. Floats are compared by bits, NaNs are all alike. Seed 0 is that of the day.
"""

import pathlib
import random
import shutil
import struct
import sys
import tempfile

import npy
import seeds
from foreign_program import IN_WORDS, OUT_WORDS, Program, text_of

HERE = pathlib.Path(__file__).resolve().parent
CUDA = pathlib.Path("/usr/local/cuda")
OPTIONS = [[], ["-G"], ["-Xcicc", "-O0"], ["-Xcicc", "-O1"], ["-lineinfo"], ["-DPLAIN", "-fmad=false"], ["-G", "-DPLAIN"],
           ["-rdc=true"], ["-DPLAIN", "-fmad=false", "-Xcicc", "-O1"], ["--extra-device-vectorization"]]
FAST = [["-ftz=true", "-prec-div=false", "-prec-sqrt=false", "-DFTZ"], ["--use_fast_math", "-DFTZ"], ["-ftz=true", "-G", "-DFTZ"]]
FLAGS = ["-std=c++17", "-Wno-deprecated-declarations", "-DCCCL_IGNORE_DEPRECATED_CPP_DIALECT"]


def hard_words(rng, count):
    """Bits of integers and floats that are hard, for a thread."""
    def word():
        how = rng.random()
        if how < 0.4:
            return rng.getrandbits(32)
        if how < 0.6:
            return rng.choice([0, 1, 2, 3, 5, 31, 32, 33, 255, 0x7fffffff, 0x80000000, 0xffffffff, 1 << rng.randrange(32)])
        return rng.choice([0x3f800000, 0xbf800000, 0x7f800000, 0xff800000, 0x7fc00000, 0x00000001, 0x007fffff, 0x80000000, 0x4f000000,
                           0x4effffff, 0x5f000000, 0x3c003c00, 0x7c01fc00,
                           0x00018000, 0x477fe000, 0x33800000, 0x38800000, 0x4b800001, 0x3fefffff, 0x43e00000, 0x41e00000, 0x7fefffff,
                           rng.getrandbits(31) & 0xfffff000, 0x3f000000 + rng.getrandbits(24)])
    return [word() for _ in range(count)]


def difference(got, want):
    for at in range(0, len(want), 4):
        if got[at:at + 4] != want[at:at + 4]:
            names = ["a", "b", "c", "c (upper)", "f", "d", "d (upper)", "h", "1", "2"]
            return f"thread {at // 4 // OUT_WORDS}, {names[at // 4 % OUT_WORDS]}: {got[at:at + 4][::-1].hex()}, not {want[at:at + 4][::-1].hex()}"
    return None


def why(tirc, seed, folder, pairs, steps=None):
    """Why a program of the first steps fails, if it does."""
    p = Program(seed)
    p.kernel, p.host = p.kernel[:steps], p.host[:steps]
    rng = random.Random(seed ^ 0x5eed)
    text, given = text_of(p)
    threads = p.block * p.grid
    source = pathlib.Path(folder, "program.cu")
    source.write_text(text)
    words = [word for _ in range(threads) for word in hard_words(rng, IN_WORDS)]
    pathlib.Path(folder, "in.bin").write_bytes(struct.pack(f"<{len(words)}I", *words))
    npy.write(pathlib.Path(folder, "in.npy"), 32, words)
    host = [shutil.which("g++") or "g++", "-std=c++17", "-O1", "-w", "-fwrapv", "-ffp-contract=off", "-frounding-math",
            "-fno-strict-aliasing", f"-I{HERE}", f"-I{CUDA}/include",
            *(["-DFTZ"] if p.fast else []), "-x", "c++", str(source), "-o", f"{folder}/host"]
    failed = seeds.failure(host) or seeds.failure([f"{folder}/host", f"{folder}/in.bin", f"{folder}/want.bin"])
    if failed:
        return failed
    want = pathlib.Path(folder, "want.bin").read_bytes()
    for options in rng.sample(FAST if p.fast else OPTIONS, min(pairs, len(FAST) if p.fast else len(OPTIONS))):
        ptx = f"{folder}/program.ptx"
        failed = seeds.failure([f"{CUDA}/bin/nvcc", *FLAGS, f"-arch={p.arch}", "--ptx", *options, f"-I{HERE}", str(source), "-o", ptx])
        if failed:
            return failed
        level = rng.choice(["memory", "race", "race", "full"])
        schedule = rng.choice(["lazy", "eager", f"random:{rng.getrandbits(16)}", "adversarial"])
        command = [tirc, "emu", ptx, "--kernel=kernel", f"--grid={','.join(map(str, p.ctas))}", f"--block={','.join(map(str, p.shape))}",
                   f"--shared={p.shared}", f"--emu-check={level}", f"--schedule={schedule}", "--timeout=60",
                   *(["--cooperative"] if p.cooperative else []), f"buf:u32[{len(words)}]=@{folder}/in.npy",
                   f"buf:u32[{threads * OUT_WORDS}]->{folder}/out.npy",
                   f"buf:u32[8]=zeros->{folder}/sums.npy", f"buf:u64[{threads}]", *(f"{of}={number}" for of, number in given)]
        failed = seeds.failure(command)
        if failed:
            return f"{p.arch} {options}\n{failed}"
        got = npy.read(pathlib.Path(folder, "out.npy")) + npy.read(pathlib.Path(folder, "sums.npy"))
        apart = difference(got, want)
        if apart:
            return f"{p.arch} {options}\n{' '.join(command)}\n{apart}"
    return None


def main():
    parser = seeds.parser(__doc__, "tirc", count=10)
    parser.add_argument("--pairs", type=int, default=2, help="sets of options for each program")
    parser.add_argument("--steps", type=int, help="no more than these first ones, to find the one at fault")
    parser.add_argument("--keep", help="a folder for programs that fail")
    options = parser.parse_args()
    if not (CUDA / "bin/nvcc").exists() or not shutil.which("g++"):
        print("nvcc and g++ are needed")
        return 77
    start, failed = seeds.first(options), []
    for seed in range(start, start + options.count):
        with tempfile.TemporaryDirectory() as folder:
            reason = why(options.tirc, seed, folder, options.pairs, options.steps)
            if not reason:
                continue
            failed.append(seed)
            print(f"seed {seed} fails: {reason}", flush=True)
            if options.keep:
                shutil.copytree(folder, pathlib.Path(options.keep, str(seed)), dirs_exist_ok=True)
    print(f"{options.count - len(failed)} passed, {len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
