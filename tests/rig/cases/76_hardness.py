# SPDX-License-Identifier: LGPL-2.1-or-later
"""An adapter as hard as hardware: resets that take their time, drivers that come late, sysfs files that fail or dawdle (tests/rig/simhca)."""

import contextlib

from kit.blocking import Watch
from kit.case import VFS, assert_scrubbed, case, check, equal
from kit.host import PF

CONTROL = f"/sys/kernel/debug/simhca/{PF}"
PARAMETERS = "/sys/module/mlx4_core/parameters"
EIO, EINVAL = 5, 22
SLOW_FLR_MS = 3000
SLOW_FILE_MS = 1500


@contextlib.contextmanager
def faults(host, *lines):
    """These faults of the adapter's files (ib_fault.c)."""
    host.sh("; ".join(f"echo '{line}' > {CONTROL}/faults" for line in lines))
    try:
        yield
    finally:
        host.sh(f"echo clear > {CONTROL}/faults")


@contextlib.contextmanager
def parameters(host, **values):
    """Parameters of mlx4_core that delay something; 0 afterwards."""
    host.sh("; ".join(f"echo {value} > {PARAMETERS}/{name}" for name, value in values.items()))
    try:
        yield
    finally:
        host.sh("; ".join(f"echo 0 > {PARAMETERS}/{name}" for name in values))


def stat(host, name):
    lines = dict(line.split() for line in host.read(f"{CONTROL}/stats").splitlines())
    return int(lines[name])


def hits(host):
    """How often each fault has struck."""
    return [int(line.split()[-1]) for line in host.read(f"{CONTROL}/faults").splitlines()]


def never_held(answers, limit_ms):
    """A loaded machine delays an answer now and then; an agent that waits for the adapter delays each."""
    slow = [a for a in answers if a[1] > limit_ms]
    check(answers and len(slow) * 10 < len(answers), f"{len(slow)} of {len(answers)} answers took {limit_ms} ms or more")


def never_blocked(host):
    equal(host.get("node")["loop"]["blocking_calls"], 0, "blocking calls on the state thread")


@case
def resets_take_their_time(rig):
    """A VF whose reset takes three seconds, and whose PF cleans up for two more: the guest gets it all the same, the agent answers meanwhile."""
    host = rig.hva
    with parameters(host, flr_ms=SLOW_FLR_MS, flr_clean_ms=2000):
        watch = Watch(host)
        guest = rig.guest(host, 1, ("ib0", "0x8001")).start()
        vf = host.wait_attached(guest, granted=True)
        check("after FLR" in host.sh("dmesg"), "no reset had to wait")
        guest.destroy()
        host.wait_vf(vf["bdf"], "free", 90)
        never_held(watch.stop(), SLOW_FLR_MS)
    assert_scrubbed(host, vf["bdf"])
    never_blocked(host)


# A VF's driver by hand, in its config space (core_vf.c): 0xdN resets, 0xcN is the PF's answer, 0xeN starts. While a driver runs, the PF writes
# there, too, so a second start has to be repeated until it is seen.
START = """set -e
vf="setpci -s %s"
$vf CACHE_LINE_SIZE=d1
$vf COMMAND=4:4
for i in $(seq 100); do [ "$($vf CACHE_LINE_SIZE)" = c1 ] && break; sleep 0.1; done
$vf CACHE_LINE_SIZE=e1
for i in $(seq 100); do grep -q "%s active 1" %s/state && break; sleep 0.1; done
grep "%s active 1" %s/state
for i in $(seq 100); do $vf CACHE_LINE_SIZE=e2; sleep 0.1; grep -q "%s active 0" %s/state && break; done"""


@case
def drivers_reset_before_they_start(rig):
    """mlx4's order of a VF's driver: a reset, then the start; a second start without a reset is refused, and ends the first."""
    host = rig.hva
    guest = rig.guest(host, 1, ("ib0", "0x8001")).start()
    host.wait_attached(guest, granted=True)
    check(stat(host, "comm_resets") > 0, "the guest's driver did not reset its VF")
    refused, free = stat(host, "comm_refused"), VFS[-1]
    equal(host.agent_vf(free)["state"], "free", f"{free}")
    try:
        host.sh(START % (free, *(free, CONTROL) * 3))
        equal(stat(host, "comm_refused"), refused + 1, "starts that were refused")
    finally:
        host.sh(f"setpci -s {free} COMMAND=0:4; setpci -s {free} CACHE_LINE_SIZE=0")


LOAD = """set -e
systemctl stop vhcad opensm-vhcad 'rig-cable@*'
mark="loading anew $$ $RANDOM"
echo "$mark" > /dev/kmsg
modprobe -r mlx4_ib
modprobe -r mlx4_core
modprobe mlx4_core probe_vf=2
modprobe mlx4_ib
udevadm settle
systemctl start opensm-vhcad
for i in $(seq 300); do [ -e /sys/bus/pci/devices/%s/driver ] && break; sleep 0.1; done
readlink /sys/bus/pci/devices/%s/driver
dmesg | sed "1,/$mark/d" """


@case(dirty=True, kills=("hva vhcad", "hva opensm-vhcad", "hva adapter"))
def vfs_probed_late_by_their_own_host(rig):
    """probe_vf: the PF is not ready when its VFs are probed, so their driver comes later; the agent takes them from it and scrubs them."""
    host = rig.hva
    out = host.sh(LOAD % (VFS[0], VFS[0]), timeout=120)
    check("PF is not ready - Deferring probe" in out, "no probe was deferred")
    check("mlx4_core" in out.splitlines()[0], f"{VFS[0]} did not get the host's driver: {out[:300]}")
    host.sh("systemctl start vhcad", timeout=90)
    for bdf in VFS:
        host.wait_vf(bdf, "free", 90)
    assert_scrubbed(host, *VFS)
    never_blocked(host)


@case
def files_that_fail(rig):
    """A write that fails once is repeated, one that fails though it took effect is believed to have; a VF that cannot be scrubbed is quarantined with the file's name, and free when it can."""
    host = rig.hva
    with faults(host, f"write *.1/ports/1/pkey_idx/0 {EINVAL} 0 1 applied", f"write ports/1/admin_guids/1 {EIO} 0 1"):
        guest = rig.guest(host, 1, ("ib0", "0x8001")).start()
        vf = host.wait_attached(guest, granted=True)
        equal((vf["bdf"], hits(host)), (VFS[0], [1, 1]), "the VF, and how often its files failed")
    with faults(host, f"write *.1/ports/1/pkey_idx/0 {EIO} 0 0"):
        guest.destroy()
        bad = host.wait_vf(VFS[0], "quarantined", 90)
        check("unmap a P_Key index" in (bad["reason"] or ""), f"reason of the quarantine: {bad['reason']}")
    host.wait_vf(VFS[0], "free", 120)
    assert_scrubbed(host, VFS[0])
    never_blocked(host)


@case
def files_that_take_their_time(rig):
    """Each GUID takes a second and a half to be written and each map a while to be read: guests wait, the agent's API does not."""
    host = rig.hva
    with faults(host, f"write ports/1/admin_guids/* 0 {SLOW_FILE_MS} 0", "read *.1/ports/1/pkey_idx/?? 0 20 0"):
        watch = Watch(host)
        guest = rig.guest(host, 1, ("ib0", "0x8001")).start()
        host.wait_attached(guest, granted=True)
        guest.destroy()
        host.wait_vf(VFS[0], "free", 120)
        never_held(watch.stop(), SLOW_FILE_MS)
        check(all(hits(host)), f"faults that did not strike: {hits(host)}")
    never_blocked(host)
