#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""CTAs that take over the work of others (try_cancel), by kernels that are drawn at random, and mutants of them.

usage: try_cancel.py TIRC [COUNT [FIRST]]

Kernel number n has a grid of one to three axes, clusters or none, roles or none, responses in flight, functions of
tir/sched.tir or the operations themselves, and runs on so many multiprocessors, all of which follow from n. Tiles
are none, one, as many as run at a time, one more and less, and many. On the emulator, under full checks and a
schedule that also follows from n, each tile must be computed exactly once, as a tile program does it, and ptxas must
take the kernel for every target that has the instruction. Then each statement that orders something is dropped, doubled or
moved, one at a time: sync_check must refuse the mutant, or else the emulator must find nothing in it under
several schedules, and it must give the same result.
"""

import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile

AXES = "xyz"
TARGETS = ["sm_100a", "sm_103a", "sm_110a", "sm_120a"]
SCHEDULES = ["lazy", "eager", "adversarial:1", "adversarial:2", "random:1", "random:2"]


def draw(number):
    """What varies."""
    r = random.Random(number)
    axes = r.choice([1, 1, 2, 3])
    cluster = [r.choice([1, 1, 2, 4 if axes == 1 else 2]) for _ in range(axes)]
    size = 1
    for c in cluster:
        size *= c
    sms = r.choice([1, 2, 3, 8]) * (size if r.random() < 0.7 else 1)
    most = max(sms // size, 1)  # clusters that run at a time
    count = r.choice([0, 1, max(most - 1, 1), most, most + 1, 3 * most + 1])
    grid = [c for c in cluster]
    grid[r.randrange(axes)] *= count
    return {"axes": axes, "cluster": cluster, "size": size, "sms": sms, "grid": grid,
            "roles": r.random() < 0.5, "depth": r.choice([1, 2, 3]), "warps": r.choice([1, 2]),
            "by_name": axes == 1 and r.random() < 0.5, "query": r.random() < 0.4,
            "arch": r.choice(TARGETS), "schedule": r.choice([*SCHEDULES, f"random:{number}"])}


def params(c):
    shape = ", ".join("PQR"[:c["axes"]])
    return f"X: i32[{shape}, 64], Y: out i32[{shape}, 64], C: inout i32[{shape}]"


def tile(c, thread):
    """Statements that compute a tile once."""
    if c["by_name"]:
        at = ["i32(t)"] if c["size"] == 1 else [f"i32(t) * {c['size']} + cta_in_cluster(0)"]
    else:
        at = [a if n == 1 else f"{a} + cta_in_cluster({i})" for i, (a, n) in enumerate(zip(AXES, c["cluster"]))]
    at = ", ".join(at)
    lines = [f"for e in range(0, 64, {32 * c['warps']}) {{ Y[{at}, e + {thread}] = 2 * X[{at}, e + {thread}] + 1; }}",
             f"if {thread} == 0 {{ atomic_add(C[{at}], 1); }}"]
    return lines


def begin(c):
    if c["by_name"]:
        return [f"var t = tile_first{'_of_cluster' if c['size'] > 1 else ''}();"]
    return [f"var {a} = cta_id({i})" + (f" - cta_in_cluster({i});" if n > 1 else ";")
            for i, (a, n) in enumerate(zip(AXES, c["cluster"]))]


def more(c):
    return "t >= 0" if c["by_name"] else "more" if c["query"] else "x >= 0"


def request(c, one, response, full):
    """By one thread of each CTA."""
    suffix = "_of_cluster" if c["size"] > 1 else ""
    if c["by_name"]:
        return [f"if {one} {{ tile_request{suffix}({response}, {full}); }}"]
    first = "cta_rank() == 0 && " if c["size"] > 1 else ""
    multicast = ", multicast = 1" if c["size"] > 1 else ""
    return [f"if {one} {{ expect_tx({full}, bytes({response})); }}",
            f"if {first}{one} {{ try_cancel({response}, {full}{multicast}); }}"]


def answer(c, response, full, phase):
    """By all threads."""
    suffix = "_of_cluster" if c["size"] > 1 else ""
    if c["by_name"]:
        return [f"t = tile_response{suffix}({response}, {full}, {phase});"]
    lines = [f"wait({full}, {phase});"]
    if c["query"]:
        lines.append(f"more = is_canceled({response});")
    lines += [f"{a} = first_ctaid({response}, axis = {i});" for i, a in enumerate(AXES[:c["axes"]])]
    return lines + ["fence(async_shared);"]


def plain_body(c):
    sync = "cluster_sync();" if c["size"] > 1 else "bar_sync();"
    lines = ["shared response: u32[4];", "mbarrier full arrivals(1);", *begin(c), "var phase: i32 = 0;"]
    lines += ["var more = true;"] if c["query"] and not c["by_name"] else []
    lines += [f"while {more(c)} {{", *request(c, "tid() == 0", "response", "full"), *tile(c, "tid()"),
              *answer(c, "response", "full", "phase"), "phase = 1 - phase;", sync, "}"]
    return lines


def roles_body(c):
    """A warp requests, others work. In a cluster the first CTA's warp hears from the warps of all CTAs."""
    size, warps = c["size"], c["warps"]
    readers = warps * size + (size if size > 1 else 0)
    tell = "arrive(read[s], cta = 0);" if size > 1 else "arrive(read[s]);"
    start = begin(c) + (["var more = true;"] if c["query"] and not c["by_name"] else [])
    ask = request(c, "laneid() == 0", "response[s]", "full[s]")
    wait = "wait(read[s], 1 - s.phase);"
    own = f"if laneid() == 0 {{ {tell} }}"
    end = ["cluster_sync();"] if size > 1 else []  # CTA 0 has the last ones
    lines = [f"shared response: u32[{c['depth']}, 4];", f"mbarrier full[{c['depth']}] arrivals(1);",
             f"mbarrier read[{c['depth']}] arrivals({readers});",
             "role schedule warps(1) {", f"var s: stage({c['depth']});", *start, f"while {more(c)} {{"]
    lines += [f"if cta_rank() == 0 {{ {wait} }}"] if size > 1 else [wait]
    lines += [*ask, *answer(c, "response[s]", "full[s]", "s.phase"), "warp_sync();"]
    lines += [own] if size > 1 else []
    lines += ["s.advance();", "}", *end, "}", f"role work warps({warps}) {{", f"var s: stage({c['depth']});", *start,
              f"while {more(c)} {{", *tile(c, "(tid() - 32)"), *answer(c, "response[s]", "full[s]", "s.phase"),
              "warp_sync();", own, "s.advance();", "}", *end, "}"]
    return lines


