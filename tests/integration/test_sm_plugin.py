#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""libvhcasm.so inside a real OpenSM that manages ibsim's simulated fabric."""

import contextlib
import http.client
import json
import os
import pwd
import re
import socket
import statistics
import threading
import time
import unittest

import fabric
import masters
import openapi
import tap

from plugin_case import NO_KEYS, PKEY_TABLE, VGUID1, VGUID2, Case


class Basics(Case):
    """One OpenSM for all cases; each leaves the table empty, and uses epochs above those of the earlier ones."""

    epoch = 0

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.sm = cls.fabric.manager().start()
        cls.api = cls.sm.api
        cls.lids = [cls.fabric.lid(host) for host in range(1, fabric.HOSTS + 1)]

    def setUp(self):
        """Nothing is left of the case before: no binding, no declaration, no key, and the LIDs are where they were."""
        Basics.epoch += 100
        self.assertEqual([self.api.call("GET", f"/v1/{what}")[1][what] for what in ("bindings", "members")], [[], []])
        fabric.wait_for("the tables", lambda: self.tables() == [NO_KEYS] * fabric.HOSTS)
        self.assertEqual(self.fabric.watch(1).ask("who", *self.lids), [f"H{host}" for host in range(1, fabric.HOSTS + 1)])

    def tables(self):
        """The first block of each host's P_Key table, as the port itself has it."""
        return self.fabric.watch(1).ask("get", *([lid, PKEY_TABLE, 0] for lid in self.lids))

    def tearDown(self):
        for row in self.api.rows("bindings"):
            self.api.withdraw(row["vguid"], row["epoch"])
        for host in range(1, fabric.HOSTS + 1):
            self.api.declare(host, [])

    def test_health_and_readiness(self):
        status, doc = self.api.call("GET", "/readyz")
        self.assertEqual(status, 200)
        self.assertEqual(doc["sm_state"], "master")
        self.assertEqual(doc["master_guid"], fabric.port_guid(1))
        self.assertRegex(doc["opensm_version"], r"^OpenSM 3\.3")
        self.assertIsNone(doc["problem"])
        self.assertEqual(self.api.call("GET", "/healthz")[1]["status"], "ok")

    def test_binding_puts_the_port_into_its_partition(self):
        lid = self.fabric.lid(2)
        doc = self.check(self.api.bind(VGUID1, self.epoch, 2, ["0x8001"], lid=lid), 200)
        self.assertEqual((doc["state"], doc["lid"], doc["pkeys"]), ("pending", lid, ["0x8001"]))
        self.wait_key(2, "0x8001")
        self.assertFalse(self.fabric.has(3, "0x8001"))
        self.assertEqual(self.check(self.api.get(VGUID1), 200)["findings"], [])
        self.check(self.api.withdraw(VGUID1, self.epoch), 200)
        self.wait_key(2, "0x8001", there=False)

    def test_in_effect_says_when_a_sweep_took_it_over(self):
        in_effect = lambda: self.api.call("GET", "/readyz")[1]["in_effect"]
        fabric.wait_for("nothing pending", in_effect)
        self.check(self.api.bind(VGUID1, self.epoch, 4, ["0x8001"], lid=None), 200)
        self.assertFalse(in_effect())
        fabric.wait_for("in effect", in_effect)
        self.assertTrue(self.fabric.has(4, "0x8001"))

    def test_two_bindings_share_a_key(self):
        self.check(self.api.bind(VGUID1, self.epoch, 2, ["0x8001"]), 200)
        self.check(self.api.bind(VGUID2, self.epoch, 2, ["0x8001", "0x8002"]), 200)
        self.wait_key(2, "0x8002")
        self.check(self.api.withdraw(VGUID2, self.epoch), 200)
        self.wait_key(2, "0x8002", there=False)
        self.assertTrue(self.fabric.has(2, "0x8001"))
        self.check(self.api.withdraw(VGUID1, self.epoch), 200)
        self.wait_key(2, "0x8001", there=False)

    def test_keys_in_use_keep_their_index(self):
        self.check(self.api.bind(VGUID1, self.epoch, 3, ["0x8001"]), 200)
        self.check(self.api.bind(VGUID2, self.epoch, 3, ["0x8002"]), 200)
        self.wait_key(3, "0x8002")
        index = {key: i for i, key in self.fabric.pkeys(3).items()}["0x8002"]
        self.check(self.api.withdraw(VGUID1, self.epoch), 200)
        self.wait_key(3, "0x8001", there=False)
        self.assertEqual(self.fabric.pkeys(3)[index], "0x8002")
        self.assertEqual(self.fabric.pkeys(3)[0], "0xffff")

    def test_declared_members(self):
        doc = self.check(self.api.declare(3, ["0x8005", "0x0006"]), 200)
        self.assertEqual(doc["effective"], ["0x0006", "0x8005"])
        self.check(self.api.bind(VGUID1, self.epoch, 3, ["0x8001"]), 200)
        self.wait_key(3, "0x8005")
        self.wait_key(3, "0x0006")
        rows = self.check(self.api.call("GET", "/v1/members"), 200)["members"]
        self.assertEqual([(r["port_guid"], r["pkeys"], r["from_bindings"], r["effective"]) for r in rows],
                         [(fabric.port_guid(3), ["0x0006", "0x8005"], ["0x8001"],
                           ["0x0006", "0x8001", "0x8005"])])
        self.check(self.api.declare(3, []), 200)
        self.wait_key(3, "0x8005", there=False)
        self.assertTrue(self.fabric.has(3, "0x8001"))

    def test_moved_binding_moves_its_keys(self):
        self.check(self.api.bind(VGUID1, self.epoch, 2, ["0x8001"]), 200)
        self.wait_key(2, "0x8001")
        self.check(self.api.bind(VGUID1, self.epoch + 1, 3, ["0x8001"]), 200)
        self.wait_key(3, "0x8001")
        self.wait_key(2, "0x8001", there=False)

    def test_state_follows_the_aliases_that_the_sa_grants(self):
        state = lambda: self.check(self.api.get(VGUID1), 200)["state"]
        self.check(self.api.bind(VGUID1, self.epoch, 2, [], gid_index=3), 200)
        self.assertEqual(state(), "pending")
        self.fabric.sa_guid("set", 2, 3, VGUID1)
        self.assertEqual(state(), "granted")
        # An owner that has not moved, but says another index; OpenSM declines a second Set.
        self.check(self.api.bind(VGUID1, self.epoch, 2, [], gid_index=4), 200)
        self.fabric.sa_guid("set", 2, 4, VGUID1)
        doc = self.check(self.api.get(VGUID1), 200)
        self.assertEqual(doc["state"], "pending")
        self.assertIn(f"held by port {fabric.port_guid(2)} at index 3", doc["findings"][0])
        self.sm.resweep()
        self.check(self.api.bind(VGUID1, self.epoch, 2, [], gid_index=3), 200)
        self.assertEqual(state(), "granted")
        self.fabric.sa_guid("delete", 2, 3, VGUID1)
        self.assertEqual(state(), "pending")

    def test_a_ports_guid_is_no_virtual_one(self):
        """Its keys were edited by who bound it, at his port or at its own."""
        victim = fabric.port_guid(2)
        self.check(self.api.declare(2, ["0x8002"]), 200)
        self.wait_key(2, "0x8002")
        for host in (3, 2):
            for answer in (self.api.bind(victim, self.epoch, host, ["0x8009"]), self.api.move(victim, self.epoch, (2, 0), (host, 0), ["0x8009"]),
                           self.api.move(victim, self.epoch, (2, 0), (host, 0), phase="prepare")):
                doc = self.check(answer, 409, "guid_is_a_port")
                self.assertIn(victim, doc["detail"])
                self.assertTrue(doc["hint"])
        self.check(self.api.get(victim), 404)
        self.assertEqual(self.api.call("GET", "/v1/members")[1]["members"][0]["effective"], ["0x8002"])

    def test_findings_name_what_is_different(self):
        doc = self.check(self.api.bind(VGUID1, self.epoch, 3, ["0x8009"], gid_index=7, lid=40000), 200)
        self.assertEqual(doc["state"], "pending")
        self.assertRegex(doc["findings"][0], "reported LID 40000")
        self.assertRegex(doc["findings"][-1], "Not yet.*0x8009")

    def test_epochs(self):
        self.check(self.api.bind(VGUID1, self.epoch, 2, []), 200)
        self.check(self.api.bind(VGUID1, self.epoch - 1, 3, []), 409, "superseded")
        doc = self.check(self.api.bind(VGUID1, self.epoch, 3, []), 409, "epoch_tie")
        self.assertFalse(doc["retryable"])
        self.check(self.api.withdraw(VGUID1, self.epoch - 1), 409, "superseded")
        self.check(self.api.withdraw(VGUID1, self.epoch), 200)
        self.assertEqual(self.check(self.api.withdraw(VGUID1, self.epoch), 200)["state"], "withdrawn")
        self.check(self.api.bind(VGUID1, self.epoch - 1, 2, []), 409, "superseded")
        self.assertEqual(self.check(self.api.get(VGUID1), 200)["state"], "withdrawn")
        self.check(self.api.bind(VGUID1, self.epoch + 1, 3, []), 200)
        self.check(self.api.get("0x02c9ab00000000ff"), 404, "unknown_binding")

    def test_nobody_is_locked_out_by_an_epoch(self):
        """One DELETE at the last epoch, and nobody could bind that virtual GUID again."""
        last = 2 ** 63 - 1
        for answer in (self.api.withdraw(VGUID2, last), self.api.bind(VGUID2, last, 2, []), self.api.move(VGUID2, last, (2, 3), (3, 9))):
            self.assertIn("/v1/epochs/" + VGUID2, self.check(answer, 409, "epoch_too_high")["hint"])
        self.check(self.api.bind(VGUID2, self.epoch, 2, []), 200)
        self.check(self.api.withdraw(VGUID2, last), 409, "epoch_too_high")
        forget = lambda: self.api.call("DELETE", f"/v1/epochs/{VGUID2}")
        self.check(forget(), 409, "still_bound")
        self.check(self.api.withdraw(VGUID2, self.epoch), 200)
        self.assertEqual(forget(), (200, {"vguid": VGUID2, "epoch": self.epoch}))
        self.check(forget(), 404, "unknown_binding")
        self.check(self.api.get(VGUID2), 404, "unknown_binding")
        self.check(self.api.bind(VGUID2, 1, 2, []), 200)

    def test_refused_reports(self):
        put = lambda body: self.api.call("PUT", f"/v1/bindings/{VGUID1}", body)
        good = {"epoch": self.epoch, "port_guid": fabric.port_guid(2), "gid_index": 1, "lid": 0, "pkeys": []}
        doc = self.check(put({**good, "port_guid": "0x00000000000000ab"}), 409, "unknown_port")
        self.assertTrue(doc["retryable"])
        self.check(put({**good, "pkeys": [f"0x{0x8001 + i:04x}" for i in range(64)]}), 507, "table_full")
        self.check(put({**good, "pkeys": ["0x8001", "0x0001"]}), 409, "both_memberships")
        for wrong in ({"epoch": -1}, {"epoch": "1"}, {"port_guid": "0x0"}, {"port_guid": 7},
                      {"gid_index": 65536}, {"pkeys": ["0x8001", "0x8001"]}, {"pkeys": ["1_"]},
                      {"pkeys": "0x8001"}, {"colour": "red"}, {"lid": -1}):
            with self.subTest(wrong=wrong):
                self.check(put({**good, **wrong}), 400, "bad_request")
        for body in (b"", b"{", b"[]", b"null", b"{}\0", b'{"epoch":' + b"[" * 100, b"\xff\xfe"):
            with self.subTest(body=body):
                self.check(put(body), 400)
        self.check(self.api.call("PUT", "/v1/bindings/0x0", good), 400, "bad_request")
        self.check(self.api.call("PUT", "/v1/bindings/zebra", good), 400, "bad_request")
        self.check(self.api.call("DELETE", f"/v1/bindings/{VGUID1}"), 400, "bad_request")
        self.check(self.api.call("DELETE", f"/v1/bindings/{VGUID1}?epoch=1x"), 400, "bad_request")
        self.check(self.api.call("GET", "/v1/nothing"), 404)
        self.check(self.api.call("POST", "/v1/members", {}), 405)
        self.check(put({**good, "pkeys": ["0x%04x" % i for i in range(0x8001, 0x8800)]}), 413)
        self.check(put(b" " * 100000), 413)
        self.assertEqual(self.api.rows("bindings"), [])

    def test_wild_clients_do_no_harm(self):
        """Half requests, garbage and silent connections beside a working client."""
        idle = []
        for text in (b"", b"PUT /v1/bind", b"\0\1\2\3\r\n\r\n", b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 5000,
                     b"PUT /v1/bindings/1 HTTP/1.1\r\nContent-Length: 99999999999999\r\n\r\n"):
            for _ in range(8):
                s = socket.socket(socket.AF_UNIX)
                s.connect(self.api.path)
                try:
                    s.sendall(text)
                except OSError:
                    pass
                idle.append(s)
        self.check(self.api.bind(VGUID1, self.epoch, 2, []), 200)
        for s in idle:
            s.close()
        self.assertTrue(self.sm.alive())

    def test_pages(self):
        for i in range(7):
            self.check(self.api.bind(f"0x02c9ab00000001{i:02x}", self.epoch + 5, 2 + i % 2, []), 200)
        doc = self.check(self.api.call("GET", "/v1/bindings?limit=3"), 200)
        self.assertEqual(len(doc["bindings"]), 3)
        rows, after = doc["bindings"], doc["next"]
        while after:
            doc = self.check(self.api.call("GET", f"/v1/bindings?limit=3&after={after}"), 200)
            rows, after = rows + doc["bindings"], doc["next"]
        self.assertEqual([r["vguid"] for r in rows], [f"0x02c9ab00000001{i:02x}" for i in range(7)])
        doc = self.check(self.api.call("GET", f"/v1/bindings?port_guid={fabric.port_guid(3)}"), 200)
        self.assertEqual(len(doc["bindings"]), 3)
        self.check(self.api.call("GET", "/v1/bindings?limit=0"), 400, "bad_request")

    def test_a_burst_costs_few_sweeps_and_repetition_none(self):
        before = self.sm.sweeps()
        for i in range(50):
            self.check(self.api.bind(f"0x02c9ab00000002{i:02x}", self.epoch + 6, 2, [f"0x{0x8010 + i % 5:04x}"]), 200)
        self.wait_key(2, "0x8014")
        used = self.sm.sweeps() - before
        self.assertLessEqual(used, 4)
        time.sleep(0.5)
        before = self.sm.sweeps()
        for i in range(50):
            self.check(self.api.bind(f"0x02c9ab00000002{i:02x}", self.epoch + 6, 2, [f"0x{0x8010 + i % 5:04x}"]), 200)
        time.sleep(0.7)
        self.assertEqual(self.sm.sweeps(), before)


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
        self.check(self.api.call("GET", "/v1/moves"), 405)
        self.assertEqual(self.check(self.api.get(VGUID1), 200)["epoch"], 1)


