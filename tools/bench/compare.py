# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Times our kernels against torch in one process, paired.

    python3 compare.py --library libtirrt.so --artifacts FOLDER [--only PATTERN] [--sweep]
                       [--rounds N] [--pause MS] [--seconds S] [--device cuda|emu]

Each item has two sides: a torch call, and one of our artifacts, picked among FOLDER's candidates
by a short trial. Each side is a CUDA graph of several calls that rotate over input sets of together
at least 256 MiB, so that nothing is found in the L2 cache; a torch call that synchronises is a
plain loop instead. The graphs are replayed in turns, torch ours torch ours, between CUDA events,
and the medians are compared. --pause rests between replays, which keeps the card below its power
limit. Inputs are N(0,1). Our result is compared with float32's or float64's before anything is
timed.

--sweep times every GEMM configuration of FOLDER on every shape instead, beside cuBLAS.
Progress goes to $OUT/NAME.log and all figures to $OUT/NAME.json where OUT is set.
--device emu runs every item once at tiny sizes, to try the script; its times mean nothing.
"""

import argparse
import fnmatch
import json
import math
import os
import pathlib
import statistics
import sys
import time

import torch
import torch.nn.functional as F

import artifacts
import harness
import tirrt

CHUNK = 1 << 27  # rows that are compared at a time
ROTATE = 256 << 20  # bytes of input sets; the H200's L2 holds 60 MB
SHORTEST = 2.0  # milliseconds that a graph should take, unless MOST calls are shorter
FEWEST, MOST = 6, 128  # calls in a graph


# ---- operations: each gives the calls of both sides for one set of inputs


class Work:
    """One input set: `theirs()` runs torch, `ours` are the arguments of our kernel, `check()`
    gives the relative error of our output after a launch on poison."""

    def __init__(self, theirs, ours, out, reference, bytes_moved, flops=0, tolerance=0.0):
        self.theirs, self.ours, self.out, self.reference = theirs, ours, out, reference
        self.bytes, self.flops, self.tolerance = bytes_moved, flops, tolerance
        self.captured = True  # whether `theirs` can be part of a CUDA graph
        self.repeats = True  # whether a second launch leaves what the first one did
        self.want = None

    def check(self, launch):
        fill = math.nan if self.out.dtype.is_floating_point else 0
        self.out.copy_(torch.full(self.out.shape, fill).to(self.out.dtype))
        launch()
        if self.want is None:
            self.want = self.reference()
        error, size = 0.0, 0.0
        for got, want in zip(self.out.split(CHUNK), self.want.split(CHUNK)):
            error += (got.double() - want.double()).square().sum().item()
            size += want.double().square().sum().item()
        return math.sqrt(error / max(size, 1e-300))


def normal(device, *shape, dtype):
    return torch.randn(*shape, device=device, dtype=torch.float32).to(dtype)


def size_of(*tensors):
    return sum(t.numel() * t.element_size() for t in tensors)


def binary(function):
    def make(device, n):
        a, b = (normal(device, n, dtype=torch.float16) for _ in range(2))
        c, theirs = torch.empty_like(a), torch.empty_like(a)
        return Work(lambda: function(a, b, out=theirs), (a, b, c), c,
                    lambda: function(a.float(), b.float()), size_of(a, b, c), tolerance=1e-3)
    return make


def copy(device, n):
    a = normal(device, n, dtype=torch.float16)
    c, theirs = torch.empty_like(a), torch.empty_like(a)
    return Work(lambda: theirs.copy_(a), (a, c), c, lambda: a, size_of(a, c))


def softmax(device, m, n):
    x = normal(device, m, n, dtype=torch.bfloat16)
    y, theirs = torch.empty_like(x), torch.empty_like(x)
    return Work(lambda: torch.softmax(x, 1, out=theirs), (x, y), y,
                lambda: torch.softmax(x.float(), 1), size_of(x, y), tolerance=5e-3)


def layernorm(device, m, n):
    x = normal(device, m, n, dtype=torch.bfloat16)
    w, b = (normal(device, n, dtype=torch.bfloat16) for _ in range(2))
    y = torch.empty_like(x)
    return Work(lambda: F.layer_norm(x, (n,), w, b, 1e-5), (x, w, b, y, 1e-5), y,
                lambda: F.layer_norm(x.float(), (n,), w.float(), b.float(), 1e-5),
                size_of(x, w, b, y), tolerance=5e-3)


def rmsnorm(device, m, n):
    x = normal(device, m, n, dtype=torch.bfloat16)
    w = normal(device, n, dtype=torch.bfloat16)
    y = torch.empty_like(x)
    return Work(lambda: F.rms_norm(x, (n,), w, 1e-6), (x, w, y, 1e-6), y,
                lambda: F.rms_norm(x.float(), (n,), w.float(), 1e-6), size_of(x, w, y),
                tolerance=5e-3)


def transpose(device, m, n):
    x = normal(device, m, n, dtype=torch.bfloat16)
    y, theirs = (torch.empty(n, m, device=device, dtype=torch.bfloat16) for _ in range(2))
    return Work(lambda: theirs.copy_(x.T), (x, y), y, lambda: x.T, size_of(x, y))


def total(device, n):
    x = normal(device, n, dtype=torch.float32)
    y, theirs = (torch.zeros(1, device=device) for _ in range(2))

    def reference():  # `y` is added to: the reference must see what it was before
        return x.double().sum().reshape(1)
    work = Work(lambda: torch.sum(x, 0, keepdim=True, out=theirs), (x, y), y, reference, size_of(x))

    def check(launch):
        y.zero_()
        launch()
        error = (y.double() - reference()).abs() / x.double().norm()
        return error.item()
    work.check, work.tolerance = check, 1e-5
    return work


def block_sums(block):
    def make(device, n):
        x = normal(device, n, dtype=torch.float32)
        y = torch.empty(-(-n // block), device=device)
        theirs = torch.empty(1, device=device)
        return Work(lambda: torch.sum(x, 0, keepdim=True, out=theirs), (x, y), y,
                    lambda: F.pad(x, (0, -n % block)).double().reshape(-1, block).sum(1),
                    size_of(x, y), tolerance=1e-5)
    return make


def row_sum(device, m, n):
    x = normal(device, m, n, dtype=torch.float32)
    y, theirs = (torch.empty(m, device=device) for _ in range(2))
    return Work(lambda: torch.sum(x, 1, out=theirs), (x, y), y, lambda: x.double().sum(1),
                size_of(x, y), tolerance=1e-5)


def histogram(device, n, bins):
    x = torch.randint(0, bins, (n,), device=device, dtype=torch.int32)
    h = torch.zeros(bins, device=device, dtype=torch.int32)
    work = Work(lambda: torch.bincount(x, minlength=bins), (x, h), h,
                lambda: torch.bincount(x, minlength=bins), size_of(x))
    work.captured = False
    return work


def scaled(a, b):
    one = torch.ones((), device=a.device)
    return lambda: torch._scaled_mm(a, b.T, one, one, out_dtype=torch.bfloat16)


def gemm(element):
    dtype = tirrt.DTYPES[element]
    out = tirrt.DTYPES[artifacts.GEMM_TYPES[element][1]]

    def make(device, m, n, k):
        if dtype.is_floating_point:
            a, b = normal(device, m, k, dtype=dtype), normal(device, n, k, dtype=dtype)
        else:
            a, b = (torch.randint(-128, 128, (rows, k), device=device).to(dtype)
                    for rows in (m, n))
        d, theirs = (torch.empty(m, n, device=device, dtype=out) for _ in range(2))
        if element == "e4m3":
            call = scaled(a, b)
        elif element == "i8":
            def call():
                return torch._int_mm(a, b.T)
        else:
            def call():
                return torch.matmul(a, b.T, out=theirs)

        def reference():
            if element == "i8":
                return a.double() @ b.double().T
            saved = torch.backends.cuda.matmul.allow_tf32
            torch.backends.cuda.matmul.allow_tf32 = False
            result = a.float() @ b.float().T
            torch.backends.cuda.matmul.allow_tf32 = saved
            return result
        tolerance = {"i8": 0.0, "f16": 1e-3, "tf32": 1e-3}.get(element, 5e-3)
        return Work(call, (a, b, d), d, reference, size_of(a, b, d), 2 * m * n * k, tolerance)
    return make


# Operation: how to make a set, sizes to time, tiny sizes for the emulator, artifact patterns.
GEMM_SHAPES = [(4096, 4096, 4096), (8192, 8192, 8192), (2048, 2048, 2048), (1024, 1024, 1024),
               (1, 8192, 4096), (16, 8192, 4096), (64, 8192, 4096), (128, 8192, 4096),
               (512, 8192, 4096), (4097, 4100, 4104)]
UNALIGNED_SHAPES = [  # in turn: D aligned, D not; A and B aligned to 4 bytes; to 2
    (4097, 4096, 4096), (4096, 4097, 4096), (4097, 4100, 4104), (64, 8191, 4096),
    (4096, 4096, 4098), (4096, 4096, 4100), (4096, 4096, 4099)]
CUBES = [(n, n, n) for n in (1024, 2048, 4096, 8192, 16384)]
MATMUL_SHAPES = CUBES + [(8192, 28672, 4096), (4096, 4096, 16384), (256, 256, 65536),
                         (4097, 4100, 4104)] + [(m, 8192, 4096)
                                                for m in (16, 64, 128, 256, 512, 2048)]
TYPED_SHAPES = [(4096, 4096, 4096), (8192, 8192, 8192)]
ROWS = [(16384, 4096), (8192, 16384), (4096, 65536)]
ITEMS = {
    "gemm_bf16": (gemm("bf16"), GEMM_SHAPES, [(70, 80, 96)], ["gemm_bf16", "sweep_bf16.*"]),
    "gemm_unaligned": (gemm("bf16"), UNALIGNED_SHAPES, [(70, 81, 96), (65, 80, 98), (65, 80, 97)],
                       ["gemm_bf16", "sweep_bf16.*"]),
    "copy": (copy, [(1 << 28,)], [(5000,)], ["copy.*"]),
    "add": (binary(torch.add), [(1 << 28,)], [(5000,)], ["add.*"]),
    "mul": (binary(torch.mul), [(1 << 28,)], [(5000,)], ["mul.*"]),
    "softmax": (softmax, ROWS, [(3, 1000)], ["softmax.*"]),
    "layernorm": (layernorm, ROWS, [(3, 1000)], ["layernorm.*"]),
    "rmsnorm": (rmsnorm, ROWS, [(3, 1000)], ["rmsnorm.*"]),
    "transpose": (transpose, [(8192, 8192)], [(100, 70)], ["transpose.*"]),
    "total": (total, [(1 << 28,)], [(20000,)], ["total.*"]),
    **{f"block_sums{b}": (block_sums(b), [(1 << 28,)], [(20000,)], [f"block_sums.{b}"])
       for b in (4096, 8192, 16384, 32768)},
    "row_sum": (row_sum, [(16384, 4096), (4096, 65536)], [(5, 1000)], ["row_sum.*"]),
    "histogram": (histogram, [(1 << 28, 256)], [(5000, 256)], ["histogram.*"]),
    **{f"gemm_{e}": (gemm(e), TYPED_SHAPES, [(72, 80, 96)], [f"gemm_{e}", f"sweep_{e}.*"])
       for e in ("f16", "tf32", "i8", "e4m3")},
    "matmul_bf16": (gemm("bf16"), MATMUL_SHAPES, [(70, 80, 96)], ["matmul_bf16"]),
    "matmul_f16": (gemm("f16"), MATMUL_SHAPES, [(70, 80, 96)], ["matmul_f16"]),
    **{f"matmul_{e}": (gemm(e), CUBES[1:], [(72, 80, 96)], [f"matmul_{e}"])
       for e in ("e4m3", "i8")},
}
SHOWN = 12  # configurations in the table of a sweep, besides the best of each shape
SWEEP_SHAPES = [(4096, 4096, 4096), (8192, 8192, 8192), (2048, 2048, 2048), (1024, 1024, 1024),
                (64, 8192, 4096), (1, 8192, 4096)]


# ---- timing


class Loop:
    """What cannot be captured: the calls one after the other."""

    def __init__(self, calls):
        self.calls = calls

    def replay(self):
        for call in self.calls:
            call()


class Side:
    """Calls that are timed together: a CUDA graph captured in `stream`, or a loop without it."""

    def __init__(self, calls, stream=None):
        self.count, self.captured = len(calls), stream is not None
        for call in calls[:2]:
            call()
        torch.cuda.synchronize()
        if stream is None:
            self.graph = Loop(calls)
            return
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph, stream=stream):
            for call in calls:
                call()

    def replay(self):
        """Events around one replay."""
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        self.graph.replay()
        end.record()
        return start, end


def alternate(sides, rounds, pause=0):
    """Milliseconds a call, of each side in each round; the sides take turns."""
    events = [[] for _ in sides]
    for _ in range(rounds):
        for slot, side in zip(events, sides):
            if pause:
                torch.cuda.synchronize()
                time.sleep(pause / 1e3)
            slot.append(side.replay())
    torch.cuda.synchronize()
    return [[start.elapsed_time(end) / side.count for start, end in slot]
            for slot, side in zip(events, sides)]


def roughly(call):
    """Milliseconds of one call."""
    return min(alternate([Side([call] * 3)], 2)[0])


class Context:
    """A worker's device and its loaded artifacts."""

    def __init__(self, options):
        self.options = options
        self.device = tirrt.Device(options.library, options.device,
                                   getattr(options, "scratch", 0), getattr(options, "overlap", False))
        self.folder = pathlib.Path(options.artifacts)
        self.names = sorted(path.stem for path in self.folder.glob("*.tira"))
        self.kernels = {}
        self.shapes = {}
        self.copy_rate = None
        self.stream = None  # for captures
        if not self.device.emulated:
            self.stream = torch.cuda.Stream()
            with torch.cuda.stream(self.stream):
                self.device.stream()  # adopted now: a capture may do nothing but launch
        torch.manual_seed(1)
        torch.backends.cuda.matmul.allow_tf32 = True

    def kernel(self, name):
        if name not in self.kernels:
            self.kernels[name] = self.device.load(self.folder / f"{name}.tira").kernel()
        return self.kernels[name]

    def candidates(self, patterns):
        return [n for p in patterns for n in self.names if fnmatch.fnmatch(n, p)]

    def sets(self, make, size):
        """Enough input sets that a rotation does not stay in the cache."""
        first = make(self.device.torch, *size)
        if self.device.emulated:
            return [first]
        count = min(MOST, max(1, math.ceil(ROTATE / first.bytes)))
        return [first] + [make(self.device.torch, *size) for _ in range(count - 1)]

    def copy_bandwidth(self):
        """Bytes a second of a device-to-device copy, read and written."""
        if self.copy_rate is None:
            a = torch.empty(2 << 30, dtype=torch.uint8, device="cuda").random_()
            b = torch.empty_like(a)
            times = alternate([Side([lambda: b.copy_(a)] * FEWEST, self.stream)], 11)[0]
            self.copy_rate = 2 * a.numel() / (statistics.median(times) / 1e3)
        return self.copy_rate


