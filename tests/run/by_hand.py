#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs that say themselves which warps do what and when, on the emulator.

usage: by_hand.py TIRC FILE.tir [TARGET...]

Each file has two kernels, `hand` and `plain`, which compute the same; `plain` is at tile level. For
the sizes of each line `//: M=128 N=64` `hand` runs on small integers, and must give exactly what the
reference interpreter makes of `plain`; unless the line has other inputs (`A=randn`) and a tolerance.
Where there is ptxas, it must not serialise products. Targets: sm_90a, if none is given.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile


def run(command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=100)
    if done.returncode:
        print(" ".join(command))
        print(done.stdout + done.stderr)
    return done.returncode == 0, done.stdout + done.stderr


def assemble(tirc, path, target, metas):
    ptxas = shutil.which("ptxas")
    if not ptxas:
        return True
    with tempfile.TemporaryDirectory() as folder:
        ptx = os.path.join(folder, "hand.ptx")
        fine, said = run([tirc, "build", path, "--kernel=hand", f"--arch={target}", "--emit=ptx",
                          "-o", ptx, *metas])
        if fine:
            fine, said = run([ptxas, f"-arch={target}", "-v", ptx, "-o", ptx + ".cubin"])
    # C7519 says that ptxas adds a wgmma.fence, which sums of f16 need as they are packed; the others
    # of these that it serialises what should be asynchronous.
    if fine and not re.search(r"C75(?!19)", said):
        return True
    print(said)
    return False


def main():
    tirc, path, *targets = sys.argv[1:]
    return 0 if all([check(tirc, path, target) for target in targets or ["sm_90a"]]) else 1


def check(tirc, path, target):
    with open(path, encoding="utf-8") as file:
        source = file.read()
    params = re.search(r"kernel plain(?:<.*?>)?\((.*?)\)", source, re.DOTALL).group(1)
    params = re.findall(r"(\w+): (out )?\w+\[", params)
    ok, assembled = True, []
    for line in re.findall(r"^//: (.*)$", source, re.MULTILINE):
        given = line.split()
        names = [word.split("=")[0] for word in given]
        metas = [f"-D{given[i + 1]}" for i, word in enumerate(given) if word == "-D"]
        given += [f"{name}=randint:-4:4" for name, out in params if not out and name not in names]
        if "--check" not in names:
            given.append("--check=0")
        ok &= run([tirc, "run", path, "--kernel=hand", "--device=emu", f"--arch={target}",
                   "--emu-check=full", "--check-against=:plain", *given])[0]
        if metas not in assembled:
            assembled.append(metas)
            ok &= assemble(tirc, path, target, metas)
    return ok


if __name__ == "__main__":
    sys.exit(main())