class Restarts(Case):
    def state_of_things(self, sm):
        rows = sm.api.rows("bindings")
        return ([(r["vguid"], r["epoch"], r["port_guid"], r["pkeys"]) for r in rows],
                self.fabric.pkeys(2), self.fabric.pkeys(3))

    def fill(self, sm):
        self.check(sm.api.bind(VGUID1, 3, 2, ["0x8001", "0xffff"]), 200)
        self.check(sm.api.bind(VGUID2, 4, 3, ["0x8002"]), 200)
        self.check(sm.api.withdraw(VGUID2, 5), 200)
        self.check(sm.api.declare(3, ["0x8003"]), 200)
        self.wait_key(2, "0x8001")
        self.wait_key(3, "0x8003")
        self.wait_key(3, "0x8002", there=False)
        return self.state_of_things(sm)

    def test_restart_restores_membership_without_agents(self):
        sm = self.manager().start()
        before = self.fill(sm)
        self.assertEqual(sm.stop(), 0)
        sm.start()
        self.assertEqual(self.state_of_things(sm), before)
        self.check(sm.api.bind(VGUID2, 4, 3, []), 409, "superseded")    # tombstones, too
        self.check(sm.api.withdraw(VGUID1, 3), 200)
        self.check(sm.api.declare(3, []), 200)
        self.wait_key(2, "0x8001", there=False)
        self.assertEqual(sm.stop(), 0)

    def test_kill_and_restart_on_a_fabric_that_forgot(self):
        sm = self.manager().start()
        before = self.fill(sm)
        sm.kill()
        other = self.manager(host=4).start()    # knows nothing: takes the keys away
        self.wait_key(2, "0x8001", there=False)
        self.assertEqual(other.stop(), 0)
        sm.start()
        self.assertEqual(self.state_of_things(sm), before)
        self.assertEqual(sm.stop(), 0)

    def test_answered_means_durable(self):
        sm = self.manager().start()
        for i in range(20):
            self.check(sm.api.bind(f"0x02c9ab00000001{i:02x}", 1, 2, ["0x8001"]), 200)
        sm.kill()
        sm.start()
        rows = sm.api.rows("bindings")
        self.assertEqual(len(rows), 20)
        self.assertEqual(sm.stop(), 0)

    def test_a_state_directory_that_vanishes(self):
        sm = self.manager().start()
        os.rename(sm.state_dir, sm.state_dir + ".away")
        doc = self.check(sm.api.bind(VGUID1, 1, 2, ["0x8001"]), 503, "state_not_saved")
        self.assertTrue(doc["retryable"])
        self.assertIn("bindings", sm.api.call("GET", "/readyz")[1]["problem"])
        before = sm.cpu_seconds()
        time.sleep(1.5)
        self.assertLess(sm.cpu_seconds() - before, 0.5)
        self.assertFalse(self.fabric.has(2, "0x8001"))
        os.rename(sm.state_dir + ".away", sm.state_dir)
        self.wait_key(2, "0x8001")    # saved and brought into effect without a further report
        self.assertEqual(sm.stop(), 0)

    def test_damaged_state_refuses_the_plugin_not_opensm(self):
        sm = self.manager().start()
        self.fill(sm)
        self.assertEqual(sm.stop(), 0)
        path = os.path.join(sm.state_dir, "bindings")
        with open(path) as f:
            text = f.read()
        with open(path, "w") as f:
            f.write(text[:-20])
        sm.start(wait=False)
        fabric.wait_for("the reason in the log", lambda: "state_dir" in sm.log() or "line" in sm.log())
        self.assertRegex(sm.log(), r"vhcasm: not started: .*/bindings: line \d+: .*move it away")
        fabric.wait_for("a sweep", sm.sweeps)
        # The partition file of before is named in opensm.conf: the tenants keep their keys.
        self.wait_key(2, "0x8001")
        self.assertEqual(sm.stop(), 0)

    def test_two_managers_do_not_share_a_state(self):
        first = self.manager().start()
        second = self.manager(host=2)
        second.state_dir = first.state_dir
        second.start(wait=False)
        fabric.wait_for("the refusal", lambda: "in use by another OpenSM" in second.log())
        self.assertEqual(second.stop(), 0)
        self.assertEqual(first.stop(), 0)


