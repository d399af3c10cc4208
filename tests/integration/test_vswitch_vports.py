#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Virtual ports that go to another hypervisor with GUID, GID and LID: the plugin in a real OpenSM, hypervisors that are switches on ibsim.
SMPs are counted on the wire, ways followed through the switches, path records compared byte by byte."""

import http.client
import os
import random
import shutil
import signal
import threading
import time
import unittest

import fabric
import fattree
import tap
import vantage
import vswitches

VGUID = "0x02c9ab0000000011"
INSIDE_A_LEAF = 5    # SMPs: the leaf, two hypervisors, two ports
LOST = "Send completed with error"    # in OpenSM's log
SL = slice(104, 108)    # in a path record, as hexadecimal digits
SEED = os.environ.get("VHCA_SEED", "1")
KEYS = ("0x8001", "0x8002", "0x8003", "0x8004", "0x8005")
MANY = [f"0x{0x8010 + n:04x}" for n in range(40)]    # keys, more than a block has
ROUNDS = int(os.environ.get("VHCA_ROUNDS", "30"))


@unittest.skipIf(fabric.missing(), fabric.missing())
class Case(unittest.TestCase):
    def setUp(self):
        self.net = vswitches.VSwitches()
        self.addCleanup(self.net.close)

    def manager(self, engine="ftree", conf="", plugin="", hardware=None):
        """A subnet in which VGUID is at the first VF of hypervisor 1."""
        self.one_sl = engine != "dfsssp"    # else a path has the SL that keeps it free of deadlocks
        self.net.program(1, 1, VGUID)
        self.sm = self.net.manager(opensm_conf=f"routing_engine {engine}\n{conf}", conf=plugin, counter=os.environ["VHCA_SMPCOUNT_LIB"],
                                   hardware=hardware)
        self.sm.start()
        self.lids = vswitches.lids(self.sm)
        self.assertEqual(len(self.lids), vswitches.HYPERVISORS * (1 + vswitches.VFS))
        self.epoch = 1
        self.check(self.sm.api.bind(VGUID, 1, 1, [], gid_index=0), 200)
        self.watches = {}
        for host in (1, 4, 6):    # their own LIDs stay
            self.watches[host] = vantage.Vantage(self.net, host)
            self.addCleanup(self.watches[host].close)
        self.records = self.peers_records()

    def small_table(self, n):
        """The first VF of hypervisor n has room for 32 keys, all others for 64."""
        self.manager("minhop", hardware={"VHCA_SMALL_TABLES": hex(int(vswitches.own_guid(n, 1), 0) - 1)})

    def check(self, answer, status, code=None):
        self.assertEqual(answer[0], status, answer)
        if code:
            self.assertEqual(answer[1]["code"], code, answer)
        return answer[1]

    def peers_records(self):
        """What the SA tells each watch about every vport: by GID and by LID."""
        sm_lid = self.lids[fabric.port_guid(1)]
        wanted = [(int(guid, 0), None) for guid in self.net.guid.values()]
        wanted += [(None, self.lids[guid]) for guid in self.net.guid.values()]
        wanted.sort(key=str)
        answers = {}
        for host, watch in self.watches.items():
            found = watch.ask("records", sm_lid, int(fabric.port_guid(host), 0), *wanted)
            self.assertNotIn(None, found)
            answers[host] = found if self.one_sl else [r[:SL.start] + r[SL.stop:] for r in found]
        return answers

    def announce(self, to):
        """What comes before the hardware changes: the binding, at the next epoch."""
        self.epoch += 1
        source = self.net.place(VGUID)
        self.check(vswitches.move(self.sm, VGUID, self.epoch, source, to, "host"), 200)
        return source

    def report(self, source, to):
        """The report of a VF that is programmed: (answer, what went over the wire for it)."""
        before = self.sm.smps()
        answer = self.check(vswitches.move(self.sm, VGUID, self.epoch, source, to), 200)
        self.assertEqual(answer["state"], "committed")
        return answer["lid_move"], {kind: n - before[kind] for kind, n in self.sm.smps().items()}

    def moved(self, to):
        source = self.announce(to)
        self.net.exchange(source, to)
        return source, *self.report(source, to)

    def all_right(self):
        """Every LID leads to the place where its GUID is, and nobody has to know that it is another one than before."""
        for watch in self.watches.values():
            names = watch.ask("who", *(self.lids[guid] for guid in self.net.guid.values()))
            self.assertEqual(names, [f"F{n}-{v}" for n, v in self.net.guid])
        self.assertEqual(self.peers_records(), self.records)
        self.assertEqual(vswitches.lids(self.sm), self.lids)

    def records_are_back(self):
        """After what asks for a sweep, as a start of OpenSM does: at the beginning of one it has no LID for its own port."""
        fabric.wait_for("the records", lambda: self.peers_records() == self.records, 20, 0.5)

    def heavy_sweep(self):
        """LFT SMPs of one more heavy sweep."""
        before = self.sm.smps()["lft"]
        fattree.heavy_sweep(self.sm)
        return self.sm.smps()["lft"] - before

    def keys(self, guid, *pkeys):
        self.check(self.sm.api.call("PUT", f"/v1/members/{guid}", {"pkeys": list(pkeys)}), 200)
        fabric.wait_for("in effect", lambda: self.sm.api.call("GET", "/readyz")[1]["in_effect"], 20)

    def tables(self, *places):
        """The keys at these places, as the ports themselves have them."""
        return [sorted(key for key in KEYS if self.net.has(place, key)) for place in places]

    def end(self):
        self.assertEqual(self.sm.stop(), 0)
        self.assertNotIn(" ERR ", self.sm.log())


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
        self.moved((4, 2))
        fabric.wait_for("the new tree", lambda: members() == {"V1": [], "V4": [uplink, pf + 2], "V6": [uplink, pf]}, 20, 0.5)
        self.assertEqual(self.sm.sweeps(), sweeps)
        self.all_right()
        self.end()

    def test_keys_follow(self):
        """With the answer to the report, and without a sweep."""
        self.manager("minhop")
        self.keys(VGUID, "0x8001")
        sweeps = self.sm.sweeps()
        _, answer, wire = self.moved((2, 2))
        self.assertEqual(self.tables("F2-2", "F1-1"), [["0x8001"], []])
        self.assertEqual((answer["state"], wire["pkey_table"]), ("applied", 4))    # two ports, and the switch ports in front of them
        self.assertEqual(wire["all"], sum(wire[kind] for kind in ("lft", "port_info", "pkey_table")))
        self.assertEqual(self.sm.sweeps(), sweeps)
        self.all_right()
        self.assertEqual(self.heavy_sweep(), 0)
        self.assertEqual(self.tables("F2-2", "F1-1"), [["0x8001"], []])
        self.end()

    def two_tables(self):
        """A key that both tables have has another index in each."""
        self.manager("minhop")
        other = self.net.guid[2, 2]
        for guid, keys in ((VGUID, ("0x8001",)), (VGUID, ("0x8001", "0x8002")), (other, ("0x8002",)), (other, ("0x8002", "0x8003"))):
            self.keys(guid, *keys)
        self.assertEqual(self.tables("F1-1", "F2-2"), [["0x8001", "0x8002"], ["0x8002", "0x8003"]])

    def test_keys_that_share_an_index(self):
        self.two_tables()
        self.moved((2, 2))
        for _ in range(3):
            self.assertEqual(self.tables("F2-2", "F1-1"), [["0x8001", "0x8002"], ["0x8002", "0x8003"]])
            self.assertEqual(self.heavy_sweep(), 0)
        self.all_right()
        self.end()

    def test_a_sweep_that_finds_keys_at_the_same_index(self):
        self.two_tables()
        self.net.exchange(self.announce((2, 2)), (2, 2))
        for _ in range(3):
            fattree.heavy_sweep(self.sm)
            self.assertEqual(self.tables("F2-2", "F1-1"), [["0x8001", "0x8002"], ["0x8002", "0x8003"]])
        self.all_right()
        self.end()

    def keys_behind(self, place, guid):
        """Keys that are in the second block of the table there."""
        self.keys(guid, *MANY)
        self.keys(guid, *MANY[-4:])
        self.assertGreater(min(index for index, key in self.net.pkeys(place).items() if key in MANY), 31)
        return MANY[-4:]

    def tables_of_two_sizes(self):
        """Room for 32 keys where VGUID is, and for 64 at hypervisor 2: in its second block are a tenant's."""
        self.small_table(1)
        self.keys(VGUID, "0x8001")
        return self.keys_behind("F2-1", self.net.guid[2, 1])

    def have_moved(self, keys):
        """In the larger table nothing of them is left, and the smaller one has room for them."""
        small, large = self.net.pkeys("F1-1"), self.net.pkeys("F2-1")
        self.assertEqual(sorted(large.values()), ["0x8001", "0xffff"])
        self.assertEqual(sorted(small.values()), sorted([*keys, "0xffff"]))
        self.assertLess(max(small), 32)

    def test_keys_in_tables_of_two_sizes(self):
        keys = self.tables_of_two_sizes()
        _, answer, wire = self.moved((2, 1))
        self.have_moved(keys)
        self.assertEqual((answer["state"], wire["pkey_table"]), ("applied", 5))    # three blocks, two switch ports
        self.moved((1, 1))
        self.assertEqual([sorted(self.net.pkeys(place).values()) for place in ("F1-1", "F2-1")],
                         [["0x8001", "0xffff"], sorted([*keys, "0xffff"])])
        self.assertEqual(self.heavy_sweep(), 0)
        self.all_right()
        self.end()

    def test_keys_from_behind_the_end_of_the_new_table(self):
        """In what both tables have room for is nothing to write."""
        self.small_table(2)
        keys = self.keys_behind("F1-1", VGUID)
        _, answer, _ = self.moved((2, 1))
        small, large = self.net.pkeys("F2-1"), self.net.pkeys("F1-1")
        self.assertEqual((answer["state"], sorted(small.values()), list(large.values())), ("applied", sorted([*keys, "0xffff"]), ["0xffff"]))
        self.assertLess(max(small), 32)
        self.assertEqual(self.heavy_sweep(), 0)
        self.all_right()
        self.end()

    def test_a_sweep_that_finds_tables_of_two_sizes(self):
        keys = self.tables_of_two_sizes()
        self.net.exchange(self.announce((2, 1)), (2, 1))
        for _ in range(2):
            fattree.heavy_sweep(self.sm)
            self.have_moved(keys)
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


