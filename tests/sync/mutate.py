# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rules that take the synchronisation of a kernel apart, one place at a time.

A rule takes the lines and the number of one of them and gives what the line may become: a list of
lists of lines, [] where it says nothing about this line. mutants() has everything that all rules say.
"""

import collections
import re

Mutant = collections.namedtuple("Mutant", "rule at text")

SYNC = re.compile(r"\b(bar_sync|bar_arrive|warp_sync|wait|arrive|expect_tx|fence|commit|commit_group|"
                  r"wait_group|await|cluster_sync|cluster_arrive|cluster_wait)\(")
SIMPLE = re.compile(r"^\s*[^{}]*;$|^\s*if [^{}]*\{[^{}]*\}$")  # a whole statement on its line
ACCESS = re.compile(r"\w\[|\b(store|load|copy_async|gemm_async)\(")
DECLARES = re.compile(r"^\s*(let|var|shared|mbarrier)\b")


def is_sync(line):
    return bool(SYNC.search(line)) and bool(SIMPLE.match(line)) and not DECLARES.match(line)


def edits(line, pattern, *news):
    """The line with one match of the pattern replaced, each match by each of the new texts."""
    out = []
    for found in re.finditer(pattern, line):
        for new in news:
            text = new(found) if callable(new) else found.expand(new)
            edited = line[: found.start()] + text + line[found.end() :]
            if edited != line:
                out.append([edited])
    return out


def stepped(by):
    return lambda found: f"{found[1]}{max(int(found[2]) + by, 0)}"


def drop(lines, at):
    return [[]] if is_sync(lines[at]) or "advance" in lines[at] else []


def twice(lines, at):
    return [[lines[at]] * 2] if is_sync(lines[at]) else []


def count(lines, at):
    line = lines[at]
    out = edits(line, r"(\barrivals\()(\d+)", stepped(1), stepped(-1))
    out += edits(line, r"(\bwait_group\()(\d+)", stepped(1), stepped(-1))
    if is_sync(line):
        out += edits(line, r"(threads = )(\d+)", stepped(32), stepped(-32))
        out += edits(line, r"(\barrive\([^(){}]*)\)", r"\1, count = 2)")
        out += edits(line, r"\b2 \* \(bytes", "(bytes")
        out += edits(line, r"(bytes\([^()]*\))", r"\1 + 16", r"\1 - 16")
    return out


def parity(lines, at):
    return (edits(lines[at], r"phase = ([01])", lambda f: f"phase = {1 - int(f[1])}") +
            edits(lines[at], r"\bs\.phase\b", "1 - s.phase", "0", "1") +
            edits(lines[at], r"\ba\.phase\b", "1 - a.phase", "0", "1"))


def scope(lines, at):
    out = edits(lines[at], r"\bfence\(gpu\)", "fence(cta)", "fence(cluster)")
    out += edits(lines[at], r"\bfence\(async_shared\)", "fence(wgmma)", "fence(cta)")
    out += edits(lines[at], r"\bfence\(async_global\)", "fence(async_shared)", "fence(gpu)")
    out += edits(lines[at], r"\bfence\(wgmma\)", "fence(async_shared)")
    out += edits(lines[at], r"\bfence\(before_thread_sync\)", "fence(after_thread_sync)")
    out += edits(lines[at], r"\bfence\(after_thread_sync\)", "fence(before_thread_sync)")
    out += edits(lines[at], r"\bcluster_sync\(\)", "bar_sync()")
    out += edits(lines[at], r"\bbar_sync\(\)", "warp_sync()", "bar_sync(id = 1, threads = 32)")
    out += edits(lines[at], r", read = 1", "")
    out += edits(lines[at], r"(wait_group\(\d+, engine = tma)\)", r"\1, read = 1)")
    return out


def cta(lines, at):
    """Another CTA of a cluster."""
    out = edits(lines[at], r"\bctas = 3\b", "ctas = 1", "ctas = 2")
    out += edits(lines[at], r", ctas = 3\b", "")
    out += edits(lines[at], r"\bcta = 0\b", "cta = 1") + edits(lines[at], r", cta = 0\b", "")
    out += edits(lines[at], r"\bremote\((full\[s\]), 0\)", r"remote(\1, 1)", r"\1")
    return out + edits(lines[at], r"\bme == 0\b", "me == 1", "me >= 0")


def slot(lines, at):
    if DECLARES.match(lines[at]) and "let " not in lines[at]:
        return []
    return (edits(lines[at], r"\[s\]", "[0]") + edits(lines[at], r"\[s,", "[0,") +
            edits(lines[at], r"(\w+|\)) % (\d+)\b(?! ==)", lambda f: f"({f[1]} + 1) % {f[2]}",
                  lambda f: f"{f[1]} % {max(int(f[2]) - 1, 1)}") +
            edits(lines[at], r"\[q\]", "[0]") + edits(lines[at], r"\[1 - from,", "[from,") +
            edits(lines[at], r"(id = )(\d+)", stepped(1)))


def who(lines, at):
    line = lines[at]
    out = edits(line, r"\b(laneid\(\)|tid\(\)) == 0\b", r"\1 < 2", r"\1 == 1", r"\1 == 33",
                r"\1 % 16 == 0")
    out += edits(line, r"\belect_sync\(\)", "laneid() < 2")
    out += edits(line, r"\[warpid\(\),", "[0,")
    out += edits(line, r"\btid\(\)\] =", "tid() / 2] =")
    out += edits(line, r"i64\((warpid\(\)|tid\(\) / 32|warpid\(\) / 2|wgid\(\))\)\] = ", "0] = ", "i64(warpid() / 4)] = ")
    if is_sync(line) and "if " not in line:
        indent = line[: len(line) - len(line.lstrip())]
        for condition in ("laneid() == 0", "tid() % 2 == 0", "tid() < 32", "num_ctas() > 1"):
            out.append([f"{indent}if {condition} {{ {line.strip()} }}"])
    return out


def part(lines, at):
    """What another warpgroup has."""
    return edits(lines[at], r"\bg \* 64", "(1 - g) * 64", "0")


def share(lines, at):
    """Parts begin nearer to each other than they are long, or of tensors are longer, on both sides of a statement.

    Not those of a CTA that a request has given: what data decides is left to the program (docs/checking.md)."""
    line = lines[at]
    if "i64(t)" in line and any("first_ctaid" in text for text in lines):
        return []
    out = edits(line, r"(\)|\bme|\br) \* (8|16|32|64|128|256)\b", lambda f: f"{f[1]} * {int(f[2]) // 2}")
    longer = re.sub(r":\+(8|16|32|64)\b", lambda f: f":+{2 * int(f[1])}", line)
    on_chip = DECLARES.match(line) or re.search(r"\b[a-z]\w*\[[^]]*:\+", line)
    return out + ([[longer]] if longer != line and not on_chip else [])


def skip(lines, at):
    """Not in every round."""
    line = lines[at]
    inside = any(re.match(r"\s*for r in", text) for text in lines[:at])
    if not inside or not is_sync(line) or "if " in line:
        return []
    indent = line[: len(line) - len(line.lstrip())]
    return [[f"{indent}if {c} {{ {line.strip()} }}"] for c in ("r > 0", "r != 3", "r % 2 == 0")]


RULES = [drop, twice, count, parity, scope, cta, slot, who, part, share, skip]


def closes(lines, at):
    """The number of the line that ends the block that lines[at] opens."""
    depth = 0
    for i in range(at, len(lines)):
        depth += lines[i].count("{") - lines[i].count("}")
        if depth == 0:
            return i
    return len(lines) - 1


def moves(lines):
    """Synchronisation a statement earlier or later, or out of the block that it begins or ends."""
    for at, line in enumerate(lines):
        if not is_sync(line):
            continue
        for to in (at - 1, at + 1):
            other = lines[to]
            rest = lines[:at] + lines[at + 1 :]
            if SIMPLE.match(other) and not DECLARES.match(other) and (
                    ACCESS.search(other) or is_sync(other)):
                yield Mutant("swap", at, rest[:to] + [line] + rest[to:])
            elif other.rstrip().endswith("{") and to < at or other.strip() == "}" and to > at:
                yield Mutant("move out", at, rest[:to] + [line] + rest[to:])
        for to in range(at + 1, len(lines)):
            if lines[to].strip() == "}":
                rest = lines[:at] + lines[at + 1 :]
                yield Mutant("move to end", at, rest[: to - 1] + [line] + rest[to - 1 :])
                break


def mutants(lines):
    for rule in RULES:
        for at in range(len(lines)):
            for new in rule(lines, at):
                yield Mutant(rule.__name__, at, lines[:at] + new + lines[at + 1 :])
    yield from moves(lines)
