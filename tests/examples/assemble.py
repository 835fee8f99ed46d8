#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Assembles the kernels of the examples for sm_90a, to see what only ptxas knows.

usage: assemble.py TIRC LIST [--update]   --update writes the list of fallback variants anew

ptxas says so when it serialises products of warpgroups, which costs most of their speed, and when
registers do not suffice. A variant with such products must have neither notices nor local memory.
The other variants run where alignment or strides are unusual: LIST says how many bytes each spills
with the ptxas that its first line names, and more than that is an error. Another ptxas allocates
otherwise, so there the numbers are only printed. Exits with 77 where there is no ptxas.
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
]


def uses_warpgroups(variant):
    return any(r["topic"] == "dot" and not r["refusal"] and "wgmma" in r["text"]
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


def assemble(tirc, ptxas, root, source, options):
    """Returns what was assembled, ptxas's notices, and (variant, warpgroups, bytes) of each."""
    with tempfile.TemporaryDirectory() as folder:
        ptx = os.path.join(folder, "kernels.ptx")
        variants = sync.build(tirc, root, source, *options, "--arch=sm_90a", "--emit=ptx",
                              "-o", ptx)
        done = subprocess.run([ptxas, "-arch=sm_90a", "-v", "-o", os.devnull, ptx],
                              capture_output=True, text=True, check=False)
    what = " ".join([source, *(o for o in options if o != "-D")])
    log = done.stdout + done.stderr
    if done.returncode:
        sys.exit(f"{what}: ptxas fails\n{log}")
    sizes = local_bytes(log)
    names = [v["entry"] for v in variants]
    assert sorted(sizes) == sorted(names), (what, sorted(sizes), sorted(names))
    notices = [line for line in log.splitlines() if re.search(r"\bC7[56]\d\d\b", line)]
    return what, notices, [(v["entry"], uses_warpgroups(v), sizes[v["entry"]]) for v in variants]


def main(tirc, path, update):
    ptxas = shutil.which("ptxas") or shutil.which("/usr/local/cuda/bin/ptxas")
    if not ptxas:
        print("no ptxas")
        return 77
    asked = subprocess.run([ptxas, "--version"], capture_output=True, text=True, check=True)
    head = "ptxas " + re.search(r"V[\d.]+", asked.stdout)[0]
    path = pathlib.Path(path).resolve()
    root = path.parents[2]
    work = [*((source, []) for source in sync.kernel_files(root)
              if "/blackwell_ladder/" not in source), *MORE]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        results = list(pool.map(lambda w: assemble(tirc, ptxas, root, *w), work))

    listed = path.read_text(encoding="utf-8").splitlines() if path.exists() else [head]
    before = {name: int(size) for name, size in (line.rsplit(": ", 1) for line in listed[1:])}
    judged = listed[0] == head and not update
    now, errors, products = [head], [], 0
    for what, notices, variants in results:
        errors += [f"{what}: {notice}" for notice in notices]
        for entry, warpgroups, size in variants:
            name = f"{what} {entry}"
            products += warpgroups
            if not size:
                continue
            said = f"{name}: {size} bytes of local memory"
            if warpgroups:
                errors.append(f"{said} beside products of warpgroups")
            else:
                now.append(f"{name}: {size}")
                print(said)
                if judged and size > before.get(name, 0):
                    errors.append(f"{said}, in the list {before.get(name, 0)}")
    assert products, "no kernel uses warpgroups"
    if update:
        path.write_text("\n".join(now) + "\n", encoding="utf-8")
    print(f"{sum(len(variants) for _, _, variants in results)} variants, {products} with products "
          f"of warpgroups; {len(now) - 1} of the others have local memory")
    for error in errors:
        print("error:", error)
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main(str(pathlib.Path(sys.argv[1]).resolve()), sys.argv[2], "--update" in sys.argv[3:]))
