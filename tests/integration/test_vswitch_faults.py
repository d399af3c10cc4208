#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""LIDs that must not move, and moves that are disturbed: refusals, restarts, kills, lost SMPs."""

import glob
import http.client
import json
import os
import random
import re
import shutil
import tempfile
import threading
import time
import unittest

import fabric
import fattree
import seeds
import tap


class Refusals(fattree.Case):
    def test_what_must_not_move(self):
        sm = self.manager().start()
        lids = fattree.Lids(self.tree, sm)
        fabric_now = sm.api.call("GET", "/v1/fabric")[1]
        switch = next(n for n in range(1, fabric_now["max_lid"] + 1)
                      if sm.api.call("GET", f"/v1/lids/{n}")[1].get("is_switch"))
        before = sm.smps()["lft"]

        def put(lid, body, query=""):
            return sm.api.call("PUT", f"/v1/lids/{lid}{query}", body)
        to = {"port_guid": fabric.port_guid(3)}
        for plan in ("", "?plan=yes"):
            self.check(put(lids.of[1], to, plan), 409, "sm_port")
            self.check(put(lids.of[3], {"port_guid": fabric.port_guid(1)}, plan), 409, "sm_port")
            self.check(put(switch, to, plan), 409, "switch_lid")
            self.check(put(4711, to, plan), 404, "unknown_lid")
            self.check(put(0xffff, to, plan), 404, "unknown_lid")
            self.check(put(lids.of[2], {"port_guid": "0x0002c903deadbeef"}, plan), 409, "unknown_port")
            self.check(put(lids.of[2], {"port_guid": "0x0002c90400000010"}, plan), 409, "switch_lid")
        for lid in ("0", "65536", "0x2", "-1", "one", "2x"):
            self.check(put(lid, to), 400, "bad_request")
        for body in ({}, {"port_guid": 7}, {"port_guid": "x"}, {**to, "mode": "best"}, {**to, "more": 1}, [], None, b"{"):
            self.check(put(lids.of[2], body), 400, "bad_request")
        self.check(put(lids.of[2], to, "?plan=perhaps"), 400, "bad_request")
        self.check(sm.api.call("GET", "/v1/lids/4711"), 404, "unknown_lid")
        # What is so already is a success without any effect.
        answer = self.check(put(lids.of[3], to), 200)
        self.assertEqual((answer["state"], answer["exchanged"], answer["smps"]["lft"]), ("applied", None, 0))
        self.assertEqual(sm.smps()["lft"], before)
        self.assertEqual(sm.api.metrics()['vhcasm_moves_total{outcome="unchanged"}'], 1)
        row = self.check(sm.api.call("GET", f"/v1/lids/{lids.of[2]}"), 200)
        self.assertEqual((row["node"], row["switch_guid"], row["switch_port"]), ("H2", "0x0002c90400000010", 2))
        self.assertEqual(sm.stop(), 0)

    def test_lmc_and_other_engines(self):
        for conf, word in (("lmc 1", "lmc"), ("routing_engine lash", "lash")):
            sm = self.manager("minhop", conf).start()
            lid = sm.api.call("GET", "/v1/fabric")[1]["sm_lid"] + 1
            answer = self.check(sm.api.call("PUT", f"/v1/lids/{lid}", {"port_guid": fabric.port_guid(3)}), 409, "cannot_move")
            self.assertIn(word, answer["detail"])
            self.assertEqual(sm.stop(), 0)

    def test_no_skyline_under_dfsssp(self):
        sm = self.manager("dfsssp").start()
        lids = fattree.Lids(self.tree, sm)
        self.check(lids.put(2, 3, "skyline"), 409, "cannot_move")
        self.assertEqual(lids.move(2, 3, "auto")[0]["mode"], "deterministic")
        self.assertEqual(sm.stop(), 0)


