#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Measures the cycles of a round of scheduled loops, beside those that `tirc explain --schedule` predicts.

    python3 rounds.py TIRC --library libtirrt.so [--rounds 9] [--predict]

Each kernel is launched with a tile for each multiprocessor and two numbers of rounds, in turns; the
difference of the medians is what the rounds take that one has more. All tiles share their operands, so
these come from the L2 cache. Behind each launch a kernel counts clock cycles and nanoseconds, which gives
the clock that it ran at. --predict prints the predictions alone, without a GPU.
"""

import argparse
import pathlib
import re
import statistics
import subprocess
import tempfile

EXAMPLES = pathlib.Path(__file__).parent.parent.parent / "examples"
ROUNDS = 32, 96
COLUMNS = 12  # of tiles; a multiprocessor each
CLOCK = """kernel clocks(C: out i64[2], R: i32) grid(1) threads(32)
{
    let ns = ptx("mov.u64 $0, %globaltimer;", out = u64);
    let begin = ptx("mov.u64 $0, %clock64;", out = u64);
    var now: u64 = begin;
    for i in range(R) { now = ptx("mov.u64 $0, %clock64;", out = u64); }
    C[0] = i64(now - begin);
    C[1] = i64(ptx("mov.u64 $0, %globaltimer;", out = u64) - ns);
}
"""

# What is measured: file, kernel, metas.
ATTENTION = [
    *(("attention/attention.tir", "attention", {"D": d, "CAUSAL": c}) for d in (64, 128) for c in ("false", "true")),
    *(("attention/forward.tir", "full", {"D": d}) for d in (40, 72, 96, 160, 192, 256)),
    *(("attention/forward.tir", kernel, {}) for kernel in ("window", "soft_cap", "alibi", "sinks")),
    ("attention/fixed.tir", "full", {}), ("attention/fp8.tir", "fp8", {"FEW": "false"})]
PRODUCTS = [
    ("03_gemm/gemm.tir", "gemm", {}), ("11_operands/operands.tir", "nt", {"BN": 256, "STAGES": 4}),
    ("11_operands/operands.tir", "nn", {"BN": 256, "STAGES": 4}), ("11_operands/operands.tir", "tt", {"BM": 192}),
    *(("11_operands/operands.tir", "nt", {"T": t, "ACC": acc, "BK": k, "BN": n}) for t, acc, k, n in (
        ("e4m3", "f32", 128, 128), ("e4m3", "f32", 128, 256), ("i8", "i32", 128, 256), ("tf32", "f32", 32, 128))),
    ("10_epilogues/epilogues.tir", "linear", {}), ("10_epilogues/epilogues.tir", "gated", {})]
MLP = [("attention/mlp.tir", "mlp", {}), ("attention/mlp.tir", "mlp", {"D": 64})]


def arguments(row):
    file, kernel, metas = row
    return [str(EXAMPLES / file), f"--kernel={kernel}", "--arch=sm_90a",
            *(word for name, value in metas.items() for word in ("-D", f"{name}={value}"))]


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def predicted(tirc, row):
    """Cycles of the first loop with a schedule, or None."""
    found = re.search(r"(\d+) cycles a round predicted", run(tirc, "explain", "--schedule", *arguments(row)))
    return int(found[1]) if found else None


def label(row):
    file, kernel, metas = row
    return f"{pathlib.Path(file).name} {kernel} {' '.join(f'{n}={v}' for n, v in metas.items())}".strip()


class Card:
    def __init__(self, options, folder):
        import tirrt  # pylint: disable=import-outside-toplevel; only where there is a GPU
        import torch  # pylint: disable=import-outside-toplevel
        self.torch, self.tirrt = torch, tirrt
        self.options, self.folder = options, folder
        self.device = tirrt.Device(options.library, "cuda")
        self.tiles = torch.cuda.get_device_properties(0).multi_processor_count
        (folder / "clock.tir").write_text(CLOCK, encoding="utf-8")
        self.counts = torch.zeros(2, device="cuda", dtype=torch.int64)
        self.clock = self.load([str(folder / "clock.tir"), "--kernel=clocks", "--arch=sm_90a"]).bind(
            self.counts, 20000).launch

    def load(self, words):
        path = self.folder / "kernel.tira"
        run(self.options.tirc, "build", *words, "-o", str(path))
        return self.device.load(path).kernel(words[1].partition("=")[2])

    def values(self, kernel, sizes):
        """Arguments by the kernel's parameters: N(0,1), scalars 0.1, widths that mask nothing."""
        values = []
        for param in kernel.params:
            name = param.name.text()
            if name not in sizes:
                values.append(1 << 30 if name == "width" else 0.1)
                continue
            dtype = self.tirrt.DTYPES[self.tirrt.ELEMENTS[param.element]]
            x = self.torch.randn(sizes[name], device="cuda")
            values.append((x * 4).to(dtype) if dtype == self.torch.int8 else x.to(dtype))
        return values

    def median(self, calls):
        """Cycles of each call, in turns."""
        found = [[] for _ in calls]
        for turn in range(self.options.rounds + 1):
            for call, list_of in zip(calls, found):
                begin, end = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
                call()  # so that the next one finds the L2 cache as it leaves it
                begin.record()
                for _ in range(4):
                    call()
                end.record()
                self.clock()
                self.torch.cuda.synchronize()
                cycles, ns = self.counts.tolist()
                if turn:
                    list_of.append(begin.elapsed_time(end) / 4 * 1e6 * cycles / ns)
        return [statistics.median(cycles) for cycles in found]

    def measure(self, row, sizes_of):
        kernel = self.load(arguments(row))
        metas = {name: int(value) for name, value in kernel.metas.items() if value.isdigit()}
        calls = [kernel.bind(*self.values(kernel, sizes_of(metas, rounds, self.tiles))).launch for rounds in ROUNDS]
        few, many = self.median(calls)
        return (many - few) / (ROUNDS[1] - ROUNDS[0])


