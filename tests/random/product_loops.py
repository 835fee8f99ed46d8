#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random loops of two and three products, as attention has them, which `split` and `schedule` take apart.

Usage: product_loops.py TIRC [--seed N] [--count N] [--kind KIND] [--require-sync | --notes]

Tiles have 64 to 128 rows and up to 208 columns, the loops zero to three rounds; scores are masked, a
maximum, a factor and sums are carried on, and the second product takes what the first one gave. The scores
of some are products with scales. With --kind=turns the same loops ask for turns. With --kind=weights they multiply by weights of
few bits, which threads convert: factors are parts of a loaded tile, or the halves of its bytes. With --kind=guarded a condition
on loaded numbers, of several questions, decides whether the loop runs.
Elements are small integers and factors powers of two, so every result is exact. Each program runs on the emulator
under full checks for targets with mma.sync fed by cp.async and by tensor copies, with wgmma and with tcgen05, and must give what the interpreter
gives. What sync_check leaves unchecked is counted; with --require-sync it fails. Seed 0 is that of the day. A failing
program is printed, with the command that runs it. With --notes nothing runs: a note by ptxas on products of
warpgroups for sm_90a (C75xx, C76xx) fails, and programs whose best variant uses local memory are counted.
"""

import pathlib
import random
import re
import subprocess
import sys
import tempfile

import seeds

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "codegen"))
import assembled  # pylint: disable=wrong-import-position

TARGETS = ["sm_80", "sm_90", "sm_90a", "sm_100a", "sm_120a"]
SCHEDULES = ["lazy", "adversarial", "random:{}"]  # of the emulator, in turn
SECONDS = 120  # of one run
TYPES = ["bf16", "bf16", "f16", "f16", "tf32"]  # of what products multiply, as often
MOST_ELEMENTS = 50000  # of 16 bits, that every target has shared memory for

# Which scores count: in the tile at row m and column n, of R x N.
MASKS = {
    "none": None,
    "causal": "m + i64(iota({R}))[:, None] >= n + i64(iota({N}))[None, :]",
    "window": "abs(m + i64(iota({R}))[:, None] - n - i64(iota({N}))[None, :]) <= 40",
    "table": "L[m:+{R}][:, None] > i32(n) + iota({N})[None, :]",
}

# What becomes of the scores s: lines of the loop; {C} is the second operand.
BODIES = [
    ["o += dot({T}(min(max(s, -4), 4)), {C});"],
    ["let mx = max(max(s, axis = 1), best);",
     "let f = where(mx > best, 0.5, 1.0);",
     "best = mx;",
     "o = o * f + dot({T}(min(max(s - mx, -4), 0)), {C});"],
    ["let mx = max(max(s, axis = 1), best);",
     "let f = where(mx > best, 0.5, 1.0);",
     "best = mx;",
     "o = rescale(o, f) + dot({T}(min(max(s - mx, -4), 0)), {C});"],
    ["let mx = max(max(s, axis = 1), best);",
     "total += sum(s, axis = 1);",
     "best = mx;",
     "o += dot({T}(min(max(s, -2), 2)), {C});"],
    ["o += dot({T}(min(max(s, -4), 4)), {C});",
     "let s2 = dot({T}(min(max(s, -1), 1)), {C});",
     "u += s2;"],
    ["let p = {T}(min(max(s, -2), 2));",
     "let t = dot({B}.T, q.T);",
     "o += dot(p, {C});",
     "u += dot({T}(min(max(t, -1), 1)).T, {C});"],
    ["best = max(best, max(min(o, 9), axis = 1));",
     "o = max(o, -64) * 0.5 + dot({T}(min(max(s, -4), 4)), {C});"],
]

# How rows of an operand of N rows are found: all at once, by a table, at a stride, or as far as a mask lets them.
ROWS = [
    "{X}[n:+{N}, 0:{C}]",
    "{X}[P[n:+{N}], 0:{C}]",
    "{X}[n:+{N}:2, 0:{C}]",
    "{X}[n - 3:+{N}:9, 0:{C}]",
    "{X}[P[(n + i64(iota({N}))) / 8] * 8 + i32((n + i64(iota({N}))) % 8), 0:{C}]",
    "where(P[n:+{N}][:, None] > 5, {X}[n:+{N}, 0:{C}], 0)",
    "load({X}[P[n:+{N}], 0:{C}], mask = iota({N})[:, None] + i32(n) < 90)",
]

# Every other column, and elements that change places.
MOVED = [
    "{X}[n:+{N}, 0:{C2}:2]",
    "flip({X}[n:+{N}, 0:{C}], axis = 0)",
    "flip({X}[n:+{N}, 0:{C}], axis = 1)",
    "take({X}[n:+{N}, 0:{C}], P[n:+{N}], axis = 0)",
    "concat({X}[n:+16, 0:{C}], {X}[P[n + 16:+{N16}], 0:{C}], axis = 0)",
    "interleave({X}[n:+{NH}, 0:{C}], {X}[n + {NH}:+{NH}, 0:{C}], axis = 0)",
    "reshape({X}[n:+{N}, 0:{C}], {N}, {C})",
    "reshape(reshape({X}[n:+{N}, 0:{C}], {NH}, 2, {C}), {N}, {C})",
]

# Elements of an operand in memory, and how many of 16 bits each takes beside what it becomes. None: those of the product.
STORED = {"None": 1, "i8": 1.5, "f32": 3}

# How scores come about: of the factors, or of these with scales for blocks of {G} along {D}.
SCORES = {False: "dot(q, {B})", True: "dot_scaled(q, SQ[m:+{R}, :], {B}, SK[n:+{N}, :].T)"}
SCALES = {False: "", True: " SQ: ue4m3[M, {G}], SK: ue4m3[N, {G}],"}

KERNEL = """kernel k(Q: {T}[M, {D}], {K}, {V},{of} L: i32[M], P: i32[N], E: i32[1], O: out f32[M, {W}], S: out f32[M, 1])
{{
    for m in tiles(M by {R}) {{
        let q = Q[m:+{R}, 0:{D}];
        var o: f32[{R}, {W}] = 0;
        var u: f32[{R}, {W}] = 0;
        var best: f32[{R}, 1] = -8;
        var total: f32[{R}, 1] = 0;
        for n in range(0, {end}, {N}{stages}) {{
            let s0 = {s0};
            let s = {scores};
            {body}
        }}
        O[m:+{R}, 0:{W}] = o + u;
        S[m:+{R}, 0:1] = best + total;
    }}
}}
"""

# Products of weights of few bits, which threads convert: parts of a loaded tile, or the halves of its bytes.
WEIGHTS = """kernel k(Q: {T}[M, {inner}], K: {S}[{W}, N], V: {T}[N, 16], L: i32[M], P: i32[N], E: i32[1], O: out f32[M, {W}], S: out f32[M, 1])
{{
    for m in tiles(M by {R}) {{
        var o: f32[{W}, {R}] = 0;
        for n in range(0, {end}, {N}{stages}) {{
            let w = K[0:{W}, n:+{N}];
            {body}
        }}
        O[m:+{R}, 0:{W}] = o.T;
        S[m:+{R}, 0:1] = sum(o.T, axis = 1);
    }}
}}
"""
PARTS = ["let q = Q[m:+{R}, n:+{N}];",
         "for i in range(0, {N}, {C}, unroll) {{ o += dot({factor}, q[:, i:+{C}].T); }}"]
FACTORS = ["{T}(w[:, i:+{C}])", "{T}(f32(w[:, i:+{C}]) * 0.5)", "{T}(w[:, i:+{C}] + 1)"]
NIBBLES = ["o += dot({T}(i8(w & 15) - 8), Q[m:+{R}, 2 * n:+{N}].T);",
           "o += dot({T}(i8(w >> 4) - 8), Q[m:+{R}, 2 * n + {N}:+{N}].T);"]


# About loaded numbers e and l: some are true of most, none of all.
QUESTIONS = ["e >= 0", "e < N", "e != 3", "e > 7", "l < 190", "l >= 5", "l <= i32(M)", "e % 5 != 2", "(l & 7) > 1"]


def of_weights(seed):
    """A kernel of that kind and the sizes M and N that it runs at."""
    rng = random.Random(seed)
    words = {"R": rng.choice([16, 32, 64, 128, 128, 192]), "W": rng.choice([64, 128, 128, 192]), "N": rng.choice([32, 64, 64, 128]),
             "T": rng.choice(["bf16", "f16"]), "end": rng.choice(["N", "N", "min(N, i64(E[0]))"]),
             "stages": rng.choice(["", ", stages = 2", ", stages = 4", ", stages = 4, turns = 1", ", stages = 3, turns = 0"])}
    words["C"] = words["N"] // rng.choice([1, 2, 2, 4]) if words["N"] > 32 else 16
    has_nibbles = rng.random() < 0.5
    words["S"], words["inner"] = ("u8", "2 * N") if has_nibbles else (rng.choice(["i8", "u8"]), "N")
    words["factor"] = rng.choice(FACTORS).format(**words)
    words["body"] = "\n            ".join(line.format(**words) for line in (NIBBLES if has_nibbles else PARTS))
    rows = rng.choice([words["R"], words["R"] + 16, 2 * words["R"], max(words["R"] - 8, 1)])
    return WEIGHTS.format(**words), rows, max(rng.choice([0, 1, 2, 3, 5]) * words["N"] - rng.choice([0, 0, 8, 24]), 0)


def extents(rng):
    """Rows and columns of the scores, what they are sums of, and columns of the result."""
    while True:
        r, n = rng.choice([64, 128, 128]), rng.choice([64, 64, 96, 128, 16 * rng.randint(1, 13)])
        d, w = (rng.choice([32, 64, 128, 16 * rng.randint(1, 13)]) for _ in "dw")
        t = rng.choice(TYPES)
        stored = [rng.choice(["None", "None", "i8", "f32"]) for _ in "KV"]
        k, v = (STORED[s] for s in stored)
        if (r * d + n * d * k + n * w * v) * (2 if t == "tf32" else 1) <= MOST_ELEMENTS:
            return {"R": r, "N": n, "D": d, "W": w, "T": t, "stored": stored}


def operand(words, which, text):
    """What a product multiplies of a loaded tile: the tile, or its elements as those of the product."""
    return text if words["stored"][which] == "None" else f"{words['T']}({text})"


def rows_of(rng, moves, many, name, columns):
    """The rows of a round, {N} of them; `many`: more than 16. `moves` draws apart, so that seeds keep their programs."""
    row = rng.choice([ROWS[0], *ROWS])
    if moves.random() < 0.3 and many:
        row = moves.choice(MOVED)
    return row.replace("{X}", name).replace("{C}", str(columns)).replace("{C2}", str(2 * columns))


def program(seed):
    """A kernel and the sizes M and N that it runs at."""
    rng, moves = random.Random(seed), random.Random(f"moves {seed}")
    words = {**extents(rng), "stages": rng.choice(["", ", stages = 2", ", stages = 3"])}
    words["TK"], words["TV"] = (words["T"] if s == "None" else s for s in words["stored"])
    if rng.random() < 0.7:
        words["K"] = "K: {TK}[N, {D}]"
        words["B"] = operand(words, 0, rows_of(rng, moves, words["N"] > 16, "K", words["D"])) + ".T"
    else:
        words["K"], words["B"] = "K: {TK}[{D}, N]", operand(words, 0, "K[0:{D}, n:+{N}]")
    if rng.random() < 0.5:
        words["V"], words["C"] = "V: {TV}[N, {W}]", operand(words, 1, rows_of(rng, moves, words["N"] > 16, "V", words["W"]))
    else:
        words["V"], words["C"] = "V: {TV}[{W}, N]", operand(words, 1, "V[0:{W}, n:+{N}]") + ".T"
    words["N16"], words["NH"] = words["N"] - 16, words["N"] // 2
    for name in "KBVC":
        words[name] = words[name].format(**words)
    mask = MASKS[rng.choice(list(MASKS))]
    words["scores"] = f"where({mask.format(**words)}, s0, 0)" if mask else "s0"
    words["body"] = "\n            ".join(
        line.format(**words) for line in rng.choice(BODIES))
    words["end"] = rng.choice(["N", "N", "N", f"min(N, m + {words['R']})", "min(N, i64(E[0]))"])
    rows = rng.choice([words["R"], words["R"] + 16, 2 * words["R"], words["R"] - 8])
    rounds = rng.choice([0, 1, 2, 3, 3])
    columns = max(rounds * words["N"] - rng.choice([0, 0, 8, 24]), 0)
    has_scales = rng.random() < 0.25
    words["G"] = rng.choice([1, 2, 4])
    words["s0"], words["of"] = SCORES[has_scales].format(**words), SCALES[has_scales].format(**words)
    return KERNEL.format(**words), rows, columns


def is_too_large(said):
    """Does the compiler refuse the program for nothing but the room that the target has?"""
    codes = set(re.findall(r"error\[(E\d+)\]", said))
    return bool(codes) and codes <= {"E0301", "E0304"}


def attempt(tirc, path, rows, columns, target, schedule):
    """Why the program fails on the target (None: it does not), whether sync_check leaves something unchecked, and whether
    the target has no room for it."""
    text = path.read_text()
    keys = "K=randint:0:255" if "K: u8[" in text else "K=randint:-1:1"
    command = [tirc, "run", f"--arch={target}", "--device=emu", "--emu-check=full", "--check=0", str(path), f"M={rows}", f"N={columns}", "Q=randint:-1:1",
               keys, "V=randint:-1:1", "L=randint:0:200", f"P=randint:-2:{columns + 2}",
               f"E=randint:0:{columns + 60}", f"--schedule={schedule}"]
    if "SQ:" in text:
        command += ["SQ=randint:1:2", "SK=randint:1:2"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return f"{' '.join(command)}\nno end after {SECONDS} s", False, False
    said = f"{' '.join(command)}\n{done.stdout[-1000:]}{done.stderr[-1000:]}"
    too_large = bool(done.returncode) and is_too_large(done.stderr)
    return said if done.returncode and not too_large else None, "W0004" in done.stderr, too_large


def in_turns(seed):
    """The kernel of `program` whose warpgroups start products in turns, and its sizes."""
    text, rows, columns = program(seed)
    return re.sub(r"(for n in range\(.*)\) \{", r"\1, turns = 1) {", text), rows, columns


def guarded(seed):
    """The kernel of `program` with its loop in a branch on loaded numbers, and its sizes."""
    text, rows, columns = program(seed)
    rng = random.Random(f"guard {seed}")
    questions = rng.sample(QUESTIONS, rng.randint(1, 3))
    condition = rng.choice([" && ", " && ", " || "]).join(questions)
    loop = re.search(r"( {8}for n in .*?\n {8}\}\n)", text, re.DOTALL)[1]
    branch = f"        let e = i64(E[0]);\n        let l = L[m];\n        if {condition} {{\n{loop}        }}\n"
    return text.replace(loop, branch), rows, columns


def check_notes(tirc, draw, seeds, folder):
    """Prints what ptxas says of each program with products on warpgroups. How many have a note."""
    noted, stacks = 0, {}
    for seed in seeds:
        text = draw(seed)[0]
        path = pathlib.Path(folder, f"{seed}.tir")
        path.write_text(text)
        notes, of_entries = assembled.wrong(tirc, path)
        if "k" in of_entries:
            stacks[seed] = of_entries["k"]
        if notes:
            noted += 1
            print(f"seed {seed}:\n{text}" + "\n".join(notes), flush=True)
    spilling = {seed: size for seed, size in stacks.items() if size}
    for seed, size in spilling.items():
        print(f"seed {seed}: {size} bytes of local memory")
    print(f"{len(stacks)} with products on warpgroups, {noted} with notes, {len(spilling)} with local memory")
    return noted


KINDS = {"scores": program, "turns": in_turns, "guarded": guarded, "weights": of_weights}


def main():
    parser = seeds.parser(__doc__, "tirc", count=8)
    parser.add_argument("--require-sync", action="store_true", help="what sync_check leaves unchecked fails")
    parser.add_argument("--notes", action="store_true", help="nothing but what ptxas says is checked")
    parser.add_argument("--kind", choices=KINDS, default="scores", help="of loops")
    options = parser.parse_args()
    draw = KINDS[options.kind]
    if options.notes and not assembled.has_ptxas():
        print("no ptxas")
        return 77
    first = seeds.first(options)
    failed, unchecked, too_large = 0, 0, 0
    with tempfile.TemporaryDirectory() as folder:
        if options.notes:
            return check_notes(options.tirc, draw, range(first, first + options.count), folder) > 0
        for seed in range(first, first + options.count):
            text, rows, columns = draw(seed)
            path = pathlib.Path(folder, f"{seed}.tir")
            path.write_text(text)
            for target in TARGETS:
                why, is_unchecked, has_no_room = attempt(options.tirc, path, rows, columns, target,
                                                         SCHEDULES[seed % 3].format(seed))
                too_large += has_no_room
                if is_unchecked:
                    unchecked += 1
                    print(f"seed {seed}: unchecked on {target}", flush=True)
                if why or (is_unchecked and options.require_sync):
                    failed += 1
                    print(f"seed {seed} fails on {target}:\n{text}{why or ''}", flush=True)
    print(f"{options.count * len(TARGETS) - failed - too_large} passed, {failed} failed; {unchecked} unchecked, "
          f"{too_large} too large for a target")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
