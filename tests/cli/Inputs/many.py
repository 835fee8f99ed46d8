# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A kernel with as many dimensions, metas or conditions, or a name of so many characters: many.py WHAT COUNT."""

import sys

what, count = sys.argv[1], int(sys.argv[2])
name = "k" * count if what == "characters" else "k"
metas = f"<{', '.join(f'M{i} = 1' for i in range(count))}>" if what == "metas" else ""
dims = [f"D{i}" for i in range(count)] if what == "dimensions" else ["D0"]
tensors = [f"X{i}: f32[{', '.join(dims[i:i + 4])}]" for i in range(0, len(dims), 4)]
conditions = " ".join(f"where D0 != {i + 1}" for i in range(count if what == "conditions" else 0))
print(f"kernel {name}{metas}({', '.join(tensors)}, Y: out f32[64]) {conditions}\n{{")
print("    for n in tiles(64 by 64) { Y[n:+64] = 1; }\n}")
