#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Dynamic LIDs: a vGUID gets a free LID by the ways to its hypervisor's PF, before any port shows it. The plugin in a real OpenSM,
hypervisors that are switches on ibsim, whose VFs have no ports without guests. SMPs are counted on the wire, entries read from the switches."""

import os
import random
import re
import threading
import unittest

import fabric
import fattree
import seeds
import tap
import vswitches

VGUID, OTHER, THIRD = (f"0x02c9ab00000000{n}1" for n in (1, 2, 3))
SWITCHES = vswitches.HYPERVISORS + vswitches.LEAVES + vswitches.SPINES
DROPPED = 255
ROUNDS = 25
TIMEOUT = 2000    # ms, of a transaction; a move waits for four: time for all that has to happen while it is under way
MANY = [f"0x02c9ab00000002{n}1" for n in range(6)]


@unittest.skipIf(fabric.missing(), fabric.missing())
class Case(unittest.TestCase):
    def setUp(self):
        self.net = vswitches.VSwitches()
        self.addCleanup(self.net.close)
        for place in self.net.guid:
            self.net.take(*place)
        self.epoch = 0

    def manager(self, engine="minhop", limit=16, conf="", listen=None, slow=None):
        self.sm = self.net.manager(opensm_conf=f"routing_engine {engine}\n{conf}", conf=f"[lids]\ndynamic = {limit}",
                                   counter=os.environ["VHCA_SMPCOUNT_LIB"], listen=listen, slow=slow)
        self.sm.start()
        self.lids = vswitches.lids(self.sm)
        self.assertEqual(len(self.lids), vswitches.HYPERVISORS)

    def check(self, answer, status, code=None):
        self.assertEqual(answer[0], status, answer)
        if code:
            self.assertEqual(answer[1]["code"], code, answer)
        return answer[1]

    def ask(self, vguid, host, timeout=70):
        self.epoch += 1
        return self.sm.api.call("PUT", f"/v1/bindings/{vguid}", {
            "epoch": self.epoch, "port_guid": fabric.port_guid(host), "gid_index": 0, "pkeys": [], "lid_policy": "dynamic"}, timeout)

    def report(self, vguid, host, epoch):
        if not host:
            return self.sm.api.call("DELETE", f"/v1/bindings/{vguid}?epoch={epoch}", timeout=70)
        return self.sm.api.call("PUT", f"/v1/bindings/{vguid}", {"epoch": epoch, "port_guid": fabric.port_guid(host), "gid_index": 0,
                                                                 "pkeys": [], "lid_policy": "dynamic"}, 70)

    def together(self, requests):
        """Their answers; all are sent at the same time."""
        answers = [None] * len(requests)

        def run(i):
            answers[i] = requests[i]()
        threads = [threading.Thread(target=run, args=(i,)) for i in range(len(requests))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return answers

    def broken_off(self, *args):
        try:
            self.ask(*args)
        except (OSError, fabric.http.client.HTTPException):
            pass

    def wire(self, request):
        """(what it returns, what went over the wire meanwhile)"""
        self.sm.rest()
        before = self.sm.smps()
        answer = request()
        return answer, {kind: n - before[kind] for kind, n in self.sm.smps().items()}

    def given(self, vguid, host):
        """(its LID, switches that changed), after a look at what the answer says and the wire shows."""
        answer, wire = self.wire(lambda: self.ask(vguid, host))
        move = self.check(answer, 200)["lid_move"]
        self.assertEqual((move["state"], move["port_guid"], move["exchanged"], move["missing"]), ("applied", vguid, None, 0))
        self.assertEqual((wire["lft"], wire["all"]), (move["switches"], move["switches"]))    # no SwitchInfo: there was room
        self.assertEqual(move["smps"], {"lft": wire["lft"], "port_info": 0})
        return move["lid"], move["switches"]

    def row(self, lid):
        return self.check(self.sm.api.call("GET", f"/v1/lids/{lid}"), 200)

    def heavy_sweep(self):
        """LFT SMPs of one more heavy sweep."""
        return self.wire(lambda: fattree.heavy_sweep(self.sm))[1]["lft"]

    def wait_port(self, lid, port_guid):
        """A changed cable makes OpenSM sweep; afterwards one more, which finds nothing to write."""
        fabric.wait_for(f"LID {lid} at {port_guid}", lambda: self.row(lid)["port_guid"] == port_guid, 20)
        fattree.heavy_sweep(self.sm)
        self.assertEqual(self.heavy_sweep(), 0)

    def comes(self, vguid, lid, place):
        self.net.give(*place, vguid)
        self.wait_port(lid, vguid)

    def goes(self, lid, place):
        pf = self.lids[fabric.port_guid(place[0])]
        self.net.take(*place)
        self.wait_port(lid, fabric.port_guid(place[0]))
        self.check_ways(lid, pf)

    def check_ways(self, lid, pf, but=None):
        """On every switch the LID's entry is the PF's; but: {switch: another one}"""
        tables = self.net.tables()
        self.assertEqual(len(tables), SWITCHES)
        self.assertEqual({name: table[lid] for name, table in tables.items()},
                         {**{name: table[pf] for name, table in tables.items()}, **(but or {})})

    def who(self, host, *lids):
        return self.net.watch(host).ask("who", *lids)

    def check_there(self, vguid, lid, place):
        """Its port has the LID, is reached by it from everywhere, and the SA says so, too."""
        n, v = place
        self.check_ways(lid, self.lids[fabric.port_guid(n)], {f"V{n}": vswitches.PF + v})
        for host in range(1, vswitches.HYPERVISORS + 1):
            self.assertEqual(self.who(host, lid, self.lids[fabric.port_guid(n)]), [f"F{n}-{v}", f"H{n}"])
        self.assertEqual(self.net.path_lid(vguid), lid)
        self.assertEqual(self.row(lid)["vguid"], vguid)

    def in_file(self, vguid):
        """LID that OpenSM's own file has for it."""
        found = re.search(rf"^{vguid} (0x[0-9a-f]+) ", vswitches.guid2lid(self.sm), re.M)
        return found and int(found.group(1), 16)

    def await_free(self, lid, vguid):
        """OpenSM writes its file in heavy sweeps; one that has begun may still know the port."""
        def free():
            fattree.heavy_sweep(self.sm)
            return self.sm.api.call("GET", f"/v1/lids/{lid}")[0] == 404 and self.in_file(vguid) is None
        fabric.wait_for(f"LID {lid} free", free, 60)

    def end(self):
        self.assertEqual(self.sm.stop(), 0)
        self.assertEqual([line for line in self.sm.log().splitlines() if " ERR " in line], [])


