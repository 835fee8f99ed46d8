#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensor copies of rows by number, by explicit kernels that are drawn at random.

usage: gathered_copies.py TIRC [COUNT [FIRST]]

Kernel number n has elements, sizes, a layout, a list of rows in a tensor or a shared buffer, and threads that
follow from n alone: one thread of the CTA starts the copies, or one of a role that goes round a ring, or of a
cluster, where both CTAs get the rows, or where the mbarrier is that of the first CTA of the pair. Rows are repeated
and lie outside of the tensor. On the emulator, under full checks and a schedule that also follows from n, it must
give exactly what the interpreter makes of the tile program, and ptxas must take it. Where there is no ptxas, it is
left out.
"""

import pathlib
import random
import sys

import by_number

WIDTH = {"i8": 1, "u8": 1, "f16": 2, "bf16": 2, "i32": 4, "f32": 4, "tf32": 4, "f64": 8}
SCHEDULES = ["lazy", "eager", "adversarial"]


def draw(number):
    r = random.Random(number)
    elem = r.choice(list(WIDTH))
    form = r.choice(["thread", "thread", "ring", "multicast", "pair"])
    archs = ["sm_100a", "sm_103a", "sm_110a"]
    swizzle = r.choice([0, 32, 64, 128])
    row = (swizzle or r.choice([32, 64, 128, 256])) * r.choice([1, 1, 2])
    rows = 4 * r.choice([1, 2, 3, 5, 8, 16])
    # Columns beyond the swizzle's are further blocks, each of all rows, which begin with a pattern.
    if swizzle and (row > swizzle or form == "ring"):
        rows = -(-rows * swizzle // 1024) * 1024 // swizzle
    return {"elem": elem, "form": form, "number": number, "rows": rows, "columns": row // WIDTH[elem],
            "layout": f"in swizzle({swizzle})" if swizzle else "", "parts": r.choice([1, 1, 2, 3]),
            "index": r.choice(["i32", "i32", "i64", "u32"]), "stored": r.random() < 0.5,
            "arch": r.choice(archs if form in ("multicast", "pair") else [*archs, "sm_120a"]),
            "m": r.choice([1, 3, 17, 64, 200]), "tiles": r.choice([1, 2, 3]),
            "past": r.choice([0, 0, 1, 5]), "schedule": r.choice([*SCHEDULES, f"random:{number}"])}


def kernels(c):
    rows, columns, tensor = c["rows"], c["columns"], "f32" if c["elem"] == "tf32" else c["elem"]
    all_columns = columns * c["parts"]
    params = f"A: {tensor}[M, {all_columns}], I: {c['index']}[N], Y: out {c['elem']}[N, {all_columns}]"
    tile = f"shared As: {c['elem']}[{rows}, {columns}] {c['layout']};"
    listed = f"load(I[n:+{rows}], pad = {c['index']}(1000000))"
    named = f"Is[0:+{rows}]" if c["stored"] else listed
    lists = f"shared Is: {c['index']}[{rows}];" if c["stored"] else ""
    store = f"Is[0:+{rows}] = {listed};" if c["stored"] else ""
    part = f"k:+{columns}"
    plain = f"""
kernel plain({params})
{{
    for n in tiles(N by {rows}) {{
        for k in range(0, {all_columns}, {columns}) {{
            Y[n:+{rows}, {part}] = {c['elem']}(A[{listed}, {part}]);
        }}
    }}
}}
"""
    if c["form"] == "ring":
        stored = f"{store} warp_sync();" if store else ""
        after = "warp_sync();" if store else ""
        return f"""
