# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Takes the synchronisation of right kernels apart, one thing at a time, and asks sync_check.

Usage: mutants.py TIRC SURVIVORS GOLDEN FILE... [--update]

Each FILE is one kernel; what leaves the barrier pass is what sync_check must accept. A mutant lacks one arrive, wait, fence,
barrier, commit or copy, has it one statement earlier or later, or has another count, parity, number
of bytes, of groups, of threads, or does not carry a slot or a parity on. Every mutant must be refused,
as many of each kernel as GOLDEN says, those of kernels that are written in form synced with the
message that it has (--update writes it anew), or be harmless: SURVIVORS says why, as
`what was done | the line it was done to, a regular expression | why nothing can go wrong`. Mutants
that are no programs (a name used before it is defined) are left out.
"""

import collections
import pathlib
import re
import subprocess
import sys
import tempfile

BATCH = 12  # mutants a run: fewer than the errors that one run shows
SYNC = re.compile(
    r"^\s*(?:arrive|wait|fence|bar_sync|bar_arrive|commit_group|wait_group|mbarrier_init|"
    r"cluster_arrive|cluster_wait|warp_sync|copy_async|store_async|try_cancel)\("
)
ACTS = re.compile(SYNC.pattern + r"|\bstore\(|= (?:await|gemm_async|load|dot)\(")
ERROR = re.compile(r"^[^ \n]*:(\d+):\d+: error\[(E\d{4})\]: (.*)$")
NOTE = re.compile(r"^note: [^ \n]*:(\d+):\d+: ")

Mutant = collections.namedtuple("Mutant", "line what text")


def number(text, key, by):
    """The line with `key = N` changed by so much; None: it has none, or would not be legal."""
    found = re.search(rf"\b{key} = (\d+)", text)
    if not found or int(found[1]) + by < 0:
        return None
    return f"{text[: found.start(1)]}{int(found[1]) + by}{text[found.end(1) :]}"


def alterations(text):
    """What can be done to one line: (what, new text)."""
    if SYNC.match(text) and ("copy_async" not in text and "store_async" not in text or
                             "mbar = " in text):
        yield "delete", ""
    for key, steps in (("arrivals", (1, -1)), ("bytes", (16, -16)), ("groups", (1, -1)),
                       ("threads", (32, -32)), ("id", (1,)), ("count", (1,))):
        for by in steps:
            if SYNC.match(text) or " await(" in text:
                yield f"{key} {by:+d}", number(text, key, by)
    yield "other parity", re.sub(r"\bwait\((\w+), (\w+)\);",
                                 r"let other: i32 = xor(\2, i32(1)); wait(\1, other);", text)
    yield "arrives twice", re.sub(r"\b(arrive\(\w+)(?=[,)])", r"\1, count = 2", text)
    yield "no source left out", text.replace(", read = 1", "")
    yield "other first parity", re.sub(
        r"\b(p\w*: i32 = i32\()([01])\)", lambda m: f"{m[1]}{1 - int(m[2])})", text)
    yield "wraps early", re.sub(r"eq\((s\w*), i32\((\d+)\)\)",
                                lambda m: f"eq({m[1]}, i32({max(int(m[2]) - 1, 0)}))", text)
    yield "state not carried on", re.sub(r"\b(yield (?:\w+, )*)s3, p3;", r"\1s, p;", text)
    yield "parity not carried on", re.sub(r"\b(yield (?:\w+, )*)s3, p3;", r"\1s3, p;", text)
    yield "always slot 0", re.sub(r"\bview\((\w+)\[(?:s1?|prev|last)\]\)", r"view(\1[0])", text)
    for old, new in (("wgmma", "async_shared"), ("async_shared", "wgmma"),
                     ("mbarrier_init", "cta")):
        yield f"fence of {new}", text.replace(f"fence(of = {old})", f"fence(of = {new})")
    yield "local arrival", re.sub(r"(arrive\(\w+), cta = \w+(?:\(\d+\))?", r"\1", text)
    yield "not multicast", re.sub(r", ctas = \w+(?:\(\d+\))?", "", text)
    yield "another thread", re.sub(r"\bif leader \{", "if other_leader {", text)


def mutants(lines):
    for i, text in enumerate(lines):
        for what, new in alterations(text):
            if new is not None and new != text:
                yield Mutant(i, what, lines[:i] + [new] + lines[i + 1 :])
        if not SYNC.match(text) or i + 1 == len(lines):
            continue
        for what, k in (("one statement earlier", i - 1), ("one statement later", i + 1)):
            if not ACTS.search(lines[k]):
                continue
            swapped = list(lines)
            swapped[i], swapped[k] = lines[k], lines[i]
            yield Mutant(i, what, swapped)


def check(tirc, batch):
    """For each text of the batch the messages: (line, code, message, note's line)."""
    size = len(batch[0].text)
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "mutants.tir")
        whole = []
        for i, mutant in enumerate(batch):
            whole += [re.sub(r"^kernel (\w+)\(", rf"kernel \1_{i}(", t) for t in mutant.text]
        path.write_text("\n".join(whole) + "\n", encoding="utf-8")
        done = subprocess.run([tirc, "build", "--run=sync_check", "--emit=tir", "-o",
                               pathlib.Path(folder, "out"), path],
                              capture_output=True, text=True, check=False)
    if done.returncode not in (0, 2):
        raise RuntimeError(f"tirc ended with {done.returncode}:\n{done.stderr}")
    found = [[] for _ in batch]
    last = None
    for line in done.stderr.splitlines():
        error, note = ERROR.match(line), NOTE.match(line)
        if error:
            which, at = divmod(int(error[1]) - 1, size)
            last = [at + 1, error[2], error[3], None]
            found[which].append(last)
        elif note and last and last[3] is None:
            last[3] = (int(note[1]) - 1) % size + 1
    # Lines in the messages are of the whole file too.
    for messages in found:
        for message in messages:
            message[2] = re.sub(r"\bline (\d+)", lambda m: f"line {(int(m[1]) - 1) % size + 1}",
                                message[2])
    return found


