#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products on warpgroups, written as they are once they are synchronised, on the emulator.

usage: warpgroup_gemm.py TIRC GROUP

A persistent kernel of one loading warp and 1 to 3 warpgroups of products, with a ring of tiles in
shared memory, is generated for each configuration of the group and for sizes around its tile. Its
inputs are small integers, so that every order of summation gives the same result, and the outcome
must be, byte by byte, that of a plain tile program. Where there is ptxas, it must neither serialise
the products nor spill.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile

BYTES = {"bf16": 2, "f16": 2, "tf32": 4, "e4m3": 1, "e5m2": 1, "i8": 1, "u8": 1, "f32": 4, "i32": 4}

GROUPS = {
    "kinds": [{}, {"elem": "f16"}, {"elem": "f16", "acc": "f16"},
              {"elem": "e4m3", "acc": "f16", "bk": 128, "bn": 128}, {"elem": "tf32", "bk": 32}, {"elem": "e4m3", "bk": 128},
              {"elem": "e5m2", "bk": 128, "bn": 128}, {"elem": "i8", "bk": 128, "bn": 128},
              {"elem": "u8", "bk": 128, "bn": 128}],
    "columns": [{"bm": 64, "m_groups": 1, "bn": n} for n in (8, 16, 24, 64, 192, 256, 272)],
    "warpgroups": [{"bn": 128, "m_groups": 1}, {"bm": 192, "bn": 128, "m_groups": 3},
                   {"bm": 256, "bn": 128}, {"bm": 64, "bn": 128, "m_groups": 1, "n_groups": 2},
                   {"bn": 256, "m_groups": 1, "n_groups": 2}],
    "layouts": [{"bk": 128}, {"bk": 32, "swizzle": 64}, {"bk": 16, "swizzle": 32},
                {"bk": 64, "swizzle": 64}, {"a_turned": True}, {"b_turned": True},
                {"a_turned": True, "b_turned": True, "bn": 128},
                {"a_turned": True, "b_turned": True, "swizzle": 64, "bn": 64},
                {"a_turned": True, "swizzle": 32, "bm": 64, "bn": 32, "m_groups": 1}],
    "registers": [{"from_registers": True, "bn": 128},
                  {"from_registers": True, "elem": "e4m3", "bk": 128, "bn": 64},
                  {"from_registers": True, "elem": "i8", "bk": 128, "bn": 64},
                  {"from_registers": True, "elem": "tf32", "bk": 32, "bn": 64},
                  {"from_registers": True, "bm": 64, "bn": 128, "m_groups": 1, "n_groups": 2}],
    "clusters": [{"cluster": True}, {"cluster": True, "bm": 64, "m_groups": 1, "bn": 64},
                 {"persistent": False, "bn": 128}, {"cluster": True, "persistent": False}],
}


