#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products in tensor memory of every kind, by explicit kernels that are drawn at random.

usage: tensor_memory.py TIRC [COUNT [FIRST]]

Kernel number n has element types, sizes, layouts of its operands, A in shared or tensor memory, which
is stored or copied there, a number of threads and of products that follow from n alone; half of them
are products of a pair of CTAs, whose operands come by the threads or by tensor copies that arrive in
the first CTA. Sums move by every shape of tcgen05.ld and .st, which a layout states, and their rows are reduced. On the emulator, under full checks and a schedule that also follows from n, it must
give exactly what the interpreter makes of the product as a tile program, and ptxas must take it.
Where there is no ptxas, it is left out.
"""

import math
import pathlib
import random
import subprocess
import sys

import by_number

MIXED = [("e4m3", "e5m2"), ("i8", "u8")]  # which multiply each other
KINDS = {"f16": ("f32", 2), "bf16": ("f32", 2), "tf32": ("f32", 4), "e4m3": ("f32", 1),
         "e5m2": ("f32", 1), "i8": ("i32", 1), "u8": ("i32", 1)}
SCHEDULES = ["lazy", "eager", "adversarial"]


def draw(number):
    """What varies, in words that the kernel is made of."""
    c = draw_one(number)
    r = random.Random(f"pair {number}")
    c["arch"] = r.choice(["sm_100a", "sm_110a"] if c["sums"] == "i32" else ["sm_100a", "sm_103a", "sm_110a"])
    c["pair"] = r.random() < 0.5
    if c["pair"]:
        draw_pair(c, r)
    c["aliased"], c["beside"] = r.random() < 0.4, r.choice([0, 8, 16])
    r = random.Random(f"shape {number}")
    c["shapes"] = [shaped(r, c) if r.random() < 0.5 else None for _ in range(2)]  # of the load, and of the store
    c["rows_to"] = r.choice(["end[:, 0:1]", "max(end, axis = 1)", "min(end, axis = 1)", "max(abs(end), axis = 1)"])
    return c


def shaped(r, c):
    """A shape of tcgen05.ld or .st, and a layout that has it, with registers in any order; None: there is none."""
    rows, n, groups = c.get("rows", 128), c["n"], c["threads"] // 128
    block = 128 if rows % 128 == 0 else 64
    folds = c["pair"] and block == 64
    down = math.gcd(groups, rows // block)
    halves, across, whole = 2 if folds else 1, groups // down, block == 128 or folds
    words = n // (halves * across)
    split = r.choice([s for s in (1, 2, 4, 6, 8, 16, 24, 32) if words % (2 * s) == 0] or [words])
    kinds = {"16x64b": 2, "16x128b": 4, "16x256b": 8, "16x32bx2": 2 * split, **({"32x32b": 1} if whole else {})}
    kinds = {kind: unit for kind, unit in kinds.items() if words % unit == 0 and n % (halves * across) == 0}
    if not kinds:
        return None
    kind, unit = r.choice(list(kinds.items()))
    twice = 2 if whole and kind != "32x32b" else 1
    lanes = {"32x32b": [(32, "1@laneid")], "16x64b": [(2, "1@laneid"), (8, "4@laneid")], "16x32bx2": [(16, "1@laneid")]}
    of_columns = {"32x32b": [], "16x64b": [(2, "2@laneid")], "16x128b": [(4, "1@laneid")],
                  "16x256b": [(4, "1@laneid"), (2, None)], "16x32bx2": [(2, "16@laneid"), (split, None)]}
    digits = [(down, "4@warpid"), (rows // block // down, None), (4 // halves, "1@warpid"), (twice, None),
              *lanes.get(kind, [(2, None), (8, "4@laneid")]), (halves, "2@warpid"), (across, f"{4 * down}@warpid"),
              (words // unit, None), *of_columns[kind]]
    digits = [digit for digit in digits if digit[0] > 1]
    registers, stride = [i for i, digit in enumerate(digits) if digit[1] is None], 1
    for i in r.sample(registers, len(registers)):
        digits[i], stride = (digits[i][0], str(stride)), stride * digits[i][0]
    return kind, f"S[({', '.join(str(d[0]) for d in digits)}) : ({', '.join(d[1] for d in digits)})]"


def stated(c, which, name, tile, value):
    """A tile, in the layout that is drawn, if one is."""
    layout = c["shapes"][which]
    return f"let {name}: {tile}{f' in {layout[1]}' if layout else ''} = {value};"


def factor_in_tmem(c, rows, group=""):
    """P, where A lies in tensor memory: declared, or an alias of columns of another type."""
    k, columns, beside = c["k"], c["k"] * KINDS[c["elem"]][1] // 4, c["beside"]
    if not c["aliased"] or columns + beside + c["n"] > 512 or rows != 128:
        return f"tmem P: {c['elem']}[{rows}, {k}]{group};"
    return (f"tmem held: f32[{rows}, {beside + columns}]{group};"
            f"let P: tmem {c['elem']}[{rows}, {k}] = alias(held[0:+{rows}, {beside}:+{columns}]);")


def result(c, rows, n):
    """The sums, as bits where there are aliases."""
    if not c["aliased"]:
        return "", f"acc[0:+{rows}, 0:+{n}]"
    return (f"let bits: tmem u32[{rows}, {n}] = alias(acc);",
            f"bitcast({c['sums']}, bits[0:+{rows}, 0:+{n}])")


def draw_pair(c, r):
    """A CTA has c["rows"] rows of the sums, and half of the columns of B."""
    width = KINDS[c["elem"]][1]
    c["n"] = r.choice([32, 64, 96, 128, 128, 160, 256, 256])
    c["turned"] &= c["n"] % 128 == 0
    if not c["turned"]:
        c["b"] = f"swizzle({r.choice([s for s in (32, 64, 128) if c['k'] * width % s == 0])})"
    c["rows"] = r.choice([64, 128, 128, 192, 256])
    c["a_in_tmem"] &= c["rows"] % 128 == 0
    if c["rows"] == 256 and c["n"] == 256:
        c["a_in_tmem"] = False  # the sums take all columns
    c["by_tma"] = r.random() < 0.6
    if c["n"] % 64:
        c["threads"] = 128


def draw_one(number):
    r = random.Random(number)
    elem = r.choice(list(KINDS))
    sums, width = KINDS[elem]
    depth = 32 // width
    k = depth * r.choice([1, 2, 3, 4, 8])
    n = r.choice([16, 32, 48, 64, 96, 128, 256, 320])
    swizzles = [s for s in (32, 64, 128) if k * width % s == 0]
    a = f"swizzle({r.choice(swizzles)})"
    b = f"swizzle({r.choice(swizzles)})"
    turned = width == 2 and n % 64 == 0 and r.random() < 0.4
    return {"elem": elem, "sums": sums, "k": k, "n": n, "a": a,
            "b": f"swizzle({r.choice([32, 64, 128])})" if turned else b, "turned": turned,
            "a_in_tmem": r.random() < 0.4, "products": r.choice([1, 1, 2, 3]),
            "threads": 256 if n % 32 == 0 and r.random() < 0.3 else 128,
            "start": r.random() < 0.3, "schedule": r.choice([*SCHEDULES, f"random:{number}"]),
            "elem_b": r.choice(next((m for m in MIXED if elem in m), [elem])),
            "copied": r.random() < 0.5, "sums_copied": r.random() < 0.5 and n <= 128}


def kernels(c):
    return kernels_of_pair(c) if c["pair"] else kernels_of_one(c)


def kernels_of_pair(c):
    """CTA 0 starts the products of both CTAs; its commits arrive in both."""
    n, half, k, products, elem, rows = c["n"], c["n"] // 2, c["k"], c["products"], c["elem"], c["rows"]
    all_rows = 2 * rows
    turned, from_tmem, by_tma = c["turned"], c["a_in_tmem"], c["by_tma"]
    shape = f"{products * k}, {n}" if turned else f"{n}, {products * k}"
    part_a = f"A[me * {rows} :+ {rows}, i * {k} :+ {k}]"
    part_b = f"B[i * {k} :+ {k}, me * {half} :+ {half}]" if turned else \
        f"B[me * {half} :+ {half}, i * {k} :+ {k}]"
    tile_b = f"B[0:+{products * k}, 0:+{n}]" if turned else f"B[0:+{n}, 0:+{products * k}].T"
    factor = "Bs" if turned else "Bs.T"
    shared_a = "" if from_tmem else f"shared As: {elem}[{rows}, {k}] in {c['a']};"
    tmem_a = factor_in_tmem(c, rows, " cta_group(2)") if from_tmem else ""
    put = f"P[0:+{rows}, 0:+{k}] = {part_a}; fence(before_thread_sync);" if from_tmem else ""
    if by_tma:
        of_a = "" if from_tmem else f"copy_async(As, {part_a}, mbar = remote(full, 0), engine = tma);"
        come = f"""
        if tid() == 0 {{
            if me == 0 {{ expect_tx(full, 2 * (bytes(Bs){'' if from_tmem else ' + bytes(As)'})); }}
            {of_a}
            copy_async(Bs, {part_b}, mbar = remote(full, 0), engine = tma);
        }}
        {'cluster_sync();' if from_tmem else ''}"""
    else:
        come = f"""
        {'' if from_tmem else f'store(As, {part_a});'}
        store(Bs, {part_b});
        fence(async_shared);
        cluster_sync();"""
    tile = f"{c['sums']}[{rows}, {n}]"
    first = stated(c, 1, "begin", tile, f"C[me * {rows} :+ {rows}, 0:+{n}]") + \
        f"acc[0:+{rows}, 0:+{n}] = begin; fence(before_thread_sync); cluster_sync();" if c["start"] else ""
    params = f"A: {elem}[{all_rows}, {products * k}], B: {elem}[{shape}], " \
        f"C: {c['sums']}[{all_rows}, {n}], D: out {c['sums']}[{all_rows}, {n}], E: out {c['sums']}[{all_rows}, 1]"
    start = f"C[0:+{all_rows}, 0:+{n}]" if c["start"] else "0"
    bits, sums = result(c, rows, n)
    return f"""
