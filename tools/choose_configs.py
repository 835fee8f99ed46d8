#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Chooses the few configurations of a kernel that cover a space of sizes, by the compiler's model of time.

usage: choose_configs.py TIRC LIBTIRRT KERNEL.tir [--arch=sm_90a] [--space="BM=64,128 BN=64..256:16"]...
           [--draw="M=1..64 N=1024..32768:64 K=1024..16384:64"]... [--count=N] [--seed=N] [--require=wgmma]...
           [--loss=1.01] [--most=N] [--extend] [--name=products] [--judge=TIMES.txt]

The file has one kernel with configurations, all of whose dimensions are drawn. A candidate is one combination of
the values of one --space; ranges have a step, and what a space does not say has the kernel's default. The compiler says of
each what it costs, in formulas over the sizes. --count sizes are drawn from the ranges of each --draw in turn, every power of
two as likely as the next, a size a multiple of its step; too large ones (--work) are drawn again. Tensors are dense, and a
launch takes the candidate whose cost is least, as the runtime does. A candidate whose best variant has no wgmma, say, which
the model does not see, is left out (--require).

From the kernel's first configuration on, or with --extend from all of them, the candidate is added that makes launches
fastest, all sizes counting alike, until they take --loss times as long as the best of all candidates, or there are --most.
What is chosen is printed as a list of configurations, with the loss. The kernel's own are judged in the same way.

--judge reads what random_sizes.py --space measured: the sizes M N K, and a time of each configuration of the kernel. The
kernel's own configurations are then the space, and the times say what the model's choice among the chosen ones takes.

