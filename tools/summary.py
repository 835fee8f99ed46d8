# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Prints the failures of Meson test runs, then the line "N passed, N failed".

Usage: summary.py BUILD_FOLDER...   Folders without a test log are left out. The exit status is 1
when a test failed or none ran.
"""

import json
import pathlib
import sys

PASSED = {"OK", "EXPECTEDFAIL"}
SKIPPED = {"SKIP"}
TAIL = 60  # lines of output shown for a failure


def results(folder):
    log = pathlib.Path(folder, "meson-logs", "testlog.json")
    if log.exists():
        for line in log.read_text(encoding="utf-8", errors="replace").splitlines():
            yield json.loads(line)


def show(folder, result):
    print(f"\n---- {result['name']} ({folder}): {result['result'].lower()}")
    output = result.get("stdout", "") + result.get("stderr", "")
    lines = output.rstrip().splitlines()
    if len(lines) > TAIL:
        print(f"[{len(lines) - TAIL} lines left out]")
    print("\n".join(lines[-TAIL:]))


def main(folders):
    counts = {"passed": 0, "skipped": 0, "failed": 0}
    for folder in folders:
        for result in results(folder):
            if result["result"] in PASSED:
                counts["passed"] += 1
            elif result["result"] in SKIPPED:
                counts["skipped"] += 1
                print(f"skipped: {result['name']} ({folder})")
            else:
                counts["failed"] += 1
                show(folder, result)
    if counts["skipped"]:
        print(f"{counts['skipped']} skipped")
    print(f"{counts['passed']} passed, {counts['failed']} failed")
    return 1 if counts["failed"] or not counts["passed"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
