# SPDX-License-Identifier: LGPL-2.1-or-later
"""Two tenants on one host, judged by what the adapter's driver has recorded."""

import re

from kit.base import wait_for
from kit.case import VFS, case, check, equal, free_vfs
from kit.host import PF
from kit.watch import Sight

A, B = 0x8001, 0x8002


def sights_of(rig, host):
    """What simhca has recorded of each VF since the case began."""
    found = {bdf: [] for bdf in VFS}
    for line in rig.watch.peek(host):
        sight = Sight(line)
        if int(sight.vf):  # 0 is the PF
            found[VFS[int(sight.vf) - 1]].append(sight)
    return found


def key_sets(sights):
    """The sets of keys that were in a map one after the other."""
    sets = [frozenset(int(k, 16) for k in sight.keys) for sight in sights]
    return [one for one, before in zip(sets, [None, *sets]) if one != before]


@case
def never_the_other_tenants_key(rig):
    """Start, stop, re-use of a VF by the other tenant: no map ever shows a foreign key or the default partition."""
    host = rig.hva
    first = rig.guest(host, 1, ("ib0", "0x8001")).start(wait=False)
    other = rig.guest(host, 2, ("ib0", "0x8002")).start(wait=False)
    vf_a, vf_b = host.wait_attached(first)["bdf"], host.wait_attached(other)["bdf"]
    first.wait_ready()
    first.destroy()
    host.wait_vf(vf_a, "free", 60)
    other.destroy()
    host.wait_vf(vf_b, "free", 60)
    # All VFs go to tenant B now, so the one that A had is among them.
    names = [f"ib{i}" for i in range(len(VFS))]
    many = rig.guest(host, 3, *((n, "0x8002") for n in names), ports=5).start(wait=False)
    for name in names:
        host.wait_attached(many, name)
    equal(free_vfs(host), [], "free VFs while tenant B has all")
    many.destroy()
    wait_for(lambda: free_vfs(host) == VFS, 90, "all VFs free")
    shown = {bdf: key_sets(sights) for bdf, sights in sights_of(rig, host).items()}
    for bdf, sets in shown.items():
        check(set(sets) <= {frozenset(), frozenset({A}), frozenset({B})}, f"{bdf} showed {sets}")
        for one, two in zip(sets, sets[1:]):
            check(not one or not two, f"{bdf} went from {set(one)} to {set(two)} without being empty between")
        equal(sets[-1], frozenset(), f"{bdf}: last sight")
    check(frozenset({A}) in shown[vf_a] and frozenset({B}) in shown[vf_a],
          f"{vf_a} was not used by both tenants: {shown[vf_a]}")


SIMHCA = f"/sys/kernel/debug/simhca/{PF}"
# The SM gives a guest's key another place, and its place to another tenant; the agent looks away while the QPs are looked at.
MOVE = f"""pid=$(systemctl show -P MainPID vhcad)
kill -STOP $pid
echo pkey {{to}} {{key}} > {SIMHCA}/ctl
echo pkey {{place}} {{other}} > {SIMHCA}/ctl
cat {SIMHCA}/qps
kill -CONT $pid"""
POLICY = "/etc/vhcad/vhcad.conf.d/policy.conf"


def queue_pairs(text):
    """{vf: (physical index, key with which it was opened, key that stands there now)} of simhca's `qps`."""
    found = re.findall(r"^vf (\d+) port 1 physical (\d+) opened 0x(\w+) now 0x(\w+)$", text, re.M)
    return {int(vf): (int(at), int(opened, 16), int(now, 16)) for vf, at, opened, now in found}


def steady_queue_pair(host):
    """The guest's QP once it does not change any more: a guest on a busy machine hears late of what the host does."""
    seen = [{}]

    def steady():
        seen.append(queue_pairs(host.read(f"{SIMHCA}/qps")))
        return seen[-1] and seen[-1] == seen[-2]
    wait_for(steady, 60, f"a QP of the guest: {seen[-1]}", 1)
    (qp,) = seen[-1].values()
    return qp


def move_key(host, place, to):
    """A's key goes from one index to another and B's key comes into its place: so does the guest's QP work with B's, be it the old one
    or one that a quick guest has opened since."""
    text = host.sh(MOVE.format(place=place, to=to, key=A, other=B))
    equal([now for _, _, now in queue_pairs(text).values()], [B], "key of the guest's QP after the SM has moved its key")


def pkey_writes(host):
    return int(dict(line.split() for line in host.read(f"{SIMHCA}/stats").splitlines())["pkey_idx_writes"])


def alarms(host, bdf):
    events = host.api("GET", "events")["events"]
    return [e["text"] for e in events if e["kind"] == "alarm" and e["subject"] == bdf]


def wait_led_to_other(host, vf, place):
    wait_for(lambda: any(f"led to 0x{B:04x} at physical index {place} " in text for text in alarms(host, vf["bdf"])), 30,
             f"an alarm for index {place}: {alarms(host, vf['bdf'])}")


@case(dirty=True, expects=(rf"EXPOSURE: vm1 on VF \d sees P_Key 0x{B:04x} and asked for 0x{A:04x}",))
def a_moved_key_is_followed_and_by_policy_the_vf_taken_off(rig):
    """The SM gives a guest's physical index to another tenant: alarm, the key is followed through `none`, and QPs that kept the index go."""
    host = rig.hvb
    host.put(POLICY, b"[policy]\npkey_index_changed = alarm\n")
    host.sh("systemctl reload vhcad")
    guest = rig.guest(host, 1, ("ib0", f"0x{A:04x}")).start(wait=False)
    try:
        vf = host.wait_attached(guest, granted=True, timeout=180)
        place, *keys = steady_queue_pair(host)
        equal(keys, [A, A], "keys of the guest's QP, opened and now")

        writes = pkey_writes(host)
        move_key(host, place, 20)
        wait_led_to_other(host, vf, place)
        wait_for(lambda: host.facts().raw[f"map {vf['bdf']}"]["0"] == "20", 30, "the map to follow the key")
        equal(pkey_writes(host) - writes, 2, "writes to the map, `none` between the two indices")
        equal(host.vf_of(guest)["claim"], vf["claim"], "claim of the VF, which by policy stays")
    finally:
        host.sh(f"rm {POLICY}; systemctl reload vhcad")

    steady_queue_pair(host)  # it has been opened anew, or its guest was too slow to notice `none` and it has B's key still
    move_key(host, 20, 21)
    wait_led_to_other(host, vf, 20)
    wait_for(lambda: host.vf_of(guest).get("claim", vf["claim"]) != vf["claim"], 60, "the VF to be taken off and given anew")
    host.wait_attached(guest)
    equal(steady_queue_pair(host)[1:], (A, A), "keys of the QP that the guest has on its new VF, opened and now")
