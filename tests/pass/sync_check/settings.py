# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Wrong kernels whose mistake shows for some arguments, CTAs, tiles or rounds alone, and right ones.

Usage: settings.py TIRC [SEED [COUNT]]

Each kernel of PAIRS has a place, @@, where the right one has a barrier and the wrong one has not. The
wrong one must be refused, and the right one accepted with nothing left unchecked, but for those that
are said to be OPEN: what they do never repeats, so of all rounds only some are replayed, and the
warning says of which loop, and why.

Then kernels that race for whatever arguments get the conditions of HARD, and COUNT get conditions at
random, which one assignment that is drawn first satisfies. Each must be refused: arguments that its
conditions allow have to be found. As many kernels with the same conditions and a loop that is in
order must be accepted, with nothing left unchecked.
"""

import math
import pathlib
import random
import re
import subprocess
import sys
import tempfile

BATCH = 12  # kernels a run: fewer than the errors that one run shows
FOUND = re.compile(r"^[^ \n]*:(\d+):\d+: (?:error|warning)\[(\w+)\]: (.*)$", re.MULTILINE)


def loop(head, begin="", step="", at="m", params="", where=""):
    """A loop that stages 64 elements a round; the next round overwrites what this one reads."""
    return f"""kernel NAME(X: f32[M], Y: out f32[M]{params}) grid(1) threads(64) {where}
{{
    shared s: f32[64];
    let t = i64(tid());
    {begin}
    {head} {{
        s[t] = X[{at} + t];
        bar_sync();
        Y[{at} + t] = s[63 - t];
        @@
        {step}
    }}
}}
"""


def branch(cond, grid="ceildiv(N, 64)", params="", where="", cta="cta_id()"):
    """A barrier that one side of a branch lacks."""
    return f"""kernel NAME(X: f32[N], Y: out f32[N]{params}) grid({grid}) threads(64) {where}
{{
    shared s: f32[64];
    let t = i64(tid());
    let b = i64({cta}) * 64;
    s[t] = X[b + t];
    if {cond} {{ @@ }} else {{ bar_sync(); }}
    Y[b + t] = s[63 - t];
}}
"""


def rounds(cond, begin="", step=""):
    """A barrier that some rounds of a loop lack."""
    return loop("for m in range(0, M, 64)", begin,
                f"if {cond} {{ @@ }} else {{ bar_sync(); }} {step}").replace("        @@\n", "", 1)


def offsets(cond):
    """The same, of a loop whose bounds are loaded; they decide about the barrier."""
    return loop("for m in range(0, n, 64)", "let a = i64(F[0]); let n = i64(F[1]) - a;",
                f"if {cond} {{ @@ }} else {{ bar_sync(); }}",
                params=", F: i32[2]").replace("        @@\n", "", 1)


def tiles(cond, begin="", step=""):
    """A barrier that some tiles of a CTA lack; the barrier is the role's own."""
    barrier = "bar_sync(id = 1, threads = 64);"
    return f"""kernel NAME(X: f32[M], Y: out f32[M]) threads(96)
{{
    shared s: f32[64];
    role work warps(2) {{
        {begin}
        for m in tiles(M by 64, persistent) {{
            let t = i64(tid());
            s[t] = X[m + t];
            {barrier}
            Y[m + t] = s[63 - t];
            if {cond} {{ @@ }} else {{ {barrier} }}
            {step}
        }}
    }}
    role other warps(1) {{ }}
}}
""".replace("@@", "@@" + barrier)


