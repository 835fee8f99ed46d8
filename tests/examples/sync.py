#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares how often each kernel of the examples synchronises with a list, so that a change is seen.

usage: sync.py TIRC LIST [--update]   --update writes the list anew
       sync.py TIRC LIST TARGET       of this target only what is left unproved

A line is: target, file, variant, and how many operations of each kind its synchronised text has, as
the receipt says. A count that grows costs time on the device; one that shrinks is right only when
sync_check and the emulator agree. Of no kernel may sync_check leave anything unproved.
"""

import difflib
import json
import pathlib
import subprocess
import sys

TARGETS = ["sm_80", "sm_90a"]
# Beside each file as it is: tiles that walk together, along either dimension and along both.
CLUSTERS = [("examples/03_gemm/matmul.tir", words) for words in
            (["-D", "CM=2"], ["-D", "CN=2"], ["-D", "CM=2", "-D", "CN=2"])]
PREFIX = "synchronisation: "

# Kernels by hand, and their target.
OWN = {"gemm_ladder": "sm_90a", "blackwell_ladder": "sm_100a", "blackwell_scales": "sm_100a",
       "blackwell_attention": "sm_100a"}


def kernel_files(root):
    return sorted(p.relative_to(root).as_posix() for p in root.glob("examples/**/*.tir"))


def build(tirc, root, source, *options):
    """Runs tirc build and returns what its receipt says of each variant."""
    command = [tirc, "build", source, *options, "--receipt=json"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}:\n{done.stderr}")
    return json.loads(done.stdout)["variants"]


def counts(tirc, root, source):
    # By hand: it says barriers and products by their names on one target.
    own = OWN.get(source.split("/")[1])
    for target in [own] if own else TARGETS:
        yield from counts_on(target, tirc, root, source, [])


def counts_on(target, tirc, root, source, options):
    for variant in build(tirc, root, source, *options, "--emit=tir", "-o", "/dev/null",
                         f"--arch={target}"):
        texts = [r["text"] for r in variant["records"] if r["text"].startswith(PREFIX)]
        unproved = [r["text"] for r in variant["records"] if "sync: unchecked" in r["text"]]
        assert not unproved, (target, source, variant["entry"], unproved)
        assert len(texts) <= 1, texts
        found = texts[0][len(PREFIX):] if texts else "nothing"
        words = " ".join([source, *(o for o in options if o != "-D"), variant["entry"]])
        yield f"{target} {words}: {found}\n"


def main(tirc, path, option):
    path = pathlib.Path(path).resolve()
    root = path.parents[2]
    update = option == "--update"
    if option and not update:
        now = [line for source in kernel_files(root) if source.split("/")[1] not in OWN
               for line in counts_on(option, tirc, root, source, [])]
        print(f"{len(now)} variants for {option}")
        return not now
    sources = kernel_files(root)
    now = [line for source in sources for line in counts(tirc, root, source)]
    assert len(now) > len(sources), "no kernels"
    for source, options in CLUSTERS:
        now += counts_on("sm_90a", tirc, root, source, options)
    before = path.read_text(encoding="utf-8").splitlines(keepends=True) if path.exists() else []
    if update:
        path.write_text("".join(now), encoding="utf-8")
    elif now != before:
        sys.stdout.writelines(difflib.unified_diff(before, now, "list", "now", n=0))
        print("when it is meant: tests/examples/sync.py TIRC tests/examples/sync.txt --update")
        return 1
    print(f"{len(now)} variants of {len(sources)} files")
    return 0


if __name__ == "__main__":
    sys.exit(main(str(pathlib.Path(sys.argv[1]).resolve()), sys.argv[2], "".join(sys.argv[3:])))
