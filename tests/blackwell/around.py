# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tile programs for Blackwell that do more than multiply: parts of K, gathered rows, branches, several products,
convolutions, groups of heads, results in 4 bits.

A program is text with words in braces. `draw(name)` gives a function that draws one.
"""

import re

from kernel import WALKS, Kernel, odd, trips

TYPES = {"f16": 8, "bf16": 8, "e4m3": 16, "e5m2": 16}  # elements in 16 bytes

# What becomes of the sums, of a tile in a row or in several statements.
ENDS = [
    "D[{at}] = acc;",
    "if m == 0 {{ D[{at}] = max(acc, 0); }} else {{ D[{at}] = acc; }}",
    "if L[m] > 0 {{ D[{at}] = acc * 2; }}",
    "if L[m] > 0 {{ acc = max(acc, -3); }} else if L[m] < -2 {{ acc = acc + D[{at}]; }}\n        D[{at}] = acc;",
    "if any(acc > 9) {{ D[{at}] = min(acc, 9); }} else {{ D[{at}] = -acc; }}",
    "store(D[{at}], acc, mask = rows(acc) + i32(m) >= L[m]);",
    "atomic_add(D[{at}], acc);",
    "for i in range(0, 2) {{ acc = max(acc * 0.5, f32(L[m:+{bm}])[:, None]); }}\n        D[{at}] = acc;",
    "D[{at}] = acc - max(acc, axis = 1);",
    "D[{at}] = acc + sum(acc, axis = 0);",
]

# How the rows of A are found.
ROWS = {
    "table": "A[I[m:+{bm}], k:+{bk}]",
    "masked": "load(A[I[m:+{bm}], k:+{bk}], mask = (I[m:+{bm}] % 3 != 0)[:, None])",
    "pages": "A[I[(m + i64(iota({bm}))) / 16] * 16 + i32((m + i64(iota({bm}))) % 16), k:+{bk}]",
    "apart": "A[2 * m:+{bm}:2, k:+{bk}]",
}

PROGRAMS = {
    "parts of K, atomics": """
kernel k(A: {T}[M, K], B: {T}[N, K], L: i32[M], D: inout f32[M, N])
{{
    for (z, m, n) in tiles({parts}, M by {bm}, N by {bn}{walk}) {{
        let part = ceildiv(ceildiv(K, {bk}), {parts}) * {bk};
        var acc: f32[{bm}, {bn}] = 0;
        for k in range(z * part, min(K, z * part + part), {bk}, stages = {S}) {{
            acc += dot(A[m:+{bm}, k:+{bk}], B[n:+{bn}, k:+{bk}].T);
        }}
        atomic_add(D[{at}], acc);
    }}
}}
""",
    "parts of K, two launches": """
kernel k(A: {T}[M, K], B: {T}[N, K], L: i32[M], D: inout f32[M, N])
{{
    let part = ceildiv(ceildiv(K, {bk}), {parts}) * {bk};
    scratch P: f32[{parts}, M, N];
    for (z, m, n) in tiles({parts}, M by {bm}, N by {bn}{walk}) {{
        var acc: f32[{bm}, {bn}] = 0;
        for k in range(z * part, min(K, z * part + part), {bk}, stages = {S}) {{
            acc += dot(A[m:+{bm}, k:+{bk}], B[n:+{bn}, k:+{bk}].T);
        }}
        P[z, {at}] = acc;
    }}
    for (m, n) in tiles(M by {bm}, N by {bn}) {{
        var acc: f32[{bm}, {bn}] = 0;
        for z in range({parts}) {{ acc += P[z, {at}]; }}
        D[{at}] = acc;
    }}
}}
""",
    "stream of parts": """
