#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Virtual ports that go to another hypervisor with GUID, GID and LID.
SMPs are counted on the wire, ways followed through the switches, path records compared byte by byte."""

import http.client
import os
import random
import threading
import time

import fabric
import fattree
import seeds
import tap
import vswitches
from vport_case import KEYS, VGUID, Case

ALIAS = "0x02c9ab00000000aa"
INSIDE_A_LEAF = 5    # SMPs: the leaf, two hypervisors, two ports
LOST = "Send completed with error"    # in OpenSM's log
ROUNDS = int(os.environ.get("VHCA_ROUNDS", "30"))


class Aliases(Case):
    """The vGUID comes from where there is room for 8 GUIDs to where there is room for more, and takes OpenSM's table of them along."""

    def uses_its_room(self):
        """OpenSM's SA writes an alias where the port says that there is room, and the plugin looks for it there."""
        place = "F{}-{}".format(*self.net.place(VGUID))
        status = self.net.sa_request("set", place, 20, ALIAS)
        self.sm.alive()
        self.assertEqual(status, "0x0000")
        self.check(self.sm.api.bind(ALIAS, 1, 1, []), 200)
        view = self.check(self.sm.api.get(ALIAS), 200)
        self.assertIn(f"GUID {ALIAS} is held by port {VGUID} at index 20.", view["findings"])
        self.assertEqual(self.sm.stop(), 0)

    def test_moved_by_a_report(self):
        self.small_table(1)
        self.moved((2, 3))
        self.uses_its_room()

    def test_moved_by_a_sweep(self):
        self.small_table(1)
        self.net.exchange(self.announce((2, 3)), (2, 3))
        fattree.heavy_sweep(self.sm)
        self.uses_its_room()


class Moves(Case):
    def test_inside_a_leaf(self):
        self.manager()
        kept, sweeps = vswitches.guid2lid(self.sm), self.sm.api.call("GET", "/v1/fabric")[1]["sweeps"]
        source = self.announce((2, 3))
        other = self.net.guid[2, 3]
        self.net.exchange(source, (2, 3))
        plan = self.check(vswitches.move(self.sm, VGUID, self.epoch, source, (2, 3), phase="prepare"), 200)["lid_move"]
        self.assertEqual(plan["state"], "planned")
        answer, wire = self.report(source, (2, 3))
        self.assertEqual((answer["state"], answer["lid"], answer["port_guid"]), ("applied", self.lids[VGUID], VGUID))
        self.assertEqual(answer["exchanged"], {"lid": self.lids[other], "port_guid": other})
        self.assertEqual((answer["mode"], answer["smps"], answer["switches"]), ("skyline", plan["smps"], len(set(plan["switch_guids"]))))
        self.assertEqual(answer["smps"], {"lft": wire["lft"], "port_info": 2})
        self.assertEqual(wire["all"], wire["lft"] + wire["port_info"])
        self.assertLessEqual(wire["all"], INSIDE_A_LEAF)
        print(f"# inside a leaf: {wire['lft']} LFT and {wire['port_info']} PortInfo SMPs, {answer['duration_us']} us", flush=True)
        self.all_right()
        self.assertEqual(vswitches.guid2lid(self.sm), kept)
        self.assertEqual(self.sm.api.call("GET", "/v1/fabric")[1]["sweeps"], sweeps)    # OpenSM has computed nothing
        again, wire = self.report(source, (2, 3))    # the answer was lost
        self.assertEqual((again["state"], again["exchanged"], again["lid"], wire["all"]), ("applied", None, self.lids[VGUID], 0))
        self.assertEqual(self.heavy_sweep(), 0)
        self.all_right()
        self.end()

    def test_on_one_hypervisor(self):
        self.manager()
        _, answer, wire = self.moved((1, 2))
        self.assertEqual((answer["switches"], wire["all"]), (1, 3))
        self.all_right()
        self.assertEqual(self.heavy_sweep(), 0)
        self.end()

    def test_groups_follow(self):
        self.manager("minhop")
        for name, guid in (("F1-1", VGUID), ("H6", fabric.port_guid(6))):
            self.assertEqual(self.net.join(name, guid), "0x0000")

        def members():
            ports = vswitches.group_ports(self.net)
            return {name: ports[name] for name in ("V1", "V4", "V6")}
        uplink, pf = vswitches.UPLINK, vswitches.PF
        fabric.wait_for("the tree", lambda: members() == {"V1": [uplink, pf + 1], "V4": [], "V6": [uplink, pf]}, 20, 0.5)
        sweeps = self.sm.sweeps()
        self.assertEqual(self.moved((4, 2))[1]["groups"], 1)
        fabric.wait_for("the new tree", lambda: members() == {"V1": [], "V4": [uplink, pf + 2], "V6": [uplink, pf]}, 20, 0.5)
        self.assertEqual(self.sm.sweeps(), sweeps)
        self.all_right()
        self.end()

    def test_a_group_of_both_stays(self):
        """As the broadcast group of all: both places have a member before and after, so no switch is sent a thing for it."""
        self.manager("minhop")
        for name, guid in (("F1-1", VGUID), ("F4-2", self.net.guid[4, 2]), ("H6", fabric.port_guid(6))):
            self.assertEqual(self.net.join(name, guid), "0x0000")

        def members():
            ports = vswitches.group_ports(self.net)
            return {name: ports[name] for name in ("V1", "V4", "V6")}
        uplink, pf = vswitches.UPLINK, vswitches.PF
        tree = {"V1": [uplink, pf + 1], "V4": [uplink, pf + 2], "V6": [uplink, pf]}
        fabric.wait_for("the tree", lambda: members() == tree, 20, 0.5)
        self.sm.rest()
        before = self.sm.smps()
        answer = self.moved((4, 2))[1]
        self.sm.rest()
        sent = {kind: n - before[kind] for kind, n in self.sm.smps().items()}
        self.assertEqual(answer["groups"], 0)
        self.assertEqual(sent["all"], answer["smps"]["lft"] + answer["smps"]["port_info"], sent)
        self.assertEqual(members(), tree)
        self.heavy_sweep()    # in which OpenSM makes all trees anew
        self.assertEqual(members(), tree)
        self.all_right()
        self.end()

    def test_a_sweep_that_comes_first_does_the_work(self):
        self.manager()
        source = self.announce((5, 1))
        self.net.exchange(source, (5, 1))
        fattree.heavy_sweep(self.sm)
        self.all_right()
        answer, wire = self.report(source, (5, 1))
        self.assertEqual((answer["state"], answer["exchanged"], wire["all"]), ("applied", None, 0))
        self.all_right()
        self.end()

    def test_a_subnet_manager_that_was_away(self):
        self.manager()
        source = self.announce((3, 1))
        self.assertEqual(self.sm.stop(), 0)
        self.net.exchange(source, (3, 1))
        self.sm.start()
        self.all_right()
        self.assertIsNone(self.report(source, (3, 1))[0]["exchanged"])
        self.moved((4, 2))
        self.all_right()
        self.assertEqual(self.sm.stop(), 0)


