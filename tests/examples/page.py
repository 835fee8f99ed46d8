#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs the commands of a Markdown page and compares what they print with what the page shows.

usage: page.py PAGE.md PROGRAM...

The commands find the programs by their names. A block that begins with "```tir NAME.tir" is written to that file. In a block "```console" a line
"$ COMMAND" is run by the shell, in the folder of those files, and the lines up to the next command
are its output, errors included. There, "..." stands for any text, and alone on a line for any
lines. Every block is run in the order of the page.
"""

import os
import re
import subprocess
import sys
import tempfile


def blocks(page):
    """(first words of the fence, text, line number) of every fenced block."""
    lines = open(page, encoding="utf-8").read().split("\n")
    start = None
    for i, line in enumerate(lines):
        if start is None and line.startswith("```"):
            start = i
        elif start is not None and line == "```":
            yield lines[start][3:].split(), "\n".join(lines[start + 1:i]) + "\n", start + 2
            start = None


def commands(text, number):
    """(command, expected output, line number) of a console block."""
    command, expected, at = None, [], number
    for i, line in enumerate(text.split("\n")[:-1]):
        if line.startswith("$ "):
            if command:
                yield command, expected, at
            command, expected, at = line[2:], [], number + i
        else:
            expected.append(line)
    if command:
        yield command, expected, at


def matches(expected, output):
    """Whether the output is what the page shows."""
    pattern = ""
    for line in expected:
        if line == "...":
            pattern += r"(?:.*\n)*?"
        else:
            pattern += ".*?".join(re.escape(part) for part in line.split("...")) + r"\n"
    return re.fullmatch(pattern, output) is not None


def main():
    page = os.path.abspath(sys.argv[1])
    folders = [os.path.dirname(os.path.abspath(program)) for program in sys.argv[2:]]
    environment = dict(os.environ, PATH=os.pathsep.join(folders + [os.environ["PATH"]]))
    passed = failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for words, text, number in blocks(page):
            if words[:1] == ["tir"] and len(words) == 2:
                with open(os.path.join(folder, words[1]), "w", encoding="utf-8") as file:
                    file.write(text)
            if words[:1] != ["console"]:
                continue
            for command, expected, line in commands(text, number):
                done = subprocess.run(["sh", "-c", command], cwd=folder, env=environment, text=True,
                                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120)
                if matches(expected, done.stdout):
                    passed += 1
                    continue
                failed += 1
                print(f"{page}:{line}: {command}\nprints:\n{done.stdout}the page shows:")
                print("\n".join(expected))
    print(f"{passed} passed, {failed} failed")
    return failed > 0 or passed == 0


if __name__ == "__main__":
    sys.exit(main())
