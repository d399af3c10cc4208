#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Dynamic LIDs when another OpenSM becomes master: the agents' reports make the table anew, whatever file the new one has."""

import os
import unittest

import fabric
import fattree
import masters
import tap
import test_vswitch_dynamic as dynamic
import vswitches

VGUID, OTHER, THIRD = dynamic.VGUID, dynamic.OTHER, dynamic.THIRD
HONOUR = "honor_guid2lid_file TRUE\n"


@unittest.skipIf(fabric.missing(), fabric.missing())
class Case(masters.Masters, dynamic.Case):
    def new_fabric(self):
        self.net = vswitches.VSwitches()
        for place in self.net.guid:
            self.net.take(*place)
        self.epoch = 0
        return self.net

    def opensm(self, host, role, conf, cache_dir):
        return self.net.manager(host=host, opensm_conf=f"routing_engine minhop\n{role}{conf}", conf="[lids]\ndynamic = 4",
                                counter=os.environ["VHCA_SMPCOUNT_LIB"], cache_dir=cache_dir)

    def pair(self, conf="", cache_dir=None):
        """self.sm is the master."""
        self.sm = self.opensm(1, masters.MASTER, conf, cache_dir).start()
        self.lids = vswitches.lids(self.sm)
        return self.sm, self.opensm(2, masters.STANDBY, conf, cache_dir)

    def comes(self, vguid, lid, place):
        self.net.give(*place, vguid)
        fabric.wait_for(f"LID {lid} at {vguid}", lambda: self.row(lid)["port_guid"] == vguid, 20)

    def dies(self, master, standby):
        before = master.api.call("GET", "/v1/fabric")[1]["sweeps"]
        self.enter_standby(standby)
        fabric.wait_for("the sweep", lambda: master.api.call("GET", "/v1/fabric")[1]["sweeps"] > before, 30)
        master.kill()
        self.sm = standby
        self.takes_over(standby)

    def check_there(self, vguid, lid, place):
        """Who asks a master that is one since a moment ago may get no answer."""
        fabric.wait_for(f"LID {lid} in the path to {vguid}", lambda: self.net.path_lid(vguid) == lid)
        super().check_there(vguid, lid, place)

    def known(self):
        return self.sm.api.call("GET", "/v1/fabric")[1]["dynamic_lids"]

    def file(self, sm):
        with open(os.path.join(sm.state_dir, "dynamic-lids"), encoding="ascii") as f:
            return f.read()


class TakeOver(Case):
    def test_a_file_of_an_earlier_time_as_master(self):
        """The LIDs in it are other guests' by now, or nobody's: a guest that runs keeps its own, and none is kept for those that have ended."""
        master, standby = self.pair()
        old = [self.given(vguid, 4)[0] for vguid in dynamic.MANY[:3]]
        os.mkdir(standby.state_dir)
        with open(os.path.join(standby.state_dir, "dynamic-lids"), "w", encoding="ascii") as f:
            f.write(self.file(master))
        for vguid in dynamic.MANY[:3]:
            self.check(self.sm.api.withdraw(vguid, self.epoch), 200)
        self.assertEqual([self.given(vguid, host)[0] for vguid, host in ((VGUID, 3), (OTHER, 5))], old[:2])
        self.comes(VGUID, old[0], (3, 1))
        self.dies(master, standby)

        self.assertEqual((self.known(), self.file(standby)), (0, "vhcasm-dynamic-lids 1\nend 0\n"))
        self.assertEqual((self.row(old[0])["port_guid"], self.who(6, old[0])), (VGUID, ["F3-1"]))
        self.assertEqual(self.check(self.ask(VGUID, 3), 200)["lid_move"]["lid"], old[0])
        lid = self.check(self.ask(OTHER, 5), 200)["lid_move"]["lid"]
        self.assertNotEqual(lid, old[0])    # which one is open: nothing in the subnet knew it
        self.check_there(VGUID, old[0], (3, 1))
        self.check_ways(lid, self.lids[fabric.port_guid(5)])
        self.assertEqual(self.heavy_sweep(), 0)
        for _ in range(2):    # a heavy sweep, and a start, make no line for any of the old ones
            self.assertEqual([self.in_file(vguid) for vguid in dynamic.MANY[:3]], [None, None, None])
            self.assertEqual((self.known(), self.in_file(VGUID), self.in_file(OTHER)), (2, old[0], lid))
            self.sm.kill()
            self.sm.start()
        self.check_there(VGUID, old[0], (3, 1))

    def test_a_former_master_that_comes_back_alone(self):
        """The other one has given a LID to another guest since."""
        former, other = self.pair()
        old = [self.given(vguid, 4)[0] for vguid in dynamic.MANY[:2]]
        self.dies(former, other)
        lid = self.check(self.ask(VGUID, 3), 200)["lid_move"]["lid"]
        self.assertEqual(lid, old[0])
        self.comes(VGUID, lid, (3, 1))
        other.kill()
        self.sm = former.start()

        self.assertEqual((self.known(), self.file(former)), (0, "vhcasm-dynamic-lids 1\nend 0\n"))
        self.assertEqual([self.in_file(vguid) for vguid in (VGUID, *dynamic.MANY[:2])], [lid, None, None])
        self.assertEqual((self.row(lid)["port_guid"], self.who(6, lid)), (VGUID, ["F3-1"]))
        self.assertEqual(self.check(self.ask(VGUID, 3), 200)["lid_move"]["lid"], lid)
        self.check_there(VGUID, lid, (3, 1))
        self.assertEqual(self.heavy_sweep(), 0)

    def test_a_shared_guid2lid(self):
        """What the last heavy sweep of the master has written holds, also for a guest without a port: its own LID comes back with its report."""
        shared = os.path.join(self.net.dir, "shared")
        os.mkdir(shared)
        master, standby = self.pair(HONOUR, shared)
        first, lid = self.given(THIRD, 4)[0], self.given(OTHER, 5)[0]
        self.check(self.sm.api.withdraw(THIRD, self.epoch), 200)
        fattree.heavy_sweep(self.sm)
        self.assertEqual((self.in_file(THIRD), self.in_file(OTHER)), (None, lid))
        self.dies(master, standby)
        self.assertEqual(self.known(), 0)
        self.assertEqual(self.check(self.ask(VGUID, 3), 200)["lid_move"]["lid"], first)    # nobody gets OTHER's meanwhile
        self.assertEqual(self.check(self.ask(OTHER, 5), 200)["lid_move"]["lid"], lid)
        self.check_ways(lid, self.lids[fabric.port_guid(5)])
        self.assertEqual(self.heavy_sweep(), 0)


tap.main(__name__)
