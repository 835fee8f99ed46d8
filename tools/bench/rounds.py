#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Measures the cycles of a round of scheduled loops, beside those that `tirc explain --schedule` says are replayed.

    python3 rounds.py TIRC [--library libtirrt.so [--rounds 9] [--save FILE]] [--against FILE] [--seed N [--count 40]]

Each kernel is launched with a tile for each multiprocessor but one and two numbers of rounds, in turns; the
difference of the medians is what the rounds take that one has more. All tiles share their operands, so
these come from the L2 cache. On one multiprocessor a kernel counts clock cycles and nanoseconds meanwhile,
which gives the clock that they run at. Without a library there is no GPU: --against takes what --save wrote there.
--seed draws other loops than those of the tables: other kernels, sizes of tiles, stages and elements.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import random
import re
import statistics
import subprocess
import tempfile

EXAMPLES = pathlib.Path(__file__).parent.parent.parent / "examples"
ROUNDS = 32, 96
COLUMNS = 13  # of tiles; a multiprocessor each
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


def draw_attention(pick):
    file, kernel = pick((*(("forward.tir", name) for name in ("full", "causal", "window", "soft_cap", "alibi", "sinks")),
                         ("fixed.tir", "full"), ("fp8.tir", "fp8"), ("mlp.tir", "mlp")))
    if kernel == "fp8":
        return f"attention/{file}", kernel, {"FEW": "false", "D": pick((64, 96)), "BT": pick((64, 96, 128))}
    if kernel == "mlp":
        return f"attention/{file}", kernel, {"D": pick(range(32, 129, 16)), "BF": pick(range(64, 129, 16))}
    few = {"SHORT": "false"} if kernel in ("full", "causal") else {}
    return f"attention/{file}", kernel, {**few, "D": pick(range(48, 257, 16)), "BT": pick(range(48, 177, 16))}


def draw_product(pick):
    file, kernel = pick((*(("11_operands/operands.tir", name) for name in ("nt", "nn", "tn", "tt")),
                         ("10_epilogues/epilogues.tir", "linear"), ("10_epilogues/epilogues.tir", "gated")))
    tile = {"BM": pick((64, 128, 192, 256)), "BN": pick(range(64, 257, 32)), "STAGES": pick(range(2, 7))}
    kinds = {"bf16": {}, "f16": {}}
    if kernel == "nt":
        kinds |= {"e4m3": {"BK": 128}, "i8": {"BK": 128, "ACC": "i32"}, "tf32": {"BK": 32}}
    element = pick(sorted(kinds))
    return file, kernel, {**tile, "T": element, **kinds[element]}


def drawn(seed, count):
    """Loops with two products and with one, by turns. Those that do not compile are left out."""
    pick = random.Random(seed).choice
    return [(draw_product if i % 2 else draw_attention)(pick) for i in range(count)]