class Configuration(Case):
    def base(self, text):
        path = os.path.join(self.fabric.dir, "base.conf")
        with open(path, "w") as f:
            f.write(text)
        return path

    def test_base_file_is_merged_and_read_again(self):
        path = self.base("Default=0x7fff,ipoib:ALL=limited,SELF=full;\nadmin=0x0100:ALL=full;\n")
        sm = self.manager(base_file=path).start()
        self.check(sm.api.bind(VGUID1, 1, 2, ["0x8001"]), 200)
        self.wait_key(2, "0x8001")
        self.assertEqual(self.fabric.pkeys(2)[0], "0x7fff")
        self.assertTrue(self.fabric.has(2, "0x8100"))
        self.base("Default=0x7fff,ipoib:ALL=full;\n")
        sm.resweep()
        self.wait_key(2, "0x8100", there=False)
        self.assertTrue(self.fabric.has(2, "0x8001"))
        # A mistake must not take the tenants' keys: OpenSM would fall back to its default rule.
        self.base("Default=0x7fff,ipoib ALL=full;\n")
        sm.resweep()
        fabric.wait_for("the mistake is reported", lambda: sm.api.call("GET", "/readyz")[1]["problem"])
        self.check(sm.api.bind(VGUID1, 1, 2, ["0x8001", "0x8002"]), 200)
        self.wait_key(2, "0x8002")
        self.assertTrue(self.fabric.has(2, "0x8001"))
        self.assertNotIn("retrying with default", sm.log())
        self.base("Default=0x7fff,ipoib:ALL=full;\n")
        sm.resweep()
        fabric.wait_for("the problem is gone",
                        lambda: not sm.api.call("GET", "/readyz")[1]["problem"])
        self.assertEqual(sm.stop(), 0)

    def test_opensm_understands_what_the_plugin_accepts(self):
        accepted = ["Default=0x7fff, ipoib, mtu=4, rate=3 : ALL=limited, SELF=full ;\n"
                    "storage = 0x0123 , sl=3,defmember=full :\n   0x0002c90300000021,\n"
                    "   12 = both ; 0x8013:ALL_CAS;",
                    "# nothing but a comment\n", "A=0x2,sl=1:ALL=full;A=0x0002:NONE;\n\n",
                    "A=0x2:\n\tSELF ,\n\tALL_SWITCHES=limited; B=3 : ALL_ROUTERS,0x11=full;",
                    "IP=0x44,ipoib:mgid=ff12:401b::16,Q_Key=0x1\n  ALL=full;"]
        path = self.base(accepted[0])
        sm = self.manager(base_file=path).start()
        self.check(sm.api.bind(VGUID1, 1, 2, ["0x8001", "0x8123"]), 200)
        self.wait_key(2, "0x8123")
        for text in accepted[1:]:
            with self.subTest(text=text):
                before = sm.sweeps()
                self.base(text)
                sm.resweep()
                fabric.wait_for("a sweep", lambda: sm.sweeps() > before)
                fabric.wait_for("in effect", lambda: sm.api.call("GET", "/readyz")[1]["in_effect"])
                self.assertIsNone(sm.api.call("GET", "/readyz")[1]["problem"])
                self.assertTrue(self.fabric.has(2, "0x8001") and self.fabric.has(2, "0x8123"))
        self.assertEqual(re.findall(r"PARSE ERROR[^\n]*|retrying with default", sm.log() + sm.output()), [])
        self.assertEqual(sm.stop(), 0)

    def test_allowed_keys(self):
        sm = self.manager(conf="allowed = 0x0001-0x000f 0x0100").start()
        self.check(sm.api.bind(VGUID1, 1, 2, ["0x800f", "0x0100", "0xffff"]), 200)
        self.check(sm.api.bind(VGUID1, 1, 2, ["0x8010"]), 403, "unknown_partition")
        self.check(sm.api.declare(2, ["0x0011"]), 403, "unknown_partition")
        self.assertEqual(sm.stop(), 0)

    def test_allowed_keys_are_read_again(self):
        """Without a restart and without a signal; what was given stays, and a mistake changes nothing."""
        sm = self.manager(conf="allowed = 0x0001-0x000f").start()
        ask = lambda vguid, key: sm.api.bind(vguid, 1, 2, [key])
        self.check(ask(VGUID1, "0x8010"), 403, "unknown_partition")
        self.check(ask(VGUID1, "0x8001"), 200)
        sm.configure("allowed = 0x0010")
        fabric.wait_for("the new keys", lambda: ask(VGUID2, "0x8010")[0] == 200)
        self.check(sm.api.bind("0x02c9ab0000000003", 1, 2, ["0x8002"]), 403, "unknown_partition")
        problem = lambda: sm.api.call("GET", "/readyz")[1]["problem"]
        sm.configure("allowed = everything")
        self.assertRegex(fabric.wait_for("the mistake is told", problem), r"vhcasm\.conf:\d+: allowed: ")
        self.check(sm.api.bind("0x02c9ab0000000003", 1, 2, ["0x8010"]), 200)
        sm.configure("allowed = 0x0010 0x0011")
        fabric.wait_for("the mistake is mended", lambda: problem() is None)
        self.check(sm.api.bind("0x02c9ab0000000004", 1, 2, ["0x8011"]), 200)
        for key in ("0x8001", "0x8010", "0x8011"):
            self.wait_key(2, key)
        self.assertEqual(sm.stop(), 0)

    def test_both_memberships_with_opensms_option(self):
        sm = self.manager(opensm_conf="allow_both_pkeys TRUE").start()
        self.check(sm.api.bind(VGUID1, 1, 2, ["0x8001", "0x0001"]), 200)
        self.wait_key(2, "0x8001")
        self.wait_key(2, "0x0001")
        self.assertEqual(sm.stop(), 0)

    def test_tcp(self):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        sm = self.manager(listen=f"127.0.0.1:{port}").start()
        self.check(sm.api.bind(VGUID1, 1, 2, ["0x8001"]), 200)
        self.wait_key(2, "0x8001")
        self.assertFalse(os.path.exists(os.path.join(sm.dir, "run")))
        other = self.manager(host=2, listen=f"127.0.0.1:{port}").start(wait=False)
        fabric.wait_for("the refusal", lambda: "not started" in other.log())
        self.assertIn("Address already in use", other.log())
        self.assertEqual(other.stop(), 0)
        self.assertEqual(sm.stop(), 0)

    def test_wrong_configuration_refuses_the_plugin(self):
        sm = self.manager(conf="allowed = everything")
        sm.start(wait=False)
        fabric.wait_for("the reason", lambda: "not started" in sm.log())
        self.assertRegex(sm.log(), r"vhcasm\.conf:\d+: allowed: ")
        self.assertEqual(sm.stop(), 0)

    def test_another_partition_file_is_taken_over(self):
        sm = self.manager()
        path = self.base("Default=0x7fff,ipoib:ALL=full;\nadmin=0x0200:ALL=full;\n")
        sm.opensm_conf = f"partition_config_file {path}"    # a later line wins
        sm.start()
        self.check(sm.api.bind(VGUID1, 1, 2, ["0x8001"]), 200)
        self.wait_key(2, "0x8001")
        self.assertTrue(self.fabric.has(2, "0x8200"))
        self.assertIn("write the latter into opensm.conf", sm.log())
        self.assertEqual(sm.stop(), 0)


