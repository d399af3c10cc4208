# SPDX-License-Identifier: LGPL-2.1-or-later
"""Agent, libvirtd and the hypervisor restart; guests do not notice, or come back as they were."""

import contextlib
import json
import time

from kit.base import wait_for
from kit.case import VFS, assert_scrubbed, case, check, equal


def identity(host, bdf):
    """What must not change under a running guest, from sysfs."""
    facts = host.facts()
    return facts.pkey_map(bdf), facts.admin_guid(bdf), facts.granted_guid(bdf), host.driver(bdf)


def guest_at_rest(host, rig):
    """(guest, its VF) when nothing changes any more by itself: the guest's driver has its port, and the agent has seen that."""
    guest = rig.guest(host, 1, ("ib0", "0x8001")).start()
    guest.wait_port(int(host.wait_attached(guest)["requested"], 16))
    guest.wait_quiet()
    return guest, host.wait_attached(guest, granted=True)


def unchanged_over(rig, disturb):
    """Start a guest, disturb the host, and compare all that the guest and the hardware show."""
    host = rig.hva
    guest, vf = guest_at_rest(host, rig)
    before = identity(host, vf["bdf"]), guest.live_hostdevs(), guest.reports()
    disturb(host)
    again = host.wait_attached(guest, granted=True, timeout=60)
    equal(again["bdf"], vf["bdf"], "VF of the guest afterwards")
    equal(again["claim"], vf["claim"], "claim afterwards")
    equal((identity(host, vf["bdf"]), guest.live_hostdevs(), guest.reports()), before,
          "identity, host devices and guest's reports")
    return guest, vf


def answers(host):
    """Does the agent answer?"""
    return host.code("vhcactl --json node")[0] == 0


@case(kills=("hva vhcad",))
def agent_restarts(rig):
    """systemctl restart vhcad under a running guest: nothing changes, the agent knows its VF again."""
    unchanged_over(rig, lambda h: h.sh("systemctl restart vhcad", timeout=90))


@case(kills=("hva vhcad",))
def agent_is_killed(rig):
    """SIGKILL of the agent: systemd starts it again, the guest keeps its VF, detach works afterwards."""
    def kill(host):
        old = host.sh("systemctl show -P MainPID vhcad").strip()
        host.sh(f"kill -KILL {old}")
        wait_for(lambda: host.sh("systemctl show -P MainPID vhcad").strip() not in (old, "0") and answers(host), 60,
                 "systemd to start vhcad again", 0.5)
    guest, vf = unchanged_over(rig, kill)
    guest.destroy()
    rig.hva.wait_vf(vf["bdf"], "free", 60)


@case(kills=("hva vhcad",))
def guest_stops_while_agent_is_down(rig):
    """A guest that ended while the agent was away is noticed: its VF is scrubbed after the start."""
    host = rig.hva
    guest = rig.guest(host, 1, ("ib0", "0x8001")).start(wait=False)
    vf = host.wait_attached(guest, granted=True)
    host.sh("systemctl stop vhcad")
    guest.destroy()
    check(host.facts().pkey_map(vf["bdf"]), "the map was scrubbed by nobody?")
    host.sh("systemctl start vhcad", timeout=90)
    host.wait_vf(vf["bdf"], "free", 60)
    equal(host.facts().pkey_map(vf["bdf"]), {}, "P_Key map afterwards")


@case(kills=("hva libvirtd",))
def libvirtd_restarts(rig):
    """systemctl restart libvirtd under a running guest: nothing changes, the next guest is served."""
    unchanged_over(rig, lambda h: h.sh("systemctl restart libvirtd", timeout=60))
    wait_for(lambda: rig.hva.get("node")["libvirt"]["connected"], 60, "the agent to be connected again")
    rig.hva.wait_attached(rig.guest(rig.hva, 2, ("ib0", "0x8002")).start(wait=False), granted=True)


