#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs one example with `tirc run --check` on the emulator, or another device, at awkward sizes.

usage: run.py TIRC EXAMPLE [DEVICE [PART PARTS]]

Sizes are 1, odd, prime, tile - 1, tile, tile + 1 and several tiles; small tiles are chosen where
they show the same edges in less time. A case is the arguments of one `tirc run`. The commands of
the example's page that do not name a device are run too, in part 0 of PARTS.
"""

import itertools
import os
import re
import shlex
import shutil
import struct
import subprocess
import sys
import tempfile

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
EXAMPLES = os.path.join(ROOT, "examples")
sys.path.insert(0, os.path.join(ROOT, "tools"))
import configurations as stated  # pylint: disable=wrong-import-position


def sizes(tile):
    """1, odd, prime, tile - 1, tile, tile + 1, large."""
    return [1, 3, 61, tile - 1, tile, tile + 1, 3 * tile + 5]


def add():
    for n in sizes(256):
        yield ["add.tir", "-D", "BLOCK=256", f"N={n}"]
    yield ["add.tir", "N=5003"]
    yield ["add.tir", "N=5003", "-D", "T=bf16"]
    yield ["add.tir", "N=1000", "-D", "T=i32"]
    yield ["add.tir", "N=1000", "A=randn,offset=1", "B=randn,strides=2"]
    yield ["add.tir", "N=0"]
    yield ["add.tir", "N=100003"]


def shared(run):
    """Rows partly in shared memory, partly in registers: either part empty, ragged or full."""
    for n in [1, 127, 128, 129, 383, 384, 385, 511, 512]:
        yield run + ["-D", "KEEP=384", "-D", "COLS=128", "-D", "THREADS=64", "M=3", f"N={n}"]
    yield run + ["-D", "T=f32", "-D", "KEEP=4096", "M=2", "N=8000", "X=randn:100:1,pad=4"]
    yield run + ["M=3", "N=11003"]
    yield run + ["M=2", "N=12288"]


def rows(run):
    """Rows of every configuration: the last that each holds, and the first that it does not."""
    for m, n in [(65, 1), (65, 64), (33, 65), (33, 129), (9, 512), (5, 513), (3, 1025), (3, 4096),
                 (2, 4097), (2, 8193), (2, 16385), (1, 32768), (1, 32769)]:
        yield run + [f"M={m}", f"N={n}"]
    yield run + ["-D", "T=f32", "M=5", "N=999", "X=randn,pad=3"]


def block_scales():
    bytes_of = ["A=randint:0:255", "B=randint:0:255"]
    for target in [[], ["--arch=sm_100a", "--device=emu"]]:
        for m, n, k in [(1, 1, 32), (61, 131, 96), (127, 128, 288)]:
            yield ["scaled.tir", "--kernel=mxfp8", f"M={m}", f"N={n}", f"K={k}", *target]
            for four in [[], ["-D", "GROUP=16", "-D", "S=ue4m3"]]:
                yield ["scaled.tir", "--kernel=fp4", *four, f"M={n}", f"N={m}", f"H={k // 2}", *bytes_of, *target]
    yield ["scaled.tir", "--kernel=mxfp8", "-D", "T=e5m2", "-D", "BN=64", "M=70", "N=70", "K=160"]


def softmax():
    for kernel in ["softmax", "softmax_online"]:
        for n in sizes(256):
            if kernel == "softmax" and n > 512:
                continue  # where N <= COLS
            cols = 512 if n > 256 and kernel == "softmax" else 256
            yield ["softmax.tir", "--kernel", kernel, "-D", f"COLS={cols}", "M=3", f"N={n}"]
        yield ["softmax.tir", "--kernel", kernel, "M=2", "N=4001"]
        yield ["softmax.tir", "--kernel", kernel, "-D", "T=f32", "M=2", "N=999", "X=randn,pad=3"]
    yield ["softmax.tir", "--kernel", "softmax_online", "M=3", "N=30011"]
    yield from shared(["softmax.tir", "--kernel", "softmax_shared"])
    yield from rows(["softmax.tir", "--kernel", "softmax_rows"])


def configurations(path):
    """What each configuration of a kernel of products says, with what it leaves out."""
    given = {"BK": "64", "CM": "1", "CN": "1", "STAGES": "12", "SPLIT": "false", "FLIP": "false",
             "PAD": "false"}
    for config in stated.configurations(os.path.join(EXAMPLES, path)):
        yield {**given, **{k: v for k, v in config.items() if k != "needs"}}


def gemm():
    small = ["gemm.tir", "-D", "BM=64", "-D", "BN=64", "-D", "BK=32", "-D", "STAGES=3"]
    edges = [1, 3, 31, 61, 63, 64, 65, 197]
    for i, m in enumerate(edges):
        n, k = edges[(i + 3) % 8], edges[(i + 5) % 8]
        yield small + [f"M={m}", f"N={n}", f"K={k}"]
    for k in [0, 32, 64, 96, 128]:  # iterations around the number of stages
        yield small + ["M=64", "N=64", f"K={k}"]
    yield ["gemm.tir", "M=128", "N=128", "K=128"]
    yield ["gemm.tir", "M=129", "N=127", "K=65"]
    yield small + ["M=100", "N=72", "K=80", "A=randn,pad=3", "B=randn,offset=1", "D=randn,pad=5"]
    for types in ["T=f16", "T=tf32", "T=f32", "T=e4m3"]:
        yield small + ["-D", types, "-D", "OUT=f32", "M=65", "N=70", "K=100"]
    yield ["gemm.tir", "M=300", "N=264", "K=200"]
    yield small + ["-D", "T=i8", "-D", "ACC=i32", "-D", "OUT=i32", "M=65", "N=70", "K=100"]
    few = ["-D", "BM=16", "-D", "BN=64", "-D", "BK=128", "-D", "FLIP=true"]
    for how in [[], ["-D", "SPLIT=true"], ["-D", "PAD=true"],
                ["-D", "PAD=true", "-D", "SPLIT=true"], few, [*few, "-D", "SPLIT=true"]]:
        tile = [] if how[:2] == few[:2] else ["-D", "BM=64", "-D", "BN=64"]
        yield ["matmul.tir", *tile, *how, "M=100", "N=70", "K=600"]
        yield ["matmul.tir", *tile, *how, "M=3", "N=129", "K=777"]
    yield ["matmul.tir", "M=64", "N=64", "K=8192"]  # the model takes sums that CTAs share
    yield ["matmul.tir", "M=65", "N=63", "K=3001"]  # and rows that are copied first
    yield ["matmul.tir", "--arch=sm_90a", "M=300", "N=7", "K=1502"]  # and words of rows
    yield ["matmul.tir", "--arch=sm_90a", "M=5", "N=300", "K=1502", "A=randn,pad=2", "D=randn,pad=5"]
    for k in [0, 1, 16]:
        yield ["matmul.tir", "M=5", "N=9", f"K={k}"]
    for tile in configurations("03_gemm/matmul.tir"):  # a cluster's tiles and a bit, three rounds
        m, n = (int(tile[edge]) * int(tile[together]) for edge, together in (("BM", "CM"), ("BN", "CN")))
        k = 2 * int(tile["BK"]) + (9 if tile["PAD"] == "true" else 10 if "WORDS" in tile else 8)
        yield ["matmul.tir", "--arch=sm_90a", *(word for name, value in tile.items()
                                                for word in ("-D", f"{name}={value}")),
               f"M={m + 3}", f"N={n + 8}", f"K={k}"]


def reduce():
    for n in sizes(128):
        yield ["reduce.tir", "--kernel", "row_sum", "-D", "COLS=128", "M=5", f"N={n}"]
        yield ["reduce.tir", "--kernel", "total", "-D", "BLOCK=128", f"N={n}"]
        yield ["reduce.tir", "--kernel", "block_sums", "-D", "BLOCK=128", f"N={n}",
               f"B={-(-n // 128)}"]
    yield ["reduce.tir", "--kernel", "row_sum", "M=7", "N=3001"]
    yield ["reduce.tir", "--kernel", "total", "N=20011"]
    yield ["reduce.tir", "--kernel", "block_sums", "N=20011", "B=3"]


def norm():
    for name in ["layernorm", "rmsnorm"]:
        for kernel in [name, name + "_long"]:
            run = [name + ".tir", "--kernel", kernel, "eps=1e-5"]
            for n in sizes(128):
                if kernel == name and n > 256:
                    continue  # where N <= COLS
                cols = 256 if n > 128 and kernel == name else 128
                yield run + ["-D", f"COLS={cols}", "M=3", f"N={n}"]
            yield run + ["M=2", "N=4001"]
            if kernel != name:
                yield run + ["M=3", "N=20011"]
            yield run + ["-D", "T=f32", "M=2", "N=1000", "X=randn:100:1,pad=1"]
        yield from shared([name + ".tir", "--kernel", name + "_shared", "eps=1e-5"])
        yield from rows([name + ".tir", "--kernel", name + "_rows", "eps=1e-5"])


def transpose():
    edges = [1, 3, 61, 63, 64, 65, 197]
    for i, m in enumerate(edges):
        yield ["transpose.tir", f"M={m}", f"N={edges[(i + 2) % 7]}"]
    yield ["transpose.tir", "-D", "T=f32", "-D", "BM=32", "-D", "BN=32", "M=100", "N=77"]
    yield ["transpose.tir", "-D", "T=i8", "M=100", "N=77", "Y=randint:0:9,pad=5"]
    yield ["transpose.tir", "M=500", "N=331"]


def histogram():
    shared = {"BLOCK": 256, "ROUNDS": 2, "BINS": 64, "COPIES": 4, "THREADS": 64}
    for kernel, metas in [("histogram", {"BLOCK": 256}), ("histogram_shared", shared)]:
        tile = [word for name, value in metas.items() for word in ("-D", f"{name}={value}")]
        for n in sizes(256):
            yield ["histogram.tir", "--kernel", kernel, *tile, f"N={n}", "B=61",
                   "X=randint:0:60", "H=randint:0:9"]
    yield ["histogram.tir", "--kernel", "histogram", "N=5000", "B=7", "X=randint:-9:9", "H=zeros"]
    yield ["histogram.tir", "--kernel", "histogram_shared", "N=40000", "B=200", "-D", "BINS=256",
           "-D", "COPIES=32", "X=randint:-300:300", "H=zeros"]
    yield ["histogram.tir", "--kernel", "histogram_shared", "N=5000", "B=1000",
           "X=randint:0:999", "H=zeros"]


def cooperative():
    for n in sizes(256):
        for rest in [["heat", "rounds=3", "c=0.25"], ["softmax"]]:
            yield ["cooperative.tir", "--kernel", rest[0], "-D", "CTAS=3", f"N={n}", *rest[1:]]
    for rounds in [0, 1, 2]:
        yield ["cooperative.tir", "--kernel", "heat", "N=2000", f"rounds={rounds}", "c=0.1"]
    yield ["cooperative.tir", "--kernel", "softmax", "N=40001"]


def simt():
    for n in sizes(256):
        yield ["simt.tir", "--kernel", "scale", f"N={n}", "a=0.5"]
        yield ["simt.tir", "--kernel", "cta_sum", "M=3", f"N={n}"]
    for g in [1, 3, 37]:
        yield ["simt.tir", "--kernel", "warp_sum", f"N={32 * g}", f"G={g}"]


def products(file, kernel, tile, extra=(), operands=("A", "B"), output="D"):
    """A product's edges: none, 1, odd, around the tile, several, and rows of odd distance."""
    bm, bn, bk = tile
    run = [file, "--kernel", kernel, "-D", f"BM={bm}", "-D", f"BN={bn}", *extra]
    run += ["-D", f"BK={bk}"] if kernel != "block_scales" else []
    first, second = (f"{name}={'randint:-9:9' if name == 'W' else 'randn'}" for name in operands)
    edges = {name: [0, 1, size - 1, size, size + 1, 2 * size + 5]
             for name, size in (("M", bm), ("N", bn), ("K", bk))}
    for i in range(6):
        yield run + [f"M={edges['M'][i]}", f"N={edges['N'][(i + 2) % 6]}", f"K={edges['K'][-1 - i]}"]
    for k in [0, bk, 2 * bk, 3 * bk, 4 * bk]:  # iterations around the number of stages
        yield run + [f"M={bm}", f"N={bn}", f"K={k}"]
    yield run + [f"M={bm + 8}", f"N={bn + 8}", f"K={bk + 8}"]
    yield run + [f"M={bm + 1}", f"N={bn + 2}", f"K={bk + 2}", first + ",pad=3",
                 second + ",offset=1", f"{output}=randn,pad=5"]


