#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""sudo tests/bench/bench_migration.py [RUNS]: managed migration beside the same by plain commands, on the rig.

One guest with one VF goes there and back, RUNS times each way. Plain is what one does by hand:
detach-device, sleep 3, migrate --live --p2p, attach-device, with the agents stopped and no identity set.
Times, ratios ours / plain, and what of the time without the VF nobody but the agents (or the commands)
accounts for: from libvirt's DEVICE_REMOVED to the begin of the migration, and from RESUMED at the
destination to the attach. The commands' own part begins when a shell calls virsh: its start and its
connection are not in it. An emulated CPU is some twenty times slower than a real one, and the bounds in
milliseconds are for this; bench_blackout has those for a real one. Exit 1 if a bound is broken.
"""

import datetime
import re
import statistics
import sys
import time

import figures
from kit import hypervisors
from kit.base import Lock, wait_for
from kit.case import Rig
from kit.guest import hostdev
from kit.host import VFS
from kit.migration import Moving

SETTLE_S = 3  # what people put between detach and migrate, because detach-device does not wait for the guest
PLAIN = """set -e
now() {{ echo $((${{EPOCHREALTIME/./}} / 1000)); }}
stdbuf -oL virsh event --event device-removed --domain vm1 --timestamp --timeout 600 > /tmp/removed.log &
stdbuf -oL virsh -c qemu+tcp://{peer}/system event --event lifecycle --loop --timestamp --timeout 600 > /tmp/resumed.log &
listener=$!
sleep 3
t0=$(now)
virsh -q detach-device vm1 /tmp/vf-here.xml --live
sleep {settle}
t1=$(now)
virsh -q migrate --live --p2p --persistent --undefinesource vm1 qemu+tcp://{peer}/system --migrateuri tcp://{address}
t2=$(now)
virsh -q -c qemu+tcp://{peer}/system attach-device vm1 /tmp/vf-there.xml --live
t3=$(now)
kill $listener
cat /tmp/removed.log /tmp/resumed.log
echo "times $t0 $t1 $t2 $t3"
"""
STEPS = {"detach": "detach", "copy": "copy", "attach": "attach", "total": "whole migration", "without": "time without the VF"}
SHARES = {"removed_to_migrate": "DEVICE_REMOVED to migrate", "resumed_to_attach": "RESUMED to attach",
          "resumed_to_granted": "RESUMED to granted"}
BOUNDS = {"whole migration": "ratio <= 1.5", "time without the VF": "ratio <= 1.5",
          "DEVICE_REMOVED to migrate, p50": "ratio <= 0.5", "RESUMED to attach, p50": "ratio <= 0.5",
          "DEVICE_REMOVED to migrate, p99": "value <= 2000", "RESUMED to attach, p99": "value <= 2000"}


def ours(move):
    """Seconds: {step: s} of one managed migration, from the source's own clock."""
    source = move.guest.host
    started = time.monotonic()
    source.sh(f"vhcactl migrate vm1 {move.other(source).name}", timeout=420)
    total = time.monotonic() - started
    record = source.vhcactl("migrations")["migrations"][-1]
    ms = record["step_ms"]
    move.assert_owner(move.other(source))
    return {**shares(record, move.guest.host), "detach": ms["detaching"] / 1000, "copy": ms["copying"] / 1000,
            "attach": ms["finishing"] / 1000, "total": total,
            "without": sum(ms[s] for s in ("detaching", "copying", "finishing")) / 1000}


def shares(record, destination):
    """Milliseconds, from both agents' records; the grant comes when the guest's driver has asked for it."""
    def there():
        us = destination.vhcactl("migrations")["migrations"][-1]["blackout_us"]
        return us if "resumed_to_granted" in us else None
    us = {**record["blackout_us"], **wait_for(there, 120, f"{destination.name}: the record of the grant", 0.5)}
    return {name: us[name] / 1000 for name in SHARES}


def told(text, event):
    """When virsh heard of this event first, in ms since 1970."""
    at = re.search(rf"^(\S+ \S+): event {event}", text, re.MULTILINE)[1]
    return datetime.datetime.strptime(at, "%Y-%m-%d %H:%M:%S.%f%z").timestamp() * 1000


def plain(move):
    """The same by commands that know nothing of each other."""
    source, guest = move.guest.host, move.guest
    other = move.other(source)
    (here,) = guest.live_hostdevs()
    for name, bdf in (("here", here), ("there", VFS[0])):
        source.put(f"/tmp/vf-{name}.xml", hostdev(bdf).encode())
    script = PLAIN.format(settle=SETTLE_S, peer=other.name, address=hypervisors.PRIVATE[other.name])
    text = source.sh(script, timeout=420)
    guest.host = other
    guest.wait_vfs(1, timeout=120)
    t0, t1, t2, t3 = (int(w) for w in text.split("times ")[1].split())
    return {"detach": (t1 - t0) / 1000, "copy": (t2 - t1) / 1000, "attach": (t3 - t2) / 1000,
            "total": (t3 - t0) / 1000, "without": (t3 - t0) / 1000,
            "removed_to_migrate": t1 - told(text, "'device-removed' for domain '?vm1'?:"),
            "resumed_to_attach": t2 - told(text, "'lifecycle' for domain '?vm1'?: Resumed Migrated")}


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


def report_steps(ret, times):
    for name, what in STEPS.items():
        mine, plain_s = (statistics.median(t[name] for t in times[way]) for way in ("ours", "plain"))
        ret.add(f"by hand, {what}", plain_s, "s")
        ret.add(what, mine, "s", f"by hand, {what}", plain_s)


def percentile(values, share):
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def report_shares(ret, times):
    for name, what in SHARES.items():
        mine, plain_ms = ([t[name] for t in times[way] if name in t] for way in ("ours", "plain"))
        base = statistics.median(plain_ms) if plain_ms else None
        if plain_ms:
            ret.add(f"by hand, {what}, p50", base, "ms")
        ret.add(f"{what}, p50", statistics.median(mine), "ms", base and f"by hand, {what}, p50", base)
        ret.add(f"{what}, p99", percentile(mine, 0.99), "ms")


def report(times):
    ret = figures.Figures("migration", BOUNDS)
    report_steps(ret, times)
    report_shares(ret, times)
    return ret.end()


def main():
    parser = figures.parser(__doc__, build=False)
    parser.add_argument("runs", metavar="RUNS", type=figures.count, nargs="?", default=1)
    args = parser.parse_args()
    with Lock("bench_migration"):
        hypervisors.up()
        hypervisors.install()
        try:
            return report(measure(Rig(), args.runs))
        finally:
            hypervisors.reset()


if __name__ == "__main__":
    sys.exit(main())
