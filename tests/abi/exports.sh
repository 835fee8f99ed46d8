#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Compares what a shared library exports with a list. Usage: exports.sh LIBRARY LIST
# A new public function goes into the list, the CHANGELOG and TIR_API_VERSION.
nm -D --defined-only --format=posix "$1" | cut -d ' ' -f 1 | LC_ALL=C sort | diff "$2" - && exit
echo "$1 does not export what $2 says (< missing, > not in the list)"
exit 1
