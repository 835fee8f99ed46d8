# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks docs/diagnostics.md: every code has a section; its `tir wrong` program gives that code alone
and prints what the page says; its `tir right` program gives none.

Usage: diagnostics.py TIRC PAGE [--update]   --update writes the messages into the page.
What follows `wrong` or `right` on a fence is given to `tirc check` as options. A section without
programs says `No example:` and why.
"""

import pathlib
import re
import subprocess
import sys
import tempfile

SECTION = re.compile(r"^### ([EWR]\d{4}): (.*)$", re.M)
FENCE = re.compile(r"^```(tir wrong|tir right|text)([^\n]*)\n(.*?)^```$", re.M | re.S)


def codes(tirc):
    out = subprocess.run([tirc, "--help-diagnostics"], capture_output=True, text=True, check=True)
    return dict(re.findall(r"^\| ([EWR]\d{4}) \| \w+ \| (.*?) \|$", out.stdout, re.M))


def compile_program(tirc, options, source):
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "example.tir").write_text(source, encoding="utf-8")
        result = subprocess.run([tirc, "check", *options.split(), "example.tir"], cwd=folder,
                                capture_output=True, text=True, check=False)
    return result.returncode, result.stdout + result.stderr


def check_section(tirc, code, body):
    """Yields what is wrong, and the messages of the wrong program as ("text", messages)."""
    blocks = {kind: (options, text) for kind, options, text in FENCE.findall(body)}
    if "No example:" in body:
        if blocks:
            yield "error", "has an example and says that it has none"
        return
    if set(blocks) != {"tir wrong", "tir right", "text"}:
        yield "error", "needs a `tir wrong`, a `text` and a `tir right` block"
        return
    status, messages = compile_program(tirc, *blocks["tir wrong"])
    found = set(re.findall(r"\[([EWR]\d{4})\]: ", messages))
    if found != {code}:
        yield "error", f"the wrong program gives {sorted(found) or 'nothing'}:\n{messages}"
    if status != (2 if code[0] == "E" else 0):
        yield "error", f"the wrong program ends with status {status}"
    status, rest = compile_program(tirc, *blocks["tir right"])
    if status or rest:
        yield "error", f"the right program gives status {status}:\n{rest}"
    yield "text", messages
    if messages != blocks["text"][1]:
        yield "stale", f"the page does not say what is printed:\n{messages}"


def main(tirc, page, update):
    page = pathlib.Path(page)
    text = page.read_text(encoding="utf-8")
    known = codes(tirc)
    heads = list(SECTION.finditer(text))
    failures = []
    if [h[1] for h in heads] != list(known):
        failures.append(f"sections {[h[1] for h in heads]} are not the codes {list(known)}")
    updated = text[: heads[0].start()]
    for head, end in zip(heads, [h.start() for h in heads[1:]] + [len(text)]):
        body = text[head.end() : end]
        if head[2] != known.get(head[1]):
            failures.append(f"{head[1]}: the title is {known.get(head[1])!r}")
        for kind, value in check_section(tirc, head[1], body):
            if kind == "text":
                body = re.sub(r"^```text\n.*?^```$", lambda _: f"```text\n{value}```", body,
                              flags=re.M | re.S)
            elif kind == "error" or not update:
                failures.append(f"{head[1]}: {value}")
        updated += head[0] + body
    if update:
        page.write_text(updated, encoding="utf-8")
    print("\n".join(failures) or f"{len(heads)} codes checked")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(str(pathlib.Path(sys.argv[1]).resolve()), sys.argv[2], "--update" in sys.argv[3:]))
