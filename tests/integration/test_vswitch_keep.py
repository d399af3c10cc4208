#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""LIDs that OpenSM keeps for GUIDs which do not come back: they are given back, and no other one is. All in a real OpenSM, on ibsim."""

import os
import re
import tempfile
import time
import unittest

import fabric
import fattree
import masters
import tap
import vport_case
import vswitches
from vport_case import VGUID

KEEP = 3    # s
READ = 5     # s; until vhcasm.conf is read again
LATE = 30    # s; of what has to come after that
OTHER = "0x02c9ab0000000022"
GENERATIONS = 3


def lines(sm):
    """{GUID: LID}, as OpenSM's file has it."""
    return {guid: int(lid, 16) for guid, lid in re.findall(r"^(0x\w+) (0x\w+) ", vswitches.guid2lid(sm), re.M)}


class Guests:
    """What a test's agents report, and what their hypervisors program."""

    def begins(self, sm, vguid, epoch, place):
        self.check(sm.api.bind(vguid, epoch, place[0], [], gid_index=0), 200)
        self.net.program(*place, vguid)

    def ends(self, sm, vguid, epoch):
        place = self.net.place(vguid)
        self.check(sm.api.withdraw(vguid, epoch), 200)
        self.net.program(*place, vswitches.own_guid(*place))

    def given_back(self, sm, guid):
        fabric.wait_for("the LID to be free", lambda: guid not in lines(sm), KEEP + LATE, 0.1)

    def counted(self, sm):
        """The first LID that was freed: after the file."""
        fabric.wait_for("it to be counted", lambda: sm.api.metrics()["vhcasm_lids_freed_total"] == 1)

    def only_ports_left(self, sm, what):
        """It is asked for in one answer, since LIDs become free between two."""
        ports = sm.api.call("GET", "/v1/fabric")[1]["ports"]
        fabric.wait_for(what, lambda: sm.api.metrics()["vhcasm_guid2lid_lines"] == ports, KEEP + LATE, 0.2)
        self.assertEqual(self.counts(sm)[0], ports)
        return ports

    def past_the_grace(self, sm):
        """So that whatever was to be given back has been."""
        time.sleep(KEEP + 2)
        fattree.heavy_sweep(sm)
        time.sleep(1)

    def counts(self, sm):
        """What metrics and health both say, of files that nothing changes between the two."""
        metrics = sm.api.metrics()
        health = sm.api.call("GET", "/healthz")[1]
        found = metrics["vhcasm_guid2lid_lines"], metrics["vhcasm_lids_free"]
        self.assertEqual((health["guid2lid_lines"], health["lids_free"]), found)
        return found

    def all_reached(self, sm, host=4):
        """Every GUID has one LID, which leads to where it is."""
        now = vswitches.lids(sm)
        self.assertEqual(len(set(now.values())), len(now))
        names = self.net.watch(host).ask("who", *(now[guid] for guid in self.net.guid.values()))
        self.assertEqual(names, [f"F{n}-{v}" for n, v in self.net.guid])
        return now


class Case(Guests, vport_case.Case):
    def begin(self, keep=KEEP):
        self.manager("minhop", plugin=f"[lids]\nkeep = {keep}\n")
        return self.sm


