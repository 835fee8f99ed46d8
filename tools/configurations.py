# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The configurations of a kernel, as its file and the library's lists state them: a dictionary of texts for each."""

import pathlib
import re

LIBRARY = pathlib.Path(__file__).resolve().parents[1] / "compiler/front/library"
CLAUSE = re.compile(r"\bconfig\(([^)]*)\)|\bconfig (\w+)\.(\w+)")
IMPORT = re.compile(r'import "tir/(\w+\.tir)" as (\w+);')


def uncommented(path):
    return re.sub(r"//.*", "", pathlib.Path(path).read_text(encoding="utf-8"))


def named(files, module, name):
    """Those of the list `name` of the library's file that `module` stands for."""
    whole = uncommented(LIBRARY / files[module])
    return clauses(re.search(rf"^configs {name} {{(.*?)^}}", whole, re.MULTILINE | re.DOTALL)[1], {})


def clauses(text, files):
    for given, module, name in CLAUSE.findall(text):
        if name:
            yield from named(files, module, name)
        else:
            yield dict(re.findall(r"(\w+) = (\w+)", given))


def configurations(path):
    """Of a file with one kernel that has any, with what needs a feature of the target (`needs`)."""
    text = uncommented(path)
    return list(clauses(text[text.index("\nkernel "):], {alias: file for file, alias in IMPORT.findall(text)}))
