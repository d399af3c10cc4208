#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What has moved, as GET /v1/moves tells it, and which leaf each LID is at."""

import threading
import time
import unittest

import fabric
import fattree
import tap
import vswitches
from plugin_case import VGUID1, VGUID2, Case

RECENT = 256    # VHCA_OSM_RECENT_MAX


class Recent(Case):
    def moves(self):
        return self.check(self.sm.api.call("GET", "/v1/moves"), 200)

    def setUp(self):
        self.sm = self.manager(lids=True).start()

    def test_bindings(self):
        self.assertEqual(self.moves(), {"moves": [], "total": 0})
        self.fabric.sa_guid("set", 2, 3, VGUID1)
        before = time.time() * 1000
        for host, epoch in ((2, 1), (2, 2), (3, 3)):
            self.check(self.sm.api.bind(VGUID1, epoch, host, [], gid_index=3), 200)
        self.check(self.sm.api.withdraw(VGUID1, 3), 200)
        self.check(self.sm.api.bind(VGUID1, 4, 4, []), 200)    # was nowhere
        self.check(self.sm.api.bind(VGUID1, 3, 2, []), 409, "superseded")
        row, = self.moves()["moves"]
        self.assertTrue(before - 1 <= row.pop("time_ms") <= time.time() * 1000)
        self.assertEqual(row, {"number": 1, "vguid": VGUID1, "lid": None, "from_port_guid": fabric.port_guid(2), "port_guid": fabric.port_guid(3),
                               "state": "bound", "code": None, "mode": None, "switches": 0,
                               "smps": {"lft": 0, "port_info": 0, "drain": 0, "guid_info": 1}, "missing": 0, "duration_us": 0})

    def test_lids(self):
        lids = fattree.Lids(self.fabric, self.sm)
        answer = self.check(lids.put(2, 3), 200)
        self.check(lids.put(2, 3), 200)    # is so already
        row, = self.moves()["moves"]
        self.assertEqual((row["lid"], row["vguid"], row["from_port_guid"], row["port_guid"]), (lids.of[2], None, fabric.port_guid(2), fabric.port_guid(3)))
        self.assertEqual([row[name] for name in ("state", "mode", "switches", "duration_us")], [answer[name] for name in ("state", "mode", "switches", "duration_us")])
        self.assertEqual(row["smps"], {**answer["smps"], "drain": 0, "guid_info": 0})

    def test_the_last_are_kept(self):
        for n in range(RECENT + 20):
            self.check(self.sm.api.bind(VGUID1 if n % 2 else VGUID2, n + 1, n // 2 % 2 + 2, []), 200)
        done = self.moves()
        self.assertEqual(done["total"], RECENT + 18)
        self.assertEqual([row["number"] for row in done["moves"]], list(range(RECENT + 18, 18, -1)))


class Dynamic(Case):
    @classmethod
    def setUpClass(cls):
        cls.fabric = vswitches.VSwitches()
        cls.addClassCleanup(cls.fabric.close)

    def test_lids(self):
        sm = self.manager(conf="[lids]\ndynamic = 8\n", opensm_conf="routing_engine ftree").start()

        def report(epoch, host):
            body = {"epoch": epoch, "port_guid": fabric.port_guid(host), "gid_index": 0, "pkeys": [], "lid_policy": "dynamic"}
            return self.check(sm.api.call("PUT", f"/v1/bindings/{VGUID1}", body, timeout=70), 200)["lid_move"]
        given, moved = report(1, 1), report(2, 4)
        freed = self.check(sm.api.withdraw(VGUID1, 2), 200)["lid_move"]
        rows = self.check(sm.api.call("GET", "/v1/moves"), 200)["moves"]
        self.assertEqual([(r["vguid"], r["lid"], r["from_port_guid"], r["port_guid"], r["smps"]["lft"]) for r in rows if r["lid"]],
                         [(VGUID1, given["lid"], source, to, move["smps"]["lft"]) for move, source, to in (
                             (freed, fabric.port_guid(4), None), (moved, fabric.port_guid(1), fabric.port_guid(4)), (given, None, fabric.port_guid(1)))])
        self.assertEqual([r["state"] for r in rows], ["applied", "applied", "bound", "applied"])


    def test_who_only_waits_is_no_move(self):
        """Agents ask again every few seconds while moves are paused; each takes the place of the one before."""
        sm = self.manager(conf="[lids]\ndynamic = 8\n", opensm_conf="routing_engine ftree").start()
        body = {"epoch": 1, "port_guid": fabric.port_guid(1), "gid_index": 0, "pkeys": [], "lid_policy": "dynamic"}
        answers = []
        self.check(sm.api.call("POST", "/v1/lids/pause"), 200)
        threads = [threading.Thread(target=lambda: answers.append(sm.api.call("PUT", f"/v1/bindings/{VGUID1}", body, timeout=70)[0])) for _ in range(4)]
        for n, thread in enumerate(threads):
            thread.start()
            fabric.wait_for("the one before is answered", lambda n=n: len(answers) == n and sm.api.call("GET", "/v1/fabric")[1]["moves"]["queued"] == 1)
        self.check(sm.api.call("POST", "/v1/lids/resume"), 200)
        for thread in threads:
            thread.join()
        self.assertEqual(answers, [503, 503, 503, 200])
        self.assertEqual([row["state"] for row in sm.api.call("GET", "/v1/moves")[1]["moves"]], ["applied"])
        self.assertEqual(sm.stop(), 0)


@unittest.skipIf(fabric.missing(), fabric.missing())
class Leaf(unittest.TestCase):
    def leaves(self, net):
        """{node: the node that is its leaf}"""
        tree = fabric.Fabric(net)
        self.addCleanup(tree.close)
        rows = tree.manager().start().api.rows("lids")
        names = {row["node_guid"]: row["node"] for row in rows}
        return {row["node"]: names[row["leaf_guid"]] for row in rows}

    def test_of_hypervisors(self):
        leaves = self.leaves(vswitches.network())
        for n in range(1, vswitches.HYPERVISORS + 1):
            for name in (f"V{n}", f"H{n}", f"F{n}-1"):
                self.assertEqual(leaves[name], f"L{(n - 1) // vswitches.PER_LEAF + 1}")
        self.assertEqual([leaves[name] for name in ("L1", "S1")], ["L1", "S1"])

    def test_of_leaves_with_one_spine(self):
        leaves = self.leaves(fattree.two_levels(3, 1, 2))
        self.assertEqual([leaves[name] for name in ("H1", "H3", "L2", "S1")], ["L1", "L2", "L2", "S1"])

    def test_of_two_switches(self):
        text = fattree.hosts_of(1, 2, 1) + fattree.leaf_switch(1, 1, [(2, "L2", 2)]) + fattree.leaf_switch(2, 1, [(2, "L1", 2)])
        self.assertEqual(self.leaves(text), {"H1": "L1", "H2": "L2", "L1": "L1", "L2": "L2"})


tap.main(__name__)
