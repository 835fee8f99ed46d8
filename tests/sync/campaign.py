# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Holds sync_check against the emulator, on kernels that are right and on mutants of them.

Usage: campaign.py TIRC [--seed=S] [--kernels=N] [--mutants=N] [--schedules=N] [--family=NAME]...
                   [--jobs=N] [--keep=FOLDER]

Draws N kernels (kernels.py) and of each at most so many mutants (mutate.py). A right kernel must be
accepted by sync_check with nothing unchecked but what CTAs do to each other, and be silent on the emulator
under every schedule. A mutant that sync_check accepts without a word is launched under that many schedules: when the emulator
finds a race, a hang or a missing fence there, sync_check has missed it, and the test fails. Prints
the seed, from which everything follows; --keep writes what failed.
"""

import argparse
import collections
import concurrent.futures
import pathlib
import random
import re
import subprocess
import sys
import tempfile

import kernels
import mutate

ERROR = re.compile(r"error\[(E\d{4})\]: (.*)")
UNCHECKED = re.compile(r"warning\[W0004\]|unchecked")
FINDING = re.compile(r"tirc: (?!uninitialised|in round)|no end")

Outcome = collections.namedtuple("Outcome", "verdict detail")


class Judge:
    def __init__(self, tirc, schedules, folder):
        self.tirc, self.schedules, self.folder = tirc, schedules, pathlib.Path(folder)

    def call(self, *args, timeout):
        try:
            done = subprocess.run([self.tirc, *args], capture_output=True, text=True, check=False,
                                  timeout=timeout)
        except subprocess.TimeoutExpired:
            return 124, "no end within the time limit"
        return done.returncode, done.stdout + done.stderr

    def judge(self, name, text, sizes, arch):
        """What becomes of one program: refused, illegal, unchecked, missed, silent or broken."""
        path = self.folder / f"{name}.tir"
        path.write_text("\n".join(text) + "\n", encoding="utf-8")
        rc, out = self.call("check", f"--arch={arch}", str(path), timeout=60)
        error = ERROR.search(out)
        if rc not in (0, 2):
            return Outcome("broken", f"tirc check ended with {rc}: {out[-400:]}")
        if error:
            kind = "refused" if error[1].startswith("E041") else "illegal"
            return Outcome(kind, f"{error[1]}: {error[2]}")
        unchecked = UNCHECKED.search(out)
        rc, out = self.call("run", f"--arch={arch}", "--device=emu", "--emu-check=full",
                            "--emu-threads=1", f"--explore={self.schedules}", str(path), *sizes,
                            timeout=120)
        if rc == 0:
            return Outcome("unchecked" if unchecked else "silent", "")
        if rc not in (1, 2, 124):
            return Outcome("broken", f"tirc run ended with {rc}: {out[-400:]}")
        if not any(FINDING.match(line) for line in out.splitlines()):
            return Outcome("unwritten", "")  # wrong, but no order would mend it
        return Outcome("unchecked, found" if unchecked else "missed", out.strip()[:400])


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tirc")
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--kernels", type=int, default=len(kernels.FAMILIES))
    parser.add_argument("--mutants", type=int, default=4)
    parser.add_argument("--schedules", type=int, default=8)
    parser.add_argument("--family", action="append", default=[])
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--keep")
    return parser.parse_args()


def draw(options, seed):
    """Programs as (name, is a mutant, what was done, text, sizes, target)."""
    families = [f for f in kernels.FAMILIES if not options.family or f.__name__ in options.family]
    for i in range(options.kernels):
        rng = random.Random(f"{seed} {i}")
        kernel = families[i % len(families)](rng)
        yield f"{i}_{kernel.family}", False, "right", kernel.text, kernel.sizes, kernel.arch
        found = list(mutate.mutants(kernel.text))
        for n, m in enumerate(rng.sample(found, min(options.mutants, len(found)))):
            what = f"{m.rule}: {kernel.text[m.at].strip()}"
            yield f"{i}_{kernel.family}_{n}", True, what, m.text, kernel.sizes, kernel.arch


def main():
    options = arguments()
    seed = random.SystemRandom().randrange(1 << 32) if options.seed is None else options.seed
    print(f"seed {seed}", flush=True)
    passed, failed, verdicts = 0, 0, collections.Counter()
    with tempfile.TemporaryDirectory() as folder, \
         concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        judge = Judge(options.tirc, options.schedules, folder)
        programs = list(draw(options, seed))
        outcomes = pool.map(lambda p: judge.judge(p[0], *p[3:]), programs)
        for (name, mutant, what, text, *_), outcome in zip(programs, outcomes):
            verdicts[("mutant" if mutant else "right", outcome.verdict)] += 1
            family = name.split("_", 1)[1]
            expected = "unchecked" if family in kernels.AMONG_CTAS else "silent"
            fine = outcome.verdict not in ("missed", "broken") if mutant else \
                outcome.verdict == expected
            passed, failed = passed + fine, failed + (not fine)
            if fine:
                continue
            print(f"FAIL {name}: {what}\n    {outcome.verdict}: {outcome.detail}", flush=True)
            if options.keep:
                keep = pathlib.Path(options.keep)
                keep.mkdir(parents=True, exist_ok=True)
                (keep / f"{seed}_{name}.tir").write_text("\n".join(text) + "\n", encoding="utf-8")
    for (kind, verdict), n in sorted(verdicts.items()):
        print(f"{kind}: {n} {verdict}")
    print(f"{passed} passed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
