# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks docs/passes.md: its sections are the passes in the order they run, each with a `tir before` and a
`tir after` block (or several pairs); running the section's pass on the first gives the second, which
compiles.

Usage: passes.py TIRC PAGE [--update]   --update writes the results into the page.
A fence `tir NAME.tir` is a program; `tir before NAME.tir` is what the passes before the section's
make of it. Further words on the fence are given to tirc.
"""

import pathlib
import re
import subprocess
import sys
import tempfile

SECTION = re.compile(r"^## `(\w+)`.*$", re.M)
SOURCE = re.compile(r"^```tir (\w+\.tir)\n(.*?)^```$", re.M | re.S)
FENCE = re.compile(r"^```tir (before|after)([^\n]*)\n(.*?)^```$", re.M | re.S)


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, command))}:\n{done.stderr}")
    return done.stdout


class Compiler:
    def __init__(self, tirc, page, folder):
        self.tirc = tirc
        self.passes = re.findall(r"^\| `(\w+)` \|", run(tirc, "--help-passes"), re.M)
        self.folder = pathlib.Path(folder)
        for name, text in SOURCE.findall(page):
            pathlib.Path(folder, name).write_text(text, encoding="utf-8")

    def before(self, name, words, text):
        """The program before pass `name`: as on the page, or made of one of its sources."""
        if not words or not words[0].endswith(".tir"):
            return text, words
        stop = self.passes[self.passes.index(name) - 1]
        out = run(self.tirc, "build", self.folder / words[0], f"--stop-after={stop}", "-o", "-",
                  *words[1:])
        return out, words[1:]

    def after(self, name, options, before):
        """The program after the pass; it must compile from there."""
        path = self.folder / "example.tir"
        path.write_text(before, encoding="utf-8")
        after = run(self.tirc, "build", path, f"--run={name}", "-o", "-", *options)
        path.write_text(after, encoding="utf-8")
        run(self.tirc, "check", "--verify", path, *options)
        return after


def check_section(compiler, name, body):
    """Yields what is wrong; the updated body comes last, as ("body", text)."""
    fences = list(FENCE.finditer(body))
    if not fences or [f[1] for f in fences] != ["before", "after"] * (len(fences) // 2):
        yield "error", "needs pairs of a `tir before` and a `tir after` block"
        return
    updated, end = "", 0
    for before, after in zip(fences[::2], fences[1::2]):
        try:
            source, options = compiler.before(name, before[2].split(), before[3])
            result = compiler.after(name, options, source)
        except RuntimeError as error:
            yield "error", str(error)
            return
        if source != before[3] or result != after[3]:
            yield "stale", f"`before` and `after` are now:\n{source}\n{result}"
        updated += body[end : before.start(3)] + source + body[before.end(3) : after.start(3)] + result
        end = after.end(3)
    yield "body", updated + body[end:]


def check_page(compiler, text, update):
    """What is wrong with the page, and the page with everything as it is now."""
    heads = list(SECTION.finditer(text))
    failures = []
    found = [h[1] for h in heads]
    if found != compiler.passes:
        failures.append(f"sections {found} are not the passes {compiler.passes}")
    updated = text[: heads[0].start()]
    for head, end in zip(heads, [h.start() for h in heads[1:]] + [len(text)]):
        body = text[head.end() : end]
        for kind, value in check_section(compiler, head[1], body):
            if kind == "body":
                body = value
            elif kind == "error" or not update:
                failures.append(f"{head[1]}: {value}")
        updated += head[0] + body
    return failures, updated


def main(tirc, page, update):
    page = pathlib.Path(page)
    text = page.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        failures, updated = check_page(Compiler(tirc, text, folder), text, update)
    if update:
        page.write_text(updated, encoding="utf-8")
    if failures:
        print("\n".join(failures))
        print("when the new text is right: tests/docs/passes.py TIRC docs/passes.md --update")
        return 1
    print(f"{len(SECTION.findall(text))} passes checked")
    return 0


if __name__ == "__main__":
    sys.exit(main(str(pathlib.Path(sys.argv[1]).resolve()), sys.argv[2], "--update" in sys.argv[3:]))
