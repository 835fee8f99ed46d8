#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# tools/check.sh looks at the files that git tracks and at no others: a log that lies in the tree is
# nobody's fault, the same text in a file of the project is.
#
#   check_files.sh CHECK
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/tools"
cp "$1" "$folder/tools/check.sh"
cd "$folder"
git init -q .
git add tools/check.sh
printf 'see /%s/me/log \n' home >run.md
tools/check.sh || { echo 'a file that git does not track is looked at'; exit 1; }
git add run.md
if tools/check.sh >found; then
    echo 'nothing is found in a file that git tracks'
    exit 1
fi
grep -q 'trailing space: run.md:1' found
grep -q 'a path of one machine: run.md:1' found
