#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every operation that has optional operands, with and without each of them, through all passes.

usage: optional_operands.py TIRC

The table of operations says which ones have some; for each of those a program is given here. A
program may be refused in the words of its author, but not by the checks between passes, and the
fewest operands that an operation needs must be taken. Scratch buffers are the passes' own.
"""

import itertools
import os
import re
import subprocess
import sys
import tempfile

EXPLICIT = ("kernel k(A: f32[64, 64], O: inout f32[64, 64], X: f32[2, 8, 8, 32]) grid({grid}) "
            "threads(128){more}")
# Copies that lower_tile leaves: sync_check, which runs before it, does not see what they bring.
UNSEEN = ("tma_load", "tma_gather", "tma_pixels", "bulk_load")
# Operands, sums and what tells that they are there, of a product in tensor memory.
TENSOR = ("shared a: bf16[128, 64] in swizzle(128);\nshared b: bf16[128, 64] in swizzle(128);\n"
          "mbarrier done arrivals(1);\ntmem acc: f32[128, 128];\n")
# The same of e4m3, with scales.
SCALED = ("shared a: e4m3[128, 64] in swizzle(64);\nshared b: e4m3[128, 64] in swizzle(64);\n"
          "shared s: ue8m0[32, 16];\nmbarrier done arrivals(1);\ntmem acc: f32[128, 128];\n"
          "tmem t: ue8m0[128, 4];\nif tid() == 0 { copy_async(t, s); ")
SUMS = "wait(done, 0);\nfence(after_thread_sync);\nO[0:+128, 0:+128] = acc[0:+128, 0:+128];"
# A request for the work of another CTA.
CANCEL = "shared response: u32[2, 4];\nmbarrier bar[2] arrivals(1);\n"
REQUEST = "if tid() == 0 { expect_tx(bar[0], 16); try_cancel(response[0], bar[0]); }\nwait(bar[0], 0);\n"
# operation -> target, what stands before, the call, its options, what stands behind
PROGRAMS = {
    "convert_layout": ("sm_80", "let x: f32[128] in S[(4, 32) : (1@warpid, 1@laneid)] = "
                       "A[0, 0:+128];", "let y: f32[128] in S[(32, 4) : (1@laneid, 1@warpid)] = "
                       "convert_layout(x{});",
                       {}, "O[0, 0:+128] = y;"),
    "reduce": ("sm_80", "let x = A[:, :];", "let y = reduce(x{}, axis = 0, sum);", {},
               "O[0:1, :] = y;"),
    "scan": ("sm_80", "let x = A[:, :];", "let y = scan(x{}, axis = 0, sum);", {}, "O[:, :] = y;"),
    "load": ("sm_80", "", "let y = load(A[:, :]{});",
             {"pad": "1.0", "mask": "iota(64)[None, :] < 9"}, "O[:, :] = y;"),
    "pixel_index": ("sm_80", "", "let i: i64[64] = pixel_index(X{}, 0, 0, 0, axis = 1, low = [0, 0], high = [0, 0]);",
                    {"dz": "0", "dy": "1", "dx": "2"}, "O[:, 0] = f32(i);"),
    "store": ("sm_80", "let x = A[:, :];", "store(O[:, :], x{});",
              {"mask": "iota(64)[:, None] < 9"}, ""),
    "dot": ("sm_80", "let x = A[:, :];", "let y = dot(x, x{});", {}, "O[:, :] = y;"),
    "dot with scales": ("sm_80", "let x = e4m3(A[:, :]);\nlet s = ue8m0(A[:, 0:+2]);",
                        "let y = dot_scaled(x, s, x, s.T{});", {}, "O[:, :] = y;"),
    "atomic": ("sm_80", "let x = A[:, :];", "let y = atomic(O[:, :], x{}, kind = add);",
               {"mask": "iota(64)[None, :] < 9"}, "O[:, :] = y;"),
    "copy_async": ("sm_90a", "shared s: f32[64, 64];\n", "copy_async(s, A[:, :]{});",
                   {"pred": "cta_id() == 0"},
                   "commit_group(); wait_group(0); bar_sync(); O[:, :] = load(s);"),
    "copy_async at an mbarrier":
        ("sm_90a", "shared s: f32[64, 64];\nmbarrier full[1] arrivals(1);\ncluster_sync();\n"
         "if warpid() == 0 {\nif elect_sync() {\nexpect_tx(full[0], bytes(s));\n",
         "copy_async(s, A[:, :], mbar = full[0]{}, engine = tma);", {"ctas": "1 << cta_rank()"},
         "} }\nwait(full[0], 0);\nO[:, :] = load(s);\ncluster_sync();"),
    "push": ("sm_90a", "shared s: f32[128];\nmbarrier full[1] arrivals(1);\n"
             "if tid() == 0 { expect_tx(full[0], bytes(s)); }\n",
             "push(remote(s, 1 - cta_rank())[tid()], 1.0, mbar = full[0]{});", {},
             "wait(full[0], 0);\nO[tid() / 64, tid() % 64] = s[tid()];\ncluster_sync();"),
    "st_async": ("sm_90a", "shared s: f32[128];\nmbarrier full[1] arrivals(1);\n",
                 "st_async(remote(s, 1), tid() * 4, full, 0, 1.0, 1{});", {"pred": "tid() < 9"},
                 "cluster_sync();"),
    "mbarrier_init": ("sm_90a", "let bars: shared mbarrier[2] = alloc();\nif tid() == 0 {",
                      "mbarrier_init(bars{}, arrivals = 1);", {"at": "tid() * 8"}, "}"),
    "arrive": ("sm_90a", "mbarrier bar[2] arrivals(128);\n", "arrive(bar[0]{});",
               {"cta": "cta_rank()"}, "wait(bar[0], 0); cluster_sync();"),
    "wait": ("sm_90a", "mbarrier bar[2] arrivals(128);\narrive(bar[0]);\n",
             "wait(bar[0]{}, 0);", {},
             "cluster_sync();"),
    "test_wait": ("sm_90a", "mbarrier bar[2] arrivals(128);\narrive(bar[0]);\n",
                  "let seen = test_wait(bar[0]{}, 0);", {},
                  "wait(bar[0], 0); if seen { O[0, 0] = 1; }\ncluster_sync();"),
    "try_cancel": ("sm_100a", CANCEL + "if tid() == 0 {\nexpect_tx(bar[0], 16);", "try_cancel(response[0], bar[0]{}); }", {},
                   "wait(bar[0], 0); if is_canceled(response[0]) { O[0, 0] = 1; }"),
    "is_canceled": ("sm_100a", CANCEL + REQUEST, "let yes = is_canceled(response[0]{});", {},
                    "if yes { O[0, 0] = 1; }"),
    "first_ctaid": ("sm_100a", CANCEL + REQUEST, "let to = first_ctaid(response[0]{});", {},
                    "if to > 0 { O[0, 0] = 1; }"),
    "ld": ("sm_80", "", "let y: f32 = ld(A, tid() * 4{}, width = 4);", {"pred": "tid() < 9"},
           "st(O, tid() * 4, y, width = 4);"),
    "st": ("sm_80", "", "st(O, tid() * 4, 1.0{}, width = 4);", {"pred": "tid() < 9"}, ""),
    "atom": ("sm_80", "", "let y: f32 = atom(O, tid() * 4, 1.0{}, kind = add);",
             {"pred": "tid() < 9"}, "st(O, tid() * 4, y, width = 4);"),
    "red": ("sm_90a", "", "red(O, tid() * 8{}, 1.0, 2.0, kind = add, width = 8);",
            {"pred": "tid() < 9"}, ""),
    "cp_async": ("sm_80", "shared s: f32[128];\n",
                 "cp_async(s, tid() * 4, A, tid() * 4{}, width = 4);",
                 {"pred": "tid() < 9"}, "commit_group(); wait_group(0); bar_sync();"),
    "address": ("sm_80", "shared s: f32[128];\n", "let y = address(s{});", {"at": "tid() * 4"},
                "st(O, tid() * 4, bitcast(f32, y), width = 4);"),
    "wgmma": ("sm_90a", "shared s: bf16[64, 64] in swizzle(128);\nlet d = i64(address(s) >> 4) | "
              "4611686293305294848;\n{a}fence(wgmma);\n",
              "let {outs} = wgmma(d{}, {ins}, kind = bf16, cols = 8, depth = 16, steps = 1);",
              {"a": "d", "scale": "tid() < 999"},
              "commit_group(engine = wgmma); wait_group(0, engine = wgmma);"),
    "mma": ("sm_80", "", "let r0: f32, r1: f32, r2: f32, r3: f32 = mma(i32(0), i32(1), i32(2), i32(3), i32(4), i32(5), "
            "f32(0), f32(0), f32(0), f32(0), kind = bf16, cols = 8, depth = 16);", {}, ""),
    "mma with scales": ("sm_120a", "let s = i32(0);", "let r0: f32, r1: f32, r2: f32, r3: f32 = mma(i32(0), i32(1), i32(2), "
                        "i32(3), i32(4), i32(5), f32(0), f32(0), f32(0), f32(0){}, kind = e4m3, cols = 8, depth = 32, "
                        "scales = 1);", {"sa": "s", "sb": "s"}, ""),
    "gemm_tmem": ("sm_100a", TENSOR + "if tid() == 0 {", "gemm_async(acc, a, b.T{});",
                  {"accumulate": "A[0, 0] < 9"}, "commit(done); }\n" + SUMS),
    "gemm_tmem with scales": ("sm_100a", SCALED, "gemm_async(acc, a, b.T, t[0:+128, 2:+2], "
                              "t[0:+128, 0:+2].T{});", {"accumulate": "A[0, 0] < 9"},
                              "commit(done); }\n" + SUMS),
    "commit": ("sm_100a", TENSOR + "if tid() == 0 {\ngemm_async(acc, a, b.T, accumulate = false);",
               "commit(done{});", {"at": "i32(0)"}, "}\n" + SUMS),
    "tcgen05_mma": ("sm_100a", "shared b: bf16[128, 64] in swizzle(128);\n"
                    "let m = i64(address(b) >> 4) | 4611756387171565568;\nif tid() == 0 {",
                    "tcgen05_mma(i32(0), m, m{}, kind = bf16, cols = 128, depth = 16, steps = 1);",
                    {"accumulate": "A[0, 0] < 9", "sa": "i32(256)", "sb": "i32(260)"}, "}"),
    "tcgen05_mma with scales":
        ("sm_100a", "shared b: e4m3[128, 128] in swizzle(128);\n"
         "let m = i64(address(b) >> 4) | 4611756387171565568;\nif tid() == 0 {",
         "tcgen05_mma(i32(0), m, m{}, sa = i32(256), sb = i32(260), kind = e4m3, cols = 128, "
         "depth = 32, steps = 1, scales = 1, a_scale = 3);", {"accumulate": "A[0, 0] < 9"}, "}"),
    "tma_load": ("sm_90a", "shared s: f32[32, 32];\nmbarrier full[1] arrivals(1);\n"
                 "cluster_sync();\nif warpid() == 0 {\nif elect_sync() {\nexpect_tx(full[0], bytes(s));\n",
                 "tma_load(s, 0, full, 0{}, A[0:+32, 0:+32], swizzle = 0);",
                 {"ctas": "1 << cta_rank()"}, "} }\nwait(full[0], 0);\ncluster_sync();"),
    "tma_gather": ("sm_100a", "shared s: f32[4, 32];\nmbarrier full[1] arrivals(1);\n"
                   "if warpid() == 0 {\nif elect_sync() {\nexpect_tx(full[0], bytes(s));\n",
                   "tma_gather(s, 0, full, 0{}, i32(1), i32(2), i32(3), A[0, 0:+32], swizzle = 0);",
                   {"ctas": "u16(1)"}, "} }\nwait(full[0], 0);"),
    "tma_pixels": ("sm_90a", "shared s: f32[16, 32];\nmbarrier full[1] arrivals(1);\n"
                   "cluster_sync();\nif warpid() == 0 {\nif elect_sync() {\nexpect_tx(full[0], bytes(s));\n",
                   "tma_pixels(s, 0, full, 0{}, X[0, 0, 0, 0:+32], swizzle = 0, low = [0, 0], "
                   "high = [0, 0], pixels = 16);",
                   {"ctas": "1 << cta_rank()", "dz": "0", "dy": "0", "dx": "0"},
                   "} }\nwait(full[0], 0);\ncluster_sync();"),
    "bulk_load": ("sm_90a", "shared s: f32[128];\nmbarrier full[1] arrivals(1);\ncluster_sync();\n"
                  "if warpid() == 0 {\nif elect_sync() {\nexpect_tx(full[0], bytes(s));\n",
                  "bulk_load(s, 0, full, 0, A, 0, 512{});", {"ctas": "1 << cta_rank()"},
                  "} }\nwait(full[0], 0);\ncluster_sync();"),
}


def with_optional_operands(tirc):
    text = subprocess.run([tirc, "--help-ops"], capture_output=True, text=True).stdout
    return re.findall(r"^\| `(\w+)\([^`]*\[(?!slice)\w+\]", text, re.MULTILINE)


def program(name, chosen):
    target, before, call, options, behind = PROGRAMS[name]
    clustered = target == "sm_90a"
    given = "".join(f", {key} = {options[key]}" for key in chosen)
    if name == "wgmma":
        kept = 0 if "a" in chosen else 4
        ins = [f"i32({i})" for i in range(kept)] + ["f32(0)"] * 4
        call = call.replace("{ins}", ", ".join(ins)).replace(
            "{outs}", ", ".join(f"r{i}: f32" for i in range(4)))
        before = before.replace("{a}", "")
    shared = [line for line in before.split("\n") if line.startswith(("shared", "mbarrier", "tmem"))]
    rest = [line for line in before.split("\n") if line not in shared]
    head = EXPLICIT.format(grid=2 if clustered else 1, more=" cluster(2)" if clustered else "")
    body = "\n    ".join(shared + rest + [call.replace("{}", given), behind])
    return target, f"{head}\n{{\n    {body}\n}}\n"


def main():
    tirc, failed, count = sys.argv[1], 0, 0
    for op in with_optional_operands(tirc):
        if op not in PROGRAMS:
            print(f"{op} has optional operands and no program here")
            failed += 1
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "program.tir")
        for name, (_, _, _, options, _) in PROGRAMS.items():
            for n in range(len(options) + 1):
                for chosen in itertools.combinations(options, n):
                    target, text = program(name, chosen)
                    with open(path, "w", encoding="utf-8") as file:
                        file.write(text)
                    done = subprocess.run([tirc, "check", "--verify", f"--arch={target}", path],
                                          capture_output=True, text=True, timeout=100)
                    ours = re.search(r"E040[12]", done.stderr)
                    count += 1
                    if done.returncode not in (0, 2) or ours or (
                            done.returncode and not chosen and name not in UNSEEN):
                        print(name, chosen, done.returncode, done.stderr, text)
                        failed += 1
    print(f"{count} programs, {failed} failed")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
