# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Times what is more than one product in a kernel, or more than one kernel, beside its rival.

    python3 products.py --library libtirrt.so --artifacts FOLDER [--rounds N] [--attention]

Operands of every orientation and epilogues beside our own product without one and cuBLAS, split-K
(two launches) beside cuBLAS, attention beside cuDNN. All sides of a row are CUDA graphs of six calls,
replayed in turns in one run; medians are printed. Inputs are N(0,1), outputs are poisoned, and every
result is compared with float32's before it is timed.
"""

import argparse
import functools
import math
import statistics

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

import tirrt

CALLS = 6
TOLERANCE = 6e-3  # of bf16 outputs


class Bench:
    def __init__(self, options):
        self.options = options
        self.device = tirrt.Device(options.library, "cuda")
        self.wrong = 0

    @functools.cache
    def kernel(self, name):
        return self.device.load(f"{self.options.artifacts}/{name}.tira").kernel()

    def launch(self, name, *values):
        return self.kernel(name).bind(*values).launch

    def step(self, name, number):
        """A step of a kernel that is several launches, its scratch tensors behind its other parameters."""
        whole = self.kernel(name)
        return whole.module.kernel(f"{whole.name}__step{number}")

    def check(self, what, out, want):
        error = ((out.float() - want).norm() / want.norm()).item()
        if not error <= TOLERANCE:
            self.wrong += 1
            print(f"WRONG {what}: relative error {error:.1e}")
        return error

    def times(self, calls):
        """Milliseconds of each call, all in turns."""
        graphs = []
        for call in calls:
            call()
            torch.cuda.synchronize()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                for _ in range(CALLS):
                    call()
            graph.replay()
            graphs.append(graph)
        found = [[] for _ in graphs]
        for _ in range(self.options.rounds):
            for graph, list_of in zip(graphs, found):
                begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
                begin.record()
                graph.replay()
                end.record()
                torch.cuda.synchronize()
                list_of.append(begin.elapsed_time(end) / CALLS)
        return [statistics.median(times) for times in found]


def normal(*shape):
    return torch.randn(*shape, device="cuda").bfloat16()


def poisoned(*shape, dtype=torch.bfloat16):
    return torch.full(shape, math.nan, device="cuda", dtype=dtype)


def products(bench, n):
    """Orientations and epilogues of an n x n x n product."""
    a, b, bias = normal(n, n), normal(n, n), normal(n)
    rows = {"nt": ("operands.nt", (a, b), lambda: a.float() @ b.float().T),
            "nn": ("operands.nn", (a, b), lambda: a.float() @ b.float()),
            "tn": ("operands.tn", (a, b), lambda: a.float().T @ b.float()),
            "tt": ("operands.tt", (a, b), lambda: a.float().T @ b.float().T)}
    for name, function in (("none", lambda x: x), ("gelu", F.gelu),
                           ("gelu_tanh", functools.partial(F.gelu, approximate="tanh")),
                           ("gelu_fast", functools.partial(F.gelu, approximate="tanh"))):
        rows[f"bias {name}"] = (f"linear.{name}", (a, b, bias), lambda f=function: f(
            a.float() @ b.float().T + bias.float()))
    calls, errors = [], []
    for name, values, want in rows.values():
        out = poisoned(n, n)
        calls.append(bench.launch(name, *values, out))
        calls[-1]()
        errors.append(bench.check(name, out, want()))
    theirs = torch.empty(n, n, device="cuda", dtype=torch.bfloat16)
    calls.append(lambda: torch.matmul(a, b.T, out=theirs))
    calls.append(lambda: torch.addmm(bias, a, b.T, out=theirs))
    calls.append(lambda: torch._addmm_activation(bias, a, b.T, use_gelu=True))  # by tanh
    times = bench.times(calls)
    for name, ms, error in zip([*rows, "cuBLAS nt", "cuBLASLt bias", "cuBLASLt gelu"], times,
                               [*errors, 0, 0, 0]):
        print(f"{n:6} {name:15} {ms:8.4f} ms {2 * n ** 3 / ms / 1e9:6.0f} TFLOP/s, "
              f"{times[0] / ms:5.3f} of nt, error {error:.0e}", flush=True)


def turned(bench, n):
    """Elements that wgmma takes with K contiguous alone: B with rows along N and along K."""
    for element in ("e4m3", "i8", "tf32"):
        a, b = (torch.randn(n, n, device="cuda") for _ in range(2))
        if element == "i8":
            a, b = (x.clamp(-4, 4).to(torch.int8) for x in (a, b))
        elif element == "e4m3":
            a, b = (x.to(torch.float8_e4m3fn) for x in (a, b))
        want, calls, errors = a.float() @ b.float(), [], []
        names = [f"{kernel}_{element}_{height}" for kernel in ("nn", "nt") for height in (128, 256)]
        for name in names:
            out = poisoned(n, n)
            right = b if name.startswith("nn") else b.T.contiguous()
            calls.append(bench.launch(f"operands.{name}", a, right, out))
            calls[-1]()
            errors.append(bench.check(name, out, want))
        for name, ms, error in zip(names, bench.times(calls), errors):
            print(f"{n:6} {name:15} {ms:8.4f} ms {2 * n ** 3 / ms / 1e9:6.0f} TFLOP/s, "
                  f"error {error:.0e}", flush=True)


def thin(bench, m, n, k):
    """Split-K beside cuBLAS, by the number of parts, and what a launch of the product's own choice takes."""
    a, b, out = normal(m, k), normal(n, k), poisoned(m, n)
    theirs, want = torch.empty_like(out), a.float() @ b.float().T
    for parts in (16, 32, 33):
        sums = poisoned(parts, m, n, dtype=torch.float32)
        name = f"split.{parts}"
        both = bench.launch(name, a, b, out)
        both()
        error = bench.check(name, out, want)
        ours, first, second, cublas = bench.times([
            both, bench.step(name, 1).bind(a, b, sums).launch,
            bench.step(name, 2).bind(out, sums).launch, lambda: torch.matmul(a, b.T, out=theirs)])
        print(f"{m}x{n}x{k} in {parts} parts: {ours * 1e3:.1f} us, the steps alone {first * 1e3:.1f} and "
              f"{second * 1e3:.1f}; cuBLAS {cublas * 1e3:.1f} us, ratio {cublas / ours:.2f}, "
              f"error {error:.0e}", flush=True)
    out.fill_(math.nan)
    matmul = bench.kernel("matmul_bf16").bind(a, b, out)
    taken = bench.kernel("matmul_bf16").variant_name(matmul.launch().variant)
    error = bench.check("matmul", out, want)
    ours, cublas = bench.times([matmul.launch, lambda: torch.matmul(a, b.T, out=theirs)])
    print(f"{m}x{n}x{k} by matmul, {taken}: {ours * 1e3:.1f} us; cuBLAS {cublas * 1e3:.1f} us, "
          f"ratio {cublas / ours:.2f}, error {error:.0e}", flush=True)