class GivenBack(Case):
    def test_of_a_guest_that_has_gone(self):
        sm = self.begin()
        lid, (n, free) = self.lids[VGUID], self.counts(sm)
        self.ends(sm, VGUID, 1)
        fattree.heavy_sweep(sm)
        self.assertEqual(lines(sm)[VGUID], lid)    # the grace
        self.assertEqual(self.counts(sm), (n + 1, free - 1))
        self.given_back(sm, VGUID)
        self.counted(sm)
        self.assertEqual(self.counts(sm), (n, free))
        self.assertEqual(self.heavy_sweep(), 0)
        self.begins(sm, OTHER, 1, (5, 2))
        fattree.heavy_sweep(sm)
        self.assertEqual(self.all_reached(sm)[OTHER], lid)
        self.begins(sm, VGUID, 2, (3, 3))    # the first one after all
        fattree.heavy_sweep(sm)
        self.assertNotEqual(self.all_reached(sm)[VGUID], lid)
        self.end()

    def test_of_a_guest_that_was_bound_in_vain(self):
        """It was withdrawn again before a sweep has found its port, which was there before."""
        sm = self.begin()
        self.ends(sm, VGUID, 1)
        fattree.heavy_sweep(sm)
        self.check(sm.api.bind(VGUID, 2, 5, [], gid_index=0), 200)
        self.check(sm.api.withdraw(VGUID, 2), 200)
        self.given_back(sm, VGUID)
        self.end()

    def test_of_a_node_that_does_not_come_back(self):
        """Somebody says so: its PF's goes, too, and those of VFs without guests; others stay."""
        sm, pf = self.begin(), fabric.port_guid(5)
        self.begins(sm, OTHER, 1, (5, 2))
        fattree.heavy_sweep(sm)
        there = self.all_reached(sm)
        self.check(sm.api.call("DELETE", f"/v1/ports/{pf}"), 409, "port_is_there")
        self.net.console('Unlink "V5"')
        fattree.heavy_sweep(sm)
        self.past_the_grace(sm)
        self.assertLessEqual({pf, OTHER}, lines(sm).keys())    # nobody has said anything
        self.assertEqual(self.check(sm.api.call("DELETE", f"/v1/ports/{pf}"), 200), {"port_guid": pf, "withdrawn": 1, "left": 0, "lids": 0})
        fattree.heavy_sweep(sm)
        gone = {pf, OTHER, *(vswitches.own_guid(5, v) for v in range(1, vswitches.VFS + 1) if v != 2)}
        for guid in gone:
            self.given_back(sm, guid)
        self.assertEqual(lines(sm).keys() & there.keys(), there.keys() - gone)
        self.check(sm.api.call("DELETE", f"/v1/ports/{pf}"), 404, "nothing_known")
        self.assertEqual(sm.stop(), 0)

    def test_of_a_node_that_comes_back_all_the_same(self):
        """Then it is as any other that is off."""
        sm, pf = self.begin(), fabric.port_guid(5)
        self.begins(sm, OTHER, 1, (5, 2))
        self.net.console('Unlink "V5"')
        fattree.heavy_sweep(sm)
        self.check(sm.api.call("DELETE", f"/v1/ports/{pf}"), 200)
        fattree.heavy_sweep(sm)
        self.given_back(sm, pf)
        self.net.console('ReLink "V5"')
        fabric.wait_for("it to be back", lambda: fattree.heavy_sweep(sm) or pf in lines(sm), LATE, 1)
        lid = lines(sm)[pf]
        sm.kill()
        sm.start()
        self.net.console('Unlink "V5"')
        fattree.heavy_sweep(sm)
        self.past_the_grace(sm)
        self.assertEqual(lines(sm).get(pf), lid)
        self.assertEqual(sm.stop(), 0)

    def test_the_time_is_read_again(self):
        sm = self.begin(keep=0)
        self.ends(sm, VGUID, 1)
        fattree.heavy_sweep(sm)
        self.past_the_grace(sm)
        self.assertIn(VGUID, lines(sm))
        sm.configure(f"[lids]\nkeep = {KEEP}\n")
        self.given_back(sm, VGUID)
        self.begins(sm, VGUID, 2, (3, 1))
        fattree.heavy_sweep(sm)
        sm.configure("[lids]\nkeep = 0\n")
        time.sleep(READ)
        self.ends(sm, VGUID, 2)
        fattree.heavy_sweep(sm)
        self.past_the_grace(sm)
        self.assertIn(VGUID, lines(sm))
        self.end()

    def test_although_sweeps_have_errors(self):
        """One without errors has missed the port; a port that does not answer from then on is another one's business."""
        sm = self.begin()
        self.ends(sm, VGUID, 1)
        fattree.heavy_sweep(sm)
        self.net.console(f'Error "H5" 100 {fattree.PKEY_TABLE}')
        self.check(sm.api.bind(OTHER, 1, 5, ["0x8001"], gid_index=1), 200)
        sm.resweep()
        fabric.wait_for("a sweep with errors", lambda: "ERRORS DURING" in sm.log(), 60)
        self.given_back(sm, VGUID)
        self.net.console(f'Error "H5" 0 {fattree.PKEY_TABLE}')
        self.assertEqual(sm.stop(), 0)

    def test_generations_of_guests(self):
        """The subnet needs as many LIDs as it has ports, and the VFs' own as long as the grace."""
        sm, tops, epoch = self.begin(), [], 0
        places = [(n, v) for n in range(2, vswitches.HYPERVISORS + 1) for v in range(1, vswitches.VFS + 1)]
        for epoch in range(1, GENERATIONS + 1):
            vguids = [f"0x02c9ab00000{epoch:x}{n:02x}{v:02x}" for n, v in places]
            for vguid, place in zip(vguids, places):
                self.begins(sm, vguid, epoch, place)
            fattree.heavy_sweep(sm)
            tops.append(max(self.all_reached(sm).values()))
            self.only_ports_left(sm, "the VFs' own to be free")
            self.all_reached(sm)
            for vguid in vguids:
                self.ends(sm, vguid, epoch)
            fattree.heavy_sweep(sm)
            ports = self.only_ports_left(sm, "the guests' to be free")
        print(f"# {len(places)} guests a generation, {ports} ports; highest LIDs: {tops}", flush=True)
        self.assertEqual(set(tops), {tops[0]})
        self.end()


