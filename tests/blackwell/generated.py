#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels for Blackwell that are drawn by a seed, and bugs in them.

usage: generated.py TIRC [--seed=N] [--first=N] [--count=N] [--schedules=N] [--plants=N] [--jobs=N] [--keep=FOLDER]
                    [--seconds=N] [--no-spill] [--require-sync]

Each kernel (drawn.py) must give, on the emulator under full checks and that many schedules, exactly what its
reference gives, for a target with tensor memory and for sm_120a where it is a tile program. ptxas must take its two best
variants for each of its targets; those that spill are named and counted, and with --no-spill one fails, as do those in tensor
memory that spill more than a few bytes. Where there is no
ptxas, this is left out. What sync_check leaves unchecked is named and counted, and fails with --require-sync. Of each class
of bugs (planted.py) up to that many are planted in it: sync_check must refuse each, or the emulator must find it under one
of many schedules. Seed 0 is that of the day. A table has what was drawn and found. After so many seconds no further kernel
begins.
"""

import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time

import drawn  # finds the other generators
import planted
import seeds

SECONDS = 300  # of one command
STEPS = 1 << 22  # instructions of a warp, where a bug is
SPILLS = 16  # bytes that a kernel in tensor memory may spill: ptxas spills up to two numbers of 64 bits that several roles read
SCHEDULES = 12  # under which the emulator runs what sync_check accepts
# Where something else does what is taken away, what is planted changes no result: sync_check accepts the program, and no
# schedule finds anything (planted.may_be_harmless). Counted and named.
MAY_BE_HARMLESS = ["order", "alias"]


class Failure(Exception):
    pass


def run(*command):
    try:
        return subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, 124, "", f"no end within {SECONDS} seconds")


def succeed(done):
    if done.returncode:
        raise Failure(f"{' '.join(map(str, done.args))}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout + done.stderr


def must(*command):
    return succeed(run(*command))


def entries(ptx, names):
    """The PTX with these kernels alone."""
    out = ""
    for part in re.split(r"(?m)^(?=\t// \.globl\t)", ptx):
        found = re.match(r"\t// \.globl\t(\S+)", part)
        is_kept = not found or found[1] in names
        out += part if is_kept else "".join(re.findall(r"(?m)^\.(?:extern|global|const)\b.*;\n", part))
    return out


class Judge:
    """Of one kernel; its files are in a folder of its own."""

    def __init__(self, options, ptxas, kernel, rng, folder):
        self.tirc, self.ptxas, self.options, self.kernel, self.rng = options.tirc, ptxas, options, kernel, rng
        self.folder, self.path = folder, folder / "kernel.tir"
        self.path.write_text(kernel.text, encoding="utf-8")
        self.name = [f"--kernel={kernel.name}"] if kernel.name else []
        self.archs, self.is_tmem = list(kernel.archs), False
        self.spilled, self.harmless, self.unchecked = [], [], []
        self.counts, self.found = collections.Counter(kernels=1), collections.Counter()

    def emulate(self, path, given, arch, *more):
        name = self.name if path == self.path else []  # others have one kernel
        return [self.tirc, "run", path, *name, f"--arch={arch}", "--device=emu", "--emu-check=full", "--emu-threads=1",
                "--check=0", f"--emu-sms={self.kernel.sms}", *given, *more]

    def right(self):
        against = [f"--check-against={self.kernel.against}"] if self.kernel.against else []
        arch = self.rng.choice([a for a in self.kernel.archs if a != "sm_120a"])
        must(*self.emulate(self.path, self.kernel.given, arch, f"--explore={self.options.schedules}", *against))
        self.counts["launches"] += self.options.schedules
        if "sm_120a" not in self.kernel.archs:
            return
        done = run(*self.emulate(self.path, self.kernel.given, "sm_120a",
                                 f"--schedule=random:{self.rng.randrange(1 << 30)}", *against))
        if "error[E0301]" in done.stderr:  # it has less than half as much shared memory
            self.archs.remove("sm_120a")
            self.counts["no room, sm_120a"] += 1
            return
        succeed(done)
        self.counts["launches"] += 1

    def assembled(self, arch):
        ptx = self.folder / f"{arch}.ptx"
        said = must(self.tirc, "build", self.path, *self.name, f"--arch={arch}", "--emit=ptx", "-o", ptx, "--receipt=json")
        unchecked = re.findall(r":(\d+:\d+: warning\[W0004\].*)", said)
        self.counts["unchecked"] += bool(unchecked) and arch == "sm_100a"
        self.unchecked += [f"{arch}: {text}" for text in unchecked]
        variants = json.loads(next(line for line in said.splitlines() if line.startswith("{")))["variants"]
        texts = {v["entry"]: [r["text"] for r in v["records"]] for v in variants}
        best = texts[variants[0]["entry"]]
        if arch == "sm_100a":
            self.is_tmem = any(re.search(r"dot: tcgen05|columns of tensor memory", t) for t in best) or \
                "tcgen05.alloc" in ptx.read_text()
            if self.kernel.wish and not any(self.kernel.wish in t for t in best):
                raise Failure(f"no {self.kernel.wish}: {best}")
            self.counts["in tensor memory"] += self.is_tmem
            self.counts["pairs"] += any("for a pair of CTAs" in t for t in best) or "cta_group::2" in ptx.read_text()
            self.counts["take over"] += "try_cancel" in ptx.read_text()
        if not self.ptxas:
            return
        ptx.write_text(entries(ptx.read_text(), list(texts)[:2]))
        log = must(self.ptxas, f"-arch={arch}", "-v", "-o", os.devnull, ptx)
        self.counts[arch] += 1
        spilled = [f"{e}: {said}" for e, said in re.findall(r"Function properties for (\S+)\n(.*)", log)
                   if re.search(r"[1-9]\d* bytes spill", said)]
        self.counts[f"spill, {arch}"] += bool(spilled)
        self.spilled += [f"{arch}: {said}" for said in spilled]
        most = max((int(n) for said in spilled for n in re.findall(r"(\d+) bytes spill", said)), default=0)
        if self.is_tmem and arch != "sm_120a" and most > SPILLS:
            raise Failure(f"it spills for {arch}\n{spilled}")

    def plant(self, rules, stop_after):
        text = self.folder / "whole.tir"
        variant = [f"--variant={self.kernel.planted}"] if self.kernel.planted else []
        must(self.tirc, "build", self.path, *self.name, *variant, "--arch=sm_100a", "--emit=tir", *stop_after, "-o", text)
        lines = text.read_text(encoding="utf-8").splitlines()
        if rules is planted.OF_TILES and not self.kernel.name and not planted.multiplies_there(lines):
            return  # as another variant does: here barriers of loops may do what waits do
        against = f"--check-against={self.path}{self.kernel.against}"
        few = self.kernel.sms or 1 + self.counts["pairs"]  # so that a CTA has several tiles
        launch = [self.kernel.whole, "sm_100a", f"--emu-sms={few}", f"--schedule=random:{self.rng.randrange(1 << 30)}", against]
        mutants = [(rule.__name__, at, new) for rule in rules for places in [list(rule(lines))]
                   for at, new in self.rng.sample(places, min(self.options.plants, len(places)))]
        is_right = False
        for rule, at, new in mutants:
            path = self.folder / "planted.tir"
            path.write_text("\n".join(new) + "\n", encoding="utf-8")
            said = run(self.tirc, "check", "--arch=sm_100a", path)
            self.found[rule, "planted"] += 1
            if re.search(r"error\[E041\d\]", said.stderr):
                self.found[rule, "refused"] += 1
                self.found[rule, "with both lines"] += "note: " in said.stderr
                continue
            if said.returncode:
                raise Failure(f"{rule} at line {at + 1}, {lines[at].strip()}: {said.stderr[-2000:]}")
            if not is_right:
                is_right = bool(must(*self.emulate(text, *launch)))
            ran = run(*self.emulate(path, *launch, f"--emu-steps={STEPS}"))
            if not ran.returncode:  # one schedule may be too kind
                ran = run(*self.emulate(path, *launch[:-2], against, f"--explore={SCHEDULES}", f"--emu-steps={STEPS}"))
            if not ran.returncode and rule in MAY_BE_HARMLESS and planted.may_be_harmless(lines):
                self.found[rule, "harmless"] += 1
                self.harmless.append(f"{rule} at line {at + 1}, {lines[at].strip()}")
                continue
            if ran.returncode != 1:
                (self.folder / "missed.tir").write_text("\n".join(new) + "\n", encoding="utf-8")
                raise Failure(f"{rule} at line {at + 1}, {lines[at].strip()}, is not found: "
                              f"{ran.args}\n{ran.stdout[-1000:]}{ran.stderr[-1000:]}")
            self.found[rule, "wrong values" if "largest error" in ran.stdout + ran.stderr else "found"] += 1

    def judge(self):
        self.right()
        for arch in self.archs:
            self.assembled(arch)
        if not self.kernel.whole:
            return
        if self.is_tmem or self.kernel.name:
            self.plant(planted.OF_TILES, ["--stop-after=barrier"])
        if self.is_tmem or self.counts["take over"]:
            self.plant(planted.OF_THREADS, [])


def one(options, ptxas, seed, number, folder):
    if time.monotonic() > options.end:
        return None
    kernel = drawn.draw(seed, number)
    folder = pathlib.Path(folder, str(number))
    folder.mkdir()
    judge, why = Judge(options, ptxas, kernel, random.Random(f"{seed} {number} bugs"), folder), None
    try:
        judge.judge()
    except Failure as failure:
        why = f"{failure}"
        if options.keep:
            shutil.copytree(folder, pathlib.Path(options.keep, f"{seed}_{number}"), dirs_exist_ok=True)
    shutil.rmtree(folder)
    return number, kernel, judge, why


def table(names, rows):
    """Columns of counts, without those that are all 0."""
    names = [n for n in names if any(row[n] for row in rows.values())]
    print("| | " + " | ".join(names) + " |\n|" + "---|" * (len(names) + 1))
    for title, row in rows.items():
        print(f"| {title} | " + " | ".join(str(row[n]) for n in names) + " |")
    print(flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("tirc", type=lambda p: pathlib.Path(p).resolve())
    for name, default in [("seed", 0), ("first", 0), ("count", 36), ("schedules", 3), ("plants", 2), ("jobs", 1),
                          ("seconds", 0)]:
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--keep")
    parser.add_argument("--no-spill", action="store_true")
    parser.add_argument("--require-sync", action="store_true")
    options = parser.parse_args()
    options.end = time.monotonic() + (options.seconds or 1 << 30)
    seed = seeds.first(options)
    ptxas = shutil.which("ptxas") or shutil.which("/usr/local/cuda/bin/ptxas")
    for number in range(len(drawn.FAMILIES)):  # a run that ends early has at least drawn each
        drawn.draw(seed, number)
    kinds, found = collections.defaultdict(collections.Counter), collections.defaultdict(collections.Counter)
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        numbers = range(options.first, options.first + options.count)
        for done in pool.map(lambda n: one(options, ptxas, seed, n, folder), numbers):
            if not done:
                continue
            number, kernel, judge, why = done
            kinds[kernel.kind].update(judge.counts)
            kinds["all"].update(judge.counts)
            for (rule, what), n in judge.found.items():
                found[rule][what] += n
            for said in judge.harmless:
                print(f"kernel {number}, {kernel.kind}, no bug: {said}", flush=True)
            for said in judge.spilled:
                print(f"kernel {number}, {kernel.kind}, spills for {said}", flush=True)
            for said in judge.unchecked:
                print(f"kernel {number}, {kernel.kind}, for {said}", flush=True)
            if judge.unchecked and options.require_sync:
                why = why or f"sync_check has not seen all of it\n{judge.unchecked}"
            if judge.spilled and options.no_spill:
                why = why or f"it spills\n{judge.spilled}"
            if why:
                kinds[kernel.kind]["failed"] += 1
                kinds["all"]["failed"] += 1
                print(f"kernel {number}, {kernel.kind}: {why}\n{kernel.given}\n{kernel.text}", flush=True)
    kinds["all"] = kinds.pop("all")
    table(["kernels", "in tensor memory", "pairs", "take over", "launches", *drawn.EVERY, "no room, sm_120a", "unchecked",
           *(f"spill, {arch}" for arch in drawn.EVERY), "failed"], kinds)
    table(["planted", "refused", "with both lines", "found", "wrong values", "harmless"],
          {name: found[name] for name in planted.CLASSES})
    return kinds["all"]["failed"] > 0


if __name__ == "__main__":
    sys.exit(main())
