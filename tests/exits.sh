#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Usage: exits.sh STATUS COMMAND...   fails unless the command ends with that very status.
want=$1
shift
"$@"
got=$?
[ "$got" -eq "$want" ] && exit 0
echo "exit status $got where $want is due: $*" >&2
exit 1