def attention(metas, rounds, tiles):
    keys, rows, size = rounds * metas["BT"], metas["BQ"], metas["D"]
    one = 1, 1, keys, size
    every = 1, tiles, rows
    return {"Q": (*every, size), "K": one, "V": one, "O": (*every, size), "L": every, "Slope": (tiles,),
            "Sink": (tiles,)}


def product(metas, rounds, tiles):
    deep, m, n = rounds * metas.get("BK", 128), metas["BM"] * COLUMNS, metas["BN"] * (tiles // COLUMNS)
    rows = (n, deep)
    return {"A": (m, deep), "B": rows, "D": (m, n), "G": rows, "U": rows, "Bias": (n,)}


def turned(name):
    """The operand `name` has its rows along K."""
    def sizes(metas, rounds, tiles):
        straight = product(metas, rounds, tiles)
        return {**straight, name: straight[name][::-1]}
    return sizes


def mlp(metas, rounds, tiles):
    rows, units = tiles * metas["BM"], rounds * metas["BF"]
    return {"X": (rows, metas["D"]), "U": (units, metas["D"]), "W": (units, metas["D"]), "Y": (rows, metas["D"])}


def sizes_for(row):
    if row in ATTENTION:
        return attention
    return mlp if row in MLP else {"nn": turned("B"), "tt": turned("A")}.get(row[1], product)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("tirc")
    parser.add_argument("--library")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--predict", action="store_true")
    options = parser.parse_args()
    near = 0
    rows = [(row, predicted(options.tirc, row)) for row in ATTENTION + PRODUCTS + MLP]
    with tempfile.TemporaryDirectory() as folder:
        card = None if options.predict else Card(options, pathlib.Path(folder))
        for row, cycles in rows:
            if options.predict or not cycles:
                print(f"| {label(row)} | {cycles} | |", flush=True)
                continue
            try:
                measured = card.measure(row, sizes_for(row))
            except (KeyError, ValueError, RuntimeError, card.tirrt.TirError) as problem:
                print(f"| {label(row)} | {cycles} | {type(problem).__name__}: {problem} |", flush=True)
                continue
            near += abs(cycles / measured - 1) <= 0.1
            print(f"| {label(row)} | {cycles} | {measured:.0f} | {cycles / measured:.2f} |", flush=True)
    if card:
        print(f"{near} of {sum(cycles is not None for _, cycles in rows)} within 10 %")


if __name__ == "__main__":
    main()
