#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""LIDs that have moved, or are moving, when the master dies: the standby has to make the best of what it finds. Its SMPs are counted."""

import http.client
import os
import random
import shutil
import threading
import time

import fabric
import fattree
import masters
import seeds
import tap

VGUID = "0x02c9ab0000000001"
HONOUR = "honor_guid2lid_file TRUE\n"
AWAY = "another OpenSM was master since this one was"


class Case(masters.Masters, fattree.Case):
    CONSOLE = True
    VANTAGE = (2, 7, 16)    # the standby, and hosts at two other leaves

    def new_fabric(self):
        self.tree = fattree.FatTree(*self.TREE, console=True)
        self.hosts = range(3, self.tree.hosts + 1)    # 1 and 2 manage the subnet
        return self.tree

    def pair(self, engine, conf="", **args):
        master = self.manager(engine, masters.MASTER + conf, host=1, **args).start()
        return master, self.manager(engine, masters.STANDBY + conf, host=2, **args)

    def stand_by(self, master, standby):
        """Lets it enter, and the master end the sweep that this costs."""
        before = master.api.call("GET", "/v1/fabric")[1]["sweeps"]
        self.enter_standby(standby)
        fabric.wait_for("the sweep", lambda: master.api.call("GET", "/v1/fabric")[1]["sweeps"] > before, 30)

    def shared(self):
        """A directory of both, for OpenSM's files."""
        path = os.path.join(self.tree.dir, "shared")
        os.mkdir(path)
        return path

    def random_moves(self, lids, seed, n=10):
        rng = random.Random(f"{seeds.FIXED} {seed}")
        for i in range(n):
            a, b = rng.sample(self.hosts, 2)
            self.assertEqual(lids.move(a, b, ("skyline", "deterministic")[i % 2])[0]["state"], "applied")

    def all_right(self, sm, of):
        lids = fattree.Lids(self.tree, sm)
        self.assertEqual(lids.of, of)
        self.check_everywhere(sm, lids, self.VANTAGE)
        return lids

    def go_on(self, sm, of):
        """The new master knows where all LIDs are, changes nothing any more, and moves them."""
        lids = self.all_right(sm, of)
        self.assertEqual(self.heavy_sweep(sm), 0)
        self.random_moves(lids, seeds.tell(seeds.FRESH), 4)
        self.assertEqual(self.heavy_sweep(sm), 0)
        return self.all_right(sm, lids.of)


class AfterMoves(Case):
    def test_minhop(self):
        self.die("minhop")

    def test_ftree(self):
        self.die("ftree")

    def die(self, engine):
        """A file of LIDs at the standby that is older than the moves undoes none."""
        master, standby = self.pair(engine)
        lids = fattree.Lids(self.tree, master)
        shutil.copy(os.path.join(master.cache_dir, "guid2lid"), standby.cache_dir)
        self.random_moves(lids, engine)
        self.stand_by(master, standby)
        master.kill()
        self.takes_over(standby)
        print(f"# {engine}: the standby sent {standby.smps()['lft']} LFT SMPs", flush=True)
        self.assertEqual(standby.smps()["lft"], self.tree.switches)    # all blocks, as in any first sweep
        self.go_on(standby, lids.of)
        self.assertEqual(standby.stop(), 0)

    def test_a_shared_file_is_right_for_whoever_comes_back(self):
        master, standby = self.pair("minhop", HONOUR, cache_dir=self.shared())
        lids = fattree.Lids(self.tree, master)
        self.random_moves(lids, "shared")
        self.stand_by(master, standby)
        master.kill()
        self.takes_over(standby)
        now = self.go_on(standby, lids.of)
        standby.kill()
        master.start()    # alone, as it was
        self.go_on(master, now.of)
        self.assertEqual(master.stop(), 0)