PAIRS = {
    # The step of a while is that of what its condition compares.
    "while_by_64": loop("while m < M", "var m: i64 = 0;", "m += 64;"),
    "while_by_4096": loop("while m < M", "var m: i64 = 0;", "m += 4096;"),
    "while_turned": loop("while M > m", "var m: i64 = 0;", "m += 64;"),
    "while_down": loop("while m >= 0", "var m: i64 = M - 64;", "m -= 64;"),
    "while_doubles": loop("while m < M", "var m: i64 = 64;", "m = m * 2;"),
    "while_halves": loop("while m > 32", "var m: i64 = M;", "m = m / 2;"),
    "while_whole": loop("while m + 64 <= M", "var m: i64 = 0;", "m += 64;"),
    "while_by_argument": loop("while m < M", "var m: i64 = 0;", "m += S;", params=", P: f32[S]",
                              where="where S > 0"),
    # An `if` or a `where` chooses the step: by an argument, by data, by the counter itself.
    "while_step_by_argument": loop("while m < M", "var m: i64 = 0; let c = a > 3;",
                                   "if c { m += 64; } else { m += 32; }", params=", a: i32"),
    "while_step_by_size": loop("while m < M", "var m: i64 = 0; let c = M > 1000;",
                               "if c { m += 64; } else { m += 32; }"),
    "while_step_by_a_load": loop("while m < M", "var m: i64 = 0; let c = F[0] > 0;",
                                 "if c { m += 64; } else { m += 32; }", params=", F: i32[1]"),
    "while_step_by_data": loop("while m < M", "var m: i64 = 0;",
                               "if F[m] > 0 { m += 64; } else { m += 32; }", params=", F: i32[M]"),
    "while_step_where": loop("while m < M", "var m: i64 = 0;", "m += where(F[m] > 0, 64, 32);",
                             params=", F: i32[M]"),
    "while_step_by_itself": loop("while m < M", "var m: i64 = 0;",
                                 "if m < 640 { m += 64; } else { m += 32; }"),
    "while_step_of_three": loop("while m < M", "var m: i64 = 0;",
                                "if a > 3 { m += 64; } else { if a > 9 { m += 32; } else { m += 96; } }",
                                params=", a: i32"),
    "while_steps": loop("while m < M", "var m: i64 = 0;",
                        "if a > 3 { m += 32; } if a == 9 { m += 64; } m += 32;", params=", a: i32"),
    "while_step_down": loop("while m > 0", "var m: i64 = M;",
                            "if F[m] > 0 { m -= 64; } else { m -= 32; }", params=", F: i32[M]"),
    "while_step_at_least": loop("while m < M", "var m: i64 = 0;", "m += max(i64(a), 64);",
                                params=", a: i32"),
    "while_step_both_ways": loop("while m < M", "var m: i64 = 0;",
                                 "if F[m] > 0 { m += 64; } else { m -= 32; }", params=", F: i32[M]"),
    "while_two_values": loop("while r > 0", "var m: i64 = 0; var r = M / 64;", "m += 64; r -= 1;"),
    "while_they_meet": loop("while m < n", "var m: i64 = 0; var n = M;", "m += 64; n -= 64;"),
    "while_not_equal": loop("while m != M", "var m: i64 = 0;", "m += 64;", where="where M % 64 == 0"),
    "while_and": loop("while m < M && m < 100000", "var m: i64 = 0;", "m += 64;"),
    "for_of_a_quotient": loop("for i in range(0, M / 64)", at="(i * 64)"),
    "grid_stride": loop("while m < M", "var m = i64(cta_id()) * 64;", "m += i64(num_ctas()) * 64;"),
    # CTAs that are not the first, and arguments that make a branch go the other way.
    "odd_ctas": branch("cta_id() % 2 == 1"),
    "several_ctas": branch("num_ctas() > 1"),
    "cta_5": branch("cta_id() == 5"),
    "last_cta": branch("cta_id() == num_ctas() - 1 && cta_id() > 0"),
    "second_axis": branch("cta_id(1) == 1", "ceildiv(N, 256), 4", cta="cta_id(0) * 4 + cta_id(1)"),
    "fixed_grid": branch("cta_id() >= 100", "132"),
    "one_size": branch("N == 37"),
    "remainder": branch("N % 7 == 3 && N > 20"),
    "bits": branch("((N >> 6) & 15) == 15"),
    "large": branch("N > 100000"),
    "scalar": branch("flag == 3", params=", flag: i32"),
    "sum_of_scalars": branch("a + b == 100", params=", a: i32, b: i32"),
    "product": branch("i64(a) * N == 231", params=", a: i32"),
    "either": branch("cta_id() == 3 || N == 999"),
    "some_threads": branch("tid() >= 0 && N == 4097"),
    "last_part": branch("N % 64 != 0 && cta_id() == num_ctas() - 1"),
    # Rounds and tiles.
    "round_7": rounds("(m / 64) % 7 == 6"),
    "every_7_rounds": rounds("ceildiv(M, 64) % 7 == 0"),
    "round_100": rounds("(m / 64) % 100 == 99"),
    "round_300": rounds("(m / 64) % 300 == 123"),
    "masked_rounds": rounds("((m >> 6) & 31) == 17"),
    "two_remainders": rounds("(m / 64) % 16 == 7 || (m / 64) % 9 == 2"),
    "remainder_of_a_sum": rounds("(m + i64(cta_id()) * 64) % 1024 == 960"),
    "counted_rounds": rounds("n % 7 == 6", "var n = 0;", "n += 1;"),
    "one_round": rounds("m == 640"),
    # Numbers that are loaded and that bounds of loops are computed from.
    "loaded_count": offsets("n == 1003"),
    "loaded_round": offsets("m + 101 == n"),
    "loaded_begin": offsets("a + 7 == n && n % 64 == 63"),
    # A number that says where in a tensor an element is, and no more.
    "row_0": """kernel NAME(X: inout f32[M, 64], row: i32, Y: out f32[64]) grid(1) threads(64)
{
    let t = i64(tid());
    Y[t] = X[i64(row), 63 - t];
    @@
    X[0, t] = 1;
}
""",
    "tile_16": tiles("(m / 64) % 16 == 15"),
    "tile_37": tiles("m == 64 * 37"),
    "counted_tiles": tiles("n % 7 == 6", "var n = 0;", "n += 1;"),
}

