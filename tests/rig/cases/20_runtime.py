# SPDX-License-Identifier: LGPL-2.1-or-later
"""Attach and detach while guests run."""

import json

from kit.base import wait_for
from kit.case import VFS, assert_scrubbed, case, check, equal, free_vfs
from kit.host import PF

CHANGE = "b2f94a7d5b1c4be7a8d0f3c96e2a5d18"


@case
def attach_and_detach_at_run_time(rig):
    """A running guest that asked for nothing gets a VF by vhcactl, gives it back, and gets one again."""
    host = rig.hva
    guest = rig.guest(host, 1).start()
    equal(guest.seen()["VF"], [], "VFs in the guest before")
    for partition, pkey in (("0x8001", 0x8001), ("0x8002", 0x8002)):
        guest.attach("ib0", partition)
        vf = host.vf_of(guest)
        equal(vf.get("state"), "attached", "state after attach")
        equal(list(guest.live_hostdevs()), [vf["bdf"]], "host devices in the live XML")
        (seen,) = guest.wait_vfs(1)
        equal(seen["driver"], "mlx4_core", "driver in the guest")
        equal(host.facts().pkey_map(vf["bdf"]), {0: pkey}, "P_Key map while attached")
        host.vhcactl("detach", "vm1", "ib0", timeout=120)
        equal(guest.live_hostdevs(), {}, "host devices after detach")
        guest.wait_vfs(0)
        host.wait_vf(vf["bdf"], "free", 60)
        assert_scrubbed(host, vf["bdf"])
    # By the id that vhcad(8) lists.
    journal = host.sh(f"journalctl --sync; journalctl -u vhcad _UID=0 MESSAGE_ID={CHANGE} -o json --no-pager")
    told = [json.loads(line) for line in journal.splitlines()]
    equal([(e["VHCA_WHO"], e["VHCA_METHOD"], e["VHCA_STATUS"]) for e in told if e["VHCA_PATH"].endswith("/vfs/ib0")][-4:],
          [("uid:0", method, "200") for method in ("POST", "DELETE")] * 2, "changes in the journal")


@case
def refused_requests_leave_nothing(rig):
    """An attach that must fail (no such domain, name taken, bad partition) says so and leaves all other VFs free."""
    host = rig.hva
    host.wait_attached(rig.guest(host, 1, ("ib0", "0x8001")).start(wait=False))
    for args in (("nobody", "ib0", "--partition", "0x8001"), ("vm1", "ib0", "--partition", "0x8002"),
                 ("vm1", "ib1", "--partition", "no-such-partition"), ("vm1", "ib1", "--partition", "0x18001")):
        code, text = host.code("vhcactl attach " + " ".join(args), timeout=60)
        check(code != 0, f"vhcactl attach {' '.join(args)} succeeded: {text}")
        check(text.strip(), f"vhcactl attach {' '.join(args)} failed without a word")
    equal(len(free_vfs(host)), len(VFS) - 1, "free VFs")


@case
def three_guests_at_once(rig):
    """Three guests start together: three VFs, three GUIDs, each map shows only its own partitions."""
    host = rig.hva
    wanted = {1: {0: 0x8001}, 2: {0: 0x8002}, 3: {0: 0x8003, 1: 0x8001}}
    guests = {n: rig.guest(host, n, ("ib0", " ".join(f"0x{k:04x}" for k in keys.values())))
              for n, keys in wanted.items()}
    for guest in guests.values():
        guest.start(wait=False)
    vfs = {n: host.wait_attached(g, granted=True, timeout=180) for n, g in guests.items()}
    equal(len({v["bdf"] for v in vfs.values()}), 3, "different VFs")
    equal(len({v["requested"] for v in vfs.values()}), 3, "different GUIDs")
    for n, guest in guests.items():
        guest.wait_ready().wait_port(int(vfs[n]["requested"], 16))
    facts = host.facts()
    for n, vf in vfs.items():
        equal(facts.pkey_map(vf["bdf"]), wanted[n], f"vm{n}: P_Key map")
        equal(facts.granted_guid(vf["bdf"]), int(vf["requested"], 16), f"vm{n}: granted GUID")
        equal(list(guests[n].live_hostdevs()), [vf["bdf"]], f"vm{n}: host devices")
        guests[n].wait_vfs(1)
    (idle,) = set(VFS) - {v["bdf"] for v in vfs.values()}
    assert_scrubbed(host, idle)


