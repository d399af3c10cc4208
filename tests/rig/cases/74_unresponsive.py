# SPDX-License-Identifier: LGPL-2.1-or-later
"""Guests that let go of a VF late, in another way, only when they run, or through their agent. One that never does: 70_migration.py."""

import time

from kit.base import SLOW, say, wait_for
from kit.case import assert_scrubbed, case, check, equal

PKEY = 0x8001
CONF = "/etc/vhcad/vhcad.conf.d/escalation.conf"
# Time enough for a guest on a busy machine to begin a program, after half of it.
ESCALATION = b"[libvirt]\ndetach_escalation = guest-agent\ndetach_timeout = 30s\ndetach_retry = 2s\n"
NATIVE = "pc-q35-6.0"  # PCI Express hot-plug by the guest's own driver; newer machines use ACPI


def attach(host, guest):
    """Give the guest its VF, wait until its driver is up; return the VF's address."""
    guest.attach("ib0", f"0x{PKEY:04x}")
    guest.wait_vfs(1, timeout=120)
    return host.vf_of(guest)["bdf"]


def assert_gone(host, guest, bdf, outcome, started):
    """The VF is out of the guest, which has told so (else its next VF would be there before it came), and nobody's."""
    equal(guest.live_hostdevs(), {}, "host devices after the detach")
    guest.wait_vfs(0, timeout=120)
    host.wait_vf(bdf, "free")
    assert_scrubbed(host, bdf)
    say(f"       {outcome}: detached after {time.monotonic() - started:.1f} s")


def detach(host, guest, bdf, outcome):
    started = time.monotonic()
    host.vhcactl("detach", guest.name, "ib0", timeout=120)
    assert_gone(host, guest, bdf, outcome, started)


@case
def acpi_and_paused_guest(rig):
    """ACPI hot-plug lets go at once; a paused guest is not asked, keeps its VF, and lets go when it runs again and is asked."""
    host = rig.hva
    guest = rig.story["guest"] = rig.guest(host, 1, agent=True).start()
    detach(host, guest, attach(host, guest), "ACPI")
    bdf = attach(host, guest)
    host.sh("virsh -q suspend vm1")
    wait_for(lambda: host.api("GET", "domains")["domains"][0]["paused"], 60, "the agent to hear that vm1 is paused")
    started = time.monotonic()
    code, said = host.code("vhcactl detach vm1 ib0 2>&1")
    check(code == 4 and "vm1 is paused" in said, f"vhcactl detach of a paused guest: {code}, {said}")
    check(time.monotonic() - started < 10 * SLOW, "the refusal took as long as asking a guest")
    equal(host.agent_vf(bdf)["state"], "attached", "VF of the paused guest")
    equal(list(guest.live_hostdevs()), [bdf], "host devices of the paused guest")
    equal(host.facts().pkey_map(bdf), {0: PKEY}, "P_Key map under the paused guest")
    host.sh("virsh -q resume vm1")
    detach(host, guest, bdf, "resumed")


@case(story=True)
def guest_agent_helps(rig):
    """A guest that does not answer ACPI leaves its VF because its agent was asked to power the slot off."""
    host, guest = rig.hva, rig.story["guest"]
    bdf = attach(host, guest)
    host.put(CONF, ESCALATION)
    try:
        host.sh("systemctl reload vhcad")
        guest.ignore_unplugs()
        detach(host, guest, bdf, "guest agent")
    finally:
        host.sh(f"rm {CONF} && systemctl reload vhcad")
    told = [e["text"] for e in host.api("GET", "events")["events"] if e["subject"] == bdf]
    check(any(text.startswith("escalated: domain vm1") for text in told), f"no event of an escalation: {told}")


@case
def native_hotplug_and_firmware(rig):
    """A request that the firmware loses is sent again until the guest's driver hears it; native hot-plug takes its 5 s."""
    host = rig.hva
    guest = rig.guest(host, 1, ("ib0", f"0x{PKEY:04x}"), machine=NATIVE).start(wait=False)
    bdf = host.wait_attached(guest)["bdf"]
    detach(host, guest, bdf, "asked in the firmware")
    guest.wait_ready()
    detach(host, guest, attach(host, guest), "native PCI Express hot-plug")