class Life(fattree.EachEngine, Case):
    """Of a guest: it starts, moves over the tree, moves inside a leaf, ends."""

    def run_engine(self, engine):
        self.manager(engine)
        pf = {n: self.lids[fabric.port_guid(n)] for n in range(1, vswitches.HYPERVISORS + 1)}
        lid, switches = self.given(VGUID, 2)
        self.assertEqual(switches, SWITCHES)
        self.assertEqual(lid, self.sm.api.call("GET", "/v1/fabric")[1]["max_lid"] + 1)    # there are no gaps
        self.check_ways(lid, pf[2])
        self.assertEqual(self.wire(lambda: self.ask(VGUID, 2))[1]["all"], 0)
        self.assertEqual(self.heavy_sweep(), 0)
        self.assertEqual(self.in_file(VGUID), lid)
        self.comes(VGUID, lid, (2, 1))
        self.check_there(VGUID, lid, (2, 1))

        self.goes(lid, (2, 1))
        for to in ((5, 2), (6, 3)):
            tables = self.net.tables()
            source = self.net.place(VGUID)[0]
            lid_there, switches = self.given(VGUID, to[0])
            self.assertEqual(lid_there, lid)
            self.assertEqual(switches, sum(table[pf[source]] != table[pf[to[0]]] for table in tables.values()))
            self.check_ways(lid, pf[to[0]])
            self.net.program(*self.net.place(VGUID), "0x0002c9ffffffff01")
            self.comes(VGUID, lid, to)
            self.check_there(VGUID, lid, to)
            self.goes(lid, to)
            print(f"# {engine}: moved from H{source} to H{to[0]} with {switches} LFT SMPs of at most {SWITCHES}", flush=True)

        answer, wire = self.wire(lambda: self.sm.api.withdraw(VGUID, self.epoch))
        self.assertEqual(self.check(answer, 200)["lid_move"]["state"], "applied")
        self.assertEqual((wire["lft"], wire["all"]), (SWITCHES, SWITCHES))
        self.assertEqual({table[lid] for table in self.net.tables().values()}, {DROPPED})
        self.assertEqual(self.who(1, *pf.values()), [f"H{n}" for n in pf])
        self.check(self.sm.api.call("GET", f"/v1/lids/{lid}"), 404, "unknown_lid")
        self.assertEqual(self.heavy_sweep(), 0)
        self.assertIsNone(self.in_file(VGUID))
        self.assertNotIn("lid_move", self.check(self.sm.api.withdraw(VGUID, self.epoch), 200))
        self.end()


