# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Right explicit kernels, drawn at random: each family is one way in which threads hand data on.

A family takes a random.Random and gives a Kernel. Its text has one statement a line, so that rules
can take it apart, and its inputs are small enough for hundreds of launches on the emulator.
"""

import collections

# The order of CTAs is not replayed: of these families it must be unchecked.
AMONG_CTAS = ["flag", "chain"]

# text: lines; sizes: arguments of `tirc run`; arch: the target
Kernel = collections.namedtuple("Kernel", "family text sizes arch", defaults=["sm_90a"])


def permuted(rng, threads):
    """An expression that is a permutation of tid() below `threads`, never the identity."""
    shift = rng.randrange(1, threads)
    flip = 1 << rng.randrange(threads.bit_length() - 1)
    return rng.choice([f"{threads - 1} - tid()", f"(tid() + {shift}) % {threads}",
                       f"tid() ^ {flip}", f"(tid() * {rng.randrange(3, 9, 2)} + 1) % {threads}"])


def counted(rng, rounds, body, name="r"):
    """The lines of a loop of so many rounds, in one of the ways to write it."""
    if rng.random() < 0.6:
        return [f"for {name} in range(0, {rounds}) {{", *indented(body), "}"]
    step = rng.choice([1, 4, 64])
    body = [line.replace(f"{name} ", f"({name}n / {step}) ") for line in body]
    return [f"var {name}n: i32 = 0;", f"while {name}n < {rounds} * {step} {{", *indented(body),
            f"    {name}n += {step};", "}"]


def indented(lines):
    return ["    " + line for line in lines]


def kernel(family, name, params, clauses, body, sizes):
    return Kernel(family, [f"kernel {name}({params})", f"    {clauses}", "{", *indented(body), "}"],
                  sizes)


def staged(rng):
    """All threads write a buffer, meet, and read what others wrote; one buffer or several."""
    threads, rounds = rng.choice([32, 64, 128, 256]), rng.randrange(1, 6)
    slots = rng.choice([1, 1, 2, 3])
    slot = "0" if slots == 1 else f"i32(r + 0) % {slots}"
    body = [f"let b: i32 = {slot};",
            f"s[b, tid()] = X[i64(r + 0) * {threads} + i64(tid())];",
            "bar_sync();",
            f"sum += s[b, {permuted(rng, threads)}];"]
    if slots == 1:
        body.append("bar_sync();")
    lines = [f"shared s: f32[{slots}, {threads}];", "var sum: f32 = 0;",
             *counted(rng, rounds, body),
             f"Y[i64(cta_id()) * {threads} + i64(tid())] = sum;"]
    return kernel("staged", "k", "X: f32[N], Y: out f32[M]", f"grid(2) threads({threads})", lines,
                  [f"N={rounds * threads}", f"M={2 * threads}"])


def of_warps(rng):
    """As staged, within each warp."""
    warps, rounds = rng.randrange(1, 5), rng.randrange(1, 5)
    lane = permuted(rng, 32).replace("tid()", "laneid()")
    body = ["s[warpid(), laneid()] = X[i64(r + 0) * 32 + i64(laneid())];",
            "warp_sync();",
            f"sum += s[warpid(), {lane}];",
            "warp_sync();"]
    lines = [f"shared s: f32[{warps}, 32];", "var sum: f32 = 0;", *counted(rng, rounds, body),
             "Y[i64(tid())] = sum;"]
    return kernel("of_warps", "k", "X: f32[N], Y: out f32[M]", f"grid(1) threads({32 * warps})",
                  lines, [f"N={32 * rounds}", f"M={32 * warps}"])


def tree(rng):
    """A sum in halves."""
    threads = rng.choice([64, 128, 256])
    lines = [f"shared s: f32[{threads}];", "s[tid()] = X[i64(tid())];",
             f"var d: i32 = {threads // 2};", "while d > 0 {",
             "    bar_sync();", "    if tid() < d { s[tid()] = s[tid()] + s[tid() + d]; }",
             "    d = d / 2;", "}", "bar_sync();", "Y[i64(tid())] = s[0];"]
    return kernel("tree", "k", "X: f32[N], Y: out f32[N]", f"grid(1) threads({threads})", lines,
                  [f"N={threads}"])


def scan(rng):
    """Running sums by doubling, from one half of the buffer to the other."""
    threads = rng.choice([32, 64, 128])
    lines = [f"shared s: f32[2, {threads}];", "var from: i32 = 0;", "s[0, tid()] = X[i64(tid())];",
             "bar_sync();", "var d: i32 = 1;", f"while d < {threads} {{",
             "    var v: f32 = s[from, tid()];",
             "    if tid() >= d { v += s[from, tid() - d]; }",
             "    s[1 - from, tid()] = v;", "    from = 1 - from;",
             "    bar_sync();", "    d = d * 2;", "}",
             f"Y[i64(tid())] = s[from, {permuted(rng, threads)}];"]
    return kernel("scan", "k", "X: f32[N], Y: out f32[N]", f"grid(1) threads({threads})", lines,
                  [f"N={threads}"])


def named(rng):
    """A role writes and another one reads, by two named barriers a slot."""
    warps, rounds = rng.choice([1, 2, 4]), rng.randrange(1, 6)
    threads, slots = 32 * warps, rng.choice([1, 2])
    here = f"tid() % {threads}"
    free, full = list(range(1, 1 + slots)), list(range(1 + slots, 1 + 2 * slots))
    both = 2 * threads

    def meet(what, ids, more=""):
        return [f"if r % {slots} == {i}{more} {{ {what}(id = {b}, threads = {both}); }}"
                for i, b in enumerate(ids)]

    put = [*meet("bar_sync", free), f"s[r % {slots}, {here}] = X[i64(r) * {threads} + i64({here})];",
           *meet("bar_arrive", full)]
    get = [*meet("bar_sync", full),
           f"sum += s[r % {slots}, {permuted(rng, threads).replace('tid()', f'({here})')}];",
           *meet("bar_arrive", free, f" && r + {slots} < {rounds}")]
    lines = [f"shared s: f32[{slots}, {threads}];",
             f"role load warps({warps}) {{", f"    for r in range(0, {rounds}) {{",
             *indented(indented(put)), "    }", "}",
             f"role math warps({warps}) {{", "    var sum: f32 = 0;",
             *[f"    bar_arrive(id = {i}, threads = {both});" for i in free[:rounds]],
             f"    for r in range(0, {rounds}) {{", *indented(indented(get)), "    }",
             f"    Y[i64({here})] = sum;", "}"]
    return kernel("named", "k", "X: f32[N], Y: out f32[M]", f"grid(1) threads({both})", lines,
                  [f"N={rounds * threads}", f"M={threads}"])


def stages(rng):
    """A role writes slots and another one reads them, by mbarriers; one arrival a thread or a warp."""
    warps, slots, rounds = rng.choice([1, 2, 4]), rng.randrange(1, 5), rng.randrange(1, 8)
    threads, tiles = 32 * warps, rng.randrange(1, 3)
    here = f"tid() % {threads}"
    by_warp = [rng.random() < 0.5 for _ in range(2)]

    def hand_on(bar, by):
        return (["warp_sync();", f"if laneid() == 0 {{ arrive({bar}[s]); }}"] if by
                else [f"arrive({bar}[s]);"])

    put = ["wait(empty[s], s.phase);",
           f"buf[s, {here}] = X[i64(r) * {threads} + i64({here})];",
           *hand_on("full", by_warp[0]), "s.advance();"]
    get = ["wait(full[s], s.phase);",
           f"sum += buf[s, {permuted(rng, threads).replace('tid()', f'({here})')}];",
           *hand_on("empty", by_warp[1]), "s.advance();"]

    def walk(body):
        loop = [f"for r in range(0, {rounds}) {{", *indented(body), "}"]
        if tiles == 1:
            return loop
        return [f"for t in range(0, {tiles}) {{", *indented(loop), "}"]

    lines = [f"shared buf: f32[{slots}, {threads}];",
             f"mbarrier full[{slots}] arrivals({warps if by_warp[0] else threads});",
             f"mbarrier empty[{slots}] arrivals({warps if by_warp[1] else threads});",
             f"role load warps({warps}) {{", f"    var s: stage({slots}, phase = 1);",
             *indented(walk(put)), "}",
             f"role math warps({warps}) {{", f"    var s: stage({slots}, phase = 0);",
             "    var sum: f32 = 0;", *indented(walk(get)), f"    Y[i64({here})] = sum;", "}"]
    return kernel("stages", "k", "X: f32[N], Y: out f32[M]", f"grid(1) threads({2 * threads})",
                  lines, [f"N={rounds * threads}", f"M={threads}"])


def tensor_copies(rng):
    """Tensor copies fill slots that announce their bytes; a warpgroup reads them as tiles."""
    slots, rounds, rows = rng.randrange(1, 5), rng.randrange(1, 8), rng.choice([16, 32, 64])
    swizzle = rng.choice(["", " in swizzle(128)", " in swizzle(64)"])
    cols = 64 if "128" in swizzle else 32
    by = rng.choice(["laneid() == 0", "elect_sync()"])
    lines = [f"shared buf: bf16[{slots}, {rows}, {cols}]{swizzle};",
             f"mbarrier full[{slots}] arrivals(1);", f"mbarrier empty[{slots}] arrivals(4);",
             "role load warps(1) {", f"    var s: stage({slots}, phase = 1);",
             f"    for r in range(0, {rounds}) {{",
             "        wait(empty[s], s.phase);",
             f"        if {by} {{",
             "            expect_tx(full[s], bytes(buf[s]));",
             f"            copy_async(buf[s], X[r * {rows}:+{rows}, 0:+{cols}], mbar = full[s], engine = tma);",
             "        }", "        s.advance();", "    }", "}",
             "role math warpgroups(1) {", f"    var s: stage({slots}, phase = 0);",
             f"    var sum: f32[{rows}, {cols}] = 0;",
             f"    for r in range(0, {rounds}) {{",
             "        wait(full[s], s.phase);",
             "        sum += f32(load(buf[s]));",
             "        fence(async_shared);",
             "        warp_sync();",
             "        if laneid() == 0 { arrive(empty[s]); }",
             "        s.advance();", "    }",
             f"    Y[0:+{rows}, 0:+{cols}] = sum;", "}"]
    return kernel("tensor_copies", "k", "X: bf16[N, K], Y: out f32[M, K]",
                  "grid(1) threads(256) where K % 8 == 0", lines,
                  [f"N={rounds * rows}", f"K={cols}", f"M={rows}"])


def groups(rng):
    """cp.async in groups, a slot ahead or more; the CTA meets before it reads and before it writes."""
    slots, rounds, threads = rng.randrange(2, 5), rng.randrange(1, 7), rng.choice([64, 128])
    ahead = slots - 1
    first = []
    for i in range(ahead):
        first += [f"copy_async(buf[{i}], X[{i * 16}:+16, 0:+32]);", "commit_group();"]
    body = [f"wait_group({ahead - 1});", "bar_sync();",
            f"sum += load(buf[i32(r) % {slots}]);",
            f"copy_async(buf[(i32(r) + {ahead}) % {slots}], X[(r + {ahead}) * 16:+16, 0:+32]);",
            "commit_group();"]
    if slots == 2 or rng.random() < 0.3:
        body.insert(3, "bar_sync();")
    lines = [f"shared buf: f32[{slots}, 16, 32];", "var sum: f32[16, 32] = 0;", *first,
             f"for r in range(0, {rounds}) {{", *indented(body), "}", "wait_group(0);",
             "Y[0:+16, 0:+32] = sum;"]
    return kernel("groups", "k", "X: f32[N, K], Y: out f32[M, K]",
                  f"grid(1) threads({threads}) where K % 4 == 0", lines,
                  [f"N={rounds * 16}", "K=32", "M=16"])


def commits(rng):
    """A role copies by threads, and the copies arrive by themselves; another role reads the slots."""
    slots, rounds, warps = rng.randrange(1, 5), rng.randrange(1, 7), rng.choice([1, 2, 4])
    threads = 32 * warps
    lines = [f"shared buf: f32[{slots}, 16, 32];",
             f"mbarrier full[{slots}] arrivals({threads});", f"mbarrier empty[{slots}] arrivals({threads});",
             f"role load warps({warps}) {{", f"    var s: stage({slots}, phase = 1);",
             f"    for r in range(0, {rounds}) {{",
             "        wait(empty[s], s.phase);",
             "        copy_async(buf[s], X[r * 16:+16, 0:+32]);",
             "        commit(full[s], engine = cp_async);",
             "        s.advance();", "    }", "}",
             f"role math warps({warps}) {{", f"    var s: stage({slots}, phase = 0);",
             "    var sum: f32[16, 32] = 0;",
             f"    for r in range(0, {rounds}) {{",
             "        wait(full[s], s.phase);",
             "        sum += load(buf[s]);",
             "        arrive(empty[s]);",
             "        s.advance();", "    }",
             "    Y[0:+16, 0:+32] = sum;", "}"]
    return kernel("commits", "k", "X: f32[N, K], Y: out f32[M, K]",
                  f"grid(1) threads({2 * threads}) where K % 4 == 0", lines,
                  [f"N={rounds * 16}", "K=32", "M=16"])


def product(rng):
    """Operands through shared memory, products on a warpgroup, awaited before they are overwritten."""
    rounds, slots = rng.randrange(1, 5), rng.choice([1, 2])
    slot = "0" if slots == 1 else f"i32(r) % {slots}"
    lines = [f"shared a: bf16[{slots}, 64, 64] in swizzle(128);",
             f"shared b: bf16[{slots}, 64, 64] in swizzle(128);",
             "var acc: f32[64, 64] in fragment(wgmma) = 0;",
             f"for r in range(0, {rounds}) {{",
             f"    let q: i32 = {slot};",
             "    store(a[q], A[0:+64, r * 64:+64]);",
             "    store(b[q], B[0:+64, r * 64:+64]);",
             "    fence(async_shared);",
             "    bar_sync();",
             "    fence(wgmma);",
             "    gemm_async(acc, a[q], b[q].T);",
             "    commit_group(engine = wgmma);",
             "    await(acc);",
             *(["    bar_sync();"] if slots == 1 else []),
             "}", "D[0:+64, 0:+64] = acc;"]
    return kernel("product", "k", "A: bf16[M, K], B: bf16[N, K], D: out f32[M, N]",
                  "grid(1) threads(128)", lines, ["M=64", "N=64", f"K={64 * rounds}"])


def stores(rng):
    """Tiles leave through buffers that the bulk engine still reads."""
    rounds, slots = rng.randrange(1, 6), rng.choice([1, 2])
    lines = [f"shared out: f32[{slots}, 16, 32];",
             f"for r in range(0, {rounds}) {{",
             f"    if tid() == 0 {{ wait_group({slots - 1}, engine = tma, read = 1); }}",
             "    bar_sync();",
             f"    store(out[i32(r) % {slots}], X[r * 16:+16, 0:+32] * 2.0);",
             "    fence(async_shared);",
             "    bar_sync();",
             "    if tid() == 0 {",
             f"        copy_async(Y[r * 16:+16, 0:+32], out[i32(r) % {slots}], engine = tma);",
             "        commit_group(engine = tma);",
             "    }", "}",
             "if tid() == 0 { wait_group(0, engine = tma); }"]
    return kernel("stores", "k", "X: f32[N, K], Y: out f32[N, K]",
                  "grid(1) threads(128) where K % 4 == 0", lines, [f"N={rounds * 16}", "K=32"])


def parts(rng):
    """Two warpgroups hold a tile, each its rows, and hand them on by a barrier of their own."""
    rounds, out = rng.randrange(1, 4), rng.choice(["copies", "loads", "product"])
    own = ["if g == 0 { bar_sync(id = 1, threads = 128); }", "if g == 1 { bar_sync(id = 2, threads = 128); }"]
    layout = rng.choice(["fragment(wgmma)", "S[(8, 16, 2, 32) : (1@warpid, 2, 1, 1@laneid)]",
                         "S[(2, 8, 4, 2, 4, 8, 2) : (4@warpid, 4@laneid, 1@warpid, 16, 1@laneid, 2, 1)]"])
    lines = ["shared s: bf16[128, 64] in swizzle(128);", "shared b: bf16[64, 64] in swizzle(128);", "let g = wgid();",
             "var acc: f32[128, 64] in fragment(wgmma) = 0;", "store(b, B[0:+64, 0:+64]);", "fence(async_shared);",
             "bar_sync();", f"for r in range(0, {rounds}) {{"]
    body = [f"let x: bf16[128, 64] in {layout} = X[r * 128:+128, 0:+64];", *own, "store(s, x);", "fence(async_shared);", *own]
    if out == "copies":
        body.insert(1, "if tid_in_wg() == 0 { wait_group(0, engine = tma, read = 1); }")
        body += ["if tid_in_wg() == 0 {",
                 "    copy_async(Y[r * 128 + i64(g) * 64:+64, 0:+64], s[g * 64:+64, 0:+64], engine = tma);",
                 "    commit_group(engine = tma);", "}"]
    elif out == "loads":
        body += ["scope warpgroups(1) {", "    Y[r * 128 + i64(g) * 64:+64, 0:+64] = load(s[g * 64:+64, 0:+64]);",
                 "    fence(async_shared);", "}"]
    else:
        body += ["fence(wgmma);", "gemm_async(acc, s, b.T);", "commit_group(engine = wgmma);", "await(acc);"]
    lines += [*indented(body), "}"]
    if out == "copies":
        lines.append("if tid_in_wg() == 0 { wait_group(0, engine = tma); }")
    lines.append("D[0:+128, 0:+64] = acc;")
    return kernel("parts", "k", "X: bf16[M, K], B: bf16[K, K], Y: out bf16[M, K], D: out f32[N, K]",
                  "grid(1) threads(256) where K == 64", lines, [f"M={128 * rounds}", "N=128", "K=64"])


def back(rng):
    """Threads or the copy engine write a tensor in each round, and loads or copies bring it back."""
    rounds, threads = rng.randrange(1, 5), rng.choice([64, 128])
    out, into = rng.choice(["threads", "engine"]), rng.choice(["loads", "groups", "engine"])
    lines = ["shared s: f32[32, 32];", "shared q: f32[32, 32];", "mbarrier full arrivals(1);",
             "var sum: f32[32, 32] = 0;"]
    body = ["P[0:+32, 0:+32] = X[r * 32:+32, 0:+32];"]
    if into == "engine":
        body.append("fence(async_global);")
    if out == "engine":
        body = ["store(s, X[r * 32:+32, 0:+32]);", "fence(async_shared);", "bar_sync();",
                "if tid() == 0 {", "    copy_async(P[0:+32, 0:+32], s, engine = tma);",
                "    commit_group(engine = tma);", "    wait_group(0, engine = tma);", "}"]
    body.append("bar_sync();")
    body += {"loads": ["sum += P[0:+32, 0:+32].T;"],
             "groups": ["copy_async(q, P[0:+32, 0:+32]);", "commit_group();", "wait_group(0);",
                        "bar_sync();", "sum += load(q).T;"],
             "engine": ["if tid() == 0 {", "    expect_tx(full, bytes(q));",
                        "    copy_async(q, P[0:+32, 0:+32], mbar = full, engine = tma);", "}",
                        "wait(full, i32(r) % 2);", "sum += load(q).T;"]}[into]
    if into == "engine": # which writes q again
        body.append("fence(async_shared);")
    elif out == "engine": # which writes P again
        body.append("fence(async_global);")
    lines += [f"for r in range(0, {rounds}) {{", *indented(body), "    bar_sync();", "}",
              "Y[0:+32, 0:+32] = sum;"]
    return kernel("back", "k", "X: f32[N, K], P: inout f32[K, K], Y: out f32[K, K]",
                  f"grid(1) threads({threads}) where K == 32", lines,
                  [f"N={rounds * 32}", "K=32", "P=zeros"])


def cluster(rng):
    """Each CTA of a cluster writes its neighbour's buffer, the cluster meets, each reads its own."""
    ctas, rounds, threads = rng.choice([2, 4]), rng.randrange(1, 4), rng.choice([32, 64])
    peer = rng.choice([f"(cta_rank() + 1) % {ctas}", "cta_rank() ^ 1"])
    body = [f"remote(s, {peer})[tid()] = X[i64(r + 0) * {threads} + i64(tid())] + f32(cta_rank());",
            "cluster_sync();",
            f"sum += s[{permuted(rng, threads)}];",
            "cluster_sync();"]
    lines = [f"shared s: f32[{threads}];", "var sum: f32 = 0;", "cluster_sync();",
             *counted(rng, rounds, body),
             f"Y[i64(cta_id()) * {threads} + i64(tid())] = sum;"]
    return kernel("cluster", "k", "X: f32[N], Y: out f32[M]",
                  f"grid({ctas}) threads({threads}) cluster({ctas})", lines,
                  [f"N={rounds * threads}", f"M={ctas * threads}"])


