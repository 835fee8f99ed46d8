#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products in tensor memory by one CTA, a pair of CTAs and two pairs, by explicit kernels in roles that are drawn at random.

usage: clusters.py TIRC [COUNT [FIRST]]

Kernel number n has element types, with scales or without, elements of 4 and 6 bits that are packed in memory, a ring of
slots, and sizes that tiles do not divide. Of two pairs, both need the same rows of A or columns of B: each CTA brings its
own, or a half that it sends to both. Scales come packed, by tensor copies, those of B to both CTAs of a pair at once, or
by a warpgroup that arranges them. Some pairs lie in clusters of two or of four CTAs, as the device has room. All of it follows from n alone. On the emulator, under full checks and a schedule that
also follows from n, it must give exactly what the interpreter makes of the product as a tile program, and ptxas must
take it. Where there is no ptxas, it is left out.

One of its numbers is then another one: the CTAs that a copy goes to, where a half begins, the kind of an element. The
kernel must be refused, give something else, or not end.
"""

import os
import pathlib
import random
import re
import subprocess

import by_number

# Elements of A and B, of the scales, and elements that share one. `u8` are two e2m1 each.
PLAIN = [("f16", "f16", "", 0), ("bf16", "bf16", "", 0), ("e4m3", "e4m3", "", 0), ("e5m2", "e4m3", "", 0)]
SCALED = [("e4m3", "e4m3", "ue8m0", 32), ("e5m2", "e4m3", "ue8m0", 32), ("u8", "u8", "ue8m0", 32), ("u8", "u8", "ue4m3", 16)]
BITS = {"e3m2": 6, "e2m3": 6, "e2m1": 4, "e4m3": 8, "e5m2": 8, "u8": 8, "f16": 16, "bf16": 16}
PACKED = [(a, b, "ue8m0", 32) for a in ["e3m2", "e2m3", "e2m1", "e4m3"] for b in ["e3m2", "e2m3", "e2m1", "e5m2"]
          if min(BITS[a], BITS[b]) < 8]
COLUMNS, BYTES = 512, 220000  # of tensor memory, and of shared memory
ARCHS = ["sm_100a", "sm_103a", "sm_110a"]


def words(c, rows):
    """Columns of tensor memory that the scales of so many rows and one step take."""
    return -(-rows // 128) * c["depth"] // c["group"] if c["group"] else 0


def in_memory(elem, elements):
    """Columns of a tensor that so many elements are."""
    return elements * BITS[elem] // 8 if BITS[elem] < 8 else elements // 2 if elem == "u8" else elements


def in_slot(elem, elements):
    """The same of a buffer in shared memory, and its bytes."""
    columns = elements // 2 if elem == "u8" else elements
    return columns, columns * (2 if BITS[elem] == 16 else 1)


def fits(c):
    rows, n, slots = c["rows"], c["n"], c["slots"]
    folded = c["ctas"] > 1 and rows % 128
    sums = -(-rows // 64) * n // 2 if folded else -(-rows // 128) * n
    width = in_slot(c["a"], c["depth"])[1]
    factor = slots * (rows // 128) * width // 4 if c["a_in_tmem"] else 0
    columns = sums + slots * (words(c, rows) + words(c, n)) + factor
    size = slots * (rows * width + n // min(c["ctas"], 2) * in_slot(c["b"], c["depth"])[1] + 512 * (words(c, rows) + words(c, n)) // 4)
    return columns <= COLUMNS and size <= BYTES and (not folded or rows * n <= 128 * 128)


def draw(number):
    """What varies, in words that the kernel is made of."""
    r = random.Random(f"clusters {number}")
    while True:
        a, b, scale, group = r.choice(r.choice([PLAIN, SCALED, PACKED]))
        ctas = r.choice([1, 2, 2, 4, 4])
        depth = r.choice([64, 128] if not group else [128, 128, 256] if group == 32 else [64, 128, 256])
        swizzles = [[s for s in ([128] if BITS[x] < 8 else [32, 64, 128]) if in_slot(x, depth)[1] % s == 0] for x in (a, b)]
        c = {"a": a, "b": b, "scale": scale, "group": group, "ctas": ctas, "depth": depth,
             "rows": r.choice([128, 128, 256] if ctas == 1 or group else [64, 128, 128, 192, 256]),
             "n": r.choice([32, 64, 96, 128, 192, 256]), "slots": r.choice([1, 2, 3, 4]),
             "swizzles": [r.choice(s) for s in swizzles], "shares": r.choice("AB"), "halves": r.random() < 0.7,
             "arranged": r.random() < 0.5, "together": r.random() < 0.7, "schedule": r.choice(["lazy", "eager", "adversarial", f"random:{number}"])}
        c["arranged"] |= ctas == 4 and c["shares"] == "A" and c["n"] % 128 != 0  # else those of the second pair begin within a block
        c["a_in_tmem"] = c["rows"] % 128 == 0 and a not in ("f16", "bf16") and BITS[a] == 8 and r.random() < 0.25
        c["R"], c["K"] = steps(r, c)
        c["preferred"] = ctas == 2 and c["rows"] <= 128 and random.Random(f"preferred {number}").random() < 0.5
        c["M"], c["N"] = (max(1, whole - r.choice([0, 0, 1, 24, 70])) for whole in whole_tile(c))
        if fits(c):
            return c


def whole_tile(c):
    """Rows and columns of the cluster."""
    pairs = max(c["ctas"] // 2, 1)
    of_pair = c["rows"] * (8 if c["preferred"] else min(c["ctas"], 2))  # or of all four
    return (of_pair, c["n"] * pairs) if c["shares"] == "A" else (of_pair * pairs, c["n"])


def steps(r, c):
    """Steps along K, none and up to one more than there are slots, and the elements: the last step is often not whole."""
    count = r.choice([0, 1, c["slots"] - 1, c["slots"], c["slots"] + 1])
    unit = 128 if min(BITS[c["a"]], BITS[c["b"]]) < 8 else max(32, c["group"])
    return count, max(count, 1) * c["depth"] - (unit * r.randrange(c["depth"] // unit) if r.random() < 0.5 else 0)


def kernels(c):
    rows, n, depth, slots, ctas, group = c["rows"], c["n"], c["depth"], c["slots"], c["ctas"], c["group"]
    is_pair, is_two = ctas > 1, ctas == 4
    arranged, a_in_tmem = group and c["arranged"], c["a_in_tmem"]
    halves_a, halves_b = (is_two and c["halves"] and c["shares"] == x for x in "AB")
    columns = n // 2 if is_pair else n  # of B, that a CTA has
    of_a, of_b = (f"i * {in_memory(c[x], depth)}:+{in_memory(c[x], depth)}" for x in "ab")
    step_a, step_b = (in_slot(c[x], depth)[0] for x in "ab")
    elem = {x: "u8" if BITS[c[x]] < 8 else c[x] for x in "ab"}
    scales = depth // group if group else 0
    row_blocks, column_blocks, wide = -(-rows // 128), -(-n // 128), scales // 4
    first = "(me - me % 2)" if is_two else "lead" if c["preferred"] else "0"
    bar = f"remote(full[s], {first})" if is_pair else "full[s]"
    both = "" if not is_pair else f", ctas = 3 << {first}"
    # Of the scales of B that all four CTAs need, each brings a quarter, where that is one piece.
    quarters = is_two and group and not arranged and c["shares"] == "B" and c["together"] and column_blocks * wide == 1
    all_hear = halves_a or halves_b or quarters
    everywhere = ", ctas = 15" if all_hear else both
    params = f"A: {elem['a']}[M, KA], B: {elem['b']}[N, KB], "
    where = [f"{x} % {unit} == 0" for x, unit in
             (("KA", in_memory(c["a"], 128) if BITS[c["a"]] < 8 else 16), ("KB", in_memory(c["b"], 128) if BITS[c["b"]] < 8 else 16))]
    if group and arranged:
        params += f"SA: {c['scale']}[M, W], SB: {c['scale']}[N, W], "
        where.append("W % 4 == 0")
    elif group:
        params += f"SA: {c['scale']}[MB, KW, 32, 16], SB: {c['scale']}[NB, KW, 32, 16], "
    params += "D: out f32[M, N], R: i32"
    # Of two pairs, where this CTA's rows, the columns of its pair and those of B that it has begin.
    down = f"{rows} * i64(me{' % 2' if is_two and c['shares'] == 'A' else ''})" if is_pair else "i64(0)"
    down = f"{rows} * i64(cta_id())" if c["preferred"] else down
    right = f"{n} * i64(me / 2)" if is_two and c["shares"] == "A" else "i64(0)"
    half = f"right + {columns} * i64(me % 2)" if is_pair else "right"
    group_of = " cta_group(2)" if is_pair else ""
    declared, copies, load, bytes_ = [], [], [], []

    def bring(buffer, tensor, elem_of, count, at, of, is_half):
        width = in_memory(elem_of, depth) * (2 if BITS[elem_of] == 16 else 1)
        bytes_.append(count * width)
        if not is_half:
            return f"copy_async({buffer}[s], {tensor}[{at}:+{count}, {of}], mbar = {bar}, engine = tma);"
        mine = f"{count // 2} * i64(me / 2)"
        return (f"copy_async({buffer}[s, {mine}:+{count // 2}, 0:+{in_slot(elem_of, depth)[0]}], {tensor}[{at} + {mine}:+{count // 2}, {of}], "
                f"mbar = {bar}, engine = tma, ctas = 5 << (me % 2));")

    load.append(bring("As", "A", c["a"], rows, "down", of_a, halves_a))
    load.append(bring("Bs", "B", c["b"], columns, "half", of_b, halves_b))
    operands = ""
    if group:
        layout = f"S[({slots}, {{}}, 4, 32, {wide}, 4) : ({{}}, {wide * 512}, 4, 16, 512, 1)]"
        for x, blocks, size in (("a", row_blocks, rows), ("b", column_blocks, n)):
            up = x.upper()
            if arranged:
                declared.append(f"shared S{up}s: {c['scale']}[{slots}, {128 * blocks}, {scales}] in {layout.format(blocks, blocks * wide * 512)};")
            else:
                declared.append(f"shared S{up}s: {c['scale']}[{slots}, {blocks}, {wide}, 32, 16];")
            declared.append(f"tmem s{x}: {c['scale']}[{slots}, {128 * blocks}, {scales}]{group_of};")
            copies.append(f"copy_async(s{x}[s, 0:+{128 * blocks}, 0:+{scales}], S{up}s[s]);")
        operands = f", sa[s, 0:+{rows}, 0:+{scales}], sb[s, 0:+{n}, 0:+{scales}].T"
        if not arranged:
            bytes_ += [512 * wide * row_blocks, 512 * wide * column_blocks]
            load.append(f"copy_async(SAs[s], SA[down / 128:+{row_blocks}, i * {wide}:+{wide}, 0:+32, 0:+16], mbar = {bar}, engine = tma);")
            part = f"SB[right / 128:+{column_blocks}, i * {wide}:+{wide}, 0:+32, 0:+16]"
            if quarters:
                load.append(f"copy_async(SBs[s, 0:+1, 0:+1, 8 * me:+8, :], SB[0:+1, i:+1, 8 * i64(me):+8, 0:+16], mbar = {bar}, engine = tma, ctas = 15);")
            elif is_pair and c["together"]:
                load.append(f"if me % 2 == 0 {{ copy_async(SBs[s], {part}, mbar = {bar}, engine = tma, ctas = 3 << {first}); }}")
            else:
                load.append(f"copy_async(SBs[s], {part}, mbar = {bar}, engine = tma);")
    if a_in_tmem:
        declared.append(f"tmem P: {c['a']}[{slots}, {rows}, {step_a}]{group_of};")
        copies.append(f"copy_async(P[s, 0:+{rows}, 0:+{step_a}], As[s]);")
    announced = (2 if is_pair else 1) * sum(bytes_)
    arrivals = 1 + ((2 if is_pair else 1) if arranged else 0)
    arrange = f"""
    role arrange warpgroups(1) {{
        var s: stage({slots}, phase = 1);
        for i in range(0, i64(R)) {{
            wait(empty[s], s.phase);
            store(SAs[s], SA[down:+{128 * row_blocks}, i * {scales}:+{scales}]);
            store(SBs[s], SB[right:+{128 * column_blocks}, i * {scales}:+{scales}]);
            fence(async_shared);
            bar_sync(id = 1, threads = 128);
            if tid_in_wg() == 0 {{ arrive(full[s]{f', cta = {first}' if is_pair else ''}); }}
            s.advance();
        }}
    }}""" if arranged else ""
    width = n if rows % 128 else 32
    lead = f"if me % 2 == 0 {{ expect_tx(full[s], {announced}); }}" if is_pair else f"expect_tx(full[s], {announced});"
    join = "\n    ".join
    return f"""