def rotation(sets, function, milliseconds, shortest=SHORTEST):
    """The calls of a side: whole rotations over the sets, at least `shortest` milliseconds."""
    count = max(FEWEST, min(MOST, math.ceil(shortest / max(milliseconds, 1e-3))))
    count = math.ceil(count / len(sets)) * len(sets)
    made = [function(work) for work in sets]
    return [made[i % len(sets)] for i in range(count)]


def launches(kernel):
    return lambda work: kernel.bind(*work.ours).launch


def valid(context, work, names):
    """The candidates that run on this size and are right, and why the others are not."""
    good, bad = {}, {}
    for name in names:
        try:
            error = work.check(context.kernel(name).bind(*work.ours).launch)
        except tirrt.TirError as refusal:
            if harness.fatal(refusal):
                raise
            bad[name] = str(refusal)[:120]
            continue
        if error <= work.tolerance:
            good[name] = error
        else:
            bad[name] = f"WRONG: relative error {error:.2e}"
    return good, bad


def fastest(context, sets, names):
    """The best candidate: a few launches of each, then graphs of the best five."""
    first = {n: roughly(context.kernel(n).bind(*sets[0].ours).launch) for n in names}
    best = sorted(first, key=first.get)[:5]
    sides = [Side(rotation(sets, launches(context.kernel(n)), first[n]), context.stream)
             for n in best]
    trial = dict(zip(best, map(statistics.median, alternate(sides, 5))))
    return min(trial, key=trial.get), {**first, **trial}