The spaces and sizes that are not given are those of gemm.products. Rows that do not begin at multiples of 16 bytes are
not in them, nor are configurations for some targets alone.
"""

import argparse
import ctypes
import itertools
import json
import math
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile

TOOLS = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(TOOLS), str(TOOLS / "bench")]
import configurations as stated  # pylint: disable=wrong-import-position
import structures  # pylint: disable=wrong-import-position

SPACE = [
    "BM=64,128,192,256 BN=48..256:16",
    "BM=64,128 BN=64..256:16 CM=2,4",
    "BM=64,128 BN=64..256:16 CM=2 CN=2",
    "BM=64,128 BN=48..256:16 SPLIT=true",
    "BM=16..256:16 BN=64,128 FLIP=true",
    "BM=72,88,104 BN=64,128 FLIP=true",
    "BM=16,32 BN=64 BK=128 FLIP=true",
    "BM=80..256:16 BN=64,128 CN=2,4 FLIP=true",
    "BM=80..256:16 BN=64,128 CM=2 CN=2 FLIP=true",
    "BM=16..96:16 BN=64 FLIP=true SPLIT=true",
    "BM=16 BN=64 BK=128 FLIP=true SPLIT=true",
]
DRAW = [
    "M=1..64 N=1024..32768:64 K=1024..16384:64",
    "M=64..8192:8 N=64..8192:8 K=64..8192:8",
    "M=64..1024:8 N=64..1024:8 K=8192..65536:64",
    "M=16..8192:16 N=1024..32768:64 K=1024..16384:64",
]
TOGETHER = 40  # configurations of one compilation; a kernel has at most 45


# Spaces and sizes.

def values(text):
    """Of "64,128" or "64..256:16"."""
    span = re.fullmatch(r"(\d+)\.\.(\d+)(?::(\d+))?", text)
    if not span:
        return text.split(",")
    first, last, step = int(span[1]), int(span[2]), int(span[3] or 1)
    return [str(n) for n in range(first, last + 1, step)]


def words(text):
    return [word.split("=", 1) for word in text.split()]


def candidates(spaces):
    """Each once, in the order of the spaces."""
    found = {}
    for space in spaces:
        names = [name for name, _ in words(space)]
        for combination in itertools.product(*(values(text) for _, text in words(space))):
            found[tuple(zip(names, combination))] = None
    return list(found)


def drawn(rng, ranges, work):
    while True:
        size = {}
        for name, text in words(ranges):
            low, high, step = (int(n or 1) for n in re.fullmatch(r"(\d+)\.\.(\d+)(?::(\d+))?", text).groups())
            size[name] = max(low, round(math.exp(rng.uniform(math.log(low), math.log(high))) / step) * step)
        if math.prod(size.values()) <= work:
            return size


def sizes_of(options):
    rng = random.Random(options.seed)
    return [drawn(rng, options.draw[i % len(options.draw)], options.work) for i in range(options.count)]


# What the compiler says.

class Runtime:
    """Reads artifacts and evaluates formulas, as a launch does."""

    def __init__(self, path):
        self.dll = ctypes.CDLL(str(path))
        self.error = structures.Error()

    def describe(self, path):
        data = pathlib.Path(path).read_bytes()
        out = ctypes.POINTER(structures.ArtifactDesc)()
        if self.dll.tir_artifact_decode(data, ctypes.c_size_t(len(data)), None, ctypes.byref(out),
                                        ctypes.byref(self.error)):
            sys.exit(self.error.message.decode())
        return out.contents

    def evaluate(self, formula, dims, params):
        out = ctypes.c_int64()
        status = self.dll.tir_formula_eval(ctypes.byref(formula), dims, params, ctypes.byref(out),
                                           ctypes.byref(self.error))
        return math.inf if status else out.value


def alignments(kernel, size, names):
    """By parameter, what formulas ask of dense tensors at multiples of 32 bytes (TIR_ALIGNMENTS)."""
    params = (ctypes.c_int64 * kernel.param_count)()
    for i, param in enumerate(kernel.params[:kernel.param_count]):
        if param.rank:
            inner = param.extents[param.rank - 1]
            row = (size[names[inner.dim]] if inner.dim < len(names) else inner.fixed) * BITS[param.element] // 8
            largest = min(32, row & -row)
            params[i] = largest | largest << 8
    return params


BITS = [8, 16, 32, 64, 8, 16, 32, 64, 16, 16, 32, 32, 64, *[8] * 8]  # ORDER tir_element


class Kernel:
    """One whose clauses are replaced by others."""

    CLAUSE = re.compile(r"\s*\bconfig(?:\([^)]*\)| [\w.]+)")

    def __init__(self, options):
        self.options, self.path = options, pathlib.Path(options.kernel)
        self.text = self.path.read_text(encoding="utf-8")
        self.own = [tuple((name, value) for name, value in config.items() if name != "needs")
                    for config in stated.configurations(self.path) if config.get("needs", "wgmma") == "wgmma"]
        if not self.own:
            sys.exit(f"{self.path} has no configurations")

    def with_configurations(self, configs):
        clauses = "".join(f"\n    config({', '.join(f'{name} = {value}' for name, value in c)})" for c in configs)
        begin = self.text.index("\nkernel ")  # lists of the file itself stay
        replaced = itertools.chain([clauses], itertools.repeat(""))
        return self.text[:begin] + self.CLAUSE.sub(lambda _: next(replaced), self.text[begin:])

    def costs(self, runtime, folder, configs, sizes):
        """Those of the sizes, by configuration; what does not compile is said, and left out."""
        source, artifact = folder / self.path.name, folder / "candidates.tira"
        together = [self.own[0], *(c for c in configs if c != self.own[0])]  # one alone would have no cost
        source.write_text(self.with_configurations(together), encoding="utf-8")
        done = subprocess.run([self.options.tirc, "build", source, f"--arch={self.options.arch}", "-o", artifact,
                               "--receipt=json"], capture_output=True, text=True, check=False)
        if not done.returncode:
            kernel = described(runtime.describe(artifact))
            reasons = dict(refusals(json.loads(done.stdout), kernel.name.text(), self.options.require))
            return self.accepted(configs, evaluated(runtime, kernel, sizes), reasons)
        if len(configs) == 1:
            print(f"{text_of(configs[0])} is refused: {done.stderr.splitlines()[0]}", file=sys.stderr)
            return {}
        half = len(configs) // 2
        return {**self.costs(runtime, folder, configs[:half], sizes), **self.costs(runtime, folder, configs[half:], sizes)}

    @staticmethod
    def accepted(configs, rows, reasons):
        """The rows of those that the artifact has; reasons, by number, say which are left out."""
        numbers, found = {config: number for number, config in enumerate(rows, 1)}, {}
        for config in configs:
            number = numbers.get(frozenset(config))  # None: a condition rules it out, or it is another one again
            if number in reasons:
                print(f"{text_of(config)} is left out: {reasons[number]}", file=sys.stderr)
            elif number:
                found[config] = rows[frozenset(config)]
        return found

    def table(self, configs, sizes):
        """The same of any number of configurations."""
        runtime, found = Runtime(self.options.runtime), {}
        with tempfile.TemporaryDirectory() as name:
            for beside in self.path.parent.glob("*.tir"):  # what it imports
                shutil.copy(beside, name)
            for begin in range(0, len(configs), TOGETHER):
                found |= self.costs(runtime, pathlib.Path(name), configs[begin:begin + TOGETHER], sizes)
        return found


def described(desc):
    """The kernel of the file; the others are steps."""
    return next(kernel for kernel in desc.kernels[:desc.kernel_count] if not kernel.is_step)


def refusals(receipt, name, wishes):
    """The numbers of the configurations whose best variant lacks what is required, and why."""
    for variant in receipt["variants"]:
        best = re.fullmatch(rf"{name}(?:__(\d+))?(?:__step\d+)?", variant["entry"])
        for record in variant["records"] if best else []:
            if record["refusal"] and record["wish"] in wishes:
                yield int(best[1] or 1), record["text"]


def evaluated(runtime, kernel, sizes):
    """What each configuration of an artifact costs, by what it binds: its cheapest variant or sequence."""
    names = [kernel.dims[i].text() for i in range(kernel.dim_count)]
    ways = [(w.config, w.cost) for w in kernel.variants[:kernel.variant_count] + kernel.sequences[:kernel.sequence_count]]
    rows = [[math.inf] * len(sizes) for _ in range(kernel.config_count)]
    for at, size in enumerate(sizes):
        dims = (ctypes.c_int64 * len(names))(*(size[name] for name in names))
        params = alignments(kernel, size, names)
        for config, cost in ways:
            rows[config][at] = min(rows[config][at], runtime.evaluate(cost, dims, params))
    return {frozenset(re.findall(r"(\w+)=(\w+)", kernel.configs[i].text())): row for i, row in enumerate(rows)}


# The choice.

def mean(numbers):
    return sum(numbers) / len(numbers)


def losses(kept, costs):
    """By size, how many times as long as with all that costs has launches take with what is kept: logarithms."""
    least, best = zip(*(costs[c] for c in kept)), zip(*costs.values())
    return [math.log(min(ours) / min(all_)) for ours, all_ in zip(least, best)]


def chosen(costs, begin, loss, most):
    """Greedily from `begin` on, in the order of the choice."""
    kept, now = list(begin), [min(column) for column in zip(*(costs[c] for c in begin))]
    while len(kept) < most and math.exp(mean(losses(kept, costs))) > loss:
        gains = {c: sum(math.log(n / min(n, x)) for n, x in zip(now, row)) for c, row in costs.items()}
        added = max(gains, key=gains.get)
        if not gains[added]:
            break
        kept.append(added)
        now = [min(pair) for pair in zip(now, costs[added])]
    return kept


def text_of(config):
    return f"config({', '.join(f'{name} = {value}' for name, value in config)})"


def said(lost):
    """Of logarithms."""
    return (f"{math.exp(mean(lost)):.4f} times as long as the best, {sum(x > math.log(1.1) for x in lost)} of {len(lost)} "
            f"above 1.1, at most {math.exp(max(lost)):.2f}")


def listed(name, kept, notes):
    comment = "".join(f"// {note}\n" for note in notes)
    return f"{comment}configs {name} {{\n" + "".join(f"    {text_of(c)}\n" for c in kept) + "}"


# What was measured.

def measurements(path, own):
    """Of each size, the times by configuration."""
    for line in pathlib.Path(path).read_text(encoding="utf-8").splitlines():
        if line[0] != "#":
            m, n, k, *times = line.split()
            yield ({"M": int(m), "N": int(n), "K": int(k)},
                   {config: float(time) for config, time in zip(own, times) if time != "-"})


def judge(kept, costs, times):
    """What the model's choice takes among what is kept and measured, held against the best that was measured: logarithms."""
    lost = []
    for at, measured in enumerate(times):
        among = [c for c in kept if c in measured]
        choice = min(among, key=lambda c: costs[c][at])
        lost.append(math.log(measured[choice] / min(measured.values())))
    return lost


