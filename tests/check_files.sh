#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# tools/check.sh looks at the files that git tracks and at no others: a log that lies in the tree is
# nobody's fault, the same text in a file of the project is. An include that tools/layers.txt does not
# allow is found.
#
#   check_files.sh CHECK LAYERS
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/tools"
cp "$1" "$folder/tools/check.sh"
cp "$2" "$folder/tools/layers.txt"
cd "$folder"
git init -q .
git add tools
printf 'see /%s/me/log \n' home >run.md
tools/check.sh || { echo 'a file that git does not track is looked at'; exit 1; }
git add run.md
if tools/check.sh >found; then
    echo 'nothing is found in a file that git tracks'
    exit 1
fi
grep -q 'trailing space: run.md:1' found
grep -q 'a path of one machine: run.md:1' found

printf '#!/bin/sh\n# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception\n' >run.sh
git add run.sh
! tools/check.sh >found
grep -q 'a program that is not executable: run.sh' found
chmod +x run.sh
! tools/check.sh >found
! grep -q 'run.sh' found

mkdir -p compiler/base compiler/ir
license='// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception'
printf '%s\n#include "base/a.h"\n' "$license" >compiler/ir/b.h
printf '%s\n#include "ir/b.h"\n' "$license" >compiler/base/a.h
git add compiler
! tools/check.sh >found
grep -q 'layers: compiler/base/a.h includes compiler/ir/b.h' found
! grep -q 'compiler/ir/b.h includes' found

printf '%s\nvoid f(enum e x) { switch ((int)x) {} }\n' "$license" >compiler/ir/c.c
git add compiler
! tools/check.sh >found
grep -q 'switch over a cast: compiler/ir/c.c:2' found

mkdir -p tests/codegen tests/pass
printf '%s\n// RUN: true\n' "$license" | tee tests/codegen/lost.tir >tests/pass/found.tir
git add tests
! tools/check.sh >found
grep -q 'a test that lit does not run: tests/codegen/lost.tir:2' found
! grep -q 'tests/pass' found

mkdir -p runtime/include/tir docs
printf '%s\n#define TIR_ARTIFACT_VERSION 2u\n' "$license" >runtime/include/tir/artifact.h
echo 'u32   version, 1' >docs/artifact.md
git add runtime docs
! tools/check.sh >found
grep -q 'another version of artifacts: docs/artifact.md' found
echo 'u32   version, 2' >docs/artifact.md
! tools/check.sh >found
! grep -q 'another version' found
