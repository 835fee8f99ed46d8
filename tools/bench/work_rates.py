#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Measures the rows of compiler/machine/work.def on a GPU and prints them.

    python3 work_rates.py TIRC [--device cuda] [--rounds 2000]

Each row has a kernel of one CTA. All threads read %clock64, run a loop, and read it again; the
slowest thread counts. ALONE includes the loop's own instructions, about 0.1 cycles a register.

Operations: 512 threads are four warps for each of the four schedulers, with eight independent
registers each, so latency is hidden. ALONE is what one register of a warp then costs. BESIDE is
what it adds to twelve independent fused multiply-adds, which fill the scheduler: its issue slots.
Where ALONE is larger than BESIDE, the operation waits for the special function unit, and ALONE is
what it keeps that busy.

Products: one warpgroup runs 64 x N x (64 * steps) by wgmma again and again. The time for each step
is the slope over the steps; what is over with no step left is PRODUCT_START, up to the commit, and
PRODUCT_END, from the last step to the await.

Barriers: two warpgroups hand a turn to each other, by named barriers and by mbarriers; a hand-off is
half of a round.

Tiles: one to three warpgroups compute a tile each, of 64 registers a thread, as in a round. Two columns that
are as one by two and three say that warpgroups have the units in turns; one that is less says what a warp
alone waits for itself (ALONE).