# The command.

def options_of():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("tirc")
    parser.add_argument("runtime", help="libtirrt.so")
    parser.add_argument("kernel")
    parser.add_argument("--arch", default="sm_90a")
    parser.add_argument("--space", action="append")
    parser.add_argument("--draw", action="append")
    parser.add_argument("--count", type=int, default=1500, help="sizes")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--work", type=float, default=2.0 ** 40, help="the largest product of all dimensions")
    parser.add_argument("--require", action="append", default=[], help="tma, wgmma, ...: as of tirc build")
    parser.add_argument("--loss", type=float, default=1.01)
    parser.add_argument("--most", type=int, default=45)
    parser.add_argument("--extend", action="store_true", help="begin with all of the kernel's configurations")
    parser.add_argument("--name", default="products")
    parser.add_argument("--judge")
    return parser.parse_args()


def choose(kernel, options):
    """From the space, beside the kernel's own configurations."""
    sizes = sizes_of(options)
    space = candidates(options.space or SPACE)
    costs = kernel.table(list(dict.fromkeys(space + kernel.own)), sizes)
    own = [c for c in kernel.own if c in costs]
    begin = own if options.extend else kernel.own[:1]  # the first one has variants for all arguments
    among = {c: row for c, row in costs.items() if c in space or c in begin}
    kept = chosen(among, begin, options.loss, options.most)
    print(listed(options.name, kept, [
        f"tools/choose_configs.py --arch={options.arch} --seed={options.seed}: {len(kept)} of {len(among)}; by the model a",
        f"launch takes {said(losses(kept, among))}."]))
    print(f"\nbeside the {len(own)} of the kernel: these take {said(losses(kept, costs))}\n"
          f"the {len(own)}: {said(losses(own, costs))}; {len({*map(frozenset, kept)} & {*map(frozenset, own)})} are in "
          "both")


def choose_measured(kernel, options):
    """Among the kernel's own configurations, at the sizes that were measured."""
    sizes, times = zip(*measurements(options.judge, kernel.own))
    costs = kernel.table(kernel.own, sizes)
    for count in sorted({5, 10, 15, 20, 25, len(costs)}):
        kept = chosen(costs, kernel.own[:1], 1, count)
        print(f"{len(kept):3} chosen: by the model {math.exp(mean(losses(kept, costs))):.4f}, measured "
              f"{said(judge(kept, costs, times))}")
    print(f"all {len(costs)}: measured {said(judge(list(costs), costs, times))}")


def main():
    options = options_of()
    options.draw = options.draw or DRAW
    kernel = Kernel(options)
    (choose_measured if options.judge else choose)(kernel, options)


if __name__ == "__main__":
    main()
