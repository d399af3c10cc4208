#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""A cloud ends a port before libvirt's event of its domain's end has come: docs/design/0020-openstack.md."""

import os
import unittest
import uuid

import hosts
import tap

FABRIC = "physnet1"
MAC = "fa:16:3e:12:34:56"
VF = hosts.vf_address(1)
XML = """<domain type='kvm' id='1'><name>vm</name><uuid>UUID</uuid><devices>
<hostdev mode='subsystem' type='pci' managed='yes'><driver name='vfio'/>
<source><address domain='0x0000' bus='0x81' slot='0x00' function='0x1'/></source></hostdev></devices></domain>
"""


class LateEvents(unittest.TestCase):
    """Each event comes up to 3 s after what it tells."""

    @classmethod
    def setUpClass(cls):
        cls.host = hosts.Host("node-a", FABRIC, "0x0002c90300000010")
        cls.addClassCleanup(cls.host.end)
        cls.host.events_ms = 3000
        cls.host.start()
        cls.host.until_ready()

    def setUp(self):
        """A guest has the port's VF, and its agent has heard of it."""
        self.uuid = str(uuid.uuid4())
        xml = XML.replace("UUID", self.uuid)
        self.done(self.add(), "ib0")
        for operation in ("prepare", "start"):
            self.assertEqual(self.host.hook("vm", operation, "begin", xml), "")
        self.host.show(self.uuid, [VF], hosts.RUNNING, xml)
        self.host.wait(lambda: self.state() == "attached", hosts.WAIT)

    def tearDown(self):
        self.hang(False)
        self.host.hide(self.uuid)
        self.done(self.delete())
        self.assertEqual((self.state(), self.host.guids()), ("free", {}))

    def done(self, result, stdout=""):
        self.assertEqual((result.stdout, result.stderr, result.returncode), (stdout, "", 0), self.host.log_text()[-2000:])

    def state(self):
        return self.host.get(f"/v1/vfs/{VF}")[1]["state"]

    def add(self):
        return self.host.ebrctl("add-port", MAC, self.uuid, FABRIC, "ib_hostdev", VF)

    def delete(self):
        return self.host.ebrctl("del-port", FABRIC, MAC)

    def test_ended_domain_has_no_identity_once_its_port_is_deleted(self):
        """Nova's cold migration: the destination may begin with the address when this has been answered."""
        self.host.hide(self.uuid)
        self.done(self.delete())
        self.assertEqual((self.state(), self.host.guids()), ("free", {}))

    def hang(self, on):
        """libvirtd, from now on."""
        path = f"{self.host.where}/libvirt/hang"
        if on:
            open(path, "w", encoding="ascii").close()
        elif os.path.exists(path):
            os.unlink(path)

    def test_libvirtd_that_hangs_holds_nobody_up(self):
        """The end is remembered, and the port claimed again keeps its VF when libvirtd is back."""
        self.hang(True)
        status, problem = self.host.request("DELETE", f"/v1/fabrics/{FABRIC}/ports/{MAC}")[:2]
        self.assertEqual((status, problem["code"]), (503, "vf_busy"))
        self.assertIn("is released when it has left its guest", self.host.log_text())
        self.done(self.add(), "ib0")
        self.hang(False)
        self.host.hide(self.uuid)
        self.host.wait(lambda: self.state() != "attached" and not self.host.guids(), hosts.WAIT)
        self.host.wait(lambda: self.state() == "claimed", hosts.WAIT)

    def test_deleted_and_added_before_the_event(self):
        """Nova's hard reboot."""
        self.host.hide(self.uuid)
        self.done(self.delete())
        self.done(self.add(), "ib0")
        self.assertEqual((self.state(), self.host.guids()), ("claimed", {}))

    def test_port_of_a_guest_that_runs_is_kept_until_it_has_left(self):
        self.done(self.delete())
        self.assertEqual((self.state(), self.host.guids()), ("attached", {VF: hosts.guid_of(MAC)}))
        self.host.hide(self.uuid)
        self.host.wait(lambda: self.state() == "free", hosts.WAIT)
        self.assertEqual(self.host.guids(), {})


tap.main(__name__)
