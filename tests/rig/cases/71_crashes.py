# SPDX-License-Identifier: LGPL-2.1-or-later
"""Agents die in the middle of a migration: one owner afterwards, and no leak."""

from kit.base import wait_for
from kit.case import case, equal
from kit.migration import FULL_MIB_S, moving

# Runs in the hypervisor: some states last a tenth of a second, and asking from outside takes longer.
SIGNAL = r"""pid=$(systemctl show -P MainPID vhcad)
until curl -s --unix-socket /run/vhcad/vhcad.sock http://a/v1/migrations | grep -q '"state": *"{state}"'; do :; done
kill -{signal} $pid
"""


def arm(host, state, signal):
    """Send the agent here this signal as soon as one of its migrations is in this state."""
    host.put("/run/signal.sh", SIGNAL.format(state=state, signal=signal).encode())
    host.sh("systemctl stop signal 2>/dev/null; systemd-run -q --collect --unit=signal bash /run/signal.sh")


def wait_fired(host):
    wait_for(lambda: host.code("systemctl is-active -q signal")[0], 120, f"{host.name}: the agent to be signalled", 0.1)


def agent_pid(host):
    return host.sh("systemctl show -P MainPID vhcad").strip()


def after_claim(move, source, destination, victim):
    """The destination has reserved its VF; the source's guest is about to lose its own."""
    arm(victim, "detaching" if victim is source else "reserved", "KILL")
    migration = move.begin()
    wait_fired(victim)
    return migration


def after_detach(move, source, destination, victim):
    """The VF has left the guest. The destination is stopped until the kill, so the source stays at handing over."""
    arm(destination, "reserved", "STOP")
    migration = move.begin()
    wait_fired(destination)
    move.wait_state(migration, "handing_over")
    victim.sh(f"kill -KILL {agent_pid(victim)}")
    if victim is source:
        destination.sh(f"kill -CONT {agent_pid(destination)}")
    return migration


def during_copy(move, source, destination, victim):
    """libvirt has moved some memory and has much more to move."""
    migration = move.begin_and_wait_copying()
    victim.sh(f"kill -KILL {agent_pid(victim)}")
    source.sh(f"virsh -q migrate-setspeed {move.guest.name} {FULL_MIB_S}", check=False)
    return migration


def survives(rig, side):
    """Wherever the guest is after each kill, it is there alone and with all it had."""
    move = moving(rig)
    for point in (after_claim, after_detach, during_copy):
        source, destination = move.guest.host, move.other(move.guest.host)
        victim = source if side == "source" else destination
        migration = point(move, source, destination, victim)
        wait_for(lambda h=victim: h.code("vhcactl node")[0] == 0, 60, f"{victim.name}: the agent to answer again", 0.5)
        moved = move.wait_final(migration)["state"] == "done"
        move.assert_owner(destination if moved else source)
        move.assert_granted(move.guest.host)


@case
def source_agent_killed(rig):
    """SIGKILL of the source's agent after the claim, after the detach, during the copy: one owner, no leak."""
    survives(rig, "source")


@case
def destination_agent_killed(rig):
    """SIGKILL of the destination's agent at the same points: one owner, no leak."""
    survives(rig, "destination")


@case
def destination_falls_silent(rig):
    """The destination's agent is gone when the copy fails: the subnet manager decides, and the agent finds itself superseded later."""
    move = moving(rig)
    migration = move.begin_and_wait_copying()
    rig.hvb.sh("systemctl stop vhcad; kill -KILL $(pgrep -f guest=vm1)")
    try:
        equal(move.wait_final(migration)["state"], "failed", "end of the migration")
        equal(move.identity(rig.hva), move.before, "identity at the source")
        wait_for(lambda: (move.bound(move.guids()[0]) or {}).get("lid") == int(rig.hva.facts().lid, 16), 90,
                 "the plugin to have the vGUID at the source")
    finally:
        rig.hvb.sh("systemctl start vhcad", timeout=90)
    move.assert_owner(rig.hva)
    move.assert_granted(rig.hva)
