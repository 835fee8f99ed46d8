# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Holds effect.def against sync_check, which derives what operations do to memory on its own.

Usage: effects.py TIRC EFFECT_DEF

For each row of the table, a kernel writes a buffer, then runs the operation on it, then accesses it
again against what the row says, all from other warps. With the synchronisation that the row asks for
sync_check accepts it: a barrier before it, a fence if the row says ASYNC, a wait for what its last column names,
and a barrier after that unless each thread has waited for all. Without any one of these sync_check must
refuse it. A row without a kernel is an error.
"""

import pathlib
import re
import subprocess
import sys
import tempfile

# What sync_check does not look at, by row: (operation, way, operand).
NOT_CHECKED = {
    ("COPY_ASYNC", "BY_THREADS", "SLICE"): "tensors that engines access",
    ("COPY_ASYNC", "BY_MBARRIER", "SLICE"): "tensors that engines access; a shared buffer: remote_bulk.tir",
    ("PUSH", "ONLY", "SLICE"): "shared memory of another CTA: remote_stores.tir",
    ("STORE_ASYNC", "ONLY", "SLICE"): "tensors that engines access",
    ("COPY_ASYNC", "BY_RING", "SLICE"): "rings are gone when sync_check runs",
    ("COPY_ASYNC", "BY_RING", "COPY_TO"): "rings are gone when sync_check runs",
}

ROWS = "S[(4, 16, 2, 32) : (1@warpid, 2, 1, 1@laneid)]"  # of 64 x 64: 16 rows a warp
MIXED = "S[(16, 4, 2, 32) : (2, 1@warpid, 1, 1@laneid)]"  # every fourth row
SUMS = "S[(4, 2, 8, 8, 4, 2) : (1@warpid, 2, 4@laneid, 4, 1@laneid, 1)]"  # of products
PARTS = "S[(4, 2, 32) : (1@warpid, 1, 1@laneid)]"  # of 4 x 64: a row a warp
LANES = "S[(2, 32) : (1, 1@laneid)] + R[(4) : (1@warpid)]"  # of 64: all warps hold it
HALF = "S[(2, 32) : (1@warpid, 1@laneid)] + R[(2) : (2@warpid)]"  # of 64: two warps hold each half

SQUARE = ("bf16[64, 64]", "swizzle(128)", ROWS, "s[0:+64, 0:+64]")
WIDE = ("f32[64, 64]", "row_major", ROWS, "s[0:+64, 0:+64]")
COUNTS = ("i32[64, 64]", "row_major", ROWS, "s[0:+64, 0:+64]")
SCRATCH = ("f32[4, 64]", "row_major", PARTS, "s[0:+4, 0:+64]")
ONE = ("i32[1]", "row_major", "S[(1) : (1)] + R[(32, 4) : (1@laneid, 1@warpid)]", "s[0:+1]")
TALL = ("bf16[128, 64]", "swizzle(128)", "S[(4, 32, 2, 32) : (1@warpid, 2, 1, 1@laneid)]",
        "s[0:+128, 0:+64]")
WORDS = ("u32[4]", "row_major", "S[(4) : (1@warpid)] + R[(32) : (1@laneid)]", "s[0:+4]")  # a word a warp
FEW = ("f32[64, 2]", "row_major", "S[(2, 32, 2) : (1@warpid, 1@laneid, 2@warpid)]", "s[0:+64, 0:+2]")  # scales
LINE = ("i32[64]", "row_major", HALF, "s[0:+64]")

# By (operation, way, operand): the buffer, and the operation with the buffer s there. `other` is a second
# square; `wide`, `counts`, `line` are tiles.
KERNELS = {
    ("LOAD", "ONLY", "SLICE"): (SQUARE, f"let y: bf16[64, 64] in {MIXED} = load(s[0:+64, 0:+64]);"),
    ("STORE", "ONLY", "SLICE"): (SQUARE, "store(s[0:+64, 0:+64], mixed);"),
    ("ATOMIC", "ONLY", "SLICE"): (
        COUNTS, f"let y: i32[64, 64] in {MIXED} = atomic(s[0:+64, 0:+64], counts, kind = add);"),
    ("ATOMIC", "ONLY", "ATOMIC_SCRATCH"): (
        LINE, f"let y: i32[64] in {LANES} = atomic(H[0:+64], line, scratch = s, kind = add);"),
    ("CONVERT_LAYOUT", "ONLY", "REDUCE_SCRATCH"): (
        WIDE, f"let y: f32[64, 64] in {MIXED} = convert_layout(wide, scratch = s);"),
    ("REDUCE", "ONLY", "REDUCE_SCRATCH"): (
        SCRATCH, "let y: f32[1, 64] in S[(2, 32) : (1, 1@laneid)] + R[(4) : (1@warpid)] = "
        "reduce(wide, scratch = s, axis = 0, kind = sum);"),
    ("SCAN", "ONLY", "REDUCE_SCRATCH"): (
        SCRATCH, f"let y: f32[64, 64] in {ROWS} = scan(wide, scratch = s, axis = 0, kind = sum);"),
    ("DOT", "ONLY", "DOT_A"): (SQUARE, f"let y: f32[64, 64] in {SUMS} = dot(s, other, f32[64, 64](0));"),
    ("DOT", "ONLY", "DOT_B"): (SQUARE, f"let y: f32[64, 64] in {SUMS} = dot(other, s, f32[64, 64](0));"),
    ("DOT", "ONLY", "DOT_SA"): (
        FEW, f"let y: f32[64, 64] in {SUMS} = dot(other, other, f32[64, 64](0), sa = s, sb = f32[2, 64](1));"),
    ("DOT", "ONLY", "DOT_SB"): (
        FEW, "let st: shared f32[2, 64] in S[(2, 64) : (1, 2)] = permute(s, permutation = [1, 0]); "
        f"let y: f32[64, 64] in {SUMS} = dot(other, other, f32[64, 64](0), sa = f32[64, 2](1), sb = st);"),
    ("GEMM_ASYNC", "ONLY", "DOT_A"): (
        SQUARE, f"let y: f32[64, 64] in {SUMS} = gemm_async(s, other, zero);"),
    ("GEMM_ASYNC", "ONLY", "DOT_B"): (
        SQUARE, f"let y: f32[64, 64] in {SUMS} = gemm_async(other, s, zero);"),
    ("GEMM_TMEM", "ONLY", "DOT_A"): (TALL, "gemm_tmem(s, other, acc);"),
    ("GEMM_TMEM", "ONLY", "DOT_B"): (SQUARE, "gemm_tmem(tall, s, acc);"),
    ("TMEM_COPY", "ONLY", "TMEM_FROM"): (TALL, "tmem_copy(s, part);"),
    ("TMEM_ALLOC", "ONLY", "TMEM_SLOT"): (
        ONE, "let w: i32 = warpid(); let z: bool = eq(w, i32(0)); "
        "if z { tmem_alloc(s, columns = 32); }"),
    ("COPY_ASYNC", "BY_THREADS", "COPY_TO"): (SQUARE, "copy_async(s, A[0:+64, 0:+64], width = 16);"),
    ("COPY_ASYNC", "BY_MBARRIER", "COPY_TO"): (
        SQUARE, "arrive(b, bytes = 8192); copy_async(s, A[0:+64, 0:+64], mbar = b, engine = tma);"),
    ("TRY_CANCEL", "ONLY", "CANCEL_TO"): (WORDS, "arrive(b, bytes = 16); try_cancel(s, b);"),
    ("IS_CANCELED", "ONLY", "CANCEL_RESPONSE"): (WORDS, "let y: bool = is_canceled(s);"),
    ("FIRST_CTAID", "ONLY", "CANCEL_RESPONSE"): (WORDS, "let y: i32 = first_ctaid(s);"),
    ("STORE_ASYNC", "ONLY", "SEND_FROM"): (SQUARE, "store_async(D[0:+64, 0:+64], s, engine = tma);"),
}

# What waits for an operation, by its last column: (by the threads that started it, by all threads).
WAITS = {
    "NOW": ("", ""),
    "CP_ASYNC": ("commit_group();", "wait_group(groups = 0);"),
    "WGMMA": ("commit_group(engine = wgmma);", f"let done: f32[64, 64] in {SUMS} = await(y, groups = 0);"),
    "TMA": ("commit_group(engine = tma); wait_group(groups = 0, engine = tma);", ""),
    "BYTES": ("", "wait(b, i32(0));"),
    "COMMIT": ("commit(b);", "wait(b, i32(0));"),
}
# Each thread has waited for all of it: the four warps here run one product together.
SEEN_BY_ALL = {"WGMMA", "BYTES", "COMMIT"}


def table(path):
    text = pathlib.Path(path).read_text()
    done = dict(re.findall(r"^DONE\((\w+), *\w+, *(\w+)", text, re.M))
    rows = re.findall(r"^EFFECT\((\w+), *(\w+), *(\w+), *(\w+), *(\w+), *(\w+)\)", text, re.M)
    assert done and len(rows) == len(re.findall(r"^EFFECT\(", text, re.M))
    return done, rows


def kernel(row, starts, without):
    """The kernel of a row, without one part of its synchronisation."""
    op, way, operand, access, proxy, done = row
    (buffer, memory, layout, whole), text = KERNELS[op, way, operand]
    begin, end = WAITS[done]
    part = {"barrier before": "bar_sync();", "fence": "fence(of = async_shared);" if proxy == "ASYNC" else "",
            "wait": begin + "|" + end, "barrier after": "bar_sync();" if done not in SEEN_BY_ALL else ""}
    part[without] = "|" if without == "wait" else ""
    begin, end = part["wait"].split("|")
    run = f"{text} {begin}"
    if starts == "ONE":
        run = f"if leader {{ {run} }}"
    elif op == "GEMM_ASYNC":
        run = f"fence(of = wgmma); {run}"
    again = f"store({whole}, before);" if access in ("READ", "EXCHANGE") else \
        f"let after: {buffer} in {layout} = load({whole});"
    return f"""
