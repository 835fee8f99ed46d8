# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reads a picture of tirc explain: prints its rows, the number of its colours, and whether bars of one
row and bars of one engine lie apart. Usage: explain.py PICTURE"""

import collections
import sys
import xml.etree.ElementTree

SVG = "{http://www.w3.org/2000/svg}"


def main():
    root = xml.etree.ElementTree.parse(sys.argv[1]).getroot()
    labels = {float(t.get("y")) - 12: t.text for t in root.iter(SVG + "text") if t.get("x") == "4"}
    bars = [r for r in root.iter(SVG + "rect") if r.get("class")]
    panel = [y for y in sorted(labels) if any(float(b.get("y")) == y for b in bars)]
    rows = [labels[y] for y in panel]
    print("rows", ", ".join(rows[:rows.index(rows[0], 1) if rows[0] in rows[1:] else len(rows)]))
    print("iterations", len({bar.get("class") for bar in bars}))
    engines = collections.defaultdict(list)
    panels = 0
    for y in panel:
        panels += labels[y] == rows[0]
        for bar in bars:
            if float(bar.get("y")) == y:
                x = float(bar.get("x"))
                engines[panels, labels[y].rsplit(" ", 1)[0]].append((x, x + float(bar.get("width"))))
    for spans in engines.values():
        spans.sort()
        for (_, end), (begin, _) in zip(spans, spans[1:]):
            assert begin > end - 0.15, f"two bars at {begin}"  # places are tenths
    print("apart")


main()
