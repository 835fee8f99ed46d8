# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks docs/schedule.md: the pictures of docs/schedule/ are those of `tirc explain`, the page shows each, its
table has what the receipts of the same kernels say, and its list of guesses is that of machine/work.def.

Usage: schedule.py TIRC PAGE [--update]   --update draws the pictures and writes the table anew.
"""

import json
import pathlib
import re
import subprocess
import sys

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"
KERNELS = {  # picture: file, options
    "gemm": ["03_gemm/gemm.tir"],
    "full": ["attention/forward.tir", "--kernel=full"],
    "causal": ["attention/forward.tir", "--kernel=causal"],
    "full64": ["attention/forward.tir", "--kernel=full", "-D", "D=64"],
    "backward": ["attention/backward.tir", "--kernel=deterministic"],
    "mlp": ["attention/mlp.tir"],
}
TABLE = re.compile(r"(?<=\n\| picture \|)(.*\n\|[-|]+\n)((?:\|.*\n)+)")


WORK = EXAMPLES.parent / "compiler/machine/work.def"
GUESSED = re.compile(r"^(?:WORK|DELAY)\((\w+),.*\bGUESSED\b", re.MULTILINE)
GUESSES = re.compile(r"(?<=<!-- list: guesses -->\n\n)(?:- .*\n)+")


def tirc(program, *args):
    return subprocess.run([program, *args], capture_output=True, text=True, check=True).stdout


def arguments(name):
    file, *options = KERNELS[name]
    return [EXAMPLES / file, "--arch=sm_90a", *options]


def rows(program, name):
    """A row for each loop of the best variants."""
    receipt = json.loads(tirc(program, "check", "--receipt=json", *arguments(name)))
    seen, lines = set(), []
    for variant in receipt["variants"]:
        if variant["kernel"] in seen:
            continue
        seen.add(variant["kernel"])
        for loop in variant["schedules"]:
            if loop["operations"]:
                lines.append(f'| [{name}](schedule/{name}.svg) | `{variant["kernel"]}` | {loop["warpgroups"]} '
                             f'| {loop["stages"]} | {loop["source_cycles"]} | {loop["cycles"]} | {loop["replayed"]} '
                             f'| {loop["registers"]} of {loop["registers_allowed"]} |\n')
            else:
                lines.append(f'| {name} | `{variant["kernel"]}` | | | | | | {loop["why"]} |\n')
    return lines


def main(program, page, update):
    page = pathlib.Path(page)
    text, wrong = page.read_text(encoding="utf-8"), 0
    for name in KERNELS:
        picture = page.parent / "schedule" / f"{name}.svg"
        drawn = tirc(program, "explain", "--schedule", "--svg=-", *arguments(name))
        if update:
            picture.write_text(drawn, encoding="utf-8")
        if not picture.exists() or picture.read_text(encoding="utf-8") != drawn:
            print(f"{picture.name} is not what tirc explain draws: draw it anew with --update")
            wrong = 1
        if f"](schedule/{name}.svg)" not in text:
            print(f"{page.name} does not show {picture.name}")
            wrong = 1
    table = "".join(line for name in KERNELS for line in rows(program, name))
    new = TABLE.sub(lambda match: match.group(1) + table, text, count=1)
    guesses = "".join(f"- `{row}`\n" for row in GUESSED.findall(WORK.read_text(encoding="utf-8")))
    new = GUESSES.sub(guesses, new, count=1)
    if update:
        page.write_text(new, encoding="utf-8")
    elif new != text or not TABLE.search(text) or not GUESSES.search(text):
        print(f"a table or list of {page.name} is stale: write it anew with --update")
        wrong = 1
    return wrong


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], "--update" in sys.argv[3:]))
