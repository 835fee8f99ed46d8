#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The programs that show the syntax compile for a GPU.

usage: builds.py TIRC FOLDER

Every FOLDER/*.tir must compile for sm_90a, or for the target of its line `// --arch=TARGET`, with the
metas of its lines `// -D NAME=VALUE`. One that
is no program, but a list of what may be written, says `// refused: CODE`: it must parse, and be
refused with that code, by the check of its synchronisation or later.
"""

import pathlib
import re
import subprocess
import sys


def main():
    tirc, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    failed = 0
    for path in sorted(folder.glob("*.tir")):
        text = path.read_text(encoding="utf-8")
        metas = re.findall(r"^// -D (\S+)", text, re.MULTILINE)
        refused = re.findall(r"^// refused: (E04\d\d)$", text, re.MULTILINE)
        arch = re.findall(r"^// --arch=(\S+)$", text, re.MULTILINE) or ["sm_90a"]
        command = [tirc, "check", f"--arch={arch[0]}", path] + [f"-D{meta}" for meta in metas]
        done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
        codes = re.findall(r"error\[(E\d+)\]", done.stderr)
        if codes != refused or (done.returncode == 0) != (not refused):
            print(f"{path}: expected {refused or 'no error'}\n{done.stderr}")
            failed += 1
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