class Room(fattree.EachEngine, Case):
    """LinearFDBTop, as the switches answer, is ahead of all LIDs that may be given: it is raised in sweeps, and by nothing else."""

    LIMIT = 4

    def check_tops(self, top):
        tops = self.net.tops()
        self.assertEqual((set(tops.values()), len(tops)), ({top}, SWITCHES), tops)

    def run_engine(self, engine):
        self.manager(engine, limit=self.LIMIT)
        highest = self.sm.api.call("GET", "/v1/fabric")[1]["max_lid"]
        top, told = highest + self.LIMIT, self.sm.switch_infos()
        self.check_tops(top)
        self.assertEqual(told[top], SWITCHES)
        lids = [self.given(vguid, host)[0] for vguid, host in zip(MANY, (2, 3, 3))]
        self.assertEqual(lids, [highest + 1, highest + 2, highest + 3])
        self.assertEqual(self.heavy_sweep(), 0)
        self.check_tops(top)
        self.assertEqual(self.sm.switch_infos(), told)

        self.comes(MANY[0], lids[0], (2, 1))
        self.check_tops(top)
        self.assertEqual(set(self.sm.switch_infos()), set(told))    # OpenSM tells a switch that it has seen its cable change: by the top that it has
        stranger = vswitches.own_guid(4, 2)
        self.net.give(4, 2, stranger)
        fabric.wait_for("the last LID", lambda: vswitches.lids(self.sm).get(stranger) == top, 20)
        self.wait_port(top, stranger)
        self.check_tops(top + 1)
        told = self.sm.switch_infos()
        self.assertEqual(told[top + 1], SWITCHES)

        self.assertEqual([self.given(MANY[3], host)[0] for host in (5, 6)], [top + 1] * 2)
        self.check_tops(top + 1)
        self.assertEqual(self.sm.switch_infos(), told)
        self.sm.kill()
        self.sm.start()
        self.check(self.sm.api.withdraw(MANY[3], self.epoch), 200)
        self.assertEqual(self.heavy_sweep(), 0)
        self.check_tops(top + 1)
        self.assertEqual(self.sm.switch_infos(), {})    # since the start
        self.end()


class Durable(Case):
    def restart(self):
        self.sm.kill()
        self.sm.start()

    def test_of_a_node_that_does_not_come_back(self):
        """Free when that is said, with the binding, and though the PF is away."""
        self.manager()
        lid, _ = self.given(VGUID, 5)
        kept, _ = self.given(OTHER, 3)
        self.net.console('Unlink "V5"')
        fattree.heavy_sweep(self.sm)
        pf = fabric.port_guid(5)
        self.assertEqual(self.check(self.sm.api.call("DELETE", f"/v1/ports/{pf}", timeout=70), 200), {"port_guid": pf, "withdrawn": 1, "left": 0, "lids": 1})
        self.check(self.sm.api.call("GET", f"/v1/lids/{lid}"), 404, "unknown_lid")
        self.assertEqual(self.sm.api.call("GET", "/v1/fabric")[1]["dynamic_lids"], 1)
        self.assertEqual(self.row(kept)["vguid"], OTHER)
        self.assertEqual(self.given(THIRD, 4)[0], lid)
        self.assertEqual(self.sm.stop(), 0)

    def test_killed_after_the_answer(self):
        self.manager("ftree", limit=2)    # no room is left for more
        lids = {vguid: self.given(vguid, host)[0] for vguid, host in ((VGUID, 2), (OTHER, 4))}
        self.assertIsNone(self.in_file(VGUID))    # no sweep has written it
        self.restart()
        for vguid, host in ((VGUID, 2), (OTHER, 4)):
            self.check_ways(lids[vguid], self.lids[fabric.port_guid(host)])
            self.assertEqual(self.row(lids[vguid])["vguid"], vguid)
        stranger = vswitches.own_guid(4, 2)    # a port for which nobody has asked
        self.net.give(4, 2, stranger)
        lid = fabric.wait_for("its LID", lambda: vswitches.lids(self.sm).get(stranger), 20)
        self.assertNotIn(lid, lids.values())
        self.comes(OTHER, lids[OTHER], (4, 1))
        self.check_there(OTHER, lids[OTHER], (4, 1))
        self.assertEqual(self.wire(lambda: self.ask(VGUID, 2))[1]["all"], 0)
        self.end()

    def test_killed_before_the_last_switch(self):
        self.manager()
        self.net.console(f'Error "S1" 100 {fattree.LFT}')
        asked = threading.Thread(target=self.broken_off, args=(VGUID, 3))
        before = self.sm.smps()["lft"]
        asked.start()
        fabric.wait_for("SMPs", lambda: self.sm.smps()["lft"] >= before + SWITCHES)
        self.sm.kill()
        asked.join()
        self.net.console(f'Error "S1" 0 {fattree.LFT}')
        self.sm.start()
        row = self.row(self.in_file(VGUID))
        self.assertEqual((row["vguid"], row["port_guid"]), (VGUID, fabric.port_guid(3)))
        self.check_ways(row["lid"], self.lids[fabric.port_guid(3)])
        answer, wire = self.wire(lambda: self.ask(VGUID, 3))
        self.assertEqual((self.check(answer, 200)["lid_move"]["lid"], wire["all"]), (row["lid"], 0))
        self.assertEqual(self.sm.stop(), 0)

    def test_a_disk_that_takes_nothing(self):
        """Nothing is sent that is not on disk."""
        self.manager()
        os.mkdir(f"{self.sm.state_dir}/dynamic-lids")    # no file can take its place
        answer, wire = self.wire(lambda: self.ask(VGUID, 2))
        self.check(answer, 503, "state_not_saved")
        self.assertEqual((wire["all"], self.sm.api.call("GET", "/v1/fabric")[1]["dynamic_lids"]), (0, 0))
        os.rmdir(f"{self.sm.state_dir}/dynamic-lids")
        lid, _ = self.given(VGUID, 2)
        os.rename(f"{self.sm.state_dir}/dynamic-lids", f"{self.sm.state_dir}/aside")
        os.mkdir(f"{self.sm.state_dir}/dynamic-lids")
        self.check(self.ask(VGUID, 5), 503, "state_not_saved")
        self.check(self.sm.api.withdraw(VGUID, self.epoch), 503, "state_not_saved")
        self.assertEqual(self.heavy_sweep(), 0)
        self.check_ways(lid, self.lids[fabric.port_guid(2)])
        self.end()

    def test_a_switch_that_loses_its_block(self):
        self.manager()
        self.net.console(f'Error "S2" 100 {fattree.LFT}')
        move = self.check(self.ask(VGUID, 5), 200)["lid_move"]
        self.assertEqual((move["state"], move["missing"]), ("repairing", 1))
        self.net.console(f'Error "S2" 0 {fattree.LFT}')
        fabric.wait_for("the repair", lambda: self.sm.api.call("GET", "/v1/fabric")[1]["moves"]["repaired"] == 1, 60, 0.5)
        self.check_ways(move["lid"], self.lids[fabric.port_guid(5)])
        self.assertEqual(self.sm.stop(), 0)