class Members(Case):
    """A binding's keys are the vGUID's own port's, if there is one, and no other's."""

    KEY = "0x8001"

    def wait_key(self, place, there=True):
        fabric.wait_for(f"{self.KEY} {'on' if there else 'off'} {place}", lambda: self.net.has(place, self.KEY) == there, 20)

    def settled(self):
        """No sweep is under way that a report has asked for."""
        fabric.wait_for("in effect", lambda: self.sm.api.call("GET", "/readyz")[1]["in_effect"], 20)

    def has_key(self):
        places = [*range(2, vswitches.HYPERVISORS + 1), *(f"F{n}-{v}" for n, v in self.net.guid)]    # H1 is OpenSM's own
        return [place for place in places if self.net.has(place, self.KEY)]

    def row(self, vguid=VGUID):
        row = self.check(self.sm.api.get(vguid), 200)
        rows = self.sm.api.call("GET", "/v1/bindings")[1]["bindings"]
        self.assertEqual([r for r in rows if r["vguid"] == vguid], [row])
        return row["state"], row["port_guid"], row["lid"], row["findings"]

    def test_keys_go_with_the_vport(self):
        self.manager("minhop")
        self.check(self.sm.api.bind(VGUID, 2, 3, [self.KEY], gid_index=0), 200)
        state, _, lid, findings = self.row()
        self.assertEqual((state, lid), ("elsewhere", self.lids[VGUID]))    # the hardware has not changed
        self.assertIn("no virtual port of the HCA", findings[0])
        self.settled()
        self.net.exchange((1, 1), (3, 2))
        self.check(vswitches.move(self.sm, VGUID, 2, (1, 1), (3, 2), pkeys=[self.KEY]), 200)
        self.wait_key("F3-2")
        fabric.wait_for("the SM's own copy", lambda: self.row() == ("granted", fabric.port_guid(3), self.lids[VGUID], []))
        self.assertEqual(self.has_key(), ["F3-2"])
        self.sm.kill()
        self.sm.start()
        self.assertEqual(self.row(), ("granted", fabric.port_guid(3), self.lids[VGUID], []))
        self.assertEqual(self.has_key(), ["F3-2"])
        self.check(self.sm.api.withdraw(VGUID, 2), 200)
        self.wait_key("F3-2", False)
        self.records_are_back()
        self.assertEqual(self.sm.stop(), 0)

    def stop_in_a_sweep(self):
        """Nothing answers any more from where a sweep has read the file; False if that was over too soon. ibsim forgets that its switch ports
        enforce partitions, so each sweep says so after that."""
        read, before = self.sm.sweeps(), self.sm.smps()["port_info"]
        swept = self.swept()
        self.sm.resweep()
        while self.sm.smps()["port_info"] == before:
            self.sm.alive()
        self.net.sim.send_signal(signal.SIGSTOP)
        time.sleep(0.1)
        if self.sm.sweeps() > read and self.swept() == swept:
            return True
        self.net.sim.send_signal(signal.SIGCONT)
        self.sm.rest()
        return False

    def swept(self):
        return self.sm.api.call("GET", "/v1/fabric")[1]["sweeps"]

    def test_a_key_that_comes_late_in_a_sweep_costs_no_other(self):
        self.manager("minhop", "transaction_timeout 3000\nmax_smps_on_wire 1\n")
        self.addCleanup(self.net.sim.send_signal, signal.SIGCONT)
        fabric.wait_for("a sweep that lasts", self.stop_in_a_sweep, 60)
        swept = self.swept()
        self.check(self.sm.api.bind(VGUID, 2, 1, [self.KEY], gid_index=0), 200)
        time.sleep(0.5)    # longer than the plugin waits for more reports
        self.assertEqual(self.swept(), swept)
        self.net.sim.send_signal(signal.SIGCONT)
        self.wait_key("F1-1")
        self.settled()
        self.sm.rest()
        self.assertEqual(self.swept(), swept + 1)    # the one that it came in
        self.end()

    def test_keys_that_come_with_the_report(self):
        """The answer waits for the partition file, which waits for more reports."""
        self.manager("minhop")
        source = self.announce((2, 2))
        self.net.exchange(source, (2, 2))
        self.check(vswitches.move(self.sm, VGUID, self.epoch, source, (2, 2), pkeys=[self.KEY]), 200)
        self.assertEqual(self.tables("F2-2", "F1-1"), [[self.KEY], []])
        self.check(vswitches.move(self.sm, VGUID, self.epoch, source, (2, 2), pkeys=["0x8002"]), 200)    # is there already
        self.assertEqual(self.tables("F2-2", "F1-1"), [["0x8002"], []])
        self.settled()
        self.all_right()
        self.end()

    def test_keys_that_a_sweep_has_not_read(self):
        """One tenant withdraws and the next binds while a sweep goes on: as it ends, OpenSM wants the first one's keys where they are."""
        self.manager("minhop", "transaction_timeout 1000\nmax_smps_on_wire 1\n")
        self.check(self.sm.api.bind(VGUID, 2, 1, [self.KEY], gid_index=0), 200)
        self.wait_key("F1-1")
        self.settled()
        self.net.console(f'Error "F1-1" 100 {fattree.PKEY_TABLE}')    # the next keys will be lost
        self.addCleanup(self.net.sim.send_signal, signal.SIGCONT)
        fabric.wait_for("a sweep that lasts", self.stop_in_a_sweep, 60)
        self.check(self.sm.api.withdraw(VGUID, 2), 200)
        answers = []
        report = threading.Thread(target=lambda: answers.append(vswitches.move(self.sm, VGUID, 3, (1, 1), (1, 1), pkeys=["0x8002"])))
        report.start()
        time.sleep(0.5)    # longer than the plugin waits for more reports
        self.assertEqual(answers, [])
        self.net.sim.send_signal(signal.SIGCONT)
        report.join()
        self.check(answers[0], 503, "keys_on_the_way")
        self.net.console(f'Error "F1-1" 0 {fattree.PKEY_TABLE}')
        fabric.wait_for("the report", lambda: vswitches.move(self.sm, VGUID, 3, (1, 1), (1, 1), pkeys=["0x8002"])[0] == 200, 60)
        self.assertEqual(self.tables("F1-1"), [["0x8002"]])
        self.records_are_back()
        self.assertEqual(self.sm.stop(), 0)

    def test_keys_that_a_new_master_has_found(self):
        """It keeps what it finds on ports until agents report; but where vports have moved meanwhile, that is another tenant's."""
        self.manager("minhop", plugin="inherit = 600\n")
        other = self.net.guid[2, 2]
        self.check(self.sm.api.bind(VGUID, 2, 1, ["0x8001"], gid_index=0), 200)
        self.check(self.sm.api.bind(other, 2, 2, ["0x8002"], gid_index=0), 200)
        self.settled()
        self.assertEqual(self.tables("F1-1", "F2-2"), [["0x8001"], ["0x8002"]])
        self.sm.kill()
        shutil.rmtree(self.sm.state_dir)
        self.net.exchange((1, 1), (2, 2))
        self.sm.start()
        self.assertEqual(self.tables("F1-1", "F2-2"), [["0x8001"], ["0x8002"]])    # nobody has reported yet
        self.check(vswitches.move(self.sm, VGUID, 3, (1, 1), (2, 2), pkeys=["0x8001"]), 200)
        self.assertEqual(self.tables("F1-1", "F2-2"), [["0x8001"], ["0x8001"]])
        self.check(self.sm.api.bind(other, 3, 1, ["0x8002"], gid_index=0), 200)
        self.settled()
        self.assertEqual(self.tables("F1-1", "F2-2"), [["0x8002"], ["0x8001"]])
        self.sm.kill()    # again, with what is known, and nothing has changed
        self.sm.start()
        self.assertEqual(self.tables("F1-1", "F2-2"), [["0x8002"], ["0x8001"]])
        self.assertEqual(self.sm.stop(), 0)

    def test_a_port_that_comes_later(self):
        """As of a VF that is programmed after it was claimed: until then its HCA's port has the key."""
        self.manager("minhop")
        late, stand_in = "0x02c9ab0000000022", self.net.guid[4, 3]
        self.check(self.sm.api.bind(late, 1, 4, [self.KEY], gid_index=0), 200)
        self.wait_key(4)
        self.assertEqual(self.row(late)[0], "pending")
        self.settled()
        self.net.program(4, 3, late)
        self.heavy_sweep()
        self.wait_key("F4-3")
        self.wait_key(4, False)
        fabric.wait_for("the SM's own copy", lambda: self.row(late)[::3] == ("granted", []))
        self.settled()
        self.net.program(4, 3, stand_in)    # as of a guest's reset: the key waits
        self.heavy_sweep()
        self.check(self.sm.api.bind(late, 2, 4, [self.KEY], gid_index=0), 200)
        self.heavy_sweep()
        self.assertEqual((self.row(late)[0], self.has_key()), ("pending", []))
        self.net.program(4, 3, late)
        self.heavy_sweep()
        self.assertEqual(self.has_key(), ["F4-3"])    # in the sweep that finds it
        self.end()


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

    def refused_until_keys_are_there(self, source, to):
        def report():
            status, answer = vswitches.move(self.sm, VGUID, self.epoch, source, to)
            self.assertTrue(status == 200 or answer["retryable"], answer)
            return status == 200
        self.check(vswitches.move(self.sm, VGUID, self.epoch, source, to), 503, "keys_on_the_way")
        self.assertFalse(report())    # a sweep that cannot read the table either drops the port
        self.net.console('Error "F%u-%u" 0 %u' % (*to, fattree.PKEY_TABLE))
        fabric.wait_for("the report", report, 60, 0.2)
        self.assertEqual(self.tables("F%u-%u" % to, "F%u-%u" % source), [["0x8001"], ["0x8002"]])
        fabric.wait_for("repaired", lambda: self.sm.api.call("GET", "/v1/fabric")[1]["moves"]["repairing"] == 0, 60)
        self.all_right()
        self.assertEqual(self.sm.stop(), 0)

    def lost_keys(self):
        """Hardware that has changed, and a port that answers no Set(P_KeyTable): it keeps the keys of the tenant before."""
        self.manager("minhop")
        self.keys(VGUID, "0x8001")
        self.keys(self.net.guid[2, 2], "0x8002")
        source = self.announce((2, 2))
        self.net.exchange(source, (2, 2))
        self.net.console(f'Error "F2-2" 100 {fattree.PKEY_TABLE}')
        return source

    def test_keys_that_are_lost(self):
        source = self.lost_keys()
        self.refused_until_keys_are_there(source, (2, 2))

    def test_keys_that_a_sweep_has_lost(self):
        source = self.lost_keys()
        fattree.heavy_sweep(self.sm)
        self.refused_until_keys_are_there(source, (2, 2))

    def test_keys_on_the_way(self):
        """Sent to the place where the vport was, and perhaps once more: by then another one may be there."""
        self.manager("minhop", "transaction_timeout 500\n")
        source = self.announce((2, 2))
        self.net.console(f'Error "F1-1" 100 {fattree.PKEY_TABLE}')
        before = self.sm.smps()["pkey_table"]
        self.check(self.sm.api.call("PUT", f"/v1/members/{VGUID}", {"pkeys": ["0x8001"]}), 200)
        fabric.wait_for("the keys", lambda: self.sm.smps()["pkey_table"] > before, every=0.005)
        self.check(vswitches.move(self.sm, VGUID, self.epoch, source, (2, 2)), 503, "keys_on_the_way")
        self.net.console(f'Error "F1-1" 0 {fattree.PKEY_TABLE}')
        self.net.exchange(source, (2, 2))
        fabric.wait_for("the move", lambda: vswitches.move(self.sm, VGUID, self.epoch, source, (2, 2))[0] == 200)
        self.assertEqual(self.tables("F2-2", "F1-1"), [["0x8001"], []])
        self.all_right()
        self.assertEqual(self.sm.stop(), 0)

    def test_keys_in_the_queue(self):
        """OpenSM sends four SMPs at a time: with no answer to any, these are on the way for longer than one is."""
        self.manager("minhop", "transaction_timeout 200\n")
        source, other = self.announce((2, 2)), self.net.guid[1, 2]
        self.addCleanup(self.net.sim.send_signal, signal.SIGCONT)
        self.net.sim.send_signal(signal.SIGSTOP)
        for guid in (other, VGUID):    # two SMPs each, and those of the first once more
            before = self.sm.api.counted()["pkey_table"]
            self.check(self.sm.api.call("PUT", f"/v1/members/{guid}", {"pkeys": ["0x8001"]}), 200)
            fabric.wait_for("the key", lambda: self.sm.api.counted()["pkey_table"] > before, every=0.005)
        begun = time.monotonic()
        while time.monotonic() < begun + 1.2:    # one is given up after 0.8 s; after 2 s OpenSM is asked for a sweep
            self.check(vswitches.move(self.sm, VGUID, self.epoch, source, (2, 2)), 503, "keys_on_the_way")
            time.sleep(0.05)
        self.net.sim.send_signal(signal.SIGCONT)
        self.net.exchange(source, (2, 2))
        fabric.wait_for("the move", lambda: vswitches.move(self.sm, VGUID, self.epoch, source, (2, 2))[0] == 200, 60, 0.5)
        fabric.wait_for("the keys", lambda: self.tables("F2-2", "F1-1") == [["0x8001"], []], 60, 0.5)
        self.all_right()
        self.assertEqual(self.sm.stop(), 0)

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

    TIMEOUT = 4000    # ms; of a transaction. A step waits for four: time to see that nobody answers, which takes seconds

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

    def held(self, to):
        """A move whose drain waits for the new hypervisor: (source, thread of the report, its answers)."""
        source, answers = self.announce(to), []
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
        fabric.wait_for("the hypervisor has lost it", lambda: LOST in self.sm.log(), 30)
        lids = [self.lids[self.net.guid[at]] for at in (source, to)]
        fabric.wait_for("nobody at another leaf reaches them", lambda: not any(self.watches[6].ask("who", *lids)), 30)
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


    def test_keys_that_have_no_room_at_the_new_place(self):
        self.small_table(2)
        self.check(self.sm.api.bind(VGUID, 2, 1, MANY, gid_index=0), 200)
        fabric.wait_for("in effect", lambda: self.sm.api.call("GET", "/readyz")[1]["in_effect"], 20)
        self.assertEqual(len(self.net.pkeys("F1-1")), len(MANY) + 1)
        self.net.exchange((1, 1), (2, 1))
        before = self.sm.smps()["all"]
        for phase in ("prepare", "commit", "commit"):
            answer = self.check(vswitches.move(self.sm, VGUID, 3, (1, 1), (2, 1), phase=phase, pkeys=MANY), 507, "table_full")
            self.assertIn("40 keys are needed, its table has room for 31", answer["detail"])
        self.assertEqual(self.check(self.sm.api.get(VGUID), 200)["epoch"], 2)
        self.assertEqual(self.sm.smps()["all"], before)
        fattree.heavy_sweep(self.sm)    # it is there now, and OpenSM has left out what has no room
        self.check(vswitches.move(self.sm, VGUID, 3, (1, 1), (2, 1), pkeys=MANY), 507, "table_full")
        self.check(vswitches.move(self.sm, VGUID, 3, (1, 1), (2, 1), pkeys=MANY[-31:]), 200)
        self.assertEqual(sorted(self.net.pkeys("F2-1").values()), sorted([*MANY[-31:], "0xffff"]))
        self.all_right()
        self.assertEqual(self.sm.stop(), 0)

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


