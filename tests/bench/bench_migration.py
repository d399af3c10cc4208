#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""sudo tests/bench/bench_migration.py [RUNS]: managed migration beside the same by plain commands, on the rig.

One guest with one VF goes there and back, RUNS times each way. Plain is what one does by hand: detach-device, sleep 3,
migrate --live --p2p, attach-device, with the agents stopped and no identity set. Prints the times and the ratios ours / plain, and
beside each other what of the time without the VF nobody but the agents (or the commands) accounts for: from libvirt's DEVICE_REMOVED
to the begin of the migration, and from RESUMED at the destination to the attach.
"""

import datetime
import pathlib
import re
import statistics
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "rig"))

from kit import hypervisors  # noqa: E402
from kit.base import Lock, say, wait_for  # noqa: E402
from kit.case import Rig  # noqa: E402
from kit.guest import hostdev  # noqa: E402
from kit.host import VFS  # noqa: E402
from kit.migration import Moving  # noqa: E402

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
SHARES = {"removed_to_migrate": "DEVICE_REMOVED -> migrate", "resumed_to_attach": "RESUMED -> attach",
          "resumed_to_granted": "RESUMED -> granted"}
SHARE_MAX_MS = 10   # of the first two, at the 99th percentile


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


def report(times):
    names = ("detach", "copy", "attach", "total", "without")
    medians = {way: {n: statistics.median(t[n] for t in runs) for n in names} for way, runs in times.items()}
    say(f"{'':8}" + "".join(f"{n:>10}" for n in names))
    for way, values in medians.items():
        say(f"{way:8}" + "".join(f"{values[n]:8.1f} s" for n in names))
    for name, what in (("total", "whole migration"), ("without", "time without the VF")):
        say(f"{what}: ours / plain = {medians['ours'][name] / medians['plain'][name]:.2f}")


def percentile(values, share):
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def report_shares(times):
    """The commands' own part begins when a shell calls virsh: its start and its connection are not in it."""
    say(f"{'':28}" + "".join(f"{c:>12}" for c in ("p50", "p99", "max")) + f"{'plain p50':>14}")
    for name, what in SHARES.items():
        ours_ms, plain_ms = ([t[name] for t in times[way] if name in t] for way in ("ours", "plain"))
        say(f"{what:28}" + "".join(f"{v:9.1f} ms" for v in (statistics.median(ours_ms), percentile(ours_ms, 0.99), max(ours_ms)))
            + (f"{statistics.median(plain_ms):11.1f} ms" if plain_ms else f"{'-':>14}")
            + (f"  (at most {SHARE_MAX_MS})" if name != "resumed_to_granted" else ""))


def main():
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    with Lock("bench_migration"):
        hypervisors.up()
        hypervisors.install()
        try:
            times = measure(Rig(), runs)
            report(times)
            report_shares(times)
        finally:
            hypervisors.reset()
    return 0


if __name__ == "__main__":
    sys.exit(main())