class Loss(Case):
    def lost(self, node, attribute, to):
        self.manager("minhop")
        self.net.console(f'Error "{node}" 100 {attribute}')
        _, answer, _ = self.moved(to)
        self.assertEqual((answer["state"], answer["missing"]), ("repairing", 1))
        self.net.console(f'Error "{node}" 0 {attribute}')

        def repaired():
            self.heavy_sweep()
            return self.sm.api.call("GET", "/v1/fabric")[1]["moves"]["repaired"] == 1
        fabric.wait_for("the repair", repaired, 60, 0.5)
        self.all_right()
        self.assertEqual(self.heavy_sweep(), 0)
        self.assertEqual(self.sm.stop(), 0)

    def test_a_hypervisor_that_loses_a_block(self):
        self.lost("V2", fattree.LFT, (2, 1))

    def test_a_vport_that_does_not_take_its_lid(self):
        self.lost("F5-3", fattree.PORT_INFO, (5, 3))

    def test_a_kill_in_the_move(self):
        """A hypervisor that does not answer keeps it open until OpenSM is dead."""
        self.manager("minhop", "transaction_timeout 400\n")
        source, failed = self.announce((2, 1)), []
        self.net.exchange(source, (2, 1))
        self.net.console(f'Error "V2" 100 {fattree.LFT}')
        before = self.sm.smps()["lft"]

        def client():
            try:
                self.report(source, (2, 1))
            except (OSError, http.client.HTTPException) as e:
                failed.append(e)
        thread = threading.Thread(target=client)
        thread.start()
        fabric.wait_for("the SMPs", lambda: self.sm.smps()["lft"] > before, every=0.005)
        self.sm.kill()
        thread.join()
        self.assertEqual(len(failed), 1)    # no answer
        self.net.console(f'Error "V2" 0 {fattree.LFT}')
        self.sm.start()
        self.records_are_back()
        self.all_right()
        self.sm.rest()    # the plugin's start asks for one more sweep
        answer, wire = self.report(source, (2, 1))    # so it is told again
        self.assertEqual((answer["state"], answer["exchanged"], wire["all"]), ("applied", None, 0))
        self.assertEqual(self.heavy_sweep(), 0)
        self.moved((4, 2))
        self.all_right()
        self.assertEqual(self.sm.stop(), 0)


