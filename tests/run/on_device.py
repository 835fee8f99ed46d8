#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs the kernel of a .tir file with `tirc run --check`, on the inputs that its comments state.

usage: on_device.py TIRC FILE.tir [DEVICE]

run_kernel.c says how the comments are written. Here the reference is the interpreter, which the
same file has already been held against; types that .npy files do not have get random numbers.
A run that must fail ends with exit status 1 or 2 and the text that the file states, of the reference
or, after "refused:", of the launch, or, after "gpu:", of a GPU. What is not specified for a device
is run and not compared.
"""

import os
import re
import struct
import subprocess
import sys
import tempfile

FORMATS = {"i8": "b", "i16": "h", "i32": "i", "i64": "q", "u8": "B", "u16": "H", "u32": "I",
           "u64": "Q", "f16": "e", "f32": "f", "f64": "d"}
LINE = re.compile(r"//: (\w+) (\w+)(?:\[([\d, ]*)\])?(?: = (.*?))?(?: ->.*)?$")


def write_npy(path, element, shape, numbers):
    code = FORMATS[element]
    kind = {"f": "f", "e": "f", "d": "f"}.get(code, "i" if element[0] == "i" else "u")
    size = struct.calcsize("<" + code)
    dims = ", ".join(str(n) for n in shape) + ("," if len(shape) == 1 else "")
    header = "{'descr': '%s%s%d', 'fortran_order': False, 'shape': (%s), }" % (
        "<" if size > 1 else "|", kind, size, dims)
    header += " " * (-(len(header) + 11) % 64) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
        file.write(struct.pack("<%d%s" % (len(numbers), code), *numbers))


def read_numbers(text, element, count):
    if text.startswith("ramp "):
        period = int(text.split()[1])
        numbers = [i % period - period // 2 for i in range(count)]
    else:
        numbers = [float(x) if element[0] == "f" else int(x) for x in text.split()]
    return [float(x) for x in numbers] if element[0] == "f" else numbers


def bindings(lines, source, folder):
    """What to say about each parameter; dimensions follow from the kernel's signature."""
    given = []
    names = {}  # of expressions in the signature
    for line in lines:
        meta = re.match(r"//: -D (\S+)", line)
        if meta:
            given.append("-D" + meta.group(1))
        stated = LINE.match(line)
        if not stated:
            continue
        name, element, dims, text = stated.groups()
        if dims is None:
            given.append(f"{name}={text}")
            continue
        shape = [int(n) for n in dims.split(",")]
        declared = re.search(r"\b%s: (?:inout |out )?\w+\[([^]]+)\]" % name, source).group(1)
        for axis, (dim, n) in enumerate(zip(declared.split(", "), shape)):
            is_meta = re.search(r"^//: -D %s=" % re.escape(dim), source, re.MULTILINE)
            if not dim.isdigit() and not is_meta:
                # The size of an expression is called after the first tensor that has it.
                called = dim if dim.isidentifier() else names.setdefault(dim, f"{name}_{axis}")
                given.append(f"{called}={n}")
        count = 1
        for n in shape:
            count *= n
        if text is not None and element in FORMATS:
            path = os.path.join(folder, name + ".npy")
            write_npy(path, element, shape, read_numbers(text, element, count))
            given.append(f"{name}=@{path}")
    return list(dict.fromkeys(given))


def main():
    tirc, path = sys.argv[1:3]
    device = sys.argv[3] if len(sys.argv) > 3 else "emu"
    with open(path, encoding="utf-8") as file:
        source = file.read()
    is_specified = not re.search("^//: unspecified", source, re.MULTILINE)
    failure = None
    for key in (["gpu"] if device == "cuda" else []) + ["refused", "fails"]:
        failure = failure or re.search(f"^//: {key}: (.*)", source, re.MULTILINE)
    if failure and failure[1] == "hangs":
        return 77
    with tempfile.TemporaryDirectory() as folder:
        checks = ["--check"] if is_specified else []
        checks += ["--emu-check=full"] if device == "emu" else []
        command = [tirc, "run", path, "--device", device, *checks,
                   *bindings(source.split("\n"), source, folder)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=100)
    # CTAs print in any order.
    prints = sorted(re.findall(r"^//: prints: (.*\n)", source, re.MULTILINE))
    printed = sorted(line for line in done.stdout.splitlines(True) if line in prints)
    said = done.stdout + done.stderr  # what a GPU prints comes on stdout
    good = done.returncode in (1, 2) and failure[1] in said if failure else done.returncode == 0
    good = good and prints == printed
    if not good:
        print(" ".join(command))
        print(said)
        print(f"expected: exit status 1 or 2 and \"{failure[1]}\"" if failure else "expected: exit status 0")
    return not good


if __name__ == "__main__":
    sys.exit(main())
