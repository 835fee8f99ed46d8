# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs tirc with hostile bytes in all places that come to mind, and looks at what it prints."""
import os
import subprocess
import sys

tirc, folder = sys.argv[1:]
EVIL = b"a\x1b[31m\x07\x9b\xc2\x9bb\xe2\x80\xaec\x7f"
KERNEL = b"kernel k(X: f32[N], Y: out f32[N]) { for i in tiles(N by 64) { Y[i:+64] = X[i:+64]; } }\n"
PTX = b""".version 8.0
.target sm_80
.address_size 64
.file 1 "%s.cu"
.visible .entry k(.param .u64 p)
{
    .reg .b64 %%r<3>;
    .reg .b32 %%v<2>;
    .loc 1 7 0
    ld.param.u64 %%r0, [p];
    ld.global.u32 %%v0, [%%r0+4096];
    ret;
}
"""
allowed = set(range(0x20, 0x7f)) | {0x0a, 0x09}
wrong = []


def run(*words, stdin=b""):
    command = [os.fsencode(tirc), *words]
    done = subprocess.run(command, input=stdin, capture_output=True, check=False, cwd=folder, timeout=60)
    for name, text in (("stdout", done.stdout), ("stderr", done.stderr)):
        plain = text.replace(b"\xef\xbf\xbd", b"?")
        bad = sorted({byte for byte in plain if byte not in allowed})
        if bad:
            wrong.append(f"{command}: {name} has {bad}: {text!r}")
    return done


source = os.path.join(os.fsencode(folder), EVIL + b".tir")
lines = os.path.join(os.fsencode(folder), b"two\nlines.tir")
ptx = os.path.join(os.fsencode(folder), EVIL + b".ptx")
printing = os.path.join(os.fsencode(folder), b'{}"' + EVIL + b".tir")
PRINTS = KERNEL.replace(b"Y[", b"print(i); assert(N == 3); Y[")
for path, text in ((source, KERNEL), (lines, KERNEL + EVIL), (ptx, PTX % EVIL), (printing, PRINTS)):
    with open(path, "wb") as file:
        file.write(text)
run(EVIL)
for command in (b"build", b"run", b"check", b"emu", b"trace", b"tune", b"fmt"):
    run(command, EVIL)
    run(command, b"--" + EVIL)
    run(command, b"-" + EVIL)
    run(command, source, b"--diagnostics=" + EVIL)
    run(command, source, EVIL)
run(b"check", lines)
run(b"check", source, b"--receipt", b"-D", EVIL + b"=1")
run(b"check", source, b"--receipt", b"--arch=" + EVIL)
run(b"check", source, b"--receipt", b"--print-after=all")
run(b"check", source, b"--require=" + EVIL)
run(b"check", source, b"--kernel=" + EVIL)
run(b"check", source, b"--tuned=" + EVIL)
run(b"check", b"-", stdin=b'import "' + EVIL + b'";' + KERNEL)
run(b"build", source, b"-o", EVIL + b"/" + EVIL)
run(b"fmt", b"--check", source)
for words in ((b"N=" + EVIL,), (EVIL + b"=3",), (b"N=3", b"X=" + EVIL), (b"N=3", b"X=@" + EVIL), (b"N=3", b"X=randn,save=/none/" + EVIL),
              (b"N=3", b"--device=" + EVIL), (b"N=3", b"--schedule=" + EVIL), (b"N=3", b"--check-against=" + EVIL)):
    run(b"run", source, b"--device=emu", *words)
run(b"emu", ptx, b"buf:f32[4]", b"--kernel=" + EVIL)
run(b"emu", ptx, b"buf:f32[4]=" + EVIL, b"--kernel=k")
found = run(b"emu", ptx, b"buf:f32[4]", b"--kernel=k")
if b".cu" not in found.stderr:
    wrong.append(f"the file of the line is not named: {found.stderr!r}")
run(b"trace", ptx, b"buf:f32[4]", b"--kernel=k", b"-o", b"out" + EVIL)
run(b"trace", source, b"N=64", b"-o", b"out" + EVIL)
run(b"tune", source, b"N=64", b"--device=emu", b"--time=1", b"-o", b"out" + EVIL)
printed = run(b"run", printing, b"N=3", b"--device=emu")  # of the line, {} is no place, and " ends no name in PTX
if b"tir:1, tile (0): i 0\n" not in printed.stdout or printed.returncode:
    wrong.append(f"not printed: {printed}")
run(b"run", printing, b"N=4", b"--device=emu")
if wrong:
    sys.exit("\n".join(wrong))
