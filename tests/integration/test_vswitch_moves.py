#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Random moves while OpenSM sweeps without a pause, under four routing engines: after each of them everything is in its place.

Up to four are asked for at a time. VHCA_SEED begins the random numbers (seeds.py), VHCA_MOVES is the number of moves under each engine.
"""

import os
import random
import time

import fabric
import fattree
import seeds
import tap
import vantage

MOVES = int(os.environ.get("VHCA_MOVES", "520"))
FRESH_MOVES = MOVES // 4    # under the one engine of the fresh seed


class Moves(fattree.EachEngineRandom, fattree.Case):
    def look_around(self):
        """From a host at each leaf; the first is the subnet manager's."""
        self.seen_from = [vantage.Vantage(self.tree, 1 + leaf * self.tree.per_leaf) for leaf in range(self.TREE[0])]
        for place in self.seen_from:
            self.addCleanup(place.close)

    def paths(self, lids, hosts):
        """What the SA says about them, by GID and by LID. In the middle of a sweep OpenSM does not know LIDs for a moment: then it says nothing, but never something else."""
        wanted = [(int(fabric.port_guid(h), 0), None) for h in hosts] + [(None, lids.of[h]) for h in hosts]
        ask = lambda: self.seen_from[0].ask("paths", lids.of[1], int(fabric.port_guid(1), 0), *wanted)
        end = time.monotonic() + 20
        answer = ask()
        while None in answer and time.monotonic() < end:
            self.waited += 1
            again = ask()
            answer = [old or new for old, new in zip(answer, again)]
        return answer

    def check_all(self, lids, when):
        hosts = sorted(lids.of.keys() - {1})    # OpenSM has no LID for its own port at the beginning of a sweep
        for place in self.seen_from:
            self.assertEqual(place.ask("who", *(lids.of[h] for h in hosts)), [f"H{h}" for h in hosts], f"from H{place.host}, {when}")
        self.assertEqual(self.paths(lids, hosts), [[int(fabric.port_guid(h), 0), lids.of[h]] for h in hosts] * 2, when)
        self.assertEqual(lids.guid2lid(), lids.of, when)

    def pairs(self, rng):
        """One to four pairs that share no host; half of the time each at a leaf of its own."""
        n = rng.choice((1, 2, 4))
        if rng.random() < 0.5:
            return [rng.sample(self.leaf(leaf), 2) for leaf in rng.sample(range(self.TREE[0]), n)]
        hosts = rng.sample(range(2, self.tree.hosts + 1), 2 * n)
        return list(zip(hosts[::2], hosts[1::2]))

    def leaf(self, n):
        """Its hosts, without the subnet manager's."""
        return range(max(2, n * self.tree.per_leaf + 1), (n + 1) * self.tree.per_leaf + 1)

    def run_random(self, engine, seed):
        rng, wanted = random.Random(f"{seed} {engine}"), MOVES if seed == seeds.FIXED else FRESH_MOVES
        sm = self.manager(engine, "max_wire_smps 64").start(timeout=120)
        lids = fattree.Lids(self.tree, sm)
        sweeps = lambda: sm.api.call("GET", "/v1/fabric")[1]["sweeps"]
        self.look_around()
        self.waited, before, start = 0, sweeps(), time.monotonic()
        moves = 0
        with fattree.Sweeps(sm):
            while moves < wanted:
                asked = [fattree.Asked(lids, *pair, rng.choice(fattree.MODES[engine])) for pair in self.pairs(rng)]
                when = f"seed {seed}, after move {moves}: {[move.hosts for move in asked]}"
                for move in asked:
                    move.result()
                    lids.exchanged(*move.hosts)
                self.check_all(lids, when)
                moves += len(asked)
        swept = sweeps() - before
        seen = sm.api.call("GET", "/v1/fabric")[1]["moves"]
        print(f"# {engine}: seed {seed}, {moves} moves ({seen['together']} begun while another was under way) and {swept} sweeps "
              f"in {time.monotonic() - start:.1f} s, {self.waited} times no answer of the SA", flush=True)
        self.assertEqual(seen["applied"], moves)
        self.assertGreater(swept, wanted // 20)
        self.assertEqual(self.heavy_sweep(sm), 0)
        self.check_all(lids, "in the end")
        self.assertEqual(sm.stop(), 0)
        self.assertNotIn(" ERR ", sm.log())


tap.main(__name__)