def kernel(c, lines):
    grid = ", ".join("PQR"[:c["axes"]])
    cluster = f" cluster({', '.join(map(str, c['cluster']))})" if c["size"] > 1 else ""
    threads = "" if c["roles"] else f" threads({32 * c['warps']})"
    where = " && ".join(f"{d} % {n} == 0" for d, n in zip("PQR", c["cluster"]) if n > 1)
    body = "\n    ".join(lines)
    names = ", ".join(AXES[:c["axes"]])
    extents = ", ".join(f"{d} by 1" for d in "PQR"[:c["axes"]])
    part = ", ".join(f"{a}:+1" for a in AXES[:c["axes"]])
    return f"""import "tir/sched.tir";
kernel by_hand({params(c)}) grid({grid}){cluster}{threads}{' where ' + where if where else ''}
{{
    {body}
}}
kernel plain({params(c)})
{{
    for ({names}) in tiles({extents}) {{
        Y[{part}, :] = 2 * X[{part}, :] + 1;
        atomic_add(C[{part}], 1);
    }}
}}
"""


def run(command):
    return subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)


def launch(tirc, c, path, schedule):
    sizes = [f"{d}={n}" for d, n in zip("PQR", c["grid"])]
    return run([tirc, "run", path, "--kernel=by_hand", f"--arch={c['arch']}", "--device=emu", "--emu-check=full",
                f"--emu-sms={c['sms']}", f"--schedule={schedule}", "--emu-steps=200000", *sizes, "X=randint:-99:99",
                "C=randint:-9:9", "--check=0", "--check-against=:plain"])