@case
def two_vfs_of_one_guest(rig):
    """One guest, two VFs in two partitions, both taken back when it stops."""
    host = rig.hva
    guest = rig.guest(host, 1, ("ib0", "0x8001"), ("ib1", "0x8002")).start()
    for name, pkey in (("ib0", 0x8001), ("ib1", 0x8002)):
        vf = host.wait_attached(guest, name)
        equal(host.facts().pkey_map(vf["bdf"]), {0: pkey}, f"{name}: P_Key map")
    guest.wait_vfs(2)
    guest.destroy()
    wait_for(lambda: free_vfs(host) == VFS, 60, "all VFs free")
    for bdf in VFS:
        assert_scrubbed(host, bdf)


@case
def more_guests_than_vfs(rig):
    """A guest asks while another has all VFs: it runs without, explain says why, and it gets the one that becomes free."""
    host = rig.hva
    names = [f"ib{i}" for i in range(len(VFS))]
    many = rig.guest(host, 1, *((name, "0x8002") for name in names), ports=len(VFS) + 1).start(wait=False)
    for name in names:
        host.wait_attached(many, name)
    late = rig.guest(host, 2, ("ib0", "0x8001")).start()
    wait_for(lambda: "no free VF" in json.dumps(host.vhcactl("explain", "vm2")), 60,
             "explain to say that no VF is free")
    equal(late.live_hostdevs(), {}, "host devices of the guest that came late")
    many.destroy()
    vf = host.wait_attached(late, granted=True)
    late.wait_vfs(1)
    equal(host.facts().pkey_map(vf["bdf"]), {0: 0x8001}, "P_Key map of a VF that the other tenant had")


@case
def a_port_that_is_down_is_explained(rig):
    """Somebody pulls the cable: explain finds nothing wrong before, names the port while it is out, and nothing again after."""
    host = rig.hva
    guest = rig.guest(host, 1, ("ib0", "0x8001")).start()
    guest.wait_port(int(host.wait_attached(guest)["requested"], 16))
    host.wait_attached(guest, granted=True)
    cable = f"/sys/kernel/debug/simhca/{PF}/ctl"

    def verdict():
        return host.vhcactl("explain", "vm1")["verdict"]

    def names_the_port():
        now = verdict()
        return now["status"] == "wrong" and "is DOWN" in now["text"] and now["fix"]
    check(verdict()["status"] != "wrong", f"explained although all is well: {verdict()}")
    host.sh(f"echo 'port down' > {cable}")
    wait_for(names_the_port, 60, f"explain to see the cable out; at first it says {verdict()}")
    host.sh(f"echo 'port up' > {cable}")
    wait_for(lambda: verdict()["status"] != "wrong", 60, f"explain to see the port back; at first it says {verdict()}")


@case
def a_pci_error_is_explained(rig):
    """The kernel says by uevents that a guest's VF has reported a PCI error, and that it is back: explain says both."""
    host, guest = rig.hva, rig.guest(rig.hva, 1, ("ib0", "0x8001"))
    bdf = host.wait_attached(guest.start(), granted=True)["bdf"]
    # The kernel lets nobody else write its own names into a uevent: udev makes this one of what may be written.
    rule = 'SUBSYSTEM=="pci", ENV{SYNTH_ARG_ERROR}=="?*", ENV{ERROR_EVENT}="$env{SYNTH_ARG_ERROR}_RECOVERY"\n'

    def finding():
        return next(f for f in host.vhcactl("explain", bdf)["findings"] if f["step"] == "PCI")

    def report(event, status, text):
        host.sh(f"echo change $(cat /proc/sys/kernel/random/uuid) ERROR={event} > /sys/bus/pci/devices/{bdf}/uevent")
        wait_for(lambda: finding()["status"] == status, 60, f"explain to hear of {event}; at first it says {finding()}")
        check(text in finding()["text"] and finding()["fix"], f"after {event} explain says {finding()}")
    host.put("/run/udev/rules.d/90-pci-error.rules", rule.encode())
    host.sh("udevadm control --reload")
    try:
        report("BEGIN", "wrong", "not back")
        report("SUCCESSFUL", "warning", "and is back")
    finally:
        host.sh("rm /run/udev/rules.d/90-pci-error.rules; udevadm control --reload")
    guest.destroy()
    wait_for(lambda: host.agent_vf(bdf)["pci_error"] is None, 60, "the VF to be clean")
