#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""[sm] lid_policy = follow: whole agents of two hosts with a ConnectX-3, the plugin in a real OpenSM on a fat tree. Of libvirt there is what
the test shows; it is the source's side of the migration towards the destination."""

import os
import shutil
import subprocess
import tempfile
import unittest
import uuid

import fabric
import fattree
import tap
from test_agent import ENV, Agent, conf_text
from test_vswitch_agents import DOMAIN, VGUID, WAIT, Host

SOURCE, DESTINATION = 2, 7    # at two leaves
VF = "0000:01:00.1"
GUEST = f"""1 1
<domain type='kvm' id='1'><name>vm1</name><uuid>{DOMAIN}</uuid><devices>
<hostdev mode='subsystem' type='pci' managed='no'><source><address domain='0x0000' bus='0x01' slot='0x00' function='0x1'/></source>
<alias name='ua-vhca-ib0'/><address type='pci' domain='0x0000' bus='0x07' slot='0x00' function='0x0'/></hostdev>
</devices></domain>"""


class Mlx4Host(Host):
    def __init__(self, n, where, sm, lid, policy):
        Agent.__init__(self, where)
        self.sm, self.n = sm, n
        self.peer_port = fabric.free_port()
        os.mkdir(f"{where}/libvirt")
        self.env = {**ENV, "SIM_PORT_GUID": fabric.port_guid(n), "SIM_LID": f"{where}/lid", "SIM_VFS": "2", "SIM_HELD": f"{where}/held"}
        self.hold("")
        self.show_lid(lid)
        self.write(conf_text(where, f"vfs = 2\n[sm]\nbackend = vhcasm\nurl = http://{sm.api.listen}\nlid_policy = {policy}\npoll = 200ms\n"
                                    "[policy]\nallow_default_partition = yes\n"
                                    f"[api]\npeer_listen = 127.0.0.1:{self.peer_port}\n").replace("test:///default", f"folder://{where}/libvirt"))

    def start(self):
        self.log = open(f"{self.where}/log", "ab")
        self.process = subprocess.Popen([os.environ["VHCA_CLOUD_HOST"], self.conf], stderr=self.log, stdout=self.log, env=self.env)
        self.wait(lambda: self.process.poll() is not None or self.get("/readyz")[0] == 200, WAIT)

    def hold(self, lines):
        with open(f"{self.where}/held.new", "w", encoding="ascii") as f:
            f.write(lines)
        os.rename(f.name, f"{self.where}/held")

    def guest_has_it(self):
        """The guest runs here, and has its VF."""
        self.hold(f"{VF}\n")
        with open(f"{self.where}/new", "w", encoding="utf-8") as f:
            f.write(GUEST)
        os.rename(f.name, f"{self.where}/libvirt/{DOMAIN}")

    def vf(self):
        return next(vf for vf in self.get("/v1/vfs")[1]["vfs"] if vf["bdf"] == VF)