class ComesBackAlone(Case):
    """A former master that finds no other one, with the file of LIDs that it had."""

    def test_minhop(self):
        self.was_away("minhop")

    def test_ftree(self):
        self.was_away("ftree")

    def was_away(self, engine):
        """The other one has moved LIDs since, and they stay where it put them."""
        former, other = self.pair(engine)
        lids = fattree.Lids(self.tree, former)
        self.random_moves(lids, "former")
        old = lids.of.copy()
        self.stand_by(former, other)
        former.kill()
        self.takes_over(other)
        lids.sm = other
        for a, b in ((3, 9), (4, 5), (7, 16), (9, 12)):
            self.assertEqual(lids.move(a, b, "deterministic")[0]["state"], "applied")
        other.kill()
        lids.sm = former
        self.assertEqual(lids.guid2lid(), old)    # a file that is older than what the ports show

        former.start()
        now = self.go_on(former, lids.of)
        self.assertEqual(former.log().count(AWAY), 1)
        former.kill()
        former.start()    # it was the last master now
        self.assertEqual(former.log().count(AWAY), 1)
        self.go_on(former, now.of)
        self.assertEqual(former.stop(), 0)

    def test_where_no_lid_moves(self):
        """[lids] enable = no, as shipped: OpenSM goes by its file, and a host that is off keeps its LID. Keys that ports have stay all the same."""
        former, other = self.pair("minhop", lids=False)
        former.conf = other.conf = "inherit = 600"
        former.configure()
        self.check(former.api.bind(VGUID, 1, 3, ["0x8001"]), 200)
        fabric.wait_for("the key", lambda: self.tree.has(3, "0x8001"))
        self.tree.console('Unlink "H16"[1]')
        fattree.heavy_sweep(former)
        lids = fattree.Lids(self.tree, former)
        off = lambda: int(fabric.port_guid(16), 0) in dict(lids.guid2lid_lines())
        fabric.wait_for("its line", off)
        self.stand_by(former, other)
        former.kill()
        self.takes_over(other)
        self.check(other.api.bind(VGUID, 2, 4, ["0x8002"]), 200)
        fabric.wait_for("the other key", lambda: self.tree.has(4, "0x8002"))
        other.kill()
        former.start()
        fattree.heavy_sweep(former)
        self.assertTrue(off())
        self.assertTrue(former.api.call("GET", "/healthz")[1]["rebuilding"])
        self.assertTrue(self.tree.has(4, "0x8002"))
        self.assertEqual(former.stop(), 0)

    def test_the_last_master_goes_by_its_file(self):
        """Also when its own port has lost its LID meanwhile: that is in the file."""
        sm = self.manager("minhop", host=1).start()
        lids = fattree.Lids(self.tree, sm)
        self.random_moves(lids, "last")
        for own_port in ([], [("H1", 0x10000)]):    # 0 on the wire; ibsim takes no 0
            sm.kill()
            for node, lid in own_port + [("H5", 40), ("H6", 41)]:
                self.tree.console(f'Baselid "{node}"[1] {lid}')
            sm.start()
            self.all_right(sm, lids.of)
        self.assertEqual(sm.log().count(AWAY), 0)
        self.go_on(sm, lids.of)
        self.assertEqual(sm.stop(), 0)


