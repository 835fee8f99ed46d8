#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Protocols of several steps with one thing changed in them: sync_check against the emulator.

Usage: protocol_races.py TIRC [--seed N] [--count N] [--kind NAME]

The protocols are those of tests/sync/protocols.py. A right program is accepted with nothing left unchecked, and the emulator finds
nothing. A change is one by the rules of tests/sync/mutate.py, or an access to another slot, part, place or CTA. Where the
emulator then finds a race, a hang or a missing fence under some schedule, sync_check has refused the program or said what it
leaves unchecked. Seed 0 is that of the day.
"""

import pathlib
import random
import re
import sys

import handmade_races
import seeds

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "sync"))
import mutate  # pylint: disable=wrong-import-position
import protocols  # pylint: disable=wrong-import-position

MUTANTS = 8


def elsewhere(lines, at):
    """Another slot, part, place or CTA."""
    line = lines[at]
    if at < 2 or mutate.DECLARES.match(line):
        return []
    out = mutate.edits(line, r"\[([agps])\]", "[0]") + mutate.edits(line, r"\[([agps]),", "[0,")
    out += mutate.edits(line, r"(\w+|\)) % (\d+)\b", lambda f: f"({f[1]} + 1) % {f[2]}")
    in_tmem = re.findall(r"\b(?:tmem|let) (\w+): (?:tmem )?\w+\[", "\n".join(lines))
    ends = any(re.search(rf"\b{name}\[.*:\+64\]", line) for name in in_tmem)  # none lies behind it
    out += mutate.edits(line, r"\b(0|32):\+(16|32|64)\b", *([] if ends else [r"16:+\2"]), r"0:+16")
    out += mutate.edits(line, r"\bctas = (3|5) <<", "ctas = 1 <<", "ctas = 6 <<") + mutate.edits(line, r"\b(cta = )(\(.*?\) % \d+|tid_in_wg\(\))", r"\1 0")
    return out + mutate.edits(line, r", kind = add", "") + mutate.edits(line, r"\b(me|x|y)\b", "0")


def draw(seed, kind=None):
    rng = random.Random(seed)
    families = [f for f in protocols.FAMILIES if kind in (None, f.__name__)]
    made = families[seed % len(families)](rng)
    found = [m.text for m in mutate.mutants(made.text) if m.at > 1]  # not its clauses
    found += [made.text[:at] + new + made.text[at + 1:] for at in range(len(made.text)) for new in elsewhere(made.text, at)]
    mutants = [("\n".join(text) + "\n", [[]]) for text in rng.sample(found, min(MUTANTS, len(found)))]
    return "\n".join(made.text) + "\n", made, mutants, [[]]


def main():
    parser = seeds.parser(__doc__, "tirc", count=20)
    parser.add_argument("--kind", help="of one protocol")
    options = parser.parse_args()
    failed = []
    passed = sum(1 for _ in seeds.passing(options, lambda seed: draw(seed, options.kind),
                                          lambda *of: handmade_races.missed(options.tirc, *of), failed))
    print(f"{passed} passed, {len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