class Kept(Case):
    def test_of_a_guest_that_is_back_within_the_grace(self):
        sm = self.begin()
        self.ends(sm, VGUID, 1)
        fattree.heavy_sweep(sm)
        self.begins(sm, VGUID, 2, (6, 1))
        fattree.heavy_sweep(sm)
        self.past_the_grace(sm)
        self.assertEqual(self.all_reached(sm)[VGUID], self.lids[VGUID])
        self.end()

    def test_of_a_guest_that_is_bound(self):
        """Its port comes back with it, from a reset or a hypervisor that was away."""
        sm = self.begin()
        self.net.take(1, 1)
        fattree.heavy_sweep(sm)
        self.past_the_grace(sm)
        self.assertEqual(lines(sm)[VGUID], self.lids[VGUID])
        self.net.give(1, 1, VGUID)
        fattree.heavy_sweep(sm)
        self.assertEqual(self.all_reached(sm), self.lids)
        self.assertEqual(sm.stop(), 0)

    def test_of_a_port_that_is_there(self):
        """Its agent has withdrawn it, and the hardware goes on with it."""
        sm = self.begin()
        self.check(sm.api.withdraw(VGUID, 1), 200)
        fattree.heavy_sweep(sm)
        self.past_the_grace(sm)
        self.assertEqual(self.all_reached(sm), self.lids)
        self.end()

    def test_of_a_guest_that_has_moved(self):
        """The source withdraws, and the vGUID is at another hypervisor with its LID."""
        sm = self.begin()
        self.moved((4, 2))
        self.check(sm.api.withdraw(VGUID, 1), 409, "superseded")
        self.past_the_grace(sm)
        self.assertEqual(self.all_reached(sm), self.lids)
        self.end()

    def test_of_a_host(self):
        sm = self.begin()
        self.net.console('Unlink "H5"')
        fattree.heavy_sweep(sm)
        self.past_the_grace(sm)
        self.assertEqual(lines(sm)[fabric.port_guid(5)], self.lids[fabric.port_guid(5)])
        self.assertEqual(sm.stop(), 0)

    def test_of_a_host_that_an_agent_bound(self):
        """Anybody can bind the GUID of a host that is off and that no agent speaks for, and withdraw it."""
        sm, host = self.begin(), fabric.port_guid(5)
        self.net.console('Unlink "H5"')
        fattree.heavy_sweep(sm)
        self.check(sm.api.bind(host, 1, 2, [], gid_index=0), 200)
        self.check(sm.api.withdraw(host, 1), 200)
        fattree.heavy_sweep(sm)
        self.past_the_grace(sm)
        self.assertEqual(lines(sm)[host], self.lids[host])
        self.assertEqual(sm.stop(), 0)

    def test_through_a_restart(self):
        """It is known who was withdrawn, and the grace begins anew."""
        sm = self.begin(keep=600)
        self.ends(sm, VGUID, 1)
        fattree.heavy_sweep(sm)
        sm.kill()
        sm.start()
        self.assertEqual(lines(sm)[VGUID], self.lids[VGUID])
        sm.kill()
        sm.configure(f"[lids]\nkeep = {KEEP}\n")
        sm.start()
        self.given_back(sm, VGUID)
        self.assertEqual({**self.lids, **self.all_reached(sm)}, {**self.lids, **vswitches.lids(sm)})
        self.assertEqual(sm.stop(), 0)

    def test_while_the_disk_is_full(self):
        """What is not on disk is not done: after a crash the file would keep the LID for two."""
        self.manager("minhop", plugin=f"[lids]\nkeep = {KEEP}\n", cache_dir=tempfile.mkdtemp(dir=self.net.dir), cache_size=1 << 20)
        sm, path = self.sm, self.sm.cache_path("guid2lid")
        self.ends(sm, VGUID, 1)
        fattree.heavy_sweep(sm)
        counts, ballast = self.counts(sm), sm.fill_cache()
        fabric.wait_for("the attempt", lambda: "LIDs of guests that have gone are kept" in sm.log(), KEEP + LATE)
        self.assertEqual(self.counts(sm), counts)
        self.assertIn(VGUID, open(path, encoding="ascii").read())
        os.unlink(ballast)
        fabric.wait_for("the LID to be free", lambda: VGUID not in open(path, encoding="ascii").read(), LATE, 0.1)
        self.counted(sm)
        self.assertEqual(self.counts(sm), (counts[0] - 1, counts[1] + 1))
        self.assertEqual(sm.stop(), 0)

    def test_for_good(self):
        sm = self.begin(keep=0)
        self.ends(sm, VGUID, 1)
        fattree.heavy_sweep(sm)
        self.past_the_grace(sm)
        self.assertEqual(lines(sm)[VGUID], self.lids[VGUID])
        self.end()