def describe(kernel, work):
    report = kernel.bind(*work.ours).launch()
    usage = kernel.usage(report.variant)
    return {"facts": kernel.variant_name(report.variant), "threads": report.threads,
            "registers": usage.registers, "local": usage.local_bytes,
            "shared": report.dynamic_shared + usage.static_shared}


def pair(context, item):
    """Times the best candidate against torch."""
    name, size = item
    make, _, _, patterns = ITEMS[name]
    sets = context.sets(make, size)
    work = sets[0]
    good, bad = valid(context, work, context.candidates(patterns))
    result = {"candidates": len(good), "rejected": bad, "bytes": work.bytes, "flops": work.flops}
    if not good:
        return {**result, "error": f"no candidate is right: {bad}"[:300]}
    if context.device.emulated:
        work.theirs()
        return result
    best, trial = fastest(context, sets, good)
    shorter = min(roughly(work.theirs), trial[best])
    theirs = Side(rotation(sets, lambda w: w.theirs, shorter),
                  context.stream if work.captured else None)
    ours = Side(rotation(sets, launches(context.kernel(best)), shorter), context.stream)
    alternate([theirs, ours], 2)
    times = alternate([theirs, ours], context.options.rounds, context.options.pause)
    return {**result, "torch_ms": statistics.median(times[0]),
            "ours_ms": statistics.median(times[1]), "best": best, "error_relative": good[best],
            "ratio": statistics.median(x / y for x, y in zip(*times)),
            "range_ms": [[min(t), max(t)] for t in times], "copy": context.copy_bandwidth(),
            "graph": theirs.captured, "calls": ours.count, "sets": len(sets),
            "trial": {n: round(t, 5) for n, t in trial.items()},
            **describe(context.kernel(best), work)}


