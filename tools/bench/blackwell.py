# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks and times the kernels of docs/blackwell.md on a B200 or B300, beside what the page predicts.

    python3 blackwell.py --tirc TIRC --library libtirrt.so     # on the machine with the GPU
    python3 blackwell.py --tirc TIRC --emulate                 # no GPU: the checks on the emulator, and ptxas
    python3 blackwell.py --list                                # what would run

First `tirc run` compares every kernel with its reference at sizes below, at and above its tile; a wait that
does not end is reported with its line. What was right is timed in a process of its own, beside cuBLAS or cuDNN,
as CUDA graphs replayed in turns, after its results at the timed size were compared with float32's on poisoned
outputs. A line has the predicted time, which is a bound, and measured over predicted: below 1 the model or a
number of it is wrong.

--device emu runs the second part once at small sizes on the emulator, to try the script where there is torch.
"""

import argparse
import fnmatch
import math
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import artifacts  # noqa: E402
import blackwell_model as model  # noqa: E402
import harness  # noqa: E402

LADDER = artifacts.EXAMPLES / "blackwell_ladder"
ARCHES = {(10, 0): "sm_100a", (10, 3): "sm_103a"}
TOLERANCE = 6e-3  # of bf16 outputs, as a norm
LIMIT = 120  # seconds for a check, and for the timing of a kernel

# Sizes (M, N, K) around a tile. Rows of tensor copies are multiples of 16 bytes.
ONE = [(128, 128, 64), (61, 40, 64), (1, 8, 8)]
LONG = [(128, 128, 192), (65, 120, 72), (127, 128, 256)]
GRID = [(128, 128, 64), (127, 136, 72), (300, 264, 520), (129, 8, 64)]
ATTENDED = [(1, 128), (128, 128), (129, 257), (200, 100)]  # (S, T)


class Row:
    """A kernel: how it is compiled, checked and timed.

    cases      words of `tirc run` for each check
    peer       what it is timed beside
    make       make(torch, device, size) gives the arguments, the output, and two functions: one gives
               results and what they must be, the other one calls the peer
    """

    def __init__(self, name, path, kernel, metas, cases, peer, make):
        self.name, self.path, self.kernel, self.metas = name, path, kernel, metas
        self.cases, self.peer, self.make = cases, peer, make

    def artifact(self):
        return self.path, self.kernel, self.metas


class ProductRow(Row):
    def __init__(self, name, path, kernel, model_of, sizes, shape=None, metas=None):
        plain = artifacts.GEMM
        cases = [[f"M={m}", f"N={n}", f"K={k}", "A=randint:-4:4", "B=randint:-4:4", "--check=0",
                  f"--check-against={plain}"] for m, n, k in sizes]
        super().__init__(name, path, kernel, metas or {}, cases, "cuBLAS", product)
        self.model_of, self.shape = model_of, shape

    def size(self, n, is_small):
        return self.shape or ((129, 136, 128) if is_small else (n, n, n))

    def flops(self, size):
        return 2 * math.prod(size)

    def seconds(self, size):
        return self.model_of.time(*size)[0]


class AttentionRow(Row):
    def __init__(self, name, model_of):
        cases = [["B=1", "H=2", "G=1", f"S={s}", f"T={t}", "scale=0.09", "--check"] for s, t in ATTENDED]
        super().__init__(name, artifacts.EXAMPLES / "attention/forward.tir", "full",
                         {"D": model_of.size}, cases, "cuDNN", attention)
        self.model_of = model_of

    def size(self, n, is_small):
        """Batch, heads, heads of keys, queries and keys, size of a head."""
        return (1, 2, 1, 150, self.model_of.size) if is_small else \
            (max(1, 16384 // n), 16, 16, n, self.model_of.size)

    def flops(self, size):
        batch, heads, _, keys, wide = size
        return 4 * batch * heads * keys * keys * wide

    def seconds(self, size):
        clocks, _ = self.model_of.round()
        return self.flops(size) / self.model_of.rate(clocks)


def rows():
    found = []
    for step in model.LADDER:
        if step.file:
            sizes = ONE if step.number == 1 else LONG if step.number == 2 else GRID
            found.append(ProductRow(step.file, LADDER / f"{step.file}.tir", None, step.product, sizes,
                                    model.ONE_TILE.get(step.number)))
    for name, path, metas in (("gemm", artifacts.GEMM, {}), ("matmul", artifacts.MATMUL, {}),
                              ("matmul.pair", artifacts.MATMUL, model.PAIR)):
        found.append(ProductRow(name, path, path.stem, model.TILES[name], GRID, metas=metas))
    found += [AttentionRow(f"attention.{m.size}", m) for m in (model.ATTENTION[0], model.ATTENTION[2])]
    return found


# ---- checks


def failure(command):
    """What a command that fails says, or None."""
    try:
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=LIMIT,
                              check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if done.returncode == 0:
        return None
    said = (done.stderr + done.stdout).strip().splitlines()
    return " / ".join(said[-3:]) or f"exit status {done.returncode}"


def check(row, options, arch):
    """What is wrong with a row, as lines."""
    where = ["--device=emu", "--emu-check=full"] if options.emulate else \
        ["--device=cuda", "--timeout=20"]
    kernel = [f"--kernel={row.kernel}"] if row.kernel else []
    metas = [word for key, value in row.metas.items() for word in ("-D", f"{key}={value}")]
    for case in row.cases:
        wrong = failure([options.tirc, "run", row.path, *kernel, *metas, f"--arch={arch}", *where, *case])
        if wrong:
            yield f"{' '.join(c for c in case if '=' in c and c[0] != '-')}: {wrong}"


def assemble(row, options, arch, folder):
    """What is wrong, or None; without a ptxas the PTX is made all the same."""
    ptx = pathlib.Path(folder, f"{row.name}.ptx")
    wrong = failure([*artifacts.command(options.tirc, row.artifact(), arch), "--emit=ptx", "-o", ptx])
    ptxas = shutil.which("ptxas") or shutil.which("/usr/local/cuda/bin/ptxas")
    return wrong or (failure([ptxas, f"-arch={arch}", "-o", "/dev/null", ptx]) if ptxas else None)


def check_all(chosen, options, arch, folder):
    """The rows that are right."""
    right = []
    for row in chosen:
        wrong = list(check(row, options, arch))
        if options.emulate:
            wrong += filter(None, [assemble(row, options, arch, folder)])
        for line in wrong:
            print(f"WRONG {row.name}: {line}")
        if not wrong:
            print(f"{row.name}: {len(row.cases)} sizes right on {'the emulator' if options.emulate else arch}",
                  flush=True)
            right.append(row)
    return right


# ---- times


def product(torch, device, size):
    m, n, k = size
    a, b = (torch.randn(r, k, device=device).bfloat16() for r in (m, n))
    out, theirs = (torch.full((m, n), math.nan, device=device, dtype=torch.bfloat16) for _ in range(2))
    return (a, b, out), out, lambda: (out, a.float() @ b.float().T), \
        lambda: torch.matmul(a, b.T, out=theirs)


def attention(torch, device, size):
    """Of the reference two heads, since all would not fit."""
    batch, heads, groups, keys, wide = size
    q, k, v = (torch.randn(batch, h, keys, wide, device=device).bfloat16() for h in (heads, groups, groups))
    out = torch.full_like(q, math.nan)
    logs = torch.full((batch, heads, keys), math.nan, device=device)
    attend = torch.nn.functional.scaled_dot_product_attention

    def reference():
        k1, v1 = (x[:1].float().repeat_interleave(heads // groups, 1)[:, :2] for x in (k, v))
        return out[:1, :2], attend(q[:1, :2].float(), k1, v1)

    def peer():
        if device == "cpu":
            return attend(q, k, v, enable_gqa=heads != groups)
        backend = torch.nn.attention.SDPBackend.CUDNN_ATTENTION
        with torch.nn.attention.sdpa_kernel(backend):
            return attend(q, k, v, enable_gqa=heads != groups)
    return (q, k, v, out, logs, 1 / math.sqrt(wide)), out, reference, peer


class Timer:
    """A worker's context: torch, the runtime, and the artifacts."""

    def __init__(self, options, arch, folder):
        import torch  # only here: the other parts need none
        import tirrt
        self.torch, self.options, self.folder = torch, options, folder
        if options.device == "cuda":
            found = torch.cuda.get_device_capability()
            if ARCHES.get(found) != arch:
                raise RuntimeError(f"the device has capability {found}, the kernels are for {arch}")
        self.device = tirrt.Device(options.library, options.device)

    def work(self, row):
        torch, is_small = self.torch, self.options.device == "emu"
        size = row.size(self.options.size, is_small)
        arguments, out, reference, peer = row.make(torch, self.device.torch, size)
        kernel = self.device.load(f"{self.folder}/{row.name}.tira").kernel(row.kernel)
        ours = kernel.bind(*arguments).launch
        ours()
        self.device.synchronize()
        found, want = reference()
        error = ((found.float() - want).norm() / want.norm()).item()
        if not error <= TOLERANCE or out.isnan().any().item():
            raise RuntimeError(f"wrong at {size}: relative error {error:.1e}")
        if is_small:
            peer()
            return {"size": size, "ms": None, "off": error}
        ms, theirs = self.times([ours, peer])
        return {"size": size, "ms": ms, "peer": theirs, "off": error}

    def times(self, calls, most=200):
        """Median milliseconds of each call, all in turns; a graph takes some 10 ms."""
        import products
        torch, graphs = self.torch, []
        for call in calls:
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            call()
            begin.record()
            call()
            end.record()
            torch.cuda.synchronize()
            count = max(products.CALLS, min(most, int(10 / max(begin.elapsed_time(end), 1e-3))))
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                for _ in range(count):
                    call()
            graph.replay()
            graphs.append((graph, count))
        found = [[] for _ in graphs]
        for _ in range(self.options.rounds):
            for (graph, count), list_of in zip(graphs, found):
                begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
                begin.record()
                graph.replay()
                end.record()
                torch.cuda.synchronize()
                list_of.append(begin.elapsed_time(end) / count)
        return [statistics.median(times) for times in found]