def with_sizes(cases, sizes):
    """Cases with further dimensions, which follow from the others."""
    for case in cases:
        known = {word[0]: int(word[2:]) for word in case if word[:2] in ("M=", "N=", "K=")}
        yield case + [f"{name}={size}" for name, size in sizes(**known).items()]


def epilogues():
    yield from products("epilogues.tir", "scaled", (32, 32, 32), ["alpha=0.5", "beta=-2"])
    yield from products("epilogues.tir", "residual", (32, 32, 32))
    yield from products("epilogues.tir", "row_column", (32, 32, 32))
    yield from products("epilogues.tir", "gated", (32, 32, 32), (), ("A", "U"))
    # What beta = 0 makes unread may be anything.
    yield ["epilogues.tir", "--kernel", "scaled", "M=65", "N=70", "K=100", "alpha=1", "beta=0",
           "C=full:nan"]
    for act in range(6):
        yield from products("epilogues.tir", "linear", (32, 32, 32), ["-D", f"ACT={act}"])
    # The tiles of the library: what is launched for these sizes, and each way of making the sums, which are 16 columns wide or
    # 2 rows high where the epilogue sees them.
    for act, how in enumerate(["", "FLIP=true BM=16", "SPLIT=true BM=64", "PAD=true BM=64", "CM=2 BM=64",
                               "FLIP=true SPLIT=true BM=16"]):
        given = [word for meta in how.split() for word in ("-D", meta)] + (["-D", "BN=64"] if how else [])
        yield ["linear.tir", *given, "-D", f"ACT={act}", "M=67", "N=130", "K=600"]
        yield ["linear.tir", *given, "-D", f"ACT={act}", "--arch=sm_90a", "M=70", "N=136", "K=520"]
    # Far out on both sides no activation may overflow.
    for act in range(6):
        yield ["epilogues.tir", "--kernel", "linear", "-D", f"ACT={act}", "-D", "T=f32", "M=17",
               "N=19", "K=64", "A=randn:0:20"]
    yield from with_sizes(products("epilogues.tir", "quantized", (32, 32, 32)),
                          lambda M, N, K: {"J": -(-N // 32)})
    yield from products("epilogues.tir", "quantized_rows", (32, 32, 32))
    # Rows of zeros, and numbers that e4m3 could not hold.
    yield ["epilogues.tir", "--kernel", "quantized", "M=40", "N=40", "K=40", "J=1", "A=zeros"]
    yield ["epilogues.tir", "--kernel", "quantized", "M=40", "N=140", "K=40", "J=2", "A=randn:0:1000"]
    # Outputs and inputs of no alignment or of 4 bytes, in chunks of columns beside large sums.
    for kernel, more in [("scaled", ["alpha=1.5", "beta=0.5"]), ("residual", []), ("linear", [])]:
        run = ["epilogues.tir", "--kernel", kernel, "-D", "BN=256", "-D", "STAGES=4", "--arch=sm_90a"]
        yield run + ["M=150", "N=203", "K=72", *more]
        yield run + ["M=129", "N=386", "K=72", *more]
        yield run + ["M=127", "N=203", "K=136", "D=randn,pad=3", *more]


def operands():
    for kernel in ["nn", "nt", "tn", "tt"]:
        yield from products("operands.tir", kernel, (32, 64, 32))
        run = ["operands.tir", "--kernel", kernel, "M=65", "N=70", "K=100"]
        yield run
        for types in [["T=f16", "OUT=f16"], ["T=tf32", "OUT=f32"], ["T=e4m3"],
                      ["T=i8", "ACC=i32", "OUT=i32"]]:
            yield run + ["-D", "BM=64", "-D", "BN=64"] + [w for t in types for w in ("-D", t)]
    for z in [0, 1, 3]:
        yield ["operands.tir", "--kernel", "batched", "M=40", "N=48", "K=72", f"Z={z}"]
    for case in products("operands.tir", "batched", (32, 32, 32), ["Z=2"]):
        yield case
    # One matrix for the whole batch; matrices that lie between each other's rows.
    run = ["operands.tir", "--kernel", "batched", "-D", "BM=32", "-D", "BN=32", "M=33", "N=40", "K=48",
           "Z=3"]
    yield run + ["B=randn,strides=0x48x1"]
    yield run + ["A=randn,strides=0x48x1", "B=randn,strides=0x0x1"]
    yield run + ["A=randn,strides=48x144x1", "B=randn,strides=48x144x1", "D=randn,strides=40x120x1"]
    yield run + ["A=randn,strides=1600x1x33", "D=randn,strides=1x120x3"]  # innermost not 1


def dequantized():
    run = "dequantized.tir"
    for group in [32, 64]:
        yield from with_sizes(
            products(run, "int8_weights", (32, 32, 32), ["-D", f"GROUP={group}"], ("A", "W")),
            lambda M, N, K, group=group: {"J": -(-K // group)})
    yield [run, "--kernel", "int8_weights", "M=70", "N=140", "K=300", "J=3", "S=rand:0:1,pad=1"]
    for m, n, groups in [(0, 3, 2), (3, 0, 1), (5, 7, 0), (1, 1, 1), (31, 33, 2), (33, 31, 3),
                         (32, 32, 4), (64, 65, 5)]:
        k = 32 * groups
        sizes = [f"M={m}", f"N={n}", f"K={k}", f"H={k // 2}", f"J={groups}"]
        for group in [[], ["A=randn,pad=1", "W=randint:0:255,offset=1", "S=randn,pad=1", "D=randn,pad=3"]]:
            yield [run, "--kernel", "int4_weights", "-D", "BM=32", "-D", "BN=32", "-D", "GROUP=32",
                   *sizes, *group]
        for kernel, half in [("quantize_int8", []), ("quantize_int4", [f"H={k // 2}"])]:
            yield [run, "--kernel", kernel, "-D", "GROUP=32", f"N={n}", f"K={k}", f"J={groups}", *half]
    yield [run, "--kernel", "quantize_int8", "N=7", "K=201", "J=2", "X=randn:0:9,pad=3", "S=rand,offset=1"]
    yield [run, "--kernel", "quantize_int4", "N=7", "K=128", "H=64", "J=1", "X=zeros"]
    yield [run, "--kernel", "int4_weights", "M=70", "N=140", "K=384", "H=192", "J=3"]
    for n, k in [(0, 64), (3, 0), (1, 128), (17, 192), (33, 256)]:
        packs = [run, "-D", "GROUP=64", f"N={n}", f"K={k}"]
        for kernel in ["pack_int8", "unpack_int8"]:
            yield [*packs, "--kernel", kernel]
        yield [*packs, "--kernel", "pack_int4", f"H={k // 2}", "X=randint:-8:7"]
        yield [*packs, "--kernel", "unpack_int4", f"H={k // 2}"]
        if n and k:
            yield [*packs, "--kernel", "int8_weights", "-D", "BK=64", "-D", "PACKED=true", "M=19", f"J={k // 64}"]
    few = ["-D", "BN=64", "-D", "STAGES=4", "-D", "SPLIT=true"]
    for config in [["-D", "BM=16", *few, "-D", "SMS=264"], ["-D", "BM=8", *few, "-D", "SMS=528"],
                   ["-D", "BM=64", "-D", "SPLIT=false"]]:
        for arch in ["sm_80", "sm_90a"]:
            yield [run, "--kernel", "int8_weights", *config, f"--arch={arch}", "M=3", "N=70", "K=1100", "J=9"]
            yield [run, "--kernel", "int8_weights", *config, f"--arch={arch}", "M=17", "N=136", "K=1040", "J=9"]
            yield [run, "--kernel", "int4_weights", *config, f"--arch={arch}", "M=3", "N=136", "K=1152",
                   "H=576", "J=9"]
    for arch in ["sm_80", "sm_90a"]:  # the configuration that the model takes, and each's empty sums
        for n, k, scales in ((1, 0, 0), (3, 1, 1), (5, 2047, 16), (66, 4099, 33)):  # one row of A
            yield [run, "--kernel", "int8_weights", f"--arch={arch}", "M=1", f"N={n}", f"K={k}", f"J={scales}"]
        yield [run, "--kernel", "int8_weights", f"--arch={arch}", "-D", "GROUP=48", "M=1", "N=9", "K=2100", "J=44"]
        yield [run, "--kernel", "int8_weights", f"--arch={arch}", "M=1", "N=264", "K=2056", "J=17"]
        yield [run, "--kernel", "int8_weights", f"--arch={arch}", "M=5", "N=264", "K=0", "J=0"]
        yield [run, "--kernel", "int8_weights", f"--arch={arch}", "-D", "BM=256", "M=300", "N=200", "K=64", "J=1"]
        yield [run, "--kernel", "int4_weights", f"--arch={arch}", "-D", "BM=256", "M=300", "N=200", "K=128",
               "H=64", "J=1"]


def fp8():
    for kernel in ["tensor_scales", "row_scales"]:
        yield from products("fp8.tir", kernel, (32, 32, 64))
        yield ["fp8.tir", "--kernel", kernel, "M=130", "N=70", "K=400"]
        # The model takes few rows turned, and sums that CTAs share.
        for m, n, k in [(3, 72, 384), (30, 129, 256), (64, 64, 8192), (16, 48, 8208)]:
            yield ["fp8.tir", "--kernel", kernel, "--arch=sm_90a", f"M={m}", f"N={n}", f"K={k}"]
    yield ["fp8.tir", "--kernel", "tensor_scales", "M=65", "N=70", "K=96", "ScaleA=full:3,offset=1",
           "-D", "T=e5m2", "-D", "BK=64"]

    def blocks(M, N, K):
        return {"J": -(-K // 128), "I": -(-N // 128)}
    yield from with_sizes(products("fp8.tir", "block_scales", (32, 32, 128)), blocks)
    run = ["fp8.tir", "--kernel", "block_scales"]
    for m, n, k in [(130, 257, 384), (128, 128, 512), (5, 129, 127), (5, 127, 129)]:
        for how in [[], ["--arch=sm_90a"]]:
            yield from with_sizes([run + how + [f"M={m}", f"N={n}", f"K={k}"]], blocks)
        yield from with_sizes([run + [f"M={m}", f"N={n}", f"K={k}", "A=randn,pad=1",
                                      "ScaleA=randn,pad=1", "ScaleB=randn,offset=1"]], blocks)


# Offsets of rows, as a table that the cases name: groups with none, one, around the tile, many rows.
TABLES = {
    "attention": {
        "queries.npy": [0, 0, 35, 36, 105],
        "keys.npy": [0, 10, 30, 71, 140],  # fewer keys than queries, and more
        "pages.npy": [[37 * i % 40 for i in range(40)]],  # each page once
    },
    "14_grouped": {
        "five.npy": [0, 5, 5, 69, 70, 165],
        "edges.npy": [0, 31, 63, 96, 96],
        "none.npy": [0, 0, 0],
        "one.npy": [0, 100],
        "later.npy": [7, 40, 72],  # rows before and after the groups belong to none
    },
}


def grouped():
    tile = ["-D", "BM=32", "-D", "BN=32", "-D", "BK=32"]
    for name, offsets in TABLES["14_grouped"].items():
        rows, groups = offsets[-1] + (5 if offsets[0] else 0), len(offsets) - 1
        run = ["grouped.tir", f"Offsets=@{name}"]
        most = rows // 32 + groups
        for at_a_time in [4, 64]:
            yield run + ["--kernel", "plan", "-D", "BM=32", "-D", f"MOST={at_a_time}", f"J={most}", "Table=@table.npy"]
        for n, k, more in [(32, 64, []), (33, 40, []), (70, 0, []), (1, 31, ["A=randn,pad=1"]),
                           (0, 64, []), (64, 96, ["D=randn,pad=1"])]:
            sizes = [*tile, f"M={rows}", f"E={groups}", f"N={n}", f"K={k}", *more]
            yield run + ["--kernel", "grouped", "-D", "MOST=4", *sizes]
            yield run + ["--kernel", "planned", *sizes, "Table=@table.npy"]
        for m, n, more in [(32, 32, []), (33, 40, []), (70, 1, ["A=randn,pad=1"]), (64, 64, [])]:
            yield run + ["--kernel", "gradient", *tile, f"M={m}", f"N={n}", f"K={rows}", f"E={groups}",
                         *more]
    yield ["grouped.tir", "Offsets=@five.npy", "--kernel", "plan", "J=8"]
    for kernel in ["grouped", "gradient"]:
        yield ["grouped.tir", "Offsets=@five.npy", "--kernel", kernel, "E=5", "N=140",
               *(["M=165", "K=200"] if kernel == "grouped" else ["M=200", "K=165"])]


def split_k():
    for parts in [1, 3, 8]:
        for kernel in ["split", "split_atomic"]:
            yield from products("split_k.tir", kernel, (32, 32, 32), ["-D", f"PARTS={parts}"])
        yield from products("split_k.tir", "stream", (32, 32, 32), [f"ctas={parts}"])
    yield ["split_k.tir", "--kernel", "stream", "M=20", "N=300", "K=1000", "ctas=7"]


def convolution():
    small = ["convolution.tir", "-D", "BM=32", "-D", "BN=32", "-D", "BK=16", "-D", "CM=1"]
    filters = [(1, 0), (2, 0), (3, 1), (5, 2), (3, 0)]
    for (taps, pad), stride in itertools.product(filters, [1, 2, 3]):
        metas = ["-D", f"R={taps}", "-D", f"S={taps}", "-D", f"PAD={pad}", "-D", f"STRIDE={stride}"]
        for sizes in ["B=3 H=5 V=7 C=16 F=33", "B=1 H=9 V=6 C=24 F=32"]:
            yield [*small, *metas, "-D", "SPLIT=false", *sizes.split()]
        yield [*small, *metas, "-D", "SPLIT=true", *"B=2 H=6 V=8 C=40 F=20".split()]
    for more in ["", "X=randn,pad=1", "X=randn,offset=1", "W=randn,pad=3 Y=randn,pad=1"]:
        yield [*small, "-D", "SPLIT=false", "B=2", "H=6", "V=5", "C=16", "F=32", *more.split()]
    for arch in ["sm_90a", "sm_100a"]: # the configurations, for pixels that no tile divides
        for metas in ["BM=128 BN=256", "BM=128 BN=192 CM=2", "BM=64 BN=64 SPLIT=false", "BM=128 BN=128 SPLIT=true"]:
            given = [word for meta in metas.split() for word in ("-D", meta)]
            yield ["convolution.tir", *given, f"--arch={arch}", "B=3", "H=9", "V=7", "C=64", "F=200"]
        yield ["convolution.tir", f"--arch={arch}", "-D", "T=f16", "-D", "OUT=f16", "B=2", "H=5", "V=3", "C=72", "F=64"]
    yield ["convolution.tir", "B=2", "H=5", "V=6", "C=64", "F=64"]


def block():
    for arch in ["sm_80", "sm_90a"]:
        for m, n, k in [(1, 1, 1), (3, 256, 512), (17, 65, 63), (131, 257, 70), (3, 64, 2000)]:
            yield ["block.tir", f"--arch={arch}", f"M={m}", f"N={n}", f"K={k}"]
    yield ["block.tir", "M=5", "N=40", "K=100"]


# What is changed about attention, and the arguments that come with it.
ATTENTION_FORMS = {"full": [], "causal": [], "window": ["width=37"], "soft_cap": ["limit=2"],
                   "alibi": ["Slope=rand:0:1"], "sinks": [], "padded": ["Keep=randint:0:1"]}


def attention_forms():
    """Every form on both targets: more keys than queries, fewer, one of each, none."""
    for arch in ["sm_80", "sm_90a"]:
        for form, more in ATTENTION_FORMS.items():
            run = ["forward.tir", "--kernel", form, f"--arch={arch}", "-D", "D=64", "-D", "BQ=64", "-D",
                   "BT=32", "scale=0.125", *more]
            for s, t in [(65, 127), (70, 33), (1, 1)]:
                yield run + ["B=1", "H=2", "G=1", f"S={s}", f"T={t}"]
            yield run + ["B=2", "H=1", "G=1", "S=3", "T=0"]
        for kernel in ["full", "causal"]:  # scores that f32 holds as they are, and some that it does not
            run = ["fixed.tir", "--kernel", kernel, f"--arch={arch}", "-D", "D=64", "-D", "BQ=64", "-D", "BT=32",
                   "scale=0.125", "B=1", "H=2", "G=1"]
            for s, t in [(65, 127), (70, 33), (1, 1), (3, 0)]:
                yield run + [f"S={s}", f"T={t}"]
                yield run + [f"S={s}", f"T={t}", "Q=randn:0:60"]
        run = ["forward.tir", "--kernel", "packed", f"--arch={arch}", "-D", "D=64", "-D", "BT=32",
               "scale=0.125", "B=1", "G=2"]
        for rows, s, t in [(20, 5, 77), (69, 23, 9), (8, 1, 100)]:
            yield run + [f"P={rows}", f"S={s}", f"T={t}"]
    for sizes in [["D=96"], ["D=192", "DV=128"], ["D=256"], ["D=64", "E=f16"]]:
        metas = [word for size in sizes for word in ("-D", size)]
        yield ["forward.tir", "--kernel", "causal", "--arch=sm_90a", *metas, "B=1", "H=1", "G=1", "S=30",
               "T=131", "scale=0.1"]


def attention_kin():
    for kernel in ["backward", "deterministic"]:  # tiles of 64 keys
        yield ["backward.tir", "--kernel", kernel, "--arch=sm_90a", "scale=0.125", "-D", "D=216", "B=1", "H=2", "G=1", "S=70",
               "T=130"]
    for metas, t in [([], 530), ([], 790), (["-D", "E=e4m3"], 130)]:  # with few keys V stays as it lies
        yield ["fp8.tir", "--arch=sm_90a", *metas, "scale=0.125", "value_scale=4", "B=1", "H=2", "G=1", "S=70", f"T={t}"]
    for arch in ["sm_80", "sm_90a"]:
        run = [f"--arch={arch}", "scale=0.125"]
        yield ["ragged.tir", *run, "-D", "D=64", "N=105", "M=140", "H=2", "G=1", "longest=70",
               "QStart=@queries.npy", "KStart=@keys.npy"]
        for s, t in [(65, 96), (1, 129), (129, 1)]:
            yield ["fp8.tir", *run, "value_scale=0.5", "B=1", "H=2", "G=1", f"S={s}", f"T={t}"]
            for kernel, causal in itertools.product(["backward", "deterministic"], ["true", "false"]):
                yield ["backward.tir", "--kernel", kernel, *run, "-D", "D=64", "-D", f"CAUSAL={causal}", "B=1", "H=2",
                       "G=1", f"S={s}", f"T={t}"]
        # Parts that are put together in one round, and in rounds of 16.
        for parts in [4, 7]:
            yield ["decode.tir", "--kernel", "decode", "-D", "BR=16", "-D", f"CTAS={parts}", *run, "-D", "D=64",
                   "-D", "BT=32", "B=1", "G=2", "R=9", "S=3", "T=230", "Length=randint:0:230"]
        for rows, s in [(1, 1), (8, 8), (66, 3)]:
            cache = [*run, "-D", "D=64", "-D", "CTAS=6", "-D", "BT=64", "B=2", "G=1", f"R={rows}", f"S={s}"]
            yield ["decode.tir", "--kernel", "decode", *cache, "T=300", "Length=randint:0:300"]
            if rows <= 16:
                yield ["decode.tir", "--kernel", "decode", "-D", "BR=16", "-D", "ALONE=true", "-D", "CTAS=2",
                       *run, "-D", "D=64", "B=2", "G=2", f"R={rows}", f"S={s}", "T=300", "Length=randint:0:300"]
                yield ["decode.tir", "--kernel", "decode", "-D", "BR=16", "-D", "BT=32", "-D", "ALONE=true", "-D",
                       "CTAS=1", *run, "-D", "D=64", "B=2", "G=2", f"R={rows}", f"S={s}", "T=300",
                       "Length=randint:0:300"]
            for page in [1, 7, 64]:
                yield ["decode.tir", "--kernel", "paged", *cache, f"PAGE={page}", "N=40",
                       f"I={-(-150 // page)}", "Table=randint:0:39", "Length=randint:0:150"]
                if rows <= 16 and arch == "sm_90a":  # tiles of 64 keys, and of 32
                    for batch in [3, 4]:
                        yield ["decode.tir", "--kernel", "paged", *run, "-D", "D=64", "-D", "BR=16", "-D", "ALONE=true",
                               "-D", "CTAS=1", f"B={batch}", "G=1", f"R={rows}", f"S={s}", f"PAGE={page}", "N=40",
                               f"I={-(-150 // page)}", "Table=randint:0:39", "Length=randint:0:150"]
        for words in [], ["-D", "INTERLEAVED=true"]:
            for s, heads, groups, wide in [(1, 1, 1, 64), (3, 6, 2, 128), (2, 17, 3, 64)]:
                rows = ["append.tir", f"--arch={arch}", "-D", f"D={wide}", *words, f"S={s}", f"H={heads}",
                        f"G={groups}", "N=60"]
                yield [*rows, "--kernel", "append", "B=3", "T=50", "Length=randint:0:55"]
                for page in [1, 7]:
                    yield [*rows, "--kernel", "append_paged", "B=1", f"PAGE={page}", "M=40", "I=40",
                           "Table=@pages.npy", f"Length=randint:{s}:45"]
        latent = ["latent.tir", *run, "-D", "DV=128", "-D", "DR=32", "B=2", "R=34", "S=2"]
        for ctas, t in [(132, 150), (6, 700), (2, 150)]:  # rounds that parts save, or do not, and no CTAs for them
            yield [*latent, "-D", f"CTAS={ctas}", f"T={t}", f"Length=randint:0:{t}"]
        # Parts for three rounds of CTAs.
        yield [*latent, "-D", "CTAS=3", "-D", "BT=16", "T=1300", "Length=randint:1200:1300"]
        for t in [0, 1, 64, 131]:
            yield ["linear.tir", "--kernel", "gated", f"--arch={arch}", "B=1", "H=2", f"T={t}", "A=rand:-1:0"]
            yield ["linear.tir", "--kernel", "delta", f"--arch={arch}", "B=1", "H=2", f"T={t}",
                   "Beta=rand:0:1", "K=randn:0:0.1"]
        for m, f in [(1, 1), (129, 200), (65, 0)]:
            yield ["mlp.tir", f"--arch={arch}", "-D", "BM=64", "-D", "BF=64", f"M={m}", f"F={f}"]


def attention():
    for causal, wide in [("true", 64), ("false", 64), ("true", 128), ("false", 128)]:
        run = ["attention.tir", "-D", f"CAUSAL={causal}", "-D", f"D={wide}", "-D", "BQ=64", "-D",
               "BT=32", "scale=0.09"]
        for s, t in [(1, 1), (1, 100), (64, 64), (63, 33), (65, 31), (100, 133), (133, 100), (7, 0),
                     (0, 7), (64, 192)]:
            yield run + ["B=1", "H=1", "G=1", f"S={s}", f"T={t}"]
        # Beyond what a short causal sequence is.
        yield run + ["B=1", "H=1", "G=1", "S=70", "T=1030" if wide == 64 else "T=2050"]
        yield run + ["B=2", "H=6", "G=2", "S=40", "T=40"]
        yield run + ["B=0", "H=2", "G=2", "S=40", "T=40"]
        yield run + ["B=2", "H=2", "G=1", "S=33", "T=65", "K=randn,pad=3", "V=randn,offset=1",
                     "Q=randn:0:30", "O=randn,pad=1"]
        # Heads innermost but one, as a projection leaves them: [B, S, H, D].
        strides = f"strides={140 * wide}x{wide}x{2 * wide}x1"
        yield run + ["B=1", "H=2", "G=2", "S=70", "T=70", f"Q=randn,{strides}", f"O=randn,{strides}"]
    yield from attention_forms()
    yield from attention_kin()
    yield ["attention.tir", "B=1", "H=2", "G=1", "S=150", "T=300", "scale=0.1"]


CASES = {
    "01_add": add,
    "02_softmax": softmax,
    "03_gemm": gemm,
    "04_reduce": reduce,
    "05_norm": norm,
    "06_transpose": transpose,
    "07_histogram": histogram,
    "09_simt": simt,
    "10_epilogues": epilogues,
    "11_operands": operands,
    "12_dequantized": dequantized,
    "13_fp8": fp8,
    "14_grouped": grouped,
    "15_split_k": split_k,
    "16_block": block,
    "17_cooperative": cooperative,
    "18_block_scales": block_scales,
    "19_convolution": convolution,
    "attention": attention,
}


def page_commands(folder):
    """The commands in the shell blocks of the page, but those for a device and what comes of its times."""
    in_block = False
    with open(os.path.join(folder, "README.md"), encoding="utf-8") as page:
        for line in page:
            if line.startswith("```"):
                in_block = line.startswith("```sh")
            elif in_block and "--device" not in line and ".tuned" not in line:
                yield shlex.split(line, comments=True)


def targets(tirc):
    page = subprocess.run([tirc, "--help-targets"], capture_output=True, text=True, check=True).stdout
    return re.findall(r"^\| `(sm_\w+)`", page, re.M)


def commands(tirc, example, device, part, parts):
    """Every parts-th case from part on; the first part has the page's commands, which may follow from each other."""
    cases = list(CASES[example]())
    yield from itertools.islice(runs(tirc, cases, device), part, None, parts)
    if not part:
        yield from page_runs(tirc, example, device)


def runs(tirc, cases, device):
    for case in cases:
        yield [tirc, "run", "--check", "--device", device, *case]
    if device == "emu":  # which runs what is compiled for any target
        for arch in targets(tirc)[1:]:  # the first is the default
            yield [tirc, "run", "--check", "--device", device, "--arch", arch, *cases[-1]]


def page_runs(tirc, example, device):
    for command in page_commands(os.path.join(EXAMPLES, example)):
        if command[:2] == ["tirc", "run"]:
            yield [tirc, "run", "--device", device, *command[2:]]
        elif command:
            yield [tirc, *command[1:]]


def write_table(path, numbers):
    shape = (len(numbers),)
    if isinstance(numbers[0], list):  # rows
        shape = (len(numbers), len(numbers[0]))
        numbers = [number for row in numbers for number in row]
    header = "{'descr': '<i4', 'fortran_order': False, 'shape': %s, }" % (shape,)
    header += " " * (-(11 + len(header)) % 64) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
        file.write(struct.pack(f"<{len(numbers)}i", *numbers))


def run_all(all_commands, folder):
    passed = failed = 0
    for command in all_commands:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
        if done.returncode == 0:
            passed += 1
            continue
        failed += 1
        print("FAILED (%d):" % done.returncode, " ".join(command))
        print(done.stdout + done.stderr)
    print(f"{passed} passed, {failed} failed")
    return failed > 0


def main():
    tirc, example = sys.argv[1:3]
    tirc = os.path.abspath(tirc)
    device = sys.argv[3] if len(sys.argv) > 3 else "emu"
    part, parts = map(int, sys.argv[4:6] or (0, 1))
    with tempfile.TemporaryDirectory() as folder:  # commands may write files
        copy = shutil.copytree(EXAMPLES, os.path.join(folder, "examples"))
        for name, numbers in TABLES.get(example, {}).items():
            write_table(os.path.join(copy, example, name), numbers)
        return run_all(commands(tirc, example, device, part, parts), os.path.join(copy, example))


if __name__ == "__main__":
    sys.exit(main())
