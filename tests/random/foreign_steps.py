# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The steps of foreign.py that several threads take: what the device does, and the same as a loop over the state of all
threads. Each adds itself to a program (foreign_program.py)."""

ARCHS = {"sm_80": 80, "sm_90a": 90, "sm_100a": 100}


def field_of(rng):
    return rng.choice([("a", "u32"), ("b", "u32"), ("c", "u64"), ("d", "f64"), ("f", "f32")])


def shuffle(p):
    rng = p.rng
    name, of = field_of(rng)
    width = rng.choice([32, 32, 16, 8, 4, 2])
    of = {"u64": "unsigned long long"}.get(of, of)
    kind, by = rng.choice(["idx", "up", "down", "xor"]), rng.randrange(1, 32)
    call = {"idx": "__shfl_sync", "up": "__shfl_up_sync", "down": "__shfl_down_sync", "xor": "__shfl_xor_sync"}[kind]
    amount = "s.a % 32" if kind == "idx" else str(by)
    group = f"(lane / {width} * {width})"
    source = {"idx": f"{group} + was[t].a % 32 % {width}", "up": f"(lane % {width} >= {by} ? lane - {by} : lane)",
              "down": f"(lane % {width} + {by} < {width} ? lane + {by} : lane)",
              # beyond the own part of the warp a lane keeps its value, but in an earlier part it may read
              "xor": f"((lane ^ {by}) < {group} + {width} ? lane ^ {by} : lane)"}[kind]
    p.both(f"s.{name} = {call}(~0u, ({of})s.{name}, {amount}, {width});", f"s.{name} = was[warp + {source}].{name};")


def ballot(p):
    condition = p.x.condition(1)
    p.functions.append(f"static BOTH APART bool {p.name('asked')}(State s, u32 t) {{ return {condition}; }}\n")
    asked = f"asked{p.count}"
    p.both(f"const bool is = {asked}(s, t); s.a += __ballot_sync(~0u, is) + __all_sync(~0u, is) * 5 + __any_sync(~0u, !is) * 9;",
           f"u32 m = 0; for (u32 i = 0; i < 32; i++) {{ m |= (u32){asked}(was[warp + i], warp + i) << i; }} "
           f"s.a += m + (m == ~0u) * 5 + (m != ~0u) * 9;")


def match(p):
    bits = p.rng.choice([1, 3, 7])
    if p.rng.random() < 0.5:
        p.both(f"s.b ^= __match_any_sync(~0u, s.a & {bits});",
                f"u32 m = 0; for (u32 i = 0; i < 32; i++) m |= (u32)((was[warp + i].a & {bits}) == (was[t].a & {bits})) << i; s.b ^= m;")
    else:
        p.both(f"int all_; const unsigned m = __match_all_sync(~0u, (unsigned long long)(s.c >> {60 + bits % 4}), &all_); s.b ^= m + all_;",
               f"bool same = true; for (u32 i = 0; i < 32; "
               f"i++) same &= (was[warp + i].c >> {60 + bits % 4}) == (was[t].c >> {60 + bits % 4}); s.b ^= same ? ~0u + 1 : 0;")


def redux(p):
    name, step = p.rng.choice([("add_sync(~0u, s.a)", "r += v"), ("min_sync(~0u, s.a)", "r = least(r, v)"), ("max_sync(~0u, s.a)",
                                                                                                             "r = most(r, v)"),
                                                                                                             ("and_sync(~0u, s.a)", "r &= v"),
                               ("or_sync(~0u, s.a)", "r |= v"), ("xor_sync(~0u, s.a)", "r ^= v"), ("min_sync(~0u, (int)s.a)",
                                                                                                   "r = (u32)least((i32)r, (i32)v)"),
                                                                                                   ("max_sync(~0u, (int)s.a)",
                                                                                                    "r = (u32)most((i32)r, (i32)v)")])
    p.both(f"s.b += __reduce_{name};", f"u32 r = was[warp].a; for (u32 i = 1; i < 32; i++) {{ const u32 v = was[warp + i].a; {step}; }} "
                                       f"s.b += r;")


def apart_lanes(p):
    """Half of a warp, in a branch, with the mask of those that are in it."""
    bit, by = p.rng.choice([1, 2, 4, 8, 16]), p.rng.choice(["lane", "(lane * 7)"])
    p.both(f"if ({by} & {bit}) {{ const unsigned m = __activemask(); "
           f"s.a ^= __shfl_sync(__match_any_sync(m, 1), s.b, __ffs(m) - 1) + __popc(m); }} __syncwarp();",
           f"if ({by} & {bit}) {{ u32 m = 0; for (u32 lane = 0; lane < 32; lane++) m |= (u32)(({by} & {bit}) != 0) << lane; "
           f"s.a ^= was[warp + __builtin_ctz(m)].b + __builtin_popcount(m); }}")


def exchange(p):
    """Through shared memory, static or dynamic, of elements of any width."""
    rng = p.rng
    of, name = rng.choice([("u8", "a"), ("u16", "b"), ("u32", "a"), ("u64", "c"), ("f64", "d"), ("f32", "f"), ("State", "")])
    odd, plus, array = rng.choice([1, 5, 7, 11]), rng.randrange(99), p.name("room")
    get = f"s.{name} = ({of})" if name else "s = "
    value = f"({of})s.{name}" if name else "s"
    size = {"u8": 1, "u16": 2, "u32": 4, "u64": 8, "f64": 8, "f32": 4, "State": 32}[of]
    pad = rng.choice([0, 0, 1])
    if rng.random() < 0.4:
        p.shared = max(p.shared, 2 * size * p.block)
        memory = f"{of} *{array} = ({of} *)dynamic;"
        volatile = ""
    else:
        memory, volatile = f"__shared__ {of} {array}[BLOCK * {1 + pad}];", rng.choice(["", "volatile "]) if name else ""
    source = f"((b * {odd} + {plus}) % BLOCK)"
    read = f"(({volatile}{of} *){array})" if volatile else array
    p.both(f"{memory} {array}[b * {1 + pad}] = {value}; __syncthreads(); {get}{read}[{source} * {1 + pad}]; __syncthreads();",
           f"{get}was[base + {source}]{'.' + name if name else ''};")


def counted(p):
    condition = p.rng.choice(["(s.a & 3) == 1", "s.b > s.a", "s.c % 3 == 0"])
    host = condition.replace("s.", "was[base + i].")
    p.both(f"const bool is = {condition}; "
           f"const u32 n = __syncthreads_count(is), any = __syncthreads_or(is), every = __syncthreads_and(is); "
           f"s.a += n * 4 + (any != 0) * 2 + (every != 0);",
           f"u32 n = 0; for (u32 i = 0; i < BLOCK; i++) n += {host}; s.a += n * 4 + (n != 0) * 2 + (n == BLOCK);")


def histogram(p):
    """Atomics in shared memory whose order does not matter."""
    rng = p.rng
    array, bins = p.name("bins"), rng.choice([1, 7, 32])
    of, value, call, step = rng.choice([
        ("u32", "s.b", "atomicAdd(at, v)", "x + v"), ("u32", "s.b", "atomicMax(at, v)", "most(x, v)"), ("u32", "s.b", "atomicXor(at, v)",
                                                                                                        "x ^ v"), ("u32", "s.b",
                                                                                                                   "atomicSub(at, v)", "x - v"),
        ("int", "(int)s.b", "atomicMin(at, v)", "least(x, v)"), ("unsigned long long", "s.c", "atomicAdd(at, v)", "x + v"),
        ("unsigned long long", "s.c", "atomicMin(at, v)", "least(x, v)"),
        ("long long", "(i64)s.c", "atomicMax(at, v)", "most(x, v)"), ("unsigned long long", "s.c", "atomicOr(at, v)", "x | v"), ("f32",
                                                                                                                                 "(f32)(s.b & 1023)", "atomicAdd(at, v)", "x + v"),
        ("f64", "(f64)(s.b & 1023)", "atomicAdd(at, v)", "x + v"), ("u32", "7u", "atomicInc(at, v)", "x >= v ? 0 : x + 1"), ("u32", "9u",
                                                                                                                             "atomicDec(at, v)", "x == 0 || x > v ? v : x - 1"),
        ("u32", "s.b", "atomicAdd_block(at, v)", "x + v"), ("u32", "s.b",
                "u32 o = *(volatile u32 *)at, seen; do { seen = o; o = atomicCAS(at, seen, seen * 1u + v * 3u); } while (o != seen)", "x + v * 3u"),
        ("unsigned short", "(unsigned short)s.b", "unsigned short o = *(volatile unsigned short *)at, seen; do { seen = o; "
                                                  "o = atomicCAS(at, seen, (unsigned short)(seen + v)); } while (o != seen)", "x + v")])
    host_value = value.replace("s.", "was[base + i].")
    back = "s.c ^= (u64)(i64)" if of not in ("f32", "f64") else "s.d += "
    p.both(f"__shared__ {of} {array}[{bins}]; if (b < {bins}) {array}[b] = 1; __syncthreads(); {{ {of} *at = &{array}[s.a % {bins}]; "
           f"const {of} v = {value}; {call}; }} __syncthreads(); {back}{array}[b % {bins}]; __syncthreads();",
           f"{of} x = 1; for (u32 i = 0; i < BLOCK; i++) if (was[base + i].a % {bins} == b % {bins}) {{ const {of} v = {host_value}; "
           f"x = {step}; }} {back}x;")


def global_sum(p):
    rng = p.rng
    place = f"sums[{p.rng.randrange(8)}]"
    call = rng.choice(["atomicAdd(&{0}, s.a)", "atomicAdd_system(&{0}, s.a)",
            "cuda::atomic_ref<unsigned, cuda::thread_scope_device>({0}).fetch_add(s.a, cuda::std::memory_order_relaxed)",
                       "asm volatile(\"red.release.gpu.global.add.u32 [%0], %1;\" :: \"l\"(&{0}), \"r\"(s.a) : \"memory\")"])
    if "cuda::" in call:
        p.headers.add("cuda/atomic")
    p.kernel.append("{ " + call.format(place) + "; }")
    p.host.append(f"for (u32 t = 0; t < THREADS; t++) {place} += all[t].a;")


def grid_exchange(p):
    if not p.cooperative:
        return exchange(p)
    p.headers.add("cooperative_groups.h")
    by = p.rng.randrange(1, 50)
    p.both(f"scratch[t] = s.c; cooperative_groups::this_grid().sync(); s.c = scratch[(t + {by}) % THREADS]; "
           f"cooperative_groups::this_grid().sync();", f"s.c = was[(t + {by}) % THREADS].c;")
    return None


def cluster_exchange(p):
    if p.cluster == 1:
        return exchange(p)
    p.headers.add("cooperative_groups.h")
    array, by = p.name("far"), p.rng.randrange(1, p.cluster)
    how = p.rng.choice([f"*cooperative_groups::this_cluster().map_shared_rank(&{array}[b], (rank + {by}) % CLUSTER)",
                        f"far_load(&{array}[b], (rank + {by}) % CLUSTER)"])
    p.both(f"__shared__ u64 {array}[BLOCK]; {array}[b] = s.c; const u32 rank = cooperative_groups::this_cluster().block_rank(); "
           f"cooperative_groups::this_cluster().sync(); s.c = {how} + rank; cooperative_groups::this_cluster().sync();",
           f"const u32 block = t / BLOCK, rank = block % CLUSTER; "
           f"s.c = was[(block - rank + (rank + {by}) % CLUSTER) * BLOCK + b].c + rank;")
    return None


def cluster_atomics(p):
    if p.cluster == 1:
        return histogram(p)
    p.headers.add("cooperative_groups.h")
    array = p.name("near")
    p.both(f"__shared__ u32 {array}[4]; if (b < 4) {array}[b] = b; cooperative_groups::this_cluster().sync(); "
           f"atomicAdd(cooperative_groups::this_cluster().map_shared_rank(&{array}[s.a & 3], s.b % CLUSTER), s.h); "
           f"cooperative_groups::this_cluster().sync(); s.a ^= {array}[b & 3];",
           "const u32 block = t / BLOCK, rank = block % CLUSTER; u32 x = b & 3; for (u32 i = 0; i < CLUSTER * BLOCK; "
           "i++) { const State &o = was[(block - rank) * BLOCK + i]; if ((o.a & 3) == (b & 3) && o.b % CLUSTER == rank) x += o.h; } "
           "s.a ^= x;")
    return None


def tiles(p):
    """Groups of cooperative groups."""
    rng = p.rng
    p.headers |= {"cooperative_groups.h", "cooperative_groups/reduce.h", "cooperative_groups/scan.h"}
    size = rng.choice([2, 4, 8, 16, 32])
    what = rng.choice(["reduce", "scan", "exclusive", "coalesced", "labeled", "binary", "max", "shfl"])
    head = f"namespace cg = cooperative_groups; auto g = cg::tiled_partition<{size}>(cg::this_thread_block());"
    part = f"const u32 from = warp + lane / {size} * {size};"
    if what == "reduce":
        p.both(f"{head} s.a = cg::reduce(g, s.a, cg::plus<u32>()) ^ g.thread_rank() ^ g.meta_group_rank();",
               f"{part} u32 r = 0; for (u32 i = 0; i < {size}; i++) r += was[from + i].a; s.a = r ^ lane % {size} ^ b / {size};")
    elif what == "max":
        p.both(f"{head} s.c = cg::reduce(g, s.c, cg::greater<u64>());",
                f"{part} u64 r = 0; for (u32 i = 0; i < {size}; i++) r = most(r, was[from + i].c); s.c = r;")
    elif what in ("scan", "exclusive"):
        p.both(f"{head} s.b = cg::{'in' if what == 'scan' else 'ex'}clusive_scan(g, s.b, cg::plus<u32>());",
               f"{part} u32 r = 0; for (u32 i = from; i < t + {int(what == 'scan')}; i++) r += was[i].b; s.b = r;")
    elif what == "shfl":
        p.both(f"{head} s.d = g.shfl_xor(s.d, 1); g.sync();", "s.d = was[t ^ 1].d;")
    elif what == "coalesced":
        p.both("namespace cg = cooperative_groups; if (s.a & 1) { auto g = cg::coalesced_threads(); "
               "s.b = cg::reduce(g, s.b, cg::plus<u32>()) + g.thread_rank() + g.shfl(s.h, 0); }",
               "if (was[t].a & 1) { u32 sum = 0, rank = 0, h = 0; bool any = false; for (u32 i = 0; i < 32; "
               "i++) if (was[warp + i].a & 1) { const State &o = was[warp + i]; sum += o.b; rank += i < lane; if (!any) h = o.h; "
               "any = true; } s.b = sum + rank + h; }")
    elif what == "labeled":
        p.both("namespace cg = cooperative_groups; auto w = cg::tiled_partition<32>(cg::this_thread_block()); "
               "auto g = cg::labeled_partition(w, s.a & 3); s.b += cg::reduce(g, s.h, cg::bit_xor<u32>()) + g.size();",
               "u32 r = 0, n = 0; for (u32 i = 0; i < 32; i++) if (((was[warp + i].a ^ was[t].a) & 3) == 0) { r ^= was[warp + i].h; n++; "
               "} s.b += r + n;")
    else:
        p.both("namespace cg = cooperative_groups; auto w = cg::tiled_partition<32>(cg::this_thread_block()); "
               "auto g = cg::binary_partition(w, (s.a & 4) != 0); s.b += g.thread_rank() + g.size() * 64;",
               "u32 r = 0, n = 0; for (u32 i = 0; i < 32; i++) if (((was[warp + i].a ^ was[t].a) & 4) == 0) { r += i < lane; n++; } "
               "s.b += r + n * 64;")


def async_copies(p):
    """Words of the input, by cp.async, pipelines, barriers and bulk copies."""
    rng = p.rng
    size, array, by = rng.choice([4, 8, 16]), p.name("copied"), rng.randrange(1, 60)
    words = size // 4
    read = f"{array}[((b + {by}) % BLOCK) * {words} + {words - 1}]"
    host = f"s.a ^= in[base * {words} + ((b + {by}) % BLOCK) * {words} + {words - 1}];"
    memory = f"__shared__ __align__(16) u32 {array}[BLOCK * {words}]; const u32 *from = in + cta * BLOCK * {words};"
    # The library copies in bulk from sm_90 on, but has no proxy fence after the init of its barriers.
    fence = " asm volatile(\"fence.proxy.async.shared::cta;\" ::: \"memory\");" if ARCHS[p.arch] >= 90 else ""
    how = rng.choice(["primitive", "zfill", "pipeline", "group", "barrier", "staged"] + (["bulk"] if ARCHS[p.arch] >= 90 else []))
    if how == "primitive":
        p.headers.add("cuda_pipeline.h")
        p.both(f"{memory} __pipeline_memcpy_async(&{array}[b * {words}], from + b * {words}, {size}); __pipeline_commit(); "
               f"__pipeline_wait_prior(0); __syncthreads(); s.a ^= {read}; __syncthreads();", host)
    elif how == "zfill":
        p.headers.add("cuda_pipeline.h")
        p.both(f"{memory} __pipeline_memcpy_async(&{array}[b * {words}], from + b * {words}, {size}, b & 1 ? {size} : 0); "
               f"__pipeline_commit(); __pipeline_wait_prior(0); __syncthreads(); s.a ^= {read}; __syncthreads();",
               f"if (!((b + {by}) % BLOCK & 1)) {host}")
    elif how == "pipeline":
        p.headers |= {"cuda/pipeline", "cooperative_groups.h"}
        p.both(f"{memory} auto pipe = cuda::make_pipeline(); pipe.producer_acquire(); "
               f"cuda::memcpy_async(&{array}[b * {words}], from + b * {words}, cuda::aligned_size_t<{size}>({size}), pipe); "
               f"pipe.producer_commit(); pipe.consumer_wait(); __syncthreads(); s.a ^= {read}; pipe.consumer_release(); __syncthreads();", host)
    elif how == "group":
        p.headers |= {"cooperative_groups.h", "cooperative_groups/memcpy_async.h"}
        p.both(f"{memory} cooperative_groups::memcpy_async(cooperative_groups::this_thread_block(), {array}, from, BLOCK * {size}); "
               f"cooperative_groups::wait(cooperative_groups::this_thread_block()); s.a ^= {read}; __syncthreads();", host)
    elif how == "barrier":
        p.headers |= {"cuda/barrier", "cooperative_groups.h"}
        p.both(f"{memory} __shared__ cuda::barrier<cuda::thread_scope_block> bar; if (b == 0) {{ init(&bar, BLOCK);{fence} }} "
               f"__syncthreads(); "
               f"cuda::memcpy_async(cooperative_groups::this_thread_block(), {array}, from, cuda::aligned_size_t<16>(BLOCK * {size}), bar); "
               f"bar.arrive_and_wait(); s.a ^= {read}; __syncthreads();", host)
    elif how == "staged":
        p.headers |= {"cuda/pipeline", "cooperative_groups.h"}
        p.both(f"__shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> stage; "
               f"__shared__ __align__(16) u32 {array}[2][BLOCK]; auto group = cooperative_groups::this_thread_block(); "
               f"auto pipe = cuda::make_pipeline(group, &stage);{fence} __syncthreads();"
               f" for (u32 i = 0; i < 3; i++) {{ pipe.producer_acquire(); "
               f"cuda::memcpy_async(group, {array}[i & 1], in + i * BLOCK, cuda::aligned_size_t<16>(BLOCK * 4), pipe); "
               f"pipe.producer_commit(); pipe.consumer_wait(); s.a = s.a * 3 + {array}[i & 1][(b + {by}) % BLOCK]; "
               f"pipe.consumer_release(); }} __syncthreads();",
               f"for (u32 i = 0; i < 3; i++) s.a = s.a * 3 + in[i * BLOCK + (b + {by}) % BLOCK];")
    else:
        p.headers |= {"cuda/barrier", "cuda/ptx"}
        p.both(f"{memory} __shared__ u64 bar; if (b == 0) {{ cuda::ptx::mbarrier_init(&bar, BLOCK); "
               f"cuda::ptx::fence_mbarrier_init(cuda::ptx::sem_release, cuda::ptx::scope_cluster); cuda::ptx::fence_proxy_async(); }} "
               f"__syncthreads();"
               f" u64 token; "
               f"if (b == 0) {{ cuda::ptx::cp_async_bulk(cuda::ptx::space_{'cluster' if p.arch == 'sm_90a' else 'shared'}, cuda::ptx::space_global, {array}, from, BLOCK * {size}, &bar); "
               f"token = cuda::ptx::mbarrier_arrive_expect_tx(cuda::ptx::sem_release, cuda::ptx::scope_cta, cuda::ptx::space_shared, &bar, BLOCK * {size}); "
               f"}}"
               f" else token = cuda::ptx::mbarrier_arrive(&bar); while (!cuda::ptx::mbarrier_try_wait(&bar, token)); s.a ^= {read}; "
               f"__syncthreads();", host)


def products(p):
    """Tensor cores: small integers, so that sums are exact."""
    rng = p.rng
    how = rng.choice(["wmma", "mma", "int8", "double"])
    array = p.name("tile")
    if how == "wmma":
        p.headers.add("mma.h")
        rows = rng.choice(["row", "col"])
        at = "r * 16 + k" if rows == "row" else "k * 16 + r"
        # A warp's 32 threads bring 8 numbers of A and of B each.
        p.both(f"__shared__ __align__(32) __half {array}a[BLOCK / 32][256], {array}b[BLOCK / 32][256]; "
               f"__shared__ __align__(32) f32 {array}c[BLOCK / 32][256]; const u32 w = b / 32; for (u32 i = 0; i < 8; "
               f"i++) {{ {array}a[w][lane * 8 + i] = __int2half_rn((i32)((s.a >> i) % 9) - 4); "
               f"{array}b[w][lane * 8 + i] = __int2half_rn((i32)((s.b >> i) % 7) - 3); }} __syncwarp();"
               f" nvcuda::wmma::fragment<nvcuda::wmma::matrix_a, 16, 16, 16, __half, nvcuda::wmma::{rows}_major> fa; "
               f"nvcuda::wmma::fragment<nvcuda::wmma::matrix_b, 16, 16, 16, __half, nvcuda::wmma::col_major> fb; "
               f"nvcuda::wmma::fragment<nvcuda::wmma::accumulator, 16, 16, 16, f32> fc; nvcuda::wmma::fill_fragment(fc, 2.0f); "
               f"nvcuda::wmma::load_matrix_sync(fa, {array}a[w], 16); nvcuda::wmma::load_matrix_sync(fb, {array}b[w], 16); "
               f"nvcuda::wmma::mma_sync(fc, fa, fb, fc); "
               f"nvcuda::wmma::store_matrix_sync({array}c[w], fc, 16, nvcuda::wmma::mem_row_major); __syncwarp();"
               f" for (u32 i = 0; i < 8; i++) s.a = s.a * 5 + (u32)(i32){array}c[w][lane * 8 + i]; __syncthreads();",
               f"auto ea = [&](u32 i) {{ return (i32)((was[warp + i / 8].a >> i % 8) % 9) - 4; }}; "
               f"auto eb = [&](u32 i) {{ return (i32)((was[warp + i / 8].b >> i % 8) % 7) - 3; }};"
               f" for (u32 i = 0; i < 8; i++) {{ const u32 r = (lane * 8 + i) / 16, c = (lane * 8 + i) % 16; i32 sum = 2; "
               f"for (u32 k = 0; k < 16; k++) sum += ea({at}) * eb(c * 16 + k); s.a = s.a * 5 + (u32)sum; }}")
    elif how == "mma":  # m16n8k8 of f16: A and B by their registers
        p.both("u32 ra[2], rb; auto two = [](i32 x, i32 y) { return (u32)h_bits(__int2half_rn(x)) | (u32)h_bits(__int2half_rn(y)) << 16; "
               "}; ra[0] = two((i32)(s.a % 9) - 4, (i32)(s.a >> 8) % 5); ra[1] = two((i32)(s.b % 7) - 3, (i32)(s.b >> 8) % 5); "
               "rb = two((i32)(s.c % 7) - 3, (i32)((u32)(s.c >> 9) % 11) - 5); f32 d0 = 1, d1 = 2, d2 = 3, d3 = 4;"
               " asm volatile(\"mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};\" : \"+f\"(d0), \"+f\"(d1), \"+f\"(d2), \"+f\"(d3) : \"r\"(ra[0]), \"r\"(ra[1]), \"r\"(rb)); "
               "s.b = (u32)(i32)d0 + (u32)(i32)d1 * 3 + (u32)(i32)d2 * 7 + (u32)(i32)d3 * 11;",
               "auto ea = [&](u32 r, u32 k) { const State &o = was[warp + r % 8 * 4 + k / 2]; "
               "return r < 8 ? k % 2 ? (i32)(o.a >> 8) % 5 : (i32)(o.a % 9) - 4 : k % 2 ? (i32)(o.b >> 8) % 5 : (i32)(o.b % 7) - 3; };"
               " auto eb = [&](u32 k, u32 n) { const State &o = was[warp + n * 4 + k / 2]; "
               "return k % 2 ? (i32)((u32)(o.c >> 9) % 11) - 5 : (i32)(o.c % 7) - 3; };"
               " i32 d[4] = {1, 2, 3, 4}; for (u32 i = 0; i < 4; i++) for (u32 k = 0; k < 8; "
               "k++) d[i] += ea(lane / 4 + i / 2 * 8, k) * eb(k, lane % 4 * 2 + i % 2); "
               "s.b = (u32)d[0] + (u32)d[1] * 3 + (u32)d[2] * 7 + (u32)d[3] * 11;")
    elif how == "int8":  # m8n8k16
        p.both("i32 d0 = (i32)s.h, d1 = 5; "
               "asm volatile(\"mma.sync.aligned.m8n8k16.row.col.s32.s8.u8.s32 {%0, %1}, {%2}, {%3}, {%0, %1};\" : \"+r\"(d0), \"+r\"(d1) : \"r\"(s.a), \"r\"(s.b)); "
               "s.c += (u32)d0 + ((u64)(u32)d1 << 32);",
               "u32 d[2] = {s.h, 5}; for (u32 j = 0; j < 2; j++) for (u32 k = 0; k < 16; "
               "k++) d[j] += (u32)((i32)(i8)(was[warp + lane / 4 * 4 + k / 4].a >> k % 4 * 8) * (i32)(u8)(was[warp + (lane % 4 * 2 + j) * 4 + k / 4].b >> k % 4 * 8)); "
               "s.c += d[0] + ((u64)d[1] << 32);")
    else:  # m8n8k4 of f64
        p.both("f64 d0 = 1, d1 = 2; const f64 x = (f64)(i32)(s.a & 0xffff), y = (f64)(i32)(s.b & 0xffff); "
               "asm volatile(\"mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};\" : \"+d\"(d0), \"+d\"(d1) : \"d\"(x), \"d\"(y)); "
               "s.c ^= (u64)d0 + (u64)d1 * 3;",
               "u64 d[2] = {1, 2}; for (u32 j = 0; j < 2; j++) for (u32 k = 0; k < 4; "
               "k++) d[j] += (u64)(was[warp + lane / 4 * 4 + k].a & 0xffff) * (was[warp + (lane % 4 * 2 + j) * 4 + k].b & 0xffff); "
               "s.c ^= d[0] + d[1] * 3;")


def matrices(p):
    """ldmatrix, movmatrix and stmatrix on words that are any bits."""
    rng = p.rng
    array, trans = p.name("rows"), rng.random() < 0.5
    how = rng.choice(["ldmatrix", "movmatrix"] + (["stmatrix"] if ARCHS[p.arch] >= 90 else []))
    if how == "movmatrix":
        p.both("asm volatile(\"movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;\" : \"=r\"(s.a) : \"r\"(s.a));",
               "auto e = [&](u32 r, u32 c) { return (u32)(u16)(was[warp + r * 4 + c / 2].a >> c % 2 * 16); }; "
               "s.a = e(lane % 4 * 2, lane / 4) | e(lane % 4 * 2 + 1, lane / 4) << 16;")
    elif how == "ldmatrix":
        t = ".trans" if trans else ""
        pick = "e(i, lane % 4 * 2, lane / 4) | e(i, lane % 4 * 2 + 1, lane / 4) << 16" if trans else "e(i, lane / 4, lane % 4 * 2) | e(i, lane / 4, lane % 4 * 2 + 1) << 16"
        p.both(f"__shared__ __align__(16) u32 {array}[BLOCK / 32][128]; u32 *mine = {array}[b / 32]; for (u32 i = 0; i < 4; "
               f"i++) mine[lane * 4 + i] = s.a * (i + 1) + s.b; __syncwarp(); u32 r0, r1, r2, r3; "
               f"asm volatile(\"ldmatrix.sync.aligned.m8n8.x4{t}.shared.b16 {{%0, %1, %2, %3}}, [%4];\" : \"=r\"(r0), \"=r\"(r1), \"=r\"(r2), \"=r\"(r3) : \"r\"((u32)__cvta_generic_to_shared(mine + lane * 4)) : \"memory\"); "
               f"s.c = s.c * 5 + r0 + r1 * 3ull + r2 * 7ull + r3 * 11ull; __syncthreads();",
               f"auto e = [&](u32 i, u32 r, u32 c) {{ const State &o = was[warp + i * 8 + r]; "
               f"return (u32)(u16)((o.a * (c / 2 + 1) + o.b) >> c % 2 * 16); }}; u32 r[4]; for (u32 i = 0; i < 4; i++) r[i] = {pick}; "
               f"s.c = s.c * 5 + r[0] + r[1] * 3ull + r[2] * 7ull + r[3] * 11ull;")
    else:
        t = ".trans" if trans else ""
        pick = "e(c, r) " if trans else "e(r, c)"
        p.both(f"__shared__ __align__(16) u16 {array}[BLOCK / 32][64]; u16 *mine = {array}[b / 32]; "
               f"asm volatile(\"stmatrix.sync.aligned.m8n8.x1{t}.shared.b16 [%0], {{%1}};\" :: \"r\"((u32)__cvta_generic_to_shared(mine + lane % 8 * 8)), \"r\"(s.a) : \"memory\"); "
               f"__syncwarp(); s.b = mine[lane] | mine[63 - lane] << 16; __syncthreads();",
               f"auto e = [&](u32 r, u32 c) {{ return (u32)(u16)(was[warp + r * 4 + c / 2].a >> c % 2 * 16); }}; "
               f"auto m = [&](u32 i) {{ const u32 r = i / 8, c = i % 8; return {pick}; }}; s.b = m(lane) | m(63 - lane) << 16;")


def vectors(p):
    """Loads and stores of vectors in global memory, with all cache words."""
    rng = p.rng
    of, part = rng.choice([("uint4", "w"), ("uint2", "y"), ("uchar4", "z"), ("ushort4", "y"), ("float4", "x"), ("double2", "y"),
                           ("ulonglong2", "x"), ("longlong4", "w"), ("char2", "y")])
    load = rng.choice(["*p", "__ldg(p)", "__ldcg(p)", "__ldca(p)", "__ldcs(p)", "__ldcv(p)", "__ldlu(p)"]) if of != "longlong4" else "*p"
    size = {"uint4": 16, "uint2": 8, "uchar4": 4, "ushort4": 8, "float4": 16, "double2": 16, "ulonglong2": 16, "longlong4": 32, "char2": 2}[of]
    element = {"uint4": ("u32", 3), "uint2": ("u32", 1), "uchar4": ("u8", 2), "ushort4": ("u16", 1), "float4": ("u32", 0),
               "double2": ("u64", 1), "ulonglong2": ("u64", 0), "longlong4": ("u64", 3), "char2": ("i8", 1)}[of]
    value = {"float4": f"raw(v.{part})", "double2": f"raw(v.{part})"}.get(of, f"v.{part}")
    p.both(f"const {of} *p = (const {of} *)in + (s.a % (IN_BYTES / {size})); const {of} v = {load}; s.c += (u64){value};",
           f"{element[0]} v; memcpy(&v, (const u8 *)in + was[t].a % (IN_BYTES / {size}) * {size} + {element[1]} * sizeof v, sizeof v); "
           f"s.c += (u64)v;")


def named_barrier(p):
    """Warps of one half hand numbers to the other through a barrier of their own number."""
    if p.block % 64:
        return exchange(p)
    half, number = p.block // 2, p.rng.randrange(1, 16)
    array = p.name("handed")
    p.both(f"__shared__ u32 {array}[{half}]; if (b < {half}) {{ {array}[b] = s.a; __threadfence_block(); "
           f"asm volatile(\"bar.arrive {number}, {p.block};\" ::: \"memory\"); }} "
           f"else {{ asm volatile(\"bar.sync {number}, {p.block};\" ::: \"memory\"); s.a ^= {array}[p_other(b) % {half}]; }} "
           f"__syncthreads();".replace("p_other(b)", f"(b * 5 + {number})"),
           f"if (b >= {half}) s.a ^= was[base + (b * 5 + {number}) % {half}].a;")
    return None


def apart_function(p):
    """A function of several threads, called in a branch of warps, or through a pointer."""
    rng, name = p.rng, p.name("together")
    p.functions.append(f"#ifdef __CUDACC__\nstatic __device__ APART u32 {name}(State *s, u32 by)\n{{\n    __shared__ u32 mine[BLOCK];\n"
                       f"    const u32 b = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;\n"
                       f"    mine[b] = s->a + by;\n    __syncwarp();\n    const u32 r = mine[b ^ 1] + __shfl_down_sync(~0u, s->b, 1);\n"
                       f"    __syncwarp();\n    return r;\n}}\n__device__ u32 (*{name}at)(State *, u32) = {name};\n#endif\n")
    call = rng.choice([name, f"(*{name}at)"])
    p.both(f"if (b & 32) s.a ^= {call}(&s, 5); else s.b += {call}(&s, 7);",
           "const u32 by = b & 32 ? 5 : 7, r = was[t ^ 1].a + by + was[lane < 31 ? t + 1 : t].b; if (b & 32) s.a ^= r; else s.b += r;")


def printed(p):
    """A call of printf or assert that never happens, a clock, a trap that is not reached."""
    what = p.rng.choice(["if (s.a == 0x12345678 && s.b == 77) printf(\"%d %f %s\\n\", s.a, s.d, \"text\");", "assert(s.h != 0x12345678);",
                         "if (clock64() < 0) __trap();",
                         "__nanosleep(20); __threadfence();", "if (s.c == 0x123456789abcdefull) asm volatile(\"exit;\");",
                         "__prof_trigger(1); __threadfence_system(); __syncwarp();",
                         "u32 where; asm volatile(\"mov.u32 %0, %%smid;\" : \"=r\"(where)); if (where == ~0u) __brkpt();"])
    p.kernel.append("{ " + what + " }")
    p.host.append("")


def heap(p):
    p.both("u32 *m = (u32 *)malloc(16 * (1 + s.a % 5)); m[0] = s.a; m[(s.a % 5 + 1) * 4 - 1] = s.b; "
           "s.c ^= (u64)m[0] * 3 + m[(s.a % 5 + 1) * 4 - 1]; free(m);",
           "u32 m0 = s.a, m1 = s.b; s.c ^= (u64)m0 * 3 + m1;")


def blocks(p):
    """Algorithms of CUB on a block."""
    rng = p.rng
    p.shape = (p.block, 1, 1)
    p.headers |= {"cub/block/block_scan.cuh", "cub/block/block_reduce.cuh", "cub/block/block_radix_sort.cuh"}
    room = p.name("cub")
    how = rng.choice(["scan", "reduce", "sort"])
    if how == "scan":
        p.both(f"typedef cub::BlockScan<u32, BLOCK> Scan; __shared__ typename Scan::TempStorage {room}; u32 all_; "
               f"Scan({room}).ExclusiveSum(s.a, s.a, all_); s.b ^= all_; __syncthreads();",
               "u32 r = 0, all_ = 0; for (u32 i = 0; i < BLOCK; i++) { r += i < b ? was[base + i].a : 0; all_ += was[base + i].a; } "
               "s.a = r; s.b ^= all_;")
    elif how == "reduce":
        p.both(f"typedef cub::BlockReduce<u64, BLOCK> Reduce; __shared__ typename Reduce::TempStorage {room}; "
               f"const u64 r = Reduce({room}).Sum(s.c); if (b == 0) s.c = r; __syncthreads();",
               "if (b == 0) for (u32 i = 1; i < BLOCK; i++) s.c += was[base + i].c;")
    else:
        p.both(f"typedef cub::BlockRadixSort<u32, BLOCK, 1> Sort; __shared__ typename Sort::TempStorage {room}; u32 key[1] = {{s.a}}; "
               f"Sort({room}).Sort(key); s.a = key[0]; __syncthreads();",
               "u32 mine = 0; std::vector<u32> keys; for (u32 i = 0; i < BLOCK; i++) keys.push_back(was[base + i].a); "
               "std::sort(keys.begin(), keys.end()); mine = keys[b]; s.a = mine;")


COLLECTIVES = [(shuffle, 80), (shuffle, 80), (ballot, 80), (match, 80), (redux, 80), (apart_lanes, 80), (exchange, 80), (exchange, 80),
               (counted, 80), (histogram, 80), (histogram, 80),
               (global_sum, 80), (grid_exchange, 80), (cluster_exchange, 90), (cluster_atomics, 90), (tiles, 80), (tiles, 80),
               (async_copies, 80), (async_copies, 80), (products, 80),
               (matrices, 80), (vectors, 80), (vectors, 80), (printed, 80), (heap, 80), (blocks, 80), (named_barrier, 80), (apart_function, 80)]
