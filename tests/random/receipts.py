#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random kernels with a product or a plain loop, whose receipts must not contradict themselves.

Usage: receipts.py TIRC [--seed N] [--count N] [--keep DIR]

Operands are found in rows, through a table, at a stride, masked, turned, flipped, taken from a column that no tensor
copy reaches, in elements of 8, 16 and 32 bits, with sizes that are, and are not, multiples of 8. Nothing runs: what the
receipt of each variant says of a place is held against what else it says there, and against what the variant relies on.

- a loop has stages or is not pipelined, not both;
- alignment is no reason where the variant relies on it and each size of the tensor is a multiple of 16 bytes;
- an operand is read by wgmma or by ldmatrix, not both;
- a tensor copy and a copy through registers are not the same copy;
- where tiles are multiplied in tensor memory or by wgmma, each store of the kernel has a line;
- a reason is written out: no `(null)`, and no names of the compiler's own.
"""

import collections
import pathlib
import random
import re
import subprocess
import sys
import tempfile

import seeds

TARGETS = ["sm_80", "sm_90", "sm_90a", "sm_100a", "sm_120a"]

BITS = {"bf16": 16, "f16": 16, "e4m3": 8, "i8": 8, "f32": 32, "tf32": 32}

# How an operand of {R} rows and 64 columns is found at row `at` and column k; the tensor's rows and columns.
WAYS = {
    "rows": ("{X}[{at}:+{R}, k:+{KB}]", "{S}, K"),
    "table": ("{X}[P{S}[{at}:+{R}], k:+{KB}]", "{S}, K"),
    "strided": ("{X}[{at}:+{R}:2, k:+{KB}]", "{S}, K"),
    "columns": ("{X}[{at}:+{R}, 2 * k:+{KB}:2]", "{S}, K2"),
    "masked": ("load({X}[{at}:+{R}, k:+{KB}], mask = rows(zeros(bool, {R}, {KB})) < 50)", "{S}, K"),
    "turned": ("{X}[k:+{KB}, {at}:+{R}].T", "K, {S}"),
    "flipped": ("flip({X}[{at}:+{R}, k:+{KB}], axis = 1)", "{S}, K"),
    "shifted": ("{X}[{at}:+{R}, k + 1:+{KB}]", "{S}, K"),
    "negative": ("-{X}[{at}:+{R}, k:+{KB}]", "{S}, K"),
    "beside": ("{X}[1, {at}:+{R}, k:+{KB}]", "2, {S}, K"),
}

STORES = {
    "rows": ("D[m:+{BM}, n:+{BN}] = {E};", "M, N"),
    "table": ("D[PM[m:+{BM}], n:+{BN}] = {E};", "M, N"),
    "masked": ("store(D[m:+{BM}, n:+{BN}], {E}, mask = cols(acc) < 40);", "M, N"),
    "turned": ("D[n:+{BN}, m:+{BM}] = {E}.T;", "N, M"),
    "added": ("atomic_add(D[m:+{BM}, n:+{BN}], acc);", "M, N"),
    "strided": ("D[m:+{BM}:2, n:+{BN}] = {E};", "M, N"),
}


class Kernel:
    """What was drawn, the text, and what is known of it."""

    def __init__(self, seed):
        r = random.Random(seed)
        self.elem = r.choice(list(BITS))
        self.ways = [r.choice(list(WAYS)) for _ in range(2)]
        self.store = r.choice(list(STORES) + ["rows"] * 3)
        rows, columns = r.choice([(64, 64), (128, 128), (128, 64), (64, 128), (16, 64)])
        depth = r.choice([32, 64]) if BITS[self.elem] < 32 else 32
        self.sizes = {"K": r.choice([None, 512, 256, 100, 72]), "M": None, "N": r.choice([None, 256, 100])}
        stages = r.choice(["", ", stages = 3", ", stages = 2", ""])
        walk = r.choice(["", "", ", persistent", ", persistent, store_role", ", cluster = (2, 1)"])
        self.has_product = r.random() < 0.9
        out = "f32" if self.store == "added" else r.choice(["f32", "bf16"])
        self.out_bits = 32 if out == "f32" else 16
        memory = "f32" if self.elem == "tf32" else self.elem
        words = {"BM": rows, "BN": columns, "KB": depth, "E": "acc" if out == "f32" else "bf16(acc)"}
        operands, params = [], []
        for x, at, size, count, way in zip("AB", "mn", "MN", (rows, columns), self.ways):
            text, shape = WAYS[way]
            part = text.format(X=x, at=at, S=size, R=count, KB=depth)
            operands.append(f"tf32({part})" if self.elem == "tf32" else part)
            params.append(f"{x}: {memory}[{shape.format(S=size)}]")
        tables = {s for s, way in zip("MN", self.ways) if way == "table"} | ({"M"} if self.store == "table" else set())
        params += [f"P{s}: i32[{s}]" for s in sorted(tables)]
        store, shape = STORES[self.store]
        where = "inout" if self.store != "rows" else "out"
        params.append(f"D: {where} {out}[{shape}]")
        total = "i32" if self.elem == "i8" else "f32"
        if self.has_product:
            body = f"acc += {'f32(' if total == 'i32' else ''}dot({operands[0]}, {operands[1]}.T){')' if total == 'i32' else ''};"
        else:
            body = f"acc += sum(f32({operands[0]}), axis = 1);"
        named = ", ".join(params)
        for name, value in self.sizes.items():
            if value:
                named = re.sub(rf"\b{name}\b", str(value), named)
                named = re.sub(rf"\b{name}2\b", str(2 * value), named)
        end = self.sizes["K"] or "K"
        columns_of = self.sizes["N"] or "N"
        if not self.sizes["K"] and self.ways == ["columns", "columns"]:
            end = "K2 / 2"
        self.text = f"""kernel k({named})
{{
    for (m, n) in tiles(M by {rows}, {columns_of} by {columns}{walk}) {{
        var acc: f32[{rows}, {columns}] = 0;
        for k in range(0, {end}, {depth}{stages}) {{
            {body}
        }}
        {store.format(**words)}
    }}
}}
"""


def variants(text):
    """The headings of a receipt, each with its lines as (place, clause)."""
    found = []
    for line in text.splitlines():
        if not line.startswith(" "):
            found.append((line, []))
        elif found:
            place, _, clause = line.strip().partition(": ")
            found[-1][1].append((place, clause))
    return found


def is_multiple(kernel, tensor):
    """Are all rows of the tensor known to be multiples of 16 bytes apart?"""
    k, n = kernel.sizes["K"], kernel.sizes["N"]
    if tensor == "D":
        inner = None if kernel.store == "turned" else n
        return inner is not None and inner * kernel.out_bits % 128 == 0
    turned = kernel.ways["AB".index(tensor)] == "turned"
    inner = (n if tensor == "B" else None) if turned else k
    return inner is not None and inner * BITS[kernel.elem] % 128 == 0


def complaints(kernel, heading, lines):
    """What contradicts what, in one variant."""
    by_place = collections.defaultdict(list)
    for place, clause in lines:
        by_place[place].append(clause)
    for place, clauses in by_place.items():
        loops = [c for c in clauses if c.startswith("loop: ")]
        refused = [c for c in loops if "not pipelined" in c]
        if refused and any(re.match(r"loop: \d+ stages", c) for c in loops):
            yield f"{place}: pipelined, and {refused[0]}"
    texts = [clause for _, clause in lines]
    for clause in texts:
        of = re.match(r"(?:copy of|load of|store of|atomic add to) ([ABD]):", clause)
        tensor = of and of.group(1)
        if "(null)" in clause or re.search(r"TIR_|none of \d+ orders", clause):
            yield clause
        relied = "every tensor is aligned to 16 bytes" in heading or f"{tensor} is aligned to 16 bytes" in heading
        if tensor and re.search("aligned|alignment", clause) and relied and is_multiple(kernel, tensor):
            yield f"{clause}, though the variant relies on it"
    for tensor in "AB":
        of = [c for c in texts if re.match(rf"(copy|load) of {tensor}\b", c)]
        if any(re.search(r": tma\b", c) for c in of) and any("through registers" in c for c in of):
            yield f"{tensor} is copied by tma and through registers: {of}"
    if any(re.match(r"dot: wgmma", c) for c in texts) and any("ldmatrix" in c for c in texts):
        yield "the product is one of wgmma, and an operand is read by ldmatrix"
    on_tensor_cores = any(re.match(r"dot: (wgmma|tcgen05)", c) for c in texts)
    stores = [c for c in texts if re.match(r"(store of|atomic add to|copy to) D\b", c)]
    if on_tensor_cores and not stores:
        yield "no line says how D is stored"


def build(tirc, path, target):
    """The receipt, or None where the kernel is refused (which another test judges)."""
    done = subprocess.run([tirc, "build", str(path), f"--arch={target}", "--receipt", "-o", "/dev/null"],
                          capture_output=True, text=True, timeout=120, check=False)
    if done.returncode not in (0, 1):
        return f"exit {done.returncode}\n{done.stderr}", False
    return done.stdout + done.stderr, done.returncode == 0


def main():
    parser = seeds.parser(__doc__, "tirc", count=12)
    parser.add_argument("--target", default="")
    parser.add_argument("--keep")
    options = parser.parse_args()
    first = seeds.first(options)
    failures = refused = built = 0
    for seed in range(first, first + options.count):
        kernel = Kernel(seed)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(options.keep or folder) / f"k{seed}.tir"
            path.write_text(kernel.text, encoding="utf-8")
            for target in [options.target] if options.target else TARGETS:
                receipt, fine = build(options.tirc, path, target)
                if options.keep:
                    path.with_suffix(f".{target}").write_text(receipt, encoding="utf-8")
                refused += not fine
                built += fine
                if not fine and "error[E030" not in receipt:
                    failures += 1
                    print(f"seed {seed}, {target}:\n{receipt}\n{kernel.text}")
                for heading, lines in variants(receipt) if fine else []:
                    for complaint in complaints(kernel, heading, lines):
                        failures += 1
                        print(f"seed {seed}, {target}: {heading}\n  {complaint}\n{kernel.text}")
    print(f"{built} receipts, {refused} kernels refused, {failures} contradictions")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