def sends(rng):
    """A buffer goes to the next CTA of a cluster in each round, which says when it has read it."""
    ctas, rounds, threads = rng.choice([2, 4]), rng.randrange(1, 5), rng.choice([32, 64])
    by = rng.choice(["bulk", "threads"])
    expect = "if tid() == 0 { expect_tx(full, bytes(there)); }"
    start = ["if tid() == 0 { copy_async(remote(there, next), here, mbar = full, engine = bulk); }"]
    if by == "threads":
        start = ["store(remote(there, next)[tid()], here[tid()], mbar = full);"]
    lines = [f"shared here: f32[{threads}];", f"shared there: f32[{threads}];",
             "mbarrier full arrivals(1);", f"mbarrier free arrivals({threads});",
             f"let next = (cta_rank() + 1) % {ctas};", f"let before = (cta_rank() + {ctas - 1}) % {ctas};",
             "var sum: f32 = 0;",
             f"for r in range(0, {rounds}) {{",
             f"    here[tid()] = X[i64(r) * {threads} + i64(tid())] + f32(cta_rank());",
             "    fence(async_shared);",
             "    bar_sync();",
             f"    {expect}", *indented(start),
             "    wait(full, i32(r) % 2);",
             f"    sum += there[{permuted(rng, threads)}];",
             "    arrive(free, cta = before);",
             "    wait(free, i32(r) % 2);",
             "}", f"Y[i64(cta_id()) * {threads} + i64(tid())] = sum;"]
    return kernel("sends", "k", "X: f32[N], Y: out f32[M]",
                  f"grid({ctas}) threads({threads}) cluster({ctas})", lines,
                  [f"N={rounds * threads}", f"M={ctas * threads}"])