def sweep_shape(context, name, element, size):
    """One configuration on one shape, beside cuBLAS."""
    kernel = context.kernel(name)
    if (element, size) not in context.shapes:
        sets = context.sets(gemm(element), size)
        theirs = None
        if not context.device.emulated:
            theirs = Side(rotation(sets, lambda w: w.theirs, roughly(sets[0].theirs)),
                          context.stream)
        context.shapes[element, size] = sets, theirs
    sets, theirs = context.shapes[element, size]
    good, bad = valid(context, sets[0], [name])
    if not good:
        return {"error": bad[name]}
    if context.device.emulated:
        return {"tflops": 0.0, "ratio": 0.0}
    ours = Side(rotation(sets, launches(kernel), roughly(kernel.bind(*sets[0].ours).launch)),
                context.stream)
    times = alternate([theirs, ours], 5, context.options.pause)
    ms = statistics.median(times[1])
    return {"ms": ms, "tflops": sets[0].flops / ms / 1e9, "ratio": statistics.median(times[0]) / ms}


def sweep(context, item):
    """Times one configuration on all shapes."""
    name, element = item
    shapes = SWEEP_SHAPES if element == "bf16" else TYPED_SHAPES
    if context.device.emulated:
        shapes = ITEMS["gemm_bf16"][2]
    rows = {"x".join(map(str, size)): sweep_shape(context, name, element, size)
            for size in shapes}
    usage = context.kernel(name).usage(0)
    return {"shapes": rows, "registers": usage.registers, "local": usage.local_bytes}


