# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks README.md: its commands print what it shows, its links lead somewhere, what it quotes of the
measurements is on the page of the measurements, and it lists every target, as docs/tirc.1 does.

Usage: readme.py TIRC README
A block `tir NAME` is the program NAME, or an excerpt of the example of that name. In a `console` block a
line that begins with `$` is a command; the lines after it are an excerpt of what it prints, where a line
may have `...` for any text.
"""

import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

from excerpt import is_part

PROGRAM = re.compile(r"^```tir (\S+)\n(.*?)^```$", re.M | re.S)
CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.M | re.S)
LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)|src=\"([^\":]+)\"")
QUOTE = re.compile(r"^> (.*)$", re.M)


def run(tirc, command, folder):
    words = [tirc if word == "tirc" else word for word in shlex.split(command)]
    return subprocess.run(words, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False).stdout


def check_programs(text, root, folder):
    """Writes the programs into the folder; yields excerpts of examples that have changed."""
    for name, program in PROGRAM.findall(text):
        example = root / name
        if not example.exists():
            pathlib.Path(folder, name).write_text(program, encoding="utf-8")
        elif not is_part(program.splitlines(), example.read_text(encoding="utf-8").splitlines()):
            yield f"{name} is another program"


def check_commands(tirc, text, folder):
    for block in CONSOLE.findall(text):
        for command, shown in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.M):
            printed = run(tirc, command, folder)
            if not shown or not is_part(shown.splitlines(), printed.splitlines()):
                yield f"`{command}` prints\n{printed}"


def check_links(text, root):
    for match in LINK.findall(text):
        path = match[0] or match[1]
        if not (root / path).exists():
            yield f"there is no {path}"
    measured = " ".join((root / "docs/performance.md").read_text(encoding="utf-8").split())
    if " ".join(QUOTE.findall(text)) not in measured:
        yield "docs/performance.md does not say what is quoted"


def check_targets(tirc, text, root):
    manual = (root / "docs/tirc.1").read_text(encoding="utf-8")
    for target in re.findall(r"^\| `(sm_\w+)`", run(tirc, "tirc --help-targets", root), re.M):
        for page, name in [(text, "README.md"), (manual, "docs/tirc.1")]:
            if not re.search(rf"\b{target}\b", page):
                yield f"{name} does not list {target}"


def main(tirc, readme):
    readme = pathlib.Path(readme).resolve()
    text, root = readme.read_text(encoding="utf-8"), readme.parent
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "examples").symlink_to(root / "examples")
        failures = [*check_programs(text, root, folder), *check_commands(tirc, text, folder),
                    *check_links(text, root), *check_targets(tirc, text, root)]
    print("\n".join(failures) or f"{len(CONSOLE.findall(text))} blocks checked")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(str(pathlib.Path(sys.argv[1]).resolve()), sys.argv[2]))
