# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Times the first launch of a process, with and without what the driver keeps, and what a launch costs.

    python3 first_launch.py --bin FOLDER --artifacts FOLDER [--runs N] [--only PATTERN]

The first folder holds bench_first_launch, bench_launch and libtirrt.so, and tirc for the rows with a
cubin; the second NAME.tira (artifacts.py). Each figure is the median of N processes in milliseconds;
each process has new cache folders where they are to be empty. Needs neither torch nor LLVM.

    empty         the driver's cache is empty: it assembles the variant
    warm          its cache is as the last process left it
    cubin         the artifact has its code assembled, and the cache is off
    1, 4, 16      all variants before the first launch by so many threads, with an empty cache

Empty, warm and cubin are the first launch with the load of the artifact.
"""

import argparse
import fnmatch
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

# Artifact, kernel, sizes; the source, with what is bound, for a cubin.
ROWS = [
    ("matmul_bf16", "matmul", "M=4096 N=4096 K=4096", "03_gemm/matmul.tir", {}),
    ("matmul_bf16", "matmul", "M=16 N=8192 K=4096", "03_gemm/matmul.tir", {}),
    ("attention.128causal", "attention", "B=1 H=16 G=16 S=2048 T=2048", "attention/attention.tir",
     {"D": "128", "CAUSAL": "true"}),
    ("softmax_bf16", "softmax", "M=4096 N=4096", "02_softmax/softmax.tir", {}),
]
COLUMNS = ["empty", "warm", "cubin", "1", "4", "16"]


def waited(figures):
    """Until the end of the first launch, with the load of the artifact."""
    return figures["load"] + figures["first"]


class Machine:
    def __init__(self, options, scratch):
        self.options, self.scratch = options, pathlib.Path(scratch)
        self.folders = 0

    def fresh(self):
        self.folders += 1
        folder = self.scratch / str(self.folders)
        folder.mkdir()
        return str(folder)

    def run(self, arguments, cache):
        """One process with the driver's cache in a folder, or off. Gives its figures by name."""
        environment = dict(os.environ, LD_LIBRARY_PATH=os.pathsep.join(
            [str(self.options.bin)] + os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep)))
        environment["CUDA_CACHE_DISABLE"] = "0" if cache else "1"
        environment["CUDA_CACHE_PATH"] = cache or "/nonexistent"
        done = subprocess.run([str(self.options.bin / "bench_first_launch"), *arguments],
                              env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"{' '.join(arguments)}: {done.stderr.strip() or done.returncode}")
        return {name: float(value) for name, value in re.findall(r"(\w+) ([\d.]+)", done.stdout)}

    def cubin(self, source, metas):
        """The artifact with a cubin; None without tirc or ptxas."""
        tirc = self.options.bin / "tirc"
        out = self.scratch / f"cubin{self.folders}.tira"
        path = pathlib.Path(__file__).resolve().parent.parent.parent / "examples" / source
        bound = [f"-D{name}={value}" for name, value in metas.items()]
        if not tirc.exists():
            return None
        done = subprocess.run([str(tirc), "build", str(path), "--cubin=sm_90a", *bound, "-o",
                               str(out)], capture_output=True, text=True, check=False)
        if done.returncode:
            print(f"no cubin: {done.stderr.strip()}", file=sys.stderr)
            return None
        return str(out)

    def figure(self, column, artifact, rest, cubin):
        """One median, or None."""
        times = []
        kept = self.fresh()
        for turn in range(self.options.runs + 1):
            if column == "empty":
                value = waited(self.run([artifact, *rest], self.fresh()))
            elif column == "warm":
                value = waited(self.run([artifact, *rest], kept))
            elif column == "cubin":
                if not cubin:
                    return None
                value = waited(self.run([cubin, *rest], None))
            else:
                value = self.run([f"--prepare={column}", artifact, *rest], self.fresh())["prepare"]
            if turn:  # the first process finds pages and caches as nobody left them
                times.append(value)
        return statistics.median(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    parser.add_argument("--artifacts", type=pathlib.Path, required=True)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--only", default="*")
    options = parser.parse_args()
    options.bin = options.bin.resolve()
    print(f"| kernel | {' | '.join(COLUMNS)} |")
    print("|---" * (len(COLUMNS) + 1) + "|")
    with tempfile.TemporaryDirectory() as scratch:
        machine = Machine(options, scratch)
        for name, kernel, sizes, source, metas in ROWS:
            artifact = options.artifacts / f"{name}.tira"
            if not fnmatch.fnmatch(name, options.only) or not artifact.exists():
                continue
            cubin = machine.cubin(source, metas)
            row = [machine.figure(column, str(artifact), [kernel, *sizes.split()], cubin)
                   for column in COLUMNS]
            figures = " | ".join("-" if value is None else f"{value:.1f}" for value in row)
            print(f"| {name} {sizes} | {figures} |", flush=True)
    bench = options.bin / "bench_launch"
    if bench.exists():
        print(flush=True)
        subprocess.run([str(bench)], env=dict(os.environ, LD_LIBRARY_PATH=os.pathsep.join(
            [str(options.bin)] + os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep))),
            check=False)


if __name__ == "__main__":
    main()
