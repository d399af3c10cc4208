# SPDX-License-Identifier: LGPL-2.1-or-later
"""Agents die while libvirt copies (kit/matrix.py has the steps before and after): one owner afterwards, and no leak."""

from kit.base import wait_for
from kit.case import case, equal
from kit.migration import FULL_MIB_S, moving


def killed_while_copying(move, victim):
    """libvirt has moved some memory and has much more to move. Wherever the guest is afterwards, it is there alone and with all it had."""
    source = move.guest.host
    migration = move.begin_and_wait_copying()
    victim.sh("systemctl kill --kill-who=main -s KILL vhcad")
    source.sh(f"virsh -q migrate-setspeed {move.guest.name} {FULL_MIB_S}", check=False)
    wait_for(lambda: victim.code("vhcactl node")[0] == 0, 60, f"{victim.name}: the agent to answer again", 0.5)
    moved = move.wait_final(migration)["state"] == "done"
    move.assert_owner(move.other(source) if moved else source)
    move.assert_granted(move.guest.host)


@case(kills=("vhcad",))
def agents_killed_while_copying(rig):
    """SIGKILL of the source's agent, then of the destination's, in the middle of the copy: one owner, no leak."""
    move = moving(rig)
    killed_while_copying(move, move.guest.host)
    killed_while_copying(move, move.other(move.guest.host))


@case(kills=("hvb vhcad",))
def destination_falls_silent(rig):
    """The destination's agent is gone when the copy fails: the subnet manager decides, and the agent finds itself superseded later."""
    move = moving(rig)
    migration = move.begin_and_wait_copying()
    rig.hvb.sh("systemctl stop vhcad; kill -KILL $(pgrep -f guest=vm1)")
    try:
        equal(move.wait_final(migration)["state"], "failed", "end of the migration")
        wait_for(lambda: move.identity(rig.hva) == move.before, 60, f"vm1 on hva: {move.before}", 0.5)
        wait_for(lambda: (move.bound(move.guids()[0]) or {}).get("lid") == int(rig.hva.facts().lid, 16), 90,
                 "the plugin to have the vGUID at the source")
    finally:
        rig.hvb.sh("systemctl start vhcad", timeout=90)
    move.assert_owner(rig.hva)
    move.assert_granted(rig.hva)