kernel hand({params})
{{
    shared As: {c['elem']}[2, {rows}, {columns}] {c['layout']};
    {lists}
    mbarrier full[2] arrivals(1);
    mbarrier empty[2] arrivals(4);
    role load warps(1) {{
        var s: stage(2, phase = 1);
        for n in tiles(N by {rows}) {{
            {stored}
            for k in range(0, {all_columns}, {columns}) {{
                wait(empty[s], s.phase);
                if elect_sync() {{
                    expect_tx(full[s], bytes(As[s]));
                    copy_async(As[s], A[{named}, {part}], mbar = full[s], engine = tma);
                }}
                s.advance();
            }}
            {after}
        }}
    }}
    role keep warps(4) {{
        var s: stage(2);
        for n in tiles(N by {rows}) {{
            for k in range(0, {all_columns}, {columns}) {{
                wait(full[s], s.phase);
                Y[n:+{rows}, {part}] = load(As[s]);
                fence(async_shared);
                warp_sync();
                if laneid() == 0 {{ arrive(empty[s]); }}
                s.advance();
            }}
        }}
    }}
}}
{plain}"""
    if c["form"] == "thread":
        start = f"""if tid() == 64 {{
                expect_tx(full, bytes(As));
                copy_async(As, A[{named}, {part}], mbar = full, engine = tma);
            }}"""
        wait, meet, grid = "wait(full, phase);", "bar_sync();", f"grid(ceildiv(N, {rows})) threads(128)"
    elif c["form"] == "multicast": # the first CTA brings the rows of both
        start = f"""if tid() == 64 {{
                expect_tx(full, bytes(As));
                if cta_rank() == 0 {{
                    copy_async(As, A[{named}, {part}], mbar = full, engine = tma, ctas = 3);
                }}
            }}"""
        wait, meet, grid = "wait(full, phase);", "cluster_sync();", f"grid(2 * ceildiv(N, {rows})) cluster(2) threads(128)"
    else: # each brings its own, and the first hears of all
        start = f"""if tid() == 64 {{
                if cta_rank() == 0 {{ expect_tx(full, 2 * bytes(As)); }}
                copy_async(As, A[{named}, {part}], mbar = remote(full, 0), engine = tma);
                if cta_rank() == 0 {{ wait(full, phase); arrive(come, cta = 1); arrive(come); }}
            }}"""
        wait, meet, grid = "wait(come, phase);", "cluster_sync();", f"grid(2 * ceildiv(N, {2 * rows})) cluster(2) threads(128)"
    number = "i64(cta_id()) / 2" if c["form"] == "multicast" else "i64(cta_id())"
    keep = f"Y[n:+{rows}, {part}] = load(As);"
    if c["form"] == "multicast":
        keep = f"if cta_rank() == 1 {{ {keep} }}" if c["number"] % 2 else keep
    return f"""
kernel hand({params}) {grid}
{{
    {tile}
    {lists}
    mbarrier full arrivals(1);
    {"mbarrier come arrivals(1);" if c['form'] == 'pair' else ''}
    let n = {number} * {rows};
    var phase: i32 = 0;
    {store}
    {meet if store or c['form'] != 'thread' else ''}
    for k in range(0, {all_columns}, {columns}) {{
            {start}
            {wait}
            phase = 1 - phase;
            {keep}
            fence(async_shared);
            {meet}
    }}
}}
{plain}"""


def check(tirc, ptxas, number, folder):
    c = draw(number)
    text = kernels(c)
    path = pathlib.Path(folder, "k.tir")
    path.write_text(text, encoding="utf-8")
    low = 0 if c["index"] == "u32" else -2
    given = [f"M={c['m']}", f"N={c['rows'] * c['tiles'] + c['past']}",
             f"A=randint:{0 if c['elem'] == 'u8' else -100}:100", f"I=randint:{low}:{c['m'] + 2}"]
    return by_number.emulated(tirc, path, "hand", c, given, text) or \
        by_number.assembled(tirc, ptxas, path, "hand", c, text)


def main(tirc, count=32, first=0):
    by_number.run(check, tirc, count, first)
    print(f"{count} kernels")
    return 0


if __name__ == "__main__":
    sys.exit(main(str(pathlib.Path(sys.argv[1]).resolve()), *sys.argv[2:]))