class Follow(fattree.Case):
    """POST /v1/moves of a vGUID whose LID goes with it."""

    VGUID = "0x02c9ab0000000001"

    def post(self, sm, epoch, source, to, lid, phase="commit", policy="follow"):
        def place(host, lid):
            return {"port_guid": fabric.port_guid(host), "gid_index": 0, "lid": lid}
        return sm.api.call("POST", "/v1/moves", {
            "id": "m1", "epoch": epoch, "vguid": self.VGUID, "phase": phase, "from": place(source, lid),
            "to": place(to, 0), "pkeys": [], "lid_policy": policy})

    def test_the_lid_follows(self):
        sm = self.manager().start()
        lids = fattree.Lids(self.tree, sm)
        lid, other = lids.of[2], lids.of[7]
        self.check(self.post(sm, 1, 2, 7, lid), 409, "lid_elsewhere")    # of what the plugin does not know
        self.check(sm.api.bind(self.VGUID, 1, 2, [], gid_index=0, lid=lid), 200)
        for phase in ("prepare", "commit"):    # it was never there
            self.check(self.post(sm, 2, 6, 7, lids.of[6], phase), 409, "lid_elsewhere")
        before = sm.smps()["lft"]
        plan = self.check(self.post(sm, 2, 2, 7, lid, "prepare"), 200)
        self.assertEqual((plan["state"], plan["lid_move"]["state"]), ("prepared", "planned"))
        self.assertEqual(sm.smps()["lft"], before)
        self.assertEqual(plan["lid_move"], self.check(sm.api.call("PUT", f"/v1/lids/{lid}?plan=yes", {"port_guid": fabric.port_guid(7)}), 200))
        done = self.check(self.post(sm, 2, 2, 7, lid), 200)
        self.assertEqual((done["state"], done["lid_move"]["state"]), ("committed", "applied"))
        self.assertEqual(done["lid_move"]["smps"], plan["lid_move"]["smps"])
        self.assertEqual(done["lid_move"]["switches"], len(set(plan["lid_move"]["switch_guids"])))
        self.assertEqual(done["lid_move"]["exchanged"], {"lid": other, "port_guid": fabric.port_guid(2)})
        self.assertEqual(sm.smps()["lft"] - before, done["lid_move"]["smps"]["lft"])
        again = self.check(self.post(sm, 2, 2, 7, lid), 200)    # its answer was lost
        self.assertIsNone(again["lid_move"]["exchanged"])
        self.assertEqual(self.check(sm.api.get(self.VGUID), 200)["lid"], lid)
        self.assertEqual([self.tree.who(lid, 5), self.tree.who(other, 5)], ["H7", "H2"])
        # Somebody who comes late changes neither; what the LID is refused for leaves the binding alone.
        for phase in ("prepare", "commit"):
            self.check(self.post(sm, 3, 7, 1, lid, phase), 409, "sm_port")
            self.check(self.post(sm, 1, 7, 2, lid, phase), 409, "superseded")
        self.check(self.post(sm, 3, 7, 2, 0), 400, "bad_request")
        self.check(self.post(sm, 3, 7, 2, lid, policy="stay"), 400, "bad_request")
        # Not from a port that it is not at, nor under another guest's feet, at either end.
        for phase in ("prepare", "commit"):
            self.check(self.post(sm, 3, 6, 2, lid, phase), 409, "lid_elsewhere")
        for host in (2, 7):
            self.check(sm.api.bind("0x02c9ab0000000002", host, host, [], gid_index=1, lid=0), 200)
            for phase in ("prepare", "commit"):
                self.check(self.post(sm, 3, 7, 2, lid, phase), 409, "lid_shared")
        self.check(self.post(sm, 2, 2, 7, lid), 200)    # there already: nobody's LID changes
        self.assertEqual(sm.api.get(self.VGUID)[1]["epoch"], 2)
        self.assertEqual(self.tree.who(lid, 5), "H7")
        self.assertEqual(sm.stop(), 0)