class Drain(Case):
    """`[lids] drain = yes`: both vports are unreachable, they alone, until all switches that change drop what is for them."""

    TIMEOUT = 2000    # ms; of a transaction. A step waits for four: longer than a sweep waits for moves, and time to see that nobody answers

    def manager(self, engine="ftree", conf=""):
        super().manager(engine, conf, "[lids]\ndrain = yes\n")

    def drained(self, to):
        """Each switch that changes gets each of its blocks twice, and nothing else is sent but the two LIDs."""
        source, answer, wire = self.moved(to)
        self.assertEqual((answer["state"], answer["missing"]), ("applied", 0))
        self.assertEqual(answer["drain_smps"], answer["smps"]["lft"])
        self.assertEqual(wire, {"lft": 2 * answer["drain_smps"], "port_info": 2, "guid_info": 0, "pkey_table": 0, "all": 2 * answer["drain_smps"] + 2})
        self.all_right()
        return source

    def test_each_block_twice(self):
        for engine in ("ftree", "minhop"):
            self.manager(engine)
            for to in ((1, 2), (2, 3), (5, 1), (1, 1)):
                source = self.drained(to)
            again, wire = self.report(source, (1, 1))
            self.assertEqual((again["state"], again["exchanged"], again["drain_smps"], wire["all"]), ("applied", None, 0, 0))
            self.assertEqual(self.heavy_sweep(), 0)
            self.all_right()
            self.end()

    def lost(self):
        return self.sm.log().count(LOST)

    def held(self, to):
        """A move whose drain waits for the new hypervisor: (source, thread of the report, its answers)."""
        source, answers, lost = self.announce(to), [], self.lost()
        self.net.exchange(source, to)
        self.net.console(f'Error "V{to[0]}" 100 {fattree.LFT}')

        def client():
            try:
                answers.append(vswitches.move(self.sm, VGUID, self.epoch, source, to))
            except (OSError, http.client.HTTPException) as e:
                answers.append(e)
        thread = threading.Thread(target=client)
        self.asked = time.monotonic()
        thread.start()
        fabric.wait_for("the hypervisor has lost it", lambda: self.lost() > lost, 30)
        lids = [self.lids[self.net.guid[at]] for at in (source, to)]
        fabric.wait_for("nobody at another leaf reaches them", lambda: not any(self.watches[6].ask("nobody", self.lids[fabric.port_guid(6)], *lids)), 30)
        self.net.console(f'Error "V{to[0]}" 0 {fattree.LFT}')
        return source, thread, answers

    def test_dropped_before_the_change(self):
        self.manager("ftree", f"transaction_timeout {self.TIMEOUT}\n")
        _, thread, answers = self.held((2, 2))
        others = [at for at in self.net.guid if at not in ((1, 1), (2, 2))]
        names = self.watches[6].ask("who", *(self.lids[self.net.guid[at]] for at in others))
        self.assertEqual(names, [f"F{n}-{v}" for n, v in others])
        thread.join()
        answer = self.check(answers[0], 200)["lid_move"]    # not drained in time is changed all the same
        self.assertEqual((answer["state"], answer["missing"], answer["drain_smps"]), ("applied", 0, answer["switches"]))
        self.all_right()
        self.assertEqual(self.heavy_sweep(), 0)
        self.assertEqual(self.sm.stop(), 0)

    def test_a_kill_while_they_drain(self):
        self.manager("minhop", f"transaction_timeout {self.TIMEOUT}\n")
        source, thread, answers = self.held((4, 2))
        self.sm.kill()
        thread.join()
        self.assertIsInstance(answers[0], Exception)
        self.sm.start()
        self.records_are_back()
        self.all_right()
        self.assertIsNone(self.report(source, (4, 2))[0]["exchanged"])
        self.drained((1, 3))
        self.assertEqual(self.sm.stop(), 0)

    def keys_as_the_drain_ends(self, to, key):
        """A key for the vport goes to where it was a second before its move: (the place that it leaves, the move's answer)."""
        source, thread, answers = self.held(to)
        self.net.console(f'Error "F{source[0]}-{source[1]}" 100 {fattree.PKEY_TABLE}')
        time.sleep(max(0, self.asked + 4 * self.TIMEOUT / 1000 - 0.8 - time.monotonic()))    # not earlier: after two seconds without an answer OpenSM would sweep
        before = self.sm.smps()["pkey_table"]
        self.check(self.sm.api.call("PUT", f"/v1/members/{VGUID}", {"pkeys": [key]}), 200)
        fabric.wait_for("the keys", lambda: self.sm.smps()["pkey_table"] > before)
        thread.join()
        self.net.console(f'Error "F{source[0]}-{source[1]}" 0 {fattree.PKEY_TABLE}')
        return source, answers[0]

    def test_keys_on_the_way_while_they_drain(self):
        """Another vport is in hardware at the place that they are sent to."""
        self.manager("minhop", f"transaction_timeout {self.TIMEOUT}\n")
        for to, key in (((4, 2), "0x8001"), ((2, 3), "0x8002"), ((5, 1), "0x8003")):
            source, answer = self.keys_as_the_drain_ends(to, key)
            if self.check(answer, 503)["code"] == "keys_on_the_way":
                break
            self.report(source, to)    # a slow machine: a sweep was sooner
        self.check(answer, 503, "keys_on_the_way")
        fabric.wait_for("the move", lambda: vswitches.move(self.sm, VGUID, self.epoch, source, to)[0] == 200, 60, 0.5)
        self.assertEqual(self.tables(f"F{to[0]}-{to[1]}", f"F{source[0]}-{source[1]}"), [[key], []])
        self.records_are_back()    # the keys that were lost ask for a sweep
        self.all_right()
        self.assertEqual(self.sm.stop(), 0)

    def test_a_sweep_while_they_drain(self):
        """It does not wait for ever. It finds both vports where they are: to exchange them after it would undo that."""
        self.manager("minhop", f"transaction_timeout {self.TIMEOUT}\n")
        source, thread, answers = self.held((4, 2))
        sweeps = self.sm.sweeps()
        self.sm.resweep()
        fabric.wait_for("the sweep", lambda: self.sm.sweeps() > sweeps, 40)
        thread.join()
        self.check(answers[0], 503, "changed_meanwhile")
        self.records_are_back()
        self.all_right()
        self.assertIsNone(self.report(source, (4, 2))[0]["exchanged"])
        self.drained((1, 3))
        self.assertEqual(self.heavy_sweep(), 0)
        self.assertEqual(self.sm.stop(), 0)


