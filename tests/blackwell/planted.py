# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Bugs of five classes in what the compiler makes of a kernel with tensor memory or requests for tiles.

order   no commit, wait or fence
alias   two buffers, or two slots of one, in the same columns of tensor memory
scale   a product takes another scale of a column
cancel  one more tile is asked for after there was none
free    tensor memory is freed before all threads are done with it, or not at all

The first two are planted where sync_check reads the program, the others in the program of one thread.
Each program is wrong at sizes for which every slot is used.
"""

import re

NAME = r"[\w.]+"


def instead(lines, at, line):
    return lines[:at] + [line] + lines[at + 1:]


def in_loops(lines):
    """Is each line in a loop? Beyond all loops a barrier may do what a wait does."""
    blocks = []
    for line in lines:
        if line.lstrip().startswith("}"):
            blocks.pop()
        yield any(blocks)
        if line.endswith("{"):
            blocks.append(bool(re.search(r"\b(tiles|for|while|do)\b", line)))


def buffers(lines):
    """Of tensor memory: names, and whether each has slots."""
    found = [re.match(rf"\s*let ({NAME}): tmem \w+\[([\d, ]+)\] = tmem_buffer\(", line) for line in lines]
    return {f[1]: f[2].count(",") == 2 and not f[2].startswith("1,") for f in found if f}


def multiplies_there(lines):
    """Does this variant of a kernel multiply in tensor memory, in roles that only mbarriers order?"""
    return any("gemm_tmem(" in line for line in lines)


def has_roles(lines):
    return any(re.match(r"\s*role ", line) for line in lines)


def may_be_harmless(lines):
    """Of several products one may wait for what another has waited for, or come to columns that it has left, as of P over S.
    Where the role that computes fills slots of operands, a full one says that it has read the sums before."""
    compute = "\n".join(lines).partition("role compute ")[2].partition("\n    role ")[0]
    return sum("gemm_tmem(" in line for line in lines) > 1 or bool(re.search(r"\bstore\((slots|factor)", compute))


def is_needed(lines, at, writes, products):
    """Would the program be wrong without this commit, wait or fence?

    A kernel by hand may have fences before products that none needs, since threads write nothing there. Of several
    products that wait for each other, that a slot is full or free may follow from another's, and so may a fence."""
    line = lines[at]
    if products > 1:
        bar = re.match(rf"\s*(?:commit|wait)\(({NAME})", line)
        view = bar and next((text for text in lines[:at] if re.match(rf"\s*let {bar[1]}: .* = view\(", text)), "")
        return "commit(" in line or bool(view and re.search(r"view\(done", view))
    after = next((text for text in lines[at:] if re.search(r"\b(gemm_tmem|load)\(", text)), "")
    return writes or "after_thread_sync" not in line or "gemm_tmem" not in after


def order(lines):
    writes = has_roles(lines) or any(re.search(rf"\bstore\({name}\[", line) for name in buffers(lines) for line in lines)
    products = sum("gemm_tmem(" in line for line in lines)
    for at, (line, in_loop) in enumerate(zip(lines, in_loops(lines))):
        if in_loop and re.match(r"\s*(commit|wait|fence)\(", line) and is_needed(lines, at, writes, products):
            yield at, lines[:at] + lines[at + 1:]


def is_used_from_the_first(lines, name):
    """Or only by views that begin further on, which may be beyond the columns of another buffer?"""
    uses = [line for line in lines if re.search(rf"\b{name}\b", line) and f"let {name}:" not in line]
    return not all(re.search(rf"= view\({name}\[0:\+\d+, [1-9]", line) for line in uses)


def alias(lines):
    """A buffer in the columns of the first one; a slot that is always the first one, where roles run ahead."""
    slots = [name for name, has_slots in buffers(lines).items() if has_slots and has_roles(lines)]
    for at, line in enumerate(lines):
        moved = re.sub(r"(= tmem_buffer\(.*)column = [1-9]\d*", r"\g<1>column = 0", line)
        if moved != line and is_used_from_the_first(lines, re.search(rf"let ({NAME}):", line)[1]):
            yield at, instead(lines, at, moved)
        for name in slots:
            moved = re.sub(rf"\b{name}\[{NAME},", f"{name}[i32(0),", line)
            if moved != line:
                yield at, instead(lines, at, moved)


def scale(lines):
    for at, line in enumerate(lines):
        found = re.search(r"tcgen05_mma\(.*scales = (\d)", line)
        step = int(found[1]) if found else 4
        if step == 4:  # all scales of a column
            continue
        for name in ("a_scale", "b_scale"):
            now = re.search(rf", {name} = (\d)", line)
            text = line.replace(now[0], "") if now else line
            other = (int(now[1] if now else 0) + step) % 4
            yield at, instead(lines, at, text.replace("scales =", f"{name} = {other}, scales ="))


def cancel(lines):
    """The loop in which tiles are asked for has no end."""
    for at, line in enumerate(lines):
        if "try_cancel(" in line:
            loop = max(i for i in range(at) if re.search(r"\bwhile\b", lines[i]))
            end = next(i for i in range(loop, at) if re.match(r"\s*yield ", lines[i]))
            yield end, instead(lines, end, re.sub(r"yield .*;", "yield true;", lines[end]))


def free(lines):
    """Not at all; before the barrier or without one, unless threads meet between the last load and it."""
    at = next((i for i, line in enumerate(lines) if "tmem_free(" in line), None)
    if at is None:
        return
    yield at, lines[:at] + lines[at + 1:]
    barriers = [i for i in range(at) if re.match(r"\s*(bar_sync|cluster_wait)\(", lines[i])]
    last = barriers[-1]
    first = last - ("cluster_wait" in lines[last])
    block = lines[at - 1:at + 2]  # if this is warp 0
    load = max((i for i in range(at) if re.search(r"\btmem_ld\(", lines[i])), default=0)
    if not any(load < i < first for i in barriers):
        yield first, lines[:first] + lines[last + 1:]
        yield first, lines[:first] + block + lines[first:at - 1] + lines[at + 2:]


OF_TILES, OF_THREADS = [order, alias], [scale, cancel, free]
CLASSES = [rule.__name__ for rule in OF_TILES + OF_THREADS]
