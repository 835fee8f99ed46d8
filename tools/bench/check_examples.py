# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks every example on a device against torch, at awkward sizes and with awkward layouts.

    python3 check_examples.py --device cuda|emu --library libtirrt.so --artifacts FOLDER
                              [--only PATTERN] [--quick] [--lanes N] [--seconds S]
                              [--tirc TIRC [--tests FOLDER]]

Inputs are N(0,1). Outputs are poisoned before the launch with bytes 0xff (NaN for floats), and so
is every byte of memory around each tensor and between its rows: what should not be read spoils the
result, and what should not be written is compared afterwards. References are computed in float64,
or exactly for integers; the tolerance is one rounding to the output's type plus what the
accumulation in the kernel's own type may lose. With --tirc, the command line's own --check, against
the interpreter, runs as well; with --tests also on the programs of the project's own tests/device
and tests/run, and the products of tests/examples/forms.py. Ends with the line "N passed, N failed".

FOLDER is what artifacts.py made.
"""

import argparse
import concurrent.futures
import fnmatch
import itertools
import json
import math
import os
import pathlib
import re
import shlex
import subprocess
import sys
import time

import torch

import artifacts
import harness
import tirrt

POISON = 0xFF
GUARD = 64  # poisoned elements after a tensor
SMALL = 1 << 22  # elements up to which the memory around a tensor is checked
# Half an ulp of a number near 1, relative to it.
ROUNDING = {torch.bfloat16: 2.0**-8, torch.float16: 2.0**-11, torch.float32: 2.0**-24,
            torch.float64: 2.0**-53, torch.float8_e4m3fn: 2.0**-4, torch.float8_e5m2: 2.0**-3}


# ---- tensors


class Memory:
    """Makes the tensors of one item in its layout, and looks around the outputs afterwards."""

    def __init__(self, device, layout, seed):
        self.device, self.layout = device, layout
        self.random = torch.Generator(device=device).manual_seed(seed)
        self.outputs = []

    def empty(self, *shape, dtype):
        """A poisoned view. Layouts: dense; offset: one element past an aligned address; pitch: rows
        of odd distance; step: innermost stride 2; wide: rows 16 bytes further apart."""
        size = torch.empty((), dtype=dtype).element_size()
        inner = 2 if self.layout == "step" else 1
        pad = {"pitch": 3, "wide": 16 // size}.get(self.layout, 0)
        strides = []
        step = inner
        for axis, extent in reversed(list(enumerate(shape))):
            strides.insert(0, step)
            step = step * max(extent, 1) + (pad if axis == len(shape) - 1 else 0)
        offset = 1 if self.layout == "offset" else 0
        storage = torch.full(((offset + step + GUARD) * size,), POISON, dtype=torch.uint8,
                             device=self.device).view(dtype)
        view = storage.as_strided(shape, strides, offset)
        view.owner = storage
        return view

    def output(self, *shape, dtype):
        view = self.empty(*shape, dtype=dtype)
        self.outputs.append(view)
        return view

    def fill(self, view, values):
        if view.numel():
            view.copy_(values)
        return view

    def normal(self, *shape, dtype):
        wide = dtype if dtype in (torch.float64, torch.float32) else torch.float32
        values = torch.randn(shape, generator=self.random, device=self.device, dtype=wide)
        return self.fill(self.empty(*shape, dtype=dtype), values.to(dtype))

    def integers(self, *shape, dtype, low=None, high=None):
        if low is None:
            info = torch.iinfo(dtype)
            low, high = (max(info.min, -(1 << 30)), min(info.max, (1 << 30) - 1) + 1)
        values = torch.randint(low, high, shape, generator=self.random, device=self.device)
        return self.fill(self.empty(*shape, dtype=dtype), values.to(dtype))

    def values(self, *shape, dtype):
        return (self.normal if dtype.is_floating_point else self.integers)(*shape, dtype=dtype)

    def stray(self):
        """Whether memory around an output was written."""
        for view in self.outputs:
            storage = view.owner
            if storage.numel() > SMALL:
                continue
            size = view.element_size()
            outside = torch.ones(storage.numel(), dtype=torch.bool, device=self.device)
            if view.numel():
                inside = outside.as_strided(view.shape, view.stride(), view.storage_offset())
                inside.fill_(False)
            around = storage.view(torch.uint8).reshape(-1, size)[outside]
            if (around != POISON).any().item():
                return True
        return False


def compare(out, reference, slack):
    """Errors of `out` against a float64 reference that may be off by a rounding and `slack`."""
    rounding = ROUNDING[out.dtype]
    got = out.double()
    error = (got - reference).abs()
    error = torch.where(got == reference, torch.zeros_like(error), error)  # equal infinities
    allowed = rounding * 1.001 * reference.abs() + slack + 1e-300
    share = (error / allowed).nan_to_num(nan=math.inf)
    norm = reference.norm().item()
    return {"share": share.max().item() if share.numel() else 0.0,
            "relative": error.norm().item() / norm if norm else 0.0,
            "wrong": int((share > 1).sum().item())}


def exact(out, reference):
    wrong = int((out.reshape(-1) != reference.reshape(-1)).sum().item())
    return {"share": 0.0 if not wrong else math.inf, "relative": 0.0, "wrong": wrong}


# ---- kernels: each takes memory, sizes and the artifact's element type and gives arguments and a
# function that judges the outputs.


def add(memory, sizes, element):
    dtype = tirrt.DTYPES[element]
    a, b = (memory.values(*sizes, dtype=dtype) for _ in range(2))
    c = memory.output(*sizes, dtype=dtype)
    if dtype.is_floating_point:
        return (a, b, c), lambda: compare(c, a.double() + b.double(), 0)
    return (a, b, c), lambda: exact(c, a + b)


def softmax(memory, sizes, element):
    x = memory.normal(*sizes, dtype=tirrt.DTYPES[element])
    y = memory.output(*sizes, dtype=tirrt.DTYPES[element])

    def judge():
        reference = torch.softmax(x.double(), dim=1)
        return compare(y, reference, 4e-6 * reference)
    return (x, y), judge


def lost_by_steps(a, b):
    """What a product of 8-bit floats on warpgroups may lose: an instruction adds 32 products to the
    sum so far, aligned to the largest of them, and keeps 13 bits (tests/emu, hardware sums)."""
    so_far, lost = 0, 0
    for k in range(0, a.shape[1], 32):
        left, right = a[:, k:k + 32], b[:, k:k + 32]
        so_far = so_far + left @ right.T
        largest = left.abs().amax(1)[:, None] * right.abs().amax(1)[None, :]
        lost = lost + 2.0**-13 * (so_far.abs() + largest)
    return lost


def gemm(memory, sizes, element):
    m, n, k = sizes
    dtype = tirrt.DTYPES[element]
    out = tirrt.DTYPES[artifacts.GEMM_TYPES[element][1]]
    a, b = memory.values(m, k, dtype=dtype), memory.values(n, k, dtype=dtype)
    d = memory.output(m, n, dtype=out)

    def judge():
        wide_a, wide_b = a.double(), b.double()
        reference = wide_a @ wide_b.T
        if not dtype.is_floating_point:
            return exact(d, reference.to(out))
        # A step of 16 products may lose one unit of the sum's type; tf32 operands lose 2^-10 each.
        lost = (8 + k / 16) * (2.0**-53 if element == "f64" else 2.0**-23)
        lost += 2.0**-9 if element == "tf32" else 0
        slack = lost * (wide_a.abs() @ wide_b.abs().T)
        if element in ("e4m3", "e5m2"):
            slack += lost_by_steps(wide_a, wide_b)
        return compare(d, reference, slack)
    return (a, b, d), judge


def row_sum(memory, sizes, _):
    x = memory.normal(*sizes, dtype=torch.float32)
    y = memory.output(sizes[0], dtype=torch.float32)
    return (x, y), lambda: compare(y, x.double().sum(1), 1e-6 * x.double().abs().sum(1))


def total(memory, sizes, _):
    x = memory.normal(*sizes, dtype=torch.float32)
    y = memory.output(1, dtype=torch.float32)
    y.fill_(1.5)
    return (x, y), lambda: compare(y, x.double().sum().reshape(1) + 1.5,
                                   1e-6 * (x.double().abs().sum() + 1.5))


def block_sums(memory, sizes, _):
    block = 8192
    x = memory.normal(*sizes, dtype=torch.float32)
    y = memory.output(-(-sizes[0] // block), dtype=torch.float32)

    def judge():
        padded = torch.zeros(y.numel() * block, dtype=torch.float64, device=x.device)
        padded[:x.numel()] = x.double()
        blocks = padded.reshape(-1, block)
        return compare(y, blocks.sum(1), 1e-6 * blocks.abs().sum(1))
    return (x, y), judge


def layernorm(memory, sizes, _):
    n = sizes[1]
    x = memory.normal(*sizes, dtype=torch.bfloat16)
    w, b = (memory.normal(n, dtype=torch.bfloat16) for _ in range(2))
    y = memory.output(*sizes, dtype=torch.bfloat16)

    def judge():
        wide = x.double()
        centred = wide - wide.mean(1, keepdim=True)
        scaled = centred / (centred.square().mean(1, keepdim=True) + 1e-5).sqrt() * w.double()
        size = scaled.abs() + b.double().abs()
        return compare(y, scaled + b.double(), 1e-5 * size)
    return (x, w, b, y, 1e-5), judge


def rmsnorm(memory, sizes, _):
    x = memory.normal(*sizes, dtype=torch.bfloat16)
    w = memory.normal(sizes[1], dtype=torch.bfloat16)
    y = memory.output(*sizes, dtype=torch.bfloat16)

    def judge():
        wide = x.double()
        scale = (wide.square().mean(1, keepdim=True) + 1e-6).rsqrt()
        reference = wide * scale * w.double()
        return compare(y, reference, 4e-6 * reference.abs())
    return (x, w, y, 1e-6), judge


def transpose(memory, sizes, element):
    m, n = sizes
    x = memory.values(m, n, dtype=tirrt.DTYPES[element])
    y = memory.output(n, m, dtype=tirrt.DTYPES[element])
    return (x, y), lambda: exact(y, x.T)


def histogram(memory, sizes, _):
    n, bins = sizes
    x = memory.integers(n, dtype=torch.int32, low=-5, high=bins + 5)
    h = memory.output(bins, dtype=torch.int32)
    h.fill_(7)

    def judge():
        counted = x[(x >= 0) & (x < bins)]
        return exact(h, torch.bincount(counted, minlength=bins).int() + 7)
    return (x, h), judge


def scale(memory, sizes, _):
    x = memory.normal(*sizes, dtype=torch.float32)
    y = memory.output(*sizes, dtype=torch.float32)
    return (x, y, -1.25), lambda: compare(y, x.double() * -1.25, 0)


def warp_sum(memory, sizes, _):
    x = memory.normal(sizes[0] * 32, dtype=torch.float32)
    y = memory.output(sizes[0], dtype=torch.float32)

    def judge():
        groups = x.double().reshape(-1, 32)
        return compare(y, groups.sum(1), 1e-6 * groups.abs().sum(1))
    return (x, y), judge


# ---- sizes


def around(tile, large):
    """None, 1, odd, prime, around a tile, multiples of 16 beside it, large."""
    return [0, 1, 16, 33, 127, tile - 16, tile - 1, tile, tile + 1, tile + 16, 2 * tile + 37, large]


def lines(tile, large):
    return [(n,) for n in around(tile, large)]


def planes(rows, tile, large):
    """Sizes of a matrix: each dimension through its sizes while the other stays odd."""
    return [*((rows, n) for n in around(tile, 3 * tile + 5)), *large,
            *((m, n) for m in (0, 1, 63, 64, 65, 129) for n in (37, 48))]


def products(large):
    sizes = [0, 1, 33, 63, 64, 65, 127, 128, 129, 257]
    out = [(s, s, s) for s in sizes[1:]]
    out += [(s, 65, 40) for s in sizes] + [(65, s, 40) for s in sizes]
    out += [(72, 136, s) for s in (0, 1, 7, 8, 16, 31, 32, 33, 192, 256, 257, 320, 1000)]
    out += [(m, n, 80) for m in (1, 33, 127, 129) for n in (16, 112, 144)]  # aligned rows
    out += [(65, 144, k) for k in (16, 32, 48, 64, 128, 192, 256, 320, 384, 1040)]
    return out + large


BIG_PRODUCTS = [(1, 8192, 4096), (16, 4096, 8192), (512, 512, 65536), (2048, 2048, 2048),
                (4097, 4100, 4104), (4096, 4096, 4096), (1000, 3001, 999)]
MEDIUM_PRODUCTS = [(1, 4096, 4096), (1024, 1024, 1024), (1000, 1001, 999)]
KEPT = [s for s in planes(3, 57344, [(3, 8192), (3, 65535), (4096, 65536)]) if s[1] <= 65536]
LONG = [(1, 1000003), (7, 100003), (3000, 4097)]

# Operation: builder, sizes on a GPU, sizes on the emulator, layouts.
ALL_LAYOUTS = ("dense", "offset", "pitch", "wide", "step")
FLAT = ("dense", "offset", "step")
KERNELS = {
    "add": (add, [*lines(2048, 1 << 26), (10000019,)], FLAT),
    "softmax": (softmax, [s for s in planes(5, 4096, [(16384, 4096), (70000, 100)])
                          if s[1] <= 4096], ALL_LAYOUTS),
    "softmax_online": (softmax, planes(3, 4096, [*LONG, (4096, 65536)]),
                       ALL_LAYOUTS),
    "softmax_shared": (softmax, KEPT, ALL_LAYOUTS),
    "gemm": (gemm, products(BIG_PRODUCTS), ALL_LAYOUTS),
    "row_sum": (row_sum, planes(5, 1024, [*LONG, (16384, 4096)]), ALL_LAYOUTS),
    "total": (total, lines(8192, 1 << 26), FLAT),
    "block_sums": (block_sums, lines(8192, 1 << 26), FLAT),
    "layernorm": (layernorm, [s for s in planes(5, 4096, [(16384, 4096)]) if s[1] <= 4096],
                  ALL_LAYOUTS),
    "layernorm_long": (layernorm, planes(3, 4096, [*LONG, (4096, 65536)]), ALL_LAYOUTS),
    "layernorm_shared": (layernorm, KEPT, ALL_LAYOUTS),
    "rmsnorm": (rmsnorm, [s for s in planes(5, 4096, [(16384, 4096)]) if s[1] <= 4096],
                ALL_LAYOUTS),
    "rmsnorm_long": (rmsnorm, planes(3, 4096, [*LONG, (4096, 65536)]), ALL_LAYOUTS),
    "rmsnorm_shared": (rmsnorm, KEPT, ALL_LAYOUTS),
    "transpose": (transpose, planes(129, 64, [(8192, 8192), (8191, 8193), (3, 1000003)]),
                  ALL_LAYOUTS),
    "histogram": (histogram, [(n, b) for n in around(2048, 1 << 26) for b in (1, 100, 1000)],
                  FLAT),
    "histogram_shared": (histogram, [(n, b) for n in around(4096, 1 << 26) for b in (1, 100, 1024)],
                         FLAT),
    "scale": (scale, lines(256, 1 << 26), FLAT),
    "warp_sum": (warp_sum, [(g,) for g in (0, 1, 7, 1000, 65537)], FLAT),
    "cta_sum": (row_sum, planes(5, 256, [(3000, 4097), (70000, 100)]), ALL_LAYOUTS),
}


def operation(name):
    """The row of KERNELS and the element type of an artifact: "gemm_bf16" -> "gemm", "bf16"."""
    stem, _, last = name.rpartition("_")
    return (stem, last) if last in tirrt.DTYPES else (name, None)


def cases(name, quick):
    """The items of one artifact."""
    _, sizes, layouts = KERNELS[operation(name)[0]]
    if quick:  # what an emulator can do in seconds
        sizes = [s for s in sizes if math.prod(s) <= 100000]
    out = [(name, size, layout) for layout in layouts for size in sizes
           if layout == "dense" or math.prod(size) <= 1 << 24]
    return out


# ---- beyond 2^31 elements


def huge_add(context, element, count):
    """One dimension with more than 2^31 elements; compared in pieces."""
    dtype = tirrt.DTYPES[element]
    a = torch.empty(count, dtype=dtype, device="cuda")
    b, c = torch.empty_like(a), torch.empty_like(a)
    pieces = [slice(i, min(i + (1 << 28), count)) for i in range(0, count, 1 << 28)]
    for piece in pieces:
        for tensor in (a[piece], b[piece]):
            tensor.random_(0, 256) if element == "u8" else tensor.normal_()
        c[piece].view(torch.uint8).fill_(POISON)
    report = context.kernel(f"add_{element}")(a, b, c)
    torch.cuda.synchronize()
    wrong, share = 0, 0.0
    for piece in pieces:
        if element == "u8":
            found = exact(c[piece], a[piece] + b[piece])
        else:
            found = compare(c[piece], a[piece].double() + b[piece].double(), 0)
        wrong, share = wrong + found["wrong"], max(share, found["share"])
    return {"wrong": wrong, "share": share, "relative": 0.0, "facts": context.facts(report)}


def huge_rows(context, name, rows, columns):
    """A matrix of more than 2^31 elements: the offsets of its last rows need 64 bits."""
    x = torch.empty(rows, columns, dtype=torch.bfloat16, device="cuda")
    y = torch.empty_like(x)
    w = torch.randn(columns, device="cuda").bfloat16()
    for start in range(0, rows, 1 << 15):
        x[start:start + (1 << 15)].normal_()
    y.view(torch.uint8).fill_(POISON)
    kernel = context.kernel(name)
    report = kernel(x, y) if name.startswith("softmax") else kernel(x, w, y, 1e-6)
    torch.cuda.synchronize()
    wrong, share = 0, 0.0
    for start in range(0, rows, 1 << 15):
        part = x[start:start + (1 << 15)].double()
        if name.startswith("softmax"):
            reference = torch.softmax(part, dim=1)
        else:
            reference = part * (part.square().mean(1, keepdim=True) + 1e-6).rsqrt() * w.double()
        found = compare(y[start:start + (1 << 15)], reference, 4e-6 * reference.abs())
        wrong, share = wrong + found["wrong"], max(share, found["share"])
    return {"wrong": wrong, "share": share, "relative": 0.0, "facts": context.facts(report)}


def huge_pitch(context, name, rows, columns, pitch):
    """Few elements, but rows so far apart that their offsets exceed 2^31."""
    def far(height, width, dtype):
        storage = torch.empty((height - 1) * pitch + width, dtype=dtype, device="cuda")
        return storage.as_strided((height, width), (pitch, 1))

    x = far(rows, columns, torch.bfloat16)
    x.normal_()
    if name.startswith("gemm"):
        b = torch.randn(96, columns, device="cuda").bfloat16()
        y = far(rows, 96, torch.bfloat16)
        y.fill_(math.nan)
        report = context.kernel(name)(x, b, y)
        reference = x.double() @ b.double().T
        slack = 2.0**-19 * (x.double().abs() @ b.double().abs().T)
    else:
        y = torch.full((columns, rows), math.nan, dtype=torch.bfloat16, device="cuda")
        report = context.kernel(name)(x, y)
        reference, slack = x.double().T, 0
    return {**compare(y, reference, slack), "facts": context.facts(report)}


HUGE = {
    "add u8 2^31+5": lambda c: huge_add(c, "u8", (1 << 31) + 5),
    "add bf16 2^31+5": lambda c: huge_add(c, "bf16", (1 << 31) + 5),
    "softmax bf16 524291x4096": lambda c: huge_rows(c, "softmax_bf16", 524291, 4096),
    "softmax_online bf16 524291x4097": lambda c: huge_rows(c, "softmax_online_bf16", 524291, 4097),
    "rmsnorm bf16 524291x4096": lambda c: huge_rows(c, "rmsnorm", 524291, 4096),
    "gemm bf16 5 rows 2^29+8 apart": lambda c: huge_pitch(c, "gemm_bf16", 5, 200, (1 << 29) + 8),
    "gemm bf16 5 rows 2^29+1 apart": lambda c: huge_pitch(c, "gemm_bf16", 5, 200, (1 << 29) + 1),
    "transpose bf16 5 rows 2^29+8 apart":
        lambda c: huge_pitch(c, "transpose_bf16", 5, 200, (1 << 29) + 8),
}


# ---- running


class Context:
    """A worker's device and its loaded artifacts."""

    def __init__(self, options):
        self.device = tirrt.Device(options.library, options.device)
        self.folder = pathlib.Path(options.artifacts)
        self.kernels = {}

    def kernel(self, name):
        if name not in self.kernels:
            self.kernels[name] = self.device.load(self.folder / f"{name}.tira").kernel()
        self.last = self.kernels[name]
        return self.last

    def facts(self, report):
        return self.last.variant_name(report.variant) if report.launched else "nothing launched"


