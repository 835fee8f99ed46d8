# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Right explicit kernels, drawn at random, by protocols of several steps: see kernels.py for the form.

Work of CTAs that have not started, for one CTA and for a cluster, barriers of the grid, chains of roles, CTAs of a cluster that hand on
to the next one, in shared memory and in tensors, or by flags there, tiles that go to rows and columns of a cluster, tensor memory under
two types and up to its end, and sums that copies add to a tensor.
"""

import kernels
from kernels import indented, permuted

BLACKWELL = ["sm_100a", "sm_103a"]


def kernel(family, params, clauses, lines, sizes, arch="sm_90a"):
    return kernels.kernel(family, "k", params, clauses, lines, sizes)._replace(arch=arch)


def steal(rng):
    """A CTA goes on with the work of others; all threads read the response."""
    tiles, threads = rng.randrange(1, 9), rng.choice([32, 64, 128])
    early = rng.random() < 0.5  # the request is on its way while the tile is computed
    request = ["if tid() == 0 {", "    expect_tx(full, bytes(response));", "    try_cancel(response, full);", "}"]
    staged = rng.random() < 0.5
    work = [f"s[tid()] = X[i64(t) * {threads} + i64(tid())];", "bar_sync();",
            f"Y[i64(t) * {threads} + i64(tid())] = s[{permuted(rng, threads)}];"] if staged else [
                f"Y[i64(t) * {threads} + i64(tid())] = X[i64(t) * {threads} + i64(tid())] * 2.0;"]
    body = [*(request if early else []), *work, *([] if early else request), "wait(full, phase);", "phase = 1 - phase;",
            rng.choice(["t = first_ctaid(response);", "t = where(is_canceled(response), first_ctaid(response), -1);"]),
            "fence(async_shared);", "bar_sync();"]
    lines = ["shared response: u32[4];", *([f"shared s: f32[{threads}];"] if staged else []), "mbarrier full arrivals(1);",
             "var t = cta_id();", "var phase: i32 = 0;", "while t >= 0 {", *indented(body), "}"]
    return kernel("steal", "X: f32[N], Y: out f32[N]", f"grid(N / {threads}) threads({threads}) where N % {threads} == 0", lines,
                  [f"N={tiles * threads}"], rng.choice(BLACKWELL))


def steal_roles(rng):
    """One role asks for work, copies bring it, and others compute; each has the responses from a ring."""
    ring, slots, tiles, warps = rng.randrange(1, 4), rng.randrange(1, 4), rng.randrange(1, 8), rng.choice([1, 2, 4])
    rows = 32 * warps
    free = ["fence(async_shared);", "warp_sync();", "if laneid() == 0 { arrive(taken[s]); }", "s.advance();"]
    lines = [f"shared response: u32[{ring}, 4];", f"shared buf: f32[{slots}, {rows}];", f"mbarrier asked[{ring}] arrivals(1);",
             f"mbarrier taken[{ring}] arrivals({1 + warps});", f"mbarrier full[{slots}] arrivals(1);",
             f"mbarrier empty[{slots}] arrivals({warps});",
             "role schedule warps(1) {", f"    var s: stage({ring}, phase = 0);", "    var t = cta_id();", "    while t >= 0 {",
             "        wait(taken[s], 1 - s.phase);", "        if elect_sync() {", "            expect_tx(asked[s], bytes(response[s]));",
             "            try_cancel(response[s], asked[s]);", "        }", "        wait(asked[s], s.phase);",
             "        t = first_ctaid(response[s]);", "        fence(async_shared);", "        warp_sync();", "        s.advance();",
             "    }", "}",
             "role load warps(1) {", f"    var s: stage({ring}, phase = 0);", f"    var a: stage({slots}, phase = 1);",
             "    var t = cta_id();", "    while t >= 0 {", "        wait(empty[a], a.phase);", "        if elect_sync() {",
             "            expect_tx(full[a], bytes(buf[a]));",
             f"            copy_async(buf[a], X[t, 0:+{rows}], mbar = full[a], engine = tma);", "        }", "        a.advance();",
             "        wait(asked[s], s.phase);", "        t = first_ctaid(response[s]);", *indented(indented(free)), "    }", "}",
             f"role math warps({warps}) {{", f"    var s: stage({ring}, phase = 0);", f"    var a: stage({slots}, phase = 0);",
             "    var t = cta_id();", f"    let me = tid() % {rows};", "    while t >= 0 {", "        wait(full[a], a.phase);",
             f"        Y[t, me] = buf[a, {permuted(rng, rows).replace('tid()', 'me')}];", "        fence(async_shared);",
             "        warp_sync();", "        if laneid() == 0 { arrive(empty[a]); }", "        a.advance();",
             "        wait(asked[s], s.phase);", "        t = first_ctaid(response[s]);", *indented(indented(free)), "    }", "}"]
    # the role before math begins at a multiple of its warps
    lines = [line.replace(f"role math warps({warps})", f"role math warps({warps}) first(4)") for line in lines]
    lines = [line.replace("let me = tid()", "let me = (tid() - 128)") for line in lines]
    return kernel("steal_roles", f"X: f32[P, {rows}], Y: out f32[P, {rows}]", "grid(P)", lines, [f"P={tiles}"], rng.choice(BLACKWELL))


def steal_together(rng):
    """The CTAs of a cluster go on with the work of another one: the first asks for all, when all have read the last response."""
    ctas, tiles, threads, slots = rng.choice([2, 4]), rng.randrange(1, 6), rng.choice([32, 64]), rng.choice([1, 1, 2])
    by_sync = slots == 1 and rng.random() < 0.5
    # Who has read the response tells the first CTA, by an arrival, or all meet.
    free = ["cluster_sync();"] if by_sync else ["bar_sync();", "if tid() == 0 { arrive(taken[s], cta = 0); }"]
    before = [] if by_sync else ["if tid() == 0 && me == 0 { wait(taken[s], 1 - s.phase); }"]
    ask = [*before, "if tid() == 0 {", "    expect_tx(full[s], bytes(response[s]));",
           "    if me == 0 { try_cancel(response[s], full[s], multicast = 1); }", "}"]
    at = f"[i64(t) / {ctas}, me * {threads} + tid()]"
    work = [f"Y{at} = X{at} * 2.0;"]
    early = rng.random() < 0.5
    body = [*(ask if early else []), *work, *([] if early else ask), "wait(full[s], s.phase);", "t = first_ctaid(response[s]);",
            "fence(async_shared);", *free, "s.advance();"]
    lines = [f"shared response: u32[{slots}, 4];", f"mbarrier full[{slots}] arrivals(1);", f"mbarrier taken[{slots}] arrivals({ctas});",
             "let me = cta_rank();", "var t = cta_id() - me;", f"var s: stage({slots}, phase = 0);", "cluster_sync();",
             "while t >= 0 {", *indented(body), "}", *([] if by_sync else ["cluster_sync();"])]
    return kernel("steal_together", f"X: f32[P, {ctas * threads}], Y: out f32[P, {ctas * threads}]",
                  f"grid({ctas} * P) cluster({ctas}) threads({threads})", lines, [f"P={tiles}"], rng.choice(BLACKWELL))


def told_in_tensors(rng):
    """The CTAs of a cluster leave something in a tensor for each other and meet, or set a flag there."""
    ctas, rounds, threads = rng.choice([2, 4]), rng.randrange(1, 4), rng.choice([32, 64])
    peer = rng.choice([f"(me + 1) % {ctas}", "(me ^ 1)"])
    slots = rng.choice([1, 2])
    tiles = rng.random() < 0.4
    at = f"(r * {ctas} + {{}}) * {threads}" if slots == 2 else f"{{}} * {threads}"
    mine, other = at.format("me"), at.format(peer)
    body = ([f"A[{mine}:+{threads}] = X[r * {threads}:+{threads}] + f32(me);", "cluster_sync();", f"sum += A[{other}:+{threads}] * 0.5;"] if tiles else
            [f"A[{mine} + tid()] = X[r * {threads} + tid()] + f32(me);", "cluster_sync();", f"sum += A[{other} + ({permuted(rng, threads)})];"])
    lines = ["let me = cta_rank();", f"var sum: f32[{threads}] = 0;" if tiles else "var sum: f32 = 0;", f"for r in range(0, i32({rounds})) {{",
             *indented([*body, *(["cluster_sync();"] if slots == 1 else [])]), "}",
             f"Y[me * {threads}:+{threads}] = sum;" if tiles else f"Y[me * {threads} + tid()] = sum;"]
    return kernel("told_in_tensors", "X: f32[N], A: inout f32[M], Y: out f32[L]", f"grid({ctas}) threads({threads}) cluster({ctas})", lines,
                  [f"N={rounds * threads}", f"M={rounds * ctas * threads}", f"L={ctas * threads}", "A=zeros"])


def in_parts(rng):
    """The CTAs of a cluster store parts of one place after each other, in shared memory of the first one or in a tensor."""
    ctas, threads = rng.choice([2, 4]), rng.choice([32, 64])
    step = rng.choice([8, 16, threads])
    in_shared = rng.random() < 0.5
    to = "remote(s, 0)" if in_shared else "Y"
    meets = step < threads
    one = f"{to}[{step} * me + tid()] = X[{threads} * me + tid()];"
    lines = [f"shared s: f32[{ctas * threads}];"] if in_shared else []
    lines += ["let me = cta_rank();", "cluster_sync();"]
    if meets:
        for c in range(ctas):
            lines += [f"if me == {c} {{ {one} }}", "cluster_sync();"]
    else:
        lines += [one, "cluster_sync();"]
    if in_shared:
        lines += [f"if me == 0 {{ for c in range(0, i32({ctas})) {{ Y[c * {threads} + tid()] = s[c * {threads} + tid()]; }} }}"]
        if meets:  # what nobody wrote
            lines.insert(3, f"if me == 0 {{ for c in range(0, i32({ctas})) {{ s[c * {threads} + tid()] = 0.0; }} }}")
            lines.insert(4, "cluster_sync();")
    return kernel("in_parts", "X: f32[N], Y: inout f32[N]", f"grid({ctas}) threads({threads}) cluster({ctas})", lines,
                  [f"N={ctas * threads}", "Y=zeros"])


def last_sums(rng):
    """The last products are in flight until a CTA, or a pair of them, ends: who waits for them, and who tells whom, differs."""
    rounds, pair = rng.randrange(1, 4), rng.random() < 0.5
    ctas = 2 if pair else 1
    rows, cols = 128, rng.choice([32, 64])
    group, all_of = (" cta_group(2)", ", ctas = 3") if pair else ("", "")
    one = "tid() == 0 && me == 0" if pair else "tid() == 0"
    meet = "cluster_sync();" if pair else "bar_sync();"
    by_all = rng.random() < 0.5
    body = [f"store(a, A[(r * {ctas} + me) * {rows}:+{rows}, 0:+64]);", f"store(b, B[(r * {ctas} + me) * {cols // ctas}:+{cols // ctas}, 0:+64]);",
            "fence(async_shared);", meet, "fence(after_thread_sync);", f"if {one} {{", "    gemm_async(acc, a, b.T, accumulate = r > 0);",
            f"    commit(done{all_of});", "}",
            *(["wait(done, i32(r) % 2);"] if by_all else ["if warpid() == 0 { wait(done, i32(r) % 2); }", "bar_sync();"]),
            "fence(after_thread_sync);"]
    if rng.random() < 0.7:
        body += [f"Y[(r * {ctas} + me) * {rows}:+{rows}, 0:+{cols}] = acc[0:+{rows}, 0:+{cols}];", "fence(before_thread_sync);"]
    body += [meet]
    lines = [f"shared a: bf16[{rows}, 64] in swizzle(128);", f"shared b: bf16[{cols // ctas}, 64] in swizzle(128);", "mbarrier done arrivals(1);",
             f"tmem acc: f32[{rows}, {cols}]{group};", "let me = i64(cta_rank());", *(["cluster_sync();"] if pair else []),
             f"for r in range(0, {rounds}) {{", *indented(body), "}"]
    return kernel("last_sums", "A: bf16[M, K], B: bf16[N, K], Y: inout f32[M, C]",
                  f"grid({ctas}) threads(128){f' cluster({ctas})' if pair else ''} where K == 64", lines,
                  [f"M={rounds * ctas * rows}", f"N={rounds * cols}", "K=64", f"C={cols}", "Y=zeros"], rng.choice(BLACKWELL))


def phases(rng):
    """All CTAs write a tensor, meet, and read what others wrote."""
    ctas, threads, rounds = rng.randrange(1, 5), rng.choice([32, 64]), rng.randrange(1, 4)
    count = ctas * threads
    other = permuted(rng, threads)
    mine = f"i64(cta_id()) * {threads} + i64(tid())"
    body = [f"A[{mine}] = X[{mine}] + f32(r);", "grid_sync();",
            f"sum += A[i64((cta_id() + {rng.randrange(ctas)}) % {ctas}) * {threads} + i64({other})];", "grid_sync();"]
    lines = ["var sum: f32 = 0;", f"for r in range(0, {rounds}) {{", *indented(body), "}", f"Y[{mine}] = sum;"]
    return kernel("phases", "X: f32[N], A: inout f32[N], Y: out f32[N]", f"grid({ctas}) threads({threads})", lines, [f"N={count}", "A=zeros"])


def chain_of_roles(rng):
    """Roles in a row, each with a ring to the next: by mbarriers of threads, of one of each warp, or named barriers."""
    count, rounds, warps = rng.randrange(3, 6), rng.randrange(1, 6), rng.choice([1, 2])
    threads = 32 * warps
    slots = [rng.randrange(1, 4) for _ in range(count - 1)]
    by_warp = [rng.random() < 0.5 for _ in slots]
    lines = []
    for i, n in enumerate(slots):
        arrivals = warps if by_warp[i] else threads
        lines += [f"shared b{i}_: f32[{n}, {threads}];", f"mbarrier full{i}[{n}] arrivals({arrivals});", f"mbarrier free{i}[{n}] arrivals({arrivals});"]

    def told(i, bar):
        return ["warp_sync();", f"if laneid() == 0 {{ arrive({bar}); }}"] if by_warp[i] else [f"arrive({bar});"]

    for role in range(count):
        get, put = role - 1, role
        first, last = role == 0, role == count - 1
        me = f"(tid() - {role * threads})"
        body = [f"var x: f32 = {'X[i64(r) * ' + str(threads) + ' + i64(' + me + ')]' if first else '0'};"]
        if not first:
            other = permuted(rng, threads).replace("tid()", me)
            body += [f"wait(full{get}[g], g.phase);", f"x = b{get}_[g, {other}] + 1.0;", *told(get, f"free{get}[g]"), "g.advance();"]
        if not last:
            body += [f"wait(free{put}[p], p.phase);", f"b{put}_[p, {me}] = x;", *told(put, f"full{put}[p]"), "p.advance();"]
        else:
            body += [f"Y[i64(r) * {threads} + i64({me})] = x;"]
        lines += [f"role r{role} warps({warps}) first({role * warps}) {{", *([f"    var g: stage({slots[get]}, phase = 0);"] if not first else []),
                  *([f"    var p: stage({slots[put]}, phase = 1);"] if not last else []), f"    for r in range(0, {rounds}) {{",
                  *indented(indented(body)), "    }", "}"]
    return kernel("chain_of_roles", "X: f32[N], Y: out f32[N]", "grid(1)", lines, [f"N={rounds * threads}"])


def around(rng):
    """Each CTA of a cluster hands a slot on to the next one, which says when it has read it."""
    ctas, slots, rounds, threads = rng.choice([2, 3, 4]), rng.randrange(1, 4), rng.randrange(1, 6), rng.choice([32, 64])
    how = rng.choice(["stores", "told", "bulk"])
    to, of = f"(me + 1) % {ctas}", f"(me + {ctas - 1}) % {ctas}"
    body = ["wait(free[s], 1 - s.phase);"]
    if how == "stores":  # whose bytes complete at the mbarrier there
        body += [f"if tid() == 0 {{ expect_tx(full[s], {threads} * 4); }}",
                 f"store(remote(buf, {to})[s, tid()], X[i64(r) * {threads} + i64(tid())], mbar = full[s]);"]
    elif how == "told":
        body += [f"remote(buf, {to})[s, tid()] = X[i64(r) * {threads} + i64(tid())];", f"arrive(full[s], cta = {to});"]
    else:
        body += [f"mine[s, tid()] = X[i64(r) * {threads} + i64(tid())];", "fence(async_shared);", "bar_sync();", "if tid() == 0 {",
                 "    expect_tx(full[s], bytes(buf[s]));", f"    copy_async(remote(buf[s], {to}), mine[s], mbar = full[s], engine = bulk);", "}"]
    body += ["wait(full[s], s.phase);", f"sum += buf[s, {permuted(rng, threads)}];",
             *(["fence(async_shared);"] if how == "bulk" else []), f"arrive(free[s], cta = {of});", "s.advance();"]
    lines = [f"shared buf: f32[{slots}, {threads}];", *([f"shared mine: f32[{slots}, {threads}];"] if how == "bulk" else []),
             f"mbarrier full[{slots}] arrivals({threads if how == 'told' else 1});", f"mbarrier free[{slots}] arrivals({threads});",
             "let me = cta_rank();", f"var s: stage({slots}, phase = 0);", "var sum: f32 = 0;", "cluster_sync();",
             f"for r in range(0, {rounds}) {{", *indented(body), "}", f"Y[i64(cta_id()) * {threads} + i64(tid())] = sum;", "cluster_sync();"]
    return kernel("around", "X: f32[N], Y: out f32[M]", f"grid({ctas}) threads({threads}) cluster({ctas})", lines,
                  [f"N={rounds * threads}", f"M={ctas * threads}"])


def rows_and_columns(rng):
    """A cluster of two by two: the tiles of A go to a row of it, those of B to a column."""
    slots, rounds, rows = rng.randrange(1, 4), rng.randrange(1, 5), rng.choice([8, 16])
    lines = [f"shared a: bf16[{slots}, {2 * rows}, 64] in swizzle(128);", f"shared b: bf16[{slots}, {2 * rows}, 64] in swizzle(128);",
             f"mbarrier full[{slots}] arrivals(1);", f"mbarrier empty[{slots}] arrivals(3);",
             "let x = cta_in_cluster(0);", "let y = cta_in_cluster(1);",
             "role load warps(1) {", f"    var s: stage({slots}, phase = 1);", f"    for r in range(0, {rounds}) {{",
             "        wait(empty[s], s.phase);", "        if elect_sync() {", "            expect_tx(full[s], bytes(a[s]) + bytes(b[s]));",
             f"            copy_async(a[s, y * {rows}:+{rows}, :], A[(r * 2 + i64(x)) * {2 * rows} + i64(y) * {rows}:+{rows}, 0:+64], "
             "mbar = full[s], engine = tma, ctas = 5 << x);",
             f"            copy_async(b[s, x * {rows}:+{rows}, :], B[(r * 2 + i64(y)) * {2 * rows} + i64(x) * {rows}:+{rows}, 0:+64], "
             "mbar = full[s], engine = tma, ctas = 3 << 2 * y);",
             "        }", "        s.advance();", "    }", "    cluster_sync();", "}",
             "role math warpgroups(1) {", f"    var s: stage({slots}, phase = 0);", f"    var sum: f32[{2 * rows}, 64] = 0;",
             f"    for r in range(0, {rounds}) {{", "        wait(full[s], s.phase);", "        sum += f32(load(a[s])) + f32(load(b[s]));",
             "        fence(async_shared);", "        bar_sync(id = 1, threads = 128);",
             "        if tid_in_wg() < 4 && tid_in_wg() != 3 - (x + 2 * y) { arrive(empty[s], cta = tid_in_wg()); }",
             "        s.advance();", "    }",
             f"    Y[(i64(x) + 2 * i64(y)) * {2 * rows}:+{2 * rows}, 0:+64] = sum;", "    cluster_sync();", "}"]
    return kernel("rows_and_columns", "A: bf16[N, K], B: bf16[N, K], Y: out f32[M, K]", "grid(2, 2) cluster(2, 2) where K == 64", lines,
                  [f"N={rounds * 4 * rows}", "K=64", f"M={8 * rows}"])


def under_two_types(rng):
    """Sums in tensor memory are converted in place and multiplied again, as attention does."""
    rounds, threads = rng.randrange(1, 4), 128
    before, after = "fence(before_thread_sync);", "fence(after_thread_sync);"
    at = rng.choice([0, 32])
    apart = rng.random() < 0.3
    lines = ["shared a: bf16[128, 64] in swizzle(128);", "shared b: bf16[64, 64] in swizzle(128);", "mbarrier done arrivals(1);",
             "mbarrier last arrivals(1);", "tmem s: f32[128, 64];",
             "tmem p: bf16[128, 64];" if apart else f"let p: tmem bf16[128, 64] = alias(s[0:+128, {at}:+32]);", "tmem o: f32[128, 64];",
             "store(a, A[0:+128, 0:+64]);", "store(b, B[0:+64, 0:+64]);", "fence(async_shared);", "bar_sync();",
             f"for r in range(0, {rounds}) {{",
             *indented(["if tid() == 0 {", "    gemm_async(s, a, b.T, accumulate = false);", "    commit(done);", "}", "wait(done, i32(r) % 2);", after,
                        "let x = s[0:+128, 0:+64];", *([] if apart else ["bar_sync();"] if rng.random() < 0.3 else []),
                        "p[0:+128, 0:+64] = bf16(x * 0.5);", before, "bar_sync();", after,
                        "if tid() == 0 {", "    gemm_async(o, p, b, accumulate = r > 0);", "    commit(last);", "}", "wait(last, i32(r) % 2);", after]),
             "}", "Y[0:+128, 0:+64] = o[0:+128, 0:+64];"]
    return kernel("under_two_types", "A: bf16[M, K], B: bf16[K, K], Y: out f32[M, K]", f"grid(1) threads({threads}) where K == 64", lines,
                  ["M=128", "K=64"], rng.choice(BLACKWELL))


def sums_by_copies(rng):
    """Tiles are added to a tensor by copies, and read back when these are complete."""
    slots, rounds, threads = rng.randrange(1, 4), rng.randrange(1, 5), rng.choice([64, 128])
    engine = rng.choice(["tma", "tma", "bulk"])
    part = "A[0:+16, 0:+32]"
    back = rng.random() < 0.6
    q = f"i32(r) % {slots}"
    lines = [f"shared out: f32[{slots}, 16, 32];", f"for r in range(0, {rounds}) {{",
             f"    if tid() == 0 {{ wait_group({slots - 1}, engine = tma, read = 1); }}", "    bar_sync();",
             f"    store(out[{q}], X[r * 16:+16, 0:+32] * 2.0);", "    fence(async_shared);", "    bar_sync();", "    if tid() == 0 {",
             f"        copy_async({part}, out[{q}], engine = {engine}, kind = add);", "        commit_group(engine = tma);", "    }", "}",
             "if tid() == 0 { wait_group(0, engine = tma); }"]
    if back:
        lines += ["bar_sync();", f"Y[0:+16, 0:+32] = {part}.T.T + 1.0;"]
    return kernel("sums_by_copies", "X: f32[N, 32], A: inout f32[16, 32], Y: inout f32[16, 32]", f"grid(1) threads({threads})", lines,
                  [f"N={rounds * 16}", "A=zeros", "Y=zeros"])


FAMILIES = [steal, steal_roles, steal_together, told_in_tensors, in_parts, last_sums, phases, chain_of_roles, around, rows_and_columns, under_two_types, sums_by_copies]
