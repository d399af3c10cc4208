# SPDX-License-Identifier: LGPL-2.1-or-later
"""A host seems dead; its guest starts on the other one, and the first one's agent comes back."""

from kit.base import wait_for
from kit.case import case, check, equal, free_vfs
from kit.migration import moving


def refused(host, guest):
    """What `vhcactl explain` says once the plugin has said no."""
    code, text = host.code(f"vhcactl explain {guest.name}")
    return text if not code and "does not give GUID" in text else None


@case
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
    lid = int(rig.hva.facts().lid, 16)
    wait_for(lambda: (old.bound(guid) or {}).get("lid") == lid, 60, "the plugin to have the vGUID at hva")
    equal(old.story.sa_path_lid(guid), lid, "LID in the SA's path record")
