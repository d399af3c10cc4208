#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Moves at the same time: those in disjoint parts of the subnet together, the others one after the other."""

import fabric
import fattree
import tap
import vantage

# ms; of a transaction. A move waits for four and sends again what was lost: time for all that has to happen while it is under way. A sweep waits 5 s.
TIMEOUT, TIMEOUT_WITH_SWEEP = 2000, 1000


class Together(fattree.Case):
    TREE = (6, 3, 4)
    CONSOLE = True

    def begin(self, timeout=TIMEOUT):
        self.sm = self.manager("ftree", f"transaction_timeout {timeout}").start()
        self.lids = fattree.Lids(self.tree, self.sm)
        self.before = self.sm.smps()

    def moves(self):
        return self.sm.api.call("GET", "/v1/fabric")[1]["moves"]

    def pair(self, leaf):
        """Two hosts of leaf 1, 2, ...; not the subnet manager's."""
        return (leaf - 1) * self.tree.per_leaf + 2, (leaf - 1) * self.tree.per_leaf + 3

    def ask(self, a, b, mode="skyline"):
        return fattree.Asked(self.lids, a, b, mode)

    def hold(self, asked_for, *nodes, attribute=fattree.PORT_INFO):
        """Lets moves that need an answer of these begin, and not end."""
        for node in nodes:
            self.tree.lose(node, attribute)
        return asked_for()

    def let_go(self, *nodes, attribute=fattree.PORT_INFO):
        for node in nodes:
            self.tree.lose(node, attribute, 0)

    def under_way(self, n, queued):
        fabric.wait_for(f"{n} moves under way, {queued} in all",
                        lambda: (lambda m: (m["under_way"], m["queued"]) == (n, queued))(self.moves()))

    def all_arrive(self):
        """Through the switches' own tables, from a host at each leaf."""
        hosts = range(1, self.tree.hosts + 1)
        for leaf in range(self.TREE[0]):
            place = vantage.Vantage(self.tree, 1 + leaf * self.tree.per_leaf)
            there = place.ask("who", *(self.lids.of[h] for h in hosts))
            place.close()    # ibsim has room for ten
            self.assertEqual(there, [f"H{h}" for h in hosts], f"from H{place.host}")

    def all_right(self, moved, lost=0):
        """After these moves, which are all there were. lost: LFT SMPs of theirs that had to be sent again."""
        answers = [move.result() for move in moved]
        lft = self.sm.smps()["lft"] - self.before["lft"]
        self.assertEqual(lft, sum(answer["smps"]["lft"] for answer in answers) + lost)
        for move in moved:
            self.lids.exchanged(*move.hosts)
        self.all_arrive()
        self.assertEqual(self.lids.guid2lid(), self.lids.of)
        self.assertEqual(self.heavy_sweep(self.sm), 0)
        self.all_arrive()
        self.assertEqual(self.sm.stop(), 0)
        return lft

    def test_one_in_each_leaf(self):
        self.begin()
        pairs = [self.pair(leaf) for leaf in range(1, self.TREE[0] + 1)]
        late = [f"H{b}" for _, b in pairs]
        moved = self.hold(lambda: [self.ask(*pair) for pair in pairs], *late)
        self.under_way(len(pairs), len(pairs))
        self.let_go(*late)
        for move in moved:
            self.assertEqual(move.result()["switches"], 1)
        seen = self.moves()
        self.assertEqual((seen["most_at_once"], seen["together"], seen["applied"]), (len(pairs), len(pairs) - 1, len(pairs)))
        lft = self.all_right(moved)
        print(f"# {len(pairs)} moves at once: {lft} LFT SMPs", flush=True)

    def test_one_that_hangs_holds_up_its_own_leaf(self):
        self.begin()
        a, b = self.pair(2)
        hanging = self.hold(lambda: self.ask(a, b), "L2", attribute=fattree.LFT)
        self.under_way(1, 1)
        # Their LIDs are in the same block as its own: the one that is missing at L2.
        free = [self.ask(*self.pair(leaf)) for leaf in (3, 4, 5)]
        for move in free:
            move.result()
        self.under_way(1, 1)
        far = self.hold(lambda: self.ask(b + 1, self.tree.hosts, "deterministic"), f"H{b + 1}")   # another port at its leaf
        self.under_way(1, 2)
        behind = self.ask(*self.pair(6))    # it could begin, were it not for the one before, that will need its leaf
        self.under_way(1, 3)
        self.let_go("L2", attribute=fattree.LFT)
        hanging.result()
        self.under_way(1, 2)
        self.let_go(f"H{b + 1}")
        self.all_right([hanging, *free, far, behind], lost=1)

    def test_a_sweep_waits_for_all_of_them(self):
        self.begin(TIMEOUT_WITH_SWEEP)
        pairs = [self.pair(leaf) for leaf in (1, 3, 5)]
        late = [f"H{b}" for _, b in pairs]
        moved = self.hold(lambda: [self.ask(*pair) for pair in pairs], *late)
        self.under_way(3, 3)
        sweeps = self.sm.api.call("GET", "/v1/fabric")[1]["sweeps"]
        self.sm.resweep()
        self.let_go(*late)
        for move in moved:
            move.result()
        fabric.wait_for("the sweep", lambda: self.sm.api.call("GET", "/v1/fabric")[1]["sweeps"] > sweeps, 30)
        self.all_right(moved)


tap.main(__name__)
