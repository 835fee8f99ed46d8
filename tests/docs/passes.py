# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks docs/passes.md: its sections are passes in the order they run, each with a `tir before` and a
`tir after` block (or several pairs); running the section's pass on the first gives the second, which
compiles.

Usage: passes.py TIRC PAGE [--update]   --update writes the results into the page.
What follows `before` on the fence is given to tirc.
"""

import pathlib
import re
import subprocess
import sys
import tempfile

SECTION = re.compile(r"^## `(\w+)`.*$", re.M)
FENCE = re.compile(r"^```tir (before|after)([^\n]*)\n(.*?)^```$", re.M | re.S)


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, command))}:\n{done.stderr}")
    return done.stdout


def passes(tirc):
    return re.findall(r"^\| `(\w+)` \|", run(tirc, "--help-passes"), re.M)


def transform(tirc, name, options, before):
    """The program after the pass; it must compile from there."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "example.tir")
        path.write_text(before, encoding="utf-8")
        after = run(tirc, "build", path, f"--run={name}", "-o", "-", *options)
        path.write_text(after, encoding="utf-8")
        run(tirc, "check", "--verify", path, *options)
    return after


def check_section(tirc, name, body):
    """Yields what is wrong; the updated body comes last, as ("body", text)."""
    fences = list(FENCE.finditer(body))
    if not fences or [f[1] for f in fences] != ["before", "after"] * (len(fences) // 2):
        yield "error", "needs pairs of a `tir before` and a `tir after` block"
        return
    updated, end = "", 0
    for before, after in zip(fences[::2], fences[1::2]):
        try:
            result = transform(tirc, name, before[2].split(), before[3])
        except RuntimeError as error:
            yield "error", str(error)
            return
        if result != after[3]:
            yield "stale", f"`after` is not what the pass gives:\n{result}"
        updated += body[end : after.start(3)] + result
        end = after.end(3)
    yield "body", updated + body[end:]


def main(tirc, page, update):
    page = pathlib.Path(page)
    text = page.read_text(encoding="utf-8")
    heads = list(SECTION.finditer(text))
    failures = []
    known, found = passes(tirc), [h[1] for h in heads]
    if found != [name for name in known if name in found]:
        failures.append(f"sections {found} are not passes in the order {known}")
    updated = text[: heads[0].start()]
    for head, end in zip(heads, [h.start() for h in heads[1:]] + [len(text)]):
        body = text[head.end() : end]
        for kind, value in check_section(tirc, head[1], body):
            if kind == "body":
                body = value
            elif kind == "error" or not update:
                failures.append(f"{head[1]}: {value}")
        updated += head[0] + body
    if update:
        page.write_text(updated, encoding="utf-8")
    if failures:
        print("\n".join(failures))
        print("when the new text is right: tests/docs/passes.py TIRC docs/passes.md --update")
        return 1
    print(f"{len(heads)} passes checked")
    return 0


if __name__ == "__main__":
    sys.exit(main(str(pathlib.Path(sys.argv[1]).resolve()), sys.argv[2], "--update" in sys.argv[3:]))
