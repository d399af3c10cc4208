#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""sudo tests/bench/bench_migration.py [RUNS]: managed migration beside the same by plain commands, on the rig.

One guest with one VF goes there and back, RUNS times each way. Plain is what one does by hand: detach-device, sleep 3,
migrate --live --p2p, attach-device, with the agents stopped and no identity set. Prints the times and the ratios ours / plain.
"""

import pathlib
import statistics
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "rig"))

from kit import hypervisors  # noqa: E402
from kit.base import Lock, say  # noqa: E402
from kit.case import Rig  # noqa: E402
from kit.guest import hostdev  # noqa: E402
from kit.host import VFS  # noqa: E402
from kit.migration import Moving  # noqa: E402

SETTLE_S = 3  # what people put between detach and migrate, because detach-device does not wait for the guest
PLAIN = """set -e
now() {{ echo $((${{EPOCHREALTIME/./}} / 1000)); }}
t0=$(now)
virsh -q detach-device vm1 /tmp/vf-here.xml --live
sleep {settle}
t1=$(now)
virsh -q migrate --live --p2p --persistent --undefinesource vm1 qemu+tcp://{peer}/system --migrateuri tcp://{address}
t2=$(now)
virsh -q -c qemu+tcp://{peer}/system attach-device vm1 /tmp/vf-there.xml --live
t3=$(now)
echo "times $((t1 - t0)) $((t2 - t1)) $((t3 - t2)) $((t3 - t0))"
"""


def ours(move):
    """Seconds: {step: s} of one managed migration, from the source's own clock."""
    source = move.guest.host
    started = time.monotonic()
    source.sh(f"vhcactl migrate vm1 {move.other(source).name}", timeout=420)
    total = time.monotonic() - started
    ms = source.vhcactl("migrations")["migrations"][-1]["step_ms"]
    move.assert_owner(move.other(source))
    return {"detach": ms["detaching"] / 1000, "copy": ms["copying"] / 1000, "attach": ms["finishing"] / 1000, "total": total,
            "without": sum(ms[s] for s in ("detaching", "handing_over", "copying", "finishing")) / 1000}


def plain(move):
    """The same by commands that know nothing of each other."""
    source, guest = move.guest.host, move.guest
    other = move.other(source)
    (here,) = guest.live_hostdevs()
    for name, bdf in (("here", here), ("there", VFS[0])):
        source.put(f"/tmp/vf-{name}.xml", hostdev(bdf).encode())
    script = PLAIN.format(settle=SETTLE_S, peer=other.name, address=hypervisors.PRIVATE[other.name])
    started = time.monotonic()
    words = source.sh(script, timeout=420).split("times ")[1].split()
    total = time.monotonic() - started
    guest.host = other
    guest.wait_vfs(1, timeout=120)
    detach, copy, attach, without = (int(w) / 1000 for w in words)
    return {"detach": detach, "copy": copy, "attach": attach, "total": total, "without": without}


def measure(rig, runs):
    """Both ways on the same guest: {way: [times...]}."""
    guest = rig.guest(rig.hva, 1, ("ib0", "0x8001")).start()
    rig.hva.wait_attached(guest, granted=True)
    guest.wait_vfs(1)
    move = Moving(rig, guest)
    times = {"ours": [ours(move) for _ in range(2 * runs)]}
    for host in rig.hosts:
        host.sh("systemctl stop vhcad")
    times["plain"] = [plain(move) for _ in range(2 * runs)]
    return times


def report(times):
    names = ("detach", "copy", "attach", "total", "without")
    medians = {way: {n: statistics.median(t[n] for t in runs) for n in names} for way, runs in times.items()}
    say(f"{'':8}" + "".join(f"{n:>10}" for n in names))
    for way, values in medians.items():
        say(f"{way:8}" + "".join(f"{values[n]:8.1f} s" for n in names))
    for name, what in (("total", "whole migration"), ("without", "time without the VF")):
        say(f"{what}: ours / plain = {medians['ours'][name] / medians['plain'][name]:.2f}")


def main():
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    with Lock("bench_migration"):
        hypervisors.up()
        hypervisors.install()
        try:
            report(measure(Rig(), runs))
        finally:
            hypervisors.reset()
    return 0


if __name__ == "__main__":
    sys.exit(main())
