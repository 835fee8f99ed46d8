#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A step of examples/gemm_ladder or blackwell_ladder on the emulator, against the one-screen tile program.

usage: ladder.py TIRC STEP.tir|README.md

For sizes below, at and above the tile the step runs on small integers, so that every order of
summation gives the same result, and must give exactly what the reference interpreter makes of the
tile program; the emulator looks for races. Where there is ptxas, it must neither serialise products nor spill. Of the
page the commands are run, and must succeed. Without any one of its waits and arrivals a step must
be refused.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

# Sizes (M, N, K); K and N are multiples of 8 where the tensor copy engine wants it.
ANY = [(1, 1, 1), (61, 33, 31), (64, 64, 64), (127, 128, 63), (128, 128, 64)]
LONG = [(128, 128, 0), (65, 127, 65), (128, 128, 192), (1, 5, 333)]
GRID = [(129, 131, 65), (128, 256, 128), (300, 257, 200), (0, 10, 64)]
COPIED = [(1, 8, 8), (61, 40, 64), (128, 128, 64), (127, 136, 72), (129, 120, 192),
          (256, 128, 256), (128, 256, 320), (300, 264, 520),
          (640, 520, 136)]
HOPPER = {"1": ANY, "2": ANY + LONG, "3": ANY + LONG + GRID}
# Sums in tensor memory begin with the first product, so K is not 0.
SIZES = {"gemm_ladder": HOPPER,
         "blackwell_ladder": {step: [size for size in sizes if size[2]]
                              for step, sizes in HOPPER.items()}}
ARCHES = {"gemm_ladder": "sm_90a", "blackwell_ladder": "sm_100a"}
# Fewer CTAs than tiles, and more.
EXTRA = {"gemm_ladder": {"6": [[], ["-D", "CTAS=2"]], "8": [[], ["-D", "CTAS=2"]]},
         "blackwell_ladder": {"7": [["--emu-sms=1"], ["--emu-sms=3", "--schedule=random:1"],
                                    ["--schedule=adversarial:2"]],
                              "8": [[], ["-D", "CTAS=2"]], "9": [[], ["-D", "CTAS=2"]]}}


def run(command, folder=None):
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=200,
                          check=False)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def arch_of(step):
    return ARCHES[step.parent.name]


def check_product(tirc, step, sizes, extra):
    given = [f"{name}={size}" for name, size in zip("MNK", sizes)]
    plain = step.parent.parent / "03_gemm" / "gemm.tir"
    run([tirc, "run", step, "--device=emu", f"--arch={arch_of(step)}", "--emu-check=full", *extra, *given,
         "A=randint:-4:4", "B=randint:-4:4", "--check=0", f"--check-against={plain}"])


def assemble(tirc, step, folder):
    ptxas = shutil.which("ptxas")
    if not ptxas:
        return True
    ptx = os.path.join(folder, "step.ptx")
    run([tirc, "build", step, f"--arch={arch_of(step)}", "--emit=ptx", "-o", ptx])
    said = run([ptxas, f"-arch={arch_of(step)}", "-v", ptx, "-o", os.path.join(folder, "step.cubin")])
    spills = re.findall(r"(\d+) bytes spill", said)
    assert spills, said
    if "C75" in said or any(int(n) for n in spills):
        print(said)
        return False
    return True


# What orders a step's accesses; what a tile's store needs is put back, so it is not among them.
NEEDED = re.compile(r"\s*(if [^{]*\{ )?(wait|arrive|await|expect_tx|tile_request|commit|fence)\(.*;( \})?( *//.*)?$")
PUT_BACK = re.compile(r"\s*fence\((wgmma|async_shared)\)")


def needs_all(tirc, step, folder):
    lines = step.read_text(encoding="utf-8").splitlines()
    needed = [i for i, line in enumerate(lines) if NEEDED.match(line) and not PUT_BACK.match(line)]
    assert needed, "nothing is waited for"
    accepted = []
    for i in needed:
        path = pathlib.Path(folder) / "without.tir"
        path.write_text("\n".join(lines[:i] + lines[i + 1:]) + "\n", encoding="utf-8")
        done = subprocess.run([tirc, "check", f"--arch={arch_of(step)}", path],
                              capture_output=True, text=True, timeout=100, check=False)
        if done.returncode == 0:
            accepted.append(i + 1)
        elif not re.search(r"error\[E0[24]1\d\]", done.stderr):
            sys.exit(f"{step.name} without line {i + 1}:\n{done.stderr}")
    for i in accepted:
        print(f"{step.name} is accepted without line {i}: {lines[i - 1].strip()}")
    return not accepted


def run_page(tirc, page, folder):
    copy = shutil.copytree(page.parent.parent, os.path.join(folder, "examples"))
    blocks = re.findall(r"```sh\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    commands = [line.split() for line in "".join(blocks).splitlines() if "cuda" not in line]
    assert len(commands) > 5, commands
    for command in commands:
        assert command[0] == "tirc", command
        run([tirc, *command[1:]], os.path.join(copy, page.parent.name))


def main():
    tirc, step = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    number = step.name.split("_")[0]
    with tempfile.TemporaryDirectory() as folder:
        if step.name == "README.md":
            run_page(tirc, step, folder)
            return 0
        ok = assemble(tirc, step, folder) and needs_all(tirc, step, folder)
        ladder = step.parent.name
        for extra in EXTRA[ladder].get(number, [[]]):
            for sizes in SIZES[ladder].get(number, COPIED):
                check_product(tirc, step, sizes, extra)
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
