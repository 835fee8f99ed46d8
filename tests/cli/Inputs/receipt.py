# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks the JSON of --receipt=json on standard input against the table of docs/receipt.md: the keys,
their types, and words and places that make sense. Prints one line for each record, so that
FileCheck can ask for some. Usage: receipt.py SOURCE"""

import json
import sys

TOPICS = {"copy", "dot", "quotient", "loop", "ring", "role", "launch", "memory", "sync", "code"}
WISHES = {None, "async", "tma", "wgmma", "pipeline", "specialize", "cluster"}
PLACE = {"file": str, "line": int, "column": int, "end_line": int, "end_column": int}


def check(value, keys, optional=()):
    assert set(value) - set(optional) == set(keys), f"keys {sorted(value)}, not {sorted(keys)}"
    for key, kind in keys.items():
        assert isinstance(value[key], kind), f"{key} is {value[key]!r}"


def check_record(record, lines):
    check(record, {"topic": str, "refusal": bool, "wish": (str, type(None)), "text": str}, PLACE)
    assert record["topic"] in TOPICS and record["wish"] in WISHES, record
    assert record["refusal"] or not record["wish"], record
    assert record["text"] and "\n" not in record["text"], record
    place = [key for key in PLACE if key in record]
    assert len(place) in (0, len(PLACE)), record
    if place:
        check({key: record[key] for key in place}, PLACE)
        assert (record["line"], record["column"]) <= (record["end_line"], record["end_column"])
        assert 1 <= record["line"] <= len(lines) and record["file"] == sys.argv[1], record
        assert 1 <= record["column"] <= len(lines[record["line"] - 1].encode()) + 1, record
        end = record["end_column"] - 1 if record["end_line"] == record["line"] else None
        text = lines[record["line"] - 1][record["column"] - 1:end]
    else:
        text = "nowhere"
    print(record["topic"], "refused" if record["refusal"] else "done", record["wish"],
          f"[{text}]", record["text"])


def check_records(records, lines):
    order = [sorted(TOPICS).index(r["topic"]) for r in records]
    seen = [t for i, t in enumerate(order) if i == 0 or order[i - 1] != t]
    assert len(seen) == len(set(seen)), "a topic stands in two places"
    for record in records:
        check_record(record, lines)


def check_schedule(schedule):
    check(schedule, {"warpgroups": int, "stages": int, "cycles": int, "source_cycles": int, "replayed": int,
                     "registers": int, "registers_allowed": int, "fullest": int, "operations": list, "needs": list, "rings": list,
                     "why": str}, PLACE)
    for slot, op in enumerate(schedule["operations"]):
        check(op, {"slot": int, "stage": int, "source": int, "unit": str, "start": int, "end": int, "cycles": int,
                   "registers": int, "text": str}, PLACE)
        assert op["slot"] == slot and op["start"] <= op["end"], op
        assert op["unit"] in {"none", "tensor", "issue", "mufu"}, op
    slots = range(len(schedule["operations"]))
    for need in schedule["needs"]:
        check(need, {"first": int, "later": int, "rounds": int, "kind": str, "slack": int})
        assert need["kind"] in {"turn", "queue", "sum", "value"} and need["slack"] >= 0, need
        assert need["first"] in slots and need["later"] in slots, need
    for ring in schedule["rings"]:
        check(ring, {"name": str, "slots": int, "bytes": int, "held": int, "slack": int})
    print(f"schedule {len(slots)} operations, {schedule['warpgroups']} warpgroups, {schedule['stages']} stages:",
          schedule["why"])


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        lines = file.read().split("\n")
    text = sys.stdin.read()
    assert text.endswith("\n") and "\n" not in text[:-1], "more than one line"
    receipt = json.loads(text)
    check(receipt, {"source": str, "target": str, "assembler": (str, type(None)), "variants": list,
                    "sequences": list})
    assert receipt["source"] == sys.argv[1]
    print("target", receipt["target"])
    for variant in receipt["variants"]:
        check(variant, {"kernel": str, "entry": str, "relies_on": str, "records": list, "schedules": list})
        print("variant", variant["kernel"], variant["entry"], f"[{variant['relies_on']}]")
        check_records(variant["records"], lines)
        for schedule in variant["schedules"]:
            check_schedule(schedule)
    for sequence in receipt["sequences"]:
        check(sequence, {"kernel": str, "sequence": str, "records": list})
        print("sequence", sequence["kernel"], sequence["sequence"])
        check_records(sequence["records"], lines)


main()
