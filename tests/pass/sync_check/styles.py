# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Each kernel of styles.tir with one edit that makes it wrong: sync_check must refuse it.

Usage: styles.py TIRC STYLES
"""

import pathlib
import re
import subprocess
import sys
import tempfile

REFUSED = re.compile(r"error\[E041\d\]")

# kernel: [(what is replaced, by what), ...]
EDITS = {
    "scheduler3": [
        ("arrivals(5)", "arrivals(1)"),
        ("            wait(heard[s], s.phase);\n", ""),
        ("            t = next[s];\n"
         "            warp_sync();\n"
         "            if laneid() == 0 { arrive(heard[s]); }\n"
         "            s.advance();\n"
         "            if i64(t) * 32 < N {\n"
         "                wait(empty",
         "            t = next[s];\n"
         "            if laneid() == 0 { arrive(heard[s]); }\n"
         "            s.advance();\n"
         "            if i64(t) * 32 < N {\n"
         "                wait(empty"),
        ("                if laneid() == 0 { arrive(empty[q]); }\n"
         "                q.advance();",
         "                if laneid() == 0 { arrive(empty[0]); }\n"
         "                q.advance();"),
        ("            warp_sync();\n"
         "            t = next[s];\n"
         "            if laneid() == 0 { arrive(told[s]); }",
         "            t = next[s];\n"
         "            if laneid() == 0 { arrive(told[s]); }"),
    ],
    "masks2": [
        ("ctas = 3", "ctas = 1"),
        ("            wait(empty[s], s.phase);\n", ""),
        ("laneid() < 2 { arrive(empty[s], cta = laneid()); }",
         "laneid() < 2 { arrive(empty[s], cta = cta_rank()); }"),
        ("laneid() < 2 { arrive(empty[s], cta = laneid()); }",
         "laneid() < 2 { arrive(empty[1 - s], cta = laneid()); }"),
        ("            warp_sync();\n            if laneid() < 2", "            if laneid() < 2"),
        ("cta_rank() == leader", "cta_rank() == 0 && leader == 0"),
    ],
    "chain3": [
        ("            if r > 0 { bar_sync(id = 2, threads = 128); }\n", ""),
        ("            if r > 0 { bar_sync(id = 4, threads = 128); }\n", ""),
        ("if r + 64 < N { bar_arrive(id = 4", "if r + 128 < N { bar_arrive(id = 4"),
        ("bar_arrive(id = 3, threads = 128);", "bar_arrive(id = 3, threads = 96);"),
        ("            let v = a[63 - t];\n"
         "            if r + 64 < N { bar_arrive(id = 2, threads = 128); }",
         "            if r + 64 < N { bar_arrive(id = 2, threads = 128); }\n"
         "            let v = a[63 - t];"),
        ("if r > 0 { bar_sync(id = 2", "if r > 64 { bar_sync(id = 2"),
    ],
    "tmastore": [
        ("if tid() == 0 { wait_group(1, engine", "if tid() == 32 { wait_group(1, engine"),
        ("wait_group(1, engine = tma, read = 1); }", "wait_group(2, engine = tma, read = 1); }"),
        ("        q = 1 - q;\n", ""),
        ("        fence(async_shared);\n"
         "        bar_sync();",
         "        bar_sync();\n"
         "        if tid() == 64 { fence(async_shared); }"),
        ("            commit_group(engine = tma);\n", ""),
        ("    if tid() == 0 { wait_group(0, engine = tma); }",
         "    if tid() == 1 { wait_group(0, engine = tma); }"),
    ],
    "wgmmaover": [
        ("wait_group(1, engine = wgmma);", "wait_group(2, engine = wgmma);"),
        ("        wait_group(1, engine = wgmma);\n", ""),
        ("        fence(async_shared);\n", ""),
        ("q = 1 - q;", "q = 0;"),
    ],
    "lagfree": [
        ("if k > 0 {", "if k >= 0 {"),
        ("wait_group(1, engine = wgmma);", "wait_group(2, engine = wgmma);"),
        ("arrive(empty[f])", "arrive(empty[s])"),
        ("if tid_in_wg() == 0 { arrive", "if laneid() == 0 { arrive"),
        ("var f: stage(3, phase = 0);", "var f: stage(2, phase = 0);"),
    ],
    "cpasync": [
        ("        wait_group(1);\n        bar_sync();", "        bar_sync();\n        wait_group(1);"),
        ("wait_group(1);", "wait_group(2);"),
        ("(q + 2) % 3", "(q + 3) % 3"),
        ("        bar_sync();\n", ""),
        ("        commit_group();\n        for j", "        for j"),
    ],
    "dsmem": [
        ("    cluster_sync();\n    var v", "    var v"),
        ("    bar_sync();\n    if tid() == 0 { remote", "    if tid() == 0 { remote"),
        ("remote(part, 0)[cta_rank()]", "remote(part, 0)[cta_rank() / 2]"),
        ("    cluster_sync();\n    if cta_rank()", "    bar_sync();\n    if cta_rank()"),
        ("if tid() == 0 { remote", "if laneid() == 0 { remote"),
    ],
    "dsmem_mbar": [
        ("    cluster_sync();\n", ""),
        ("arrive(full[p], cta = peer);", "if laneid() == 0 { arrive(full[p], cta = peer, count = 32); }"),
        ("stage(2, phase = 1)", "stage(2, phase = 0)"),
    ],
    "wgnamed": [
        ("s[g, 127 - t]", "s[1 - g, 127 - t]"),
        ("        if g == 0 { bar_sync(id = 1, threads = 128); } else { bar_sync(id = 2, threads = 128); }\n"
         "        Y",
         "        Y"),
        ("bar_sync(id = 2, threads = 128); }\n"
         "        let",
         "bar_sync(id = 1, threads = 128); }\n"
         "        let"),
        ("let g = wgid();", "let g = warpid() % 2;"),
    ],
    "bitonic": [
        ("            bar_sync();\n            j = j / 2;", "            j = j / 2;"),
        ("            bar_sync();\n"
         "            j = j / 2;",
         "            if j > 16 { bar_sync(); }\n"
         "            j = j / 2;"),
        ("if o > tid() {", "if o != tid() {"),
        ("            bar_sync();\n"
         "            j = j / 2;",
         "            warp_sync();\n"
         "            j = j / 2;"),
        ("            }\n            bar_sync();", "                bar_sync();\n            }"),
    ],
    "inplace3": [
        ("            warp_sync();\n", ""),
        ("wait(ready[s], s.phase);", "wait(filled[s], s.phase);"),
        ("arrive(ready[s]);", "if laneid() == 0 { arrive(ready[s], count = 32); }"),
        ("            wait(empty[s], s.phase);\n", "            if r > 64 { wait(empty[s], s.phase); }\n"),
    ],
    "split": [
        ("    cluster_wait();\n"
         "    let v = remote(s, 1 - cta_rank())[63 - tid()];",
         "    let v = remote(s, 1 - cta_rank())[63 - tid()];\n"
         "    cluster_wait();"),
        ("    let v = remote(s, 1 - cta_rank())[63 - tid()];\n"
         "    cluster_arrive();",
         "    cluster_arrive();\n"
         "    let v = remote(s, 1 - cta_rank())[63 - tid()];"),
        ("    cluster_arrive();\n    Y", "    Y"),
    ],
    "stencil": [
        ("        bar_sync();\n        X", "        X"),
        ("l + c;\n        bar_sync();", "l + c;"),
        ("l + c;\n        bar_sync();", "l + c;\n        warp_sync();"),
    ],
    "ordered": [
        ("            wait(turn[0], p);\n", ""),
        ("            if laneid() == 0 { arrive(turn[0]); }\n", ""),
        ("if laneid() == 0 { arrive(turn[1]); }", "if tid_in_wg() == 0 { arrive(turn[1], count = 4); }"),
        ("            if laneid() == 0 { arrive(turn[1]); }\n"
         "            for k in range(0, K, 64) { s.advance(); }\n",
         ""),
        ("mbarrier turn[2] arrivals(4);", "mbarrier turn[2] arrivals(3);"),
        ("        for k in range(0, K, 64) { s.advance(); }\n"
         "        var p: i32 = 0;",
         "        var p: i32 = 0;"),
    ],
    "transpose": [
        ("    bar_sync();\n", ""),
        ("    bar_sync();\n", "    warp_sync();\n"),
        ("    bar_sync();\n", "    if m + 32 <= M { bar_sync(); }\n"),
        ("s[y + i32(j), x] = X", "s[y + i32(j) / 2, x] = X"),
    ],
    "warpspec_named": [
        ("if r >= 128 {", "if r >= 192 {"),
        ("if q == 0 { bar_arrive(id = 3", "if q == 1 { bar_arrive(id = 3"),
        ("if r + 128 < N {", "if r + 192 < N {"),
        ("s[q, t] = X", "s[0, t] = X"),
        ("bar_sync(id = 2, threads = 128); }\n            Y", "warp_sync(); }\n            Y"),
    ],
    "mc_rows": [
        ("arrivals(2)", "arrivals(1)"),
        ("cta = tid_in_wg())", "cta = 0)"),
        ("ctas = 3", "ctas = 2"),
        ("            await(acc);\n"
         "            if tid_in_wg() < 2 { arrive(empty[s], cta = tid_in_wg()); }",
         "            if tid_in_wg() < 2 { arrive(empty[s], cta = tid_in_wg()); }\n"
         "            await(acc);"),
    ],
    "regA": [
        ("            await(acc);\n"
         "            if laneid() == 0 { arrive(bfree[s]); }",
         "            if laneid() == 0 { arrive(bfree[s]); }\n"
         "            await(acc);"),
        ("            wait(bfree[s], s.phase);\n", ""),
        ("            fence(wgmma);\n", ""),
    ],
    "reuse": [
        ("        bar_sync();\n        let", "        let"),
        ("        bar_sync();\n        Y", "        Y"),
        ("w[warpid()] = v", "w[warpid() / 2] = v"),
        ("s[tid()] = total", "s[tid() / 2] = total"),
    ],
    "tile_next2": [
        ("        bar_sync();\n        t =", "        t ="),
        ("        }\n        bar_sync();\n        if", "        }\n        if"),
        ("        t = next[0];\n"
         "        if",
         "        t = next[0];\n"
         "        if tid() == 64 { next[0] = 5; }\n"
         "        if"),
        ("buf[i32(j) + tid() / 64, tid() % 64] = X", "buf[i32(j) + tid() / 64, tid() % 63] = X"),
    ],
    "st_async_like": [
        ("        cluster_sync();\n", ""),
        ("        wait(got, p);\n", ""),
        ("            arrive(got, cta = i32(c));", "            if c < 3 { arrive(got, cta = i32(c)); }"),
        ("arrivals(256)", "arrivals(64)"),
        ("        p = 1 - p;\n", ""),
    ],
    "tma_reduce": [
        ("        bar_sync();\n        q", "        q"),
        ("wait_group(1, engine", "wait_group(2, engine"),
        ("        if warpid() == 0 {\n"
         "            if elect",
         "        if warpid() == i32(r / 16) % 4 {\n"
         "            if elect"),
        ("    if warpid() == 0 { if elect_sync() { wait_group(0, engine = tma); } }", ""),
    ],
}


def kernels(path):
    """The kernels of a file, by name."""
    text = pathlib.Path(path).read_text(encoding="utf-8")
    parts = re.split(r"^(?=kernel )", text, flags=re.MULTILINE)[1:]
    return {re.match(r"kernel (\w+)", part)[1]: part for part in parts}


def main():
    tirc, styles = sys.argv[1:]
    passed, failed, rights = 0, 0, kernels(styles)
    assert sorted(rights) == sorted(EDITS)
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "kernel.tir")
        for name, edits in EDITS.items():
            for old, new in edits:
                assert old in rights[name], (name, old)
                path.write_text(rights[name].replace(old, new, 1), encoding="utf-8")
                done = subprocess.run([tirc, "check", "--arch=sm_90a", path], capture_output=True,
                                      text=True, check=False)
                fine = done.returncode == 2 and REFUSED.search(done.stderr)
                passed, failed = passed + bool(fine), failed + (not fine)
                if not fine:
                    print(f"FAIL {name}: accepted with {new!r} for {old!r}\n{done.stderr}")
    print(f"{passed} passed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
