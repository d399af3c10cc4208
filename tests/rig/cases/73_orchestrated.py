# SPDX-License-Identifier: LGPL-2.1-or-later
"""Somebody else calls libvirt: an orchestrator migrates the guest, an operator saves it, a host is emptied. One guest goes through all."""

import json

from kit.base import wait_for
from kit.case import VFS, assert_scrubbed, case, check, equal, free_vfs
from kit.migration import FULL_MIB_S, SLOW_MIB_S, moving

IMAGE = "/var/tmp/vm1.saved"


def prepare(move):
    """vhcactl migrate --external; return its document when the guest may be migrated."""
    source = move.guest.host
    view = json.loads(source.sh(f"vhcactl --json migrate --external vm1 {move.other(source).name}", timeout=240))
    equal(view["state"], "ready", "state of the migration")
    equal(move.guest.live_hostdevs(), {}, "VFs in the guest's XML")
    return view


def command(view):
    return ("virsh migrate --live --p2p --persistent --undefinesource vm1 " + view["peer_libvirt"]
            + (f" --migrateuri {view['peer_migration']}" if view["peer_migration"] else ""))


@case
def an_orchestrator_migrates(rig):
    """virsh migrates a guest that was made ready: both agents see it, and the identity is at the destination."""
    rig.story["move"] = move = moving(rig, memory=128)
    view = prepare(move)
    rig.hva.sh(command(view), timeout=240)
    equal(move.wait_final(view["id"])["state"], "done", "end of the migration")
    move.assert_owner(rig.hvb)
    move.assert_granted(rig.hvb)


@case(story=True)
def an_orchestrator_cancels(rig):
    """virsh domjobabort in the middle of the copy: the agents see that, too, and the guest has its VF again."""
    move = rig.story["move"]
    view = prepare(move)
    move.speed(SLOW_MIB_S)
    rig.hvb.sh(f"systemd-run -q --collect --unit=orchestrator {command(view)}")
    move.wait_copying(view["id"])
    rig.hvb.sh("virsh domjobabort vm1", timeout=60)
    move.rolls_back(view["id"], "orchestrator")
    move.speed(FULL_MIB_S)


@case(story=True)
def parked_saved_and_restored(rig):
    """A parked guest can be saved; the VF is free meanwhile; restored, the guest has its vGUID and keys again."""
    move = rig.story["move"]
    rig.hvb.sh("vhcactl park vm1", timeout=240)
    rig.hvb.sh(f"virsh -q save vm1 {IMAGE}", timeout=240)
    wait_for(lambda: free_vfs(rig.hvb) == VFS, 60, "hvb: all VFs free", 0.5)
    assert_scrubbed(rig.hvb, *VFS)
    rig.hvb.sh(f"virsh -q restore {IMAGE} && rm {IMAGE}", timeout=240)
    rig.hvb.wait_attached(move.guest, granted=True)
    wait_for(lambda: move.identity(rig.hvb)["ib0"][:2] == move.before["ib0"][:2], 60, f"vGUID and P_Keys of {move.before}", 0.5)
    move.guest.wait_vfs(1, timeout=120)


@case(story=True, kills=("hvb vhcad",))
def a_host_is_drained(rig):
    """vhcactl drain hva on hvb: the guest goes to hva, a new one is refused with the reason, until undrain."""
    move = rig.story["move"]
    rig.hvb.sh("vhcactl drain hva", timeout=420)
    try:
        move.guest.host = rig.hva
        rig.hva.wait_attached(move.guest, granted=True)
        wait_for(lambda: free_vfs(rig.hvb) == VFS, 60, "hvb: all VFs free", 0.5)
        rig.hvb.sh("systemctl restart vhcad", timeout=90)
        check(rig.hvb.get("node")["drained"], "hvb is not drained any more after a restart of its agent")
        other = rig.guest(rig.hvb, 2, ("ib0", "0x8001")).define()
        code, text = rig.hvb.code("virsh start vm2")
        check(code != 0 and "drained" in text, f"virsh start on a drained host: exit code {code}: {text}")
        other.undefine()
    finally:
        rig.hvb.sh("vhcactl undrain")
    check(not rig.hvb.get("node")["drained"], "hvb is still drained")