kernel k(A: {T}[M, K], B: {T}[N, K], L: i32[M], D: inout f32[M, N])
{{
    let steps = ceildiv(K, {bk});
    let columns = ceildiv(N, {bn});
    let all = ceildiv(M, {bm}) * columns * steps;
    let share = max(ceildiv(all, {parts}), 1);
    for g in tiles({parts}) {{
        let end = min(all, g * share + share);
        for t in range(min(all, g * share) / max(steps, 1), ceildiv(end, max(steps, 1))) {{
            let m = t / columns * {bm};
            let n = t % columns * {bn};
            var acc: f32[{bm}, {bn}] = 0;
            for k in range(max(g * share - t * steps, 0) * {bk}, min(end - t * steps, steps) * {bk}, {bk}, stages = {S}) {{
                acc += dot(A[m:+{bm}, k:+{bk}], B[n:+{bn}, k:+{bk}].T);
            }}
            atomic_add(D[{at}], acc);
        }}
    }}
}}
""",
    "a loop in loops": """
kernel k(A: {T}[M, K], B: {T}[N, K], L: i32[M], D: inout f32[M, N], S: out f32[M, N])
{{
    for (m, n) in tiles(M by {bm}, N by {bn}{cluster}{walk}) {{
        var most: f32[{bm}, {bn}] = -5;
        for i in range(0, i64(abs(L[m]))) {{
            {branch}for j in range(i, {parts}, 2) {{
                let from = j * {bk};
                var acc: f32[{bm}, {bn}] = {begin};
                for k in range(from, K - i * {bk}, {bk}, stages = {S}) {{
                    acc += dot({a}, B[n:+{bn}, k:+{bk}].T);
                }}
                most = max(most, acc);
                {inside}
            }}{end_branch}
        }}
        S[{at}] = most;
    }}
}}
""",
    "a branch in a loop": """
kernel k(A: {T}[M, K], B: {T}[N, K], L: i32[M], D: inout f32[M, N])
{{
    for (m, n) in tiles(M by {bm}, N by {bn}{cluster}{walk}) {{
        var acc: f32[{bm}, {bn}] = 0;
        for k in range(0, K, {bk}, stages = {S}) {{
            if {some} {{ acc += dot({a}, B[n:+{bn}, k:+{bk}].T); }}{others}
        }}
        D[{at}] = acc;
    }}
}}
""",
    "scores in loops": """
kernel k(A: {T}[M, {wide}], B: {T}[N, {wide}], L: i32[M], D: inout f32[M, {wide}])
{{
    for m in tiles(M by {bm}{walk}) {{
        let q = A[m:+{bm}, :];
        var o: f32[{bm}, {wide}] = 0;
        var best: f32[{bm}, 1] = -8;
        for p in range(0, i64(abs(L[m]))) {{
            for n in range(p * {bk}, N, {step}, stages = {S}) {{
                let b = B[n:+{bk}, :];
                let s = dot(q, b.T);
                let mx = max(max(s, axis = 1), best);
                o = o * where(mx > best, 0.5, 1.0) + dot({T}(min(max(s - mx, -2), 0)), b);
                best = mx;
            }}
            {turn}
        }}
        D[m:+{bm}, :] = o + best;
    }}
}}
""",
    "branches after the loop": """
kernel k(A: {T}[M, K], B: {T}[N, K], L: i32[M], D: inout f32[M, N])
{{
    for (m, n) in tiles(M by {bm}, N by {bn}{cluster}{walk}) {{
        var acc: f32[{bm}, {bn}] = 0;
        for k in range(0, K, {bk}, stages = {S}) {{ acc += dot(A[m:+{bm}, k:+{bk}], B[n:+{bn}, k:+{bk}].T); }}
        {end}
    }}
}}
""",
    "a loop in a branch": """
kernel k(A: {T}[M, K], B: {T}[N, K], L: i32[M], D: inout f32[M, N])
{{
    for (m, n) in tiles(M by {bm}, N by {bn}{cluster}{walk}) {{
        var acc: f32[{bm}, {bn}] = 7;
        if L[m] % 2 == 0 {{
            for k in range(0, min(K, i64(abs(L[m])) * {bk}), {bk}, stages = {S}) {{
                acc += dot(A[m:+{bm}, k:+{bk}], B[n:+{bn}, k:+{bk}].T);
            }}
        }} else {{
            acc = acc * 3;
        }}
        D[{at}] = acc;
    }}
}}
""",
    "chosen tiles": """
