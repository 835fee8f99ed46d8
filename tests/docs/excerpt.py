# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Excerpts of programs and of output, as the pages show them."""

import re


def is_line(excerpt, line):
    """Whether a line of an excerpt, where `...` stands for any text, is this line."""
    pattern = ".*".join(re.escape(part) for part in excerpt.split("..."))
    return re.fullmatch(pattern, line) is not None


def is_part(excerpt, lines):
    """Whether the excerpt's lines are among these lines, in this order."""
    rest = iter(lines)
    return all(any(is_line(wanted, line) for line in rest) for wanted in excerpt)
