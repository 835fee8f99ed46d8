#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The kernel of examples/blackwell_attention on the emulator, against examples/attention/forward.tir.

usage: attention_by_hand.py TIRC values|mutants|README.md

values: for one block of keys, several, and parts of one, for queries without a key, and for scores that
grow by much and by little, in several schedules of the emulator, which looks for races. Nothing of it is
unchecked, and ptxas, where there is one, spills nothing. mutants: without any one of its waits, arrivals,
commits and fences it must be refused, and with planted bugs as well. Of the page the commands are run.
"""

import pathlib
import re
import subprocess
import sys
import tempfile

import ladder

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"
KERNEL = EXAMPLES / "blackwell_attention" / "attention.tir"
ladder.ARCHES["blackwell_attention"] = "sm_100a"

# B, H, G, S, T, scale
SIZES = [(1, 1, 1, 1, 1, 0.1), (1, 2, 1, 130, 127, 0.1), (1, 1, 1, 256, 128, 3.0), (2, 2, 2, 257, 129, 0.3),
         (1, 2, 1, 300, 300, 1.0), (1, 1, 1, 128, 384, 0.1), (1, 1, 1, 500, 100, 0.3), (1, 1, 1, 200, 640, 2.0)]
WAYS = [["--emu-sms=1"], ["--emu-sms=2", "--schedule=random:1"], ["--schedule=adversarial:2"]]


def reference_in(folder):
    """forward.tir with blocks of 128 keys whatever the sizes, as the kernel has: P is rounded by block."""
    for path in (EXAMPLES / "attention").glob("*.tir"):
        text = re.sub(r" *where SHORT == .*\)$", "", path.read_text(encoding="utf-8"), flags=re.M)
        text = re.sub(r"config\(SHORT = \w+\)", "", text)
        pathlib.Path(folder, path.name).write_text(text, encoding="utf-8")
    return pathlib.Path(folder, "forward.tir")


def check_values(tirc, folder):
    forward = reference_in(folder)
    for i, (b, h, g, s, t, scale) in enumerate(SIZES):
        for causal in ("false", "true"):
            reference = f"{forward}:{'causal' if causal == 'true' else 'full'}"
            ladder.run([tirc, "run", KERNEL, "--device=emu", "--arch=sm_100a", "--emu-check=full",
                        *WAYS[i % len(WAYS)], "-D", f"CAUSAL={causal}", f"B={b}", f"H={h}", f"G={g}", f"S={s}",
                        f"T={t}", f"scale={scale}", f"--check-against={reference}"])


def is_checked(tirc):
    for causal in ("false", "true"):
        ladder.run([tirc, "check", "--arch=sm_103a", "--require=sync", "-D", f"CAUSAL={causal}", KERNEL])


def spills_nothing(tirc, folder):
    path = pathlib.Path(folder, KERNEL.parent.name, KERNEL.name)
    path.parent.mkdir()
    ok = True
    for arch, causal in (("sm_100a", "true"), ("sm_100a", "false"), ("sm_103a", "true"), ("sm_110a", "true")):
        ladder.ARCHES[KERNEL.parent.name] = arch
        path.write_text(KERNEL.read_text(encoding="utf-8").replace("CAUSAL = true", f"CAUSAL = {causal}", 1),
                        encoding="utf-8")
        ok = ladder.assemble(tirc, path, folder) and ok
    return ok


# (what is replaced, by what): sync_check refuses each
BUGS = [
    (r"wait\(o_full, phase\);", "wait(o_full, 1 - phase);"),  # P is overwritten while it is read
    (r"0:\+64\], queries, view\(keys\[0:\+64", "0:+96], queries, view(keys[0:+96"),  # as is what of it lies there
    (r"(p\[0:\+128,) (128|224)\b", lambda m: f"{m[1]} {int(m[2]) - 128}"),  # P in the half that has no wait
    (r"if k == 5", "if k == 4"),  # three quarters are told when less is there
    (r"p\[0:\+128, 128:\+96\], view\(values\[0:\+96", "p[0:+128, 128:+112], view(values[0:+112"),
    (r"arrivals\(15\)", "arrivals(14)"),
    (r"if elect_sync\(\) && j == n - 1 ", "if elect_sync() && j == 1 "),  # the queries are still needed
    (r"STAGES = 3", "STAGES = 1"),  # keys and values are needed together
    (r"wait_group\(0, engine = tma, read = 1\)", "wait_group(1, engine = tma, read = 1)"),
    (r"if is_last \{ commit\(empty\); \}", "if !is_last { commit(empty); }"),
    (r"for j in range\(1, n\) \{\n +for i", "for j in range(2, n) {\n for i"),  # the correction skips a block
]


def finds_bugs(tirc, folder):
    text, ok = KERNEL.read_text(encoding="utf-8"), True
    for what, by in BUGS:
        mutant = re.sub(what, by, text)
        assert mutant != text, what
        wrong = pathlib.Path(folder, "wrong.tir")
        wrong.write_text(mutant, encoding="utf-8")
        done = subprocess.run([tirc, "check", "--arch=sm_100a", wrong], capture_output=True, text=True, timeout=100,
                              check=False)
        if done.returncode == 0 or not re.search(r"error\[E041\d\]", done.stderr):
            print(f"{what} -> {by}:\n{done.stdout}{done.stderr}")
            ok = False
    return ok


def main():
    tirc, what = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2]
    with tempfile.TemporaryDirectory() as folder:
        if what == "mutants":
            found = finds_bugs(tirc, folder)
            return 0 if ladder.needs_all(tirc, KERNEL, folder) and found else 1
        if what == "values":
            is_checked(tirc)
            check_values(tirc, folder)
            return 0 if spills_nothing(tirc, folder) else 1
        ladder.run_page(tirc, pathlib.Path(what).resolve(), folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
