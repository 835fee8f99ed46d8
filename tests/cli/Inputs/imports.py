# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Imports by several paths, with and without --import-root, from files and from standard input."""
import os
import subprocess
import sys

tirc, folder = sys.argv[1:]
LIBRARY = "fn same(x) { return x; }\n"
KERNEL = "kernel k(X: f32[N], Y: out f32[N]) { for i in tiles(N by 64) { Y[i:+64] = X[i:+64]; } }\n"
wrong = []


def write(path, text):
    path = os.path.join(folder, path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def check(path, expected, *words, cwd="", stdin=False):
    """expected: a part of the message, None where the import is fine."""
    text = f'import "{path}";\n{KERNEL}'
    write("in/k.tir", text)
    file = "-" if stdin else os.path.relpath("in/k.tir", cwd or ".")
    done = subprocess.run([tirc, *(words or ["check"]), file], input=text if stdin else "", text=True,
                          capture_output=True, check=False, timeout=20, cwd=os.path.join(folder, cwd))
    good = expected in done.stderr and done.returncode == 2 if expected else done.returncode == 0
    if not good:
        wrong.append(f"{path} {words} in {cwd or '.'}: {done.returncode} {done.stderr}, expected {expected}")


for name in ("out.tir", "in/near.tir", "in/deep/far.tir", "inside/beside.tir"):
    write(name, LIBRARY)
write("in/deep/up.tir", 'import "../near.tir";\n')
write("in/deep/away.tir", 'import "../../out.tir";\n')
os.mkdir(os.path.join(folder, "in/folder"))
os.mkfifo(os.path.join(folder, "in/pipe"))
os.symlink("../out.tir", os.path.join(folder, "in/leads_out.tir"))
os.symlink("deep/far.tir", os.path.join(folder, "in/leads_in.tir"))
os.symlink("loop.tir", os.path.join(folder, "in/loop.tir"))

for name in ("near.tir", "deep/far.tir", "deep/up.tir", "deep/../near.tir", "leads_in.tir", "tir/sched.tir",
             os.path.join(os.path.realpath(folder), "in/near.tir")):
    check(name, None)
    check(name, None, cwd="in")
    check(name, None, cwd="in", stdin=True)
outside = ("../out.tir", "../inside/beside.tir", "leads_out.tir", "deep/away.tir", "/dev/zero", "/proc/self/mem",
           "/etc/passwd", os.path.join(os.path.realpath(folder), "out.tir"))
for name in outside:
    check(name, "outside of the folder")
    check(name, "outside of the folder", cwd="in")
    check(name, "outside of the folder", cwd="in", stdin=True)
check("pipe", "not a regular file")
check("folder", "not a regular file")
check("none.tir", "No such file or directory")
check("loop.tir", "symbolic link")

check("../out.tir", None, "check", "--import-root=.")
check("deep/away.tir", None, "check", "--import-root=/")
check("../out.tir", "outside of the folder", "check", "--import-root=in")
check("near.tir", "outside of the folder", "check", "--import-root=none")
check("near.tir", "outside of the folder", "check", "--import-root=in/deep")
check("/dev/zero", "not a regular file", "check", "--import-root=/")

# The reference is held to the same.
write("in/k.tir", f'import "../out.tir";\n{KERNEL}')
run = [tirc, "run", "in/k.tir", "--device=emu", "N=64", "--check"]
done = subprocess.run([*run, "--import-root=."], capture_output=True, text=True, check=False, cwd=folder, timeout=60)
if done.returncode:
    wrong.append(f"run: {done.stderr}")
write("plain.tir", KERNEL)
done = subprocess.run([tirc, "run", "plain.tir", "--device=emu", "N=64", "--check-against=in/k.tir"], capture_output=True,
                      text=True, check=False, cwd=folder, timeout=60)
if done.returncode != 2 or "outside of the folder in/" not in done.stderr:
    wrong.append(f"run --check-against: {done.stderr}")
if wrong:
    sys.exit("\n".join(wrong))