@unittest.skipIf(os.geteuid(), "only root can ask as another user")
class Lids(Case):
    """[lids] enable = no, as shipped: LIDs stay, and nothing of OpenSM's is wrapped or looked after for their sake."""

    def put_lid(self, sm):
        return sm.api.call("PUT", f"/v1/lids/{self.fabric.lid(2)}", {"port_guid": fabric.port_guid(3)})

    def bind(self, sm, **more):
        return sm.api.call("PUT", f"/v1/bindings/{VGUID1}", {
            "epoch": 1, "port_guid": fabric.port_guid(2), "gid_index": 1, "lid": 0, "pkeys": ["0x8001"], **more})

    def move(self, sm, policy):
        place = lambda host: {"port_guid": fabric.port_guid(host), "gid_index": 1, "lid": self.fabric.lid(host), "vport": 1}
        return sm.api.call("POST", "/v1/moves", {
            "id": "x", "epoch": 1, "vguid": VGUID1, "phase": "commit", "from": place(2), "to": place(3), "pkeys": [],
            "lid_policy": policy})

    def test_lids_stay(self):
        sm = self.manager().start()
        answers = [self.put_lid(sm), self.bind(sm, lid_policy="dynamic"), self.move(sm, "follow"), self.move(sm, "vport")]
        for answer in answers:
            doc = self.check(answer, 409, "cannot_move")
            self.assertIn("enable = yes", doc["hint"])
        self.check(sm.api.get(VGUID1), 404, "unknown_binding")
        self.assertNotIn("wrapped", sm.log())
        self.check(self.bind(sm), 200)    # keys need none of it
        self.wait_key(2, "0x8001")
        self.check(sm.api.withdraw(VGUID1, 1), 200)
        self.assertFalse(os.path.exists(sm.cache_path("guid2lid.vhcasm")))
        self.assertEqual(sm.stop(), 0)

    def test_lids_may_move(self):
        sm = self.manager(lids=True).start()
        self.check(self.put_lid(sm), 200)
        self.assertIn("wrapped", sm.log())
        self.assertEqual(sm.stop(), 0)

    def test_dynamic_lids_of_before(self):
        """Their ports keep them as any others do, and who asks for them again later gets no stale ones."""
        sm = self.manager()
        os.makedirs(sm.state_dir)
        path = os.path.join(sm.state_dir, "dynamic-lids")
        with open(path, "w", encoding="ascii") as f:
            f.write(f"vhcasm-dynamic-lids 1\nd {VGUID1} 77 {fabric.port_guid(2)}\nend 1\n")
        sm.start()
        with open(path, encoding="ascii") as f:
            self.assertEqual(f.read(), "vhcasm-dynamic-lids 1\nend 0\n")
        self.assertIn("1 dynamic LIDs are ordinary ones now", sm.log())
        self.assertEqual(sm.stop(), 0)