class Gemm:
    def __init__(self, elem="bf16", bm=128, bn=256, bk=64, m_groups=2, n_groups=1, stages=2,
                 a_turned=False, b_turned=False, swizzle=128, from_registers=False,
                 cluster=False, persistent=True, acc=None):
        self.elem, self.bm, self.bn, self.bk = elem, bm, bn, bk
        self.m_groups, self.n_groups, self.stages, self.swizzle = m_groups, n_groups, stages, swizzle
        self.a_turned, self.b_turned = a_turned, b_turned
        self.from_registers = from_registers
        self.cluster = cluster  # two CTAs, each of which loads half of B for both
        self.persistent = persistent
        self.acc = acc or ("i32" if elem in ("i8", "u8") else "f32")
        self.out = elem if elem in ("bf16", "f16") else self.acc
        self.warps = 4 * m_groups * n_groups
        piece = 128 // BYTES[self.out]  # columns that the epilogue stores at once
        self.piece = bn if n_groups > 1 or bn % piece else piece

    def parameters(self):
        a = "K, M" if self.a_turned else "M, K"
        b = "K, N" if self.b_turned else "N, K"
        return f"A: {self.elem}[{a}], B: {self.elem}[{b}], D: out {self.out}[M, N]"

    @staticmethod
    def layout(iters, replicas=()):
        iters = [i for i in iters if i[0] > 1]
        text = "S[(%s) : (%s)]" % (", ".join(str(e) for e, _ in iters),
                                   ", ".join(str(s) for _, s in iters))
        for extent, stride in replicas:
            text += f" + R[({extent}) : ({stride})]" if extent > 1 else ""
        return text

    def fragment(self, columns):
        blocks = columns // self.n_groups // 8
        m, n = self.m_groups, self.n_groups
        return self.layout([(m, "4@warpid"), (self.bm // m // 64, 4 * blocks), (4, "1@warpid"),
                            (2, 2), (8, "4@laneid"), (n, f"{4 * m}@warpid"), (blocks, 4),
                            (4, "1@laneid"), (2, 1)])

    def a_fragment(self):
        together = 4 // BYTES[self.elem]
        blocks, m = self.bk // (4 * together), self.m_groups
        return self.layout([(m, "4@warpid"), (self.bm // m // 64, 2 * together * blocks),
                            (4, "1@warpid"), (2, together), (8, "4@laneid"),
                            (blocks, 2 * together), (4, "1@laneid"), (together, 1)],
                           [(self.n_groups, f"{4 * m}@warpid")])

    def text(self):
        a = [self.bk, self.bm] if self.a_turned else [self.bm, self.bk]
        b = [self.bk, self.bn] if self.b_turned else [self.bn, self.bk]
        a_from = "k, m" if self.a_turned else "m, k"
        b_from = "k, n" if self.b_turned else "n, k"
        size = BYTES[self.elem]
        b_at = self.stages * self.bm * self.bk * size
        out_at = b_at + self.stages * self.bn * self.bk * size
        out_at += -out_at % 1024
        full_at = out_at + 2 * self.bm * self.piece * BYTES[self.out]
        row = self.piece * BYTES[self.out]
        out_in = next((f"swizzle({s})" for s in (128, 64, 32) if row % s == 0), "row_major")
        acc = f"{self.acc}[{self.bm}, {self.bn}] in {self.fragment(self.bn)}"
        threads = 128 + 32 * self.warps
        ctas = 2 if self.cluster else 1
        loop = f"(M by {ctas * self.bm}, N by {self.bn})"
        how = "order(grouped) group(8)" + (" persistent(1)" if self.persistent else "")
        # The rows of a CTA in its cluster's tile, and its half of B's.
        own = f"""
            let mine_m: i64 = cast(rank);
            let rows: i64 = mul(mine_m, {self.bm});
            let m: i64 = add(m0, rows);
            let half: i64 = mul(mine_m, {self.bn // 2});
            let n_half: i64 = add(n, half);""" if self.cluster else ""
        meet = "cluster_arrive();\n    cluster_wait();" if self.cluster else "bar_sync();"
        first_m = "m0" if self.cluster else "m"

        def slot(name, shape):
            whole = ", ".join(f"0:+{n}" for n in shape)
            return f"shared {self.elem}[{shape[0]}, {shape[1]}] = view({name}[s1, {whole}]);"

        def box(tensor, starts, shape):
            return tensor + "[%s]" % ", ".join(
                f"{s}:+{n}" for s, n in zip(starts.split(", "), shape))

        def turned(name, shape):
            return (f"shared {self.elem}[{shape[1]}, {shape[0]}] = "
                    f"permute({name}, permutation = [1, 0]);")

        step = f"""
                let wraps: bool = eq(s1, i32({self.stages - 1}));
                let next: i32 = add(s1, i32(1));
                let s2: i32 = where(wraps, i32(0), next);
                let flip: i32 = cast(wraps);
                let p2: i32 = xor(p1, flip);"""
        load_b = f"copy_async(bs, {box('B', b_from, b)}, mbar = f, engine = tma);"
        if self.cluster:
            load_b = f"""let bh: shared {self.elem}[{self.bn // 2}, {self.bk}] = view(b[s1, half:+{self.bn // 2}, 0:+{self.bk}]);
                    copy_async(bh, B[n_half:+{self.bn // 2}, k:+{self.bk}], mbar = f, ctas = i32(3), engine = tma);"""
        # A CTA stays until the other one has freed every slot: it arrives in this one's memory.
        drain = f"""
        let s8: i32, p8: i32 = for i: i32 in range(i32(0), i32({self.stages}), i32(1)) carry (s1: i32 = s9, p1: i32 = p9) {{
            let e: shared mbarrier = view(empty[s1]);
            wait(e, p1);{step}
            yield s2, p2;
        }}""" if self.cluster else ""
        lines = [f"""
kernel gemm({self.parameters()})
    threads({threads}){" cluster(2, 1, 1)" if self.cluster else ""} form(synced) facts(vector16, unit_inner) shared({full_at + 16 * self.stages})
{{
    let a: shared {self.elem}[{self.stages}, {a[0]}, {a[1]}] in swizzle({self.swizzle}) = alloc(offset = 0);
    let b: shared {self.elem}[{self.stages}, {b[0]}, {b[1]}] in swizzle({self.swizzle}) = alloc(offset = {b_at});
    let o: shared {self.out}[2, {self.bm}, {self.piece}] in {out_in} = alloc(offset = {out_at});
    let filled: shared mbarrier[{self.stages}] = alloc(offset = {full_at});
    let empty: shared mbarrier[{self.stages}] = alloc(offset = {full_at + 8 * self.stages});
    let t: i32 = tid();
    let first: bool = eq(t, i32(0));
    if first {{
        mbarrier_init(filled, arrivals = 1);
        mbarrier_init(empty, arrivals = {ctas * self.warps});
        fence(of = mbarrier_init);
    }}
    {meet}
    let rank: i32 = cta_rank();
    let leader: bool = eq(t, i32(128));
    role load warps(1) first(0) regs(40) {{
        let s9: i32, p9: i32 = tiles ({first_m}, n) in {loop} carry (s: i32 = i32(0), p: i32 = i32(1)) {how} {{{own}
            let s3: i32, p3: i32 = for k: i64 in range(0, K, {self.bk}) carry (s1: i32 = s, p1: i32 = p) {{
                let e: shared mbarrier = view(empty[s1]);
                wait(e, p1);
                let f: shared mbarrier = view(filled[s1]);
                let as: {slot("a", a)}
                let bs: {slot("b", b)}
                let mine: bool = elect_sync();
                if mine {{
                    arrive(f, bytes = {(self.bm + self.bn) * self.bk * size});
                    copy_async(as, {box("A", a_from, a)}, mbar = f, engine = tma);
                    {load_b}
                }}{step}
                yield s2, p2;
            }}
            yield s3, p3;
        }}{drain}
    }}
    role math warps({self.warps}) first(4) regs({ {4: 240, 8: 232, 12: 152}[self.warps] }) {{
        let s9: i32, p9: i32 = tiles ({first_m}, n) in {loop} carry (s: i32 = i32(0), p: i32 = i32(0)) {how} {{{own}
            let d: {acc}, s3: i32, p3: i32, last: i32 = for k: i64 in range(0, K, {self.bk}) carry (acc: {acc} = {self.acc}[{self.bm}, {self.bn}](0), s1: i32 = s, p1: i32 = p, prev: i32 = i32(-1)) {{
                let f: shared mbarrier = view(filled[s1]);
                wait(f, p1);
                let as: {slot("a", a)}
                let bs: {slot("b", b)}"""]
        a_name, b_name = "as", "bs"
        if self.a_turned:
            a_name = "at"
            lines.append(f"                let at: {turned('as', a)}")
        if not self.b_turned:
            b_name = "bt"
            lines.append(f"                let bt: {turned('bs', b)}")
        if self.from_registers:
            lines.append(f"                let ar: {self.elem}[{self.bm}, {self.bk}] in "
                         f"{self.a_fragment()} = load({a_name}[0:+{self.bm}, 0:+{self.bk}]);\n"
                         "                fence(of = async_shared);")
            a_name = "ar"
        release = """
                let frees: bool = and(some, one);
                if frees {
                    let e: shared mbarrier = view(empty[%s]);
                    arrive(e%s);
                }""" % ("%s", ", cta = lane" if self.cluster else "")
        one = f"""
                let some: bool = ge(%s, i32(0));
                let lane: i32 = laneid();
                let one: bool = lt(lane, i32({ctas}));"""
        lines.append(f"""
                fence(of = wgmma);
                let d2: {acc} = gemm_async({a_name}, {b_name}, acc);
                commit_group(engine = wgmma);""")
        if self.from_registers:
            lines.append(f"                let d3: {acc} = await(d2, groups = 0);" +
                         one % "s1" + release % "s1")
        else:
            lines.append("                wait_group(groups = 1, engine = wgmma);" +
                         one % "prev" + release % "prev")
        lines.append(f"""{step}
                yield {"d3" if self.from_registers else "d2"}, s2, p2, s1;
            }}
            let done: {acc} = await(d, groups = 0);""")
        if not self.from_registers:
            lines.append(one % "last" + release % "last")
        whole = "done"
        if self.out != self.acc:
            whole = "rounded"
            lines.append(f"            let rounded: {self.out}[{self.bm}, {self.bn}] in "
                         f"{self.fragment(self.bn)} = cast(done);")
        pieces = self.bn // self.piece
        shape = f"0:+{self.bm}, 0:+{self.piece}"
        for i in range(pieces):
            lines.append(f"""
            let y{i}: {self.out}[{self.bm}, {self.piece}] in {self.fragment(self.piece)} = extract({whole}, start = [0, {i * self.piece}]);
            if leader {{
                wait_group(groups = {1 if pieces % 2 == 0 else 0}, engine = tma, read = 1);
            }}
            bar_sync(id = 2, threads = {32 * self.warps});
            store(o[i32({i % 2}), {shape}], y{i});
            fence(of = async_shared);
            bar_sync(id = 2, threads = {32 * self.warps});
            if leader {{
                let from: shared {self.out}[{self.bm}, {self.piece}] = view(o[{i % 2}, {shape}]);
                let at: i64 = add(n, {i * self.piece});
                store_async(D[m:+{self.bm}, at:+{self.piece}], from, engine = tma);
                commit_group(engine = tma);
            }}""")
        lines.append("""
            yield s3, p3;
        }
        if leader {
            wait_group(groups = 0, engine = tma);
        }
    }
}
""")
        return "\n".join(lines)

    def reference(self):
        a = "A[k:+32, m:+64].T" if self.a_turned else "A[m:+64, k:+32]"
        b = "B[k:+32, n:+64]" if self.b_turned else "B[n:+64, k:+32].T"
        return f"""
kernel reference({self.parameters()})
{{
    for (m, n) in tiles(M by 64, N by 64) {{
        var acc: {self.acc}[64, 64] = 0;
        for k in range(0, K, 32) {{
            acc = dot({a}, {b}, acc);
        }}
        D[m:+64, n:+64] = {self.out}(acc);
    }}
}}
"""


def run(command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=100)
    if done.returncode:
        print(" ".join(command))
        print(done.stdout + done.stderr)
    return done.returncode == 0, done.stderr


def check(tirc, ptxas, gemm, folder):
    source, plain = os.path.join(folder, "gemm.tir"), os.path.join(folder, "reference.tir")
    for path, text in ((source, gemm.text()), (plain, gemm.reference())):
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    numbers = "randint:0:5" if gemm.elem == "u8" else "randint:-3:3"
    step = 16 // BYTES[gemm.elem]
    for m, n, k in ((gemm.bm + 8, gemm.bn + 8, gemm.bk + step), (16, 16, 3 * gemm.bk),
                    (16, 16, step)):
        m, n = m + -m % step, n + -n % 8
        sizes = [f"M={m}", f"N={n}", f"K={k}", f"A={numbers}", f"B={numbers}"]
        outputs = []
        for path, more in ((source, ["--arch=sm_90a", "--emu-check=full"]), (plain, [])):
            out = os.path.join(folder, "out.npy")
            if not run([tirc, "run", path, "--device=emu", *more, *sizes, f"D=@{out}"])[0]:
                return False
            with open(out, "rb") as file:
                outputs.append(file.read())
        if outputs[0] != outputs[1]:
            print(f"a wrong product of {sizes}")
            return False
    if not ptxas:
        return True
    ptx = os.path.join(folder, "gemm.ptx")
    fine, _ = run([tirc, "build", "--emit=ptx", "--arch=sm_90a", source, "-o", ptx])
    if not fine:
        return False
    fine, said = run([ptxas, "-arch=sm_90a", "-v", ptx, "-o", os.path.join(folder, "gemm.cubin")])
    if not fine or re.search(r"C75|C76|[1-9]\d* bytes spill", said):
        print(said)
        return False
    return True


def main():
    tirc, group = sys.argv[1:3]
    ptxas = shutil.which("ptxas")
    failed = 0
    for configuration in GROUPS[group]:
        with tempfile.TemporaryDirectory() as folder:
            if not check(tirc, ptxas, Gemm(**configuration), folder):
                print(f"failed: {configuration}")
                failed += 1
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