kernel by_hand({params}) grid(2) cluster(2) threads({c['threads']})
{{
    shared Bs: {elem}[{f'{k}, {half}' if turned else f'{half}, {k}'}] in {c['b']};
    {shared_a}
    mbarrier full arrivals(1);
    mbarrier done arrivals(1);
    tmem acc: {c['sums']}[{rows}, {n}] cta_group(2);
    {tmem_a}
    {bits}
    let me = cta_rank();
    {first}
    var phase: i32 = 0;
    for i in range(0, {products}) {{
        {put}{come}
        if me == 0 && tid() == 32 {{
            {'wait(full, phase);' if by_tma else ''}
            fence(after_thread_sync);
            gemm_async(acc, {'P' if from_tmem else 'As'}, {factor},
                       accumulate = {'true' if c['start'] else 'i > 0'});
            commit(done, ctas = 3);
        }}
        wait(done, phase);
        fence(after_thread_sync);
        phase = 1 - phase;
        bar_sync();
    }}
    {stated(c, 0, "end", tile, sums)}
    D[me * {rows} :+ {rows}, 0:+{n}] = end;
    E[me * {rows} :+ {rows}, 0:+1] = {c['rows_to']};
}}

kernel plain({params})
{{
    for (m) in tiles({all_rows} by {all_rows}) {{
        let start: {c['sums']}[{all_rows}, {n}] = {start};
        let end = start + dot(A[0:+{all_rows}, 0:+{products * k}], {tile_b});
        D[0:+{all_rows}, 0:+{n}] = end;
        E[0:+{all_rows}, 0:+1] = {c['rows_to']};
    }}
}}
"""


def kernels_of_one(c):
    n, k, products, elem = c["n"], c["k"], c["products"], c["elem"]
    rows, columns = (f"{products * k}", f"{n}") if c["turned"] else (f"{n}", f"{products * k}")
    b = f"B[i * {k} :+ {k}, 0:+{n}]" if c["turned"] else f"B[0:+{n}, i * {k} :+ {k}]"
    shape = f"{k}, {n}" if c["turned"] else f"{n}, {k}"
    factor = "Bs" if c["turned"] else "Bs.T"
    from_tmem = c["a_in_tmem"]
    copied = from_tmem and c["copied"]
    put_a = f"store(As, A[0:+128, i * {k} :+ {k}]);" if copied or not from_tmem else \
        f"P[0:+128, 0:+{k}] = A[0:+128, i * {k} :+ {k}]; fence(before_thread_sync);"
    where_a = factor_in_tmem(c, 128) if from_tmem else ""
    bits, sums = result(c, 128, n)
    if copied or not from_tmem:
        where_a += f"shared As: {elem}[128, {k}] in {c['a']};"
    copies = "copy_async(P, As);" if copied else ""
    first = ""
    if c["start"] and c["sums_copied"]:
        where_a += f"shared Cs: {c['sums']}[128, {n}] in swizzle({64 if n % 32 else 128});"
        first = f"store(Cs, C[0:+128, 0:+{n}]);"
        copies += "if i == 0 { copy_async(acc, Cs); }"
    elif c["start"]:
        first = stated(c, 1, "begin", f"{c['sums']}[128, {n}]", f"C[0:+128, 0:+{n}]") + \
            f"acc[0:+128, 0:+{n}] = begin; fence(before_thread_sync);"
    accumulate = "true" if c["start"] else "i > 0"
    tile_b = f"B[0:+{products * k}, 0:+{n}]" if c["turned"] else f"B[0:+{n}, 0:+{products * k}].T"
    params = f"A: {elem}[128, {products * k}], B: {c['elem_b']}[{rows}, {columns}], " \
        f"C: {c['sums']}[128, {n}], D: out {c['sums']}[128, {n}], E: out {c['sums']}[128, 1]"
    return f"""
