#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random products with results that change places: their loops have as many stages as there is room for.

Usage: stages.py TIRC [--seed N] [--count N]

What follows a loop goes through buffers and scratch in shared memory, one after the other. `pipeline` decides on
stages before these have their bytes. Each program is compiled up to `barrier` for targets with cp.async, with wgmma,
with tcgen05 and with mma.sync fed by tensor copies, and
  - no kernel is compiled again with fewer stages: they fit;
  - where a loop has fewer stages than it asks for, one more would be beyond the target's shared memory.
Seed 0 is that of the day. A failing program is printed.
"""

import pathlib
import random
import re
import subprocess
import sys
import tempfile

import seeds

TARGETS = ["sm_80", "sm_90a", "sm_100a", "sm_120a"]
SECONDS = 120  # of one compilation
MBARRIERS = 1024  # bytes that are left to them

# What becomes of the result l, of M x N; the numbers of names are {i}.
STEPS = [
    "l = sort(l, axis = 1);",
    "l = flip(l, axis = {a});",
    "l = cumsum(l, axis = {a});",
    "let a{i}, b{i} = split(l, axis = {a}); l = interleave(b{i}, a{i}, axis = {a});",
    "let a{i}, b{i} = split(l, axis = {a}); l = concat(b{i}, a{i}, axis = {a});",
    "l = l - max(l, axis = 1);",
    "l = l / (1.0 + sum(abs(l), axis = 0));",
    "l = reshape(l.T, {M}, {N});",
    "l = l + load(R[m:+{M}])[:, None];",
    "let f{i} = flip(l, axis = 0); let g{i} = flip(l, axis = 1); l = f{i} * g{i};",
]
IN_LOOP = ["l = l * 0.5;", "l = flip(l, axis = 1);", "l += sum(l, axis = 1);", "l = cumsum(l, axis = 1);"]

PROGRAM = """kernel k(A: {T}[M, K], B: {T}[K, N], R: f32[M], Y: out {OUT}[M, N]){where}
{{
    for (m, n) in tiles(M by {M}, N by {N}{order}) {{
        var l: f32[{M}, {N}] = 0;
{body}
        Y[m:+{M}, n:+{N}] = {OUT}(l);
    }}
}}
"""

LOOP = """        for k in range(0, K, {K}{stages}) {{
            l += dot({a}, B[k:+{K}, n:+{N}]);{more}
        }}"""


def program(seed):
    r = random.Random(seed)
    sizes = {"M": r.choice([16, 64, 64, 128]), "N": r.choice([16, 64, 64, 128, 256]), "K": r.choice([32, 64, 64, 128])}
    types = {"T": r.choice(["bf16", "bf16", "f16", "f32", "e4m3"]), "OUT": r.choice(["f32", "bf16"])}
    a = "A[m:+{M}, k:+{K}]".format(**sizes)
    stages = r.choice([0, 2, 3, 4, 6])
    loop = LOOP.format(**sizes, stages=f", stages = {stages}" if stages else "",
                       a=f"{types['T']}(f32({a}) * 2.0)" if r.random() < 0.2 else a,
                       more="\n            " + r.choice(IN_LOOP) if r.random() < 0.2 else "")
    steps = [" " * 8 + r.choice(STEPS).format(i=i, a=r.randint(0, 1), **sizes) for i in range(r.randint(1, 4))]
    return PROGRAM.format(**sizes, **types, order=r.choice(["", ", order = grouped(8)", ", persistent = 1"]),
                          where=r.choice(["", " where K % 64 == 0 where N % 64 == 0"]),
                          body="\n".join([loop, *steps, *([loop] if r.random() < 0.3 else [])]))


def limits(tirc):
    table = subprocess.run([tirc, "--help-targets"], capture_output=True, text=True, check=True).stdout
    rows = [[cell.strip() for cell in line.split("|")] for line in table.splitlines()]
    at = next(row for row in rows if "target" in row).index("shared, CTA")
    return {target: next(int(row[at]) for row in rows if f"`{target}`" in row) for target in TARGETS}


def complaint(receipt, limit):
    again = re.search(r"compiled again with (two stages|one stage|cp.async):.*", receipt)  # else one stage is too many
    if again:
        return again[0]
    for variant in re.split(r"\n(?=\w+:)", receipt):
        fewer = [int(n) for n in re.findall(r"stages of (\d+) bytes.*shared memory is full", variant)]
        used = re.search(r"shared memory: (\d+) bytes", variant)
        rings = variant.count(" mbarriers full and empty")  # several have as many stages
        if fewer and used and rings < 2 and int(used[1]) + min(fewer) + MBARRIERS <= limit:
            return f"a stage of {min(fewer)} bytes would fit beside {used[1]} of {limit}"
    return None


def main():
    options = seeds.parser(__doc__, "tirc", count=20).parse_args()
    seed = seeds.first(options)
    most = limits(options.tirc)
    fewer = 0
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "stages.tir"
        for number in range(seed, seed + options.count):
            path.write_text(program(number), encoding="utf-8")
            for target in TARGETS:
                run = subprocess.run([options.tirc, "build", path, f"--arch={target}", "--receipt", "--emit=tir",
                                      "--stop-after=barrier", "-o", path.with_suffix(".out")],
                                     capture_output=True, text=True, timeout=SECONDS, check=False)
                why = complaint(run.stdout, most[target])
                if run.returncode and "error[E0301]" not in run.stderr:  # one tile alone may be too large
                    why = run.stderr
                if why:
                    sys.exit(f"seed {number}, {target}: {why}\n{path.read_text(encoding='utf-8')}")
                fewer += "shared memory is full" in run.stdout
    print(f"{options.count} programs: all have the stages that fit, {fewer} fewer than they ask for")


main()
