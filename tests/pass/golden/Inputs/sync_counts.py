# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What of synchronisation stands in IR text from standard input, counted for each kernel."""

import collections
import re
import sys

OPS = {
    "mbarrier_init", "wait", "arrive", "bar_sync", "bar_arrive", "warp_sync", "cluster_arrive",
    "cluster_wait", "fence", "commit_group", "wait_group", "await",
}
KERNEL = re.compile(r"kernel (\w+)")
OP = re.compile(r"\s*(?:let .* = )?(\w+)\(")

name, counts = "", collections.Counter()


def show():
    if name:
        print(f"{name}: " + ", ".join(f"{op} {count}" for op, count in sorted(counts.items())))
    counts.clear()


for line in sys.stdin:
    if start := KERNEL.match(line):
        show()
        name = start[1]
    elif (op := OP.match(line)) and op[1] in OPS:
        counts[op[1]] += 1
show()
