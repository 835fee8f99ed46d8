#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# The example of docs/emulator.md: PROGRAM finds the race in the page's PTX, and none with a barrier.
# Usage: docs_emulator.sh PROGRAM PAGE
set -u
program=$1
page=$2
ptx() {
    sed -n '/^```ptx$/,/^```$/{/^```/!p}' "$page"
}
found=$(ptx | "$program") && { echo "no race was found"; exit 1; }
head=$(grep -m 1 '^tirc: data race' "$page" | sed 's/^tirc: //; s/ at 0x.*//')
case $found in
"$head"*"PTX line 19"*"PTX line 20"*) ;;
*) echo "the page says $head, the program $found"; exit 1 ;;
esac
ptx | sed '/ld\.shared/a bar.sync 0;' | "$program"
