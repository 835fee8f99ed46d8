#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random kernels by hand whose protocols depend on arguments, and bugs that show for few arguments: sync_check against the emulator.

Usage: handmade_races.py TIRC [--seed N] [--count N] [--kind NAME]

The protocols are those of tests/sync/kernels.py, and of the functions here: parts of buffers and tensors, slots, CTAs and products
whose places arguments give, and rings of any depth between three roles. A right program then gets

- guards: an access that others do not depend on stands in a branch on arguments;
- twins: what synchronises stands in both blocks of such a branch, or once in each of two branches one behind the other.

Such a program is accepted, with nothing left unchecked. One to three changes by the rules of tests/sync/mutate.py follow, most of them
in a block of such a branch, so that the bug shows for one argument, for a sum of two or for a remainder only, or where two or three
branches leave something out. Where the emulator finds a race, a hang or a missing fence for arguments that reach all branches
in some order, sync_check has refused the program or said what it leaves unchecked. Seed 0 is that of the day.
"""

import pathlib
import random
import re
import sys

import seeds

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "sync"))
import kernels  # pylint: disable=wrong-import-position
import mutate  # pylint: disable=wrong-import-position

FAULT = re.compile(r"^tirc: (?!uninitialised|in round)|no end after", re.MULTILINE)
GUARDED = re.compile(r"^\s*sum \+= .*;$|^\s*Y\[.*\] = .*;$")
MUTANTS, LAUNCHES, SCHEDULES = 3, 3, 2


class Conditions:
    """Conditions on arguments of their own, with arguments for which each holds."""

    def __init__(self, rng):
        self.rng, self.made = rng, []

    def new(self):
        rng, i = self.rng, len(self.made)
        a, b, k = f"a{i}", f"b{i}", rng.randrange(2, 90)
        big, n = rng.choice([4711, 100003, 77]), rng.choice([5, 7, 97])
        text, yes = rng.choice([
            (f"{a} == {big}", {a: big}), (f"{a} == {big}", {a: big}), (f"{a} != {big}", {a: 3}), (f"{a} > {k}", {a: k + rng.randrange(1, 9)}),
            (f"{a} < {k}", {a: k - 1}), (f"{a} % {n} == {n - 2}", {a: n * k + n - 2}), (f"{a} == {b} + {k}", {a: 2 * k, b: k}),
            (f"2 * {a} + 3 * {b} == {5 * k}", {a: k, b: k}), (f"{a} > 3 && {b} < 3", {a: 5, b: 1}), (f"({a} & 7) == 5", {a: 8 * k + 5}),
            (f"{a} < {k} || {b} == {big}", {a: k - 1, b: big}), (f"{a} - {b} > {big}", {a: big + k + 1, b: k}),
            (f"{a} / {n} == {k}", {a: n * k + 1})])
        self.made.append(({a: 0, b: 0} | yes, text))
        return text

    def bit(self):
        """Of an argument, where it is set."""
        name, bit = f"a{len(self.made)}", self.rng.randrange(4)
        text = f"({name} >> {bit} & 1)"
        self.made.append(({name: 1 << bit}, text))
        return text

    def params(self):
        return "".join(f", {name}: i32" for numbers, _ in self.made for name in sorted(numbers))

    def launches(self):
        """Arguments: all conditions hold, and then drawn ones of them."""
        for i in range(LAUNCHES):
            given = []
            for numbers, _ in self.made:
                hold = i == 0 or self.rng.random() < 0.5
                given += [f"{name}={number if hold else self.rng.choice([0, 1, number + 1, 512])}" for name, number in numbers.items()]
            yield given


def kernel(family, params, clauses, body, sizes, arch="sm_90a"):
    return kernels.kernel(family, "k", params, clauses, body, sizes)._replace(arch=arch)


# Where a part begins, below 48: an expression of arguments, and the same for Python.
PLACES = [("u % 48", lambda u, v: u % 48), ("v % 48", lambda u, v: v % 48), ("(u + 17) % 48", lambda u, v: (u + 17) % 48),
          ("where(u == 4711, i32(3), i32(40))", lambda u, v: 3 if u == 4711 else 40), ("(u + v) % 40 + 5", lambda u, v: (u + v) % 40 + 5),
          ("v / 16 % 40", lambda u, v: v // 16 % 40), ("u & 31", lambda u, v: u & 31), ("where(u > v, u % 7, i32(30))", lambda u, v: u % 7 if u > v else 30),
          ("min(u, 47)", lambda u, v: min(u, 47)), ("max(v % 48, 13)", lambda u, v: max(v % 48, 13)), ("(u * 5) % 48", lambda u, v: u * 5 % 48)]


def two_places(rng, rows):
    """Two of them, and arguments for which so many rows from each on meet, if there are such; or some that are apart for all."""
    if rng.random() < 0.35:
        first, second = rng.sample([("u % 8", 0), (f"{rows + 8} + v % 5", 0), (f"u % 3 + {2 * rows + 13}", 0)], 2)
        return first[0], second[0], {"u": rng.randrange(90), "v": rng.randrange(90)}, True
    (first, of_first), (second, of_second) = rng.sample(PLACES, 2)
    tries = [(rng.choice([0, 1, rng.randrange(100), 4711, 512]), rng.choice([0, 1, rng.randrange(100), 512, 960])) for _ in range(200)]
    u, v = next(((u, v) for u, v in tries if abs(of_first(u, v) - of_second(u, v)) < rows), tries[0])
    return first, second, {"u": u, "v": v}, False


def windows(rng):
    """Parts of a shared buffer at arguments; they are apart for all, or a barrier stands between them."""
    rows, threads = rng.choice([1, 4, 8, 16]), rng.choice([32, 64, 128])
    x, y, given, apart = two_places(rng, rows)
    into = rng.choice(["store", "groups", "tma", "elements"])
    take = rng.choice(["load", "elements", "view", "out"])
    part = f"[x:+{rows}, 0:+32]"
    lines = ["shared s: f32[64, 32];", "mbarrier full arrivals(1);", f"let x: i32 = {x};", f"let y: i32 = {y};", "store(s, X[0:+64, 0:+32]);",
             "fence(async_shared);", "bar_sync();"]
    lines += {"store": [f"store(s{part}, X[0:+{rows}, 0:+32] * 2.0);"], "elements": ["if tid() < 32 { s[x, tid()] = 1.0; }"],
              "groups": [f"copy_async(s{part}, X[0:+{rows}, 0:+32]);", "commit_group();", "wait_group(0);"],
              "tma": ["if tid() == 0 {", f"    expect_tx(full, {rows} * 32 * 4);",
                      f"    copy_async(s{part}, X[0:+{rows}, 0:+32], mbar = full, engine = tma);", "}"]}[into]
    if not apart or take == "out":
        lines += ["wait(full, 0);"] if into == "tma" else []
        lines += ["fence(async_shared);"] if take == "out" else []
        lines += ["bar_sync();"]
    lines += {"load": [f"Y[0:+{rows}, 0:+32] = load(s[y:+{rows}, 0:+32]) * 3.0;"], "elements": ["Y[i64(warpid()), i64(laneid())] = s[y, laneid()];"],
              "view": [f"Y[0:+{rows}, 0:+32] = load(s[y:+{rows}, :]).T.T;"],
              "out": ["if tid() == 0 {", f"    copy_async(Y[0:+{rows}, 0:+32], s[y:+{rows}, 0:+32], engine = tma);", "    commit_group(engine = tma);",
                      "    wait_group(0, engine = tma);", "}"]}[take]
    if into == "tma" and apart and take != "out":
        lines.append("wait(full, 0);")
    return kernel("windows", "X: f32[64, 32], Y: inout f32[16, 32], u: i32, v: i32", f"grid(1) threads({threads}) where u >= 0 && v >= 0", lines,
                  [*(f"{name}={number}" for name, number in given.items()), "Y=zeros"])


def shifted(rng):
    """A ring whose first slot is an argument; both roles begin there."""
    slots, rounds, warps = rng.choice([2, 3, 4]), rng.randrange(2, 7), rng.choice([1, 2])
    threads = 32 * warps
    slot = f"(i32(r) + u) % {slots}"
    phase = f"i32(r) / {slots} % 2"
    here = f"tid() % {threads}"
    lines = [f"shared buf: f32[{slots}, {threads}];", f"mbarrier full[{slots}] arrivals({threads});",
             f"mbarrier empty[{slots}] arrivals({threads});",
             f"role load warps({warps}) {{", f"    for r in range(0, {rounds}) {{", f"        let q: i32 = {slot};",
             f"        wait(empty[q], 1 - {phase});",
             f"        buf[q, {here}] = X[i64(r) * {threads} + i64({here})];",
             "        arrive(full[q]);", "    }", "}",
             f"role math warps({warps}) {{", "    var sum: f32 = 0;",
             f"    for r in range(0, {rounds}) {{", f"        let q: i32 = {slot};",
             f"        wait(full[q], {phase});",
             f"        sum += buf[q, {kernels.permuted(rng, threads).replace('tid()', f'({here})')}];",
             "        arrive(empty[q]);", "    }", f"    Y[i64({here})] = sum;", "}"]
    return kernel("shifted", "X: f32[N], Y: out f32[M], u: i32", f"grid(1) threads({2 * threads}) where u >= 0", lines,
                  [f"N={rounds * threads}", f"M={threads}", f"u={rng.choice([0, 1, 2, 3, 7])}"])


def in_tensors(rng):
    """Parts of a tensor at arguments are written and read back."""
    rows, threads = rng.choice([8, 16]), rng.choice([64, 128])
    back = rng.choice(["loads", "groups", "tma"])
    apart = rng.random() < 0.4
    lines = [f"shared q: f32[{rows}, 32];", "mbarrier full arrivals(1);", f"P[u:+{rows}, 0:+32] = X[0:+{rows}, 0:+32];"]
    if not apart:
        lines += ["fence(async_global);"] if back == "tma" else []
        lines += ["bar_sync();"]
    lines += {"loads": [f"Y[0:+{rows}, 0:+32] = P[v:+{rows}, 0:+32];"],
              "groups": [f"copy_async(q, P[v:+{rows}, 0:+32]);", "commit_group();", "wait_group(0);", "bar_sync();",
                         f"Y[0:+{rows}, 0:+32] = load(q) * 2.0;"],
              "tma": ["if tid() == 0 {", "    expect_tx(full, bytes(q));",
                      f"    copy_async(q, P[v:+{rows}, 0:+32], mbar = full, engine = tma);", "}", "wait(full, 0);",
                      f"Y[0:+{rows}, 0:+32] = load(q) * 2.0;"]}[back]
    far = rng.choice([f"u + {rows} <= v", f"v == u + {rows + 3}", f"u >= {rows} && v + {rows} <= u"])
    where = f"u >= 0 && v >= 0 && {far}" if apart else "u >= 0 && v >= 0" + rng.choice(["", " && u != v", " && u > v + 2", " && v == 3 * u + 1"])
    u = rng.randrange(0, 40)
    v = u + rng.choice([0, 1, -1, rows - 1, rows, 3])
    if "3 * u" in where:
        u, v = rng.choice([(0, 1), (1, 4), (2, 7)])
    elif "u > v" in where:
        v, u = u, u + rng.choice([3, rows - 1])
    elif "u !=" in where:
        v = u + rng.choice([1, 3, rows - 1])
    elif apart:
        u, v = (v, u) if "<= u" in far else (u, v)
        u, v = (u, u + rows + 3) if "==" in far else (u + rows, max(u - 2, 0)) if "<= u" in far else (u, u + rows)
    v = max(v, 0)
    return kernel("in_tensors", "X: f32[16, 32], P: inout f32[128, 32], Y: inout f32[16, 32], u: i64, v: i64",
                  f"grid(1) threads({threads}) where {where}", lines, [f"u={u}", f"v={v}", "P=zeros", "Y=zeros"])


def products_at(rng):
    """Operands in slots that arguments give; the next round has other slots."""
    rounds, slots = rng.randrange(1, 4), rng.choice([2, 3])
    late = rng.random() < 0.4 and rounds > 1
    lines = [f"shared a: bf16[{slots}, 64, 64] in swizzle(128);", f"shared b: bf16[{slots}, 64, 64] in swizzle(128);",
             "var acc: f32[64, 64] in fragment(wgmma) = 0;", f"for r in range(0, {rounds}) {{",
             f"    let q: i32 = (i32(r) + u) % {slots};",
             "    store(a[q], A[0:+64, r * 64:+64]);", "    store(b[q], B[0:+64, r * 64:+64]);",
             "    fence(async_shared);", "    bar_sync();", "    fence(wgmma);",
             "    gemm_async(acc, a[q], b[q].T);", "    commit_group(engine = wgmma);",
             *(["    await(acc);"] if not late else [f"    wait_group({slots - 2}, engine = wgmma);"]), "    bar_sync();",
             "}", *(["await(acc);"] if late else []), "D[0:+64, 0:+64] = acc;"]
    return kernel("products_at", "A: bf16[M, K], B: bf16[N, K], D: out f32[M, N], u: i32", "grid(1) threads(128) where u >= 0", lines,
                  ["M=64", "N=64", f"K={64 * rounds}", f"u={rng.choice([0, 1, 2, 5])}"])


def to_cta(rng):
    """A CTA writes the buffer of one whose rank is an argument further on."""
    ctas, rounds, threads = rng.choice([2, 4]), rng.randrange(1, 4), rng.choice([32, 64])
    body = [f"remote(s, (cta_rank() + u) % {ctas})[tid()] = X[i64(r + 0) * {threads} + i64(tid())] + f32(cta_rank());",
            "cluster_sync();", f"sum += s[{kernels.permuted(rng, threads)}];", "cluster_sync();"]
    lines = [f"shared s: f32[{threads}];", "var sum: f32 = 0;", "cluster_sync();", *kernels.counted(rng, rounds, body),
             f"Y[i64(cta_id()) * {threads} + i64(tid())] = sum;"]
    return kernel("to_cta", "X: f32[N], Y: out f32[M], u: i32", f"grid({ctas}) threads({threads}) cluster({ctas}) where u >= 0", lines,
                  [f"N={rounds * threads}", f"M={ctas * threads}", f"u={rng.choice([0, 1, 2, 3, 5])}"])


def three_roles(rng):
    """Copies fill a ring, a role changes what is there and hands it on in a second ring, and copies leave from that."""
    first, second, rounds = rng.randrange(1, 5), rng.randrange(1, 4), rng.randrange(1, 7)
    rows, warps = rng.choice([8, 16]), rng.choice([1, 2, 4])
    elected = rng.choice(["elect_sync()", "laneid() == 0"])
    by = rng.choice(["tma", "threads", "groups"])
    fill = {"tma": [f"if {elected} {{", "    expect_tx(full[s], bytes(buf[s]));",
                    f"    copy_async(buf[s], X[r * {rows}:+{rows}, 0:+32], mbar = full[s], engine = tma);", "}"],
            "threads": [f"store(buf[s], X[r * {rows}:+{rows}, 0:+32] + 1.0);", "arrive(full[s]);"],
            "groups": [f"copy_async(buf[s], X[r * {rows}:+{rows}, 0:+32]);", "commit(full[s], engine = cp_async);"]}[by]
    lines = [f"shared buf: f32[{first}, {rows}, 32];", f"shared out: f32[{second}, {rows}, 32];",
             f"mbarrier full[{first}] arrivals({1 if by == 'tma' else 32});", f"mbarrier empty[{first}] arrivals({warps});",
             f"mbarrier ready[{second}] arrivals({32 * warps});", f"mbarrier free[{second}] arrivals(1);",
             "role load warps(1) {", f"    var s: stage({first}, phase = 1);", f"    for r in range(0, {rounds}) {{",
             "        wait(empty[s], s.phase);", *kernels.indented(kernels.indented(fill)), "        s.advance();", "    }", "}",
             f"role math warps({warps}) {{", f"    var s: stage({first}, phase = 0);", f"    var a: stage({second}, phase = 1);",
             f"    for r in range(0, {rounds}) {{", "        wait(full[s], s.phase);", "        wait(free[a], a.phase);",
             "        store(out[a], load(buf[s]) * 2.0);", "        fence(async_shared);", "        arrive(ready[a]);",
             "        warp_sync();", "        if laneid() == 0 { arrive(empty[s]); }", "        s.advance();", "        a.advance();",
             "    }", "}",
             "role leave warps(1) {", f"    var a: stage({second}, phase = 0);", f"    for r in range(0, {rounds}) {{",
             "        wait(ready[a], a.phase);", "        if laneid() == 0 {",
             f"            copy_async(Y[r * {rows}:+{rows}, 0:+32], out[a], engine = tma);", "            commit_group(engine = tma);",
             "            wait_group(0, engine = tma, read = 1);", "            arrive(free[a]);", "        }", "        a.advance();",
             "    }", "    if laneid() == 0 { wait_group(0, engine = tma); }", "}"]
    return kernel("three_roles", "X: f32[N, K], Y: out f32[N, K]", "grid(1) where K == 32", lines, [f"N={rounds * rows}", "K=32"])


def sums_at(rng):
    """A product in one of several accumulators in tensor memory, which an argument gives."""
    places, rounds = rng.choice([2, 3, 4]), rng.randrange(1, 3)
    lines = [f"shared As: bf16[{rounds}, 128, 64] in swizzle(128);", f"shared Bs: bf16[{rounds}, 32, 64] in swizzle(128);",
             "mbarrier full arrivals(1);", "mbarrier done arrivals(1);", f"tmem acc: f32[{places}, 128, 32];", "if warpid() == 0 {",
             "    if elect_sync() {", f"        expect_tx(full, {rounds} * (bytes(As[0]) + bytes(Bs[0])));",
             f"        for r in range(0, {rounds}) {{",
             "            copy_async(As[r], A[0:+128, r * 64:+64], mbar = full, engine = tma);",
             "            copy_async(Bs[r], B[0:+32, r * 64:+64], mbar = full, engine = tma);", "        }", "    }",
             "    wait(full, 0);", "    if elect_sync() {", f"        for r in range(0, {rounds}) {{",
             f"            gemm_async(acc[u % {places}], As[r], Bs[r].T, accumulate = r > 0);", "        }", "        commit(done);",
             "    }", "}", "wait(done, 0);", "fence(after_thread_sync);",
             f"Y[0:+128, 0:+32] = acc[u % {places}, 0:+128, 0:+32];"]
    return kernel("sums_at", "A: bf16[M, K], B: bf16[N, K], Y: out f32[M, N], u: i32", "grid(1) threads(128) where K % 8 == 0 && u >= 0",
                  lines, ["M=128", "N=32", f"K={rounds * 64}", f"u={rng.choice([0, 1, 2, 3, 6])}"], "sm_100a")


HERE = [windows, shifted, in_tensors, products_at, to_cta, three_roles, sums_at]
FAMILIES = HERE + HERE + [windows, in_tensors] + [f for f in kernels.FAMILIES if f.__name__ not in kernels.AMONG_CTAS]


def twins(lines, at, conditions, rng):
    """What synchronises, in both blocks of a branch; or twice, and each time a branch may leave it out or not."""
    line = lines[at]
    indent = line[:len(line) - len(line.lstrip())]
    both = [f"{indent}if {conditions.new()} {{", f"    {line}", f"{indent}}} else {{", f"    {line}", f"{indent}}}"]
    if line.strip() in ("bar_sync();", "cluster_sync();") and rng.random() < 0.5:
        both += [f"{indent}if {conditions.new()} {{", f"    {line}", f"{indent}}} else {{", f"    {line}", f"{indent}}}"]
    return lines[:at] + both + lines[at + 1:]


def guard(lines, at, conditions):
    line = lines[at]
    indent = line[:len(line) - len(line.lstrip())]
    return lines[:at] + [f"{indent}if {conditions.new()} {{", f"    {line}", f"{indent}}}"] + lines[at + 1:]


def with_branches(rng, made, conditions):
    lines = list(made.text)
    for _ in range(rng.choice([0, 1, 1, 2, 3])):
        places = [i for i, line in enumerate(lines) if mutate.is_sync(line) and "if " not in line]
        accesses = [i for i, line in enumerate(lines) if GUARDED.match(line)]
        if accesses and rng.random() < 0.3:
            lines = guard(lines, rng.choice(accesses), conditions)
        elif places:
            lines = twins(lines, rng.choice(places), conditions, rng)
    return lines


def index_moves(lines, at, conditions):
    """A place is further on where a condition holds; or a phase is the other one, by a bit of an argument."""
    line = lines[at]
    wait = re.search(r"\bwait\(([^,]*), ([^;]*)\);", line)
    if wait and conditions.rng.random() < 0.5:
        return [[f"{line[:wait.start()]}wait({wait[1]}, ({wait[2]} + {conditions.bit()}) % 2);{line[wait.end():]}"]]
    if mutate.DECLARES.match(line) or not mutate.ACCESS.search(line):
        return []
    found = list(re.finditer(r"\[(q|s|a|u|v|r \* \d+)([\],:])", line))
    return [[line[:m.start()] + f"[where({conditions.new()}, {m[1]} + 1, {m[1]}){m[2]}" + line[m.end():]] for m in found]


def other_place(lines, at):
    """Another slot, part, row or CTA than an argument gives."""
    if at < 2:
        return []
    found = mutate.edits(lines[at], r"\b([uv])\b(?!:|[^\[]*\bi32, )", r"(\1 + 1)", r"(2 * \1)", r"(\1 ^ 1)", "0")
    return found + mutate.edits(lines[at], r"\bu\b", "v") if "v: i32" in lines[0] else found


def wrong(rng, lines, conditions):
    """One to three changes, most of them in blocks of branches on arguments."""
    for _ in range(rng.choice([1, 1, 2, 3])):
        found = list(mutate.mutants(lines))
        inside = [m for m in found if re.match(r"\s*(if .*\ba\d+\b.*\{|\} else \{)$", lines[max(m.at - 1, 0)])]
        drops = [m for m in inside if m.rule == "drop"]
        if rng.random() < 0.2:
            moved = [(at, new) for at in range(len(lines)) for new in index_moves(lines, at, conditions)]
            if moved:
                at, new = rng.choice(moved)
                lines = lines[:at] + new + lines[at + 1:]
                continue
        placed = [(at, new) for at in range(len(lines)) for new in other_place(lines, at)]
        if placed and rng.random() < 0.4:
            at, new = rng.choice(placed)
            lines = lines[:at] + new + lines[at + 1:]
            continue
        some = drops if drops and rng.random() < 0.5 else inside if inside and rng.random() < 0.7 else found
        if some:
            lines = rng.choice(some).text
    return lines


def finished(lines, conditions):
    """Its text, with the arguments of the conditions."""
    text = "\n".join(lines) + "\n"
    head, rest = text.split("\n", 1)
    return f"{head[:-1]}{conditions.params()})\n{rest}"


def draw(seed, kind=None):
    rng = random.Random(seed)
    families = [f for f in FAMILIES if kind in (None, f.__name__)]
    made = families[seed % len(families)](rng)
    conditions = Conditions(rng)
    right = with_branches(rng, made, conditions)
    mutants = []
    for _ in range(MUTANTS):
        own = Conditions(rng)
        if rng.random() < 0.4:  # in every case, where the places may meet for few arguments alone
            drops = [m.text for m in mutate.mutants(made.text) if m.rule == "drop" and "advance" not in made.text[m.at]]
            text = with_branches(rng, made._replace(text=rng.choice(drops)), own) if drops else right
        else:
            own.made = list(conditions.made)
            text = wrong(rng, right, own)
        mutants.append((finished(text, own), list(own.launches())))
    return finished(right, conditions), made, mutants, list(conditions.launches())


def fault(tirc, path, made, launches):
    for given in launches:
        command = [tirc, "run", str(path), f"--arch={made.arch}", "--device=emu", "--emu-check=full", "--emu-threads=1",
                   f"--explore={SCHEDULES}", *made.sizes, *given]
        why = seeds.failure(command)
        if why and FAULT.search(why):
            return why
    return None


def missed(tirc, path, made, mutants, launches):
    def check():
        return seeds.done([tirc, "check", str(path), f"--arch={made.arch}", "--require=sync"])
    done = check()
    if done.returncode:
        return f"not accepted: {done.stderr}{fault(tirc, path, made, launches)}"
    if why := fault(tirc, path, made, launches):
        return f"accepted, but {why}"
    for text, given in mutants:
        path.write_text(text)
        if check().returncode == 0 and (why := fault(tirc, path, made, given)):
            return f"{text}accepted, but {why}"
    return None


def main():
    parser = seeds.parser(__doc__, "tirc", count=20)
    parser.add_argument("--kind", help="of one protocol")
    options = parser.parse_args()
    failed = []
    passed = sum(1 for _ in seeds.passing(options, lambda seed: draw(seed, options.kind), lambda *of: missed(options.tirc, *of), failed))
    print(f"{passed} passed, {len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