def multicast(rng):
    """Each CTA of a pair copies one half of a slot to both; a slot is free when both have read it."""
    slots, rounds, rows = rng.randrange(1, 4), rng.randrange(1, 6), rng.choice([16, 32])
    half = rows // 2
    lines = [f"shared buf: bf16[{slots}, {rows}, 64] in swizzle(128);",
             f"mbarrier full[{slots}] arrivals(1);", f"mbarrier empty[{slots}] arrivals(8);",
             f"let mine = cta_rank() * {half};",
             "role load warps(1) {", f"    var s: stage({slots}, phase = 1);",
             f"    for r in range(0, {rounds}) {{",
             "        wait(empty[s], s.phase);",
             "        if elect_sync() {",
             "            expect_tx(full[s], bytes(buf[s]));",
             f"            copy_async(buf[s, mine:+{half}, :], X[r * {rows} + i64(mine):+{half}, 0:+64], "
             "mbar = full[s], engine = tma, ctas = 3);",
             "        }", "        s.advance();", "    }", "    cluster_sync();", "}",
             "role math warpgroups(1) {", f"    var s: stage({slots}, phase = 0);",
             f"    var sum: f32[{rows}, 64] = 0;",
             f"    for r in range(0, {rounds}) {{",
             "        wait(full[s], s.phase);",
             "        sum += f32(load(buf[s]));",
             "        fence(async_shared);",
             "        warp_sync();",
             "        if laneid() < 2 { arrive(empty[s], cta = laneid()); }",
             "        s.advance();", "    }",
             f"    Y[i64(cta_rank()) * {rows}:+{rows}, 0:+64] = sum;",
             "    cluster_sync();", "}"]
    return kernel("multicast", "k", "X: bf16[N, K], Y: out f32[M, K]",
                  "grid(2) threads(256) cluster(2) where K % 8 == 0", lines,
                  [f"N={rounds * rows}", "K=64", f"M={2 * rows}"])