class Roles(Case):
    """Who may ask for what at a unix socket: every route as every role."""

    USERS = {"daemon": "metrics", "bin": "read", "sys": "operate", "games": "admin", "news": "agent", "mail": "agent+read", "root": "admin", "nobody": "agent+read"}
    MAY = {"metrics": {"metrics"}, "read": {"metrics", "read"}, "operate": {"metrics", "read", "operate"}, "admin": {"metrics", "read", "operate", "admin", "agent"},
           "agent": {"agent"}, "agent+read": {"metrics", "read", "agent"}}

    def ask(self, sm, user, method, path):
        """(status, code of the problem)"""
        conn = fabric.UnixConnection(sm.api.path, 10, pwd.getpwnam(user))
        conn.request(method, path)
        reply = conn.getresponse()
        text = reply.read()
        conn.close()
        problem = reply.getheader("Content-Type") == "application/problem+json"
        if problem:
            fabric.check_exchange(method, path, None, reply.status, json.loads(text))
        return reply.status, json.loads(text)["code"] if problem else None

    def test_every_route_as_every_role(self):
        rules = " ".join(f"{user}:{role}" for user, role in self.USERS.items() if user not in ("root", "nobody"))
        sm = self.manager(conf=f"[http]\nsocket_mode = 0666\nroles = root:metrics {rules}\n")
        for path in (self.fabric.dir, sm.dir):
            os.chmod(path, 0o711)
        sm.start()
        for user, role in self.USERS.items():
            for path, _, method, op in openapi.Document("openapi-vhcasm.yaml").operations():
                path, needed = re.sub(r"\{[^}]*\}", "none", path), op["x-role"]
                refused = self.ask(sm, user, method.upper(), path) == (403, "role_needed")
                self.assertEqual(refused, needed not in self.MAY[role], f"{user} ({role}): {method} {path}")
        self.assertEqual(sm.stop(), 0)    # which writes the log to its end
        pid = f"pid {os.getpid()}"
        told = re.findall(r"audit: .*", sm.log())
        for user, line in (("games", f"(admin, {pid}) PUT /v1/lids/none: 400 bad_request"), ("nobody", f"(agent+read, {pid}) PUT /v1/lids/none: 403 role_needed"),
                           ("bin", f"(read, {pid}) PUT /v1/members/none: 403 role_needed")):
            self.assertIn(f"audit: uid:{pwd.getpwnam(user).pw_uid} {line}", told)
        self.assertEqual([line for line in told if "GET" in line or f"(agent, {pid}) PUT /v1/members" in line], [])

    def test_wrong_rules_refuse_the_plugin(self):
        sm = self.manager(conf="[http]\nroles = nobody-of-that-name:read")
        sm.start(wait=False)
        fabric.wait_for("the reason", lambda: "not started" in sm.log())
        self.assertIn("[http] roles: there is no user", sm.log())
        self.assertEqual(sm.stop(), 0)


