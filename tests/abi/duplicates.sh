#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# No two files of a static library define the same name: the linker would silently take the first.
# Usage: duplicates.sh LIBRARY
names=$(nm --defined-only --format=posix "$1" 2>/dev/null | awk '$2 ~ /^[TDRBC]$/ { print $1 }' |
    sort | uniq -d)
[ -z "$names" ] && exit
echo "defined more than once in $1:"
echo "$names"
exit 1