def line(row, result):
    """A row of the table that is printed."""
    size = "x".join(map(str, result["size"]))
    if result["ms"] is None:
        return f"{row.name:16} {size:20} right, relative error {result['off']:.0e}; not timed"
    predicted = row.seconds(result["size"]) * 1e3
    rate = row.flops(result["size"]) / result["ms"] / 1e9
    return (f"{row.name:16} {size:20} predicted {predicted:8.4f} ms at least, measured {result['ms']:8.4f} "
            f"({result['ms'] / predicted:5.2f}), {rate:6.0f} TFLOP/s; {row.peer} {result['peer']:8.4f} ms "
            f"({result['peer'] / result['ms']:5.2f})")


def time_all(chosen, options, arch, folder):
    """How many rows have no result."""
    for row in chosen:
        wrong = failure([*artifacts.command(options.tirc, row.artifact(), arch),
                         "-o", f"{folder}/{row.name}.tira"])
        if wrong:
            sys.exit(f"{row.name}: {wrong}")
    failed = 0
    for row, result in harness.run([chosen], lambda: Timer(options, arch, folder), Timer.work, LIMIT):
        failed += "error" in result
        print(f"WRONG {row.name}: {result['error']}" if "error" in result else line(row, result),
              flush=True)
    return failed


def list_all(chosen, options):
    for row in chosen:
        size = row.size(options.size, False)
        print(f"{row.name:16} {row.path.relative_to(artifacts.EXAMPLES)}: {len(row.cases)} checks; timed at "
              f"{'x'.join(map(str, size))} beside {row.peer}, predicted {row.seconds(size) * 1e6:.1f} us at least")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--tirc", help="the compiler")
    parser.add_argument("--library", help="libtirrt.so, for the times")
    parser.add_argument("--arch", default="sm_100a", choices=sorted(ARCHES.values()))
    parser.add_argument("--device", default="cuda", choices=["cuda", "emu"])
    parser.add_argument("--only", default="*", help="a pattern of names")
    parser.add_argument("--size", type=int, default=4096)
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--emulate", action="store_true", help="the checks alone, on the emulator")
    options = parser.parse_args()
    chosen = [row for row in rows() if fnmatch.fnmatch(row.name, options.only)]
    if options.list:
        list_all(chosen, options)
        return not chosen
    if not chosen or not options.tirc or not (options.library or options.emulate):
        parser.error("no kernel has this name" if not chosen else "needs --tirc, and --library or --emulate")
    options.emulate = options.emulate or options.device == "emu"
    with tempfile.TemporaryDirectory() as folder:
        right = check_all(chosen, options, options.arch, folder)
        failed = len(chosen) - len(right)
        if options.library and right:
            failed += time_all(right, options, options.arch, folder)
    print(f"{len(chosen)} kernels, {failed} wrong")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