class Refusals(Case):
    def test_what_is_no_place_and_what_is_no_vport(self):
        self.manager()
        before = self.sm.smps()["all"]

        def post(vguid, to, epoch=2):
            return vswitches.move(self.sm, vguid, epoch, (1, 1), to)
        self.check(post(VGUID, (2, 0)), 400, "bad_request")
        self.check(post(VGUID, (2, 254)), 400, "bad_request")
        self.check(post(VGUID, (2, vswitches.VFS + 1)), 409, "unknown_port")
        self.check(post(VGUID, (2, 253)), 409, "unknown_port")
        self.check(post(VGUID, (99, 1)), 409, "unknown_port")
        self.check(post("0x02c9ab0000000021", (2, 1)), 409, "unknown_port")
        self.check(post(fabric.port_guid(1), (2, 1)), 409, "sm_port")
        self.check(post("0x0002c90400000010", (2, 1)), 409, "switch_lid")
        self.assertEqual(self.check(self.sm.api.get(VGUID), 200)["epoch"], 1)
        self.assertEqual(self.sm.smps()["all"], before)
        self.all_right()
        self.end()

    def test_what_shares_a_node_with_another_port(self):
        """Node and tables are not one port's alone: they cannot go where it goes."""
        self.net.close()
        self.net = vswitches.VSwitches(vswitches.with_two_ports(2, 1, vswitches.network()))
        self.addCleanup(self.net.close)
        sm = self.net.manager(counter=os.environ["VHCA_SMPCOUNT_LIB"])
        sm.start()
        two, one = self.net.guid[2, 1], self.net.guid[2, 2]
        before = sm.smps()["all"]
        for vguid, source, to in ((two, (2, 1), (3, 1)), (one, (2, 2), (2, 1))):
            answer = self.check(vswitches.move(sm, vguid, 1, source, to), 409, "cannot_move")
            self.assertIn(two, answer["detail"])
            self.assertEqual(sm.api.get(vguid)[0], 404)
        self.assertEqual(self.check(vswitches.move(sm, two, 1, (2, 1), (2, 1)), 200)["lid_move"]["exchanged"], None)    # it is there
        self.assertEqual(sm.smps()["all"], before)
        self.assertEqual(sm.stop(), 0)