def flag(rng):
    """The CTA that comes last adds up what all of them left in global memory."""
    ctas, threads = rng.randrange(2, 5), rng.choice([32, 64])
    lines = ["shared last: i32[1];",
             f"P[i64(cta_id()), i64(tid())] = X[i64(cta_id()) * {threads} + i64(tid())];",
             "fence(gpu);",
             "bar_sync();",
             "if tid() == 0 {",
             "    fence(gpu);",
             f"    let before = atomic_add(count[0], 1);",
             f"    last[0] = where(before == {ctas - 1}, i32(1), i32(0));",
             "    fence(gpu);",
             "}",
             "bar_sync();",
             "if last[0] == 1 {",
             "    var sum: f32 = 0;",
             f"    for c in range(0, {ctas}) {{ sum += P[c, i64({permuted(rng, threads)})]; }}",
             "    Y[i64(tid())] = sum;",
             "}"]
    return kernel("flag", "k", "X: f32[N], P: inout f32[C, T], count: inout i32[A], Y: inout f32[T]",
                  f"grid({ctas}) threads({threads})", lines,
                  [f"N={ctas * threads}", f"C={ctas}", f"T={threads}", "A=1", "count=zeros",
                   "P=zeros", "Y=zeros"])


def chain(rng):
    """Each CTA waits for the number of the one before it, adds its own and hands it on."""
    ctas, threads = rng.randrange(2, 5), rng.choice([32, 64])
    lines = ["if tid() == 0 {",
             "    while atomic_add(turn[0], 0) != cta_id() { }",
             "    fence(gpu);",
             "}",
             "bar_sync();",
             "let v = P[i64(tid())];",
             "bar_sync();",
             f"P[i64({permuted(rng, threads)})] = v + X[i64(tid())];",
             "bar_sync();",
             "if tid() == 0 {",
             "    fence(gpu);",
             "    atomic_add(turn[0], 1);",
             "}"]
    return kernel("chain", "k", "X: f32[T], P: inout f32[T], turn: inout i32[A]",
                  f"grid({ctas}) threads({threads})", lines,
                  [f"T={threads}", "A=1", "turn=zeros", "P=zeros"])


