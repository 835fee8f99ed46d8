# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks docs/passes.md: its sections are the passes in the order they run. The programs before and after
each pass are in passes/<pass>.md beside this file, whole: running the pass on the first gives the second,
which compiles. The page shows excerpts of them as `diff` blocks.

Usage: passes.py TIRC PAGE [--update]   --update writes the programs in passes/ anew.
A fence `tir before NAME.tir` is what the passes before this one make of passes/NAME.tir; further words on
the fence are given to tirc. A line of an excerpt that begins with `-` is in the program before alone, one
with `+` in the program after alone, others are in both, in this order; `...` stands for any text.
"""

import pathlib
import re
import subprocess
import sys
import tempfile

from excerpt import is_part

PROGRAMS = pathlib.Path(__file__).resolve().parent / "passes"
SECTION = re.compile(r"^## `(\w+)`.*$", re.M)
FENCE = re.compile(r"^```tir (before|after)([^\n]*)\n(.*?)^```$", re.M | re.S)
EXCERPT = re.compile(r"^```diff\n(.*?)^```$", re.M | re.S)


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, command))}:\n{done.stderr}")
    return done.stdout


class Compiler:
    def __init__(self, tirc, folder):
        self.tirc = tirc
        self.passes = re.findall(r"^\| `(\w+)` \|", run(tirc, "--help-passes"), re.M)
        self.folder = pathlib.Path(folder)

    def before(self, name, words, text):
        """The program before pass `name`: as it is written, or made of one of the sources."""
        if not words or not words[0].endswith(".tir"):
            return text, words
        stop = self.passes[self.passes.index(name) - 1]
        out = run(self.tirc, "build", PROGRAMS / words[0], f"--stop-after={stop}", "-o", "-", *words[1:])
        return out, words[1:]

    def after(self, name, options, before):
        """The program after the pass; it must compile from there."""
        path = self.folder / "example.tir"
        path.write_text(before, encoding="utf-8")
        after = run(self.tirc, "build", path, f"--run={name}", "-o", "-", *options)
        path.write_text(after, encoding="utf-8")
        run(self.tirc, "check", "--verify", path, *options)
        return after


def rerun(compiler, name, text):
    """The text of passes/<name>.md with its programs made anew, and the pairs of programs."""
    fences = list(FENCE.finditer(text))
    if not fences or [f[1] for f in fences] != ["before", "after"] * (len(fences) // 2):
        raise RuntimeError("needs pairs of a `tir before` and a `tir after` block")
    updated, end, pairs = "", 0, []
    for before, after in zip(fences[::2], fences[1::2]):
        source, options = compiler.before(name, before[2].split(), before[3])
        result = compiler.after(name, options, source)
        pairs.append((source.splitlines(), result.splitlines()))
        updated += text[end : before.start(3)] + source + text[before.end(3) : after.start(3)] + result
        end = after.end(3)
    return updated + text[end:], pairs


def fits(excerpt, before, after):
    """Whether an excerpt shows what changed between two programs."""
    lines = excerpt.splitlines()
    removed = [line[1:] for line in lines if line[0] == "-"]
    added = [line[1:] for line in lines if line[0] == "+"]
    return (is_part([line[1:] for line in lines if line[0] != "+"], before)
            and is_part([line[1:] for line in lines if line[0] != "-"], after)
            and not any(is_part([line], after) for line in removed)
            and not any(is_part([line], before) for line in added))


def check_section(compiler, name, body, update):
    """Yields what is wrong with the section of a pass and with its programs."""
    path = PROGRAMS / f"{name}.md"
    try:
        text = path.read_text(encoding="utf-8")
        updated, pairs = rerun(compiler, name, text)
    except (OSError, RuntimeError) as error:
        yield str(error)
        return
    if update:
        path.write_text(updated, encoding="utf-8")
    elif updated != text:
        yield f"{path.name} is not what the pass does now"
    excerpts = EXCERPT.findall(body)
    if not excerpts:
        yield "the section has no excerpt"
    for excerpt in excerpts:
        if not any(fits(excerpt, *pair) for pair in pairs):
            yield f"no pair of programs has this excerpt:\n{excerpt}"


def main(tirc, page, update):
    text = pathlib.Path(page).read_text(encoding="utf-8")
    heads = list(SECTION.finditer(text))
    failures = []
    with tempfile.TemporaryDirectory() as folder:
        compiler = Compiler(tirc, folder)
        if [h[1] for h in heads] != compiler.passes:
            failures.append(f"sections {[h[1] for h in heads]} are not the passes {compiler.passes}")
        for head, end in zip(heads, [h.start() for h in heads[1:]] + [len(text)]):
            failures += [f"{head[1]}: {failure}"
                         for failure in check_section(compiler, head[1], text[head.end() : end], update)]
    if failures:
        print("\n".join(failures))
        print("when the new programs are right: tests/docs/passes.py TIRC docs/passes.md --update")
        return 1
    print(f"{len(heads)} passes checked")
    return 0


if __name__ == "__main__":
    sys.exit(main(str(pathlib.Path(sys.argv[1]).resolve()), sys.argv[2], "--update" in sys.argv[3:]))