def check(context, item):
    name, size, layout = item
    if name in HUGE:
        torch.cuda.empty_cache()
        return HUGE[name](context)
    op, element = operation(name)
    memory = Memory(context.device.torch, layout, seed=sum(size) + 1)
    arguments, judge = KERNELS[op][0](memory, size, element)
    report = context.kernel(name)(*arguments)
    context.device.synchronize()
    result = {**judge(), "facts": context.facts(report)}
    if memory.stray():
        result["error"] = "memory around an output was written"
    return result


def command_lines(quick):
    """tirc run --check on each example: arguments after `tirc run`."""
    vector = [1, 33, 127, 2047, 2048, 2049] + ([] if quick else [1000003])
    columns = [1, 33, 127, 1023, 1024, 1025] + ([] if quick else [4096])
    tile = [(1, 1, 1), (33, 65, 127), (127, 127, 63), (128, 128, 64), (129, 129, 65)]
    tile += [] if quick else [(513, 515, 259)]
    out = [[artifacts.ADD, f"N={n}"] for n in vector]
    out += [[artifacts.ADD, f"N={n}", "-D", "T=bf16"] for n in vector]
    for kernel in ("softmax", "softmax_shared", "softmax_online"):
        out += [[artifacts.SOFTMAX, "--kernel", kernel, "M=7", f"N={n}"] for n in columns]
    for element in ("bf16", "f16", "i8") if quick else artifacts.GEMM_TYPES:
        metas = [f"{key}={value}" for key, value in artifacts.gemm_metas(element).items()]
        sets = [word for meta in metas for word in ("-D", meta)]
        out += [[artifacts.GEMM, f"M={m}", f"N={n}", f"K={k}", *sets] for m, n, k in tile]
    out += [[artifacts.REDUCE, "--kernel", "row_sum", "M=13", f"N={n}"] for n in columns]
    out += [[artifacts.REDUCE, "--kernel", "total", f"N={n}"] for n in vector]
    out += [[artifacts.REDUCE, "--kernel", "block_sums", f"N={n}", f"B={-(-n // 8192)}"]
            for n in (*vector, 8191, 8193)]
    for kernel, path in (("layernorm", artifacts.LAYERNORM), ("rmsnorm", artifacts.RMSNORM)):
        for name in (kernel, kernel + "_shared", kernel + "_long"):
            out += [[path, "--kernel", name, "M=7", f"N={n}", "eps=1e-5"] for n in columns]
    out += [[artifacts.TRANSPOSE, f"M={m}", f"N={n}"] for m, n, _ in tile]
    for kernel in ("histogram", "histogram_shared"):
        out += [[artifacts.HISTOGRAM, "--kernel", kernel, f"N={n}", "B=100", "X=randint:0:99"]
                for n in vector]
    out += [[artifacts.SIMT, "--kernel", "scale", f"N={n}", "a=0.5"] for n in vector]
    out += [[artifacts.SIMT, "--kernel", "warp_sum", f"N={32 * g}", f"G={g}"] for g in (1, 33, 127)]
    out += [[artifacts.SIMT, "--kernel", "cta_sum", "M=13", f"N={n}"] for n in columns]
    return [[str(word) for word in line] for line in out]


