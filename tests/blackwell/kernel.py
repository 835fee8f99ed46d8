# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a drawn kernel is, and numbers that all families draw."""

import dataclasses

WITH_TMEM = ["sm_100a", "sm_103a", "sm_110a"]
EVERY = [*WITH_TMEM, "sm_120a"]
WALKS = ["", ", persistent = true", ", persistent = dynamic"]


@dataclasses.dataclass
class Kernel:
    kind: str
    text: str
    given: list  # sizes and inputs of a launch
    whole: list  # the same of one with whole tiles and as many rounds as are enough for every slot; []: no bugs are planted
    archs: list = dataclasses.field(default_factory=lambda: EVERY)
    name: str = ""  # of the kernel, where the file has more than one
    against: str = ""  # of its reference; "": the interpreter
    wish: str = ""  # what the receipt must say
    sms: int = 0  # multiprocessors of the emulator; 0: as many as it has
    planted: str = ""  # the variant that bugs are planted in; "": the best


def trips(r, stages):
    return r.choice([0, 1, max(stages - 1, 0), stages, stages + 1])


def odd(r, trip, step, of):
    """About `trip` steps: the last one is often not whole, by a multiple of `of`."""
    return max(trip * step - (of * r.randrange(step // of) if r.random() < 0.5 else 0), 0)