def arguments(row):
    file, kernel, metas = row
    return [str(EXAMPLES / file), f"--kernel={kernel}", "--arch=sm_90a",
            *(word for name, value in metas.items() for word in ("-D", f"{name}={value}"))]


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def predicted(tirc, row):
    """Cycles of the first loop with a schedule, or None."""
    try:
        found = re.search(r"(\d+) replayed", run(tirc, "explain", "--schedule", *arguments(row)))
    except subprocess.CalledProcessError:
        return None  # tiles that do not fit, if drawn
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
        self.tiles = torch.cuda.get_device_properties(0).multi_processor_count - 1  # one counts the clock
        self.beside = torch.cuda.Stream()
        (folder / "clock.tir").write_text(CLOCK, encoding="utf-8")
        self.counts = torch.zeros(2, device="cuda", dtype=torch.int64)
        self.clock = self.load([str(folder / "clock.tir"), "--kernel=clocks", "--arch=sm_90a"]).bind(
            self.counts, 50000).launch

    def build(self, words):
        path = self.folder / f"{abs(hash(tuple(words)))}.tira"
        if not path.exists():
            run(self.options.tirc, "build", *words, "-o", str(path))
        return path

    def load(self, words):
        return self.device.load(self.build(words)).kernel(words[1].partition("=")[2])

    def values(self, kernel, sizes):
        """Arguments by the kernel's parameters: N(0,1), scalars 0.1, widths that mask nothing."""
        values = []
        for param in kernel.params:
            name = param.name.text()
            if name not in sizes:
                values.append(1 << 20 if name == "width" else 0.1)
                continue
            dtype = self.tirrt.DTYPES[self.tirrt.ELEMENTS[param.element]]
            x = self.torch.randn(sizes[name], device="cuda")
            values.append((x * 4).to(dtype) if dtype == self.torch.int8 else x.to(dtype))
        return values

    def median(self, calls):
        """Cycles of each call, in turns. As many run after each other as take longer than the clock is counted, behind
        as many that warm the card up: under load its clock is lower."""
        found, often = [[] for _ in calls], [4 for _ in calls]
        for turn in range(self.options.rounds + 1):
            for i, call in enumerate(calls):
                begin, end = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
                for _ in range(often[i]):
                    call()
                begin.record()
                self.beside.wait_event(begin)
                with self.torch.cuda.stream(self.beside):
                    self.clock()
                for _ in range(often[i]):
                    call()
                end.record()
                self.torch.cuda.synchronize()
                cycles, ns = self.counts.tolist()
                took = begin.elapsed_time(end) * 1e6 / often[i]
                if turn:
                    found[i].append(took * cycles / ns)
                else:
                    often[i] = max(4, int(1.25 * ns / took))
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


def turned(names):
    """The operands of these names have their rows along K."""
    def sizes(metas, rounds, tiles):
        straight = product(metas, rounds, tiles)
        return {**straight, **{name: straight[name][::-1] for name in names}}
    return sizes


def mlp(metas, rounds, tiles):
    rows, units = tiles * metas["BM"], rounds * metas["BF"]
    return {"X": (rows, metas["D"]), "U": (units, metas["D"]), "W": (units, metas["D"]), "Y": (rows, metas["D"])}


def sizes_for(row):
    file, kernel, _ = row
    if kernel == "mlp":
        return mlp
    return attention if file.startswith("attention") else {"nn": turned("B"), "tt": turned("A"), "tn": turned("AB")}.get(
        kernel, product)


def measure(options, rows):
    """Cycles by label; a problem is printed."""
    found = {}
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        card = Card(options, pathlib.Path(folder))
        list(pool.map(lambda row: card.build(arguments(row)), rows))
        for row in rows:
            try:
                found[label(row)] = card.measure(row, sizes_for(row))
            except (AttributeError, KeyError, ValueError, RuntimeError, card.tirrt.TirError) as problem:
                print(f"| {label(row)} | {type(problem).__name__}: {problem} |", flush=True)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("tirc")
    parser.add_argument("--library")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--save", type=pathlib.Path)
    parser.add_argument("--against", type=pathlib.Path)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--count", type=int, default=40)
    options = parser.parse_args()
    rows = ATTENTION + PRODUCTS + MLP if options.seed is None else drawn(options.seed, options.count)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        cycles = dict(zip(map(label, rows), pool.map(lambda row: predicted(options.tirc, row), rows)))
    rows = [row for row in rows if cycles[label(row)]]
    found = json.loads(options.against.read_text("utf-8")) if options.against else {}
    if options.library:
        found |= measure(options, rows)
    if options.save:
        options.save.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    ratios = {name: cycles[name] / found[name] for name in map(label, rows) if name in found}
    for name in map(label, rows):
        measured = f"{found[name]:.0f} | {ratios[name]:.2f}" if name in ratios else " | "
        print(f"| {name} | {cycles[name]} | {measured} |")
    print(f"{sum(abs(ratio - 1) <= 0.1 for ratio in ratios.values())} of {len(ratios)} within 10 %")


if __name__ == "__main__":
    main()