def run_command(tirc, device, line):
    command = [tirc, "run", *line, "--device", device, "--check", "--json"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    except subprocess.TimeoutExpired:
        return {"error": "no result after 120 s"}
    try:
        result = json.loads(done.stdout)
    except ValueError:
        return {"error": (done.stderr.strip().splitlines() or [f"exit {done.returncode}"])[0][:200]}
    outputs = result["outputs"]
    good = done.returncode == 0 and result.get("pass")
    share = max((o["max_rel"] / o["tolerance"] for o in outputs if o.get("tolerance")), default=0)
    return {"wrong": 0 if good else sum(o.get("mismatches", 1) for o in outputs) or 1,
            "share": share, "relative": max((o.get("max_rel") or 0 for o in outputs), default=0),
            "facts": f"variant {result['variant']}" if result["launched"] else "nothing launched"}


def runs_here(words):
    """Is a command for this GPU, and not about how the emulator goes?"""
    given = dict(word.split("=", 1) for word in words if word.startswith("--") and "=" in word)
    if any(word.startswith(("--schedule", "--explore", "--emu-sms")) for word in words):
        return False
    arch = re.fullmatch(r"sm_(\d+)(a?)", given.get("--arch", "sm_80"))
    card = "%d%d" % torch.cuda.get_device_capability()
    return arch[1] == card if arch[2] else int(arch[1]) <= int(card)


def test_lines(options):
    """The commands of the project's tests of the language, for this device."""
    if not options.tests:
        return []
    folder, out = pathlib.Path(options.tests), []
    for path in sorted(folder.glob("device/*.tir")):
        for line in re.sub(r"\\\n// RUN:", "", path.read_text()).splitlines():
            _, marker, command = line.partition("RUN: %tirc ")
            if marker and "|" not in command:  # what is piped to FileCheck says nothing of a device
                command = command.replace("%s", str(path))
                words = shlex.split(command.replace("--device=emu", f"--device={options.device}"))
                if options.device == "cuda" and not runs_here(words):
                    continue
                out.append([options.tirc, *(word for word in words if options.device == "emu" or
                                            not word.startswith("--emu-check"))])
    for path in sorted(folder.glob("run/*.tir")):
        out.append([sys.executable, str(folder / "run/on_device.py"), options.tirc, str(path),
                    options.device])
    out.append([sys.executable, str(folder / "examples/forms.py"), options.tirc, options.device])
    return out


def run_test(command):
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    except subprocess.TimeoutExpired:
        return {"error": "no result after 120 s"}
    if done.returncode == 77:  # only the interpreter runs it
        return {"wrong": 0, "facts": "skipped"}
    if done.returncode:
        return {"error": " ".join((done.stdout + done.stderr).split())[:300]}
    return {"wrong": 0, "facts": "as expected"}


def command_results(options, deadline):
    """Everything that goes through tirc, several processes at a time."""
    if not options.tirc:
        return

    def before_deadline(run):
        late = {"error": "not run: no time left"}
        return lambda line: late if time.monotonic() > deadline else run(line)

    with concurrent.futures.ThreadPoolExecutor(options.lanes * 2) as pool:
        for name, lines, run in (
                ("tirc run", command_lines(options.quick),
                 lambda line: run_command(options.tirc, options.device, line)),
                ("tests", test_lines(options), run_test)):
            chosen = lines if fnmatch.fnmatch(name, options.only) else []
            for line, result in zip(chosen, pool.map(before_deadline(run), chosen)):
                yield (name, line, ""), result


def failed(result):
    return "error" in result or result["wrong"] > 0


def row_of(item):
    return "beyond 2^31" if item[0] in HUGE else item[0]


def told(results):
    """The results, whose failures are printed as they come, up to a number."""
    left = 40
    for item, result in results:
        if failed(result) and left:
            left -= 1
            facts = {key: value for key, value in result.items() if key != "facts"}
            print("FAIL", *item, str(facts)[:200], flush=True)
        yield item, result


def table(results):
    rows = {}
    for item, result in results:
        row = rows.setdefault(row_of(item), {"count": 0, "failed": 0, "share": 0.0, "relative": 0.0,
                                             "facts": {}})
        row["count"] += 1
        row["failed"] += failed(result)
        row["share"] = max(row["share"], result.get("share", 0.0))
        row["relative"] = max(row["relative"], result.get("relative", 0.0))
        facts = result.get("facts", "failed")
        row["facts"][facts] = row["facts"].get(facts, 0) + 1
    print(f"\n{'kernel':22} {'cases':>5} {'failed':>6} {'of tolerance':>12} {'rel. error':>10}  "
          "variants taken")
    for name, row in rows.items():
        facts = ", ".join(f"{key} {n}" for key, n in sorted(row["facts"].items()))
        print(f"{name:22} {row['count']:5} {row['failed']:6} {row['share']:12.2f} "
              f"{row['relative']:10.1e}  {facts}")


def options_of(arguments):
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--device", choices=("cuda", "emu"), default="cuda")
    parser.add_argument("--library", required=True)
    parser.add_argument("--artifacts", required=True)
    parser.add_argument("--only", default="*")
    parser.add_argument("--quick", action="store_true", help="small sizes only")
    parser.add_argument("--lanes", type=int, default=4, help="workers side by side")
    parser.add_argument("--seconds", type=float, default=420, help="stop after this long")
    parser.add_argument("--tirc", help="also run the command line's own --check")
    parser.add_argument("--tests", help="the project's tests folder")
    return parser.parse_args(arguments)


def deal(options):
    """The items of each worker: the cases of one artifact stay together, large ones go last."""
    lanes = [[] for _ in range(options.lanes)]
    loads = [0] * options.lanes
    for name in artifacts.checks():
        if not fnmatch.fnmatch(name, options.only):
            continue
        items = cases(name, options.quick)
        least = loads.index(min(loads))
        lanes[least] += items
        loads[least] += len(items) + 20
    if options.device == "cuda" and fnmatch.fnmatch("beyond 2^31", options.only):
        lanes.append([(name, (), "dense") for name in HUGE])
    return lanes


def main(arguments):
    options = options_of(arguments)
    deadline = time.monotonic() + options.seconds
    torch.set_num_threads(1 if options.device == "emu" else 4)
    cases_of = harness.run(deal(options), lambda: Context(options), check, 60, deadline)
    results = list(told(itertools.chain(cases_of, command_results(options, deadline))))
    order = [*artifacts.checks(), *HUGE, "tirc run", "tests"]
    results.sort(key=lambda entry: order.index(entry[0][0]))
    bad = sum(failed(result) for _, result in results)
    table(results)
    if os.environ.get("OUT"):
        text = json.dumps([{"item": item, **result} for item, result in results])
        pathlib.Path(os.environ["OUT"], "check.json").write_text(text)
    print(f"{len(results) - bad} passed, {bad} failed")
    return bool(bad) or not results


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