@case
def guest_is_reset(rig):
    """virsh reset: the guest's kernel comes anew, its VF stays as it was, and is granted again."""
    host = rig.hva
    guest, vf = guest_at_rest(host, rig)
    before, starts = identity(host, vf["bdf"]), guest.serial().count("GUEST-READY")
    host.sh("virsh -q reset vm1")
    wait_for(lambda: guest.serial().count("GUEST-READY") > starts, 150, "the guest's init to run again", 0.5)
    guest.wait_vfs(1)
    again = host.wait_attached(guest, granted=True)
    equal((again["bdf"], again["claim"]), (vf["bdf"], vf["claim"]), "VF and claim afterwards")
    wait_for(lambda: identity(host, vf["bdf"]) == before, 60, "the identity to be as it was, and granted")


@case(kills=("hvb boot",))
def hypervisor_reboots(rig):
    """The hypervisor reboots: its autostart guest comes back with a VF, a GUID and a map like before."""
    host = rig.hvb
    guest = rig.guest(host, 1, ("ib0", "0x8001")).start()
    vf = host.wait_attached(guest, granted=True)
    host.sh("virsh -q autostart vm1")
    boot = host.vm.boot_id()
    host.sh("systemd-run -q --on-active=1 systemctl reboot")
    wait_for(lambda: host.vm.boot_id() not in ("", boot), 180, "hvb to come back", 1)
    host.vm.wait()
    again = host.wait_attached(guest, granted=True)
    equal(again["requested"], vf["requested"], "GUID after the reboot")
    equal(host.facts().pkey_map(again["bdf"]), {0: 0x8001}, "P_Key map after the reboot")
    guest.wait_ready().wait_vfs(1)
    for bdf in set(VFS) - {again["bdf"]}:
        host.wait_vf(bdf, "free")
        equal(host.facts().pkey_map(bdf), {}, f"P_Key map of {bdf} after the reboot")


GUESTS = "/etc/default/libvirt-guests"


@case
def a_host_saves_its_guests(rig):
    """What a shutdown stops, in its order: vhcad-park takes the VF out, so libvirt-guests saves the guest; begun again, it has its vGUID and keys."""
    host = rig.hva
    guest = rig.guest(host, 1, ("ib0", "0x8001")).start()
    before = host.wait_attached(guest, granted=True)
    settings = host.read(GUESTS)
    host.put(GUESTS, b"ON_BOOT=start\nON_SHUTDOWN=suspend\n")
    try:
        host.sh("systemctl start vhcad-park libvirt-guests", timeout=90)
        host.sh("systemctl stop vhcad-park libvirt-guests", timeout=300)
        check("yes" in host.virsh("dominfo", guest.name).split("Managed save:")[1].split("\n")[0], "libvirt-guests saved no guest")
        host.wait_vf(before["bdf"], "free", 60)
        assert_scrubbed(host, before["bdf"])
        host.sh("systemctl start libvirt-guests", timeout=240)
        again = host.wait_attached(guest, granted=True)
        equal(again["requested"], before["requested"], "GUID of the guest that was saved")
        equal(host.facts().pkey_map(again["bdf"]), {0: 0x8001}, "its P_Key map")
        guest.wait_vfs(1, timeout=120)
    finally:
        host.put(GUESTS, settings.encode())
        host.sh("systemctl stop vhcad-park libvirt-guests", timeout=120)


ALLOW = "/etc/vhcad/vhcad.conf.d/allow.conf"