class Contradictions(Case):
    def test_the_hardware_is_right(self):
        """The port is where nobody has reported it: the ways lead there, until the report; then by the PF's."""
        self.manager()
        lid, _ = self.given(VGUID, 2)
        self.comes(VGUID, lid, (5, 1))
        self.assertEqual(self.who(1, lid), ["F5-1"])
        self.assertEqual(self.who(4, lid), ["F5-1"])
        before = self.net.tables()
        _, switches = self.given(VGUID, 5)
        self.check_there(VGUID, lid, (5, 1))
        self.assertEqual(switches, sum(table[lid] != self.net.tables()[name][lid] for name, table in before.items()))
        self.assertEqual(self.heavy_sweep(), 0)
        self.ask(VGUID, 3)    # a report that comes before its hardware
        self.assertEqual(self.who(1, lid), ["F5-1"])
        fattree.heavy_sweep(self.sm)
        self.assertEqual(self.who(4, lid), ["F5-1"])
        self.end()

    def test_a_port_that_was_there_first(self):
        """It keeps its LID, and goes on with it when that is not dynamic any more."""
        self.net.give(3, 1, VGUID)
        self.manager_with_port()
        lid = vswitches.lids(self.sm)[VGUID]
        self.assertEqual(self.given(VGUID, 3)[0], lid)
        self.check_there(VGUID, lid, (3, 1))
        self.check(self.sm.api.withdraw(VGUID, self.epoch), 200)
        self.assertEqual(self.who(1, lid), ["F3-1"])
        fattree.heavy_sweep(self.sm)
        self.assertEqual(self.who(1, lid), ["F3-1"])
        self.assertEqual((self.in_file(VGUID), self.row(lid)["vguid"]), (lid, None))
        self.end()

    def manager_with_port(self):
        self.sm = self.net.manager(opensm_conf="routing_engine minhop\n", conf="[lids]\ndynamic = 4", counter=os.environ["VHCA_SMPCOUNT_LIB"])
        self.sm.start()
        self.lids = {guid: lid for guid, lid in vswitches.lids(self.sm).items() if guid != VGUID}

    def test_a_pf_with_another_lid(self):
        """Its ways are the same ones, and so are those that were copied from them."""
        self.manager("ftree")
        lid, _ = self.given(VGUID, 2)
        self.comes(VGUID, lid, (2, 1))
        pf = {n: self.lids[fabric.port_guid(n)] for n in (2, 5)}
        self.check(self.sm.api.call("PUT", f"/v1/lids/{pf[2]}", {"port_guid": fabric.port_guid(5), "mode": "deterministic"}, 70), 200)
        self.assertEqual(self.who(1, lid, pf[2], pf[5]), ["F2-1", "H5", "H2"])
        self.assertEqual(self.heavy_sweep(), 0)
        self.lids[fabric.port_guid(2)], self.lids[fabric.port_guid(5)] = pf[5], pf[2]
        self.check_there(VGUID, lid, (2, 1))
        self.end()

    def test_a_port_that_leaves_later(self):
        """Its guest stops: the withdrawal is here before OpenSM sees that the port has gone. Then the LID is free."""
        self.manager()
        lid, _ = self.given(VGUID, 3)
        self.comes(VGUID, lid, (3, 1))
        self.check(self.sm.api.withdraw(VGUID, self.epoch), 200)
        self.assertEqual((self.who(1, lid), self.row(lid)["vguid"]), (["F3-1"], None))
        self.assertEqual(self.check(self.ask(OTHER, 5), 200)["lid_move"]["lid"], lid + 1)    # it is still that port's
        self.net.take(3, 1)
        self.await_free(lid, VGUID)
        self.assertEqual({table[lid] for table in self.net.tables().values()}, {DROPPED})
        self.assertEqual(self.check(self.ask(THIRD, 3), 200)["lid_move"]["lid"], lid)
        self.assertEqual(self.heavy_sweep(), 0)
        self.end()

    def test_a_port_that_leaves_and_comes_back(self):
        """The vGUID was given its LID again in between."""
        self.manager()
        lid, _ = self.given(VGUID, 3)
        self.comes(VGUID, lid, (3, 1))
        self.check(self.sm.api.withdraw(VGUID, self.epoch), 200)
        self.check(self.ask(VGUID, 3), 200)
        self.goes(lid, (3, 1))
        self.assertEqual((self.in_file(VGUID), self.row(lid)["vguid"]), (lid, VGUID))
        self.end()

    def test_lids_that_went_to_others(self):
        """As under a standby that did not know them: ports that have them keep them. A vGUID gets another one when it is reported; one that is
        withdrawn takes nothing from the port."""
        self.manager()
        lids = [self.given(VGUID, 2)[0], self.given(OTHER, 3)[0]]
        strangers = [vswitches.own_guid(4, 2), vswitches.own_guid(5, 1)]
        self.lose_to({VGUID: (strangers[0], (4, 2)), OTHER: (strangers[1], (5, 1))})
        self.assertEqual([self.in_file(guid) for guid in strangers], lids)
        self.assertIn(f"LID {lids[0]} of {VGUID} now belongs to another port", self.sm.log())
        self.assertEqual(self.who(1, *lids), ["F4-2", "F5-1"])
        row = self.row(lids[0])
        self.assertEqual((row["vguid"], row["port_guid"]), (None, strangers[0]))
        again, _ = self.given(VGUID, 2)
        self.assertEqual(again, lids[1] + 1)
        self.check_ways(again, self.lids[fabric.port_guid(2)])
        answer, wire = self.wire(lambda: self.sm.api.withdraw(OTHER, self.epoch))
        self.assertEqual((self.check(answer, 200)["state"], wire["all"]), ("withdrawn", 0))
        self.assertEqual(self.who(3, *lids), ["F4-2", "F5-1"])
        self.assertEqual(self.heavy_sweep(), 0)
        self.assertEqual(self.who(3, *lids), ["F4-2", "F5-1"])
        self.net.take(5, 1)
        fabric.wait_for("it has gone", lambda: self.status(lids[1]) == 404, 20)
        fattree.heavy_sweep(self.sm)
        self.assertEqual(self.given(OTHER, 3)[0], again + 1)    # not that of a port which is only away
        self.assertEqual(self.sm.stop(), 0)

    def lose_to(self, strangers):
        """Of vGUIDs without a port, the LIDs become those of others' ports; strangers: {vGUID: (another's, its place)}"""
        fattree.heavy_sweep(self.sm)
        self.assertEqual(self.sm.stop(), 0)
        with open(f"{self.sm.cache_dir}/guid2lid", "r+", encoding="ascii") as f:
            text = f.read()
            for vguid, (stranger, place) in strangers.items():
                self.net.give(*place, stranger)
                text = text.replace(vguid, stranger)
            f.seek(0)
            f.write(text)
        self.sm.start()

    def test_a_lid_that_went_to_another_guest(self):
        """Which is reported, too: one LID has one owner, also for whoever starts from the file."""
        self.manager(limit=2)
        lid, _ = self.given(VGUID, 2)
        self.lose_to({VGUID: (OTHER, (4, 2))})
        self.assertEqual(self.given(OTHER, 4)[0], lid)
        self.assertEqual(self.sm.api.call("GET", "/v1/fabric")[1]["dynamic_lids"], 1)
        self.assertEqual(self.sm.stop(), 0)
        self.sm.start()
        self.check_there(OTHER, lid, (4, 2))
        self.assertEqual(self.given(VGUID, 2)[0], lid + 1)
        self.assertEqual(self.sm.stop(), 0)

    def test_a_pf_that_is_away(self):
        self.manager()
        lid, _ = self.given(VGUID, 4)
        self.net.console('Unlink "V4"[1]')
        fabric.wait_for("it has gone", lambda: self.status(lid) == 404, 20)
        self.check(self.ask(VGUID, 4), 409, "unknown_port")
        self.net.console('ReLink "V4"[1]')
        fabric.wait_for("it is back", lambda: self.status(lid) == 200, 20)
        self.wait_port(lid, fabric.port_guid(4))
        self.check_ways(lid, self.lids[fabric.port_guid(4)])
        self.assertEqual(self.sm.stop(), 0)


    def status(self, lid):
        return self.sm.api.call("GET", f"/v1/lids/{lid}")[0]


