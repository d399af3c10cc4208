# SPDX-License-Identifier: LGPL-2.1-or-later
"""Writes that wait in the kernel for a guest, and whether the agent's API answers meanwhile."""

import statistics

from kit.base import RIG, SLOW, say, wait_for
from kit.case import VFS, check, equal
from kit.host import SOCKET

PATHS = ("/v1/vfs", "/v1/hcas", "/healthz", f"/v1/vfs/{VFS[0]}/explain")
ROUNDS = 30  # of answers on all paths: about three seconds of an idle machine
QUICK_MS = 10 * SLOW
HELD_MS = 5000  # an answer that comes after the write and took longer is believed to have waited for it


class Watch:
    """apiwatch on a host, until stop()."""

    def __init__(self, host):
        self.host = host
        host.put("/run/apiwatch.py", (RIG / "apiwatch.py").read_bytes(), "755")
        host.sh("systemctl reset-failed apiwatch 2>/dev/null; systemd-run -q --unit=apiwatch -p StandardOutput=truncate:/run/apiwatch.out "
                f"/run/apiwatch.py {SOCKET} {' '.join(PATHS)}")

    def wait_rounds(self):
        """Wait until each path has been answered some times from now on, be that as slow as it may."""
        enough = self.count() + (ROUNDS + 1) * len(PATHS)
        wait_for(lambda: self.count() >= enough, 120, f"{ROUNDS} answers of the agent on each of {PATHS}", 0.5)

    def count(self):
        """Answers until now."""
        return len(self.host.read("/run/apiwatch.out").splitlines())

    def stop(self):
        """End it; return [(asked at, milliseconds, status, path)]."""
        self.host.sh("systemctl stop apiwatch")
        lines = (line.split() for line in self.host.read("/run/apiwatch.out").splitlines())
        return [(float(asked), float(ms), int(status), path) for asked, ms, status, path in lines]


class Write:
    """One write in a hypervisor that is expected to wait in the kernel. name tells it from others."""

    def __init__(self, host, name, value, path):
        self.host, self.what, self.files = host, f"writing {value} to {path}", f"/run/write-{name}"
        host.sh(f"rm -f {self.files}.*; systemd-run -q --collect --unit=write-{name} bash -c "
                f"'date +%s.%N > {self.files}.begin; echo {value} > {path}; date +%s.%N > {self.files}.end'")
        wait_for(lambda: host.exists(f"{self.files}.begin"), 30, f"{self.what}: its begin")

    def ended(self):
        """That its end is written, too: the file is there a little sooner."""
        return self.host.exists(f"{self.files}.end") and bool(self.host.read(f"{self.files}.end"))

    def wait_ended(self):
        """(begin, end) by the hypervisor's clock."""
        wait_for(self.ended, 60, f"{self.what}: its end, now that nobody holds the VF")
        return tuple(float(self.host.read(f"{self.files}.{when}")) for when in ("begin", "end"))


def holding_guest(rig, host):
    """A guest that has a VF and does not let it go when it is asked to: its CPU has not run yet."""
    guest = rig.guest(host, 1, ("ib0", "0x8001")).define()
    host.sh("virsh -q start --paused vm1", timeout=120)
    return guest, host.wait_attached(guest)["bdf"]


def answered_throughout(answers, begin, end):
    """All requests during the write were answered, as soon as at any other time; none waited for its end."""
    during = [a for a in answers if begin < a[0] < end]
    equal({(s, p) for _, _, s, p in during if s != 200}, set(), "answers other than 200")
    held = [a for a in during if a[0] + a[1] / 1e3 >= end and a[1] > HELD_MS]
    equal(held, [], "requests that were held until the write ended")
    for path in PATHS:
        times = sorted(ms for _, ms, _, p in during if p == path)
        check(len(times) >= ROUNDS, f"{path}: only {len(times)} answers while the write hung for {end - begin:.1f} s")
        say(f"       {path}: {len(times)} answers in {end - begin:.1f} s: fastest {times[0]:.1f} ms, "
            f"median {statistics.median(times):.1f} ms, slowest {times[-1]:.1f} ms")
        # A loaded machine delays some answers, and now and then many; an agent that blocks has no fast one.
        check(times[0] < QUICK_MS, f"{path}: the fastest answer took {times[0]:.1f} ms")