class Engines(fattree.EachEngine, Case):
    MOVES = 12

    def run_engine(self, engine):
        rng = random.Random(engine)
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


class BesideSweeps(fattree.EachEngine, Case):
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
        for guid, keys in kept.items():
            for n in range(len(keys)):
                self.keys(guid, *keys[:n + 1])
        return {guid: sorted(keys) for guid, keys in kept.items()}

    def has_its_keys(self, at, kept):
        self.assertEqual(self.tables("F%u-%u" % at), [kept[self.net.guid[at]]], at)

    def run_engine(self, engine):
        rng, self.repeated = random.Random(f"{SEED} {engine}"), 0
        self.manager(engine)
        places, kept = sorted(self.net.guid), self.tables_of_all()
        before = self.sm.api.call("GET", "/v1/fabric")[1]["sweeps"]
        with fattree.Sweeps(self.sm):
            for n in range(ROUNDS):
                to = rng.choice([at for at in places if at != self.net.place(VGUID)])
                source = self.announce(to)
                self.net.exchange(source, to)
                pkeys = rng.choice(((), KEYS[3:4], KEYS[4:], KEYS[3:]))    # often others than with the report before
                self.report_until_it_is_in_effect(source, to, pkeys, f"seed {SEED}, move {n}: {source} to {to}")
                self.has_its_keys(to, {**kept, VGUID: sorted({*kept[VGUID], *pkeys})})    # the other one may be known to the next sweep only
        swept = self.sm.api.call("GET", "/v1/fabric")[1]["sweeps"] - before
        print(f"# {engine}: seed {SEED}, {ROUNDS} moves, {swept} sweeps, {self.repeated} reports repeated", flush=True)
        kept[VGUID] = sorted({*kept[VGUID], *pkeys})
        fattree.heavy_sweep(self.sm)    # ibsim raises no trap for a vport that the last one has missed
        self.all_right()
        for place in places:
            self.has_its_keys(place, kept)
        self.assertEqual(self.heavy_sweep(), 0)
        self.end()


tap.main(__name__)