class Engines(fattree.EachEngineRandom, Case):
    MOVES = 12

    def run_random(self, engine, seed):
        rng = random.Random(f"{seed} {engine}")
        self.manager(engine)
        places = sorted(self.net.guid)
        for i in range(self.MOVES):
            to = rng.choice([at for at in places if at != self.net.place(VGUID)])
            _, answer, wire = self.moved(to)
            self.assertEqual((answer["state"], answer["smps"]), ("applied", {"lft": wire["lft"], "port_info": 2}))
            self.all_right()
            if i % 4 == 3:
                self.assertEqual(self.heavy_sweep(), 0)
        self.all_right()
        self.end()


class BesideSweeps(fattree.EachEngineRandom, Case):
    """One heavy sweep follows the other, and each finds the hardware as it happens to be: before, in the middle, after."""

    def report_until_it_is_in_effect(self, source, to, pkeys, when):
        """As an agent does: what is to be tried again is."""
        end = time.monotonic() + 60
        while True:
            status, answer = vswitches.move(self.sm, VGUID, self.epoch, source, to, pkeys=pkeys)
            if status == 200:
                break
            self.assertTrue(answer.get("retryable"), f"{when}: {answer}")
            self.assertLess(time.monotonic(), end, f"{when}: {answer}")
            self.repeated += 1
            time.sleep(0.02)
        self.assertEqual((answer["lid_move"]["state"], answer["lid_move"]["lid"]), ("applied", self.lids[VGUID]), when)

    def tables_of_all(self):
        """Keys of vports, in tables in which the same key has another index."""
        sets = (("0x8001", "0x8002"), ("0x8002", "0x8003"), ("0x8003", "0x8001"), ())
        kept = {guid: sets[i % len(sets)] for i, guid in enumerate(sorted(self.net.guid.values()))}
        for n in (1, 2):    # a sweep for the first ones, and one for the second
            for guid, keys in kept.items():
                self.check(self.sm.api.call("PUT", f"/v1/members/{guid}", {"pkeys": keys[:n]}), 200)
            fabric.wait_for("in effect", lambda: self.sm.api.call("GET", "/readyz")[1]["in_effect"], 20)
        return {guid: sorted(keys) for guid, keys in kept.items()}

    def has_its_keys(self, at, kept):
        self.assertEqual(self.tables("F%u-%u" % at), [kept[self.net.guid[at]]], at)

    def run_random(self, engine, seed):
        rng, self.repeated, rounds = random.Random(f"{seed} {engine}"), 0, ROUNDS if seed == seeds.FIXED else ROUNDS // 2
        self.manager(engine)
        places, kept = sorted(self.net.guid), self.tables_of_all()
        before = self.sm.api.call("GET", "/v1/fabric")[1]["sweeps"]
        with fattree.Sweeps(self.sm):
            for n in range(rounds):
                to = rng.choice([at for at in places if at != self.net.place(VGUID)])
                source = self.announce(to)
                self.net.exchange(source, to)
                pkeys = rng.choice(((), KEYS[3:4], KEYS[4:], KEYS[3:]))    # often others than with the report before
                self.report_until_it_is_in_effect(source, to, pkeys, f"seed {seed}, move {n}: {source} to {to}")
                self.has_its_keys(to, {**kept, VGUID: sorted({*kept[VGUID], *pkeys})})    # the other one may be known to the next sweep only
        swept = self.sm.api.call("GET", "/v1/fabric")[1]["sweeps"] - before
        print(f"# {engine}: seed {seed}, {rounds} moves, {swept} sweeps, {self.repeated} reports repeated", flush=True)
        kept[VGUID] = sorted({*kept[VGUID], *pkeys})
        fattree.heavy_sweep(self.sm)    # ibsim raises no trap for a vport that the last one has missed
        self.all_right()
        for place in places:
            self.has_its_keys(place, kept)
        self.assertEqual(self.heavy_sweep(), 0)
        self.end()


tap.main(__name__)