@unittest.skipIf(fabric.missing(), fabric.missing())
class Follow(fattree.Case):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="vhca-vswitch.")
        self.addCleanup(shutil.rmtree, self.dir, True)
        self.sm = self.manager(listen=f"127.0.0.1:{fabric.free_port()}").start()
        self.of = dict(fattree.Lids(self.tree, self.sm).of)

    def host(self, n, policy="follow"):
        host = Mlx4Host(n, tempfile.mkdtemp(dir=self.dir), self.sm, self.of[n], policy)
        host.start()
        self.addCleanup(host.end)
        if host.process.poll() == 77:
            self.skipTest(host.log_text())
        host.await_vf("free")
        return host

    def migrate(self, source, destination, **lid):
        """A guest from one to the other, with what the source says of its LID."""
        status, claim, _ = source.request("POST", "/v1/claims", {"domain": DOMAIN, "name": "ib0", "partition": "0xffff", "guid": VGUID, "bdf": VF})
        self.assertEqual(status, 201, claim)
        source.await_reports()
        path = f"/v1/peer/claims/{uuid.uuid4()}"
        vf = {"name": "ib0", "way": "claim", "fabric": "default", "guid": VGUID, "epoch": claim["epoch"], "pkeys": ["0xffff"],
              "guest_address": "0000:07:00.0", "port_guid": fabric.port_guid(SOURCE), "gid_index": 1, "lid": self.of[SOURCE], **lid}
        status, doc = destination.peer("PUT", path, {"domain": DOMAIN, "name": "vm1", "node": "hva", "mode": "external", "vfs": [vf]})
        self.assertEqual(status, 200, doc)
        status, doc, _ = source.request("DELETE", f"/v1/claims/{claim['id']}")
        self.assertIn(status, (200, 202, 204), doc)
        source.await_reports()
        status, doc = destination.peer("POST", f"{path}/handover", {"vfs": [{"guid": VGUID, "epoch": claim["epoch"] + 1}]})
        self.assertEqual(status, 200, doc)
        destination.await_vf("programmed")
        destination.await_reports()
        self.assertEqual(self.tree.who(self.of[SOURCE], 5), f"H{SOURCE}")    # not before the guest
        destination.guest_has_it()
        destination.await_vf("attached")
        destination.await_reports()

    def show(self, **hosts):
        """Their kernels see the LIDs that OpenSM has given to the ports."""
        for host in hosts.values():
            host.show_lid(fattree.Lids(self.tree, self.sm).of[host.n])

    def claim(self, host):
        return host.get("/v1/claims")[1]["claims"][0]

    def test_the_lid_goes_with_the_guest(self):
        source, destination = self.host(SOURCE), self.host(DESTINATION)
        self.migrate(source, destination, lid_policy="follow")
        fabric.wait_for("the LID", lambda: self.tree.who(self.of[SOURCE], 5) == f"H{DESTINATION}", 30)
        self.assertEqual(self.tree.who(self.of[DESTINATION], 5), f"H{SOURCE}")
        destination.wait(lambda: self.claim(destination)["lid_follows"] is None, WAIT)
        self.assertIsNone(self.claim(destination)["lid_reason"])
        moves = self.sm.api.call("GET", "/v1/fabric")[1]["moves"]
        self.assertEqual(moves["applied"], 1)
        self.show(source=source, destination=destination)    # and both report again
        destination.wait(lambda: self.sm.api.get(VGUID)[1]["lid"] == self.of[SOURCE], WAIT)
        destination.await_reports()
        self.assertEqual(self.sm.api.call("GET", "/v1/fabric")[1]["moves"]["applied"], 1)
        self.assertEqual(self.tree.who(self.of[SOURCE], 5), f"H{DESTINATION}")
        self.assertEqual(self.sm.stop(), 0)

    def check_stays(self, destination, why):
        self.assertEqual(self.tree.who(self.of[SOURCE], 5), f"H{SOURCE}")
        self.assertIn(why, self.claim(destination)["lid_reason"])
        self.assertIsNone(self.claim(destination)["lid_follows"])
        binding = self.sm.api.get(VGUID)[1]
        self.assertEqual(binding["port_guid"], fabric.port_guid(DESTINATION))
        self.assertEqual(self.sm.stop(), 0)

    def test_a_refusal_of_the_plugin_keeps_nobody(self):
        """The LID has been another port's since the offer."""
        source, destination = self.host(SOURCE), self.host(DESTINATION)
        stale, self.of[SOURCE] = self.of[SOURCE], self.of[3]
        try:
            self.migrate_stale(source, destination)
        finally:
            self.of[SOURCE] = stale
        self.check_stays(destination, "is port")

    def migrate_stale(self, source, destination):
        who = self.tree.who
        self.tree.who = lambda lid, seen_from: f"H{SOURCE}"    # the look of migrate() is not of this LID
        try:
            self.migrate(source, destination, lid_policy="follow")
        finally:
            self.tree.who = who

    def test_a_source_that_does_not_ask(self):
        source, destination = self.host(SOURCE, "host"), self.host(DESTINATION)
        self.migrate(source, destination)
        self.check_stays(destination, "is not follow")


tap.main(__name__)