class HandOver(Case):
    """Both live: the master gives way to one that starts with a higher priority, and with a file of LIDs that is older than the moves."""

    def test_minhop(self):
        self.give_way("minhop")

    def test_ftree(self):
        self.give_way("ftree")

    def ask_until_refused(self, lids, pair):
        self.refusal = (200, None)
        while self.refusal[0] == 200:
            begin = time.monotonic()
            self.refusal = lids.put(*pair)
            self.waited = time.monotonic() - begin

    def give_way(self, engine):
        first = self.manager(engine, masters.MASTER, host=1).start()
        second = self.manager(engine, masters.HIGHER, host=2)
        lids = fattree.Lids(self.tree, first)
        shutil.copy(os.path.join(first.cache_dir, "guid2lid"), second.cache_dir)
        self.random_moves(lids, engine)
        asked = threading.Thread(target=self.ask_until_refused, args=(lids, (3, 4)))
        asked.start()
        second.start()
        self.wait_standby(first)
        asked.join()
        self.check(self.refusal, 421, "not_master")    # also who waits for the sweep in which it gives way, which has no end
        self.assertLess(self.waited, 20)
        lids.exchanged(3, 4)
        print(f"# {engine}: the new master sent {second.smps()['lft']} LFT SMPs", flush=True)
        now = self.go_on(second, lids.of)
        self.assertEqual(second.stop(), 0)
        self.takes_over(first)    # with what it knew when it gave way
        self.go_on(first, now.of)
        self.assertEqual(first.stop(), 0)


class InAMove(Case):
    """A switch that does not answer keeps the move open until its master is dead."""

    OPEN = "transaction_timeout 1000\n"    # for 9 s

    def killed(self, sm, lids, pair):
        before, failed = sm.smps()["lft"], []

        def client():
            try:
                lids.put(*pair, "deterministic")
            except (OSError, http.client.HTTPException) as e:
                failed.append(e)
        thread = threading.Thread(target=client)
        self.tree.lose("S1", fattree.LFT)
        thread.start()
        fabric.wait_for("the SMPs", lambda: sm.smps()["lft"] - before >= self.tree.switches, every=0.005)
        sm.kill()
        thread.join()
        self.assertEqual(len(failed), 1)    # no answer
        self.tree.lose("S1", fattree.LFT, 0)

    def everywhere(self, lids):
        """Hosts whose move concerns all switches."""
        return next((a, b) for a in range(3, 5) for b in range(5, self.tree.hosts + 1)
                    if lids.put(a, b, "deterministic", plan=True)[1]["switches"] == self.tree.switches)

    def after(self, of, a, b):
        return {**of, a: of[b], b: of[a]}

    def test_ports_that_have_their_lids_keep_them(self):
        master, standby = self.pair("minhop", self.OPEN)
        lids = fattree.Lids(self.tree, master)
        pair = self.everywhere(lids)
        self.stand_by(master, standby)
        self.killed(master, lids, pair)
        self.takes_over(standby)
        now = self.all_right(standby, self.after(lids.of, *pair))
        lids.sm = standby
        again = self.check(lids.put(*pair), 200)    # there was no answer
        self.assertEqual((again["state"], again["exchanged"], again["smps"]["lft"]), ("applied", None, 0))
        self.go_on(standby, now.of)
        self.assertEqual(standby.stop(), 0)

    def test_a_shared_file_ends_what_was_begun(self):
        self.one_took_its_lid(True)

    def test_without_a_shared_file_each_port_has_one_lid(self):
        self.one_took_its_lid(False)

    def one_took_its_lid(self, share):
        """Then two ports have the same LID, and none has the other."""
        master, standby = self.pair("minhop", self.OPEN + (HONOUR if share else ""), cache_dir=self.shared() if share else None)
        lids = fattree.Lids(self.tree, master)
        pair = self.everywhere(lids)
        self.stand_by(master, standby)
        self.tree.lose(f"H{pair[0]}", fattree.PORT_INFO)
        self.killed(master, lids, pair)
        self.tree.lose(f"H{pair[0]}", fattree.PORT_INFO, 0)
        self.takes_over(standby)
        now = fattree.Lids(self.tree, standby)
        if share:
            self.assertEqual(now.of, self.after(lids.of, *pair))
        self.assertEqual(sorted(now.of.values()), sorted(lids.of.values()))
        self.all_right(standby, now.of)
        lids.sm = standby
        self.assertEqual(self.check(lids.put(*pair), 200)["state"], "applied")    # asked again: there was no answer
        self.go_on(standby, self.after(lids.of, *pair))
        self.assertEqual(standby.stop(), 0)


tap.main(__name__)
