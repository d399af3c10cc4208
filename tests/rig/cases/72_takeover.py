# SPDX-License-Identifier: LGPL-2.1-or-later
"""A host is dead, or seems so; its guest starts on the other one, and the first one comes back."""

from kit.base import wait_for
from kit.case import VFS, assert_scrubbed, case, check, equal, free_vfs
from kit.migration import moving


def refused(host, guest):
    """What `vhcactl explain` says once the plugin has said no."""
    code, text = host.code(f"vhcactl explain {guest.name}")
    return text if not code and "does not give GUID" in text else None


def assert_bound_at(host, move, guid):
    lid = int(host.facts().lid, 16)
    wait_for(lambda: (move.bound(guid) or {}).get("lid") == lid, 60, f"the plugin to have the vGUID at {host.name}")
    move.story.wait_path(guid, lid)


@case(kills=("hvb vhcad",))
def silent_host_comes_back(rig):
    """hvb's agent is away while its guest starts on hva, once somebody vouches; back again, it finds itself superseded and lets go."""
    old = moving(rig, host=rig.hvb)
    (guid,) = old.guids()
    (lost,) = old.guest.live_hostdevs()
    rig.hvb.sh("systemctl stop vhcad")
    try:
        guest = rig.guest(rig.hva, 1, ("ib0", "0x8001")).start(wait=False)
        text = wait_for(lambda: refused(rig.hva, guest), 60, "the plugin to refuse the address", 0.5)
        check("vhcactl takeover" in text, f"no way out is named: {text}")
        equal(guest.live_hostdevs(), {}, "host devices before the take-over")
        rig.hva.sh(f"vhcactl takeover {guest.uuid} 'the rig stopped the agent of hvb'")
        vf = rig.hva.wait_attached(guest, granted=True, timeout=180)
        equal(int(vf["requested"], 16), guid, "vGUID at hva")
    finally:
        rig.hvb.sh("systemctl start vhcad", timeout=90)
    rig.hvb.wait_vf(lost, "free", 120)
    equal(old.guest.state(), "running", "the old copy")
    equal(old.guest.live_hostdevs(), {}, "host devices of the old copy")
    wait_for(lambda: len(free_vfs(rig.hvb)) == 4, 60, "hvb: all VFs free between two requests of the old copy")
    check(rig.hvb.facts().admin_guid(lost) != guid, "hvb still asks for the vGUID")
    assert_bound_at(rig.hva, old, guid)


@case(kills=("hvb boot",))
def dead_host_comes_back(rig):
    """hvb loses power with its guest in it. That starts on hva, and has its address when somebody vouches; with the power back, hvb has nothing of it."""
    old = moving(rig, host=rig.hvb)
    (guid,) = old.guids()
    boot = rig.hvb.vm.boot_id()
    rig.hvb.vm.qmp("stop")
    rig.hvb.vm.qmp("system_reset")
    try:
        guest = rig.guest(rig.hva, 1, ("ib0", "0x8001")).start(wait=False)
        # The two adapters share a cable: soon hva's port is down and its OpenSM no master, so here the claim may wait or be attached.
        rig.hva.sh(f"vhcactl takeover {guest.uuid} 'the rig took hvb its power'")
        equal(rig.hvb.vm.qmp("query-status")["running"], False, "hvb runs while its address is taken over")
    finally:
        rig.hvb.vm.qmp("cont")
    wait_for(lambda: rig.hvb.vm.boot_id() not in ("", boot), 180, "hvb to come back", 1)
    rig.hvb.vm.wait()
    vf = rig.hva.wait_attached(guest, granted=True, timeout=180)
    equal(int(vf["requested"], 16), guid, "vGUID at hva")
    wait_for(lambda: free_vfs(rig.hvb) == VFS, 60, "hvb: all VFs free")
    assert_scrubbed(rig.hvb, *VFS)
    assert_bound_at(rig.hva, old, guid)