OPEN = {"while_they_meet": "rounds of this loop: no state was seen to recur; m, n had no number twice",
        "while_step_both_ways": "rounds of this loop: no state was seen to recur"}

# Conditions that random ones have shown to be hard: a factor divides what is left of its product, as
# G divides 57 here, a factor is large, two quotients have one divisor, or a size is a product of
# several others, or it allows a few rounds alone.
HARD = [(["N", "G"], "G == N - 57 && N % G == 0 && N >= 11"),
        (["N", "H", "G"], "N == G * 1000 && N == H + 900 && H % G == 0"),
        (["N", "H", "G"], "H == G - 4 && G % H == 0 && N / G == 1"),
        (["N", "G"], "G == 900 - N && G % N == 0"),
        (["N", "H"], "H * N >= 19775803"),
        (["N", "H", "G"], "(G + 4) * H == 1253658 && G >= 18 && (G + 7) * H == 1267797 && N < 3090"),
        (["N", "H"], "!(N == 1024) && H * N >= 921592 && N + H == 1920 && H >= 87"),
        (["N", "H"], "min(H, N) == 8 && H % 16 == 8 && H < 403"),
        (["N", "H", "G"], "N / H == 18 && N == H * G && max(N, G) >= 288 && H / 64 == 0"),
        (["N", "H"], "H + N == 1500 && N / H == 2"),
        (["N", "H", "G", "E"], "E * N >= 2693 && ceildiv(G, 4) <= 5 && N == H * G * E")]


def check(tirc, kernels):
    """For each kernel what is reported: [(code, message), ...]."""
    found = []
    for first in range(0, len(kernels), BATCH):
        batch = kernels[first : first + BATCH]
        starts, text = [], ""
        for i, kernel in enumerate(batch):
            starts.append(text.count("\n") + 1)
            text += kernel.replace("NAME", f"k{i}")
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "kernels.tir")
            path.write_text(text, encoding="utf-8")
            done = subprocess.run([tirc, "check", path], capture_output=True, text=True, check=False)
        if done.returncode not in (0, 2):
            raise RuntimeError(f"tirc ended with {done.returncode}:\n{done.stderr}\n{text}")
        reports = [[] for _ in batch]
        for line, code, message in FOUND.findall(done.stderr):
            reports[sum(start <= int(line) for start in starts) - 1].append((code, message))
        found += reports
    return found


def is_refused(reports):
    return any(code.startswith("E041") for code, _ in reports)