kernel k(A: bf16[64, 64], D: out bf16[64, 64], X: {buffer}, W: f32[64, 64], C: i32[64, 64], L: i32[64], H: inout i32[64])
    grid(1) threads(128) form(synced) facts(vector16, unit_inner) shared(49152)
{{
    let s: shared {buffer} in {memory} = alloc(offset = 0);
    let other: shared bf16[64, 64] in swizzle(128) = alloc(offset = 16384);
    let tall: shared bf16[128, 64] in swizzle(128) = alloc(offset = 32768);
    let acc: tmem f32[128, 64] = tmem_buffer(i32(0));
    let part: tmem bf16[128, 64] = tmem_buffer(i32(0), column = 64);
    let bars: shared mbarrier[1] = alloc(offset = 24576);
    let b: shared mbarrier = view(bars[0]);
    let t: i32 = tid();
    let leader: bool = eq(t, i32(0));
    let before: {buffer} in {layout} = load(X{whole[1:]});
    let mixed: bf16[64, 64] in {MIXED} = load(A[0:+64, 0:+64]);
    let wide: f32[64, 64] in {ROWS} = load(W[0:+64, 0:+64]);
    let counts: i32[64, 64] in {MIXED} = load(C[0:+64, 0:+64]);
    let line: i32[64] in {LANES} = load(L[0:+64]);
    let zero: f32[64, 64] in {SUMS} = broadcast(f32(0));
    if leader {{ mbarrier_init(bars, arrivals = 1); fence(of = mbarrier_init); }}
    store(other[0:+64, 0:+64], mixed);
    fence(of = async_shared);
    bar_sync();
    store({whole}, before);
    {part["fence"]}
    {part["barrier before"]}
    {run}
    {end}
    {part["barrier after"]}
    {again}
}}
"""


def refusal(tirc, folder, text):
    """What sync_check says; empty: it accepts the kernel."""
    path = pathlib.Path(folder, "k.tir")
    path.write_text(text)
    command = [tirc, "build", "--arch=sm_90a", "--emit=tir", "--run=sync_check", "-o", "/dev/null"]
    out = subprocess.run([*command, path],
                         stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    said = [line for line in out.stderr.splitlines() if ": error[" in line]
    assert out.returncode == (2 if said else 0), out.stderr
    foreign = [line for line in said if not re.search(r"error\[E041\d\]", line)]
    assert not foreign, "\n".join(foreign) + text
    return said[0] if said else ""


def check_row(tirc, folder, row, starts):
    """What is wrong with the row."""
    said = refusal(tirc, folder, kernel(row, starts, None))
    if said:
        yield f"is refused with all that it asks for: {said}"
    asked = ["barrier before"] + (["barrier after"] if row[5] not in SEEN_BY_ALL else [])
    asked += ["fence"] if row[4] == "ASYNC" else []
    asked += ["wait"] if row[5] != "NOW" else []
    for part in asked:
        if not refusal(tirc, folder, kernel(row, starts, part)):
            yield f"is accepted without its {part}"


def main():
    tirc, path = sys.argv[1:]
    done, rows = table(path)
    wrong = checked = 0
    with tempfile.TemporaryDirectory() as folder:
        for row in rows:
            if row[:3] in NOT_CHECKED:
                continue
            if row[:3] not in KERNELS or row[5] not in WAITS:
                print(f"EFFECT({', '.join(row)}): there is no kernel for it in KERNELS, or no wait in WAITS")
                wrong += 1
                continue
            checked += 1
            for what in check_row(tirc, folder, row, done[row[5]]):
                print(f"EFFECT({', '.join(row)}): {what}")
                wrong += 1
    print(f"{checked} rows checked, {wrong} findings")
    sys.exit(1 if wrong or not checked else 0)


main()