class Lasting(fattree.Case):
    def random_moves(self, lids, rng, n, stop=lambda: False):
        """Moves until told to stop; the LIDs in flight at that moment are whatever OpenSM made of them."""
        for _ in range(n):
            if stop():
                return
            a, b = rng.sample(range(2, self.tree.hosts + 1), 2)
            answer, _ = lids.move(a, b, rng.choice(("auto", "deterministic", "skyline")))
            self.assertEqual(answer["state"], "applied")

    def all_right(self, sm, lids):
        hosts = range(2, self.tree.hosts + 1)
        self.assertEqual(fattree.Lids(self.tree, sm).of, lids.of)
        self.assertEqual(lids.guid2lid(), lids.of)
        self.assertEqual(lids.wrong(hosts, (3,)), [])
        self.assertEqual(lids.wrong((15,), hosts[::5]), [])

    def test_a_restart_keeps_them(self):
        sm = self.manager().start()
        lids = fattree.Lids(self.tree, sm)
        self.random_moves(lids, random.Random(seeds.FIXED), 10)
        self.assertEqual(sm.stop(), 0)
        sm.start()
        self.all_right(sm, lids)
        self.assertEqual(self.heavy_sweep(sm), 0)
        self.random_moves(lids, random.Random(seeds.tell(seeds.FRESH)), 5)
        self.all_right(sm, lids)
        self.assertEqual(sm.stop(), 0)

    def test_a_kill_in_a_move_leaves_nothing_half(self):
        sm = self.manager("minhop").start()
        lids, failed = fattree.Lids(self.tree, sm), []

        def client():
            try:
                self.random_moves(lids, random.Random(seeds.FRESH), 10000)
            except (OSError, http.client.HTTPException) as e:
                failed.append(e)
        seeds.tell(seeds.FRESH)
        thread = threading.Thread(target=client)
        thread.start()
        applied = lambda: sm.api.call("GET", "/v1/fabric")[1]["moves"]["applied"]
        fabric.wait_for("some moves", lambda: applied() > 20)
        sm.kill()
        thread.join()
        self.assertEqual(len(failed), 1)
        sm.start()
        now = fattree.Lids(self.tree, sm)
        self.assertEqual(sorted(now.of.values()), sorted(lids.of.values()))
        self.assertLessEqual(sum(now.of[h] != lids.of[h] for h in lids.of), 2)    # at most the one without an answer
        self.all_right(sm, now)
        self.assertEqual(self.heavy_sweep(sm), 0)
        self.assertEqual(sm.stop(), 0)