kernel by_hand({params}) grid(1) threads({c['threads']})
{{
    shared Bs: {c['elem_b']}[{shape}] in {c['b']};
    mbarrier done arrivals(1);
    tmem acc: {c['sums']}[128, {n}];
    {where_a}
    {bits}
    {first}
    var phase: i32 = 0;
    for i in range(0, {products}) {{
        {put_a}
        store(Bs, {b});
        fence(async_shared);
        bar_sync();
        if tid() == 32 {{
            fence(after_thread_sync);
            {copies}
            gemm_async(acc, {'P' if from_tmem else 'As'}, {factor}, accumulate = {accumulate});
            commit(done);
        }}
        wait(done, phase);
        fence(after_thread_sync);
        phase = 1 - phase;
    }}
    {stated(c, 0, "end", f"{c['sums']}[128, {n}]", sums)}
    D[0:+128, 0:+{n}] = end;
    E[0:+128, 0:+1] = {c['rows_to']};
}}

kernel plain({params})
{{
    for (m) in tiles(128 by 128) {{
        let start: {c['sums']}[128, {n}] = {f"C[0:+128, 0:+{n}]" if c['start'] else '0'};
        let end = start + dot(A[0:+128, 0:+{products * k}], {tile_b});
        D[0:+128, 0:+{n}] = end;
        E[0:+128, 0:+1] = {c['rows_to']};
    }}
}}
"""


def has_shape(tirc, path, c, text):
    """Whether the instruction is that of the stated layout."""
    kind = c["shapes"][0][0] if c["shapes"][0] and not c["aliased"] else ""
    usual = "16x256b" if c.get("rows", 128) % 128 and not c["pair"] else "32x32b"
    done = subprocess.run([tirc, "check", path, "--kernel=by_hand", f"--arch={c['arch']}", "--receipt"],
                          capture_output=True, text=True, timeout=200, check=False)
    if kind in ("", usual) or f"load of acc: tcgen05.ld.{kind}" in done.stdout:
        return None
    return f"not by {kind}:\n{done.stdout}{done.stderr}{text}"


def check(tirc, ptxas, number, folder):
    c = draw(number)
    text = kernels(c)
    path = pathlib.Path(folder, "k.tir")
    path.write_text(text, encoding="utf-8")
    low, high = (0, 7) if "u8" in (c["elem"], c["elem_b"]) else (-4, 4)
    given = [f"A=randint:{low}:{high}", f"B=randint:{low}:{high}", "C=randint:-9:9"]
    return by_number.emulated(tirc, path, "by_hand", c, given, text) or has_shape(tirc, path, c, text) or \
        by_number.assembled(tirc, ptxas, path, "by_hand", c, text)


def main(tirc, count=32, first=0):
    by_number.run(check, tirc, count, first)
    print(f"{count} kernels")
    return 0


if __name__ == "__main__":
    sys.exit(main(str(pathlib.Path(sys.argv[1]).resolve()), *sys.argv[2:]))
