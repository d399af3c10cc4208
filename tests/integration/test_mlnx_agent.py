#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Debian 11's neutron-mlnx-agent, unmodified, drives vhca-eswitch before a whole agent on a simulated adapter.

VHCA_MLNX_RECORD=FILE keeps what it and vhca-eswitch said to each other: tests/data/mlnx-agent.json, which test_eswitch plays
where this agent cannot be had.
"""

import json
import os
import subprocess
import unittest

import mlnx
import tap
from eswitch import Eswitch, Story, keep
from guests import Hypervisor
from host_case import MAC, OTHER_MAC, OTHER_VF, VF, WAIT, HostCase

RUNNER = os.path.join(os.path.dirname(__file__), "mlnx_agent.py")


def port(number, slot, **members):
    """What Neutron knows of one."""
    return {"port_id": f"p{number}", "profile": {"pci_slot": slot}, "network_id": f"n{number}", "network_type": "vlan", "physical_network": "physnet1",
            "segmentation_id": number, "admin_state_up": True, **members}


@unittest.skipUnless(mlnx.CODE, mlnx.LACKS)
class Agent(HostCase):
    HOST = Hypervisor

    @classmethod
    def prepare(cls):
        pass    # it has

    def setUp(self):
        self.record = f"{self.where}/record"
        open(self.record, "w", encoding="utf-8").close()
        self.know({})
        self.eswitch = Eswitch(self.where)
        self.story = Story(self.host, self.eswitch)
        self.log = open(f"{self.where}/mlnx.log", "wb")
        self.process = subprocess.Popen(["/usr/bin/python3", RUNNER, "tcp://{}:{}".format(*self.eswitch.address), f"{self.where}/ports", self.record],
                                        env={**os.environ, "PYTHONPATH": str(mlnx.CODE)}, stdout=self.log, stderr=self.log)
        self.until(lambda lines: ["ask", {"action": "get_vnics", "fabric": "*"}] in lines)

    def tearDown(self):
        still_runs = self.process.poll() is None
        self.process.kill()
        self.process.wait(WAIT)
        self.log.close()
        self.story.clear()
        text = self.eswitch.text()
        self.assertEqual(self.eswitch.end(), 0)
        with open(f"{self.where}/mlnx.log", encoding="utf-8") as f:
            self.assertTrue(still_runs, f.read()[-3000:])
        self.assertNotIn("Traceback", text)

    def know(self, ports):
        with open(f"{self.where}/ports.new", "w", encoding="utf-8") as f:
            json.dump(ports, f)
        os.rename(f.name, f"{self.where}/ports")

    def do(self, name):
        """As Nova, or as the host; it stands in the record, too."""
        with open(self.record, "a", encoding="utf-8") as f:
            f.write(json.dumps(["do", name]) + "\n")
        getattr(self.story, name)()
        with open(self.record, encoding="utf-8") as f:
            return len(f.readlines())

    def lines(self, since=0):
        with open(self.record, encoding="utf-8") as f:
            return [json.loads(line) for line in f.readlines()[since:] if line.endswith("\n")]

    def until(self, condition, since=0):
        try:
            self.host.wait(lambda: condition(self.lines(since)), WAIT)
        except AssertionError:
            with open(f"{self.where}/mlnx.log", encoding="utf-8") as f:
                raise AssertionError(f"{self.lines(since)[-20:]}\n{f.read()[-3000:]}\n{self.eswitch.text()}") from None

    def polls(self, count):
        """It has looked so often again."""
        begun = len(self.lines())
        self.until(lambda lines: sum(line[0] == "hear" and line[1]["action"] == "get_vnics" for line in lines) >= count, begun)

    def told(self, since=0):
        return [line for line in self.lines(since) if line[0] in ("up", "down")]

    def test_life_of_a_port(self):
        """Up, through a restart of vhcad and a hard reboot that it does not see, and down."""
        self.know({MAC: port(1, VF)})
        self.do("plug")
        self.polls(2)
        self.assertEqual(self.told(), [])    # reserved
        self.do("begin")
        self.until(lambda lines: ["up", MAC] in lines)
        self.assertEqual(self.story.pkeys(), ["0x8001"])
        writes, since = self.host.writes(), len(self.lines())
        self.do("kill_vhcad")
        self.polls(3)
        self.assertEqual(self.told(since), [])
        self.assertEqual([line for line in self.host.writes()[len(writes):] if "admin_guid" in line or "pkey_idx" in line], [])
        since = self.do("reboot")
        self.until(lambda lines: ["up", MAC] in lines, since)
        self.assertEqual(self.story.pkeys(), ["0x8001"])
        self.assertEqual(self.told(since), [["down", "p1"], ["up", MAC]])
        since = self.do("unplug")
        self.until(lambda lines: ["hear", {"status": "OK", "response": {}, "action": "port_release"}] in lines, since)
        self.assertEqual(self.told(since), [["down", "p1"]])
        if "VHCA_MLNX_RECORD" in os.environ:
            keep(self.lines(), os.environ["VHCA_MLNX_RECORD"])

    def test_a_port_that_cannot_be_served(self):
        """Its flat network has no partition: it goes down, and the other one up, whichever is asked for first."""
        for bad in (MAC, OTHER_MAC):
            good = OTHER_MAC if bad == MAC else MAC
            ports = {MAC: port(1, VF), OTHER_MAC: port(2, OTHER_VF)}
            ports[bad]["network_type"] = "flat"
            self.know(ports)
            bad_id, good_id = ports[bad]["port_id"], ports[good]["port_id"]
            self.do("plug")
            self.do("plug_other")
            since = self.do("begin")
            self.do("begin_other")
            self.until(lambda lines, good=good, bad_id=bad_id: ["up", good] in lines and ["down", bad_id] in lines, since)
            self.polls(6)
            self.assertNotIn(["up", bad], self.told(since))
            self.assertNotIn(["down", good_id], self.told(since))
            self.story.clear()
            self.until(lambda lines, good_id=good_id: ["down", good_id] in lines, since)

    def test_a_port_that_neutron_has_forgotten(self):
        self.know({MAC: port(1, VF)})
        self.do("plug")
        self.do("begin")
        self.until(lambda lines: ["up", MAC] in lines)
        self.know({})
        since = self.do("unplug")
        self.until(lambda lines: ["down", "p1"] in lines, since)
        self.polls(2)


    def test_eswitch_begins_where_a_guest_has_no_partition(self):
        """As one of ConnectX-4 that was adopted: its port is set up anew by an agent that knows it, and no other one is touched."""
        self.know({MAC: port(1, VF), OTHER_MAC: port(2, OTHER_VF)})
        self.do("plug")
        self.do("plug_other")
        self.do("begin")
        self.do("begin_other")
        self.until(lambda lines: ["up", MAC] in lines and ["up", OTHER_MAC] in lines)
        address = self.eswitch.address
        self.assertEqual(self.eswitch.end(), 0)
        self.do("reboot")
        self.host.show(VF, OTHER_VF)
        self.addCleanup(self.host.clear)
        since = self.do("kill_vhcad")
        self.host.wait(lambda: self.host.claim()["state"] == "attached", WAIT)
        self.assertEqual(self.story.pkeys(), [])
        self.eswitch = Eswitch(self.where, listen="{}:{}".format(*address))
        self.until(lambda lines: ["up", MAC] in lines, since)
        self.assertEqual(self.story.pkeys(), ["0x8001"])
        self.polls(3)
        self.assertEqual(self.told(since), [["down", "p1"], ["up", MAC]])
        asked = [line[1]["pci_slot"] for line in self.lines(since) if line[0] == "ask" and line[1]["action"] == "set_vlan"]
        self.assertEqual(set(asked), {VF})


tap.main(__name__)
