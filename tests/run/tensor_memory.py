#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products in tensor memory of every kind, by explicit kernels that are drawn at random.

usage: tensor_memory.py TIRC [COUNT [FIRST]]

Kernel number n has element types, sizes, layouts of its operands, A in shared or tensor memory, a
number of threads and of products that follow from n alone. On the emulator, under full checks and
a schedule that also follows from n, it must give exactly what the interpreter makes of the product
as a tile program, and ptxas must take it. Where there is no ptxas, it is left out.
"""

import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile

KINDS = {"f16": ("f32", 2), "bf16": ("f32", 2), "tf32": ("f32", 4), "e4m3": ("f32", 1),
         "e5m2": ("f32", 1), "i8": ("i32", 1), "u8": ("i32", 1)}
SCHEDULES = ["lazy", "eager", "adversarial"]


def draw(number):
    """What varies, in words that the kernel is made of."""
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
            "start": r.random() < 0.3, "schedule": r.choice([*SCHEDULES, f"random:{number}"])}


def kernels(c):
    n, k, products, elem = c["n"], c["k"], c["products"], c["elem"]
    rows, columns = (f"{products * k}", f"{n}") if c["turned"] else (f"{n}", f"{products * k}")
    b = f"B[i * {k} :+ {k}, 0:+{n}]" if c["turned"] else f"B[0:+{n}, i * {k} :+ {k}]"
    shape = f"{k}, {n}" if c["turned"] else f"{n}, {k}"
    factor = "Bs" if c["turned"] else "Bs.T"
    from_tmem = c["a_in_tmem"]
    put_a = f"P[0:+128, 0:+{k}] = A[0:+128, i * {k} :+ {k}]; fence(before_thread_sync);" \
        if from_tmem else f"store(As, A[0:+128, i * {k} :+ {k}]);"
    where_a = f"tmem P: {elem}[128, {k}];" if from_tmem else \
        f"shared As: {elem}[128, {k}] in {c['a']};"
    first = "acc[0:+128, 0:+{0}] = C[0:+128, 0:+{0}]; fence(before_thread_sync);".format(n) \
        if c["start"] else ""
    accumulate = "true" if c["start"] else "i > 0"
    tile_b = f"B[0:+{products * k}, 0:+{n}]" if c["turned"] else f"B[0:+{n}, 0:+{products * k}].T"
    params = f"A: {elem}[128, {products * k}], B: {elem}[{rows}, {columns}], " \
        f"C: {c['sums']}[128, {n}], D: out {c['sums']}[128, {n}]"
    return f"""
kernel by_hand({params}) grid(1) threads({c['threads']})
{{
    shared Bs: {elem}[{shape}] in {c['b']};
    mbarrier done arrivals(1);
    tmem acc: {c['sums']}[128, {n}];
    {where_a}
    {first}
    var phase: i32 = 0;
    for i in range(0, {products}) {{
        {put_a}
        store(Bs, {b});
        fence(async_shared);
        bar_sync();
        if tid() == 32 {{
            fence(after_thread_sync);
            gemm_async(acc, {'P' if from_tmem else 'As'}, {factor}, accumulate = {accumulate});
            commit(done);
        }}
        wait(done, phase);
        fence(after_thread_sync);
        phase = 1 - phase;
    }}
    D[0:+128, 0:+{n}] = acc[0:+128, 0:+{n}];
}}

kernel plain({params})
{{
    for (m) in tiles(128 by 128) {{
        let start: {c['sums']}[128, {n}] = {f"C[0:+128, 0:+{n}]" if c['start'] else '0'};
        D[0:+128, 0:+{n}] = start + dot(A[0:+128, 0:+{products * k}], {tile_b});
    }}
}}
"""


def run(command, text):
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
    if done.returncode:
        return f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}{text}"
    return None


def check(tirc, ptxas, number, folder):
    c = draw(number)
    text = kernels(c)
    path = pathlib.Path(folder, "k.tir")
    path.write_text(text, encoding="utf-8")
    low, high = (0, 7) if c["elem"] == "u8" else (-4, 4)
    wrong = run([tirc, "run", path, "--kernel=by_hand", "--arch=sm_100a", "--device=emu",
                 "--emu-check=full", f"--schedule={c['schedule']}", f"A=randint:{low}:{high}",
                 f"B=randint:{low}:{high}", "C=randint:-9:9", "--check=0",
                 "--check-against=:plain"], text)
    if wrong or not ptxas:
        return wrong
    ptx = os.path.join(folder, "k.ptx")
    return run([tirc, "build", path, "--kernel=by_hand", "--arch=sm_100a", "--emit=ptx", "-o", ptx],
               text) or run([ptxas, "-arch=sm_100a", "-o", os.devnull, ptx], text)


def main(tirc, count=24, first=0):
    ptxas = shutil.which("ptxas") or shutil.which("/usr/local/cuda/bin/ptxas")
    with tempfile.TemporaryDirectory() as folder:
        for number in range(int(first), int(first) + int(count)):
            wrong = check(tirc, ptxas, number, folder)
            if wrong:
                print(f"kernel {number}: {wrong}")
                return 1
    print(f"{count} kernels")
    return 0


if __name__ == "__main__":
    sys.exit(main(str(pathlib.Path(sys.argv[1]).resolve()), *sys.argv[2:]))