kernel k(A: {T}[M, K], B: {T}[N, K], L: i32[M], D: inout f32[M, N])
{{
    for (m, n) in tiles(M by {bm}, N by {bn}{cluster}{walk}) {{
        if {chosen} {{
            var acc: f32[{bm}, {bn}] = 0;
            for k in range(0, K, {bk}, stages = {S}) {{ acc += dot(A[m:+{bm}, k:+{bk}], B[n:+{bn}, k:+{bk}].T); }}
            D[{at}] = acc;
        }}
    }}
}}
""",
    "gathered": """
kernel k(A: {T}[H, K], B: {T}[N, K], I: i32[M], D: inout f32[M, N]) where H == 2 * M
{{
    for (m, n) in tiles(M by {bm}, N by {bn}{cluster}{walk}) {{
        var acc: f32[{bm}, {bn}] = 0;
        for k in range(0, K, {bk}, stages = {S}) {{ acc += dot({rows}, B[n:+{bn}, k:+{bk}].T); }}
        D[{at}] = acc;
    }}
}}
""",
    "two products": """
kernel k(A: {T}[M, K], B: {T}[N, K], C: {T}[N, K], D: inout f32[M, N])
{{
    for (m, n) in tiles(M by {bm}, N by {bn}{cluster}{walk}) {{
        var acc: f32[{bm}, {bn}] = 0;
        var gate: f32[{bm}, {bn}] = 0;
        for k in range(0, K, {bk}, stages = {S}) {{
            let a = A[m:+{bm}, k:+{bk}];
            acc += dot(a, B[n:+{bn}, k:+{bk}].T);
            gate += dot(a, C[n:+{bn}, k:+{bk}].T);
        }}
        D[{at}] = acc * min(max(gate, -1), 1);
    }}
}}
""",
    "a product after the loop": """
kernel k(A: {T}[M, K], B: {T}[W, K], C: {T}[{bn}, W], D: inout f32[M, {bn}]) where W == 64
{{
    for m in tiles(M by {bm}{walk}) {{
        var acc: f32[{bm}, 64] = 0;
        for k in range(0, K, {bk}, stages = {S}) {{ acc += dot(A[m:+{bm}, k:+{bk}], B[0:+64, k:+{bk}].T); }}
        D[m:+{bm}, :] = dot({T}(min(max(acc, -4), 4)), C[:, 0:+64].T);
    }}
}}
""",
    "a rest after the loop": """
kernel k(A: {T}[M, K], B: {T}[N, K], L: i32[M], D: inout f32[M, N])
{{
    for (m, n) in tiles(M by {bm}, N by {bn}{walk}) {{
        let whole = K - K % {bk};
        var acc: f32[{bm}, {bn}] = 0;
        for k in range(0, whole, {bk}, stages = {S}) {{ acc += dot(A[m:+{bm}, k:+{bk}], B[n:+{bn}, k:+{bk}].T); }}
        if whole < K {{ acc += dot(A[m:+{bm}, whole:+{bk}], B[n:+{bn}, whole:+{bk}].T); }}
        {end}
    }}
}}
""",
    "two loops": """
kernel k(A: {T}[M, K], B: {T}[N, K], C: {T}[N, K], D: inout f32[M, N])
{{
    for (m, n) in tiles(M by {bm}, N by {bn}{walk}) {{
        var acc: f32[{bm}, {bn}] = 0;
        for k in range(0, K, {bk}, stages = {S}) {{ acc += dot(A[m:+{bm}, k:+{bk}], B[n:+{bn}, k:+{bk}].T); }}
        acc = min(max(acc, -9), 9);
        for k in range(0, K, {bk}, stages = {S}) {{ acc += dot(A[m:+{bm}, k:+{bk}], C[n:+{bn}, k:+{bk}].T); }}
        D[{at}] = acc;
    }}
}}
""",
    "scales of blocks": """
kernel k(A: {T}[M, K], B: {T}[N, K], SA: f32[M, ceildiv(K, {bk})], SB: f32[ceildiv(N, {bn}), ceildiv(K, {bk})], D: inout f32[M, N])
{{
    for (m, n) in tiles(M by {bm}, N by {bn}{cluster}{walk}) {{
        var acc: f32[{bm}, {bn}] = 0;
        for k in range(0, K, {bk}, stages = {S}) {{
            let s = SA[m:+{bm}, k / {bk}:+1] * SB[n / {bn}, k / {bk}];
            acc += dot(A[m:+{bm}, k:+{bk}], B[n:+{bn}, k:+{bk}].T) * s;
        }}
        D[{at}] = acc;
    }}
}}
""",
    "convolution": """
