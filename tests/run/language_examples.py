#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The programs of docs/language.md compile for a GPU, and its products with roles are right.

usage: language_examples.py TIRC PAGE.md

Every block ```tir must compile for sm_90a and sm_100a, unless it has what only one of them does. Those with roles are
called gemm and must give, on the emulator, the same bytes as a program that leaves everything to the
compiler (by_hand.py).
"""

import os
import re
import subprocess
import sys
import tempfile

PLAIN = """
kernel plain(A: bf16[M, K], B: bf16[N, K], D: out bf16[M, N])
{
    for (m, n) in tiles(M by 128, N by 128) {
        var acc: f32[128, 128] = 0;
        for k in range(0, K, 64) { acc += dot(A[m:+128, k:+64], B[n:+128, k:+64].T); }
        D[m:+128, n:+128] = bf16(acc);
    }
}
"""


def run(command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=250)
    if done.returncode:
        print(" ".join(command))
        print(done.stdout + done.stderr)
    return done.returncode == 0


def main():
    tirc, page = sys.argv[1:3]
    with open(page, encoding="utf-8") as file:
        programs = re.findall(r"^```tir\n(.*?)^```$", file.read(), re.MULTILINE | re.DOTALL)
    ok, by_hand = bool(programs), 0
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "example.tir")
        for program in programs:
            if re.search(r"\brole \w+ ", program):
                by_hand += 1
                program = "//: M=256 N=320 K=320\n//: M=136 N=200 K=72\n" + \
                    program.replace("kernel gemm", "kernel hand") + PLAIN
            with open(path, "w", encoding="utf-8") as file:
                file.write(program)
            is_new = re.search(r"^ *(tmem|try_cancel|.*tile_request|.*preferred)\b", program, re.MULTILINE)
            is_hopper = "wgmma" in program
            for arch in ([] if is_new else ["sm_90a"]) + ([] if is_hopper else ["sm_100a"]):
                ok &= run([tirc, "check", "--arch=" + arch, path])
            if "kernel plain" in program:
                script = os.path.join(os.path.dirname(__file__), "by_hand.py")
                ok &= run([sys.executable, script, tirc, path])
    if by_hand < 2:
        print("the page has no programs with roles")
        ok = False
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