def tickets(rng):
    """A warp draws tiles and hands their numbers to the others through shared memory."""
    warps, slots, tiles = rng.choice([1, 2, 4]), rng.randrange(1, 4), rng.randrange(1, 6)
    threads = 32 * warps
    lines = [f"shared next: i32[{slots}];",
             f"mbarrier full[{slots}] arrivals(1);", f"mbarrier empty[{slots}] arrivals({warps});",
             "role draw warps(1) {", f"    var s: stage({slots}, phase = 1);",
             "    var t: i32 = 0;",
             f"    while t < {tiles} {{",
             "        wait(empty[s], s.phase);",
             "        if laneid() == 0 { next[s] = atomic_add(count[0], 1); }",
             "        warp_sync();",
             "        t = next[s];",
             "        warp_sync();",
             "        if laneid() == 0 { arrive(full[s]); }",
             "        s.advance();", "    }", "}",
             f"role work warps({warps}) {{", f"    var s: stage({slots}, phase = 0);",
             "    var t: i32 = 0;",
             f"    while t < {tiles} {{",
             "        wait(full[s], s.phase);",
             "        t = next[s];",
             "        warp_sync();",
             "        if laneid() == 0 { arrive(empty[s]); }",
             "        s.advance();",
             f"        if t < {tiles} {{ Y[i64(t) * {threads} + i64(tid() % {threads})] = "
             f"X[i64(t) * {threads} + i64(tid() % {threads})]; }}",
             "    }", "}"]
    return kernel("tickets", "k", "X: f32[N], Y: inout f32[N], count: inout i32[A]",
                  f"grid({rng.randrange(1, 3)}) threads({256 if warps == 4 else threads + 32})", lines,
                  [f"N={tiles * threads}", "A=1", "count=zeros"])