class Log(Case):
    """Each report of each agent is a line in OpenSM's log only if that is asked for."""

    def told(self, flags):
        sm = self.manager(opensm_conf=f"log_flags {flags}").start()
        self.check(sm.api.bind(VGUID1, 1, 3, ["0x8001"]), 200)
        self.wait_key(3, "0x8001")
        self.check(sm.api.withdraw(VGUID1, 1), 200)
        self.wait_key(3, "0x8001", there=False)
        self.assertEqual(sm.stop(), 0)
        self.assertIn("vhcasm: version", sm.log())
        return [words in sm.log() for words in ("bound to port", "withdrawn at epoch", "written for")]

    def test_as_opensm_logs_by_default(self):
        self.assertEqual(self.told("0x03"), [False] * 3)

    def test_verbose(self):
        self.assertEqual(self.told("0x07"), [True] * 3)


class Computing(Case):
    """OpenSM keeps its lock for seconds, as it does when it computes the ways through a large fabric."""

    KEPT = 3000    # ms

    def setUp(self):
        self.sm = self.manager(slow=os.environ["VHCA_SLOW_LOCK_LIB"]).start()
        self.check(self.sm.api.bind(VGUID1, 1, 2, ["0x8001"]), 200)
        self.wait_key(2, "0x8001")
        self.took = []

    def timed(self, ask):
        begun = time.monotonic()
        answer = ask()
        return answer, time.monotonic() - begun

    def ask_health(self):
        """How old the three say that their values are; notes in self.took how long they took."""
        ages = []
        for path in ("/healthz", "/readyz"):
            (status, doc), seconds = self.timed(lambda path=path: self.sm.api.call("GET", path))
            self.took.append(seconds)
            self.assertEqual((status, doc["sm_state"], doc["master_guid"], doc["bindings"]),
                             (200, "master", fabric.port_guid(1), 1))
            ages.append(doc["age_ms"])
        values, seconds = self.timed(self.sm.api.metrics)
        self.took.append(seconds)
        self.assertEqual((values["vhcasm_master"], values["vhcasm_bindings"]), (1, 1))
        return [*ages, values["vhcasm_subnet_age_seconds"] * 1000]

    def test_health_answers_at_once(self):
        self.sm.keep_lock(self.KEPT)
        end = time.monotonic() + self.KEPT / 1000 - 0.5
        while time.monotonic() < end:
            ages = self.ask_health()
            time.sleep(0.05)
        for age in ages:
            self.assertGreater(age, 1000)
        # A machine under load may be late once; who waited for the lock would be each time.
        self.assertLess(statistics.median(self.took), 0.1, self.took)
        self.wait_key(2, "0x8001")
        fabric.wait_for("fresh values", lambda: max(self.ask_health()) < 500)
        self.assertEqual(self.sm.stop(), 0)

    def test_health_answers_while_reports_wait(self):
        """Reports need OpenSM's tables: they are answered when these can be had, in the order in which they came."""
        answers = []
        def report(epoch):
            answers.append((epoch, self.sm.api.bind(VGUID1, epoch, 3, ["0x8001"])[0]))
        self.sm.keep_lock(self.KEPT)
        begun, threads = time.monotonic(), []
        for epoch in (2, 4, 3):
            threads.append(threading.Thread(target=report, args=(epoch,)))
            threads[-1].start()
            time.sleep(0.2)
        while time.monotonic() < begun + self.KEPT / 1000 - 0.5:
            self.assertEqual((answers, self.ask_health()[0] > 0), ([], True))
        for thread in threads:
            thread.join()
        self.assertEqual(sorted(answers), [(2, 200), (3, 409), (4, 200)])
        self.wait_key(3, "0x8001")
        self.assertEqual(self.sm.stop(), 0)

    def test_it_ends_while_a_report_waits(self):
        def report():
            with contextlib.suppress(OSError, http.client.HTTPException):
                self.sm.api.bind(VGUID2, 1, 3, [])
        self.sm.keep_lock(self.KEPT)
        waits = threading.Thread(target=report)
        waits.start()
        time.sleep(0.3)
        self.assertEqual(self.sm.stop(), 0)
        waits.join()


