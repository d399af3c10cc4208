# SPDX-License-Identifier: LGPL-2.1-or-later
"""Guests move between the hypervisors and their InfiniBand identities move with them, or everything stays as it was."""

from kit.case import case, check, equal
from kit.migration import SLOW_MIB_S, Moving

REFUSING_HOOK = "/etc/libvirt/hooks/qemu.d/zz-refuse"


def moving(rig, *vfs, host=None, number=1, granted=True, **options):
    """A guest that is up with its VFs, in OpenSM's books too."""
    vfs = vfs or (("ib0", "0x8001"),)
    guest = rig.guest(host or rig.hva, number, *vfs, **options).start(wait=False)
    for name, _ in vfs:
        guest.host.wait_attached(guest, name)
    guest.wait_ready()
    if granted:
        guest.wait_vfs(len(vfs), timeout=120)
        for name, _ in vfs:
            guest.host.wait_attached(guest, name, granted=True)
    return Moving(rig, guest, tuple(name for name, _ in vfs))


def rolls_back(move, migration, *words):
    """The migration fails with these words in its reason, and everything is at the source as it was."""
    source = move.guest.host
    view = move.wait_final(migration)
    equal(view["state"], "failed", f"end of the migration ({view['reason']})")
    for word in words:
        check(word in (view["reason"] or ""), f"'{word}' is not in the reason: {view['reason']}")
    move.assert_owner(source)
    check(move.guest.name not in move.other(source).sh("virsh -q list --all --name").split(),
          f"libvirt at {move.other(source).name} still knows {move.guest.name}")


# ---- what goes well ----

@case
def there_and_back(rig):
    """A guest moves to the other host and back: vGUID, P_Keys, guest address, the SA's path record follow each time."""
    move = moving(rig)
    move.assert_granted(rig.hva)
    for host in (rig.hvb, rig.hva):
        move.migrate()
        check(move.guest.host is host, f"the guest is not on {host.name}")


# ---- what fails before anything was touched ----

@case
def destination_agent_down(rig):
    """No agent at the destination: given up after a while, the guest keeps its VF."""
    move = moving(rig, granted=False)
    rig.hvb.sh("systemctl stop vhcad")
    try:
        view = move.wait_final(move.begin())
    finally:
        rig.hvb.sh("systemctl start vhcad", timeout=90)
    equal(view["state"], "failed", "end of the migration")
    move.assert_owner(rig.hva)


# ---- what fails later ----

@case
def destination_hook_refuses(rig):
    """A hook of somebody else refuses the domain at the destination: back, with the hook's words as the reason."""
    move = moving(rig)
    rig.hvb.put(REFUSING_HOOK, b"#!/bin/sh\n[ \"$2\" = migrate ] || exit 0\necho 'not today' >&2\nexit 1\n", "755")
    try:
        rolls_back(move, move.begin(), "not today")
    finally:
        rig.hvb.sh(f"rm {REFUSING_HOOK}")
    move.assert_granted(rig.hva)


@case
def cancelled_while_copying(rig):
    """vhcactl migrate --cancel in the middle of the copy: back at the source, nothing left at the destination."""
    move = moving(rig)
    move.speed(SLOW_MIB_S)
    migration = move.begin()
    move.wait_copying(migration)
    rig.hva.sh("vhcactl migrate --cancel vm1", timeout=240)
    rolls_back(move, migration, "cancelled")
    move.assert_granted(rig.hva)


@case
def destination_qemu_killed(rig):
    """The QEMU at the destination dies in the middle of the copy: back at the source."""
    move = moving(rig)
    move.speed(SLOW_MIB_S)
    migration = move.begin()
    move.wait_copying(migration)
    rig.hvb.sh("kill -KILL $(pgrep -f guest=vm1)")
    rolls_back(move, migration)
    move.assert_granted(rig.hva)
