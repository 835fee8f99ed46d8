# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What generators ask for, and their seed: the given one, or one of the day. It is printed, so that a run can be repeated."""

import argparse
import datetime
import pathlib
import subprocess
import tempfile

SECONDS = 120  # for each command


def parser(description, *operands, count):
    """Operands, --seed and --count; its first line describes the program."""
    made = argparse.ArgumentParser(description=(description or "").split("\n", maxsplit=1)[0])
    for operand in operands:
        made.add_argument(operand)
    made.add_argument("--seed", type=int, default=0, help="of the first program; 0: of the day")
    made.add_argument("--count", type=int, default=count, help="programs")
    return made


def first(options):
    """Seeds from it on are this run's. A day has 1000 of its own."""
    seed = options.seed or datetime.date.today().toordinal() * 1000
    print(f"seed {seed}", flush=True)
    return seed


def failure(command):
    """The command and what it says, if it fails or does not end."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return f"{' '.join(command)}\nno end after {SECONDS} s"
    return f"{' '.join(command)}\n{done.stdout[-2000:]}{done.stderr[-2000:]}" if done.returncode else None


def done(command):
    return subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)


def output(command):
    return subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=True).stdout


def passing(options, draw, failure, failed):
    """Draws programs and runs them: draw(seed) gives the text of one and what else failure(path, ...) takes, which says
    why it fails, if it does. Gives the paths of those that pass, and the rest; prints the others, and adds them to `failed`."""
    start = first(options)
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(start, start + options.count):
            text, *more = draw(seed)
            path = pathlib.Path(folder, f"{seed}.tir")
            path.write_text(text)
            why = failure(path, *more)
            if why:
                failed.append(seed)
                print(f"seed {seed} fails:\n{text}{why}", flush=True)
            else:
                yield path, *more


def main(description, draw, failure, count=20):
    """A whole generator: draws programs for the compiler, the only operand, and counts those for which failure(tirc, path, ...) has
    nothing to say. Gives the exit status."""
    options = parser(description, "tirc", count=count).parse_args()
    failed = []
    passed = sum(1 for _ in passing(options, draw, lambda *of: failure(options.tirc, *of), failed))
    print(f"{passed} passed, {len(failed)} failed")
    return 1 if failed else 0
