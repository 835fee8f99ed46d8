# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every table of measured configurations among the examples fits the program beside it: no line is
stale. A table has lines for several targets and metas, so the program is compiled for each of them.

Usage: tuned.py TIRC EXAMPLES
"""

import pathlib
import re
import subprocess
import sys

LINE = re.compile(r'"[^"]*" \d+ (\w+) (\w+)(?:<([^>]*)>)?\(')


def builds(table):
    """The targets, kernels and metas that lines are about."""
    return sorted({LINE.match(line).groups(default="") for line in
                   table.read_text(encoding="utf-8").splitlines() if line.startswith('"')})


def main(tirc, examples):
    tables = sorted(pathlib.Path(examples).rglob("*.tuned"))
    failed = 0
    for table in tables:
        rows = builds(table)
        failed += not rows
        for arch, kernel, metas in rows:
            given = [word for meta in filter(None, metas.split(", ")) for word in ("-D", meta)]
            done = subprocess.run(
                [tirc, "build", table.with_suffix(".tir"), f"--arch={arch}", f"--kernel={kernel}",
                 f"--tuned={table}", "-o", "/dev/null", *given],
                capture_output=True, text=True, check=False)
            if done.returncode or done.stderr:
                failed += 1
                print(f"{table} for {arch} {kernel}<{metas}>: status {done.returncode}\n{done.stderr}")
    print(f"{len(tables)} tables, {failed} failed")
    return 77 if not tables else bool(failed)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
