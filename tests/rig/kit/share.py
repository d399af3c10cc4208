# SPDX-License-Identifier: LGPL-2.1-or-later
"""Sharing the cases out among several pairs of hypervisors."""

import fcntl
import os
import pathlib
import time

from kit.base import RUN
from kit.vm import MEMORY_MB

HOST_RESERVE_MB = 2048  # for the builds, the page cache and the runner


def pairs_that_fit():
    """One hypervisor of a pair works while the other waits, so a pair needs one core; and memory for two."""
    memory = dict(line.split(":") for line in pathlib.Path("/proc/meminfo").read_text().splitlines())
    available = int(memory["MemAvailable"].split()[0]) // 1024 - HOST_RESERVE_MB
    return max(1, min(len(os.sched_getaffinity(0)), available // (2 * MEMORY_MB)))


class Share:
    """Numbers 0, 1, 2..., each given to one taker. With a file, takers may be several processes."""

    def __init__(self, path=None):
        self.path = path
        self.next = 0

    @classmethod
    def new(cls):
        RUN.mkdir(parents=True, exist_ok=True)
        share = cls(RUN / "share")
        share.path.write_text("0")
        return share

    def take(self, end, until=None):
        """Yield this taker's numbers below end, until none is left, or time.monotonic() says that it is over."""
        while (until is None or time.monotonic() < until) and (number := self.take_one()) < end:
            yield number

    def take_one(self):
        if not self.path:
            self.next += 1
            return self.next - 1
        with open(self.path, "r+", encoding="ascii") as f:
            fcntl.flock(f, fcntl.LOCK_EX)
            number = int(f.read())
            f.seek(0)
            f.write(str(number + 1))
        return number
