#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""`[lids] drain = yes`: switches drop what is sent to a LID before its ways change."""

import fabric
import fattree
import tap

TIMEOUT = 2000      # ms; of a transaction. A step waits for four: time to see that nobody answers


class Drain(fattree.Case):
    CONSOLE = True

    def begin(self, engine):
        self.sm = self.manager(engine, f"transaction_timeout {TIMEOUT}")
        self.sm.conf = "[lids]\ndrain = yes\n"
        self.sm.start()
        self.lids = fattree.Lids(self.tree, self.sm)

    def moved(self, a, b, mode):
        """Each switch that changes gets its blocks twice, and nothing else is sent but the two LIDs."""
        plan = self.check(self.lids.put(a, b, mode, plan=True), 200)
        answer, wire = self.lids.move(a, b, mode)
        self.assertEqual((answer["state"], answer["missing"]), ("applied", 0))
        self.assertEqual((answer["smps"], answer["drain_smps"]), (plan["smps"], plan["drain_smps"]))
        self.assertEqual(answer["drain_smps"], answer["switches"])      # all LIDs are in one block
        self.assertEqual(wire, {"lft": 2 * answer["switches"], "port_info": 2, "guid_info": 0, "pkey_table": 0, "all": 2 * answer["switches"] + 2})
        self.check_places(self.sm, self.lids, (a, b), (4, self.tree.hosts))
        return answer

    def test_twice_the_lft_smps(self):
        for engine in ("ftree", "minhop"):
            self.begin(engine)
            self.assertEqual(self.moved(2, 3, "auto")["switches"], 1)
            self.assertGreater(self.moved(2, 15, "auto")["switches"], 1)
            seen = self.sm.api.call("GET", "/v1/fabric")[1]["moves"]
            self.assertEqual(seen["drain_smps"], seen["lft_smps"])
            self.assertEqual(self.heavy_sweep(self.sm), 0)
            self.assertEqual(self.sm.stop(), 0)
            self.assertNotIn(" ERR ", self.sm.log())

    def test_it_is_read_again(self):
        self.begin("minhop")
        drained = lambda: self.check(self.lids.put(2, 15, "auto", plan=True), 200)["drain_smps"] > 0
        self.assertTrue(drained())
        self.sm.configure("")
        fabric.wait_for("it is off", lambda: not drained())
        self.sm.configure("[lids]\ndrain = yes\n")
        fabric.wait_for("it is on", drained)
        self.assertEqual(self.sm.stop(), 0)

    def test_dropped_before_the_change(self):
        self.begin("ftree")
        a, b, other = 6, 15, 10
        old = self.lids.of[a], self.lids.of[b]
        self.tree.lose("L2", fattree.LFT)       # a's leaf does not get it: the change has to wait
        asked = fattree.Asked(self.lids, a, b, "deterministic")
        fabric.wait_for("nobody at another leaf reaches them", lambda: not any(self.ask(other, "nobody", self.lids.of[other], *old)), 30)
        self.assertEqual(self.tree.who(self.lids.of[a + 1], other), f"H{a + 1}")    # all others are reached
        self.tree.lose("L2", fattree.LFT, 0)
        answer = asked.result()                 # not drained in time is changed all the same
        self.assertEqual((answer["missing"], answer["drain_smps"]), (0, answer["switches"]))
        self.lids.exchanged(a, b)
        self.check_places(self.sm, self.lids, (a, b), (4, other))
        self.assertEqual(self.heavy_sweep(self.sm), 0)
        self.assertEqual(self.sm.stop(), 0)


tap.main(__name__)