kernel by_hand({params}) grid({8 if c['preferred'] else ctas}){f' cluster({ctas})' if is_pair else ''}{' preferred(4)' if c['preferred'] else ''}
    where {' && '.join(where)}
{{
    shared As: {c['a']}[{slots}, {rows}, {step_a}] in swizzle({c['swizzles'][0]});
    shared Bs: {c['b']}[{slots}, {columns}, {step_b}] in swizzle({c['swizzles'][1]});
    mbarrier full[{slots}] arrivals({arrivals});
    mbarrier empty[{slots}] arrivals({2 if all_hear else 1});
    mbarrier done arrivals(1);
    tmem acc: f32[{rows}, {n}]{group_of};
    {join(declared)}
    {'let me = cta_rank() % 2; let lead = cta_rank() - me;' if c['preferred'] else 'let me = cta_rank();' if is_pair else ''}
    let down = {down};
    let right = {right};
    let half = {half};
    role sums warpgroups(1) {{
        wait(done, 0);
        fence(after_thread_sync);
        if R > 0 {{
            for j in range(0, {n}, {width}, unroll) {{ D[down:+{rows}, right + j:+{width}] = acc[0:+{rows}, j:+{width}]; }}
        }} else {{
            D[down:+{rows}, right:+{n}] = zeros(f32, {rows}, {n});
        }}
    }}
    role load warps(1) {{
        var s: stage({slots}, phase = 1);
        for i in range(0, i64(R)) {{
            wait(empty[s], s.phase);
            if elect_sync() {{
                {lead}
                {(chr(10) + 16 * ' ').join(load)}
            }}
            s.advance();
        }}
    }}
    role multiply warps(1) {{
        {'if me % 2 == 0 {' if is_pair else ''}
        var s: stage({slots});
        for i in range(0, i64(R)) {{
            wait(full[s], s.phase);{f"{chr(10)}            fence(after_thread_sync);" if copies else ""}
            if elect_sync() {{
                {(chr(10) + 16 * ' ').join(copies)}
                gemm_async(acc, {f'P[s, 0:+{rows}, 0:+{step_a}]' if a_in_tmem else 'As[s]'}, Bs[s].T{operands}, accumulate = i > 0);
                commit(empty[s]{everywhere});
            }}
            s.advance();
        }}
        if elect_sync() {{ commit(done{both}); }}
        {'}' if is_pair else ''}
    }}{arrange}
}}