@unittest.skipIf(fabric.missing(), fabric.missing())
class TwoMasters(Guests, masters.Masters, unittest.TestCase):
    """A standby that takes over knows nothing of what was reported, and has read the file of LIDs long before."""

    def new_fabric(self):
        self.net = vswitches.VSwitches()
        return self.net

    def check(self, answer, status, code=None):
        self.assertEqual(answer[0], status, answer)
        return answer[1]

    def take_over(self, honour, **args):
        """VGUID's LID is OTHER's before the standby is master."""
        conf = f"routing_engine minhop\n{honour}"
        make = lambda host, timing: self.net.manager(host=host, conf=f"[lids]\nkeep = {KEEP}\n", opensm_conf=conf + timing,
                                                     counter=os.environ["VHCA_SMPCOUNT_LIB"], **args)
        self.net.program(3, 1, VGUID)
        master, standby = make(1, masters.MASTER).start(), make(2, masters.STANDBY)
        lid = vswitches.lids(master)[VGUID]
        self.check(master.api.bind(VGUID, 1, 3, [], gid_index=0), 200)
        self.enter_standby(standby)
        self.ends(master, VGUID, 1)
        fattree.heavy_sweep(master)
        self.given_back(master, VGUID)
        self.begins(master, OTHER, 1, (5, 2))
        fattree.heavy_sweep(master)
        before = self.all_reached(master)
        self.assertEqual(before[OTHER], lid)
        master.kill()
        self.takes_over(standby)
        self.assertEqual(self.all_reached(standby), before)
        return standby, before

    def go_on(self, standby, before):
        """Nobody has reported yet: no LID is given back of a port that is there, nor is one given twice."""
        self.past_the_grace(standby)
        self.assertEqual(self.all_reached(standby), before)
        self.begins(standby, VGUID, 2, (6, 3))
        fattree.heavy_sweep(standby)
        now = self.all_reached(standby)
        self.assertEqual(now[OTHER], before[OTHER])
        self.assertEqual(standby.stop(), 0)

    def test_with_files_of_their_own(self):
        self.go_on(*self.take_over(""))

    def test_with_a_shared_file(self):
        shared = os.path.join(self.net.dir, "shared")
        os.mkdir(shared)
        self.go_on(*self.take_over("honor_guid2lid_file TRUE\n", cache_dir=shared))


tap.main(__name__)