@unittest.skipIf(os.geteuid(), "a mount namespace needs root")
class Disk(fattree.Case):
    """OpenSM renames what it could not write over its file of LIDs."""

    CONSOLE = True

    def test_a_full_disk_where_no_lid_moves(self):
        """[lids] enable = no, as shipped: a port that comes is reason enough for OpenSM to write."""
        sm = self.manager("minhop", cache_dir=tempfile.mkdtemp(dir=self.tree.dir), cache_size=1 << 20, lids=False).start()
        lids = fattree.Lids(self.tree, sm)
        before = dict(lids.of)
        fabric.wait_for("the file", lambda: lids.guid2lid() == before)
        ballast = sm.fill_cache()
        self.addCleanup(self.tree.console, f'Guid "H9" 0x{int(fabric.port_guid(9), 0) - 1:x}')
        self.tree.console('Guid "H9" 0x0002c9030000ff00')
        fattree.heavy_sweep(sm)
        fabric.wait_for("what was written before", lambda: lids.guid2lid() == before)
        os.unlink(ballast)
        fattree.heavy_sweep(sm)
        fabric.wait_for("the new port", lambda: len(lids.guid2lid_lines()) == len(before) + self.tree.switches + 1)
        self.assertEqual(lids.guid2lid(), before)
        self.assertEqual(sm.stop(), 0)

    def test_a_file_that_is_emptied_while_it_is_looked_at(self):
        """What gets the second name is the file that was found whole, not the one that has its name by then."""
        sm = self.manager("minhop", slow=os.environ["VHCA_SLOW_DISK_LIB"], lids=False).start()
        path, before = sm.cache_path("guid2lid"), fattree.Lids(self.tree, sm).of
        second = lambda: open(path + ".vhcasm", encoding="ascii").read()
        fabric.wait_for("the second name", lambda: os.path.exists(path + ".vhcasm"))
        whole = second()
        self.assertEqual(len(re.findall("^0x", whole, re.M)), len(before) + self.tree.switches)
        os.replace(shutil.copy(path, path + ".copy"), path)    # as whole, and another one
        sm.slow_down(2000)
        sm.resweep()
        time.sleep(1)    # it is being synced
        with open(path + ".empty", "w", encoding="ascii"):
            pass
        os.replace(path + ".empty", path)    # as OpenSM does on a full disk
        time.sleep(3)
        self.assertEqual(second(), whole)
        sm.slow_down(0)
        fattree.heavy_sweep(sm)
        fabric.wait_for("the file", lambda: sorted(open(path, encoding="ascii")) == sorted(whole.splitlines(True)))
        self.assertEqual(sm.stop(), 0)

    def test_a_port_that_comes_while_it_is_written_anew(self):
        """What OpenSM knew before that sweep is not written over what it has stored after it."""
        sm = self.manager("minhop", slow=os.environ["VHCA_SLOW_DISK_LIB"], lids=False).start()
        path, lids = sm.cache_path("guid2lid"), fattree.Lids(self.tree, sm)
        fabric.wait_for("the second name", lambda: os.path.exists(path + ".vhcasm"))
        sm.slow_down(3000)
        with open(path + ".empty", "w", encoding="ascii"):
            pass
        os.replace(path + ".empty", path)    # as OpenSM does on a full disk
        sm.resweep()
        fabric.wait_for("the plugin writes it", lambda: any(os.stat(tmp).st_size for tmp in glob.glob(path + ".tmp-*")))
        time.sleep(0.2)    # it is being synced
        sm.slow_down(0)
        self.addCleanup(self.tree.console, f'Guid "H9" 0x{int(fabric.port_guid(9), 0) - 1:x}')
        self.tree.console('Guid "H9" 0x0002c9030000ff00')
        sm.resweep()
        there = lambda: any(guid >> 8 == 0x0002c9030000ff for guid, _ in lids.guid2lid_lines())
        fabric.wait_for("the new port", there)
        sm.slow_down(2000)    # whatever is written next
        end = time.monotonic() + 5
        while time.monotonic() < end:
            self.assertTrue(there())
            time.sleep(0.02)
        self.assertEqual(sm.stop(), 0)

    def test_a_full_disk(self):
        sm = self.manager("minhop", cache_dir=tempfile.mkdtemp(dir=self.tree.dir), cache_size=1 << 20).start()
        lids = fattree.Lids(self.tree, sm)
        self.assertEqual(lids.move(2, 7)[0]["state"], "applied")
        before, sent = dict(lids.of), sm.smps()["lft"]
        ballast = sm.fill_cache()
        for _ in range(3):
            self.check(lids.put(3, 9), 503, "state_not_saved")
            self.assertEqual(lids.guid2lid(), before)
        self.assertEqual((sm.smps()["lft"], fattree.Lids(self.tree, sm).of), (sent, before))
        # OpenSM has a change to store, and empties its file itself; what was written last is back after the sweep.
        self.assertEqual(self.heavy_sweep(sm), 0)
        fabric.wait_for("the file", lambda: lids.guid2lid() == before)
        self.check(lids.put(3, 9), 503, "state_not_saved")
        os.unlink(ballast)
        self.assertEqual(lids.move(3, 9)[0]["state"], "applied")
        self.assertEqual(lids.guid2lid(), lids.of)
        self.assertEqual(sm.stop(), 0)


class Disturbed(fattree.Case):
    """A fabric that is disturbed, and what is true when it is left alone again."""

    CONSOLE = True
    VANTAGE = (1, 6, 9, 15)    # a host at each leaf

    def moves(self, sm):
        return sm.api.call("GET", "/v1/fabric")[1]["moves"]

    def everywhere(self, lids):
        """Hosts whose move concerns all switches."""
        return next((a, b) for a in range(2, 5) for b in range(5, self.tree.hosts + 1)
                    if lids.put(a, b, "deterministic", plan=True)[1]["switches"] == self.tree.switches)

    def repaired(self, sm, lids, n=1):
        """So many moves were answered `repairing`."""
        def all_there():
            self.heavy_sweep(sm)
            now = self.moves(sm)
            return (now["repairing"], now["repaired"]) == (0, n) and fattree.Lids(self.tree, sm).of == lids.of
        fabric.wait_for("the repair", all_there, 60, 0.5)
        self.assertEqual(self.heavy_sweep(sm), 0)
        self.check_everywhere(sm, lids, self.VANTAGE)
        self.assertEqual(sm.stop(), 0)


