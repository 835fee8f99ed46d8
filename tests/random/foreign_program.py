# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The text of a program of foreign.py: its steps of single threads, and the frame around all."""

import random

from foreign_steps import ARCHS, COLLECTIVES
from foreign_values import WIDTH, Expressions

IN_WORDS, OUT_WORDS = 10, 10
GIVEN = {"u8": 8, "u16": 16, "u32": 32, "u64": 64, "f32": 32, "f64": 64, "i16": 16, "i64": 64}
FRAME = """#include "foreign.cuh"
#ifdef __CUDACC__
#include <assert.h>
#include <stdio.h>
{headers}
#else
#include <algorithm>
#include <cstdio>
#include <vector>
#endif
#define BLOCK {block}
#define GRID {grid}
#define CLUSTER {cluster}
#define THREADS (BLOCK * GRID)
#define IN_WORDS {in_words}
#define IN_BYTES (THREADS * IN_WORDS * 4)
#define OUT_WORDS {out_words}

struct State {{
    u32 a, b;
    u64 c;
    f64 d;
    f32 f;
    u32 h;
}};
struct Given {{
{members}
}};
struct Constants {{
    u32 x;
    i64 y;
}};
TABLE const Constants P = {{{x}u, {y}ll}};
TABLE const u8 table8[16] = {{{table8}}};
TABLE const u32 table32[16] = {{{table32}}};
GLOBAL_TABLE u64 table64[8] = {{{table64}}};
GLOBAL_TABLE const char text[21] = "The words of a text!";

{functions}
static BOTH State started(const u32 *in, Given given, u32 t)
{{
    State s;
    in += t * IN_WORDS;
    s.a = in[0];
    s.b = in[1];
    s.c = in[2] | (u64)in[3] << 32;
    s.f = to_f32(in[4]);
    s.d = to_f64(in[5] | (u64)in[6] << 32);
    s.h = in[7];
{given}
    return s;
}}

static BOTH void ended(State s, u32 *out)
{{
    const u32 all[OUT_WORDS] = {{s.a, s.b, (u32)s.c, (u32)(s.c >> 32), bits(s.f), (u32)bits(s.d), (u32)(bits(s.d) >> 32), s.h, 1, 2}};
    for (u32 i = 0; i < OUT_WORDS; i++)
        out[i] = all[i];
}}

#ifdef __CUDACC__
#if CLUSTER > 1
static __device__ u64 far_load(u64 *p, u32 rank)
{{
    u64 r;
    asm volatile("{{.reg .u32 near, far; mapa.shared::cluster.u32 far, %1, %2; ld.shared::cluster.u64 %0, [far];}}" : "=l"(r) : "r"((u32)__cvta_generic_to_shared(p)), "r"(rank) : "memory");
    return r;
}}
#endif
extern "C" __global__ void __launch_bounds__(BLOCK) {dims}kernel(const u32 *{restrict}in, u32 *out, u32 *sums, u64 *scratch, {whole}Given given)
{{
    extern __shared__ __align__(16) u8 dynamic[];
    const u32 b = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x, lane = b % 32;
    const u32 cta = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x, t = cta * BLOCK + b;
    State s = started(in, given, t);
    (void)b, (void)cta, (void)lane, (void)dynamic, (void)scratch;
{kernel}
    ended(s, out + t * OUT_WORDS);
}}
#else
static u32 in[THREADS * IN_WORDS], out[THREADS * OUT_WORDS], sums[8];
static State all[THREADS];
int main(int argc, char **argv)
{{
    const Given given = {{{values}}};
    FILE *file = fopen(argv[1], "rb");
    if (argc != 3 || !file || fread(in, 4, THREADS * IN_WORDS, file) != THREADS * IN_WORDS)
        return 1;
    for (u32 t = 0; t < THREADS; t++)
        all[t] = started(in, given, t);
{host}
    for (u32 t = 0; t < THREADS; t++)
        ended(all[t], out + t * OUT_WORDS);
    file = fopen(argv[2], "wb");
    fwrite(out, 1, sizeof out, file);
    fwrite(sums, 1, sizeof sums, file);
    return fclose(file);
}}
#endif
"""


