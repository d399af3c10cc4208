#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""From CHPC's addon-kvm-sr-iov with guests running: a whole agent on a simulated ConnectX-3 whose VFs that driver has programmed, and
a libvirtd of the test's own, with libvirt's test driver, in which the guests run."""

import base64
import os
import re
import subprocess
import threading

import tap
from libvirtd import Libvirtd
from opennebula import DRIVERS, ROOT, UUID, HostCase, nic, program, vm, write
from test_agent import conf_text
from host_case import Host

CHANGES, TAKE_OVER = re.search("^```\n(onedb .*?)(onevm .*\n)```", (ROOT / "docs/opennebula.md").read_text("utf-8"), re.S | re.M).groups()
PF = "0000:01:00.0"
KEY = 0x8001           # entry 1 of the port's table; entry 0 is 0xffff
# {domain: {VF's number: its GUID}}
GUESTS = {"one-42": {2: "0x0000aa000a000107"}, "one-43": {3: "0x0000aa000a000207", 4: "0x0000aa010a000307"}}
UUIDS = {"one-42": "6d3a0000-0000-4000-8000-000000000042", "one-43": "6d3a0000-0000-4000-8000-000000000043"}
OLD = {"vn_mad": "sriov", "BRIDGE": "sriov_ib0", "VLAN_ID": "1"}
NICS = {"one-42": [nic(0, "bridge", MAC="02:00:c0:a8:07:04", BRIDGE="br0"), nic(1, MAC="02:00:0a:00:01:07", **OLD)],
        "one-43": [nic(0, MAC="02:00:0a:00:02:07", **OLD), nic(1, MAC="02:00:0a:00:03:07", PHYDEV="default", **OLD)]}
# As OpenNebula's src/onedb/onedb_live.rb (93abf23) goes by a path: the text of what it finds, or a new child of what all but its last
# name finds.
ONEDB = """#!/usr/bin/python3
import sys, xml.etree.ElementTree as ET
words = [word for word in sys.argv[1:] if word != "--append"]
vm, (path, value) = words[3], words[4:]
assert words[:3] == ["change-body", "vm", "--id"] and path.startswith("/VM/"), words
tree = ET.parse(f"{sys.path[0]}/../vms/{vm}")
parent, name = path.replace("/VM/", "./", 1).rsplit("/", 1)
for element in tree.findall(parent):
    found = [ET.SubElement(element, name)] if "--append" in sys.argv else element.findall(name)
    for child in found:
        child.text = value