def attention(bench, size, causal):
    """Sizes around the tile are checked, long sequences timed."""
    name = f"attention.{size}{'causal' if causal else 'full'}"
    shapes = [(1, 1, 1, 1, 1), (1, 2, 1, 1, 77), (2, 4, 2, 333, 333), (1, 2, 2, 128, 128),
              (1, 2, 2, 129, 129), (1, 3, 1, 100, 1000), (1, 1, 1, 256, 2000), (3, 2, 1, 5, 640),
              (1, 2, 1, 511, 513),
              *((max(1, 16384 // s), 16, 16, s, s) for s in (1024, 2048, 4096, 8192, 16384, 32768))]
    ratios = []
    for batch, heads, groups, rows, keys in shapes:
        q, k, v = (normal(batch, h, length, size)
                   for h, length in ((heads, rows), (groups, keys), (groups, keys)))
        out = poisoned(batch, heads, rows, size)
        ours = bench.launch(name, q, k, v, out, 1 / math.sqrt(size))
        ours()
        if rows <= 4096:
            seen = torch.arange(keys, device="cuda")[None] <= \
                torch.arange(rows, device="cuda")[:, None] + keys - rows
            k1, v1 = (x[:1].float().repeat_interleave(heads // groups, 1) for x in (k, v))
            bench.check(f"{name} {rows}x{keys}", out[:1], F.scaled_dot_product_attention(
                q[:1].float(), k1, v1, attn_mask=seen if causal else None))
        if out.isnan().any().item():
            bench.wrong += 1
            print(f"WRONG {name} {rows}x{keys}: NaN or unwritten")
        if rows < 1024:
            continue
        with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
            times = bench.times([ours, lambda: F.scaled_dot_product_attention(
                q, k, v, is_causal=causal)])
        flops = 4 * batch * heads * rows * keys * size / (2 if causal else 1)
        rates = [flops / ms / 1e9 for ms in times]
        ratios.append(rates[0] / rates[1])
        print(f"{name} B{batch} H{heads} S{rows}: {rates[0]:.0f} TFLOP/s, cuDNN "
              f"{rates[1]:.0f}, ratio {ratios[-1]:.2f}", flush=True)
    print(f"{name}: geometric mean {statistics.geometric_mean(ratios):.3f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--library", required=True)
    parser.add_argument("--artifacts", required=True)
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--attention", action="store_true", help="attention alone")
    parser.add_argument("--turned", action="store_true", help="elements of 8 and 32 bits alone, B both ways round")
    options = parser.parse_args()
    bench = Bench(options)
    if options.turned:
        turned(bench, 4096)
    elif not options.attention:
        for n in (4096, 8192):
            products(bench, n)
        turned(bench, 4096)
        thin(bench, 256, 256, 65536)
    for size in () if options.turned else (64, 128):
        for causal in (False, True):
            attention(bench, size, causal)
    print(f"{bench.wrong} wrong")
    return bench.wrong > 0


if __name__ == "__main__":
    raise SystemExit(main())
