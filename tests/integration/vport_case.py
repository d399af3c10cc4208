# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tests of virtual ports that go to another hypervisor: the plugin in a real OpenSM, hypervisors that are switches on ibsim."""

import os
import unittest

import fabric
import fattree
import vantage
import vswitches

VGUID = "0x02c9ab0000000011"
SL = slice(104, 108)    # in a path record, as hexadecimal digits
KEYS = ("0x8001", "0x8002", "0x8003", "0x8004", "0x8005")
MANY = [f"0x{0x8010 + n:04x}" for n in range(40)]    # keys, more than a block has


@unittest.skipIf(fabric.missing(), fabric.missing())
class Case(unittest.TestCase):
    def setUp(self):
        self.net = vswitches.VSwitches()
        self.addCleanup(self.net.close)

    def manager(self, engine="ftree", conf="", plugin="", **args):
        """A subnet in which VGUID is at the first VF of hypervisor 1."""
        self.one_sl = engine != "dfsssp"    # else a path has the SL that keeps it free of deadlocks
        self.net.program(1, 1, VGUID)
        self.sm = self.net.manager(opensm_conf=f"routing_engine {engine}\n{conf}", conf=plugin, counter=os.environ["VHCA_SMPCOUNT_LIB"], **args)
        self.sm.start()
        self.lids = vswitches.lids(self.sm)
        self.assertEqual(len(self.lids), vswitches.HYPERVISORS * (1 + vswitches.VFS))
        self.epoch = 1
        self.check(self.sm.api.bind(VGUID, 1, 1, [], gid_index=0), 200)
        self.watches = {}
        for host in (1, 4, 6):    # their own LIDs stay
            self.watches[host] = vantage.Vantage(self.net, host)
            self.addCleanup(self.watches[host].close)
        self.records = self.peers_records()
        for records in self.records.values():
            self.assertNotIn(None, records)

    def small_table(self, n, **args):
        """The first VF of hypervisor n has room for 32 keys, all others for 64."""
        self.manager("minhop", hardware={"VHCA_SMALL_TABLES": hex(int(vswitches.own_guid(n, 1), 0) - 1)}, **args)

    def check(self, answer, status, code=None):
        self.assertEqual(answer[0], status, answer)
        if code:
            self.assertEqual(answer[1]["code"], code, answer)
        return answer[1]

    def peers_records(self):
        """What the SA tells each watch about every vport: by GID and by LID; None in the middle of a sweep."""
        sm_lid = self.lids[fabric.port_guid(1)]
        wanted = [(int(guid, 0), None) for guid in self.net.guid.values()]
        wanted += [(None, self.lids[guid]) for guid in self.net.guid.values()]
        wanted.sort(key=str)
        answers = {}
        for host, watch in self.watches.items():
            found = watch.ask("records", sm_lid, int(fabric.port_guid(host), 0), *wanted)
            answers[host] = found if self.one_sl else [r and r[:SL.start] + r[SL.stop:] for r in found]
        return answers

    def announce(self, to):
        """What comes before the hardware changes: the binding, at the next epoch."""
        self.epoch += 1
        source = self.net.place(VGUID)
        self.check(vswitches.move(self.sm, VGUID, self.epoch, source, to, "host"), 200)
        return source

    def report(self, source, to):
        """The report of a VF that is programmed: (answer, what went over the wire for it)."""
        before = self.sm.smps()
        answer = self.check(vswitches.move(self.sm, VGUID, self.epoch, source, to), 200)
        self.assertEqual(answer["state"], "committed")
        return answer["lid_move"], {kind: n - before[kind] for kind, n in self.sm.smps().items()}

    def moved(self, to):
        source = self.announce(to)
        self.net.exchange(source, to)
        return source, *self.report(source, to)

    def all_right(self):
        """Every LID leads to the place where its GUID is, and nobody has to know that it is another one than before."""
        for watch in self.watches.values():
            names = watch.ask("who", *(self.lids[guid] for guid in self.net.guid.values()))
            self.assertEqual(names, [f"F{n}-{v}" for n, v in self.net.guid])
        self.assertEqual(self.peers_records(), self.records)
        self.assertEqual(vswitches.lids(self.sm), self.lids)

    def records_are_back(self):
        """After what asks for a sweep, as a start of OpenSM does: at the beginning of one it has no LID for its own port, and so no record, but never another one."""
        def back():
            now = self.peers_records()
            for host, records in now.items():
                self.assertEqual([old if new is None else new for old, new in zip(self.records[host], records)], self.records[host])
            return now == self.records
        fabric.wait_for("the records", back, 20, 0.5)

    def heavy_sweep(self):
        """LFT SMPs of one more heavy sweep."""
        before = self.sm.smps()["lft"]
        fattree.heavy_sweep(self.sm)
        return self.sm.smps()["lft"] - before

    def keys(self, guid, *pkeys):
        self.check(self.sm.api.call("PUT", f"/v1/members/{guid}", {"pkeys": list(pkeys)}), 200)
        fabric.wait_for("in effect", lambda: self.sm.api.call("GET", "/readyz")[1]["in_effect"], 20)

    def tables(self, *places):
        """The keys at these places, as the ports themselves have them."""
        return [sorted(key for key in self.net.pkeys(place).values() if key in KEYS) for place in places]

    def end(self):
        self.assertEqual(self.sm.stop(), 0)
        self.assertNotIn(" ERR ", self.sm.log())