ORDERS = re.compile(r"(if [^{]*\{ )?(wait|arrive|fence|warp_sync|bar_sync|cluster_sync|try_cancel|expect_tx|tile_request|"
                    r"[a-z]+ = tile_response)")


def mutants(lines):
    for i, line in enumerate(lines):
        if not ORDERS.match(line):
            continue
        yield f"without {line}", lines[:i] + lines[i + 1:]
        yield f"twice {line}", lines[:i] + [line] + lines[i:]
        if i + 1 < len(lines) and lines[i + 1] != "}" and not lines[i + 1].startswith("role"):
            yield f"later {line}", lines[:i] + [lines[i + 1], line] + lines[i + 2:]
    for i, line in enumerate(lines):
        if line.startswith("while"):
            yield "one more round", [*lines[:i], "var rounds: i32 = 0;", "while rounds < 9 {", "rounds += 1;",
                                     *lines[i + 1:]]


def check_right(tirc, ptxas, c, text, path, folder):
    path.write_text(text, encoding="utf-8")
    for done in (run([tirc, "check", f"--arch={c['arch']}", path]), launch(tirc, c, path, c["schedule"])):
        if done.returncode or "W0004" in done.stderr:
            return done.stdout + done.stderr
    for arch in TARGETS if ptxas else []:
        ptx = os.path.join(folder, "k.ptx")
        build = run([tirc, "build", path, "--kernel=by_hand", f"--arch={arch}", "--emit=ptx", "-o", ptx])
        done = build if build.returncode else run([ptxas, f"-arch={arch}", "-o", os.devnull, ptx])
        if done.returncode:
            return done.stdout + done.stderr
    return None


def check_mutants(tirc, c, lines, path, counts):
    for name, changed in mutants(lines):
        path.write_text(kernel(c, changed), encoding="utf-8")
        done = run([tirc, "check", f"--arch={c['arch']}", "--kernel=by_hand", path])
        if done.returncode not in (0, 2):
            return f"{name}: {done.returncode}\n{done.stderr}"
        if "error[E041" in done.stderr:
            counts["refused"] += 1
        elif "error[" in done.stderr:
            counts["no program"] += 1
        elif "warning[W0004]" in done.stderr:
            counts["unchecked"] += 1
        else:
            counts["harmless"] += 1
            for schedule in ("eager", "adversarial:1", "random:1"):
                done = launch(tirc, c, path, schedule)
                if done.returncode:
                    return f"{name} is accepted, and the emulator says under {schedule}:\n{done.stdout}{done.stderr}"
    return None


def main(tirc, count=8, first=0):
    ptxas = shutil.which("ptxas") or shutil.which("/usr/local/cuda/bin/ptxas")
    counts = {"refused": 0, "harmless": 0, "unchecked": 0, "no program": 0}
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "k.tir")
        for number in range(int(first), int(first) + int(count)):
            c = draw(number)
            lines = roles_body(c) if c["roles"] else plain_body(c)
            text = kernel(c, lines)
            wrong = check_right(tirc, ptxas, c, text, path, folder)
            wrong = wrong or check_mutants(tirc, c, lines, path, counts)
            if wrong:
                print(f"kernel {number}: {c}\n{text}\n{wrong}")
                return 1
    print(f"{count} kernels; mutants: {counts}")
    return 0 if counts["refused"] else 1


if __name__ == "__main__":
    sys.exit(main(str(pathlib.Path(sys.argv[1]).resolve()), *sys.argv[2:]))
