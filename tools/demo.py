#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""sudo tools/demo [--keep]

From nothing (or from the cache): two hypervisor VMs, a guest that gets an InfiniBand VF in its tenant's
partition, granted by a real OpenSM, and migrates with it to the other one. Every fact shown
is also asserted; "demo: ok" is the last line only then.
--keep leaves everything running and says how to look around.
"""

import os
import pathlib
import signal
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "tests/rig"))

from kit import hypervisors  # noqa: E402
from kit.base import Lock, RigError, say  # noqa: E402
from kit.case import Failure, Rig  # noqa: E402
from kit.story import STEPS, Story  # noqa: E402
from kit.vm import Vm  # noqa: E402

KEPT = """
Left running, with the guest stopped. To look around:
  tests/rig/rig cmd hva vhcactl vfs          the agent's view (also: node, domains, outbox)
  tests/rig/rig cmd hva virsh start vm1      the guest again; its serial line is /var/log/libvirt/qemu/vm1.serial
  tests/rig/rig log hva                      logs of the agent, OpenSM and libvirt
  tests/rig/rig down                         end it"""


class Clock:
    """Headlines with the time since the start."""

    def __init__(self):
        self.start = time.monotonic()

    def headline(self, text):
        say(f"\n[{time.monotonic() - self.start:6.1f} s] {text}")


def show(text):
    say("    " + text.rstrip().replace("\n", "\n    "))


def tell(clock):
    """The whole story."""
    clock.headline("two hypervisors (QEMU TCG, Debian 12) boot" )
    hypervisors.up()
    clock.headline("the project is built and installed in both, as a user would")
    hypervisors.install()
    story = Story(Rig(), show)
    for step, text in STEPS:
        clock.headline(text)
        step(story)


def main():
    if sys.argv[1:] not in ([], ["--keep"]):
        print(__doc__.strip(), file=sys.stderr)
        return 2
    if os.geteuid() != 0:
        print("demo: needs root (it builds a root file system): sudo tools/demo", file=sys.stderr)
        return 1
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the hypervisors are ended
    keep = "--keep" in sys.argv
    clock = Clock()
    if subprocess.run([str(ROOT / "tools/deps"), "build", "rig"]).returncode:
        return 1
    try:
        with Lock("tools/demo"):
            if any(Vm(n).pid() for n in hypervisors.NAMES):
                raise RigError("the hypervisors are up already: tests/rig/rig down, then again")
            try:
                tell(clock)
            except BaseException:
                if not keep:
                    hypervisors.down()
                raise
            if not keep:
                hypervisors.down()
    except (Failure, RigError, OSError) as e:
        print(f"\n    {e}\ndemo: FAILED after {time.monotonic() - clock.start:.0f} s", file=sys.stderr)
        return 1
    if keep:
        say(KEPT)
    clock.headline("every fact shown above was asserted")
    say("demo: ok")
    return 0


if __name__ == "__main__":
    sys.exit(main())
