# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A program with so many dimensions, metas, conditions, operations of a condition, characters in a name, bytes, or files in
a folder.

Usage: many.py WHAT COUNT FOLDER
"""

import pathlib
import sys

what, count, folder = sys.argv[1], int(sys.argv[2]), pathlib.Path(sys.argv[3])
name = "k" * count if what == "characters" else "k"
metas = f"<{', '.join(f'M{i} = 1' for i in range(count))}>" if what == "metas" else ""
dims = [f"D{i}" for i in range(count)] if what == "dimensions" else ["D0"]
tensors = [f"X{i}: f32[{', '.join(dims[i:i + 4])}]" for i in range(0, len(dims), 4)]
conditions = " ".join(f"where D0 != {i + 1}" for i in range(count if what == "conditions" else 0))
if what == "operations":
    halves = ["D0" + " / p" * (count // 2 - 1), "p" + " / D0" * ((count + 1) // 2 - 1)]  # as chains are limited
    tensors, conditions = ["p: i64", *tensors], f"where {' % ('.join(halves)}) != 1"
text = f"kernel {name}{metas}({', '.join(tensors)}, Y: out f32[64]) {conditions}\n{{\n"
text += "    for n in tiles(64 by 64) { Y[n:+64] = 1; }\n}\n"
folder.mkdir(exist_ok=True)
if what == "files":
    for i in range(1, count):
        pathlib.Path(folder, f"{i}.tir").write_text(f"fn f{i}_(x) {{ return x; }}\n", encoding="utf-8")
        text += f'import "{i}.tir";\n'
if what == "bytes":
    text += "//" + "." * (count - len(text) - 2)
pathlib.Path(folder, "main.tir").write_text(text, encoding="utf-8")
