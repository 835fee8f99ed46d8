#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Headers of kernels whose names C, C++, the host or the header itself has other uses for.

Usage: header_names.py TIRC INCLUDE

Parameters, dimensions and kernels are called by every keyword of C and C++, every macro that is there before and
after the runtime's header, and every identifier of a header, as far as the language lets them be. What comes out must be
C and C++ by every standard. File names with a newline, and two files of one name, are tried too. Exits with 77 where
there is neither cc nor c++.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

KEYWORDS = """
auto break case char const continue default do double else enum extern float for goto if int long register return short
signed sizeof static struct switch typedef union unsigned void volatile while inline restrict _Bool _Complex _Imaginary
_Alignas _Alignof _Atomic _Generic _Noreturn _Static_assert _Thread_local alignas alignof bool constexpr false nullptr
static_assert thread_local true typeof typeof_unqual _BitInt _Decimal32 _Decimal64 _Decimal128 and and_eq asm bitand
bitor catch char8_t char16_t char32_t class co_await co_return co_yield compl concept consteval constinit const_cast
decltype delete dynamic_cast explicit export friend mutable namespace new noexcept not not_eq operator or or_eq private
protected public reinterpret_cast requires static_cast template this throw try typeid typename using virtual wchar_t
xor xor_eq int_ int__ double_ N X
""".split()
STANDARDS = (("cc", "c99"), ("cc", "c11"), ("cc", "gnu17"), ("cc", "c2x"), ("c++", "c++11"), ("c++", "gnu++20"))


def run(command, **options):
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


def kernel(words):
    """Each word is a scalar, a tensor or a dimension, one of them the kernel."""
    third = len(words) // 3
    scalars, tensors, dims = words[:third], words[third:2 * third], words[2 * third:]
    params = [f"{word}: {'f64' if i % 2 else 'i32'}" for i, word in enumerate(scalars)]
    params += [f"{word}: {'out ' if i == 0 else ''}f32[{dims[i]}]" for i, word in enumerate(tensors)]
    return (f"kernel {words[-1]}({', '.join(params)}) {{ for tile in tiles({dims[0]} by 64) "
            f"{{ {tensors[0]}[tile:+64] = f32({dims[0]}); }} }}\n")


def kernels(words):
    """Every word in each of the roles."""
    size = 30
    if len(words) < size:
        return kernel(words)
    turned = words + words[:size]
    return "".join(kernel(turned[i:i + size]) for i in range(0, len(words), size // 3))


def legal(tirc, words):
    """The words that the language lets a program use as names."""
    done = run([tirc, "fmt", "-", "--diagnostics=json"], input="".join(f"const {w} = 1;\n" for w in words))
    refused = {json.loads(line)["line"] - 1 for line in done.stderr.splitlines()}
    return [word for i, word in enumerate(words) if i not in refused]


def standards():
    return [(language, standard) for language, standard in STANDARDS if shutil.which(language)]


def compile_all(include, source, folder, how=("-fsyntax-only",)):
    path = os.path.join(folder, "host.c")
    with open(path, "w", encoding="utf-8") as file:
        file.write(source)
    for language, standard in standards():
        command = [language, *how, "-x", "c" if language == "cc" else "c++", f"-std={standard}",
                   "-Wall", "-Wextra", "-Werror", "-I", include, "-I", folder, path]
        done = run(command)
        if done.returncode:
            yield f"{' '.join(command)}\n{done.stderr[:4000]}"


def build(tirc, folder, name, source):
    path = os.path.join(folder, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(source)
    done = run([tirc, "build", path, "--emit=header", "-o", os.path.join(folder, "made.h")])
    if done.returncode:
        sys.exit(f"{name}: {done.stderr}")
    with open(os.path.join(folder, "made.h"), encoding="utf-8") as file:
        return file.read()


def words_of(tirc, include, folder):
    text = build(tirc, folder, "first.tir", kernels(["first", "second", "third"]))
    words = set(KEYWORDS) | set(re.findall(r"\b[A-Za-z_]\w*", text))
    for language, standard in standards():
        macros = run([language, "-x", "c" if language == "cc" else "c++", f"-std={standard}", "-dM", "-E",
                      "-I", include, "-include", "tir/runtime.h", os.devnull])
        words |= {w for w in re.findall(r"#define ([A-Za-z]\w*)", macros.stdout) if not w.startswith("TIR_")}
    return legal(tirc, sorted(words))


def main():
    tirc, include = sys.argv[1:]
    wrong = []
    if not standards():
        print("neither cc nor c++")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as folder:
        words = words_of(tirc, include, folder)
        for needed in ("name", "shapes", "NULL", "int64_t", "tir_str", "int", "int_", "nullptr", "linux", "status"):
            if needed not in words:
                wrong.append(f"{needed} was not tried")
        host = '#define N 64\n#define X {1}\n#include "made.h"\n'
        build(tirc, folder, "words.tir", kernels(words))
        wrong += compile_all(include, host, folder)

        names = ("tir_rt", "tir_rt_module", "own_tir_rt", "own_", "tir_")
        build(tirc, folder, "tir_rt_module.tir", "".join(kernel([f"a{i}", f"b{i}", name]) for i, name in enumerate(names)))
        wrong += compile_all(include, host, folder)

        text = build(tirc, folder, "x\n#error this is no code\n\\.tir", kernel(["k", "n", "m"]))
        if text.splitlines()[1].startswith("#error"):
            wrong.append("a line of the file's name is a line of the header")
        wrong += compile_all(include, host, folder)

        # The compiler sees an access past the end of an array when it optimises.
        build(tirc, folder, "six.tir", "kernel six(Y: out f32[A, B, C, D, E, F]) {\n"
              "    for a in tiles(A) { Y[a, 0, 0, 0, 0, 0] = 1.0; }\n}\n")
        used = "tir_status (*used)(void) = (tir_status (*)(void))six_launch;\n"
        wrong += compile_all(include, host + used, folder,
                             ["-O2", "-c", "-o", os.devnull, "-Wno-cast-function-type"])

        # The second one is not taken for the first.
        guards = [build(tirc, folder, f"{part}/add.tir", kernel([part, "x", "N"])).splitlines()[1]
                  for part in ("a", "b", "a")]
        if guards[0] == guards[1] or guards[0] != guards[2]:
            wrong.append(f"the guards are {guards}")
    print(f"{len(words)} words")
    if wrong:
        sys.exit("\n".join(wrong))


main()
