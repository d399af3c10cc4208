#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Moves of a vGUID from port to port at libvhcasm.so inside a real OpenSM."""


import fabric
import tap

from plugin_case import VGUID1, VGUID2, Case


class Moves(Case):
    """VGUID1 lives at host 2, index 3, and goes to host 3, index 9. What a driver asks for is asked of the real SA."""

    def setUp(self):
        self.sm = self.manager().start()
        self.api = self.sm.api
        self.fabric.sa_guid("set", 2, 3, VGUID1)
        self.check(self.api.bind(VGUID1, 1, 2, ["0x8001"], gid_index=3), 200)
        self.wait_key(2, "0x8001")
        self.assertEqual(self.state(), "granted")

    def tearDown(self):
        self.assertEqual(self.sm.stop(), 0)

    def state(self):
        return self.check(self.api.get(VGUID1), 200)["state"]

    def commit(self, evicted):
        doc = self.check(self.api.move(VGUID1, 2, (2, 3), (3, 9), ["0x8001"]), 200)
        self.assertEqual((doc["state"], doc["evicted"], doc["smps"], doc["lid"]),
                         ("committed", evicted, int(evicted), self.fabric.lid(3)))
        return doc

    def writes(self, host):
        """How many blocks OpenSM wrote into a port's GUID table: ibsim refuses them, and OpenSM's log dumps the refusals."""
        return sum("(GUIDInfo)" in dump and f"Initial path: 0,1,{host}\n" in dump
                   for dump in self.sm.log().split("SMP dump:"))

    def test_report_before_the_grant(self):
        self.fabric.sa_guid("set", 3, 9, VGUID1)    # declined
        self.commit(evicted=True)
        self.assertEqual(self.state(), "pending")
        self.fabric.sa_guid("set", 3, 9, VGUID1)
        self.assertEqual(self.state(), "granted")
        self.assertEqual(self.fabric.path_lid(VGUID1), self.fabric.lid(3))
        self.commit(evicted=False)    # again
        self.assertEqual(self.state(), "granted")

    def test_report_after_the_grant(self):
        self.fabric.sa_guid("delete", 2, 3, VGUID1)
        self.fabric.sa_guid("set", 3, 9, VGUID1)
        self.commit(evicted=False)
        self.assertEqual(self.state(), "granted")
        self.assertEqual(self.fabric.path_lid(VGUID1), self.fabric.lid(3))

    def test_late_delete_from_the_old_port(self):
        self.commit(evicted=True)
        self.fabric.sa_guid("set", 3, 9, VGUID1)
        self.fabric.sa_guid("delete", 2, 3, VGUID1)
        self.assertEqual(self.state(), "granted")
        self.sm.resweep()
        self.fabric.sa_guid("delete", 2, 3, VGUID1)
        self.assertEqual(self.state(), "granted")
        self.assertEqual(self.fabric.path_lid(VGUID1), self.fabric.lid(3))

    def test_old_index_is_used_again(self):
        """At once, and after the new owner's grant: neither alias takes the other along."""
        self.commit(evicted=True)
        self.fabric.sa_guid("set", 2, 3, VGUID2)
        self.check(self.api.bind(VGUID2, 1, 2, [], gid_index=3), 200)
        self.assertEqual(self.check(self.api.get(VGUID2), 200)["state"], "granted")
        self.fabric.sa_guid("set", 3, 9, VGUID1)
        self.fabric.sa_guid("delete", 2, 3, VGUID2)
        self.fabric.sa_guid("set", 2, 3, "0x02c9ab0000000003")
        self.assertEqual(self.state(), "granted")

    def test_binding_at_a_higher_epoch_evicts(self):
        """A silent host: nothing but the new owner's report."""
        self.check(self.api.bind(VGUID1, 2, 3, [], gid_index=9), 200)
        self.fabric.sa_guid("set", 3, 9, VGUID1)
        self.assertEqual(self.state(), "granted")
        self.check(self.api.bind(VGUID1, 3, 3, [], gid_index=10), 200)
        self.fabric.sa_guid("set", 3, 10, VGUID1)
        self.assertEqual(self.state(), "granted")
        self.assertEqual(self.sm.stop(), 0)    # the log is complete now
        self.assertIn(f"evicted from port {fabric.port_guid(2)} index 3", self.sm.log())

    def test_the_old_ports_table_is_written(self):
        self.assertIn(VGUID1, self.fabric.guids(2))
        self.commit(evicted=True)
        self.assertNotIn(VGUID1, self.fabric.guids(2))
        self.assertEqual(self.sm.stop(), 0)    # the log is complete now
        self.assertEqual(self.writes(2), 2)    # the grant, the eviction

    def test_groups_are_left(self):
        """The SA takes joins from the port of the first join only, and withdraws no alias that is a member."""
        self.assertEqual(self.fabric.join(2, VGUID1), "0x0000")
        self.assertNotEqual(self.fabric.sa_request("delete", 2, 3, VGUID1), "0x0000")
        self.commit(evicted=True)
        self.fabric.sa_guid("set", 3, 9, VGUID1)
        self.assertEqual(self.fabric.join(3, VGUID1), "0x0000")
        self.fabric.sa_guid("delete", 2, 3, VGUID1)
        self.assertEqual(self.state(), "granted")

    def test_there_and_back_many_times(self):
        places = [(2, 3), (3, 9)]
        for epoch in range(2, 12):
            source, to = places[epoch % 2], places[1 - epoch % 2]
            doc = self.check(self.api.move(VGUID1, epoch, source, to), 200)
            self.assertTrue(doc["evicted"], doc)
            self.fabric.sa_guid("set", *to, VGUID1)
            self.fabric.sa_guid("delete", *source, VGUID1)
            self.assertEqual(self.state(), "granted")

    def test_prepare_only_tells(self):
        before = self.check(self.api.get(VGUID1), 200)
        doc = self.check(self.api.move(VGUID1, 2, (2, 3), (3, 9), ["0x8001"], phase="prepare"), 200)
        self.assertEqual((doc["state"], doc["evicted"], doc["smps"], doc["lid"]),
                         ("prepared", True, 1, self.fabric.lid(3)))
        self.assertIn(f"held by port {fabric.port_guid(2)} at index 3", doc["findings"][0])
        self.assertEqual(self.check(self.api.get(VGUID1), 200), before)
        self.assertEqual(self.check(self.api.call("GET", "/v1/members"), 200)["members"][0]["port_guid"],
                         fabric.port_guid(2))
        for phase in ("prepare", "commit"):
            self.check(self.api.move(VGUID1, 0, (2, 3), (3, 9), phase=phase), 409, "superseded")
            doc = self.check(self.api.move(VGUID1, 1, (2, 3), (3, 9), phase=phase), 409, "epoch_tie")
            self.assertEqual((doc["known_epoch"], doc["bound"], doc["port_guid"]),
                             (1, True, fabric.port_guid(2)))
        self.assertEqual(self.state(), "granted")

    def test_a_refusal_says_what_is_known(self):
        doc = self.check(self.api.bind(VGUID1, 0, 3, []), 409, "superseded")
        self.assertEqual((doc["known_epoch"], doc["bound"], doc["port_guid"]), (1, True, fabric.port_guid(2)))
        self.check(self.api.withdraw(VGUID1, 7), 200)
        doc = self.check(self.api.bind(VGUID1, 1, 3, []), 409, "superseded")
        self.assertEqual((doc["known_epoch"], doc["bound"], doc["port_guid"]), (7, False, None))
        self.check(self.api.bind(VGUID1, 8, 3, []), 200)
        self.assertNotIn("known_epoch", self.check(self.api.bind(VGUID1, 8, 77, []), 409, "unknown_port"))

    def test_wrong_moves_are_refused(self):
        place = {"port_guid": fabric.port_guid(2), "gid_index": 3, "lid": 0}
        good = {"id": "x", "epoch": 2, "vguid": VGUID1, "phase": "commit", "from": place, "to": place, "pkeys": []}
        for wrong in ({"phase": "undo"}, {"id": "x" * 65}, {"id": 7}, {"from": None}, {"to": []}, {"to": {}},
                      {"from": {**place, "port": 1}}, {"to": {**place, "gid_index": -1}}, {"vguid": "0x0"},
                      {"epoch": "2"}, {"pkeys": None}, {"colour": "red"}):
            with self.subTest(wrong=wrong):
                self.check(self.api.call("POST", "/v1/moves", {**good, **wrong}), 400, "bad_request")
        for body in (b"", b"[]", b"null"):
            self.check(self.api.call("POST", "/v1/moves", body), 400)
        self.check(self.api.call("PUT", "/v1/moves"), 405)
        self.assertEqual(self.check(self.api.get(VGUID1), 200)["epoch"], 1)


tap.main(__name__)