class Loss(Disturbed):
    def test_a_switch_that_loses_a_block(self):
        sm = self.manager("minhop").start()
        lids = fattree.Lids(self.tree, sm)
        self.tree.lose("S1", fattree.LFT)
        answer, wire = lids.move(*self.everywhere(lids))
        self.assertEqual((answer["state"], answer["missing"]), ("repairing", 1))
        self.assertEqual(wire["lft"], answer["smps"]["lft"] + 1)    # the lost one again
        self.assertEqual(self.moves(sm)["repairing"], 1)
        self.tree.lose("S1", fattree.LFT, 0)
        self.repaired(sm, lids)

    def test_a_switch_that_loses_everything(self):
        """Also what should go through it. The sweeps that are to repair the move find it gone, and the ways go round it; then it is back, with
        tables of before the move."""
        sm = self.manager("minhop").start()
        lids = fattree.Lids(self.tree, sm)
        pair = self.everywhere(lids)
        self.tree.lose("S1", fattree.ALL)
        answer, _ = lids.move(*pair, "deterministic")
        self.assertEqual(answer["state"], "repairing")
        self.assertLess(answer["missing"], answer["smps"]["lft"] + answer["smps"]["port_info"])    # L1's was not lost
        fabric.wait_for("ways round it", lambda: sm.api.call("GET", "/v1/fabric")[1]["switches"] == self.tree.switches - 1, 30)
        fabric.wait_for("the repair", lambda: self.moves(sm)["repaired"] == 1, 30)
        self.assertEqual(lids.wrong(pair, self.VANTAGE), [])
        answer, _ = lids.move(*pair, "skyline")
        self.assertEqual((answer["state"], answer["missing"]), ("applied", 0))
        self.tree.lose("S1", fattree.ALL, 0)
        fabric.wait_for("it is back", lambda: self.heavy_sweep(sm) >= 0 and
                        sm.api.call("GET", "/v1/fabric")[1]["switches"] == self.tree.switches, 30)
        self.repaired(sm, lids)

    def test_a_switch_that_loses_some(self):
        """Which ones is ibsim's to choose: it draws the same numbers in each run, but not for the same SMPs.
        A sweep, which a repair asks for, may so miss ports: they do not move until another one finds them."""
        rng = random.Random(seeds.tell(seeds.FRESH))
        sm = self.manager("minhop").start()
        lids, states, more = fattree.Lids(self.tree, sm), [], 0
        self.tree.lose("S1", fattree.ALL, 30)
        for _ in range(12):
            pair, before = rng.sample(range(2, self.tree.hosts + 1), 2), sm.smps()
            status, answer = lids.put(*pair, rng.choice(("auto", "deterministic", "skyline")))
            if status != 200:
                self.assertIn(answer["code"], ("unknown_lid", "unknown_port"), answer)
                continue
            lids.exchanged(*pair)
            states.append(answer["state"])
            more += sum(sm.smps()[kind] - before[kind] - answer["smps"][kind] for kind in ("lft", "port_info"))
            self.assertEqual(answer["state"], "repairing" if answer["missing"] else "applied")
        self.tree.lose("S1", fattree.ALL, 0)
        lost = states.count("repairing")
        print(f"# {len(states)} moves, {more} SMPs more than planned, {lost} moves repaired", flush=True)
        self.assertGreater(more, 0)
        self.assertEqual(self.moves(sm)["applied"], len(states) - lost)
        self.repaired(sm, lids, lost)

    def test_a_port_that_is_slow_to_take_its_lid(self):
        """The SA names its new LID all the while: peers that ask get an answer, and the right one."""
        sm = self.manager("minhop", "transaction_timeout 10000\n").start()
        lids, answers, guids = fattree.Lids(self.tree, sm), [], [int(fabric.port_guid(host), 0) for host in (6, 11)]
        to = lids.of[6]
        self.tree.lose("H6", fattree.PORT_INFO)
        thread = threading.Thread(target=lambda: answers.append(lids.put(6, 11)))
        thread.start()
        fabric.wait_for("the change", lambda: sm.api.call("GET", f"/v1/lids/{to}")[1].get("node") == "H11", every=0.005)
        lids.exchanged(6, 11)
        wanted = [[guid, lids.of[host]] for guid, host in zip(guids, (6, 11))]
        self.assertEqual(self.ask(1, "paths", lids.of[1], int(fabric.port_guid(1), 0), *((guid, None) for guid in guids)), wanted)
        self.assertEqual(answers, [])
        self.tree.lose("H6", fattree.PORT_INFO, 0)
        thread.join()
        self.assertEqual(self.check(answers[0], 200)["state"], "applied")
        self.check_everywhere(sm, lids, self.VANTAGE)
        self.assertEqual(sm.stop(), 0)

    def test_a_port_that_does_not_take_its_lid(self):
        sm = self.manager("minhop").start()
        lids = fattree.Lids(self.tree, sm)
        self.tree.lose("H6", fattree.PORT_INFO)
        answer, _ = lids.move(6, 11)
        self.assertEqual((answer["state"], answer["missing"]), ("repairing", 1))
        self.tree.lose("H6", fattree.PORT_INFO, 0)
        self.repaired(sm, lids)


