#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""P_Keys of virtual ports that go to another hypervisor, or change tenants: no table has another one's when a report is accepted."""

import os
import pathlib
import shutil
import signal
import threading
import time

import fabric
import fattree
import tap
import vswitches
from vport_case import MANY, VGUID, Case

ASKED_AGAIN = 2    # s, after which OpenSM is asked for a sweep that sends keys without an answer once more


class Tables(Case):
    """They are the places', and the keys the vports'."""

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

    def moves_that_wait(self, to, epoch, *moves):
        """What (source, to) cost in P_Key table SMPs that wait, and so begin together: for a move between hypervisors 1 and 6, which loses blocks
        until that is sent again. The hardware has changed."""
        source = self.announce(to)
        self.net.exchange(source, to)
        self.net.console(f'Error "V6" 100 {fattree.LFT}')
        reports = [(VGUID, self.epoch, source, to), *((self.net.guid[at], epoch, of, at) for of, at in moves)]
        before, answers, threads = self.sm.smps()["pkey_table"], [], []
        for n, report in enumerate(reports, 1):
            threads.append(threading.Thread(target=lambda r=report: answers.append(vswitches.move(self.sm, *r))))
            threads[-1].start()
            fabric.wait_for("the report", lambda n=n: self.sm.api.call("GET", "/v1/fabric")[1]["moves"]["queued"] == n, every=0.005)
        self.net.console(f'Error "V6" 0 {fattree.LFT}')
        for thread in threads:
            thread.join()
        self.assertEqual([self.check(answer, 200)["lid_move"]["state"] for answer in answers], ["applied"] * len(reports))
        self.assertEqual(self.sm.api.call("GET", "/v1/fabric")[1]["moves"]["most_at_once"], len(moves))
        return self.sm.smps()["pkey_table"] - before

    def test_keys_of_moves_that_begin_together(self):
        """OpenSM looks at all ports once, and sends nobody's keys twice."""
        self.manager("minhop", "max_wire_smps 1\n")
        one, other = self.net.guid[1, 2], self.net.guid[5, 2]
        for guid, host in ((one, 1), (other, 5)):
            self.keys(guid, f"0x800{host}")
            self.check(self.sm.api.bind(guid, 1, host, [], gid_index=0), 200)
            self.net.exchange((host, 2), (host + 1, 2))
        self.assertEqual(self.moves_that_wait((6, 3), 2, ((1, 2), (2, 2)), ((5, 2), (6, 2))), 2 * 4)
        self.assertEqual(self.tables("F2-2", "F1-2", "F6-2", "F5-2"), [["0x8001"], [], ["0x8005"], []])
        self.keys(other)
        for host in (1, 5):
            self.net.exchange((host, 2), (host + 1, 2))
        self.assertEqual(self.moves_that_wait((1, 1), 3, ((2, 2), (1, 2)), ((6, 2), (5, 2))), 4)    # the second has none to send
        self.assertEqual(self.tables("F1-2", "F2-2"), [["0x8001"], []])
        self.assertEqual(self.heavy_sweep(), 0)
        self.all_right()
        self.assertEqual(self.sm.stop(), 0)

    def test_keys_that_opensm_leaves_out(self):
        """The place has room for them, but not beside the operator's own partitions for all ports."""
        base = os.path.join(self.net.dir, "base.conf")
        with open(base, "w", encoding="ascii") as f:
            f.write("Default=0x7fff:ALL=full;\n" + "".join(f"Own{n}=0x{0x100 + n:04x}:ALL=full;\n" for n in range(4)))
        self.small_table(2, base_file=base)
        self.check(self.sm.api.bind(VGUID, 2, 1, MANY[:30], gid_index=0), 200)
        fabric.wait_for("in effect", lambda: self.sm.api.call("GET", "/readyz")[1]["in_effect"], 20)
        self.assertEqual(len(self.net.pkeys("F1-1")), 5 + 30)
        self.net.exchange((1, 1), (2, 1))
        left_out = set()
        for _ in range(2):    # it moves, and it is there
            answer = self.check(vswitches.move(self.sm, VGUID, 3, (1, 1), (2, 1), pkeys=MANY[:30]), 503, "keys_on_the_way")
            left_out |= set(MANY[:30]) - set(self.net.pkeys("F2-1").values())
            self.assertIn(answer["detail"].split("P_Key ")[1][:6], left_out)
        self.assertEqual(len(left_out), 3)
        self.check(vswitches.move(self.sm, VGUID, 3, (1, 1), (2, 1), pkeys=MANY[:27]), 200)
        self.assertLessEqual(set(MANY[:27]), set(self.net.pkeys("F2-1").values()))
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
        def same():    # keys may arrive between the two questions
            row = self.check(self.sm.api.get(vguid), 200)
            return row in self.sm.api.rows("bindings") and row
        row = fabric.wait_for("the row in the list, too", same, 5)
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
        self.manager("minhop", "transaction_timeout 3000\nmax_wire_smps 1\n")
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
        self.manager("minhop", "transaction_timeout 1000\nmax_wire_smps 1\n")
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


