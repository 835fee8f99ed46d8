# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks docs/timeline.svg, the picture of the README: a timeline of examples/03_gemm by `tirc trace`. Where
things are in it changes with the code that is generated; which rows and kinds of slices it has is compared.

Usage: timeline.py TIRC PICTURE [--update]   --update draws it anew.
"""

import json
import pathlib
import re
import subprocess
import sys

GEMM = pathlib.Path(__file__).resolve().parents[2] / "examples/03_gemm/gemm.tir"
TRACE = [GEMM, "M=128", "N=128", "K=1024", "--arch=sm_90a", "-o", "-"]
ROWS = [("load: warp 0", "warp 0"), ("tensor copies", "bulk engine"), ("math: warp 4", "warp 4"),
        ("math: warp 8", "warp 8"), ("tensor cores", "tensor core")]  # label, threads of the trace
LEFT, WIDTH, TOP, HEIGHT, STEP = 110, 880, 30, 22, 30

STYLE = """text { font: 12px sans-serif; fill: #333 }
.wait { fill: #ddd } .run { fill: #3b6fb6 } .copy { fill: #3c9d5c } .product { fill: #d9822b }
.copy, .product { opacity: 0.45 }"""


def kind(name):
    """The class of a slice: the engine's work, or what a warp does."""
    if name == "bulk copy":
        return "copy"
    if name == "wgmma":
        return "product"
    return "wait" if name.startswith("wait") else "run"


def draw(events):
    threads = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    slices = [e for e in events if e["ph"] == "X"]
    end = max(e["ts"] + e["dur"] for e in slices)
    scale = WIDTH / end
    height = TOP + STEP * len(ROWS) + 8
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + 10}" height="{height}">',
             f"<style>{STYLE}</style>", '<rect width="100%" height="100%" fill="#fff"/>',
             f'<text x="{LEFT}" y="18">one CTA of gemm, 128 x 128 x 1024, on sm_90a: {end} cycles of a model</text>']
    for row, (label, thread) in enumerate(ROWS):
        y = TOP + STEP * row
        lines.append(f'<text x="4" y="{y + 15}">{label}</text>')
        for e in slices:
            if threads[e["tid"]] == thread or threads[e["tid"]].rsplit(" ", 1)[0] == thread:
                lines.append(f'<rect class="{kind(e["name"])}" x="{LEFT + e["ts"] * scale:.1f}" y="{y}" '
                             f'width="{e["dur"] * scale:.1f}" height="{HEIGHT}"/>')
    return "\n".join(lines + ["</svg>", ""])


def shape(picture):
    """The lines without their numbers, each once."""
    return sorted(set(re.sub(r"\d+(\.\d+)?", "#", picture).splitlines()))


def main(tirc, path, update):
    trace = subprocess.run([tirc, "trace", *TRACE], capture_output=True, text=True, check=True).stdout
    picture, path = draw(json.loads(trace)["traceEvents"]), pathlib.Path(path)
    if update:
        path.write_text(picture, encoding="utf-8")
    if shape(picture) != shape(path.read_text(encoding="utf-8")):
        print(f"{path.name} shows other rows or slices than the trace: draw it anew with --update")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], "--update" in sys.argv[3:]))
