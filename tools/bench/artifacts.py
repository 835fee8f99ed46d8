# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the benchmarks and device checks run, and its compilation on a machine without a GPU.

    python3 artifacts.py --tirc TIRC --out FOLDER [--arch sm_90a] [--only PATTERN] [--ptxas PTXAS]
                         [--heads SEED [--cases N]]

Compiles every row of the tables below, and the attention with heads that a seed draws, to FOLDER/NAME.tira. A row that does not compile is listed
and left out. With --ptxas the registers and spills of each row's fast variant go to
FOLDER/usage.txt.
"""

import argparse
import fnmatch
import itertools
import pathlib
import re
import subprocess
import sys
import tempfile

import heads

HERE = pathlib.Path(__file__).resolve().parent
EXAMPLES = HERE.parent.parent / "examples"

ADD = EXAMPLES / "01_add/add.tir"
SOFTMAX = EXAMPLES / "02_softmax/softmax.tir"
GEMM = EXAMPLES / "03_gemm/gemm.tir"
MATMUL = EXAMPLES / "03_gemm/matmul.tir"
EPILOGUES = EXAMPLES / "10_epilogues/epilogues.tir"
OPERANDS = EXAMPLES / "11_operands/operands.tir"
SPLIT = EXAMPLES / "15_split_k/split_k.tir"
ATTENTION = EXAMPLES / "attention/attention.tir"
DEQUANTIZED = EXAMPLES / "12_dequantized/dequantized.tir"
FP8 = EXAMPLES / "13_fp8/fp8.tir"
GROUPED = EXAMPLES / "14_grouped/grouped.tir"
CONVOLUTION = EXAMPLES / "19_convolution/convolution.tir"
REDUCE = EXAMPLES / "04_reduce/reduce.tir"
LAYERNORM = EXAMPLES / "05_norm/layernorm.tir"
RMSNORM = EXAMPLES / "05_norm/rmsnorm.tir"
TRANSPOSE = EXAMPLES / "06_transpose/transpose.tir"
HISTOGRAM = EXAMPLES / "07_histogram/histogram.tir"
SIMT = EXAMPLES / "09_simt/simt.tir"
SWEEP = HERE / "kernels/gemm.tir"
ELEMENTWISE = HERE / "kernels/elementwise.tir"
EVERYDAY = HERE / "kernels/everyday.tir"

# Element type of A and B: the type of the sums, of D.
GEMM_TYPES = {
    "bf16": ("f32", "bf16"), "f16": ("f32", "f16"), "tf32": ("f32", "f32"), "f32": ("f32", "f32"),
    "f64": ("f64", "f64"), "i8": ("i32", "i32"), "u8": ("i32", "i32"), "e4m3": ("f32", "bf16"),
    "e5m2": ("f32", "bf16"),
}
ELEMENT_BYTES = {"bf16": 2, "f16": 2, "tf32": 4, "f32": 4, "f64": 8, "i8": 1, "u8": 1, "e4m3": 1,
                 "e5m2": 1}
# Rows of 65,536 bf16 without a second reading, two CTAs on a multiprocessor of sm_90.
WHOLE = {"KEEP": 57344, "COLS": 8192, "THREADS": 512}
SHARED_LIMIT = 227 * 1024  # bytes a CTA may use on sm_90


def gemm_metas(element):
    # K is halved or doubled so that a row of a stage has 128 bytes.
    size = ELEMENT_BYTES[element]
    tile = {"BM": 64, "BN": 64, "BK": 16, "STAGES": 3} if element == "f64" else \
        {"BK": max(128 // size, 16)}
    return {**tile, "T": element, "ACC": GEMM_TYPES[element][0], "OUT": GEMM_TYPES[element][1]}


def checks():
    """The examples as they are checked: name -> (file, kernel, metas)."""
    rows = {}
    for element in ("f32", "bf16", "f16", "u8", "i32"):
        rows[f"add_{element}"] = (ADD, "add", {"T": element})
    for element in ("bf16", "f32"):
        rows[f"softmax_{element}"] = (SOFTMAX, "softmax", {"T": element, "COLS": 4096})
        rows[f"softmax_online_{element}"] = (SOFTMAX, "softmax_online", {"T": element})
    rows["softmax_shared_bf16"] = (SOFTMAX, "softmax_shared", WHOLE)
    for element in GEMM_TYPES:
        rows[f"gemm_{element}"] = (GEMM, "gemm", gemm_metas(element))
    for kernel in ("row_sum", "total", "block_sums"):
        rows[kernel] = (REDUCE, kernel, {})
    for kernel in ("layernorm", "layernorm_long"):
        rows[kernel] = (LAYERNORM, kernel, {})
    rows["layernorm_shared"] = (LAYERNORM, "layernorm_shared", WHOLE)
    for kernel in ("rmsnorm", "rmsnorm_long"):
        rows[kernel] = (RMSNORM, kernel, {})
    rows["rmsnorm_shared"] = (RMSNORM, "rmsnorm_shared", WHOLE)
    for element in ("bf16", "f32", "u8"):
        rows[f"transpose_{element}"] = (TRANSPOSE, "transpose", {"T": element})
    for kernel in ("histogram", "histogram_shared"):
        rows[kernel] = (HISTOGRAM, kernel, {})
    for kernel in ("scale", "warp_sum", "cta_sum"):
        rows[kernel] = (SIMT, kernel, {})
    return rows


def products():
    """Products on warpgroups, timed beside cuBLAS, and attention beside cuDNN."""
    rows = {}
    for element in ("bf16", "f16", "e4m3", "i8"):
        depth = {"BK": 128} if ELEMENT_BYTES[element] == 1 else {}
        rows[f"matmul_{element}"] = (MATMUL, "matmul", {
            **depth, "T": element, "ACC": GEMM_TYPES[element][0], "OUT": GEMM_TYPES[element][1]})
    wide = {"BN": 256, "STAGES": 4}
    for kernel in ("nn", "nt", "tn", "tt"):
        rows[f"operands.{kernel}"] = (OPERANDS, kernel, wide)
    for kernel, element, height in itertools.product(("nn", "nt"), ("e4m3", "i8", "tf32"), (128, 256)):
        rows[f"operands.{kernel}_{element}_{height}"] = (OPERANDS, kernel, {
            "T": element, "ACC": GEMM_TYPES[element][0], "BM": height,
            "BK": 128 // ELEMENT_BYTES[element], "STAGES": 4})
    for name, act in (("none", 0), ("gelu", 2), ("gelu_tanh", 3), ("gelu_fast", 5)):
        rows[f"linear.{name}"] = (EPILOGUES, "linear", {**wide, "ACT": act})
    for parts in (16, 32, 33):
        rows[f"split.{parts}"] = (SPLIT, "split", {"STAGES": 8, "PARTS": parts})
    for path in sorted((EXAMPLES / "gemm_ladder").glob("*.tir")):
        rows[f"ladder.{path.stem}"] = (path, None, {})
    for size, causal in itertools.product((64, 128), ("true", "false")):
        rows[f"attention.{size}{'causal' if causal == 'true' else 'full'}"] = (
            ATTENTION, "attention", {"D": size, "CAUSAL": causal})
    return rows


def rows():
    """Row kernels with all their configurations, of which a launch takes one."""
    return {"softmax_rows": (SOFTMAX, "softmax_rows", {}),
            "layernorm_rows": (LAYERNORM, "layernorm_rows", {}),
            "rmsnorm_rows": (RMSNORM, "rmsnorm_rows", {})}


def family():
    """What family.py draws, under its names."""
    rows = {f"forward.{kernel}{size}": (EXAMPLES / "attention/forward.tir", kernel, {"D": size})
            for kernel in ("full", "causal") for size in (96, 256)}
    for kernel, size, causal in itertools.product(("backward", "deterministic"), (64, 128),
                                                  ("true", "false")):
        rows[f"{kernel}.{'causal' if causal == 'true' else 'full'}{size}"] = (
            EXAMPLES / "attention/backward.tir", kernel, {"D": size, "CAUSAL": causal})
    rows["attention8"] = (EXAMPLES / "attention/fp8.tir", "fp8", {})
    rows["attention8to8"] = (EXAMPLES / "attention/fp8.tir", "fp8", {"E": "e4m3"})
    for kernel, path in (("decode", "decode"), ("paged", "decode"), ("latent", "latent")):
        rows[kernel] = (EXAMPLES / f"attention/{path}.tir", kernel, {})
    for path, kernels in ((DEQUANTIZED, ("int8_weights", "int4_weights")),
                          (FP8, ("row_scales", "block_scales")),
                          (GROUPED, ("grouped", "planned", "gradient"))):
        rows.update({kernel: (path, kernel, {}) for kernel in kernels})
    rows["int8_packed"] = (DEQUANTIZED, "int8_weights", {"PACKED": "true"})
    for name, metas in (("3x3", {}), ("1x1", {"R": 1, "S": 1, "PAD": 0}), ("half", {"STRIDE": 2})):
        rows[f"convolution.{name}"] = (CONVOLUTION, "convolution", metas)
    return rows


def everyday():
    """What everyday.py draws: each kernel of the file."""
    names = re.findall(r"^kernel (\w+)", EVERYDAY.read_text(encoding="utf-8"), re.MULTILINE)
    return {f"everyday.{name}": (EVERYDAY, name, {}) for name in names}


def times():
    """Candidates for memory-bound kernels: the name up to the first dot is the operation."""
    rows = {}
    for kernel in ("add", "mul", "copy"):
        for block, threads in ((2048, 128), (2048, 256), (4096, 256), (8192, 256), (4096, 512)):
            rows[f"{kernel}.{block}x{threads}"] = (
                ELEMENTWISE, kernel, {"BLOCK": block, "THREADS": threads, "T": "f16"})
    for cols in (4096, 16384, 65536):
        rows[f"softmax.{cols}"] = (SOFTMAX, "softmax", {"COLS": cols})
        rows[f"layernorm.{cols}"] = (LAYERNORM, "layernorm", {"COLS": cols})
        rows[f"rmsnorm.{cols}"] = (RMSNORM, "rmsnorm", {"COLS": cols})
    for cols in (2048, 4096, 8192, 16384):
        rows[f"softmax.online{cols}"] = (SOFTMAX, "softmax_online", {"COLS": cols})
        rows[f"layernorm.long{cols}"] = (LAYERNORM, "layernorm_long", {"COLS": cols})
        rows[f"rmsnorm.long{cols}"] = (RMSNORM, "rmsnorm_long", {"COLS": cols})
    for keep, cols, threads in ((57344, 8192, 512), (57344, 8192, 1024), (65536, 8192, 1024),
                                (49152, 16384, 512)):
        metas = {"KEEP": keep, "COLS": cols, "THREADS": threads}
        name = f"shared{keep}+{cols}x{threads}"
        rows[f"softmax.{name}"] = (SOFTMAX, "softmax_shared", metas)
        rows[f"layernorm.{name}"] = (LAYERNORM, "layernorm_shared", metas)
        rows[f"rmsnorm.{name}"] = (RMSNORM, "rmsnorm_shared", metas)
    for bm, bn in ((32, 32), (64, 32), (32, 64), (64, 64), (64, 128), (128, 64), (128, 128)):
        rows[f"transpose.{bm}x{bn}"] = (TRANSPOSE, "transpose", {"BM": bm, "BN": bn})
    for block in (4096, 8192, 16384, 32768):
        rows[f"total.{block}"] = (REDUCE, "total", {"BLOCK": block})
        rows[f"block_sums.{block}"] = (REDUCE, "block_sums", {"BLOCK": block})
    for rows_of, cols in ((1, 1024), (1, 4096), (4, 1024), (8, 512)):
        rows[f"row_sum.{rows_of}x{cols}"] = (REDUCE, "row_sum", {"ROWS": rows_of, "COLS": cols})
    for block in (2048, 8192):
        rows[f"histogram.{block}"] = (HISTOGRAM, "histogram", {"BLOCK": block})
    for block, rounds, threads in ((8192, 4, 512), (8192, 16, 512), (16384, 8, 1024), (4096, 16, 256)):
        rows[f"histogram.shared{block}x{rounds}t{threads}"] = (HISTOGRAM, "histogram_shared", {
            "BINS": 256, "COPIES": 32, "BLOCK": block, "ROUNDS": rounds, "THREADS": threads})
    return rows


SWEEP_TILES = [  # BM, BN, bytes of a row of a stage, THREADS
    (128, 128, 128, 128), (128, 128, 128, 256), (128, 128, 64, 128), (128, 128, 64, 256),
    (128, 256, 128, 256), (256, 128, 128, 256), (128, 256, 64, 256), (256, 128, 64, 256),
    (64, 256, 128, 128), (256, 64, 128, 128), (128, 64, 128, 128), (64, 128, 128, 128),
    (64, 64, 128, 128), (32, 128, 128, 128), (16, 128, 128, 128), (16, 64, 128, 128),
]


def sweeps(element="bf16", tiles=None, depths=(3, 4, 5, 6), groups=(8,)):
    """Tile configurations of the GEMM that fit into shared memory."""
    rows = {}
    size = ELEMENT_BYTES[element]
    for (bm, bn, row, threads), stages, group in itertools.product(
            tiles or SWEEP_TILES, depths, groups):
        if stages * (bm + bn) * row > SHARED_LIMIT:
            continue
        name = f"sweep_{element}.{bm}x{bn}x{row // size}s{stages}t{threads}g{group}"
        rows[name] = (SWEEP, "gemm", {
            "BM": bm, "BN": bn, "BK": row // size, "STAGES": stages, "THREADS": threads,
            "GROUP": group, "T": element, "ACC": GEMM_TYPES[element][0],
            "OUT": GEMM_TYPES[element][1]})
    return rows


def all_rows():
    found = {**checks(), **rows(), **family(), **everyday(), **times(), **products(), **sweeps()}
    few = [(128, 128, 128, 128), (128, 128, 128, 256), (128, 256, 128, 256), (256, 128, 128, 256)]
    for element in ("f16", "tf32", "i8", "e4m3"):
        found.update(sweeps(element, few, (3, 4)))
    found.update(sweeps("bf16", few, (3, 4), (4, 16)))
    return found


def command(tirc, row, arch):
    path, kernel, metas = row
    sets = [text for key, value in metas.items() for text in ("-D", f"{key}={value}")]
    only = ["--kernel", kernel] if kernel else []
    table = path.with_suffix(".tuned")
    tuned = [f"--tuned={table}"] if table.exists() else []
    return [tirc, "build", str(path), *only, f"--arch={arch}", *tuned, *sets]


def usage(tirc, row, arch, ptxas):
    """Registers and spilled bytes of the first variant, as ptxas reports them."""
    with tempfile.NamedTemporaryFile(suffix=".ptx") as ptx:
        subprocess.run([*command(tirc, row, arch), "--emit=ptx", "-o", ptx.name], check=True,
                       timeout=120)
        text = subprocess.run([ptxas, "-v", f"-arch={arch}", "-o", "/dev/null", ptx.name],
                              capture_output=True, text=True, timeout=300).stderr
    part = text.split(f"Compiling entry function '{row[1]}'")[-1]
    registers = re.search(r"Used (\d+) registers", part)
    spills = re.search(r"(\d+) bytes spill stores", part)
    return f"{registers[1]} registers, {spills[1]} bytes spilled" if registers and spills else text


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--tirc", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--arch", default="sm_90a")
    parser.add_argument("--only", default="*")
    parser.add_argument("--heads", type=int, metavar="SEED", help="what random_sizes.py draws as head_sizes")
    parser.add_argument("--cases", type=int, default=20, help="of each set of heads")
    parser.add_argument("--ptxas")
    options = parser.parse_args()
    out = pathlib.Path(options.out)
    out.mkdir(parents=True, exist_ok=True)
    built, failed, notes = 0, [], []
    drawn = {} if options.heads is None else heads.rows(EXAMPLES, options.heads, options.cases)
    for name, row in {**all_rows(), **drawn}.items():
        if not fnmatch.fnmatch(name, options.only):
            continue
        target = out / f"{name}.tira"
        target.unlink(missing_ok=True)
        try:
            done = subprocess.run([*command(options.tirc, row, options.arch), "-o", str(target)],
                                  capture_output=True, text=True, timeout=120)
        except subprocess.TimeoutExpired:
            failed.append(f"{name}: no result after 120 s")
            continue
        if done.returncode:
            failed.append(f"{name}: {done.stderr.strip().splitlines()[:1]}")
            continue
        built += 1
        if options.ptxas:
            notes.append(f"{name}: {usage(options.tirc, row, options.arch, options.ptxas)}")
            print(notes[-1], flush=True)
    if notes:
        (out / "usage.txt").write_text("\n".join(notes) + "\n")
    for line in failed:
        print(line)
    size = sum(file.stat().st_size for file in out.glob("*.tira"))
    print(f"{built} built, {len(failed)} failed, {size / 2**20:.1f} MiB in {out}")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