Copies: every multiprocessor brings tiles of A and B of 64 columns into a ring, by tensor copies, and frees
each slot at once. Slots times the cycles of a round are what a slot takes from when it is free until it is
full again (REFILL), where few slots are what a round waits for.
"""

import argparse
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

CLOCK = 'ptx("mov.u64 $0, %clock64;", out = u64)'
FMAS = 12
# A row of work.def (or what has none): x is the register that the operation makes anew, e and f
# are others. Plain operations that keep x in its range are counted apart.
OPERATIONS = {
    "FMA": ("fma(x, e, f)", 0),
    "ADD": ("x + e", 0),
    "MUL": ("x * e", 0),
    "MAX": ("max(x * e, f)", 1),
    "SELECT": ("x < e ? x + f : x", 1),
    "CAST": ('bitcast(f32, ptx("cvt.rn.bf16x2.f32 $0, $1, $2;", x, e, out = u32))', 0),
    "EXP2": ("exp2(x)", 0),
    "EXP": ("exp(x)", 0),
    "LOG2": ("log2(max(x, f))", 1),
    "LOG": ("log(max(x, f))", 1),
    "RSQRT": ("rsqrt(x)", 0),
    "SQRT": ("sqrt(x)", 0),
    "SIN": ("sin(x)", 0),
    "COS": ("cos(x)", 0),
    "TANH": ("tanh(x)", 0),
    "TANH_APPROX": ("tanh_approx(x)", 0),
    "ERF": ("erf(x)", 0),
    "POW": ("pow(x, e)", 0),
    "DIV": ("f / x", 0),
    "SHUFFLE": ("shuffle_bfly(x, 1)", 0),
}
REGISTERS = 8


def operation(expression, fmas):
    """A kernel whose loop runs `expression` on each register, and `fmas` others beside it."""
    names = [f"x{i}" for i in range(REGISTERS)]
    variable = re.compile(r"\bx\b")
    lines = [f"    var {x}: f32 = X[tid()] + {1 + i};" for i, x in enumerate(names)]
    lines += [f"    var y{i}: f32 = X[tid()] * {i};" for i in range(fmas)]
    body = []
    for x in names:
        if expression:
            body.append(f"        {x} = {variable.sub(x, expression)};")
        body += [f"        y{i} = fma(y{i}, e, f);" for i in range(fmas)]
    ends = " + ".join(names + [f"y{i}" for i in range(fmas)])
    return f"""kernel rate(X: f32[512], C: out u64[512], Y: out f32[512], R: i32) grid(1) threads(512)
{{
    let e = X[tid()] + 0.5;
    let f = X[tid()] + 1.25;
{chr(10).join(lines)}
    bar_sync();
    let begin = {CLOCK};
    for i in range(R) {{
{chr(10).join(body)}
    }}
    C[tid()] = {CLOCK} - begin;
    Y[tid()] = {ends};
}}
"""


def product(columns, steps):
    """A kernel that runs products of `steps` * 64 along K, and adds up what their parts take."""
    calls = "\n".join(f"        gemm_async(acc, As[{i}], Bs[{i}].T);" for i in range(steps))
    return f"""kernel rate(A: bf16[{64 * steps}, 64], B: bf16[{columns * steps}, 64], C: out u64[128],
            S: out u64[128], D: out f32[64, {columns}], R: i32) grid(1) threads(128)
{{
    shared As: bf16[{steps}, 64, 64] in swizzle(128);
    shared Bs: bf16[{steps}, {columns}, 64] in swizzle(128);
    for i in range(0, {steps}, unroll) {{
        store(As[i], A[i * 64:+64, 0:+64]);
        store(Bs[i], B[i * {columns}:+{columns}, 0:+64]);
    }}
    fence(async_shared);
    bar_sync();
    var acc: f32[64, {columns}] in fragment(wgmma) = 0;
    var started: u64 = 0;
    var all: u64 = 0;
    for i in range(R) {{
        let begin = {CLOCK};
        fence(wgmma);
{calls}
        commit_group(engine = wgmma);
        let middle = {CLOCK};
        await(acc);
        started += middle - begin;
        all += {CLOCK} - begin;
    }}
    C[tid()] = all;
    S[tid()] = started;
    D[0:+64, 0:+{columns}] = acc;
}}
"""


NAMED = f"""kernel rate(C: out u64[256], R: i32) grid(1) threads(256)
{{
    bar_sync();
    let begin = {CLOCK};
    if tid() < 128 {{
        for i in range(R) {{ bar_arrive(id = 1, threads = 256); bar_sync(id = 2, threads = 256); }}
    }} else {{
        for i in range(R) {{ bar_sync(id = 1, threads = 256); bar_arrive(id = 2, threads = 256); }}
    }}
    C[tid()] = {CLOCK} - begin;
}}
"""
MBARRIER = f"""kernel rate(C: out u64[256], R: i32) grid(1) threads(256)
{{
    mbarrier ping arrivals(128);
    mbarrier pong arrivals(128);
    bar_sync();
    let begin = {CLOCK};
    if tid() < 128 {{
        for i in range(R) {{ arrive(ping); wait(pong, i % 2); }}
    }} else {{
        for i in range(R) {{ wait(ping, i % 2); arrive(pong); }}
    }}
    C[tid()] = {CLOCK} - begin;
}}
"""


TILES = {
    "FMA": "x = x * e + f;",
    "MAX": "x = max(x * e, f);",
    "SELECT": "x = where(x < f, x * e, f);",
    "CAST": "x = f32(bf16(x)) * e;",
    "EXP2": "x = exp2(x * e);",
    "TANH": "x = tanh(x * e);",
    "TANH_APPROX": "x = tanh_approx(x * e);",
    "row max": "x = x * e + max(x, axis = 1);",
    "row sum": "x = x * e + sum(x, axis = 1) * 0.001;",
    "fixed softmax": "let p, s = softmax.fixed(x, 0.1, e); x = x * e + f32(bf16(p)) + s * f;",
    "lazy softmax": "let p, n, s, a = softmax.lazy(x, 0.1, f, e, 0.0, 8.0); x = x * e + f32(bf16(p)) + (n + s + a) * f;",
    "gelu": "x = nn.gelu_tanh(x * e + f);",
}


def tile(body, groups):
    """A kernel whose warpgroups have a tile of 64 registers a thread each."""
    rows = 64 * groups
    return f"""import "tir/softmax.tir" as softmax;