def load(context, name):
    """Loads one artifact, which leaves its machine code in the driver's cache."""
    usage = context.kernel(name).usage(0)
    return {"registers": usage.registers, "local": usage.local_bytes}


# ---- output


def pair_line(item, r):
    name = f"{item[0]} {'x'.join(map(str, item[1]))}"
    if "error" in r:
        return f"{name:32} FAILED {r['error']}"
    if "torch_ms" not in r:
        return f"{name:32} right, {r['candidates']} candidates"
    if r["flops"]:
        rates = [r["flops"] / r[side] / 1e9 for side in ("torch_ms", "ours_ms")]
        unit = "TFLOP/s"
    else:
        rates = [r["bytes"] / r[side] / 1e6 for side in ("torch_ms", "ours_ms")]
        unit = "GB/s"
    share = "" if r["flops"] else f"{r['bytes'] / r['ours_ms'] * 1e3 / r['copy']:5.2f}"
    loop = "" if r["graph"] else " (torch: no graph)"
    return (f"{name:32} {r['torch_ms']:9.4f} {r['ours_ms']:9.4f} {rates[0]:8.1f} {rates[1]:8.1f} "
            f"{unit:7} {r['ratio']:5.2f} {share:5} {r['best']} {r['facts']} r{r['registers']} "
            f"l{r['local']} e{r['error_relative']:.0e}{loop}")


