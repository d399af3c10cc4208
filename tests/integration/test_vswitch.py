#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""LIDs that move: the plugin in a real OpenSM on ibsim's fat-trees; SMPs counted on the wire, ways followed through the switches."""

import itertools
import random

import fabric
import fattree
import tap


class Paper(fattree.Case):
    """Table I of "Towards the InfiniBand SR-IOV vSwitch Architecture": LFT SMPs of a first sweep, of the best move, of the worst."""

    FIRST = BEST = WORST = LIDS = 0

    def pair(self, lids, cost, mode, hosts):
        """A pair of hosts whose move would cost so much."""
        for a, b in hosts:
            if lids.put(a, b, mode, plan=True)[1]["smps"]["lft"] == cost:
                return a, b
        self.fail(f"no pair for {cost} SMPs")

    def one_move(self, sm, lids, pair, mode, cost):
        plan = self.check(lids.put(*pair, mode, plan=True), 200)
        before = sm.api.counted()
        answer, wire = lids.move(*pair, mode)
        self.assertEqual(len(set(plan["switch_guids"])), answer["switches"])
        self.assertEqual((answer["state"], answer["missing"]), ("applied", 0))
        self.assertEqual(answer["smps"], {"lft": cost, "port_info": 2})
        self.assertEqual(wire, {"lft": cost, "port_info": 2, "guid_info": 0, "pkey_table": 0, "all": cost + 2})
        self.assertEqual({**{kind: n - before[kind] for kind, n in sm.api.counted().items()}, "all": wire["all"]}, wire)
        print(f"# H{pair[0]} <-> H{pair[1]} {answer['mode']}: {cost} LFT SMPs, {answer['duration_us']} us", flush=True)
        self.check_places(sm, lids, pair, (3, self.tree.hosts))
        return answer

    def test_table(self):
        sm = self.manager().start()
        self.assertEqual(sm.smps()["lft"], self.FIRST)
        seen = self.check(sm.api.call("GET", "/v1/fabric"), 200)
        self.assertEqual((seen["switches"], seen["switches"] + self.tree.hosts), (self.tree.switches, self.LIDS))
        self.assertEqual((seen["max_lid"], seen["routing_engine"]), (self.LIDS, "ftree"))
        lids = fattree.Lids(self.tree, sm)
        self.assertEqual(len(lids.of), self.tree.hosts)
        near = itertools.combinations(range(2, self.tree.per_leaf + 1), 2)
        far = ((a, b) for a in range(2, 10) for b in range(self.tree.hosts, self.tree.hosts - 60, -1))
        best = self.pair(lids, self.BEST, "skyline", near)
        before = sm.api.call("GET", "/v1/fabric")[1]["sweeps"]
        leaf = self.check(sm.api.call("GET", f"/v1/lids/{lids.of[best[0]]}"), 200)["switch_guid"]
        self.assertEqual(lids.put(*best, plan=True)[1]["switch_guids"], [leaf])
        self.assertEqual(self.one_move(sm, lids, best, "auto", self.BEST)["switches"], 1)
        worst = self.pair(lids, self.WORST, "deterministic", far)
        self.assertEqual(self.one_move(sm, lids, worst, "auto", self.WORST)["switches"], self.tree.switches)
        self.assertEqual(sm.api.call("GET", "/v1/fabric")[1]["sweeps"], before)    # OpenSM has computed nothing
        self.assertEqual(self.heavy_sweep(sm), 0)
        self.check_places(sm, lids, (*best, *worst), (2,))
        self.assertEqual(sm.stop(), 0)


class Paper324(Paper):
    TREE = (18, 18, 18)
    LIDS, FIRST, BEST, WORST = 360, 216, 1, 72


class Paper648(Paper):
    TREE = (36, 18, 18)
    LIDS, FIRST, BEST, WORST = 702, 594, 1, 108


del Paper    # its two sizes run


class Engines(fattree.EachEngineRandom, fattree.Case):
    MOVES = 8

    def run_random(self, engine, seed):
        rng = random.Random(f"{seed} {engine}")
        sm = self.manager(engine).start()
        self.assertEqual(sm.api.call("GET", "/v1/fabric")[1]["routing_engine"], engine)
        lids = fattree.Lids(self.tree, sm)
        hosts = range(2, self.tree.hosts + 1)
        for i in range(self.MOVES):
            a, b = rng.sample(hosts, 2)
            answer, wire = lids.move(a, b, rng.choice(fattree.MODES[engine]))
            self.assertEqual(answer["state"], "applied")
            self.assertEqual((answer["smps"]["lft"], 2), (wire["lft"], wire["port_info"]))
            if i % 4 == 3:
                self.check_places(sm, lids, (a, b), (rng.choice(hosts),))
                self.assertEqual(self.heavy_sweep(sm), 0)
        self.assertEqual(lids.wrong(hosts, (5,)), [])
        self.assertEqual(lids.wrong((9,), hosts[::5]), [])
        self.assertEqual(sm.stop(), 0)
        self.assertNotIn(" ERR ", sm.log())


tap.main(__name__)