def lines(*parts, by="    "):
    return "\n".join(by + line for part in parts for line in part.split("\n"))


class Program:
    """The text of a program: functions, the kernel's steps, and the host's."""

    def __init__(self, seed):
        self.rng = rng = random.Random(seed)
        self.arch = rng.choice(list(ARCHS))
        self.fast = rng.random() < 0.2
        self.x = Expressions(rng, self.fast)
        self.block = rng.choice([32, 64, 96, 128])
        self.cluster = rng.choice([1, 1, 2, 4]) if self.arch != "sm_80" else 1
        self.grid = self.cluster * rng.choice([1, 2, 3]) if self.cluster > 1 else rng.choice([1, 2, 3, 5])
        self.shape = rng.choice([(self.block, 1, 1), (self.block, 1, 1), (self.block // 2, 2, 1), (8, self.block // 8, 1), (4, 2, self.block // 8)])
        self.ctas = rng.choice([(self.grid, 1, 1), (1, self.grid, 1), (1, 1, self.grid)]) if self.cluster == 1 else (self.grid, 1, 1)
        self.cooperative = self.cluster == 1 and rng.random() < 0.2
        self.functions, self.kernel, self.host = [], [], []
        self.headers = set()
        self.shared = 0  # bytes of dynamic shared memory
        self.count = 0
        steps = rng.randint(5, 10)
        for _ in range(steps):
            if rng.random() < 0.5:
                self.single()
            else:
                step = rng.choice([step for step, least in COLLECTIVES if ARCHS[self.arch] >= least])
                step(self)

    def name(self, prefix):
        self.count += 1
        return f"{prefix}{self.count}"

    # --- steps of single threads ---

    def function(self, body, result="void", more=""):
        name = self.name("step")
        keyword = self.rng.choice(["APART ", "inline ", ""])
        self.functions.append(f"static BOTH {keyword}{result} {name}(State &s, u32 t{more})\n{{\n{lines(*body)}\n}}\n")
        return name

    def single(self):
        name = self.rng.choice([self.straight, self.straight, self.branches, self.loop, self.switch, self.recursion, self.pointers, self.virtuals,
                                self.array, self.structure, self.union, self.early, self.template, self.initialised, self.taken, self.jumps,
                                self.volatiles])()
        self.kernel.append(f"{name}(s, t);")
        self.host.append(f"for (u32 t = 0; t < THREADS; t++) {name}(all[t], t);")

    def stores(self, low, high, depth=3):
        return [self.x.store(self.rng.randint(1, depth)) for _ in range(self.rng.randint(low, high))]

    def straight(self):
        return self.function(self.stores(2, 5, 4))

    def branches(self):
        x = self.x
        body = [f"if ({x.condition(2)}) {{", lines(*self.stores(1, 3)), f"    if ({x.condition(1)}) {{", lines(*self.stores(1, 2),
                                                                                                               by="        "), "    }",
                f"}} else if ({x.condition(1)}) {{", lines(*self.stores(1, 2)), "}"]
        return self.function(body)

    def loop(self):
        rng, x = self.rng, self.x
        rounds = rng.choice(["s.a % 7", "t % 5 + 1", "(s.b & 3) * (s.a & 3)", "9", "s.h % 4"])
        inner = self.stores(1, 2, 2)
        exits = rng.choice([[], [f"if ({x.condition(1)}) break;"], [f"if ({x.condition(1)}) continue;"],
                            [f"for (u32 j = i; j < 3; j++) {{ {x.store(1)} }}"]])
        pragma = rng.choice(["", "\n#pragma unroll 1", "\n#pragma unroll"])
        head = rng.choice([f"for (u32 i = 0; i < n; i++) {{", "u32 i = 0;\nwhile (i++ < n) {", "for (u32 i = n; i-- > 0;) {"])
        return self.function([f"const u32 n = {rounds};" + (f"\n#ifdef __CUDA_ARCH__{pragma}\n#endif" if pragma and head.startswith("for") else ""), head, lines(*exits, *inner), "}"])

    def switch(self):
        rng = self.rng
        cases = rng.choice([3, 8, 20, 300])
        body = [f"switch (s.a % {cases + 2}) {{"]
        for i in range(cases):
            what = f"s.a = s.a * {rng.randrange(1, 9999, 2)}u + s.b; s.b ^= {rng.getrandbits(30)}u;" if cases > 20 or rng.random() < 0.6 else self.x.store(2)
            body.append(f"case {i}: {what}{' break;' if rng.random() < 0.85 else ''}")
        return self.function([*body, "default: s.b += 3;", "}"])

    def recursion(self):
        inner = self.name("deep")
        self.functions.append(f"static BOTH APART u32 {inner}(State &s, u32 n, u32 t)\n{{\n    u32 mine[4] = {{n, s.a, t, s.b}};\n"
                              f"    if (n == 0)\n        return s.b;\n"
                              f"    {self.x.store(1)}\n"
                              f"    const u32 below = {inner}(s, n - 1, t ^ n){self.rng.choice(['', f' + {inner}(s, n / 2, t)'])};\n"
                              f"    return below * 3 + mine[below & 3];\n}}\n")
        return self.function([f"s.b = {inner}(s, s.a % 5, t);"])

    def pointers(self):
        names, table = [self.name("target") for _ in range(3)], self.name("targets")
        for name in names:
            x = Expressions(self.rng, self.fast)
            x.names = {"u32": ["p"], "f64": ["q"], "u8": ["r"]}
            self.functions.append(f"static BOTH APART u64 {name}(State &s, u32 t, u32 p, f64 q, u8 r)\n{{\n    {x.store(2)}\n"
                                  f"    return (u64){x.value('u64', 2)} + p;\n}}\n")
        self.functions.append(f"typedef u64 (*{table}_t)(State &, u32, u32, f64, u8);\n#ifdef __CUDACC__\n"
                              f"__device__ {table}_t {table}[3] = {{{', '.join(names)}}};\n"
                              f"#else\nstatic {table}_t {table}[3] = {{{', '.join(names)}}};\n#endif\n")
        return self.function([f"DEVICE(s.c ^= {table}[s.a % 3](s, t, s.b, s.d, (u8)s.h);)",
                              f"HOST(s.c ^= {table}[s.a % 3](s, t, s.b, s.d, (u8)s.h);)"])

    def virtuals(self):
        name = self.name("Shape")
        self.functions.append(f"struct {name} {{\n    u32 k;\n    BOTH {name}(u32 k) : k(k) {{}}\n"
                              f"    BOTH virtual u32 of(State &s, u32 t) const {{ {self.x.store(2)} return k + 1; }}\n"
                              f"    BOTH virtual ~{name}() {{}}\n}};\n"
                              f"struct {name}Other final : {name} {{\n    u16 more;\n"
                              f"    BOTH {name}Other(u32 k) : {name}(k * 3), more((u16)k) {{}}\n"
                              f"    BOTH u32 of(State &s, u32 t) const override {{ {self.x.store(2)} return k ^ more; }}\n}};\n")
        return self.function([f"const {name} one(s.a);", f"const {name}Other other(s.b);",
                              f"const {name} *which = s.c & 1 ? &one : &other;", "s.a += which->of(s, t);"])

    def array(self):
        rng = self.rng
        of, size = rng.choice(["u8", "u16", "u32", "u64", "i16"]), rng.choice([4, 7, 16, 33])
        x = self.x
        return self.function([f"{of} part[{size}];", f"for (u32 i = 0; i < {size}; i++)\n    part[i] = ({of})(s.a * i + s.c);",
                              f"for (u32 i = 0; i < s.b % 9; i++)\n    part[(i * 5 + t) % {size}] {rng.choice(['+=', '^=', '='])} "
                              f"({of}){x.value('u32', 1)};",
                              rng.choice([f"u32 word; memcpy(&word, (const u8 *)part + s.a % {size * WIDTH[of] // 8 - 3}, 4); "
                                          f"s.b ^= word;", f"s.b = part[s.b % {size}];"]),
                              f"s.c += part[s.h % {size}];"])

    def structure(self):
        rng = self.rng
        name, of = self.name("Mixed"), rng.choice(["u8", "i8", "u16", "i64", "f64"])
        self.functions.append(f"struct {name} {{ u8 a; {of} b; u16 c : 5, d : 11; f32 e; u32 f[{rng.randint(1, 5)}]; i32 g : 7; u64 h; "
                              f"}};\n"
                              f"static BOTH APART {name} made{name}({name} m, u32 k)\n{{\n    m.a += k; m.c ^= k; m.d += m.c; "
                              f"m.f[0] += m.a; m.g -= k; m.h = m.h * 3 + m.d;\n    return m;\n}}\n")
        value = "(f64)(i32)s.b" if of == "f64" else f"({of})s.b"
        return self.function([f"{name} m = {{(u8)s.a, {value}, (u16)(s.b & 31), (u16)(s.a & 2047), s.f, {{s.a}}, (i32)(s.a & 31), s.c}};",
                              f"m = made{name}(m, s.b);",
                              f"if (s.a & 1)\n    m = made{name}(m, t);",
                                      "s.a = m.a + m.c * 7 + m.d + m.f[0] + (u32)m.g; s.c = m.h; s.f = m.e; s.b += (u32)(i32)m.b;" if of != "f64"
                              else "s.a = m.a + m.c * 7 + m.d + m.f[0] + (u32)m.g; s.c = m.h; s.f = m.e; s.d = m.b;"])

    def union(self):
        return self.function(["union { u64 whole; u32 half[2]; u16 part[4]; u8 byte[8]; } u;", "u.whole = s.c;",
                              "u.byte[s.a & 7] = (u8)s.b;", "u.part[s.b & 3] ^= (u16)s.a;",
                              "u.half[t & 1] += s.h;", "s.c = u.whole;"])

    def early(self):
        x = self.x
        return self.function([f"if ({x.condition(1)})\n    return;", *self.stores(1, 2),
                f"u32 round = 0;\ndo {{\n    {x.store(1)}\n    if ({x.condition(1)})\n        return;\n}} "
                f"while (s.a++ % 5 && ++round < 9);", *self.stores(1, 1)])

    def template(self):
        name = self.name("folded")
        self.functions.append(f"template <class T, int N> BOTH T {name}(const T *p, T start)\n{{\n    for (int i = 0; i < N; i++)\n"
                              f"        start = (T)(start * 31 + p[i]);\n    return start;\n}}\n")
        of = self.rng.choice(["u8", "u16", "u32", "u64", "i64"])
        unsigned = of.replace("i", "u")
        return self.function([f"const {unsigned} p[3] = {{({unsigned})s.a, ({unsigned})s.b, ({unsigned})s.c}};",
                              f"s.c ^= {name}<{unsigned}, 3>(p, ({unsigned})t);",
                              "auto twice = [&](u32 k) { return k * 2 + s.b; };", "s.a = twice(twice(s.a));"])

    def initialised(self):
        """Variables that begin with addresses, numbers of all kinds and text."""
        rng, name = self.rng, self.name("begun")
        n = [rng.getrandbits(16) for _ in range(6)]
        self.functions.append(f"GLOBAL_TABLE u32 {name}[4] = {{{n[0]}u, {n[1]}u, {n[2]}u, 7}};\n"
                              f"GLOBAL_TABLE u32 *{name}at = &{name}[{rng.randrange(4)}];\n"
                              f"struct {name}Node {{ u8 a; f64 b; const char *c; u16 d[3]; f32 e; const u32 *f; bool g; }};\n"
                              f"GLOBAL_TABLE const {name}Node {name}nodes[3] = {{{{{n[3] & 255}, 1.25, \"one\", {{1, 2, 3}}, -0.5f, {name} "
                              f"+ 1, true}}, {{9, -3e200, \"two and \\\"more\\\"\", {{{n[4]}, 5}}, 2e-40f, {name}, false}}, {{}}}};\n"
                              f"TABLE const f32 {name}floats[5] = {{1.0f, -2.5f, 1e30f, 0.1f}};\n")
        return self.function([f"const {name}Node &n = {name}nodes[s.a % 2];",
                f"s.b ^= {name}at[0] + n.a + (u32)n.c[s.b % 3] + n.d[s.a % 3] + n.f[t % 2] + n.g;",
                              f"s.d = s.a & 1 ? n.b : s.d;", f"s.a += raw({name}floats[s.b % 5]) + ({name}nodes[2].f == nullptr);"])

    def taken(self):
        """Memory of the stack whose size is found at run time."""
        return self.function(["u32 *m = (u32 *)__builtin_alloca((s.a % 7 + 2) * 4);",
                "for (u32 i = 0; i < s.a % 7 + 2; i++)\n    m[i] = s.b * i + t;",
                              "s.c ^= m[s.h % (s.a % 7 + 2)];",
                                      f"if (s.b & 1) {{\n    u64 *w = (u64 *)__builtin_alloca((s.a % 3 + 1) * 8);\n"
                                      f"    w[s.a % 3] = s.c;\n    s.c = w[s.a % 3] * 3 + m[1];\n}}"])

    def jumps(self):
        """A loop with two entries."""
        x = self.x
        return self.function(["u32 i = s.a % 3;", "if (s.b & 1)\n    goto inside;", "again:", x.store(1), "inside:", x.store(1),
                              f"if ({x.condition(1)} && i++ < 4)\n    goto again;", "if (i++ < 3)\n    goto inside;"])

    def volatiles(self):
        of = self.rng.choice(["u8", "i16", "u32", "f64"])
        value = "(f64)(i32)s.a" if of == "f64" else f"({of})s.a"
        return self.function([f"volatile {of} x = {value}, y[3] = {{}};", f"y[s.b % 3] = x;", f"y[1] = y[1] + y[s.a % 3];",
                              "s.d = y[1] + x;" if of == "f64" else "s.b += (u32)(y[1] + x);"])

    # --- steps of several threads ---

    def both(self, device, host):
        """Device code where `b` is the thread of the block, `lane` of the warp, and the host's, over the states `was` from before the step."""
        self.kernel.append("{ " + device + " }")
        self.host.append("{ const std::vector<State> was(all, all + THREADS); for (u32 t = 0; t < THREADS; t++) { State &s = all[t]; "
                         "const u32 base = t / BLOCK * BLOCK, b = t % BLOCK, "
                         f"lane = b % 32, warp = t - lane; (void)base; (void)b; (void)lane; (void)warp; {host} }} }}")


def text_of(p):
    rng = p.rng
    kinds = [rng.choice(list(GIVEN)) for _ in range(rng.randint(1, 6))]
    numbers = [rng.randrange(1 << 15 if of != "u8" else 200) for of in kinds]
    number = lambda bits: ", ".join(hex(rng.getrandbits(bits)) for _ in range(8 if bits == 64 else 16))  # noqa: E731
    return FRAME.format(
        restrict=rng.choice(["", "__restrict__ "]), whole=rng.choice(["", "const __grid_constant__ "]),
        headers="\n".join(f"#include <{name}>" for name in sorted(p.headers)), block=p.block, grid=p.grid, cluster=p.cluster,
        in_words=IN_WORDS, out_words=OUT_WORDS,
        members="\n".join(f"    {of} m{i};" for i, of in enumerate(kinds)), x=rng.getrandbits(32), y=rng.getrandbits(62) - (1 << 61),
        table8=number(8), table32=number(32), table64=number(64), functions="\n".join(p.functions),
        given="\n".join(f"    s.{'ab'[i % 2]} {'+^'[i // 2 % 2]}= (u32)given.m{i};" for i in range(len(kinds))), values=", ".join(map(str, numbers)),
        dims=f"__cluster_dims__({p.cluster}, 1, 1) " if p.cluster > 1 else "", kernel=lines(*p.kernel),
        host=lines(*p.host)), list(zip(kinds, numbers))