class Masters(masters.Masters, Case):
    def new_fabric(self):
        return fabric.Fabric()

    def pair(self, inherit=0):
        master = self.manager(host=1, opensm_conf=masters.MASTER).start()
        standby = self.manager(host=2, conf=f"inherit = {inherit}", opensm_conf=masters.STANDBY)
        return master, standby

    def test_a_standby_sends_to_the_master_and_takes_over(self):
        master, standby = self.pair()
        self.enter_standby(standby)
        self.assertEqual(standby.api.call("GET", "/readyz")[0], 503)
        doc = self.check(standby.api.bind(VGUID1, 1, 3, ["0x8001"]), 421, "not_master")
        self.assertIn(fabric.port_guid(1), doc["detail"])
        self.assertTrue(doc["retryable"])
        self.check(standby.api.withdraw(VGUID1, 1), 421, "not_master")
        self.check(standby.api.declare(3, []), 421, "not_master")
        doc = self.check(standby.api.call("PUT", "/v1/lids/3", {"port_guid": fabric.port_guid(3)}), 421, "not_master")
        self.assertIn(fabric.port_guid(1), doc["detail"])
        self.assertEqual(master.stop(), 0)
        self.takes_over(standby)
        self.check(standby.api.bind(VGUID1, 1, 3, ["0x8001"]), 200)
        self.wait_key(3, "0x8001")
        self.assertEqual(standby.stop(), 0)

    def test_a_take_over_leaves_the_keys_where_they_are(self):
        master, standby = self.pair(inherit=3)
        for i, key in enumerate(("0x8011", "0x8012", "0x8013")):
            self.check(master.api.bind(f"0x02c9ab000000030{i}", 7, 3, [key]), 200)
            self.wait_key(3, key)
        self.check(master.api.withdraw("0x02c9ab0000000300", 7), 200)
        self.wait_key(3, "0x8011", there=False)
        before = self.fabric.pkeys(3)
        self.enter_standby(standby)
        master.kill()
        self.takes_over(standby)
        self.assertEqual(self.fabric.pkeys(3), before)
        row = next(r for r in standby.api.rows("members")
                   if r["port_guid"] == fabric.port_guid(3))
        self.assertEqual((row["from_bindings"], row["inherited"]), ([], ["0x8012", "0x8013"]))
        # One agent reports again; what nobody reports goes when the time is over.
        self.check(standby.api.bind("0x02c9ab0000000302", 7, 3, ["0x8013"]), 200)
        self.wait_key(3, "0x8012", there=False)
        self.assertEqual({i: k for i, k in before.items() if k != "0x8012"}, self.fabric.pkeys(3))
        self.assertEqual(standby.stop(), 0)


    def test_a_take_over_with_a_slow_disk(self):
        """Six fsyncs of 1.5 s: OpenSM's sweeper waits 5 s for what it reads next, not for all of them."""
        master = self.manager(host=1, opensm_conf=masters.MASTER).start()
        standby = self.manager(host=2, conf="inherit = 600", opensm_conf=masters.STANDBY, slow=os.environ["VHCA_SLOW_DISK_LIB"])
        self.check(master.api.bind(VGUID1, 7, 3, ["0x8011"]), 200)
        self.wait_key(3, "0x8011")
        self.enter_standby(standby)
        standby.slow_down(1500)
        master.kill()
        seen = set()
        fabric.wait_for("the take-over", lambda: seen.add(self.fabric.has(3, "0x8011")) or standby.api.ready(), 30)
        self.assertEqual((seen, "could not be kept" in standby.log()), ({True}, False))
        standby.slow_down(0)
        self.assertEqual(standby.api.call("GET", "/healthz")[1]["problem"], None)
        standby.kill()    # and what was kept is on disk
        standby.start()
        self.assertTrue(self.fabric.has(3, "0x8011"))
        self.assertEqual(standby.stop(), 0)

    def hindered(self, hinder):
        """A standby that is to take over and cannot keep the keys: OpenSM waits, and has been told to."""
        master = self.manager(host=1, opensm_conf=masters.MASTER).start()
        standby = self.manager(host=2, conf="inherit = 600", opensm_conf=masters.STANDBY, slow=os.environ["VHCA_SLOW_DISK_LIB"])
        self.check(master.api.bind(VGUID1, 7, 3, ["0x8011"]), 200)
        self.wait_key(3, "0x8011")
        self.enter_standby(standby)
        hinder(standby)
        master.kill()
        fabric.wait_for("OpenSM waits", lambda: "OpenSM waits until the keys" in standby.log(), 30)
        self.assertTrue(self.fabric.has(3, "0x8011"))
        return standby

    def take_over_late(self, hinder, help_out):
        standby = self.hindered(hinder)
        time.sleep(2)
        self.assertFalse(standby.api.ready())
        help_out(standby)
        seen = set()
        fabric.wait_for("the take-over", lambda: seen.add(self.fabric.has(3, "0x8011")) or standby.api.ready(), 30)
        self.assertEqual(seen, {True})
        self.assertEqual(standby.api.call("GET", "/healthz")[1]["problem"], None)
        self.assertEqual(standby.stop(), 0)

    def test_a_take_over_with_a_disk_that_hangs(self):
        self.take_over_late(lambda sm: sm.slow_down(6000), lambda sm: sm.slow_down(0))

    def test_a_take_over_without_a_directory(self):
        self.take_over_late(lambda sm: os.rename(sm.state_dir, f"{sm.state_dir}.away"),
                            lambda sm: os.rename(f"{sm.state_dir}.away", sm.state_dir))

    def test_it_ends_while_a_take_over_waits(self):
        standby = self.hindered(lambda sm: os.rename(sm.state_dir, f"{sm.state_dir}.away"))
        self.assertEqual(standby.stop(), 0)
        self.assertTrue(self.fabric.has(3, "0x8011"))

    def test_masters_that_live_hand_over_what_the_agents_reported(self):
        """There and back: what the first one remembers is then older than what the ports show."""
        first = self.manager(host=1, conf="inherit = 600", opensm_conf=masters.MASTER).start()
        second = self.manager(host=2, conf="inherit = 600", opensm_conf=masters.HIGHER)
        self.check(first.api.bind(VGUID1, 1, 3, ["0x8011"]), 200)
        self.wait_key(3, "0x8011")
        rebuilding = lambda sm: sm.api.call("GET", "/healthz")[1]["rebuilding"]
        self.assertFalse(rebuilding(first))
        second.start()
        self.wait_standby(first)
        self.check(first.api.bind(VGUID1, 2, 4, ["0x8011"]), 421, "not_master")
        self.assertTrue(rebuilding(second))
        self.wait_key(3, "0x8011")
        self.check(second.api.bind(VGUID1, 1, 3, ["0x8011"]), 200)    # the agent finds it
        self.assertFalse(rebuilding(second))
        self.check(second.api.bind(VGUID2, 1, 4, ["0x8012"]), 200)
        self.wait_key(4, "0x8012")
        self.assertEqual(second.stop(), 0)
        self.takes_over(first)
        self.assertTrue(rebuilding(first))
        self.wait_key(3, "0x8011")
        self.wait_key(4, "0x8012")
        self.check(first.api.bind(VGUID2, 1, 4, ["0x8012"]), 200)
        self.assertFalse(rebuilding(first))
        self.assertEqual(first.stop(), 0)


tap.main(__name__)
