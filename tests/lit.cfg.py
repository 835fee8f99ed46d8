# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The lit suites: text in, text out, with FileCheck. Meson runs lit once for each folder and says
where things are: --param tirc=PROGRAM --param tools=LLVM_BIN --param out=FOLDER
--param fakecuda=FOLDER."""

import os
import sys

import lit.formats

root = os.path.dirname(__file__)
tools = lit_config.params["tools"]

config.name = "tir"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".tir", ".test"]
config.excludes = ["Inputs"]
config.test_source_root = root
config.test_exec_root = lit_config.params["out"]
config.substitutions += [
    ("%tirc", lit_config.params["tirc"]),
    ("%python", sys.executable),
    ("%docs", os.path.join(os.path.dirname(root), "docs")),
    ("%examples", os.path.join(os.path.dirname(root), "examples")),
    # %fakecuda COMMAND...: with a driver that has GPUs and computes nothing.
    ("%fakecuda", "env LD_LIBRARY_PATH=" + lit_config.params["fakecuda"]),
    # %exits 2 COMMAND...: the command must end with this very status.
    ("%exits", "sh " + os.path.join(root, "exits.sh")),
    ("FileCheck", os.path.join(tools, "FileCheck")),
    ("split-file", os.path.join(tools, "split-file")),
]
# `not` is part of lit's own shell. LLVM's other tools are found by the list above alone: a test that
# finds one by PATH would fail where LLVM's folder is not on it.
config.environment["PATH"] = os.pathsep.join(
    folder
    for folder in os.environ["PATH"].split(os.pathsep)
    if not folder or os.path.realpath(folder) != os.path.realpath(tools)
)

for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS"):
    if name in os.environ:
        config.environment[name] = os.environ[name]
