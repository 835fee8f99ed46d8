# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What tables say to write here compiles: the column "here" of docs/tutorial.md and docs/tirx.md.

Usage: phrases.py TIRC PAGE.md...
The comment <!-- frame: NAME --> stands before a table, and NAME is a kernel below. The `phrase` that begins a cell of
the table's column "here" is compiled in it: statements as they are, anything else as the value of a name, and `shared`, `tmem` and
`mbarrier` declarations, which do not stand in loops, in front of the frame's statements. A phrase that begins with
`kernel` or `fn` or `import` is a program of its own; after `fn` the frame follows. A cell that begins with
"not here" has no phrase.
"""

import pathlib
import re
import subprocess
import sys
import tempfile

FRAMES = {
    "tiles": ("sm_90a", """
kernel frame<BM = 64>(A: bf16[M, K], B: bf16[N, K], X: f32[M, N], R: i32[M], C: inout i32[M], Y: inout f32[M, N],
    D: out bf16[M, N], seed: i64)
{
    for (m, n) in tiles(M by BM, N by 64) {
        @FIRST@
        let x = X[m:+64, n:+64];
        let y = x + 1.0;
        let c = x > 0;
        let i = R[m:+64];
        var acc: f32[64, 64] = 0;
        @PHRASE@
        Y[m:+64, n:+64] = where(c, acc, y) + f32(i)[:, None];
    }
}
"""),
    "threads": ("sm_90a", """
kernel frame(A: bf16[M, K], X: f32[N], W: f32[32], Y: inout f32[N], D: out bf16[M, K])
    grid(ceildiv(N, 128)) threads(128)
{
    @FIRST@
    shared As: bf16[2, 128, 64] in swizzle(128);
    shared Bs: bf16[2, 64, 64] in swizzle(128);
    shared flags: i32[32];
    shared line: f32[32];
    mbarrier full[2] arrivals(1);
    mbarrier empty[2] arrivals(4);
    assume_sync("parts of kernels");
    let i = i64(cta_id()) * 128 + i64(tid());
    var v = X[i];
    var acc: f32[128, 64] = 0;
    var s: stage(2, phase = 0);
    @PHRASE@
    s.advance();
    Y[i] = v;
    D[0:+128, 0:+64] = bf16(acc);
}
"""),
    "cluster": ("sm_90a", """
kernel frame(A: bf16[M, K], X: f32[N], Y: out f32[N]) grid(ceildiv(N, 128)) cluster(2) threads(128)
{
    @FIRST@
    shared As: bf16[128, 64] in swizzle(128);
    shared s: f32[128];
    mbarrier full arrivals(1);
    assume_sync("parts of kernels");
    let i = i64(cta_id()) * 128 + i64(tid());
    @PHRASE@
    Y[i] = X[i];
}
"""),
    "tmem": ("sm_100a", """
kernel frame(Y: out f32[128, 64]) grid(1) threads(128)
{
    @FIRST@
    shared As: bf16[128, 64] in swizzle(128);
    shared Bs: bf16[64, 64] in swizzle(128);
    mbarrier done arrivals(1);
    tmem acc: f32[128, 64];
    assume_sync("parts of kernels");
    @PHRASE@
    Y[0:+128, 0:+64] = acc[0:+128, 0:+64];
}
"""),
    "pair": ("sm_100a", """
kernel frame(A: bf16[M, K], Y: out f32[128, 64]) grid(2) cluster(2) threads(128)
{
    @FIRST@
    shared As: bf16[128, 64] in swizzle(128);
    shared Bs: bf16[32, 64] in swizzle(128);
    mbarrier full arrivals(1);
    mbarrier done arrivals(1);
    tmem acc: f32[128, 64] cta_group(2);
    assume_sync("parts of kernels");
    @PHRASE@
    Y[0:+128, 0:+64] = acc[0:+128, 0:+64];
}
"""),
}
FRAME = re.compile(r"^<!-- frame: (\w+) -->\n+((?:\|.*\n)+)", re.M)
PROGRAM = re.compile(r"^(kernel|fn|import)\b")


def compiled(frame, phrase):
    """The program that a phrase stands for."""
    first = ""
    if PROGRAM.match(phrase) and "kernel" in phrase:
        return phrase
    if PROGRAM.match(phrase):
        return phrase + frame.replace("@FIRST@", "").replace("@PHRASE@", "")
    if re.match(r"(shared|tmem|mbarrier) ", phrase):
        first, phrase = phrase, ""
    elif not phrase.endswith((";", "}")):
        phrase = f"let _value = {phrase};"
    return frame.replace("@FIRST@", first).replace("@PHRASE@", phrase)


def phrases(table):
    """The phrases of the column "here", with their cells; None for a row without one that does not say why."""
    rows = [[cell.strip() for cell in line.strip("|\n").split("|")] for line in table.splitlines()]
    column = rows[0].index("here")
    for row in rows[2:]:
        cell = row[column]
        found = re.match(r"`([^`]+)`", cell)
        if len(row) != len(rows[0]) or not (found or cell.startswith("not here")):
            yield None, " | ".join(row)
        elif found:
            yield found.group(1), cell


def check(tirc, page, folder):
    """Yields what is wrong."""
    count = 0
    for name, table in FRAME.findall(page.read_text(encoding="utf-8")):
        arch, frame = FRAMES[name]
        for phrase, row in phrases(table):
            if phrase is None:
                yield f"{page}: no phrase in this row: {row}"
                continue
            count += 1
            path = pathlib.Path(folder, "phrase.tir")
            path.write_text(compiled(frame, phrase), encoding="utf-8")
            done = subprocess.run([tirc, "check", f"--arch={arch}", str(path)], stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True, check=False)
            errors = "\n".join(re.findall(r".*error\[.*", done.stdout))
            if done.returncode:
                yield f"{page}: `{phrase}`:\n{errors or done.stdout}"
    if not count:
        yield f"{page}: no phrases"
    print(f"{count} phrases checked")


def main():
    tirc = str(pathlib.Path(sys.argv[1]).resolve())
    with tempfile.TemporaryDirectory() as folder:
        wrong = [text for page in sys.argv[2:] for text in check(tirc, pathlib.Path(page), folder)]
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
