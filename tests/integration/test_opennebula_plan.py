#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""drivers/opennebula: what `pre` asks the agent, before anything is begun."""

import xml.etree.ElementTree as ET

import tap
from opennebula import UUID, HostCase, nic, vnm

NO_UUID = "00000000-0000-0000-0000-000000000000"


class Pre(HostCase):
    def test_pre_plans(self):
        """All NICs at once, and what is refused is said in the agent's words."""
        self.agent_has(free=0)
        for deploy_id, uuid in ((UUID, UUID), ("", NO_UUID), ("one-42", NO_UUID), (f"{UUID}<", NO_UUID)):
            nics = nic(1), nic(2, PHYDEV="ib1", IB_GUID="sm"), nic(3, "bridge")
            p = self.run_script("vnm/vhca/pre", [], vnm(*nics, deploy_id=deploy_id))
            self.assertEqual((p.returncode, p.stderr), (0, b""))
            xml = ET.fromstring((self.rec / "plan.xml").read_text("utf-8"))
            self.assertEqual((xml.findtext("name"), xml.findtext("uuid")), ("one-42", uuid))
            self.assertEqual([vf.attrib for vf in xml.findall("metadata/{*}infiniband/{urn:vhcad:domain:1}vf")],
                             [{"name": "ib1", "fabric": "default", "partition": "0x8011", "guid": "auto"},
                              {"name": "ib2", "fabric": "ib1", "partition": "0x8011", "guid": "sm"}])
        for status in (4, 5, 8, 1):
            self.break_next("ctl.plan", status)
            self.assert_refused(self.run_script("vnm/vhca/pre", [], vnm(nic(1))), "vhcactl: no such thing")
        self.assertEqual((self.changes(), self.order().count("vhcactl --json vfs --state free")), ([], 0))


tap.main(__name__)