kernel k(A: {T}[X, Y, K], B: {T}[N, 3, 3, K], D: inout f32[M, N]) where M == X * Y
{{
    for (m, n) in tiles(M by {bm}, N by {bn}{walk}) {{
        let i = m + i64(iota({bm}));
        var acc: f32[{bm}, {bn}] = 0;
        for r in range(3) {{
            for s in range(3) {{
                for k in range(0, K, {bk}, stages = {S}) {{
                    acc += dot(A[i / Y + r - 1, i % Y + s - 1, k:+{bk}], B[n:+{bn}, r, s, k:+{bk}].T);
                }}
            }}
        }}
        D[{at}] = acc;
    }}
}}
""",
    "rank 3": """
kernel k(A: {T}[2, M, K], B: {T}[N, K], L: i32[M], D: inout f32[2, M, N])
{{
    for (m, n) in tiles(M by {bm}, N by {bn}{walk}) {{
        var acc: f32[2, {bm}, {bn}] = {first_sums};
        for k in range(0, K, {bk}, stages = {S}) {{ acc += dot(A[0:+2, m:+{bm}, k:+{bk}], B[n:+{bn}, k:+{bk}].T); }}
        {matrices}
    }}
}}
""",
    "results in 4 bits": """
import "tir/mx.tir" as mx;
kernel k(A: {T}[M, K], B: {T}[N, K], D: out u8[M, N / 2], S: out ue4m3[M, N / 16]) where N % 32 == 0
{{
    for (m, n) in tiles(M by {bm}, N by {bn}{cluster}{walk}) {{
        var acc: f32[{bm}, {bn}] = 0;
        for k in range(0, K, {bk}, stages = {S}) {{ acc += dot(A[m:+{bm}, k:+{bk}], B[n:+{bn}, k:+{bk}].T); }}
        let q, s = mx.nvfp4(acc);
        D[m:+{bm}, n / 2:+{half}] = mx.pack(q);
        S[m:+{bm}, n / 16:+{sixteenth}] = s;
    }}
}}
""",
    "tf32": """
