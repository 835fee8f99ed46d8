# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Buffers that each round of a loop fills again, and loops that run few rounds for most arguments and data.

Usage: few_rounds.py TIRC

Each kernel is written twice: right, and without what stands between one round and the next. In one round
that is harmless, so sync_check must come to more of them, whatever decides how many there are: it accepts
the right one, with nothing unchecked, and refuses the wrong one.
"""

import pathlib
import subprocess
import sys
import tempfile

# Name: parameters, and where the loop ends that starts at 0 and goes by 32.
BOUNDS = {
    "mask": ("n: i64", "n & 127"),
    "remainder": ("n: i64", "n % 320"),
    "shift": ("n: i64", "n >> 3"),
    "least": ("n: i64", "min(n, 140)"),
    "choice": ("n: i64", "where(n == 77, 320, 32)"),
    "power": ("n: i64", "1 << (n & 7)"),
    "product": ("n: i64, l: i64", "n * l"),
    "quotient": ("n: i64, l: i64", "n / l"),
    "narrow": ("n: i32", "i64(i8(n))"),
    "float": ("x: f32", "i64(x)"),
    "size": ("", "M >> 3"),
    "cta": ("", "i64(cta_id(0)) / 7 * 32"),
    "element": ("C: i32[4]", "i64(C[0])"),
    "element of 64 bits": ("C: i64[4]", "C[0]"),
    "difference of 64 bits": ("C: i64[4]", "C[1] - C[0]"),
    "mask of data": ("C: i32[4]", "i64(C[0]) & 127"),
    "remainder of data": ("C: i32[4]", "i64(C[0]) % 129"),
    "negative of data": ("C: i32[4]", "-i64(C[0])"),
    "difference of data": ("C: i32[4]", "i64(C[0]) - i64(C[1])"),
    "product of data": ("C: i32[4]", "i64(C[0]) * i64(C[1])"),
    "data at most, at least": ("C: i32[4]", "min(i64(C[0]), 200) - max(i64(C[1]), 7)"),
    "choice by data": ("C: i32[4]", "where(C[0] == 77, 320, 32)"),
    "choice of data": ("C: i32[4]", "where(C[1] > C[2], i64(C[0]), i64(C[3]))"),
    "data at data": ("C: i32[M]", "100 - i64(C[i64(C[0])])"),
    "negative of a float": ("F: f32[1]", "0 - i64(F[0] * 2.5 - 7.0)"),
}

HEAD = """kernel k(X: f32[M], {params}D: i32[9], z: i64, Y: out f32[{ctas}, 128]) grid({ctas}) threads({threads})
{{
    shared s: f32[2, 128];
    {mbarriers}
    let t = i64(tid()) & 127;
{body}}}
"""

# Name: threads, and the body, in which END is where the loop ends; a line with `// needed` is left out.
SHAPES = {
    "for": (128, """
    for m in range(0, END, 32) {
        s[0, t] = X[t];
        bar_sync();
        Y[cta_id(), t] = s[0, 127 - t];
        bar_sync(); // needed
    }
"""),
    "while": (128, """
    let end: i64 = END;
    var m: i64 = 0;
    while m < end {
        s[0, t] = X[t];
        bar_sync();
        Y[cta_id(), t] = s[0, 127 - t];
        bar_sync(); // needed
        m += 32;
    }
"""),
    "ring": (128, """
    var b: stage(2);
    for m in range(0, END, 32) {
        if tid() == 0 {
            expect_tx(full[b], bytes(s[b]));
            copy_async(s[b], X[m:+128], mbar = full[b], engine = tma);
        }
        wait(full[b], b.phase);
        Y[cta_id(), t] = s[b, 127 - t];
        fence(async_shared);
        bar_sync(); // needed
        b.advance();
    }
"""),
    "roles": (256, """
    if tid() == 0 {
        var b: stage(2);
        for m in range(0, END, 32) {
            wait(empty[b], b.phase ^ 1); // needed
            expect_tx(full[b], bytes(s[b]));
            copy_async(s[b], X[m:+128], mbar = full[b], engine = tma);
            b.advance();
        }
    }
    if wgid() == 1 {
        var b: stage(2);
        for m in range(0, END, 32) {
            wait(full[b], b.phase);
            Y[cta_id(), t] = s[b, 127 - t];
            fence(async_shared);
            arrive(empty[b]);
            b.advance();
        }
    }
"""),
    "break": (128, """
    let end: i64 = END;
    for m in range(0, 1024, 32) {
        if m >= end { break; }
        s[0, t] = X[t];
        bar_sync();
        Y[cta_id(), t] = s[0, 127 - t];
        bar_sync(); // needed
    }
"""),
    "break in roles": (256, """
    let end: i64 = END;
    if tid() == 0 {
        var b: stage(2);
        for m in range(0, M, 32) {
            if m >= end { break; }
            wait(empty[b], b.phase ^ 1); // needed
            expect_tx(full[b], bytes(s[b]));
            copy_async(s[b], X[m:+128], mbar = full[b], engine = tma);
            b.advance();
        }
    }
    if wgid() == 1 {
        var b: stage(2);
        for m in range(0, M, 32) {
            if m >= end { break; }
            wait(full[b], b.phase);
            Y[cta_id(), t] = s[b, 127 - t];
            fence(async_shared);
            arrive(empty[b]);
            b.advance();
        }
    }
"""),
    "around a loop": (128, """
    for m in range(0, END, 32) {
        s[0, t] = X[t];
        bar_sync();
        for j in range(0, i64(D[3]) - i64(D[2])) { Y[cta_id(), t] = s[0, 127 - t]; }
        bar_sync(); // needed
    }
"""),
    "in a loop": (128, """
    for i in range(i64(D[5]), i64(D[6]) & 1023, 512) {
        s[0, t] = X[t];
        bar_sync();
        for m in range(0, END, 32) { Y[cta_id(), t] = s[0, 127 - t]; }
        bar_sync(); // needed
    }
"""),
}


def verdict(tirc, path, text):
    path.write_text(text, encoding="utf-8")
    command = [tirc, "check", "--arch=sm_90a", path]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return "refused" if "error[E04" in done.stderr else done.stderr
    return "unchecked" if "W0004" in done.stderr else "accepted"


def main(tirc):
    failed, count = [], 0
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "k.tir")
        for name, (params, end) in BOUNDS.items():
            for shape, (threads, body) in SHAPES.items():
                uses = "[b]" in body
                body = body.replace("END", end if "while" in shape else f"({end})")
                right = HEAD.format(ctas=200 if "cta" in end else 1,
                    params=params + ", " if params else "", threads=threads, body=body[1:],
                    mbarriers="mbarrier full[2] arrivals(1);\n    mbarrier empty[2] arrivals(128);" if uses else "")
                wrong = "\n".join(line for line in right.split("\n") if "// needed" not in line)
                found = verdict(tirc, path, right), verdict(tirc, path, wrong)
                count += 1
                if found != ("accepted", "refused"):
                    failed.append(f"{name}, {shape}: {found}")
    print(*failed, f"{count - len(failed)} passed, {len(failed)} failed", sep="\n")
    return len(failed) > 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