def synced(tirc, path):
    """The lines of a kernel in form synced: the file's, or what the passes make of it; of several
    variants the first, for which all is known of the tensors."""
    text = pathlib.Path(path).read_text(encoding="utf-8")
    if "form(synced)" in text:
        return text.splitlines()
    done = subprocess.run([tirc, "build", "--arch=sm_90a", "--print-after=barrier", "--emit=ptx",
                           "-o", "/dev/null", path], capture_output=True, text=True, check=True)
    lines = (done.stdout + done.stderr).splitlines()
    begin = next(i for i, line in enumerate(lines) if line.startswith("kernel "))
    return lines[begin : lines.index("}", begin) + 1]


def is_program(messages):
    return not messages or messages[0][1] > "E0402"


def reason(survivors, mutant, text):
    for what, pattern, why in survivors:
        if what == mutant.what and re.search(pattern, text):
            return why
    return None


def run(tirc, path, survivors, golden):
    """Appends to golden what becomes of each mutant; returns (caught, harmless, unexplained)."""
    lines = synced(tirc, path)
    name = pathlib.Path(path).name
    first = next(i for i, t in enumerate(lines) if t.startswith("kernel "))
    original = lines[first:]
    todo = list(mutants(original))
    caught = harmless = unexplained = 0
    if check(tirc, [Mutant(0, "nothing", original)])[0]:
        raise RuntimeError(f"{path} is not accepted as it is")
    # One by one, or together with others that are programs: a text that is not one stops the run.
    for start in range(0, len(todo), BATCH):
        batch = todo[start : start + BATCH]
        results = check(tirc, batch)
        if any(not is_program(m) for m in results):
            results = [check(tirc, [m])[0] for m in batch]
        for mutant, messages in zip(batch, results):
            if not is_program(messages):
                continue
            text = original[mutant.line].strip()
            text = text if len(text) < 70 else text[:60] + " ..."
            where = f"{name}:{first + mutant.line + 1}: {mutant.what}: {text}"
            if messages:
                caught += 1
                at, code, message, note = messages[0]
                other = f", {first + note}" if note else ""
                golden.append(f"{where}\n    {first + at}{other}: {code}: " + re.sub(
                    r"\bline (\d+)", lambda m: f"line {first + int(m[1])}", message))
                continue
            why = reason(survivors, mutant, original[mutant.line])
            if why:
                harmless += 1
                golden.append(f"{where}\n    accepted: {why}")
            else:
                unexplained += 1
                print(f"FAIL {where}: accepted, and nothing says why that is harmless")
    return caught, harmless, unexplained


def main(tirc, survivors, golden_path, *paths):
    update = "--update" in paths
    rules = [tuple(part.strip() for part in line.split("|"))
             for line in pathlib.Path(survivors).read_text(encoding="utf-8").splitlines()
             if line and not line.startswith("#")]
    golden, failed, total = [], 0, 0
    for path in (p for p in paths if p != "--update"):
        written = "form(synced)" in pathlib.Path(path).read_text(encoding="utf-8")
        caught, harmless, unexplained = run(tirc, path, rules, golden if written else [])
        failed += unexplained
        total += caught + harmless + unexplained
        counts = (f"{pathlib.Path(path).parent.name}/{pathlib.Path(path).name}: {caught} of "
                  f"{caught + harmless + unexplained} mutants refused")
        print(f"{counts}, {harmless} harmless")
        golden.append(counts)  # a reason must not hide that fewer are refused
    text = "\n".join(golden) + "\n"
    golden_path = pathlib.Path(golden_path)
    if update:
        golden_path.write_text(text, encoding="utf-8")
    elif golden_path.read_text(encoding="utf-8") != text:
        new = set(golden) - set(golden_path.read_text(encoding="utf-8").split("\n"))
        print(f"FAIL {golden_path.name} says something else (--update writes it anew)")
        old = golden_path.read_text(encoding="utf-8")
        print("\n".join(entry for entry in golden if entry not in old))
        failed += 1
    print(f"{total - failed} passed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