tree.write(f"{sys.path[0]}/../vms/{vm}")
"""


def bdf(number):
    return f"0000:01:00.{number}"


def chpc_wrote():
    """What wr_guid.sh and wr_pkey_map.sh write, and libvirt, which binds a managed device."""
    iov = "class/infiniband/mlx4_0/iov"
    lines = []
    for vfs in GUESTS.values():
        for number, guid in vfs.items():
            lines += [f"bus/pci/devices/{bdf(number)}/driver_override=vfio-pci", f"bus/pci/drivers_probe={bdf(number)}",
                      f"{iov}/ports/1/admin_guids/{number}={guid}",
                      f"{iov}/{bdf(number)}/ports/1/pkey_idx/1=0", f"{iov}/{bdf(number)}/ports/1/pkey_idx/0=1"]
    return "\n".join(lines)


class Adoption(HostCase):
    def setUp(self):
        super().setUp()
        (self.where / "bin/virsh").unlink()      # libvirt's own, with that libvirtd
        self.libvirtd = Libvirtd()
        self.host = Host(str(self.where))
        self.libvirtd.keep()
        self.addCleanup(self.libvirtd.end)
        for name, vfs in GUESTS.items():
            self.begin(name, vfs)
        self.conf("yes")
        # Until libvirt has listed its domains, the open VFIO group alone says that a guest has a VF.
        write(self.where / "held", "".join(f"{bdf(number)}\n" for vfs in GUESTS.values() for number in vfs))
        self.host.before = {"SIM_BEFORE": chpc_wrote(), "SIM_HELD": str(self.where / "held")}
        self.addCleanup(self.host.end)
        self.host.start()
        self.host.wait(lambda: self.states()[1:] == ["unmanaged"] * 3)
        program(self.where / "bin/vhcactl", f'#!/bin/sh\nexec "{os.environ["VHCACTL"]}" --socket "{self.where}/run/vhcad.sock" "$@"\n')
        program(self.where / "bin/onedb", ONEDB)
        program(self.where / "bin/onevm", f'#!/bin/sh\n[ "$1 $2" = "show --xml" ] && cat "{self.where}/vms/$3"\n')
        program(self.where / "bin/ssh", '#!/bin/sh\nshift\nexec sh -c "$*"\n')
        program(self.where / "bin/sudo", '#!/bin/sh\nexec "$@"\n')
        program(self.where / "bin/vhca-one-setup", f'#!/bin/sh\nexec "{DRIVERS}/vhca-one-setup" "$@" --locks "{self.where}/locks" '
                f'--vf-maps "{self.where}/maps" --connect "{self.libvirtd.uri}"\n')
        write(self.where / "maps/ib0", "".join(f"0x01 0x00 0x0{n}\n" for n in range(1, 5)))
        for vfs in GUESTS.values():
            for number, guid in vfs.items():
                self.lock(number - 1, guid)

    def conf(self, default):
        text = conf_text(self.where, f"vfs = keep\nfabric = default\n[policy]\nallow_default_partition = {default}\n")
        self.host.write(text.replace("test:///default", self.libvirtd.uri))

    def lock(self, number, guid):
        octets = guid.removeprefix("0x0000")
        write(self.where / f"locks/ib0/{number}", ":".join(octets[i:i + 2] for i in range(0, 12, 2)) + "\n")

    def begin(self, name, vfs):
        devices = "".join("<hostdev mode='subsystem' type='pci' managed='yes'><source><address domain='0x0000' bus='0x01' slot='0x00' "
                          f"function='0x{number}'/></source></hostdev>" for number in vfs)
        write(self.where / f"{name}.xml", f"<domain type='test'><name>{name}</name><uuid>{UUIDS[name]}</uuid><memory>65536</memory>"
              f"<os><type>hvm</type></os><devices>{devices}</devices></domain>")
        self.libvirtd.virsh("create", f"{self.where}/{name}.xml")

    def states(self):
        return [vf["state"] for vf in sorted(self.host.get("/v1/vfs")[1]["vfs"], key=lambda vf: vf["bdf"])]

    def type(self, lines, name):
        """Commands of docs/opennebula.md, for which setUp has put doubles of onedb, onevm, ssh and sudo."""
        return subprocess.run(["sh", "-e", "-c", lines.replace("/usr/share/vhcad/opennebula/", "").replace("42", name[4:])], capture_output=True,
                              text=True, timeout=60, env=self.env, check=False)

    def change(self, name, nics=None):
        text = vm(*(nics or NICS[name])).replace("<ID>42<", f"<ID>{name[4:]}<").replace(f"<DEPLOY_ID>{UUID}<", f"<DEPLOY_ID>{name}<")
        write(self.where / f"vms/{name[4:]}", text)
        p = self.type(CHANGES, name)
        self.assertEqual((p.returncode, p.stdout, p.stderr), (0, "", ""))

    def adopt(self, name, nics=None):
        self.change(name, nics)
        return self.type(TAKE_OVER, name)

    def held_writes(self):
        """What the agent has written for a VF of a guest."""
        return [line for line in self.host.writes() if any(bdf(n) in line or f"admin_guids/{n}=" in line for n in (2, 3, 4))]

    def test_all_are_served_and_nothing_is_written(self):
        said = {"one-42": "VM 42: ib1 is 0000:01:00.2, 0x0000aa000a000107, 0x8001 0xffff\n",
                "one-43": "VM 43: ib0 is 0000:01:00.3, 0x0000aa000a000207, 0x8001 0xffff\n"
                          "VM 43: ib1 is 0000:01:00.4, 0x0000aa010a000307, 0x8001 0xffff\n"}
        for name, lines in said.items():
            p = self.adopt(name)
            self.assertEqual((p.returncode, p.stdout), (0, lines), p.stderr)
        self.assertEqual(self.states(), ["free"] + ["attached"] * 3)
        claims = {(c["domain_name"], c["name"]): (c["bdf"], c["guid"], c["pkeys"], c["way"]) for c in self.host.get("/v1/claims")[1]["claims"]}
        self.assertEqual(claims, {
            ("one-42", "ib1"): (bdf(2), "0x0000aa000a000107", ["0x8001", "0xffff"], "metadata"),
            ("one-43", "ib0"): (bdf(3), "0x0000aa000a000207", ["0x8001", "0xffff"], "metadata"),
            ("one-43", "ib1"): (bdf(4), "0x0000aa010a000307", ["0x8001", "0xffff"], "metadata")})
        before = [self.libvirtd.virsh("dumpxml", name) for name in GUESTS]
        for name in GUESTS:
            p = self.adopt(name)
            self.assertEqual((p.returncode, p.stdout, p.stderr), (0, f"VM {name[4:]}: there is nothing to adopt\n", ""))
        self.assertEqual([self.libvirtd.virsh("dumpxml", name) for name in GUESTS], before)
        self.assertEqual(self.held_writes(), [])
        self.taken_for_ours()

    def taken_for_ours(self):
        """What OpenNebula calls next: the NICs are there, and no second VF is given."""
        for name in NICS:
            p = self.run_script("vnm/vhca/post", [name, "hv1"], base64.b64encode(self.vm(name)).decode(), VHCA_POST_WAIT="5")
            self.assertEqual((p.returncode, p.stderr), (0, b""))
        # The agent has no peer of that name, and nothing else against it.
        p = self.run_script("vmm/vhca/migrate", ["one-42", "hv2", "hv1", "42", "hv1"], self.vm("one-42"))
        self.assertEqual(p.returncode, 1)
        self.assertIn(b"there is no [peer hv2]", p.stderr)
        self.assertEqual(self.states(), ["free"] + ["attached"] * 3)

    def vm(self, name):
        """As OpenNebula has it now."""
        return (self.where / f"vms/{name[4:]}").read_bytes()

    def refused(self, words, name="one-42", nics=None):
        p = self.adopt(name, nics)
        self.assertEqual((p.returncode, p.stdout), (1, ""), p.stderr)
        self.assertIn(words, p.stderr.splitlines()[-1] + p.stderr)
        self.assertEqual(self.states(), ["free"] + ["unmanaged"] * 3)
        self.assertNotIn("infiniband", self.libvirtd.virsh("dumpxml", name))

    def test_what_does_not_fit_is_left_alone(self):
        self.refused("0x7 is not in the port's P_Key table", nics=[nic(1, MAC="02:00:0a:00:01:07", IB_PKEYS="0x0007")])
        for name in ("physics", "beef"):      # a number in base 16, too
            self.refused(f"{name} is a partition's name", nics=[nic(1, MAC="02:00:0a:00:01:07", IB_PKEYS=name)])
        self.refused("no lock file", nics=[nic(1, MAC="02:00:0a:00:09:09", VLAN_ID="1")])
        self.lock(1, "0x0000aa070a000107")     # the VF shows another GUID
        self.refused("is not what ib1 asks for")
        (self.where / "locks/ib0/1").unlink()
        self.refused("no lock file")
        # Lines that no lock file or map of that driver's has.
        write(self.where / "locks/ib0/x", "aa:00:0a:00:01:07")
        write(self.where / "locks/ib0/99", "aa:00:0a:00:01:07")
        write(self.where / "locks/ib1/0", "aa:00:0a:00:01:07")
        write(self.where / "locks/lock", "")
        self.refused("no lock file")
        self.assertEqual(self.held_writes(), [])

    def test_a_lock_file_that_is_left_over(self):
        """That driver's files "might become out of sync": each guest keeps the VF that it has."""
        self.lock(0, GUESTS["one-42"][2])      # nobody has that VF
        for name in GUESTS:
            p = self.adopt(name)
            self.assertEqual(p.returncode, 0, p.stderr)
        claims = {(c["domain_name"], c["bdf"]): c["guid"] for c in self.host.get("/v1/claims")[1]["claims"]}
        self.assertEqual(claims, {(name, bdf(n)): guid for name, vfs in GUESTS.items() for n, guid in vfs.items()})
        self.assertEqual(self.held_writes(), [])

    def leave_metadata(self, partition="0x8001 0xffff"):
        self.libvirtd.virsh("metadata", UUIDS["one-42"], "urn:vhcad:domain:1", "--live", "--key", "vhca", "--set",
                            f'<infiniband><vf name="ib1" fabric="default" partition="{partition}" guid="0x0000aa000a000107"/></infiniband>')
        self.host.wait(lambda: "".join(r["partition"] for r in self.requests()) == partition)

    def requests(self):
        return [r for d in self.host.get("/v1/domains")[1]["domains"] if d["name"] == "one-42" for r in d["requests"]]

    def test_one_that_was_killed_is_done_again(self):
        """Before the agent was asked; or after, without an answer."""
        self.leave_metadata()
        p = self.adopt("one-42")
        self.assertEqual((p.returncode, p.stdout), (0, "VM 42: ib1 is 0000:01:00.2, 0x0000aa000a000107, 0x8001 0xffff\n"), p.stderr)
        ctl = (self.where / "bin/vhcactl").read_text("utf-8")
        for killed in ('[ "$1" != adopt ] || exit 7\nexec', '[ "$1" != adopt ] || kill -9 $$\nexec'):
            program(self.where / "bin/vhcactl", ctl.replace("exec", killed))
            p = self.adopt("one-43")
            self.assertEqual((p.returncode, p.stdout), (1, ""), p.stderr)
            self.assertIn("do this again", p.stderr)
            self.assertIn("infiniband", self.libvirtd.virsh("dumpxml", "one-43"))
        program(self.where / "bin/vhcactl", ctl)
        self.assertEqual(self.adopt("one-43").returncode, 0)
        self.assertEqual((self.states()[1:], self.held_writes()), (["attached"] * 3, []))

    def test_a_request_of_somebody_else_stays(self):
        self.leave_metadata("0x8001")
        p = self.adopt("one-42")
        self.assertEqual((p.returncode, p.stdout, p.stderr), (1, "", "vhca-one-setup: one-42 has a request of its own in its metadata\n"))
        self.assertEqual([r["partition"] for r in self.requests()], ["0x8001"])
        self.assertEqual(self.states()[1:], ["unmanaged"] * 3)

    def test_two_at_a_time(self):
        found = []
        self.change("one-43")
        threads = [threading.Thread(target=lambda: found.append(self.type(TAKE_OVER, "one-43"))) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(sorted((p.returncode, len(p.stdout.splitlines())) for p in found), [(0, 1), (0, 2)])
        self.assertIn("infiniband", self.libvirtd.virsh("dumpxml", "one-43"))

    def test_what_else_lies_there(self):
        """In a directory of all users: nothing of it is waited for, believed, or in the way of the others."""
        for number, content in enumerate((b"\xff\xfe\0", b"aa:00:0a:00:01:07" * 9, b"", b"\n" * 9), 5):
            write(self.where / f"locks/ib0/{number}", content)
        (self.where / "locks/ib0/10/0").mkdir(parents=True)
        (self.where / "locks/ib0/0").unlink(missing_ok=True)
        os.mkfifo(self.where / "locks/ib0/0")
        (self.where / "locks/ib0/11").symlink_to("/dev/zero")
        write(self.where / "locks/zero/0", "aa:00:0a:00:01:07")
        (self.where / "maps/zero").symlink_to("/dev/zero")
        write(self.where / "locks/bytes/1", "aa:00:0a:00:01:07")
        write(self.where / "maps/bytes", b"\xff\n0x\xff 0x00 0x02\n")
        p = self.adopt("one-42")
        self.assertEqual((p.returncode, self.states()[1]), (0, "attached"), p.stderr)

    def test_what_is_no_vm_or_does_not_run(self):
        for xml, words in (("", "there is no VM"), (vm(nic(0, IB_PKEYS='"')), "IB_PKEYS has"), (vm(nic(1)).replace("<ID>42<", "<ID>7<"), "does not run here")):
            p = subprocess.run([str(DRIVERS / "vhca-one-setup"), "--adopt"], input=xml, capture_output=True, text=True, timeout=60,
                               env=self.env, check=False)
            self.assertEqual((p.returncode, p.stdout, len(p.stderr.splitlines())), (1, "", 1), p.stderr)
            self.assertIn(words, p.stderr)

    def test_the_default_partition_has_to_be_allowed(self):
        self.conf("no")
        self.assertEqual(self.host.request("POST", "/v1/reload")[0], 200)
        self.refused("allow_default_partition")


tap.main(__name__)
