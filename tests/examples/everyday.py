# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The kernels that everyday.py of tools/bench times, on the emulator: each gives what the interpreter gives.

Usage: everyday.py TIRC KERNELS
"""

import pathlib
import re
import subprocess
import sys

SIZES = {  # of each kernel, and inputs where they are not drawn; other sizes take other configurations
    "swiglu": "N=3001", "adamw": "N=3000 V=rand:0.1:1 rate=0.01 step=3", "rope": "T=3 H=20", "heads": "B=2 S=40 H=3",
    "stencil": "M=30 N=140", "short_convolution": "B=2 T=40 C=136", "cross_entropy": "M=2 V=5000 Label=randint:0:4999",
    "argmax_rows": ["M=2 V=9000", "M=661 V=1100"], "cumsum_rows": "M=2 N=3000", "norm_quantise": "M=2 N=1000 eps=1e-6",
    "layernorm_gradient": "M=2 N=1000 eps=1e-5", "column_sum": "M=70 N=300", "group_norm": "B=2 C=8 S=300 groups=2 eps=1e-5",
    "route": "T=20", "embedding": "T=20 N=600 V=50 Id=randint:0:49", "embedding_gradient": "T=20 N=300 V=50 Id=randint:0:49",
    "matrix_vector": "M=30 K=1100", "batched": "B=2 M=130 N=136 K=72", "small_batched": "B=2", "matmul_tf32": "M=70 N=80 K=100",
    "matmul_f64": "M=70 N=80 K=520", "gated": "M=70 N=136 K=96", "low_rank": "M=70 N=136 K=96",
    "convolution": "B=1 H=3 V=10 C=64 F=72 P=30",
}


def main(tirc, kernels):
    failed = 0
    names = re.findall(r"^kernel (\w+)", pathlib.Path(kernels).read_text(encoding="utf-8"), re.MULTILINE)
    cases = [(name, sizes) for name in names
             for sizes in (SIZES[name] if isinstance(SIZES[name], list) else [SIZES[name]])]
    for name, sizes in cases:
        command = [tirc, "run", kernels, f"--kernel={name}", "--arch=sm_90a", "--device=emu", "--check", *sizes.split()]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            failed += 1
            print(f"{' '.join(command)}\n{done.stdout[-500:]}{done.stderr[-500:]}")
    print(f"{len(cases) - failed} passed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
