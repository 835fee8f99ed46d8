# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs items in forked workers, so that a fault or a hang costs one item and not the run.

A fault leaves a CUDA context unusable. A worker that loses its context, dies or takes too long for
an item is replaced by a new one that goes on with the next item. The parent must not have touched
the GPU before.
"""

import json
import os
import selectors
import signal
import sys
import time
import traceback


class Lane:
    """A list of items and the worker that does them, in order."""

    def __init__(self, items, start, work, timeout):
        self.items, self.start, self.work, self.timeout = items, start, work, timeout
        self.at = 0
        self.pid = None

    def spawn(self):
        reader, writer = os.pipe()
        sys.stdout.flush()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(reader)
            self.child(writer)
        os.close(writer)
        self.reader, self.rest = reader, b""
        self.deadline = time.monotonic() + self.timeout + 60  # the first item waits for the device

    def child(self, writer):
        """Sends a line of JSON per item; leaves after an item that broke the device."""
        code = 0
        try:
            context = self.start()
            for item in self.items[self.at:]:
                try:
                    result, broken = self.work(context, item), False
                except Exception as error:  # whatever an item does, the others go on
                    text = str(error).split("\n")[0][:200] or traceback.format_exc(limit=-1)[-200:]
                    result, broken = {"error": f"{type(error).__name__}: {text}"}, fatal(error)
                os.write(writer, json.dumps(result).encode() + b"\n")
                if broken:
                    code = 3
                    break
        except BaseException as error:
            os.write(writer, json.dumps({"error": f"worker: {error}"[:300]}).encode() + b"\n")
            code = 3
        os._exit(code)

    def take(self, line):
        item = self.items[self.at]
        self.at += 1
        self.deadline = time.monotonic() + self.timeout
        return item, json.loads(line)

    def lost(self, why):
        """The worker is gone; the item it was at has failed, unless all are done."""
        os.close(self.reader)
        _, status = os.waitpid(self.pid, 0)
        self.pid = None
        if why is None and os.WIFSIGNALED(status):
            why = f"the worker died by signal {os.WTERMSIG(status)}"
        if why and self.at < len(self.items):
            item = self.items[self.at]
            self.at += 1
            return [(item, {"error": why})]
        return []


def fatal(error):
    """Whether an exception means that the context is lost."""
    text = str(error)
    return any(word in text for word in ("TIR_ERR_DEVICE", "CUDA error", "CUDA_ERROR"))


def read(lane):
    """The finished items that a worker has reported, and whether its pipe is closed."""
    data = os.read(lane.reader, 1 << 16)
    lane.rest += data
    *lines, lane.rest = lane.rest.split(b"\n")
    return [lane.take(line) for line in lines], not data


def run(lanes, start, work, timeout, deadline=None):
    """Yields (item, result) for all items of all lanes; `result` has "error" where one failed.

    `start()` makes a worker's context, `work(context, item)` gives a dict. `timeout` is seconds per
    item. Past `deadline` (time.monotonic()) what is left is reported as not run.
    """
    lanes = [Lane(items, start, work, timeout) for items in lanes if items]
    while any(lane.at < len(lane.items) for lane in lanes):
        late = deadline is not None and time.monotonic() > deadline
        for lane in lanes:
            if late and lane.pid:
                os.kill(lane.pid, signal.SIGKILL)
                yield from lane.lost("not finished: no time left")
            if late:
                rest, lane.at = lane.items[lane.at:], len(lane.items)
                yield from ((item, {"error": "not run: no time left"}) for item in rest)
            elif lane.pid is None and lane.at < len(lane.items):
                lane.spawn()
        with selectors.DefaultSelector() as selector:
            for lane in lanes:
                if lane.pid:
                    selector.register(lane.reader, selectors.EVENT_READ, lane)
            for key, _ in selector.select(1.0) if selector.get_map() else []:
                done, closed = read(key.data)
                yield from done
                if closed:
                    yield from key.data.lost(None)
        for lane in lanes:
            if lane.pid and time.monotonic() > lane.deadline:
                os.kill(lane.pid, signal.SIGKILL)
                yield from lane.lost(f"no result after {lane.timeout} s")
    for lane in lanes:
        if lane.pid:
            os.waitpid(lane.pid, 0)