class Limits(Case):
    def test_exhaustion(self):
        self.manager(limit=2)
        first, second = self.given(VGUID, 2)[0], self.given(OTHER, 4)[0]
        self.assertEqual(second, first + 1)
        problem = self.check(self.ask(THIRD, 2), 507, "no_free_lid")
        self.assertIn("2 dynamic LIDs are in use, 2 are allowed", problem["detail"])
        self.assertIn("vhcasm.conf", problem["hint"])
        self.check(self.sm.api.get(THIRD), 404, "unknown_binding")    # both or nothing
        self.check(self.sm.api.withdraw(VGUID, self.epoch), 200)
        self.assertEqual(self.given(THIRD, 4)[0], first)    # the lowest that is free
        fabric_now = self.sm.api.call("GET", "/v1/fabric")[1]
        self.assertEqual((fabric_now["dynamic_lids"], fabric_now["dynamic_max"]), (2, 2))
        self.check_ways(first, self.lids[fabric.port_guid(4)])
        self.end()

    def test_the_limit_is_read_again(self):
        self.manager(limit=1)
        first = self.given(VGUID, 2)[0]
        self.check(self.ask(OTHER, 4), 507, "no_free_lid")
        self.sm.configure("[lids]\ndynamic = 3\ndrain = yes")
        fabric.wait_for("room for more", lambda: self.ask(OTHER, 4)[0] == 200)
        has = lambda lid: self.sm.api.call("GET", f"/v1/lids/{lid}")[0] == 200
        self.assertTrue(has(first + 1))
        self.sm.configure("[lids]\ndynamic = 1")
        allowed = lambda: self.sm.api.call("GET", "/v1/fabric")[1]["dynamic_max"]
        fabric.wait_for("a lower limit", lambda: allowed() == 1)
        self.assertTrue(has(first + 1))     # what was given stays
        self.check(self.ask(THIRD, 2), 507, "no_free_lid")
        self.end()

    def test_many_at_once(self):
        """Each gets its own, whatever the order."""
        self.manager(limit=12)
        answers = self.together([lambda n=n: self.report(f"0x02c9ab0000001{n:02x}1", n % 6 + 1, 1) for n in range(12)])
        lids = [self.check(answer, 200)["lid_move"]["lid"] for answer in answers]
        self.assertEqual(sorted(lids), list(range(min(lids), min(lids) + 12)))
        for n, lid in enumerate(lids):
            self.check_ways(lid, self.lids[fabric.port_guid(n % 6 + 1)])
        self.assertEqual(self.heavy_sweep(), 0)
        self.end()

    def test_beside_sweeps(self):
        self.beside_sweeps("updn", seeds.FIXED)

    def test_fresh_seed(self):
        self.beside_sweeps(seeds.engine(seeds.FRESH), seeds.tell(seeds.FRESH))

    def beside_sweeps(self, engine, seed):
        """Random requests, up to three at a time, while one heavy sweep follows the other."""
        self.manager(engine, limit=6)
        rng, given = random.Random(seed), {}    # vGUID: (LID, host)
        before = self.sm.api.call("GET", "/v1/fabric")[1]["sweeps"]
        with fattree.Sweeps(self.sm):
            for _ in range(ROUNDS):
                self.epoch += 1
                wanted = {vguid: rng.choice([None, *range(1, vswitches.HYPERVISORS + 1)]) for vguid in rng.sample(MANY, 3)}
                answers = dict(zip(wanted, self.together([lambda v=v, h=h: self.report(v, h, self.epoch) for v, h in wanted.items()])))
                for vguid, host in wanted.items():
                    answer = self.check(answers[vguid], 200)
                    if host:
                        self.assertEqual(answer["lid_move"]["state"], "applied")
                        given[vguid] = (answer["lid_move"]["lid"], host)
                    else:
                        given.pop(vguid, None)
                self.check_all(given, f"seed {seed}: {wanted}")
        self.assertGreater(self.sm.api.call("GET", "/v1/fabric")[1]["sweeps"] - before, ROUNDS // 5)
        self.assertEqual(self.heavy_sweep(), 0)
        self.check_all(given, "in the end")
        self.end()

    def check_all(self, given, when):
        """Each has its own LID by its PF's ways; LIDs that nobody has are dropped."""
        tables = self.net.tables()
        lids = {lid: self.lids[fabric.port_guid(host)] for lid, host in given.values()}
        self.assertEqual((len(lids), len(tables)), (len(given), SWITCHES), when)
        first = len(self.lids) + SWITCHES + 1
        for name, table in tables.items():
            self.assertEqual([table[lid] for lid in range(first, first + 6)],
                             [table[lids[lid]] if lid in lids else DROPPED for lid in range(first, first + 6)], f"{name}, {when}")

    def test_refusals(self):
        self.manager(limit=1)
        self.check(self.ask(VGUID, 99), 409, "unknown_port")
        self.check(self.sm.api.call("PUT", f"/v1/bindings/{VGUID}", {"epoch": 1, "port_guid": fabric.port_guid(2), "gid_index": 0,
                                                                     "pkeys": [], "lid_policy": "follow"}), 400, "bad_request")
        lid, _ = self.given(VGUID, 2)
        self.comes(VGUID, lid, (2, 1))
        self.check(self.sm.api.call("PUT", f"/v1/lids/{lid}", {"port_guid": fabric.port_guid(3)}), 409, "dynamic_lid")
        pf = self.lids[fabric.port_guid(3)]
        self.check(self.sm.api.call("PUT", f"/v1/lids/{pf}", {"port_guid": VGUID}), 409, "dynamic_lid")
        self.assertEqual(self.heavy_sweep(), 0)
        self.end()

    def test_none_are_given_unless_configured(self):
        self.manager(limit=0)
        self.check(self.ask(VGUID, 2), 507, "no_free_lid")
        self.assertEqual({table.get(lid, DROPPED) for table in self.net.tables().values() for lid in range(len(self.lids) + SWITCHES + 1, 40)},
                         {DROPPED})
        self.end()


@unittest.skipIf(fabric.missing(), fabric.missing())
class SharedPorts(unittest.TestCase):
    def test_no_vswitch(self):
        net = fabric.Fabric()
        self.addCleanup(net.close)
        sm = net.manager(conf="[lids]\ndynamic = 4", lids=True).start()
        status, problem = sm.api.call("PUT", f"/v1/bindings/{VGUID}", {
            "epoch": 1, "port_guid": fabric.port_guid(2), "gid_index": 1, "pkeys": [], "lid_policy": "dynamic"})
        self.assertEqual((status, problem["code"]), (409, "no_vswitch"))
        self.assertEqual(sm.stop(), 0)


class Moves(Case):
    def test_by_a_move(self):
        """POST /v1/moves: prepare says what a commit would cost; an old owner's report changes nothing."""
        self.manager()
        lid, _ = self.given(VGUID, 2)

        def move(epoch, phase):
            body = {"id": "0b6c5a5e-3d5d-4e0e-9c53-0d6f5f1f0a01", "epoch": epoch, "vguid": VGUID, "phase": phase, "lid_policy": "dynamic",
                    "from": {"port_guid": fabric.port_guid(2), "gid_index": 0}, "to": {"port_guid": fabric.port_guid(6), "gid_index": 0},
                    "pkeys": []}
            return self.sm.api.call("POST", "/v1/moves", body, timeout=70)
        plan, wire = self.wire(lambda: self.check(move(7, "prepare"), 200)["lid_move"])
        self.assertEqual((plan["state"], plan["lid"], wire["all"]), ("planned", lid, 0))
        done, wire = self.wire(lambda: self.check(move(7, "commit"), 200)["lid_move"])
        self.assertEqual((done["state"], done["lid"], wire["lft"]), ("applied", lid, plan["smps"]["lft"]))
        self.assertEqual(done["switches"], len(set(plan["switch_guids"])))
        self.check_ways(lid, self.lids[fabric.port_guid(6)])
        self.check(self.ask(VGUID, 2), 409, "superseded")
        self.check(self.sm.api.withdraw(VGUID, 3), 409, "superseded")
        self.check_ways(lid, self.lids[fabric.port_guid(6)])
        self.assertEqual(self.heavy_sweep(), 0)
        self.end()


    def moves_in_all(self, n):
        fabric.wait_for(f"{n} moves", lambda: self.sm.api.call("GET", "/v1/fabric")[1]["moves"]["queued"] == n)

    def test_withdrawn_before_it_was_given(self):
        """The request for it waits for another one at the same switches, and its sender has not waited for the answer."""
        self.manager(limit=4, conf=f"transaction_timeout {TIMEOUT}")
        self.net.console(f'Error "S1" 100 {fattree.LFT}')
        other = threading.Thread(target=self.ask, args=(OTHER, 3))
        other.start()
        self.moves_in_all(1)
        self.broken_off(VGUID, 2, 0.5)
        self.moves_in_all(2)
        answers = []
        withdrawn = threading.Thread(target=lambda: answers.append(
            self.sm.api.call("DELETE", f"/v1/bindings/{VGUID}?epoch={self.epoch}", timeout=70)))
        withdrawn.start()
        self.moves_in_all(3)
        self.net.console(f'Error "S1" 0 {fattree.LFT}')
        for thread in (other, withdrawn):
            thread.join()
        self.assertEqual(self.check(answers[0], 200)["state"], "withdrawn")
        self.assertEqual(self.sm.api.call("GET", "/v1/fabric")[1]["dynamic_lids"], 1)
        self.assertEqual(self.given(THIRD, 4)[0], len(self.lids) + SWITCHES + 2)    # OTHER has the first
        self.assertEqual(self.sm.stop(), 0)

    def test_an_owner_that_hands_over(self):
        """Nobody gets the LID between its withdrawal and the next owner's report."""
        self.manager(limit=3)
        lid, _ = self.given(VGUID, 2)
        withdraw = f"/v1/bindings/{VGUID}?epoch={self.epoch}"
        answer, wire = self.wire(lambda: self.sm.api.call("DELETE", f"{withdraw}&keep_lid=yes"))
        self.assertEqual((self.check(answer, 200)["state"], wire["all"]), ("withdrawn", 0))
        self.assertEqual(self.given(OTHER, 3)[0], lid + 1)
        self.assertEqual(self.given(VGUID, 5)[0], lid)
        withdraw = f"/v1/bindings/{VGUID}?epoch={self.epoch}"
        self.check(self.sm.api.call("DELETE", f"{withdraw}&keep_lid=yes"), 200)
        self.check(self.sm.api.call("DELETE", f"{withdraw}&keep_lid=maybe"), 400, "bad_request")
        self.assertEqual(self.check(self.sm.api.call("DELETE", withdraw), 200)["lid_move"]["lid"], lid)    # nobody comes
        self.assertEqual(self.given(THIRD, 4)[0], lid)
        self.end()

    def test_withdrawn_where_lids_cannot_move(self):
        """OpenSM came back with options under which no LID moves: the guest ends all the same, and its LID is nobody's."""
        self.manager()
        lids = {vguid: self.given(vguid, host)[0] for vguid, host in ((VGUID, 2), (OTHER, 3), (THIRD, 5))}
        for vguid, option in ((VGUID, "routing_engine lash"), (OTHER, "use_ucast_cache TRUE"), (THIRD, "lmc 1")):
            self.assertEqual(self.sm.stop(), 0)
            self.sm.opensm_conf = f"{option}\n"
            self.sm.start()
            self.check(self.ask(MANY[0], 2), 409, "cannot_move")
            self.assertEqual(self.check(self.sm.api.withdraw(vguid, self.epoch), 200)["state"], "withdrawn", option)
            self.assertEqual({table.get(lids[vguid], DROPPED) for table in self.net.tables().values()}, {DROPPED}, option)
            self.check(self.sm.api.call("GET", f"/v1/lids/{lids[vguid]}"), 404, "unknown_lid")
        self.assertEqual(self.sm.api.call("GET", "/v1/fabric")[1]["dynamic_lids"], 0)
        self.end()

    def test_an_earlier_owner_that_is_late(self):
        """The last word of its claim comes when the next owner has handed the vGUID over, too: the LID is not the earlier one's to free."""
        self.manager(limit=2)
        lid, _ = self.given(VGUID, 2)
        withdraw = f"/v1/bindings/{VGUID}?epoch={{}}&port_guid={{}}"
        self.check(self.sm.api.call("DELETE", withdraw.format(1, fabric.port_guid(2)) + "&keep_lid=yes"), 200)
        self.assertEqual(self.given(VGUID, 5)[0], lid)
        self.check(self.sm.api.call("DELETE", withdraw.format(2, fabric.port_guid(5)) + "&keep_lid=yes"), 200)
        for epoch, host in ((1, 2), (2, 2)):    # the second: it was refused that epoch when the other one had it
            answer, wire = self.wire(lambda e=epoch, h=host: self.sm.api.call("DELETE", withdraw.format(e, fabric.port_guid(h))))
            self.assertNotIn("lid_move", self.check(answer, 200))
            self.assertEqual((wire["all"], self.row(lid)["vguid"]), (0, VGUID))
        self.check_ways(lid, self.lids[fabric.port_guid(5)])
        self.assertEqual(self.given(OTHER, 3)[0], lid + 1)
        self.assertEqual(self.check(self.sm.api.call("DELETE", withdraw.format(2, fabric.port_guid(5))), 200)["lid_move"]["lid"], lid)
        self.check(self.sm.api.call("GET", f"/v1/lids/{lid}"), 404, "unknown_lid")
        self.end()


class Gone(Case):
    """DELETE /v1/ports, of a hypervisor that is not in the subnet, while LIDs wait."""

    def steer(self, what):
        self.check(self.sm.api.call("POST", f"/v1/lids/{what}"), 200)

    def in_thread(self, ask):
        """What it returns is in the list when it has ended."""
        found = []
        thread = threading.Thread(target=lambda: found.append(ask()))
        thread.start()
        self.addCleanup(thread.join)
        return thread, found

    def queued(self, n):
        fabric.wait_for("it waits", lambda: self.sm.api.call("GET", "/v1/fabric")[1]["moves"]["queued"] == n, 20)

    def unplug(self, host, gone=True):
        self.net.console(f'{"Unlink" if gone else "ReLink"} "H{host}"')
        fabric.wait_for("a sweep", lambda: (fabric.port_guid(host) in vswitches.lids(self.sm)) != gone, 20)
        fattree.heavy_sweep(self.sm)

    def forget(self, host):
        return self.in_thread(lambda: self.sm.api.call("DELETE", f"/v1/ports/{fabric.port_guid(host)}", timeout=70))

    def dynamic(self):
        return self.sm.api.call("GET", "/v1/fabric")[1]["dynamic_lids"]

    def test_of_a_lid_that_is_waited_for(self):
        """Else it would be given behind that, if its hypervisor is back by then."""
        self.manager()
        self.steer("pause")
        asks, asked = self.in_thread(lambda: self.ask(VGUID, 3))
        self.queued(1)
        self.unplug(3)
        forgets, forgot = self.forget(3)
        self.queued(2)
        self.steer("resume")
        asks.join()
        forgets.join()
        self.assertEqual(self.check(forgot[0], 200), {"port_guid": fabric.port_guid(3), "withdrawn": 1, "left": 0, "lids": 0})
        self.check(asked[0], 409, "unknown_port")
        self.unplug(3, gone=False)
        self.assertEqual(self.dynamic(), 0)
        self.end()

    def test_of_a_host_that_comes_back(self):
        """While that waits: then it keeps what it had."""
        self.manager()
        lid, _ = self.given(VGUID, 3)
        self.unplug(3)
        self.steer("pause")
        forgets, forgot = self.forget(3)
        self.queued(1)
        self.unplug(3, gone=False)
        self.steer("resume")
        forgets.join()
        self.check(forgot[0], 409, "port_is_there")
        self.assertEqual((self.row(lid)["vguid"], self.dynamic()), (VGUID, 1))
        self.check_ways(lid, self.lids[fabric.port_guid(3)])
        self.end()


tap.main(__name__)