def condition(rng, at, rare):
    """Something that is true of the numbers at[name], and if rare maybe of few others."""
    x, y, z = (rng.choice(list(at)) for _ in range(3))
    a, b, c, d = at[x], at[y], at[z], rng.choice([2, 3, 4, 5, 7, 8, 16, 64])
    true = [f"{x} % {d} == {a % d}", f"{x} >= {rng.randint(0, a)}", f"{x} < {a + rng.randint(1, 500)}",
            f"{x} / {d} == {a // d}", f"ceildiv({x}, {d}) <= {-(-a // d)}",
            f"{x} * {d} > {a * d - rng.randint(1, 99)}", f"!({x} == {a + d})",
            f"({x} == {a} || {x} == {a + 1})", f"({x} > {a + 999} || {y} <= {b})"]
    if x != y:
        true += [f"min({x}, {y}) == {min(a, b)}", f"max({x}, {y}) >= {max(a, b)}",
                 f"{x} {'<=' if a <= b else '>'} {y}"]
        if rare or len(at) < 4:
            true += [f"{x} == {y} {'+' if a >= b else '-'} {abs(a - b)}", f"{x} + {y} == {a + b}"]
        if a % b == 0 and len(at) < 4: # N / G of N == H * G * E is no sum
            true += [f"{x} == {y} * {a // b}", f"{x} % {y} == 0", f"{x} / {y} == {a // b}"] * 3
        if len({x, y, z}) == 3 and a == b * c:
            true += [f"{x} == {y} * {z}"] * 6
        true += [f"{x} * {y} >= {a * b - rng.randint(0, 9)}"]
        if rare:
            true += [f"{x} * {y} == {a * b}", f"({x} + {d}) * {y} == {(a + d) * b}"]
    others = [name for name in at if name != "N"]
    if len(others) == 3 and at["N"] == math.prod(at[name] for name in others):
        true += ["N == " + " * ".join(others), "N == H * (G * E)"] * 9
    return rng.choice(true)


def conditions(rng, rare):
    names = ["N", "H", "G", "E"][: rng.randint(1, 4)]
    at = {"N": rng.choice([37, 64, 100, 960, 1000, 4096, rng.randint(1, 5000)])}
    for name in names[1:]:
        factors = [n for n in range(1, at["N"] + 1) if at["N"] % n == 0]
        at[name] = rng.choice(factors) if rng.random() < 0.7 else rng.randint(1, 5000)
    if len(names) >= 3 and rng.random() < 0.5:
        for name in names[1:]:
            at[name] = rng.randint(1, 20)
        at["N"] = math.prod(at[name] for name in names[1:])
    return names, " && ".join(condition(rng, at, rare) for _ in range(rng.randint(1, 5)))


def racing(names, where):
    params = "".join(f", P{name}: f32[{name}]" for name in names[1:])
    return f"""kernel NAME(X: f32[N], Y: out f32[N]{params}) grid(ceildiv(N, 64)) threads(64) where {where}
{{
    shared s: f32[64];
    s[tid()] = X[tid()];
    Y[tid()] = s[63 - tid()];
}}
"""


def staging(names, where):
    params = "".join(f", P{name}: f32[{name}]" for name in names)
    return loop("for m in range(0, M, 64)", params=params,
                where=f"where M == {names[-1]} && {where}").replace("@@", "bar_sync();")


def main(tirc, seed, count):
    passed = failed = 0

    def judge(ok, what):
        nonlocal passed, failed
        passed += ok
        failed += not ok
        if not ok:
            print(f"FAIL {what}")

    wrong = check(tirc, [text.replace("@@bar_sync(id = 1, threads = 64);", "").replace("@@", "")
                         for text in PAIRS.values()])
    right = check(tirc, [text.replace("@@bar", "bar").replace("@@", "bar_sync();")
                         for text in PAIRS.values()])
    for name, of_wrong, of_right in zip(PAIRS, wrong, right):
        judge(is_refused(of_wrong), f"{name}: the wrong one is accepted: {of_wrong}")
        if name in OPEN:
            ok = [code for code, _ in of_right] == ["W0004"] and OPEN[name] in of_right[0][1]
        else:
            ok = not of_right
        judge(ok, f"{name}: the right one gets {of_right}")
    rng = random.Random(seed)
    drawn = HARD + [conditions(rng, True) for _ in range(count)]
    for (_, where), reports in zip(drawn, check(tirc, [racing(*d) for d in drawn])):
        judge(is_refused(reports), f"seed {seed}: where {where}: accepted: {reports}")
    drawn = HARD + [conditions(rng, False) for _ in range(count)]
    for (names, where), reports in zip(drawn, check(tirc, [staging(*d) for d in drawn])):
        judge(not reports, f"seed {seed}: where {where}: a loop over {names[-1]} gets {reports}")
    print(f"{passed} passed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    seed, count = [*sys.argv[2:], *["1", "100"][len(sys.argv) - 2 :]]
    sys.exit(main(sys.argv[1], int(seed), int(count)))