def print_pairs(results):
    print(f"\n{'item':32} {'torch ms':>9} {'ours ms':>9} {'torch':>8} {'ours':>8} {'':7} "
          f"{'ratio':>5} {'copy':5} candidate, variant, registers, local bytes, error")
    for item, result in results:
        print(pair_line(item, result))
    for item, result in results:
        for name, why in result.get("rejected", {}).items():
            if why.startswith("WRONG"):
                print(*item, name, why)


def print_sweep(results):
    for element in sorted({item[1] for item, _ in results}):
        rows = [(item[0], r) for item, r in results if item[1] == element]
        shapes = sorted({key for _, r in rows for key in r.get("shapes", {})})
        print(f"\n{'configuration':34} regs local  " + "  ".join(f"{s:>16}" for s in shapes))
        rows.sort(key=lambda row: -sum(v.get("ratio", 0)
                                       for v in row[1].get("shapes", {}).values()))
        best = {max(rows, key=lambda row, s=s: row[1].get("shapes", {}).get(s, {})
                    .get("ratio", 0))[0] for s in shapes}
        for place, (name, r) in enumerate(rows):
            if place >= SHOWN and name not in best and "error" not in r:
                continue
            if "error" in r:
                print(f"{name:34} FAILED {r['error']}")
                continue
            cells = [f"{v['tflops']:9.1f} ({v['ratio']:4.2f})" if "tflops" in v
                     else v["error"][:16] for v in (r["shapes"].get(s, {"error": "-"})
                                                    for s in shapes)]
            print(f"{name:34} {r['registers']:4} {r['local']:5}  "
                  + "  ".join(f"{cell:>16}" for cell in cells))


def options_of(arguments):
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--library", required=True)
    parser.add_argument("--artifacts", required=True)
    parser.add_argument("--device", choices=("cuda", "emu"), default="cuda")
    parser.add_argument("--only", default="*", help="items, e.g. 'gemm_*'")
    parser.add_argument("--sweep", action="store_true")
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--pause", type=float, default=0, help="milliseconds between replays")
    parser.add_argument("--seconds", type=float, default=420, help="stop after this long")
    return parser.parse_args(arguments)


def items_of(options):
    if options.sweep:
        names = sorted(path.stem for path in pathlib.Path(options.artifacts).glob("sweep_*.tira"))
        return [(n, n.split(".")[0].removeprefix("sweep_")) for n in names
                if fnmatch.fnmatch(n, f"*{options.only}")]
    tiny = options.device == "emu"
    return [(name, size) for name, row in ITEMS.items() if fnmatch.fnmatch(name, options.only)
            for size in row[2 if tiny else 1]]


def warm(options):
    """Has the driver compile everything, on all cores."""
    items = items_of(options)
    patterns = [item[0] for item in items] if options.sweep else \
        [p for item in items for p in ITEMS[item[0]][3]]
    names = sorted(path.stem for path in pathlib.Path(options.artifacts).glob("*.tira"))
    names = [n for n in names if any(fnmatch.fnmatch(n, p) for p in patterns)]
    lanes = 1 if options.device == "emu" else 12
    return harness.run([names[i::lanes] for i in range(lanes)], lambda: Context(options), load, 60)


def main(arguments):
    options = options_of(arguments)
    deadline = time.monotonic() + options.seconds
    work = sweep if options.sweep else pair
    for name, result in warm(options):
        if "error" in result:
            print(f"{name} does not load: {result['error']}", flush=True)
    name = "sweep" if options.sweep else f"compare{'_pause' if options.pause else ''}"
    folder = os.environ.get("OUT")
    results = []
    with open(pathlib.Path(folder, name + ".log") if folder else os.devnull, "w") as log:
        for item, result in harness.run([items_of(options)], lambda: Context(options), work, 120,
                                        deadline):
            results.append((item, result))
            print(item if options.sweep else pair_line(item, result), file=log, flush=True)
    if folder:
        text = json.dumps([{"item": item, **result} for item, result in results])
        pathlib.Path(folder, name + ".json").write_text(text)
    (print_sweep if options.sweep else print_pairs)(results)
    return any("error" in result for _, result in results)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