class Lost(Case):
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
        self.manager("minhop", "transaction_timeout 1500\n")
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

    def deaf_to_keys(self, conf=""):
        """Ports take keys, and OpenSM does not hear of it, as long as there is this file."""
        unheard = os.path.join(self.net.dir, "no-key-answers")
        self.manager("minhop", conf, hardware={"VHCA_NO_KEY_ANSWERS": unheard})
        return pathlib.Path(unheard)

    def declare(self, guid, *pkeys):
        """Without waiting for more than the first SMP."""
        before = self.sm.api.counted()["pkey_table"]
        self.declared = time.monotonic()
        self.check(self.sm.api.call("PUT", f"/v1/members/{guid}", {"pkeys": list(pkeys)}), 200)
        fabric.wait_for("the keys", lambda: self.sm.api.counted()["pkey_table"] > before, every=0.005)

    def reported(self, place):
        """Asked for until it is accepted; how its LID moved."""
        source = self.net.place(VGUID)

        def accepted():
            status, answer = vswitches.move(self.sm, VGUID, self.epoch, source, place)
            return status == 200 and answer["lid_move"]
        return fabric.wait_for("the report", accepted, 60, 0.02)

    def declare_in_a_sweep(self, *pkeys):
        """OpenSM reads them in it, after discovery."""
        before = self.sm.smps()["all"]
        self.addCleanup(self.net.sim.send_signal, signal.SIGCONT)
        self.sm.resweep()
        fabric.wait_for("the sweep", lambda: self.sm.smps()["all"] > before, every=0.001)
        self.net.sim.send_signal(signal.SIGSTOP)
        self.check(self.sm.api.call("PUT", f"/v1/members/{VGUID}", {"pkeys": list(pkeys)}), 200)
        time.sleep(0.1)    # longer than the plugin waits for more
        self.net.sim.send_signal(signal.SIGCONT)

    def keys_that_were_not_acknowledged(self, declare):
        """The port has them, and OpenSM knows it to have those of before: if these are wanted again, there would be nothing to send."""
        unheard = self.deaf_to_keys("transaction_timeout 100\n")
        self.keys(VGUID, "0x8001")
        unheard.touch()
        given_up = self.given_up()
        declare("0x8002")
        fabric.wait_for("the other keys", lambda: self.tables("F1-1") == [["0x8002"]], every=0.01)
        self.await_given_up(given_up)
        return unheard

    def given_up(self):
        """SMPs with keys that OpenSM does not wait for any more."""
        return self.sm.log().count("Set method failed for attribute 0x16")

    def await_given_up(self, before):
        """Those to a port and to the switch port in front of it."""
        fabric.wait_for("OpenSM gives them up", lambda: self.given_up() >= before + 2)

    def have_the_first_keys(self):
        self.reported((1, 1))
        self.assertEqual(self.tables("F1-1"), [["0x8001"]])
        self.records_are_back()
        self.assertEqual(self.sm.stop(), 0)

    def test_keys_back(self):
        self.keys_that_were_not_acknowledged(lambda *keys: self.declare(VGUID, *keys)).unlink()
        sweeps = self.sm.sweeps()
        self.check(self.sm.api.call("PUT", f"/v1/members/{VGUID}", {"pkeys": ["0x8001"]}), 200)
        self.reported((1, 1))
        swept = self.sm.sweeps()
        if time.monotonic() < self.declared + ASKED_AGAIN:
            self.assertEqual(swept, sweeps)
        self.have_the_first_keys()

    def test_keys_back_in_a_sweep(self):
        self.keys_that_were_not_acknowledged(lambda *keys: self.declare(VGUID, *keys)).unlink()
        self.declare_in_a_sweep("0x8001")
        self.have_the_first_keys()

    def test_keys_back_after_those_of_a_sweep(self):
        unheard = self.keys_that_were_not_acknowledged(self.declare_in_a_sweep)
        self.check(self.sm.api.call("PUT", f"/v1/members/{VGUID}", {"pkeys": ["0x8001"]}), 200)
        time.sleep(2)    # sweeps go on as long as one hears nothing: OpenSM has given up what it has sent before these
        unheard.unlink()
        self.have_the_first_keys()

    def test_keys_where_those_of_another_vport_were_not_acknowledged(self):
        """It was sent away since: what is known of the table stays with the place."""
        unheard = self.deaf_to_keys("transaction_timeout 50\n")
        for guid in (VGUID, self.net.guid[2, 2]):
            self.keys(guid, "0x8001")
        source, given_up = self.announce((2, 2)), self.given_up()
        unheard.touch()
        self.declare(VGUID, "0x8002")
        self.await_given_up(given_up)
        unheard.unlink()
        self.net.exchange(source, (2, 2))
        self.assertEqual(self.reported((2, 2))["state"], "applied")
        self.assertEqual(self.tables("F2-2", "F1-1"), [["0x8002"], ["0x8001"]])
        self.records_are_back()
        self.assertEqual(self.sm.stop(), 0)

    def test_keys_that_a_repetition_overtakes(self):
        """What has no answer is sent again: after the keys that have come meanwhile."""
        self.manager("minhop", "transaction_timeout 1000\nmax_wire_smps 100\n")
        self.keys(VGUID, "0x8001")
        self.addCleanup(self.net.sim.send_signal, signal.SIGCONT)
        self.net.sim.send_signal(signal.SIGSTOP)
        begun = time.monotonic()
        self.declare(VGUID, "0x8002")
        time.sleep(0.3)
        self.check(self.sm.api.call("PUT", f"/v1/members/{VGUID}", {"pkeys": ["0x8001"]}), 200)
        time.sleep(max(0, begun + 1.2 - time.monotonic()))    # one of them has been sent again, the other has not
        self.net.sim.send_signal(signal.SIGCONT)
        self.reported((1, 1))
        self.assertEqual(self.tables("F1-1"), [["0x8001"]])
        self.records_are_back()
        self.assertEqual(self.sm.stop(), 0)

    def keys_sent_twice(self):
        """Of the same keys, one SMP is lost, and will be sent once more in a second; the next one, for which another port's keys gave the occasion,
        is acknowledged."""
        self.manager("minhop", "transaction_timeout 1000\nmax_wire_smps 100\n", hardware={"VHCA_SILENT_LOSS": "1"})
        self.keys(VGUID, "0x8001")
        self.net.console(f'Error "F1-1" 100 {fattree.PKEY_TABLE}')
        self.declare(VGUID, "0x8002")
        self.net.console(f'Error "F1-1" 0 {fattree.PKEY_TABLE}')
        self.declare(self.net.guid[3, 1], "0x8003")
        fabric.wait_for("the keys at the port", lambda: self.tables("F1-1") == [["0x8002"]], every=0.005)

    def test_keys_that_come_twice(self):
        self.keys_sent_twice()
        self.check(self.sm.api.call("PUT", f"/v1/members/{VGUID}", {"pkeys": ["0x8001"]}), 200)
        self.reported((1, 1))
        self.assertEqual(self.tables("F1-1"), [["0x8001"]])
        time.sleep(1.2)
        self.assertEqual(self.tables("F1-1"), [["0x8001"]])
        self.assertEqual(self.sm.stop(), 0)

    def test_keys_that_come_twice_to_where_another_vport_is(self):
        self.keys_sent_twice()
        source = self.announce((2, 2))
        self.net.exchange(source, (2, 2))
        self.reported((2, 2))
        self.assertEqual(self.tables("F2-2", "F1-1"), [["0x8002"], []])
        time.sleep(1.2)
        self.assertEqual(self.tables("F2-2", "F1-1"), [["0x8002"], []])
        self.assertEqual(self.sm.stop(), 0)

    def test_keys_in_the_queue(self):
        """OpenSM sends four SMPs at a time: with no answer to any, these are on the way for longer than one is."""
        self.manager("minhop", "transaction_timeout 200\n")
        source, other = self.announce((2, 2)), self.net.guid[1, 2]
        self.addCleanup(self.net.sim.send_signal, signal.SIGCONT)
        self.net.sim.send_signal(signal.SIGSTOP)
        begun = time.monotonic()
        for guid in (other, VGUID):    # two SMPs each, and those of the first once more
            before = self.sm.api.counted()["pkey_table"]
            self.check(self.sm.api.call("PUT", f"/v1/members/{guid}", {"pkeys": ["0x8001"]}), 200)
            fabric.wait_for("the key", lambda: self.sm.api.counted()["pkey_table"] > before, every=0.005)
        while True:
            answer = vswitches.move(self.sm, VGUID, self.epoch, source, (2, 2))
            if time.monotonic() > begun + ASKED_AGAIN - 0.4:    # one is given up after 0.8 s
                break
            self.check(answer, 503, "keys_on_the_way")
            time.sleep(0.05)
        self.net.sim.send_signal(signal.SIGCONT)
        self.net.exchange(source, (2, 2))
        fabric.wait_for("the move", lambda: vswitches.move(self.sm, VGUID, self.epoch, source, (2, 2))[0] == 200, 60, 0.5)
        fabric.wait_for("the keys", lambda: self.tables("F2-2", "F1-1") == [["0x8001"], []], 60, 0.5)
        self.all_right()
        self.assertEqual(self.sm.stop(), 0)


tap.main(__name__)
