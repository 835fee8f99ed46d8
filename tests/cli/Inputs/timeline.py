# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reads a timeline of `tirc trace`, fails when it cannot be right, and says what is in it.

usage: timeline.py TRACE.json
"""

import collections
import json
import sys

with open(sys.argv[1], encoding="utf-8") as file:
    trace = json.load(file)
events = trace["traceEvents"]
names = {}
for event in events:
    if event["ph"] == "M":
        key = (event["name"], event["pid"], event.get("tid"))
        assert key not in names, f"named twice: {key}"
        names[key] = event["args"].get("name")

tracks = collections.defaultdict(list)
for event in events:
    if event["ph"] == "X":
        assert event["dur"] > 0 and event["ts"] >= 0, event
        assert ("process_name", event["pid"], None) in names, event
        assert ("thread_name", event["pid"], event["tid"]) in names, event
        tracks[event["pid"], event["tid"]].append(event)

warps = 0
for (pid, tid), slices in tracks.items():
    name = names["thread_name", pid, tid]
    slices.sort(key=lambda e: e["ts"])
    for a, b in zip(slices, slices[1:]):
        assert a["ts"] + a["dur"] <= b["ts"], f"{name}: {a} and {b} overlap"
    flights = [e["cat"] == "flight" for e in slices]
    assert all(flights) or not any(flights), f"{name} is of two kinds"
    if name.startswith("warp"):
        warps += 1
        for a, b in zip(slices, slices[1:]):  # a warp runs or waits, all the time
            assert a["ts"] + a["dur"] == b["ts"], f"{name}: a gap between {a} and {b}"

# Copies that fly while a warp of the same CTA executes: what a pipeline is for.
hidden = 0
for (pid, _), slices in tracks.items():
    for flight in slices:
        hidden += flight["cat"] == "flight" and any(
            run["ts"] < flight["ts"] + flight["dur"] and flight["ts"] < run["ts"] + run["dur"]
            for (other, _), runs in tracks.items() if other == pid
            for run in runs if run["cat"] == "run" and run["args"]["warp"] != flight["args"]["warp"])

print(trace["otherData"]["clock"])
print("CTAs:", " ".join(sorted({v for k, v in names.items() if k[0] == "process_name"})))
print("warps:", warps)
print("overlapped:", "yes" if hidden else "no")
kinds = collections.Counter((e["cat"], e["name"]) for s in tracks.values() for e in s)
for (kind, name), count in sorted(kinds.items()):
    print(f"{kind}: {name}: {count}")
