#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""docs/opennebula.md, sections 1 to 6: its commands, typed in order on one machine that is host and front-end. It has a whole agent on
a simulated ConnectX-3, and a libvirtd of its own with libvirt's test driver, to which no device can be attached. OpenNebula's programs
are doubles: what oned would have done with the VM that the page instantiates is done by the scripts that the page has installed."""

import os
import re
import shutil
import subprocess
import xml.etree.ElementTree as ET

import page_code
import tap
from host_case import Host
from libvirtd import Libvirtd
from opennebula import DOUBLE, ROOT, UUID, HostCase, nic, program, vm, vnm, write
from test_agent import ENV, conf_text

PAGE = (ROOT / "docs/opennebula.md").read_text("utf-8")
OTHERS = {"systemctl": ["restart vhcad", "restart opennebula"],
          "sudo": ["-u oneadmin onehost sync -f", "-u oneadmin onevnet create ib-physics.net",
                   "-u oneadmin onetemplate instantiate debian --name one-0 --nic ib-physics"]}
SUDO = """#!/bin/sh
printf '%s\\n' "$*" >>"$REC/sudo"
case $* in *" onetemplate "*) ;; *) exit ;; esac
"{0}/one/vnm/vhca/pre" <"{0}/vnm" && exec "{0}/one/vmm/vhca/deploy" "{0}/deployment.0" hv1 0 hv1 <"{0}/domain.xml"
"""
BLOCKS = page_code.indented(PAGE)
FILES = [block for block in BLOCKS if " = " in block]
COMMANDS = [line for block in BLOCKS if block not in FILES for line in block.splitlines()]


class Page(HostCase):
    def setUp(self):
        super().setUp()
        (self.where / "bin/virsh").unlink()
        self.libvirtd = Libvirtd()
        self.host = Host(str(self.where))
        self.libvirtd.keep()
        self.addCleanup(self.libvirtd.end)
        self.host.write(conf_text(self.where, "vfs = keep\nfabric = default\n").replace("test:///default", self.libvirtd.uri))
        self.addCleanup(self.host.end)
        self.host.start()
        self.host.wait(lambda: [vf["state"] for vf in self.host.get("/v1/vfs")[1]["vfs"]] == ["free"] * 4)
        program(self.where / "bin/vhcactl", f'#!/bin/sh\nexec "{os.environ["VHCACTL"]}" --socket "{self.where}/run/vhcad.sock" "$@"\n')
        write(self.where / "page.conf", FILES[0])
        program(self.where / "bin/vhcad", f'#!/bin/sh\nexec "{os.environ["VHCAD"]}" -c "{self.where}/page.conf" "$@"\n')
        self.front_end()
        self.cloud()

    def front_end(self):
        """As OpenNebula's packages leave it."""
        shutil.rmtree(self.remotes / "vmm/vhca")
        shutil.rmtree(self.remotes / "vnm/vhca")
        write(self.where / "oned.conf", 'VM_MAD = [ NAME = "kvm", ARGUMENTS = "-t 15 -r 0 kvm -p" ]\n')
        program(self.remotes / "im/kvm-probes.d/host/system/pci.rb", DOUBLE)
        program(self.remotes / "vmm/kvm/deploy", f'#!/bin/sh\nexec virsh -q -c "{self.libvirtd.uri}" create /dev/stdin\n')
        program(self.where / "bin/vhca-one-setup", f'#!/bin/sh\nexec "{ROOT}/drivers/opennebula/vhca-one-setup" "$@" '
                f'--oned-conf "{self.where}/oned.conf" --remotes "{self.remotes}"\n')

    def cloud(self):
        """A VM whose NIC has what the page's network says."""
        network = dict(re.findall(r'^(\w+) = "(.*)"$', FILES[1], re.M))
        self.assertEqual(network.pop("VN_MAD"), "vhca")
        nics = [nic(0, VLAN_ID=None, **{key: value for key, value in network.items() if key != "NAME"})]
        write(self.where / "vm.xml", vm(*nics))
        write(self.where / "vnm", vnm(*nics))
        write(self.where / "domain.xml", f"<domain type='test'><name>one-0</name><uuid>{UUID}</uuid><memory>65536</memory><os><type>hvm</type></os>"
              "<devices><controller type='pci' model='pcie-root'/><controller type='pci' model='pcie-root-port'/></devices></domain>")
        program(self.where / "bin/systemctl", '#!/bin/sh\nprintf "%s\\n" "$*" >>"$REC/systemctl"\n')
        program(self.where / "bin/sudo", SUDO.format(self.where))

    def type(self, line):
        p = subprocess.run(["sh", "-c", line.replace("/usr/share/vhcad/opennebula/", "")], capture_output=True, text=True, timeout=60,
                           env={**self.env, "LSAN_OPTIONS": ENV["LSAN_OPTIONS"]}, check=False)
        self.assertEqual(p.returncode, 0, f"{line}: {p.stdout}{p.stderr}")
        return p.stdout

    def test_commands(self):
        self.assertEqual(len(COMMANDS), 11)
        before = (self.where / "oned.conf").read_bytes()
        said = {}
        for line in COMMANDS:
            said[line] = self.type(line)
            if "instantiate" in line:
                self.host.wait(lambda: self.host.get("/v1/domains")[1]["domains"])
        self.assertEqual(said["vhcactl vfs --state free"].count("free"), 4)
        for line in ("vhcactl domains", "vhcactl explain one-0"):
            self.assertIn("one-0", said[line])
        for name, lines in OTHERS.items():
            self.assertEqual((self.rec / name).read_text("utf-8").splitlines(), lines)
        request = self.host.get("/v1/domains/one-0")[1]["requests"][0]
        self.assertEqual((request["name"], request["partition"], request["fabric"]), ("ib0", "0x8001", "default"))
        self.assertEqual(len(ET.fromstring(self.libvirtd.virsh("dumpxml", "one-0")).findall(".//{urn:vhcad:domain:1}vf")), 1)
        self.type("vhca-one-setup --remove")
        self.assertEqual((self.where / "oned.conf").read_bytes(), before)

    def test_no_other_command_is_named(self):
        """In the text are those of OpenNebula that only show something, and vhcactl's that is typed with an option."""
        self.assertEqual(set(re.findall(r"`((?:one\w+|vhc\w+|virsh|systemctl) [^`]*)`", PAGE)),
                         {"vhcactl vfs", "onehost list", "onehost show hv1"})


tap.main(__name__)
