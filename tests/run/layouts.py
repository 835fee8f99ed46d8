#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every operation on tiles, from every layout into every other, on the emulator.

usage: layouts.py TIRC [--seed=N] [--count=N]

A program is a chain of operations on tiles whose layouts are stated: random ones, in which the bits
of each dimension are dealt out to registers, lanes and warps in any order, and those of products.
So the result of each operation meets the wish of every other. All values are whole numbers, so
that what the interpreter computes from the program as it was written is what must come out.
"""

import os
import random
import subprocess
import sys
import tempfile

COMPOSE = """
// Associative, and the order matters: x -> m x + b in 16 bits each, a's after b's.
fn compose(a, b)
{
    let m = (a & 65535) * (b & 65535);
    let c = (a & 65535) * (b >> 16) + (a >> 16);
    return (m & 65535) | (c << 16);
}
"""
KINDS = ["sum", "max", "compose"]


def factors(n):
    found, p = [], 2
    while n > 1:
        while n % p == 0:
            found.append(p)
            n //= p
        p += 1
    return found


def layout(rng, shape, warps):
    """A random layout: who takes each factor of each dimension, and in which order."""
    room = {"laneid": 32, "warpid": warps}
    iters = []
    for size in shape:
        for p in factors(size):
            axes = [""] + [a for a in room if room[a] % p == 0]
            axis = rng.choice(axes + axes[1:])
            if axis:
                room[axis] //= p
            iters.append([p, axis, 0])
    for size in [n for n in factors(room["laneid"])]:
        iters.append([size, "laneid", 0])
    for size in [n for n in factors(room["warpid"])]:
        iters.append([size, "warpid", 0])
    for axis in ["", "laneid", "warpid"]:
        stride, own = 1, [it for it in iters if it[1] == axis]
        rng.shuffle(own)
        for it in own:
            it[2] = stride
            stride *= it[0]

    def text(some):
        extents = ", ".join(str(it[0]) for it in some)
        strides = ", ".join(str(it[2]) + ("@" + it[1] if it[1] else "") for it in some)
        return f"({extents}) : ({strides})"
    used = sum(len(factors(n)) for n in shape)
    replicas = iters[used:]
    return f"S[{text(iters[:used])}]" + (f" + R[{text(replicas)}]" if replicas else "")


class Program:
    def __init__(self, rng):
        self.rng = rng
        self.warps = rng.choice([1, 2, 4, 8])
        self.body, self.params, self.given = [], [], []
        self.shared = []
        self.tiles = []  # name, shape
        self.count = 0

    def name(self, prefix="v"):
        self.count += 1
        return f"{prefix}{self.count}"

    def type(self, shape, elem="u32"):
        return f"{elem}[{', '.join(map(str, shape))}]"

    def let(self, shape, expression, elem="u32"):
        """expression in a layout of its own, or (one time in four) in what follows."""
        name = self.name()
        where = f" in {layout(self.rng, shape, self.warps)}" if self.rng.random() < 0.75 else ""
        self.body.append(f"let {name}: {self.type(shape, elem)}{where} = {expression};")
        if elem == "u32":
            self.tiles.append((name, tuple(shape)))
        return name

    def source(self, shape):
        name = self.name("X")
        self.params.append(f"{name}: {self.type(shape)}")
        self.given.append(f"{name}=arange")
        index = ", ".join(":" for _ in shape)
        return self.let(shape, f"{name}[{index}] * 2654435761 + 12345 * load({name}[{index}])")

    def store(self, name, shape, elem="u32"):
        out = self.name("O")
        self.params.append(f"{out}: out {self.type(shape, elem)}")
        self.body.append(f"{out}[{', '.join(':' for _ in shape)}] = {name};")

    # Operations: each makes one tile, or more, of tile x.

    def scan(self, x, shape):
        axis, kind = self.rng.randrange(len(shape)), self.rng.choice(KINDS)
        self.let(shape, f"scan({x}, axis = {axis}, {kind})")

    def reduce(self, x, shape):
        axis, kind = self.rng.randrange(len(shape)), self.rng.choice(KINDS)
        kept = [1 if d == axis else n for d, n in enumerate(shape)]
        y = self.let(kept, f"reduce({x}, axis = {axis}, {kind})")
        self.let(shape, f"{x} ^ {y}")
        if len(shape) > 1:
            index = ", ".join("0" if d == axis else ":" for d in range(len(shape)))
            self.let([n for d, n in enumerate(shape) if d != axis], f"{y}[{index}]")

    def elementwise(self, x, shape):
        others = [name for name, s in self.tiles if s == shape]
        y = self.rng.choice(others)
        c = self.let(shape, f"{x} > {y}", "bool")
        self.let(shape, f"where({c}, {x} - {y}, {y} * 3)")

    def cast(self, x, shape):
        y = self.let(shape, f"bf16({x} & 255)", "bf16")
        z = self.let(shape, f"u32({y})")
        self.let(shape, f"bitcast(u32, bitcast(f32, {z} | 1065353216))")

    def permute(self, x, shape):
        order = list(range(len(shape)))
        self.rng.shuffle(order)
        if len(shape) == 2 and self.rng.random() < 0.5:
            self.let(shape[::-1], f"{x}.T")
        else:
            self.let([shape[d] for d in order], f"permute({x}, permutation = {order})")

    def broadcast(self, x, shape):
        if len(shape) == 1:
            n = self.rng.choice([2, 4, 8])
            y = self.let([n, shape[0]], f"broadcast({x}[None, :])")
            self.let([n, shape[0]], f"{y} + u32(rows({y}))")
        else:
            self.let(shape, f"{x} + u32(iota({shape[-1]}))" +
                     "[" + "None, " * (len(shape) - 1) + ":]")

    def extract(self, x, shape):
        part = [self.rng.choice([d for d in range(1, n + 1) if n % d == 0]) for n in shape]
        start = [self.rng.randrange(0, n - p + 1, p) for n, p in zip(shape, part)]
        self.let(part, f"extract({x}, start = {start})")

    def gather(self, x, shape):
        n = shape[0]
        table = self.name("T")
        self.params.append(f"{table}: u32[{n}]")
        self.given.append(f"{table}=arange")
        index = self.let(shape, f"{x} % {n}")
        self.let(shape, f"{table}[i32({index})] + 7")

    def through_shared(self, x, shape):
        buffer = self.name("s")
        self.shared.append(f"shared {buffer}: {self.type(shape)};")
        every = ", ".join(":" for _ in shape)
        self.body.append(f"{buffer}[{every}] = {x};")
        self.let(shape, f"load({buffer}[{every}])")

    def atomic(self, x, shape):
        out = self.name("O")
        self.params.append(f"{out}: inout {self.type(shape)}")
        self.given.append(f"{out}=arange")
        self.let(shape, f"atomic_add({out}[{', '.join(':' for _ in shape)}], {x})")

    def carried(self, x, shape):
        y = self.name("w")
        where = f" in {layout(self.rng, shape, self.warps)}"
        self.body.append(f"var {y}: {self.type(shape)}{where} = {x};")
        self.body.append(f"for i in range(N) {{ if i % 2 == 0 {{ {y} = {y} * 3 + {x}; }} "
                         f"else {{ {y} = {y} ^ scan({x}, axis = 0, max); }} }}")
        self.let(shape, f"{y} + 1")

    def product(self, x, shape):
        m, n, k = (self.rng.choice([16, 32, 64]) for _ in range(3))
        left, right = self.name("A"), self.name("B")
        self.params += [f"{left}: u32[{m}, {k}]", f"{right}: u32[{k}, {n}]"]
        self.given += [f"{left}=arange", f"{right}=arange"]
        a = self.let([m, k], f"bf16({left}[:, :] % 5)", "bf16")
        b = self.let([k, n], f"bf16({right}[:, :] % 3)", "bf16")
        where = f" in {layout(self.rng, [m, n], self.warps)}" if self.rng.random() < 0.5 else ""
        acc, first = self.name("acc"), self.name("D")
        self.params.append(f"{first}: f32[{m}, {n}]")
        self.given.append(f"{first}=arange")
        begin = self.rng.choice(["0", f"{first}[:, :]"])
        self.body.append(f"var {acc}: f32[{m}, {n}]{where} = {begin};")
        self.body.append(f"{acc} += dot({a}, {b});")
        name = self.name()  # as the product leaves it
        self.body.append(f"let {name} = u32({acc});")
        self.tiles.append((name, (m, n)))

    def text(self):
        rank = self.rng.choice([1, 2, 2, 2, 3])
        sizes = {1: [1, 4, 16, 48, 64, 96, 256], 2: [1, 2, 8, 16, 24, 32, 64], 3: [2, 4, 6, 16]}
        shape = [self.rng.choice(sizes[rank]) for _ in range(rank)]
        self.source(tuple(shape))
        operations = [self.scan, self.scan, self.reduce, self.reduce, self.elementwise, self.cast,
                      self.permute, self.broadcast, self.extract, self.gather, self.through_shared,
                      self.atomic, self.carried, self.product]
        for _ in range(6):
            name, shape = self.rng.choice(self.tiles[-3:])
            self.rng.choice(operations)(name, shape)
        for name, shape in list(self.tiles):
            self.store(name, shape)
        lines = "\n".join("        " + line for line in self.body)
        shared = "\n".join("    " + line for line in self.shared)
        return (COMPOSE + f"\nkernel k({', '.join(self.params)}, N: i32) "
                f"threads({32 * self.warps})\n{{\n{shared}\n"
                f"    for z in tiles(1) {{\n{lines}\n    }}\n}}\n")


def run(tirc, seed, folder):
    rng = random.Random(seed)
    program = Program(rng)
    source = os.path.join(folder, "layouts.tir")
    with open(source, "w", encoding="utf-8") as file:
        file.write(program.text())
    arch = rng.choice(["sm_80", "sm_90a"])
    command = [tirc, "run", source, "--check", "--verify", "--emu-check=full", "--device=emu",
               f"--arch={arch}", "N=2"] + program.given
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=100)
    except subprocess.TimeoutExpired:
        print("takes more than 100 s")
        return False
    if done.returncode == 0:
        return True
    print(done.stdout[-1000:] + done.stderr[-2000:], "exit code", done.returncode)
    with open(source, encoding="utf-8") as file:
        print(file.read())
    print(" ".join(command), f"(seed {seed})")
    return False


def main():
    options = dict(a[2:].split("=") for a in sys.argv[2:])
    first = int(options.get("seed", random.SystemRandom().randrange(1 << 30)))
    count = int(options.get("count", 60))
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(first, first + count):
            failed += not run(sys.argv[1], seed, folder)
    print(f"seeds {first} to {first + count - 1}: {failed} failed")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