def sums(rng):
    """Roles around products in tensor memory, by one CTA."""
    return in_tensor_memory(rng, "sums", 1)


def pair(rng):
    """The same by a pair of CTAs: the first one multiplies for both."""
    return in_tensor_memory(rng, "pair", 2)


def in_tensor_memory(rng, family, ctas):
    slots, tiles, rounds, places = (rng.randrange(1, 4) for _ in range(4))
    rows, cols = rng.choice([64, 128]), rng.choice([32, 64])
    is_pair = ctas == 2
    group = " cta_group(2)" if is_pair else ""
    # What differs of a pair: where copies arrive, and in which CTAs products do.
    full = "remote(full[s], 0)" if is_pair else "full[s]"
    to_all = ", ctas = 3" if is_pair else ""
    to_first = ", cta = 0" if is_pair else ""
    expect = f"expect_tx(full[s], {ctas} * (bytes(As[s]) + bytes(Bs[s])));"
    multiply = [f"var s: stage({slots}, phase = 0);", f"var a: stage({places}, phase = 1);",
                f"for t in range(0, {tiles}) {{",
                "    wait(free[a], a.phase);",
                "    fence(after_thread_sync);",
                *indented(counted(rng, rounds, [
                    "wait(full[s], s.phase);",
                    "if elect_sync() {",
                    "    gemm_async(acc[a], As[s], Bs[s].T, accumulate = r > 0);",
                    f"    commit(empty[s]{to_all});",
                    "}",
                    "s.advance();"])),
                f"    if elect_sync() {{ commit(done[a]{to_all}); }}",
                "    a.advance();",
                "}"]
    if is_pair:
        multiply = ["if me == 0 {", *indented(multiply), "}"]
    lines = [f"shared As: bf16[{slots}, {rows}, 64] in swizzle(128);",
             f"shared Bs: bf16[{slots}, {cols // ctas}, 64] in swizzle(128);",
             f"mbarrier full[{slots}] arrivals(1);", f"mbarrier empty[{slots}] arrivals(1);",
             f"mbarrier done[{places}] arrivals(1);", f"mbarrier free[{places}] arrivals({4 * ctas});",
             f"tmem acc: f32[{places}, {rows}, {cols}]{group};",
             "let me = i64(cta_rank());",
             "role math warpgroups(1) {",
             f"    var a: stage({places}, phase = 0);",
             f"    for t in range(0, {tiles}) {{",
             "        wait(done[a], a.phase);",
             "        fence(after_thread_sync);",
             f"        Y[(t * {ctas} + me) * {rows}:+{rows}, 0:+{cols}] = acc[a, 0:+{rows}, 0:+{cols}];",
             "        fence(before_thread_sync);",
             f"        if laneid() == 0 {{ arrive(free[a]{to_first}); }}",
             "        a.advance();",
             "    }", "}",
             "role load warps(1) {", f"    var s: stage({slots}, phase = 1);",
             f"    for r in range(0, {tiles * rounds}) {{",
             "        wait(empty[s], s.phase);",
             "        if elect_sync() {",
             f"            if me == 0 {{ {expect} }}" if is_pair else f"            {expect}",
             f"            copy_async(As[s], A[me * {rows}:+{rows}, r * 64:+64], mbar = {full}, engine = tma);",
             f"            copy_async(Bs[s], B[me * {cols // ctas}:+{cols // ctas}, r * 64:+64], "
             f"mbar = {full}, engine = tma);",
             "        }", "        s.advance();", "    }", "}",
             "role multiply warps(1) {", *indented(multiply), "}"]
    clauses = f"grid({ctas}) cluster({ctas})" if is_pair else "grid(1)"
    return kernel(family, "k", "A: bf16[M, K], B: bf16[N, K], Y: out f32[L, N]",
                  f"{clauses} where K % 8 == 0", lines,
                  [f"M={ctas * rows}", f"N={cols}", f"K={tiles * rounds * 64}",
                   f"L={tiles * ctas * rows}"])._replace(arch=rng.choice(["sm_100a", "sm_103a"]))