{plain(c, params, where)}"""


def plain(c, params, where):
    """The same as a tile program. A block of scales has 128 rows."""
    depth, group = c["depth"], c["group"]
    rows = n = 128

    def part(name, at):
        elem = c[name.lower()]
        width = in_memory(elem, depth)
        text = f"{name}[{at}, i * {width}:+{width}]"
        return f"expand({elem}, {text})" if BITS[elem] < 8 else text

    call = f"dot({part('A', f'm:+{rows}')}, {part('B', f'n:+{n}')}.T)"
    if group and c["arranged"]:
        scales = depth // group
        sa, sb = (f"S{x}[{at}, i * {scales}:+{scales}]" for x, at in (("A", f"m:+{rows}"), ("B", f"n:+{n}")))
        call = f"dot_scaled({part('A', f'm:+{rows}')}, {sa}, {part('B', f'n:+{n}')}.T, {sb}.T)"
    elif group:
        wide = depth // group // 4
        sa, sb = (f"S{x}[{at} / 128:+1, i * {wide}:+{wide}, 0:+32, 0:+16]" for x, at in (("A", "m"), ("B", "n")))
        call = f"dot_scaled({part('A', f'm:+{rows}')}, {sa}, {part('B', f'n:+{n}')}.T, {sb})"
    return f"""kernel plain({params})
    where {' && '.join(where)}
{{
    for (m, n) in tiles(M by {rows}, N by {n}) {{
        var acc: f32[{rows}, {n}] = 0;
        for i in range(0, i64(R)) {{
            acc += {call};
        }}
        D[m:+{rows}, n:+{n}] = acc;
    }}
}}
"""


def launch(c, size=None):
    """The sizes and inputs of a launch."""
    m, n, count, k = size or (c["M"], c["N"], c["R"], c["K"])
    given = [f"M={m}", f"R={count}", f"N={n}", f"KA={in_memory(c['a'], k)}", f"KB={in_memory(c['b'], k)}"]
    if c["group"] and c["arranged"]:
        given.append(f"W={-(-k // c['group'] // 4) * 4}")
    elif c["group"]:
        given += [f"MB={-(-m // 128)}", f"NB={-(-n // 128)}", f"KW={-(-k // c['group'] // 4)}"]
    for name in "AB":
        is_bytes = BITS[c[name.lower()]] < 8 or c[name.lower()] == "u8"
        given.append(f"{name}=randint:{'0:255' if is_bytes else '-4:4'}")
    most = 4 if c["a"] == "u8" or min(BITS[c["a"]], BITS[c["b"]]) == 8 else 2
    return given + ([f"SA=randint:1:{most}", f"SB=randint:1:{most}"] if c["group"] else [])


def whole(c):
    """A launch with whole tiles in which each slot is used again."""
    return launch(c, (*whole_tile(c), c["slots"] + 1, (c["slots"] + 1) * c["depth"]))


def run(command):
    return subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)


def on_emulator(tirc, path, c, given, against=":plain"):
    return run([tirc, "run", path, "--kernel=by_hand", f"--arch={c['arch']}", "--device=emu", "--emu-check=full",
                f"--schedule={c['schedule']}", *given, "--check=0", f"--check-against={against}"])


def failed(done, text):
    return f"{' '.join(map(str, done.args))}\n{done.stdout}{done.stderr}{text}" if done.returncode else None


def wrong_number(text, r):
    """The kernel by hand with another number, where that must matter."""
    hand, _, rest = text.partition("kernel plain")
    places = [(m, {"5": "6", "3": "1", "15": "3"}[m[1]]) for m in re.finditer(r"ctas = (\d+)\b", hand)]
    places += [(m, "0") for m in re.finditer(r"\d+ \* i64\(me / 2\)(?=:\+)", hand)]
    places += [(m, "0") for m in re.finditer(r"(?<=3 << )lead", hand)]
    places += [(m, {"e3m2": "e2m3", "e2m3": "e3m2"}[m[1]]) for m in re.finditer(r"shared [AB]s: (e3m2|e2m3)\b", hand)]
    if not places:
        return None
    at, other = r.choice(places)
    start, end = at.span(1) if at.re.groups else at.span()
    return hand[:start] + other + hand[end:] + "kernel plain" + rest


def check(tirc, ptxas, number, folder, count):
    c, r = draw(number), random.Random(f"other {number}")
    c["arch"] = r.choice(ARCHS)
    text = kernels(c)
    path = pathlib.Path(folder, "k.tir")
    path.write_text(text, encoding="utf-8")
    wrong = failed(on_emulator(tirc, path, c, launch(c)), text)
    if ptxas and not wrong:
        ptx = os.path.join(folder, "k.ptx")
        wrong = failed(run([tirc, "build", path, "--kernel=by_hand", f"--arch={c['arch']}", "--emit=ptx", "-o", ptx]), text) or \
            failed(run([ptxas, f"-arch={c['arch']}", "-o", os.devnull, ptx]), text)
    mutant = None if wrong else wrong_number(text, r)
    if mutant:
        path.write_text(mutant, encoding="utf-8")
        done = on_emulator(tirc, path, c, whole(c))
        count["mutants"] += 1
        count["refused"] += "error[" in done.stderr
        if done.returncode not in (1, 2):  # wrong values or an error at run time; refused
            wrong = f"another number changes nothing:\n{done.stdout}{done.stderr}{mutant}"
    return wrong


if __name__ == "__main__":
    by_number.main(check, "number", 12)
