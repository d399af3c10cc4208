#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Dynamic LIDs of many guests that start, and end, at the same time: they are given together, each block of a switch's table is sent once,
and each has an outcome of its own. SMPs are counted on the wire, entries read from the switches."""

import os
import threading
import time

import fabric
import fattree
import tap
import test_vswitch_dynamic as dynamic
import vswitches


class Storm(dynamic.Case):
    """Guests that all start at once."""
    def guests(self, n):
        return {f"0x02c9ab0000003{i:02x}1": i % vswitches.HYPERVISORS + 1 for i in range(n)}

    def steer(self, what):
        self.check(self.sm.api.call("POST", f"/v1/lids/{what}"), 200)

    def moves(self):
        return self.sm.api.call("GET", "/v1/fabric")[1]["moves"]

    def held(self, requests):
        """Their answers; all of them wait before the first begins."""
        answers = []
        self.steer("pause")
        asked = threading.Thread(target=lambda: answers.extend(self.together(requests)))
        asked.start()
        fabric.wait_for("all wait", lambda: self.moves()["queued"] == len(requests), 60)
        self.steer("resume")
        asked.join()
        return answers

    def storm(self, guests, epoch):
        return self.held([lambda v=v, h=h: self.report(v, h, epoch) for v, h in guests.items()])

    def lids_of(self, answers, state="applied"):
        moved = [self.check(answer, 200)["lid_move"] for answer in answers]
        self.assertEqual({move["state"] for move in moved}, {state})
        return [move["lid"] for move in moved]

    def check_lids(self, guests, lids):
        """On every switch each has its PF's ways."""
        self.assertEqual(len(set(lids)), len(guests))
        tables = self.net.tables()
        self.assertEqual(len(tables), dynamic.SWITCHES)
        for lid, host in zip(lids, guests.values()):
            pf = self.lids[fabric.port_guid(host)]
            self.assertEqual([(name, table[lid]) for name, table in tables.items() if table[lid] != table[pf]], [])

    def test_blocks_are_sent_once(self):
        """SMPs are those of blocks, not of LIDs; the same when all end."""
        self.manager(limit=200)
        guests = self.guests(200)
        answers, wire = self.wire(lambda: self.storm(guests, 1))
        lids = self.lids_of(answers)
        blocks = len({lid // 64 for lid in lids})
        self.assertLessEqual(blocks, 5)
        self.assertEqual((wire["lft"], wire["all"]), (blocks * dynamic.SWITCHES, blocks * dynamic.SWITCHES))
        self.assertEqual(self.moves()["lft_smps"], wire["lft"])
        self.check_lids(guests, lids)
        self.assertEqual(self.heavy_sweep(), 0)
        answers, wire = self.wire(lambda: self.held([lambda v=v: self.report(v, None, 1) for v in guests]))
        self.lids_of(answers)
        self.assertEqual(wire["all"], blocks * dynamic.SWITCHES)
        self.assertEqual({table[lid] for table in self.net.tables().values() for lid in lids}, {dynamic.DROPPED})
        self.assertEqual(self.sm.api.call("GET", "/v1/fabric")[1]["dynamic_lids"], 0)
        self.end()

    def test_on_a_slow_disk(self):
        """Reports that come together share the waits for it."""
        self.manager(limit=40, slow=os.environ["VHCA_SLOW_DISK_LIB"])
        guests = self.guests(40)
        self.sm.slow_down(250)
        start = time.monotonic()
        answers = self.together([lambda v=v, h=h: self.report(v, h, 1) for v, h in guests.items()])
        self.assertLess(time.monotonic() - start, 40 * 0.25)
        self.sm.slow_down(0)
        self.check_lids(guests, self.lids_of(answers))
        self.end()

    def test_no_more_than_there_may_be(self):
        """Who gets none changes nothing for the others."""
        self.manager(limit=10)
        answers = self.together([lambda v=v, h=h: self.report(v, h, 1) for v, h in self.guests(15).items()])
        self.assertEqual(sorted(answer[0] for answer in answers), [200] * 10 + [507] * 5)
        self.assertEqual({answer[1]["code"] for answer in answers if answer[0] != 200}, {"no_free_lid"})
        given = {vguid: (answer[1]["lid_move"]["lid"], host) for (vguid, host), answer in zip(self.guests(15).items(), answers) if answer[0] == 200}
        self.check_lids({vguid: host for vguid, (_, host) in given.items()}, [lid for lid, _ in given.values()])
        self.end()

    def test_no_report_that_gets_none_is_taken(self):
        """The look before a report counts those that wait: who would get no LID hears so before his report is on disk."""
        self.manager(limit=10)
        guests, answers = self.guests(15), []
        self.steer("pause")
        asked = threading.Thread(target=lambda: answers.extend(self.together([lambda v=v, h=h: self.report(v, h, 1) for v, h in guests.items()])))
        asked.start()
        fabric.wait_for("ten wait", lambda: self.moves()["queued"] == 10, 60)
        given = {vguid for vguid in guests if self.sm.api.call("GET", f"/v1/bindings/{vguid}")[0] == 200}
        self.steer("resume")
        asked.join()
        self.assertEqual(len(given), 10)
        self.assertEqual([(answer[0] == 200, answer[1].get("code")) for answer in answers],
                         [(vguid in given, None if vguid in given else "no_free_lid") for vguid in guests])
        self.assertEqual({v for v in guests if self.sm.api.call("GET", f"/v1/bindings/{v}")[0] == 200}, given)
        self.end()

    def test_a_switch_that_loses_them(self):
        """All say so, and one sweep repairs all."""
        self.manager(limit=20)
        guests = self.guests(20)
        self.net.console(f'Error "S2" 100 {fattree.LFT}')
        lids = self.lids_of(self.storm(guests, 1), "repairing")
        self.net.console(f'Error "S2" 0 {fattree.LFT}')
        fabric.wait_for("the repair", lambda: self.moves()["repairing"] == 0, 60, 0.5)
        self.assertEqual(self.moves()["repaired"], len({lid // 64 for lid in lids}))
        self.check_lids(guests, lids)
        self.assertEqual(self.sm.stop(), 0)

    def test_killed_in_the_middle(self):
        """What was written is carried out by the next sweep, all of it."""
        self.manager(limit=100)
        guests = self.guests(100)
        self.net.console(f'Error "S1" 100 {fattree.LFT}')
        self.steer("pause")
        asked = [threading.Thread(target=self.broken_off, args=guest) for guest in guests.items()]
        for thread in asked:
            thread.start()
        fabric.wait_for("all wait", lambda: self.moves()["queued"] == len(guests), 60)
        before = self.sm.smps()["lft"]
        self.steer("resume")
        fabric.wait_for("SMPs", lambda: self.sm.smps()["lft"] >= before + dynamic.SWITCHES)
        self.sm.kill()
        for thread in asked:
            thread.join()
        self.net.console(f'Error "S1" 0 {fattree.LFT}')
        self.sm.start()
        self.assertEqual(self.sm.api.call("GET", "/v1/fabric")[1]["dynamic_lids"], len(guests))
        lids = [self.in_file(vguid) for vguid in guests]
        self.check_lids(guests, lids)
        answers, wire = self.wire(lambda: self.together([lambda v=v, h=h: self.report(v, h, 1000) for v, h in guests.items()]))
        self.assertEqual((self.lids_of(answers), wire["all"]), (lids, 0))
        self.assertEqual(self.sm.stop(), 0)


tap.main(__name__)