def agreed(rng):
    """Threads that have one value leave it in one element: those of a warp, of two, or of four."""
    warps, rounds = rng.choice([4, 8]), rng.randrange(1, 4)
    group, count = rng.choice([("warpid()", warps), ("tid() / 32", warps), ("warpid() / 2", warps // 2), ("wgid()", warps // 4)])
    value = rng.choice([f"f32({group}) + 3.0", f"X[i64({group})]", f"X[i64({group}) + i64(laneid()) / 32]", "2.0"])
    store = f"Y[i64(r) * {count} + i64({group})] = {value};"
    lines = [f"for r in range(0, {rounds}) {{", f"    {store}", "}"]
    if rng.random() < 0.5:
        lines[1] = f"    if laneid() == 0 {{ {store} }}"
    params = "X: f32[N], Y: out f32[M]"
    sizes = [f"N={32 * warps}", f"M={rounds * count}"]
    if rng.random() < 0.6:
        return kernel("agreed", "k", params, f"grid(1) threads({32 * warps})", lines, sizes)
    lines = [f"role low warps({warps}) {{", *indented(lines), "}",
             "role high warps(1) {", f"    Y[{rounds * count}] = 1.0;", "}"]
    return kernel("agreed", "k", params, "grid(1)", lines, [sizes[0], f"M={rounds * count + 1}"])


FAMILIES = [staged, of_warps, tree, scan, named, stages, tensor_copies, groups, commits, product, parts, stores,
            back, cluster, sends, multicast, flag, chain, tickets, sums, pair, agreed]