kernel k(A: f32[M, K], B: f32[N, K], L: i32[M], D: inout f32[M, N])
{{
    for (m, n) in tiles(M by {bm}, N by {bn}{cluster}{walk}) {{
        var acc: f32[{bm}, {bn}] = 0;
        for k in range(0, K, 32, stages = {S}) {{ acc += dot(tf32(A[m:+{bm}, k:+32]), tf32(B[n:+{bn}, k:+32]).T); }}
        D[{at}] = acc;
    }}
}}
""",
}

# Of a loop in loops: what its sums begin with, its first factor, and what is done with them there.
BEGINS = ["0", "0", "f32(j)", "most"]
FIRST = ["A[m:+{bm}, k:+{bk}]", "A[m:+{bm}, k:+{bk}]", "{T}(min(max(f32(A[m:+{bm}, k:+{bk}]), -1), 1))"]
INSIDE = ["", "atomic_add(D[{at}], acc);", "D[{at}] = D[{at}] + acc;", "if j == 1 {{ D[{at}] = acc; }}"]
SOME = ["L[k / {bk} % M] % 2 == 0", "k != {bk}", "k + {bk} <= K || L[m] > 0"]
OTHERS = ["", " else {{ acc = acc * 0.5; }}", "\n            D[{at}] = acc;"]
FIRST_SUMS = ["0", "0", "2", "D[0:+2, {at}]"]
MATRICES = ["D[0:+2, {at}] = acc;", "D[0:+2, {at}] = max(acc, 0) * 0.5 + f32(L[m:+{bm}])[None, :, None];",
            "D[0:+2, {at}] = acc + D[0:+2, {at}];", "D[0:+2, {at}] = acc - max(acc, axis = 0);",
            "D[0:+2, {at}] = acc + D[1:+1, {at}];", "atomic_add(D[0:+2, {at}], acc);"]
CHOSEN = ["n <= m", "m <= n", "m == n", "m != n", "n < m + {bm} && m < n + {bn}", "m + n < M", "m / {bm} % 2 == 0",
          "L[m] > 0 && n <= m"]
TURNS = ["", "o = min(max(o, -64), 64);", "best = min(best + 1, 3);"]

# Small numbers, for every order of the sums to be exact.
INPUTS = {"A": "randint:-2:2", "B": "randint:-2:2", "C": "randint:-2:2", "D": "randint:-9:9", "SA": "randint:1:2", "SB": "randint:1:2"}

# Of programs whose best variant is on tcgen05, whatever else was drawn.
ON_TCGEN05 = ["parts of K, atomics", "stream of parts", "a loop in loops", "a branch in a loop", "scores in loops",
              "branches after the loop", "a loop in a branch", "chosen tiles", "gathered", "two products", "scales of blocks",
              "convolution", "rank 3", "results in 4 bits", "tf32"]


def draw(name):
    def drawn(r):
        kind = r.choice(list(TYPES))
        c = {"T": kind, "bm": r.choice([64, 128, 128]), "bn": r.choice([32, 64, 128]), "bk": r.choice([64, 128]),
             "S": r.choice([1, 2, 3]), "parts": r.choice([2, 3, 5]), "walk": r.choice(WALKS),
             "cluster": r.choice(["", ", cluster = (2, 1)"])}
        c.update(at="m:+{bm}, n:+{bn}".format(**c), half=c["bn"] // 2, sixteenth=c["bn"] // 16)
        c["end"] = r.choice(ENDS).format(**c)
        c["a"], c["inside"] = r.choice(FIRST).format(**c), r.choice(INSIDE).format(**c)
        c["some"], c["others"] = r.choice(SOME).format(**c), r.choice(OTHERS).format(**c)
        c.update(begin=r.choice(BEGINS), turn=r.choice(TURNS), step=c["bk"] * r.choice([1, 2]),
                 wide=r.choice([64, 128, 256, 512 if c["bm"] == 64 else 256]))
        c["branch"], c["end_branch"] = r.choice([("", ""), ("if i != 1 {", "}")])
        c["rows"] = ROWS[r.choice(list(ROWS))].format(**c)
        c["chosen"] = r.choice(CHOSEN).format(**c)
        c["first_sums"], c["matrices"] = r.choice(FIRST_SUMS).format(**c), r.choice(MATRICES).format(**c)
        text = PROGRAMS[name].format(**c)
        vector, x, y = TYPES[kind], r.randint(1, 9), r.randint(1, 20)
        parts = c["parts"] if "parts" in name else 1  # also the last one has rounds
        size = {"M": x * y if name == "convolution" else vector * r.randint(1, 300 // vector), "X": x, "Y": y,
                "K": odd(r, trips(r, c["S"]) * parts, c["bk"], vector),
                "N": 32 * r.randint(1, 8) if "N / 16" in text else vector * r.randint(1, 300 // vector)}
        whole = {"M": 4 * c["bm"], "X": 4, "Y": c["bm"], "K": (c["S"] + 1) * c["bk"] * parts,
                 "N": 4 * c["bm"] if name == "chosen tiles" else c["bn"]}  # a CTA has several that are chosen
        header = text[:text.index("\n{")].split(" where ")[0]
        inputs = [f"{name}={of}" for name, of in INPUTS.items() if re.search(rf"\b{name}: (?!out)", header)]

        def given(size, rows):
            table = [f"I=randint:-3:{2 * size['M'] + 4}"] if " I:" in header else []
            return [f"{d}={n}" for d, n in size.items() if re.search(rf"[\[ ]{d}[,\]]", header)] + inputs + table + \
                ([f"L=randint:{rows}"] if " L:" in header else [])
        return Kernel(name, text, given(size, "-4:4"), [] if "scratch" in text else given(whole, "2:2"),
                      wish="dot: tcgen05" if name in ON_TCGEN05 else "")
    return drawn
