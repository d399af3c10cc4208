#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""LIDs that keep the ways that moves have left, and when that ends: rerouted, another cable between switches, an engine that has SLs."""

import os

import fabric
import fattree
import tap
import vport_case


def kept(sm):
    return sm.api.call("GET", "/v1/fabric")[1]["kept_lids"]


class Tree(fattree.Case):
    CONSOLE = True

    def moved(self, engine, conf=""):
        """Two LIDs that have exchanged leaves, by a skyline plan."""
        sm = self.manager(engine, conf).start()
        lids = fattree.Lids(self.tree, sm)
        self.assertEqual(kept(sm), 0)
        self.assertEqual(lids.move(2, 15, "skyline")[0]["mode"], "skyline")
        self.assertEqual((kept(sm), self.heavy_sweep(sm), kept(sm)), (2, 0, 2))
        self.assertEqual(sm.api.metrics()["vhcasm_lids_kept"], 2)
        return sm, lids

    def end(self, sm, lids, why):
        """The engine's ways, which it makes again. OpenSM's log is whole when it has ended."""
        sm.rest()
        self.check_everywhere(sm, lids, (1, 6, 11, 16))
        self.assertEqual((self.heavy_sweep(sm), kept(sm)), (0, 0))
        self.assertEqual(sm.stop(), 0)
        self.assertIn(f"LIDs get the routing engine's ways: {why}", sm.log())

    def rebalance(self, engine):
        sm, lids = self.moved(engine)
        sweeps = lambda: sm.api.call("GET", "/v1/fabric")[1]["sweeps"]
        before = sweeps()
        self.assertEqual(self.check(sm.api.call("POST", "/v1/lids/rebalance"), 200), {"state": "asked", "kept_lids": 2})
        fabric.wait_for("rebalanced", lambda: kept(sm) == 0, 20)
        self.assertEqual(sweeps(), before)
        self.end(sm, lids, "OpenSM was asked to reroute")

    def test_rebalance_updn(self):
        self.rebalance("updn")

    def test_rebalance_ftree(self):
        self.rebalance("ftree")

    def test_rebalance_in_a_sweep(self):
        """The sweep forgets that a reroute was asked for, and does it itself."""
        sm, lids = self.moved("ftree")
        for _ in range(5):
            sm.resweep()
            self.check(sm.api.call("POST", "/v1/lids/rebalance"), 200)
        fabric.wait_for("rebalanced", lambda: kept(sm) == 0, 20)
        self.end(sm, lids, "OpenSM was asked to reroute")

    def test_rebalance_where_each_sweep_is_heavy(self):
        """No reroute ever comes, and OpenSM does not sweep for ever in waiting for one."""
        sm, lids = self.moved("updn", "force_heavy_sweep TRUE\n")
        self.check(sm.api.call("POST", "/v1/lids/rebalance"), 200)
        fabric.wait_for("rebalanced", lambda: kept(sm) == 0, 20)
        self.end(sm, lids, "OpenSM was asked to reroute")

    def test_a_cable_that_comes_back(self):
        """One that goes ends nothing: what they have arrives."""
        sm, lids = self.moved("ftree")
        self.tree.console('Unlink "S3"[4]')
        fattree.heavy_sweep(sm)
        self.assertGreater(kept(sm), 0)
        self.check_everywhere(sm, lids, (1, 6, 11, 16))
        self.tree.console('ReLink "S3"[4]')
        fabric.wait_for("the engine's ways", lambda: kept(sm) == 0, 20)
        self.end(sm, lids, "there is another cable between switches")

    def test_an_engine_that_has_sls(self):
        """updn finds no root any more, and dfsssp takes its place."""
        roots = os.path.join(self.tree.dir, "roots")
        with open(roots, "w", encoding="ascii") as f:
            f.write(f"0x{0x0002c90500000000 + 16:x}\n")
        sm, lids = self.moved("updn,dfsssp", f"root_guid_file {roots}\n")
        self.tree.console('Unlink "S1"')
        self.addCleanup(self.tree.console, 'ReLink "S1"')
        engine = lambda: sm.api.call("GET", "/v1/fabric")[1]["routing_engine"]
        self.assertEqual(engine(), "updn")
        fattree.heavy_sweep(sm)
        fabric.wait_for("dfsssp", lambda: engine() == "dfsssp", 20)
        self.assertEqual(kept(sm), 0)
        self.end(sm, lids, "this one has SLs for them")

    def test_where_no_lid_moves(self):
        sm = self.manager("ftree", lids=False).start()
        self.check(sm.api.call("POST", "/v1/lids/rebalance"), 409, "cannot_move")
        self.assertEqual(sm.stop(), 0)


class Hypervisors(vport_case.Case):
    def test_a_hypervisor_that_comes_back(self):
        """Nothing else goes by its cable: all that was kept stays so."""
        self.manager("ftree")
        self.moved((4, 1))
        self.assertEqual(kept(self.sm), 2)
        for command in ("Unlink", "ReLink"):
            self.net.console(f'{command} "V6"[1]')
            fattree.heavy_sweep(self.sm)
            self.sm.rest()
            self.assertEqual(kept(self.sm), 2)
        self.assertEqual(self.sm.stop(), 0)


tap.main(__name__)
