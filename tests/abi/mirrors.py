#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Holds the structures of tools/bench/tirrt.py, and those that it imports, against the headers that they mirror.

Usage: mirrors.py CC INCLUDE TIRRT.py

A C program prints the size of each structure and where its members lie.
"""

import ctypes
import importlib.util
import pathlib
import subprocess
import sys
import tempfile
import types

STRUCTURES = {
    "Str": "tir_str", "Error": "tir_error", "TensorArg": "tir_rt_tensor",
    "ScalarArg": "tir_rt_scalar", "Arg": "tir_rt_arg", "Report": "tir_rt_launch_report",
    "LaunchOptions": "tir_rt_launch_options", "Usage": "tir_rt_usage",
    "Extent": "tir_extent", "Param": "tir_artifact_param", "Formula": "tir_formula",
    "Variant": "tir_artifact_variant", "Sequence": "tir_artifact_sequence",
    "Meta": "tir_artifact_meta", "KernelDesc": "tir_artifact_kernel",
    "ArtifactDesc": "tir_artifact_desc",
}


class Anything(types.ModuleType):
    """Stands for torch, whose types are of no interest here."""

    def __getattr__(self, name):
        return Anything(name)


def load(path):
    sys.modules["torch"] = Anything("torch")
    sys.path.insert(0, str(pathlib.Path(path).parent))  # of what it imports
    spec = importlib.util.spec_from_file_location("tirrt", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def layout(structure):
    yield "", ctypes.sizeof(structure)
    for name, *_ in structure._fields_:
        yield name.rstrip("_"), getattr(structure, name).offset


def program(tirrt):
    lines = ["#include <stddef.h>", "#include <stdio.h>", '#include "tir/runtime.h"',
             "int main(void) {"]
    for mirror, name in STRUCTURES.items():
        lines.append(f'printf("{mirror}  %zu\\n", sizeof({name}));')
        lines += [f'printf("{mirror} {member} %zu\\n", offsetof({name}, {member}));'
                  for member, _ in layout(getattr(tirrt, mirror)) if member]
    return "\n".join([*lines, "return 0; }", ""])


def main(compiler, include, path):
    tirrt = load(path)
    missing = [name for name, value in vars(tirrt).items()
               if isinstance(value, type) and issubclass(value, ctypes.Structure)
               and value is not ctypes.Structure and name not in STRUCTURES]
    assert not missing, f"held against nothing: {missing}"
    with tempfile.TemporaryDirectory() as folder:
        source, binary = pathlib.Path(folder, "layout.c"), pathlib.Path(folder, "layout")
        source.write_text(program(tirrt))
        subprocess.run([compiler, "-std=c11", f"-I{include}", source, "-o", binary], check=True)
        printed = subprocess.run([binary], check=True, capture_output=True, text=True).stdout
    wrong = 0
    for line in printed.splitlines():
        mirror, member, at = line.split(" ")
        ours = dict(layout(getattr(tirrt, mirror)))[member]
        if ours != int(at):
            wrong += 1
            print(f"{mirror}.{member or '(size)'}: {ours}, in the header {at}")
    print(f"{len(printed.splitlines()) - wrong} passed, {wrong} failed")
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:4]))