import "tir/nn.tir" as nn;
kernel rate(X: f32[{rows}, 128], C: out u64[{128 * groups}], Y: out f32[{rows}, 128], R: i32) grid(1) threads({128 * groups})
{{
    var x: f32[{rows}, 128] in fragment(wgmma) = X[0:+{rows}, 0:+128];
    let e = X[0, 0] + 0.5;
    let f = X[0, 1] + 0.25;
    bar_sync();
    let begin = {CLOCK};
    for i in range(R) {{ {body} }}
    C[tid()] = {CLOCK} - begin;
    Y[0:+{rows}, 0:+128] = x;
}}
"""


COLUMNS, LINES = 12, 11  # of the tiles; a multiprocessor each
COPIES = ((128, 128, 3), (128, 128, 6), (128, 256, 4), (192, 128, 3), (64, 64, 8), (64, 192, 4))


def copies(m, n, slots):
    """A kernel that only brings tiles of m rows of A and n of B."""
    return f"""kernel rate(A: bf16[{m * COLUMNS}, K], B: bf16[{n * LINES}, K], C: out u64[{COLUMNS * LINES}], R: i32)
    grid({COLUMNS * LINES}) threads(64)
{{
    shared As: bf16[{slots}, {m}, 64] in swizzle(128);
    shared Bs: bf16[{slots}, {n}, 64] in swizzle(128);
    mbarrier full[{slots}] arrivals(1);
    mbarrier empty[{slots}] arrivals(1);
    let x = i64(cta_id() % {COLUMNS}) * {m};
    let y = i64(cta_id() / {COLUMNS}) * {n};
    role load warps(1) {{
        var s: stage({slots}, phase = 1);
        for k in range(0, i64(R) * 64, 64) {{
            wait(empty[s], s.phase);
            if elect_sync() {{
                expect_tx(full[s], bytes(As[s]) + bytes(Bs[s]));
                copy_async(As[s], A[x:+{m}, k:+64], mbar = full[s], engine = tma);
                copy_async(Bs[s], B[y:+{n}, k:+64], mbar = full[s], engine = tma);
            }}
            s.advance();
        }}
    }}
    role take warps(1) {{
        var s: stage({slots});
        let begin = {CLOCK};
        for k in range(0, i64(R) * 64, 64) {{
            wait(full[s], s.phase);
            if laneid() == 0 {{ arrive(empty[s]); }}
            s.advance();
        }}
        if laneid() == 0 {{ C[cta_id()] = {CLOCK} - begin; }}
    }}
}}
"""


def read_u64(path):
    """The elements of an array in a .npy file of version 1."""
    data = path.read_bytes()
    start = 10 + struct.unpack("<H", data[8:10])[0]
    return struct.unpack(f"<{(len(data) - start) // 8}Q", data[start:])


class Card:
    def __init__(self, tirc, device, folder):
        self.tirc, self.device, self.folder = tirc, device, pathlib.Path(folder)

    def run(self, text, rounds, outputs=("C",), options=()):
        """The largest number of each output, for one round."""
        source = self.folder / "rate.tir"
        source.write_text(text)
        saved = [f"{name}=zeros,save={self.folder / name}.npy" for name in outputs]
        done = subprocess.run([self.tirc, "run", source, "--device", self.device, "--arch=sm_90a", f"R={rounds}", *options, *saved],
                              capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"{text}\n{done.stderr}")
        return [max(read_u64(self.folder / f"{name}.npy")) / rounds for name in outputs]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tirc")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--rounds", type=int, default=2000)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        card = Card(args.tirc, args.device, folder)
        warps = 4 * REGISTERS  # of a scheduler, times the registers of each

        def cost(expression, fmas):
            return card.run(operation(expression, fmas), args.rounds)[0] / warps

        full = cost("", FMAS)
        print(f"{'operation':14} {'alone':>7} {'beside':>7}   cycles for a register of a warp")
        for name, (expression, plain) in OPERATIONS.items():
            alone = cost(expression, 0)
            print(f"{name:14} {alone:7.2f} {cost(expression, FMAS) - full - plain:7.2f}", flush=True)
        print(f"\n{'product':14} {'start':>7} {'all':>7}   cycles, by steps of 64 along K")
        for columns in (64, 128, 256):
            for steps in (1, 2, 3):
                both = card.run(product(columns, steps), args.rounds, ("C", "S"))
                print(f"64x{columns}x{64 * steps:<8} {both[1]:7.1f} {both[0]:7.1f}", flush=True)
        print(f"\n{'hand-off':14} {'cycles':>7}")
        print(f"{'named barrier':14} {card.run(NAMED, args.rounds)[0] / 2:7.1f}")
        print(f"{'mbarrier':14} {card.run(MBARRIER, args.rounds)[0] / 2:7.1f}")
        print(f"\n{'tile':14} {'1':>7} {'2':>7} {'3':>7}   cycles for a register of each warpgroup's thread")
        for name, body in TILES.items():
            print(f"{name:14}", *(f"{card.run(tile(body, groups), args.rounds)[0] / 64:7.2f}" for groups in (1, 2, 3)), flush=True)
        print(f"\n{'copies':14} {'round':>7} {'refill':>7}   cycles")
        for m, n, slots in COPIES:
            few, many = (rounds * card.run(copies(m, n, slots), rounds, options=(f"K={rounds * 64}",))[0] for rounds in (32, 96))
            print(f"{f'{m} x {n}, {slots}':14} {(many - few) / 64:7.1f} {slots * (many - few) / 64:7.1f}", flush=True)


if __name__ == "__main__":
    main()
