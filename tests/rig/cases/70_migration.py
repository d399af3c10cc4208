# SPDX-License-Identifier: LGPL-2.1-or-later
"""Guests move between the hypervisors and their InfiniBand identities move with them, or everything stays as it was."""

import time

from kit.base import wait_for
from kit.case import VFS, case, check, equal, free_vfs
from kit.hypervisors import PLUGIN_CONF, SM_ADDRESS, agent_conf
from kit.migration import Moving, moving

REFUSING_HOOK = "/etc/libvirt/hooks/qemu.d/zz-refuse"
LEASE_S = 30  # enough to begin, less than a copy takes
LEASE_CONF = "/etc/vhcad/vhcad.conf.d/lease.conf"
# At hvb: neither is its agent asked by others, nor does it reach the plugin. The guest's memory goes by other ports.
CUT = "iptables -I INPUT -i eth1 -p tcp --dport 8514 -j DROP; iptables -I OUTPUT -o eth1 -p tcp --dport 8515 -j DROP"
# A guest that never answers an unplug: both ways of hot-plug are off.
DEAF = "acpiphp.disable=1 pcie_ports=compat"


# ---- what goes well ----

@case
def there_and_back(rig):
    """A guest moves to the other host and back: vGUID, P_Keys, guest address, the SA's path record follow each time."""
    move = moving(rig)
    move.assert_granted(rig.hva)
    for host in (rig.hvb, rig.hva):
        move.migrate()
        check(move.guest.host is host, f"the guest is not on {host.name}")


@case
def two_vfs_move(rig):
    """A guest with two VFs in two partitions moves, and both are at their addresses again."""
    moving(rig, ("ib0", "0x8001"), ("ib1", "0x8002")).migrate()


@case
def three_guests_move(rig):
    """Three guests of two tenants move one after the other; nobody gets another's keys."""
    moves = [moving(rig, ("ib0", key), number=n, granted=False, memory=128)
             for n, key in ((1, "0x8001"), (2, "0x8002"), (3, "0x8001"))]
    migrations = [move.begin() for move in moves]
    for move, migration in zip(moves, migrations):
        equal(move.wait_final(migration)["state"], "done", f"migration of {move.guest.name}")
        move.guest.host = rig.hvb
    wait_for(lambda: free_vfs(rig.hva) == VFS, 60, "hva: all VFs free", 0.5)
    for move in moves:
        wait_for(lambda m=move: m.identity(rig.hvb) == m.before, 60, f"{move.guest.name}: {move.before}")
        rig.hvb.wait_attached(move.guest, granted=True)
        lid = int(rig.hvb.facts().lid, 16)
        for guid in move.guids():
            move.story.wait_path(guid, lid)


# ---- what fails before anything was touched ----

@case
def no_free_vf_there(rig):
    """All VFs of the destination are taken: refused, and the guest keeps its VF without a break."""
    move = moving(rig)
    names = [f"ib{i}" for i in range(len(VFS))]
    rig.guest(rig.hvb, 4, *((n, "0x8002") for n in names), ports=5).start(wait=False)
    wait_for(lambda: free_vfs(rig.hvb) == [], 90, "hvb: no free VF")
    wait_for(lambda: [c["sm"] for c in rig.hva.get("claims")["claims"]] == ["accepted"], 60, "hva: the report of the claim accepted", 0.5)
    claims = rig.hva.get("claims")
    equal(move.wait_final(move.begin())["state"], "failed", "end of the migration")
    # A report that is sent once more is accepted in a moment; an epoch that has moved on stays.
    wait_for(lambda: rig.hva.get("claims") == claims, 30, f"the claims at the source as they were: {claims}", 0.5)
    equal(move.identity(rig.hva), move.before, "identity at the source")
    equal(len(rig.hvb.get("claims")["claims"]), len(VFS), "claims at the destination")


@case(kills=("hvb vhcad",))
def key_not_on_the_port_there(rig):
    """The destination's port is not in the partition and nobody can put it there: refused, nothing is touched."""
    move = moving(rig, granted=False)
    conf = agent_conf("hvb").replace("backend = vhcasm", "backend = none\npkey_timeout = 3s").replace("url =", "#url =")
    rig.hvb.put("/etc/vhcad/vhcad.conf.d/rig.conf", conf.encode())
    try:
        rig.hvb.sh("systemctl restart vhcad", timeout=90)
        move.rolls_back(move.begin(), "P_Key")
    finally:
        rig.hvb.put("/etc/vhcad/vhcad.conf.d/rig.conf", agent_conf("hvb").encode())
        rig.hvb.sh("systemctl restart vhcad", timeout=90)


@case(kills=("hvb vhcad",))
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
        move.rolls_back(move.begin(), "not today")
    finally:
        rig.hvb.sh(f"rm {REFUSING_HOOK}")
    move.assert_granted(rig.hva)


@case
def guest_refuses_the_unplug(rig):
    """A guest that does not let go of its VF stays where it is, with the VF."""
    guest = rig.guest(rig.hva, 1, ("ib0", "0x8001"), cmdline=DEAF).start(wait=False)
    rig.hva.wait_attached(guest)
    guest.wait_ready()
    move = Moving(rig, guest)
    view = move.wait_final(move.begin())
    equal((view["state"], view["code"]), ("failed", "guest_did_not_release"), f"end of the migration ({view['reason']})")
    equal(move.identity(rig.hva), move.before, "identity at the source")
    wait_for(lambda: free_vfs(rig.hvb) == VFS, 60, "hvb: all VFs free")