class Switches(Disturbed):
    def test_moves_see_the_switches_of_the_last_sweep(self):
        """One goes between two moves, and comes back between others."""
        sm = self.manager("minhop").start()
        lids = fattree.Lids(self.tree, sm)
        self.assertEqual(lids.move(2, 15)[0]["state"], "applied")
        for command, there in (("Unlink", self.tree.switches - 1), ("ReLink", self.tree.switches)):
            self.tree.console(f'{command} "S1"')

            def found():
                self.heavy_sweep(sm)
                return sm.api.call("GET", "/v1/fabric")[1]["switches"] == there
            fabric.wait_for(command, found, 30, 0.5)
            sm.rest()
            for mode in ("skyline", "deterministic"):
                answer, wire = lids.move(2, 15, mode)
                self.assertEqual((answer["state"], answer["smps"]["lft"]), ("applied", wire["lft"]))
            self.check_everywhere(sm, lids, self.VANTAGE)
        self.assertEqual(self.heavy_sweep(sm), 0)
        self.assertEqual(sm.stop(), 0)


class Opened(Disturbed):
    """A switch that does not answer keeps a move open: what happens meanwhile happens in the middle of it."""

    OPEN = "transaction_timeout 400\n"    # for 3.6 s; a sweep that comes meanwhile would not wait for more than 5.5 s

    def begin(self, sm, lids, pair, mode="deterministic"):
        """Starts a move in which S1 loses its block: (thread, the list in which its answer will be)."""
        answers, before = [], sm.smps()["lft"]
        thread = threading.Thread(target=lambda: answers.append(lids.put(*pair, mode)))
        self.tree.lose("S1", fattree.LFT)
        thread.start()
        fabric.wait_for("the SMPs", lambda: sm.smps()["lft"] - before >= self.tree.switches, every=0.005)
        return thread, answers

    def end(self, lids, pair, thread, answers):
        self.assertEqual(answers, [])    # it was the middle of the move
        thread.join()
        self.tree.lose("S1", fattree.LFT, 0)
        answer = self.check(answers[0], 200)
        self.assertEqual((answer["state"], answer["missing"]), ("repairing", 1))
        a, b = pair
        lids.of[a], lids.of[b] = lids.of[b], lids.of[a]

    def unlinked(self, which):
        """A cable goes in the middle, and comes back after the repair; `which` says its end, a node and a port, for a pair of hosts."""
        sm = self.manager("minhop", self.OPEN).start()
        lids = fattree.Lids(self.tree, sm)
        pair = self.everywhere(lids)
        end = which(pair)
        thread, answers = self.begin(sm, lids, pair)
        self.tree.console(f"Unlink {end}")
        self.end(lids, pair, thread, answers)
        alive = [h for h in range(1, self.tree.hosts + 1) if not end.startswith(f'"H{h}"')]
        fabric.wait_for("the repair", lambda: self.moves(sm)["repaired"] == 1, 30)
        self.assertEqual(lids.wrong(alive[1:], [h for h in self.VANTAGE if h in alive]), [])
        self.tree.console(f"ReLink {end}")
        self.repaired(sm, lids)

    def test_a_cable_between_switches_goes(self):
        self.unlinked(lambda pair: f'"S2"[{(pair[0] - 1) // self.tree.per_leaf + 1}]')

    def test_a_cable_of_the_switch_that_is_waited_for_goes(self):
        self.unlinked(lambda pair: f'"S1"[{(pair[1] - 1) // self.tree.per_leaf + 1}]')

    def test_the_cable_of_a_port_that_moves_goes(self):
        self.unlinked(lambda pair: f'"H{pair[1]}"[1]')

    def keep_asking(self, sm, lid, over):
        """Requests that are sent without waiting for answers: the plugin is never without one."""
        conn = sm.api.connection(10)
        conn.connect()
        conn.sock.setblocking(False)
        request = f"GET /v1/lids/{lid} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode() * 50
        while not over.is_set():
            for work in (lambda: conn.sock.send(request), lambda: conn.sock.recv(1 << 20)):
                try:
                    work()
                except OSError:    # as much as there is room for
                    time.sleep(0.0002)
        conn.close()

    def test_a_port_that_moves_goes_and_is_asked_for(self):
        """OpenSM forgets it in the sweep that does not find it any more, and until that gives LIDs nobody may look at what is left of it."""
        sm = self.manager("minhop", self.OPEN).start()
        lids = fattree.Lids(self.tree, sm)
        a, b = 6, 11
        to, found, over = lids.of[a], [], threading.Event()
        self.tree.lose(f"H{b}", fattree.PORT_INFO)
        thread = threading.Thread(target=lambda: found.append(lids.put(a, b, "skyline")))
        thread.start()
        fabric.wait_for("the move", lambda: self.moves(sm)["under_way"] == 1, every=0.005)
        self.tree.console(f'Unlink "H{b}"[1]')
        for host in range(2, b):
            self.check(sm.api.declare(host, [f"0x80{n:02x}" for n in range(1, 40)]), 200)
        asking = [threading.Thread(target=self.keep_asking, args=(sm, to, over)) for _ in range(4)]
        for asker in asking:
            asker.start()
        try:
            thread.join()
            fabric.wait_for("OpenSM forgets it", lambda: sm.alive() and sm.api.call("GET", f"/v1/lids/{to}")[0] == 404, 20)
        finally:
            over.set()
            for asker in asking:
                asker.join()
        self.assertEqual(self.check(found[0], 200)["state"], "repairing")
        self.tree.lose(f"H{b}", fattree.PORT_INFO, 0)
        self.tree.console(f'ReLink "H{b}"[1]')
        lids.exchanged(a, b)
        self.repaired(sm, lids)

    def test_a_client_that_does_not_wait_for_its_answer(self):
        sm = self.manager("minhop", self.OPEN).start()
        lids = fattree.Lids(self.tree, sm)
        pair = self.everywhere(lids)
        a, b = pair
        self.tree.lose("S1", fattree.LFT)
        conn = sm.api.connection(10)
        conn.request("PUT", f"/v1/lids/{lids.of[a]}", json.dumps({"port_guid": fabric.port_guid(b)}))
        before = self.moves(sm)
        fabric.wait_for("the move", lambda: self.moves(sm)["queued"] == 1, every=0.005)
        conn.close()
        fabric.wait_for("its end", lambda: self.moves(sm)["queued"] == 0)
        now = self.moves(sm)
        self.assertEqual((now["repairing"] + now["repaired"] - before["repairing"] - before["repaired"], now["refused"]), (1, before["refused"]))
        self.tree.lose("S1", fattree.LFT, 0)
        fabric.wait_for("the repair", lambda: self.moves(sm)["repaired"] == 1, 30)
        again = self.check(lids.put(a, b), 200)
        self.assertEqual((again["state"], again["exchanged"], again["smps"]["lft"]), ("applied", None, 0))
        lids.of[a], lids.of[b] = lids.of[b], lids.of[a]
        self.repaired(sm, lids)

    def test_a_client_that_dies_in_its_request(self):
        sm = self.manager("minhop", self.OPEN).start()
        lids = fattree.Lids(self.tree, sm)
        before, body = self.moves(sm), json.dumps({"port_guid": fabric.port_guid(7)})
        request = f"PUT /v1/lids/{lids.of[3]} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n{body}"
        for n in (3, request.index("\r\n\r\n"), len(request) - len(body), len(request) - 1):
            conn = sm.api.connection(10)
            conn.connect()
            conn.sock.sendall(request[:n].encode())
            conn.close()
        self.assertEqual(self.moves(sm), before)
        self.assertEqual(fattree.Lids(self.tree, sm).of, lids.of)
        self.assertEqual(lids.move(3, 7)[0]["state"], "applied")
        self.repaired(sm, lids, 0)


tap.main(__name__)
