#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Assembles the kernels of the examples for one target, to see what only ptxas knows.

usage: assemble.py TIRC LIST [ARCH] [--update]   all targets without ARCH; --update writes LIST anew

ptxas says so when it serialises products of warpgroups, which costs most of their speed, and when
registers do not suffice. There must be no such notice. LIST says how many bytes of local memory
each variant has with the ptxas that its first line names, and more than that is an error: most of
them run where alignment or strides are unusual. A variant with products of warpgroups must have
none, unless LIST was told so by hand: --update adds none (docs/decisions/046). Those with products on an
engine are marked in LIST by its name. Another
ptxas allocates otherwise, so there the numbers are only printed. Exits with 77 without a ptxas.
"""

import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import sync

# The instruction for products that the best variants of a target take.
ENGINES = {"sm_90a": "wgmma", "sm_100a": "tcgen05", "sm_103a": "tcgen05"}

WIDE = ["-D", "BN=256", "-D", "STAGES=4"]

# Beside each file as it is. A gated product has two sums, so its tile is half as wide.
MORE = [
    ("examples/03_gemm/gemm.tir", WIDE),
    *sync.CLUSTERS,
    *[("examples/10_epilogues/epilogues.tir", [f"--kernel={kernel}", *WIDE]) for kernel in
      ("scaled", "linear", "residual", "row_column", "quantized", "quantized_rows")],
    ("examples/10_epilogues/epilogues.tir", ["--kernel=gated", "-D", "BN=128", "-D", "STAGES=4"]),
    ("examples/11_operands/operands.tir", WIDE),
    *[("examples/attention/attention.tir", ["-D", f"D={d}", "-D", f"CAUSAL={causal}"])
      for d, causal in ((64, "true"), (64, "false"), (128, "false"))],
    ("examples/attention/forward.tir", ["--kernel=causal", "-D", "D=192", "-D", "DV=128"]),
    ("examples/attention/forward.tir", ["--kernel=full", "-D", "D=256"]),
    *[("examples/attention/backward.tir", [f"--kernel={kernel}", "-D", f"D={d}"])
      for kernel in ("backward", "deterministic") for d in (192, 256)],
]


def work_on(arch, root):
    """The files and options to assemble. A ladder is by hand, for one target."""
    own = {f"examples/{folder}/": target for folder, target in sync.OWN.items()}
    files = [f for f in sync.kernel_files(root)
             if all(not f.startswith(folder) or target == arch for folder, target in own.items())]
    return [*((f, []) for f in files), *MORE]


def uses(engine, variant):
    return any(r["topic"] == "dot" and not r["refusal"] and engine in r["text"]
               for r in variant["records"])


def local_bytes(log):
    """Per entry, the most of: bytes of stack, bytes stored by spills, bytes loaded."""
    found, entry = {}, None
    for line in log.splitlines():
        if properties := re.search(r"Function properties for (\S+)", line):
            entry = properties[1]
        elif "bytes stack frame" in line:
            found[entry] = max(map(int, re.findall(r"(\d+) bytes", line)))
    return found


def assemble(tirc, ptxas, root, arch, source, options):
    """Returns what was assembled, ptxas's notices, and (variant, engine, bytes) of each."""
    with tempfile.TemporaryDirectory() as folder:
        ptx = os.path.join(folder, "kernels.ptx")
        variants = sync.build(tirc, root, source, *options, f"--arch={arch}", "--emit=ptx",
                              "-o", ptx)
        done = subprocess.run([ptxas, f"-arch={arch}", "-v", "-o", os.devnull, ptx],
                              capture_output=True, text=True, check=False)
    what = " ".join([arch, source, *(o for o in options if o != "-D")])
    log = done.stdout + done.stderr
    if done.returncode:
        sys.exit(f"{what}: ptxas fails\n{log}")
    sizes = local_bytes(log)
    names = [v["entry"] for v in variants]
    assert sorted(sizes) == sorted(names), (what, sorted(sizes), sorted(names))
    notices = [line for line in log.splitlines() if re.search(r"\bC7[56]\d\d\b", line)]
    return what, notices, [(v["entry"], uses(ENGINES[arch], v), sizes[v["entry"]]) for v in variants]


def judge(results, arch, before, by_hand):
    """Returns the lines for the list, what is wrong, and how many variants use the engine."""
    now, errors, products = [], [], 0
    engine = ENGINES[arch]
    for what, notices, variants in results:
        errors += [f"{what}: {notice}" for notice in notices]
        for entry, has_engine, size in variants:
            products += has_engine
            name = f"{what} {entry}" + (f" ({engine})" if has_engine else "")
            if not size:
                continue
            said = f"{name}: {size} bytes of local memory"
            print(said)
            if has_engine and engine == "wgmma" and size > by_hand.get(name, 0):
                errors.append(f"{said} beside products of warpgroups")
                continue
            now.append(f"{name}: {size}")
            if before is not None and size > before.get(name, 0):
                errors.append(f"{said}, in the list {before.get(name, 0)}")
    if not products:
        errors.append(f"{arch}: no kernel uses {engine}")
    print(f"{arch}: {sum(len(variants) for _, _, variants in results)} variants, {products} with "
          f"{engine}; {len(now)} in the list have local memory")
    return now, errors


def main(tirc, path, arches, update):
    ptxas = shutil.which("ptxas") or shutil.which("/usr/local/cuda/bin/ptxas")
    if not ptxas:
        print("no ptxas")
        return 77
    asked = subprocess.run([ptxas, "--version"], capture_output=True, text=True, check=True)
    head = "ptxas " + re.search(r"V[\d.]+", asked.stdout)[0]
    path = pathlib.Path(path).resolve()
    root = path.parents[2]

    listed = path.read_text(encoding="utf-8").splitlines() if path.exists() else [head]
    known = {name: int(size) for name, size in (line.rsplit(": ", 1) for line in listed[1:])}
    before = known if listed[0] == head and not update else None
    now, errors = [head], []
    for arch in ENGINES:
        if arch not in arches:
            now += [line for line in listed[1:] if line.startswith(arch + " ")]
            continue
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            results = list(pool.map(lambda w, arch=arch: assemble(tirc, ptxas, root, arch, *w),
                                    work_on(arch, root)))
        lines, wrong = judge(results, arch, before, known)
        now += lines
        errors += wrong
    if update:
        path.write_text("\n".join(now) + "\n", encoding="utf-8")
    for error in errors:
        print("error:", error)
    return 1 if errors else 0


if __name__ == "__main__":
    WORDS = [word for word in sys.argv[3:] if word != "--update"]
    sys.exit(main(str(pathlib.Path(sys.argv[1]).resolve()), sys.argv[2], WORDS or list(ENGINES),
                  "--update" in sys.argv[3:]))