@case
def cancelled_while_copying(rig):
    """vhcactl migrate --cancel in the middle of the copy: back at the source, nothing left at the destination."""
    move = moving(rig)
    migration = move.begin_and_wait_copying()
    rig.hva.sh("vhcactl migrate --cancel vm1", timeout=240)
    move.rolls_back(migration, "cancelled")
    move.assert_granted(rig.hva)


@case
def destination_qemu_killed(rig):
    """The QEMU at the destination dies in the middle of the copy: back at the source."""
    move = moving(rig)
    migration = move.begin_and_wait_copying()
    rig.hvb.sh("kill -KILL $(pgrep -f guest=vm1)")
    move.rolls_back(migration)
    move.assert_granted(rig.hva)


# ---- the subnet manager is away ----

def moving_to_where_the_key_is(rig):
    """...and the other guest from which hvb's port has the key: with the SM away, or out of reach, nobody would put it there."""
    stays = rig.guest(rig.hvb, 2, ("ib0", "0x8001")).start(wait=False)
    rig.hvb.wait_attached(stays)
    move = moving(rig)
    wait_for(lambda: 0x8001 in rig.hvb.facts().port_pkeys().values(), 90, "hvb: 0x8001 on the port")
    return move, stays


def without_sm(rig, away, back):
    """The guest moves while nobody listens to reports."""
    move, _ = moving_to_where_the_key_is(rig)
    accepted = "journalctl --sync; journalctl -b --no-pager -u vhcad | grep -c '0x%016x: report accepted' || true" % move.guids()[0]
    rig.hva.sh(away)
    try:
        equal(move.wait_final(move.begin())["state"], "done", "end of the migration")
        move.guest.host = rig.hvb
        wait_for(lambda: move.identity(rig.hvb).items() >= move.before.items(), 60, f"vm1 on hvb: {move.before}")
        move.guest.wait_vfs(1, timeout=120)
        check(rig.hvb.get("outbox")["outbox"], "the outbox is empty although nobody took the report")
        before = int(rig.hvb.sh(accepted))
    finally:
        rig.hva.sh(back)
    rig.hvb.wait_attached(move.guest, granted=True, timeout=180)
    move.assert_granted(rig.hvb)
    equal(int(rig.hvb.sh(accepted)) - before, 1, "reports about the vGUID that took effect")


@case(kills=("hva opensm-vhcad",))
def sm_endpoint_down(rig):
    """OpenSM runs, but the plugin's address does not answer during the whole migration: the VM works, all is made good later."""
    elsewhere = PLUGIN_CONF.replace(SM_ADDRESS, "127.0.0.1:8599")
    rig.hva.put("/run/vhcasm.here", PLUGIN_CONF.encode())
    rig.hva.put("/run/vhcasm.elsewhere", elsewhere.encode())
    swap = "cp /run/vhcasm.%s /etc/vhcad/vhcasm.conf; systemctl restart opensm-vhcad"
    without_sm(rig, swap % "elsewhere", swap % "here")


@case(kills=("hva opensm-vhcad",))
def opensm_down_while_moving(rig):
    """OpenSM is away during the whole migration: the VM works, all is made good later."""
    without_sm(rig, "systemctl stop opensm-vhcad", "systemctl start opensm-vhcad")


# ---- the agents cannot talk ----

def cut_off_while_copying(move, there):
    """Returns the migration when the guest is at the other host with all that it had, and nobody there could ask or tell anybody."""
    migration = move.begin_and_wait_copying()
    started = time.monotonic()
    there.sh(CUT)
    wait_for(lambda: move.guest.name in there.domains("--state-running"), 420, f"{there.name}: vm1 running", 0.5)
    lasted = time.monotonic() - started
    check(lasted > LEASE_S, f"the copy took only {lasted:.0f} s more")
    move.guest.host = there
    wait_for(lambda: move.identity(there) == move.before, 90, f"vm1 on {there.name}: {move.before}", 0.5)
    check(there.get("outbox")["outbox"], "the outbox is empty although nobody took the report")
    return migration


@case(long=True)
def network_cut_while_copying(rig):
    """The agents and the SM are cut off from each other during a copy that outlasts the lease, and beyond its end: the guest has its VF there all the same."""
    move, stays = moving_to_where_the_key_is(rig)
    try:
        for host in rig.hosts:
            host.put(LEASE_CONF, f"[migration]\nlease = {LEASE_S}s\n".encode())
            host.sh("systemctl reload vhcad")
        migration = cut_off_while_copying(move, rig.hvb)
    finally:
        rig.hvb.sh(CUT.replace(" -I ", " -D "), check=False)
        for host in rig.hosts:
            host.sh(f"rm -f {LEASE_CONF} && systemctl reload vhcad")
    equal(move.wait_final(migration)["state"], "done", "end of the migration")
    stays.destroy()
    wait_for(lambda: len(rig.hvb.get("claims")["claims"]) == 1, 60, f"{stays.name}: its claim at an end", 0.5)
    move.assert_owner(rig.hvb)
    move.assert_granted(rig.hvb)