@case(dirty=True, kills=("hva vhcad",), expects=("EXPOSURE: vm1 on VF 2 sees P_Key 0x[7f]fff and asked for nothing",))
def first_start_touches_nothing(rig):
    """First start on a host where a VM already runs on a VF: that VF is `unmanaged`, stays as it is, and is adopted without a write."""
    host = rig.hva
    bdf = VFS[1]
    host.sh("systemctl stop vhcad; rm -rf /var/lib/vhcad/* /run/vhcad/*")
    facts = host.facts()
    iov = f"/sys/class/infiniband/{facts.ibdev}/iov"
    host.sh(f"echo 0 > {iov}/{bdf}/ports/1/pkey_idx/0; echo 02c9ab00000000f1 > "
            f"{iov}/ports/1/admin_guids/{facts.gid_index(bdf)}")
    guest = rig.guest(host, 1, hostdevs=[bdf]).start()
    guest.wait_vfs(1)
    guest.wait_port(0x02c9ab00000000f1)  # made by hand
    guest.wait_quiet()
    before = identity(host, bdf), guest.live_hostdevs(), guest.reports()
    host.sh("systemctl start vhcad", timeout=90)
    wait_for(lambda: sorted(v["state"] for v in host.agent_vfs().values()) == ["free"] * 3 + ["unmanaged"], 60,
             "three VFs free and one unmanaged", 0.5)
    equal(host.agent_vf(bdf)["state"], "unmanaged", f"state of {bdf}")
    time.sleep(6)
    equal((identity(host, bdf), guest.live_hostdevs(), guest.reports()), before, "all that the guest depends on")
    code, text = host.code("vhcactl adopt vm1")
    check(code != 0 and "allow_default_partition" in text, f"adopted with the default partition, which is not allowed: {text}")
    host.put(ALLOW, b"[policy]\nallow_default_partition = yes\n")
    host.sh("systemctl reload vhcad && vhcactl adopt vm1")
    vf = host.wait_attached(guest, name=host.agent_vf(bdf)["name"], granted=True)
    equal((vf["bdf"], int(vf["requested"], 16)), (bdf, 0x02c9ab00000000f1), "what was adopted")
    equal((identity(host, bdf), guest.live_hostdevs(), guest.reports()), before, "all that the guest depends on")
    wrong = [f for f in host.vhcactl("explain", bdf)["findings"] if f["status"] == "wrong"]
    equal(wrong, [], "what explain finds wrong")
    guest.destroy()
    host.wait_vf(bdf, "free", 60)
    assert_scrubbed(host, bdf)
    host.sh(f"rm {ALLOW} && systemctl reload vhcad")


STATE, KEPT = "/var/lib/vhcad", "/var/tmp/vhcad-state"
READYZ = "curl -s --unix-socket /run/vhcad/vhcad.sock http://a/readyz"


@contextlib.contextmanager
def small_state_disk(host):
    """The state database is on a disk of its own, of 2 MiB; afterwards it is where it was, with what was written meanwhile."""
    host.sh(f"systemctl stop vhcad; cp -a {STATE} {KEPT} && mount -t tmpfs -o size=2m tmpfs {STATE} && cp -a {KEPT}/. {STATE}/ && systemctl start vhcad",
            timeout=120)
    try:
        yield
    finally:
        host.sh(f"systemctl stop vhcad; rm -rf {STATE}/fill {KEPT} && cp -a {STATE} {KEPT} && umount {STATE} && rm -rf {STATE}/* "
                f"&& cp -a {KEPT}/. {STATE}/ && rm -rf {KEPT}; systemctl start vhcad", timeout=120)


def why_not_ready(host):
    return " ".join(r["reason"] for r in json.loads(host.sh(READYZ))["reasons"] if r["blocks"])


@case(kills=("hva vhcad",), expects=("database or disk is full",))
def state_disk_is_full(rig):
    """With a full state disk an attach is refused at once and leaves nothing behind, and so is the next; with room again it is done."""
    host = rig.hva
    guest = rig.guest(host, 1).start()
    with small_state_disk(host):
        wait_for(lambda: answers(host) and not why_not_ready(host), 60, "the agent to be ready", 0.5)
        host.code(f"dd if=/dev/zero of={STATE}/fill bs=4k")
        for _ in range(2):
            code, text = host.code("vhcactl attach vm1 ib0 --partition 0x8001", timeout=10)
            check(code and "No space left" in text, f"attach with a full state disk: {code}: {text}")
            equal([v for v in host.agent_vfs().values() if v["state"] != "free"], [], "VFs that are not free")
            check("No space left" in why_not_ready(host), f"/readyz: {why_not_ready(host)}")
        host.sh(f"rm {STATE}/fill")
        wait_for(lambda: not why_not_ready(host), 60, "the agent to be ready again", 0.5)
        guest.attach("ib0", "0x8001")
        equal(host.vf_of(guest).get("state"), "attached", "state after attach")
    vf = host.wait_attached(guest)
    guest.destroy()
    host.wait_vf(vf["bdf"], "free", 60)
    assert_scrubbed(host, vf["bdf"])
