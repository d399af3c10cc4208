#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Sabotages of the subnet and of the plugin's answers, each of which witness.py has to see: what the plugin says of itself shows none of them."""

import copy
import os
import time
import unittest

import fabric
import fattree
import tap
import vantage
import vswitches
import witness

ALIAS, GUEST = "0x02c9ab0000000001", "0x02c9ab0000000002"
KEY = "0x8001"
HEX_KEY = KEY[2:]


@unittest.skipIf(fabric.missing(), fabric.missing())
class Sabotage(unittest.TestCase):
    """One subnet and one OpenSM: each case begins with a trial that finds nothing, so the one before has left nothing."""

    @classmethod
    def setUpClass(cls):
        cls.net = vswitches.VSwitches()
        cls.addClassCleanup(cls.net.close)
        cls.sm = cls.net.manager(opensm_conf="routing_engine minhop\n", conf="[lids]\ndynamic = 2", counter=os.environ["VHCA_SMPCOUNT_LIB"]).start()
        cls.ledger, cls.own = witness.Ledger(), cls.net.guid[3, 1]
        cls.ask("PUT", f"/v1/bindings/{cls.own}", {"epoch": 1, "port_guid": fabric.port_guid(3), "gid_index": 0, "pkeys": [KEY]})
        cls.ask("PUT", f"/v1/bindings/{ALIAS}", {"epoch": 1, "port_guid": fabric.port_guid(2), "gid_index": 3, "pkeys": ["0x0004"]})
        cls.ask("PUT", f"/v1/bindings/{GUEST}", {"epoch": 1, "port_guid": fabric.port_guid(4), "gid_index": 0, "pkeys": [], "lid_policy": "dynamic"})
        cls.ask("PUT", f"/v1/members/{fabric.port_guid(5)}", {"pkeys": ["0x8002"]})
        cls.net.sa_guid("set", 2, 3, ALIAS)
        cls.granted = {int(ALIAS, 0): {3}}
        fabric.wait_for("in effect", lambda: cls.sm.api.call("GET", "/readyz")[1]["in_effect"], 20)
        fattree.heavy_sweep(cls.sm)
        cls.sm.rest()
        cls.of = {guid: lid for guid, lid in vswitches.lids(cls.sm).items() if guid != GUEST}
        cls.place = vantage.Vantage(cls.net, 1)
        cls.addClassCleanup(cls.place.close)

    @classmethod
    def ask(cls, method, path, body):
        sent = time.monotonic()
        status, answer = cls.sm.api.call(method, path, body)
        cls.ledger.note(sent, time.monotonic(), method, path, body, status)
        if status != 200:
            raise AssertionError(answer)

    def rows(self):
        return [copy.deepcopy(self.sm.api.call("GET", f"/v1/{what}")[1][what]) for what in ("bindings", "members")]

    def dynamic(self):
        """{LID: PF} of the guest without a port."""
        rows = {lid: self.sm.api.call("GET", f"/v1/lids/{lid}")[1] for lid in range(1, 60)}
        return {lid: row["port_guid"] for lid, row in rows.items() if row.get("vguid") == GUEST}

    def trial(self, rows=None):
        """Its faults; the plugin agrees with itself all the time."""
        rows = rows or self.rows()
        self.assertTrue(witness.agrees_with_itself(*rows))
        return witness.Trial(self.net, self.of, self.ledger, *rows, self.granted, self.dynamic()).faults

    def setUp(self):
        self.assertEqual(self.trial(), [])

    def seen(self, faults, *words):
        """All of them are about what was spoilt."""
        self.assertTrue(faults)
        for fault in faults:
            self.assertTrue(any(word in fault for word in words), f"{fault}, not of {words}")

    def spoilt(self, lid, attribute, modifier, change, *words):
        """By a hand-made Set of what is there, changed; it is undone."""
        before = self.place.ask("get", [lid, attribute, modifier])[0]
        spoilt = change(before)
        self.assertNotEqual(before, spoilt)
        self.assertEqual(self.place.ask("set", [lid, attribute, modifier, spoilt]), [spoilt])
        try:
            self.seen(self.trial(), *words)
        finally:
            self.assertEqual(self.place.ask("set", [lid, attribute, modifier, before]), [before])

    def lid_of(self, switch):
        return witness.Look(self.net, {int(guid, 0): lid for guid, lid in self.of.items()}).switches[switch]

    # ---- the subnet ----

    def test_a_key_that_a_port_does_not_have(self):
        self.spoilt(self.of[self.own], witness.PKEY_TABLE, 0, lambda t: t.replace(HEX_KEY, "0000"), "P_Key table of F3-1")

    def test_a_key_with_another_membership(self):
        self.spoilt(self.of[self.own], witness.PKEY_TABLE, 0, lambda t: t.replace(HEX_KEY, "0001"), "P_Key table of F3-1")

    def test_a_key_of_another_tenant(self):
        self.spoilt(self.of[fabric.port_guid(6)], witness.PKEY_TABLE, 0, lambda t: t[:8] + HEX_KEY + t[12:], "P_Key table of H6")

    def test_a_key_in_the_second_block(self):
        self.spoilt(self.of[self.net.guid[6, 3]], witness.PKEY_TABLE, 1, lambda t: t[:-4] + HEX_KEY, "P_Key table of F6-3")

    def test_a_key_that_the_switch_does_not_let_through(self):
        port = vswitches.PF + 1
        self.spoilt(self.lid_of("V3"), witness.PKEY_TABLE, port << 16, lambda t: t.replace(HEX_KEY, "0000"), "P_Key table before F3-1")

    def test_a_lost_set_of_keys(self):
        """The plugin has it on disk and has answered; OpenSM has sent it in vain, and goes on with the table that it knows."""
        self.net.console(f'Error "F3-1" 100 {fattree.PKEY_TABLE}')
        sent = self.sm.smps()["pkey_table"]
        self.ask("PUT", f"/v1/members/{self.own}", {"pkeys": ["0x8005"]})
        fabric.wait_for("the Set", lambda: self.sm.smps()["pkey_table"] > sent, 20)
        fabric.wait_for("the time-out", lambda: "ERR 3119: Set method failed for attribute 0x16" in self.sm.log(), 20)
        self.seen(self.trial(), "of F3-1")
        self.net.console(f'Error "F3-1" 0 {fattree.PKEY_TABLE}')
        self.ask("PUT", f"/v1/members/{self.own}", {"pkeys": []})
        fabric.wait_for("in effect", lambda: self.sm.api.call("GET", "/readyz")[1]["in_effect"], 20)
        fattree.heavy_sweep(self.sm)
        self.sm.rest()

    def entry(self, switch, lid, port):
        """A switch sends what is for a LID to another port."""
        block, at = divmod(lid, 64)
        change = lambda t: t[:2 * at] + f"{port:02x}" + t[2 * at + 2:]
        self.spoilt(self.lid_of(switch), witness.LFT, block, change, f"LID {lid} does not lead", "shows None")

    def test_a_way_that_ends(self):
        for switch in ("L1", "S2", "V6"):
            self.entry(switch, self.of[self.own], witness.DROPPED)

    def test_a_way_to_the_neighbour(self):
        self.entry("V3", self.of[self.own], vswitches.PF + 2)

    def test_a_way_in_a_circle(self):
        self.entry("V3", self.of[self.own], vswitches.UPLINK)

    def test_a_dynamic_lid_that_leads_to_nobody(self):
        self.entry("S1", next(iter(self.dynamic())), witness.DROPPED)

    def test_a_guid_that_has_gone_elsewhere(self):
        """The hardware changes, and nobody says so."""
        real = self.net.guid[3, 1], self.net.guid[5, 1]
        self.net.exchange((3, 1), (5, 1))
        self.net.guid[3, 1], self.net.guid[5, 1] = real    # what the test knows
        self.seen(self.trial(), "F3-1 shows", "F5-1 shows")
        self.net.program(5, 1, "0x0002c9ffffffff01")
        self.net.program(3, 1, real[0])
        self.net.program(5, 1, real[1])

    def test_an_alias_that_nobody_asked_for(self):
        self.net.sa_guid("set", 5, 6, "0x02c9ab0000000009")
        self.seen(self.trial(), "alias 0x2c9ab0000000009")
        self.net.sa_guid("delete", 5, 6, "0x02c9ab0000000009")

    def test_an_alias_at_another_index(self):
        rows, granted = self.rows(), self.granted
        self.granted = {int(ALIAS, 0): {4}}
        self.seen(self.trial(rows), f"alias {int(ALIAS, 0):#x}")
        self.granted = granted

    # ---- what the plugin says ----

    def said(self, change, *words):
        """With rows of its, changed, that do not contradict each other."""
        rows = self.rows()
        change(*[{int(row[key], 0): row for row in table} for table, key in zip(rows, ("vguid", "port_guid"))])
        self.seen(self.trial(rows), *words)

    def test_a_binding_with_fewer_keys(self):
        own = int(self.own, 0)

        def change(bindings, members):
            bindings[own]["pkeys"], members[own]["from_bindings"], members[own]["effective"] = [], [], []
        self.said(change, f"binding {own:#x}", "table of F3-1", "table before F3-1")

    def test_a_binding_at_another_place(self):
        self.said(lambda bindings, _: bindings[int(GUEST, 0)].update(port_guid=fabric.port_guid(6)), f"binding {int(GUEST, 0):#x}")

    def test_a_binding_of_an_earlier_epoch(self):
        self.said(lambda bindings, _: bindings[int(GUEST, 0)].update(epoch=0), f"binding {int(GUEST, 0):#x}")

    def test_a_state_that_is_not_so(self):
        for guid, state in ((ALIAS, "pending"), (GUEST, "granted")):
            self.said(lambda bindings, _, g=guid, s=state: bindings[int(g, 0)].update(state=s), f"binding {int(guid, 0):#x} is {state}")

    def test_a_declaration_that_was_not_made(self):
        pf = int(fabric.port_guid(5), 0)
        self.said(lambda _, members: members[pf].update(pkeys=["0x8003"], effective=["0x8003"]), f"declaration of {pf:#x}", "H5")

    def test_a_binding_that_is_not_there(self):
        bindings, members = self.rows()
        bindings = [row for row in bindings if row["vguid"] != GUEST]
        self.seen(self.trial((bindings, members)), f"binding {int(GUEST, 0):#x}")

    # ---- what was asked ----

    def test_an_acknowledged_report_that_is_lost(self):
        for path, body, words in ((f"/v1/bindings/{GUEST}", {"epoch": 2, "port_guid": fabric.port_guid(6), "gid_index": 0, "pkeys": []}, "binding"),
                                  (f"/v1/members/{fabric.port_guid(6)}", {"pkeys": [KEY]}, "declaration")):
            ledger = copy.copy(self.ledger)
            ledger.bindings, ledger.members = ({g: list(a) for g, a in table.items()} for table in (ledger.bindings, ledger.members))
            ledger.note(time.monotonic(), time.monotonic(), "PUT", path, body, 200)
            self.seen(witness.Trial(self.net, self.of, ledger, *self.rows(), self.granted).faults, words)


class LastWords(unittest.TestCase):
    """Which of several reports may be the one that holds."""

    PUT = "/v1/bindings/0x1"

    def bound(self, *notes):
        """notes: (sent, answered, epoch, keys or None for a withdrawal, status)"""
        ledger = witness.Ledger()
        for sent, answered, epoch, keys, status in notes:
            if keys is None:
                ledger.note(sent, answered, "DELETE", f"{self.PUT}?epoch={epoch}", None, status)
            else:
                ledger.note(sent, answered, "PUT", self.PUT, {"epoch": epoch, "port_guid": "0x2", "gid_index": 0, "pkeys": keys}, status, status == 409 and "superseded")
        return {(epoch, place and tuple(keys)) for epoch, place, keys in ledger.bound().get(1, ())}

    def test_the_higher_epoch(self):
        self.assertEqual(self.bound((1, 2, 5, ["0x1"], 200), (3, 4, 4, ["0x2"], 200)), {(5, (1,))})

    def test_the_later_one_of_an_epoch(self):
        self.assertEqual(self.bound((1, 2, 5, ["0x1"], 200), (3, 4, 5, ["0x2"], 200)), {(5, (2,))})

    def test_two_at_the_same_time(self):
        self.assertEqual(self.bound((1, 3, 5, ["0x1"], 200), (2, 4, 5, ["0x2"], 200)), {(5, (1,)), (5, (2,))})

    def test_a_withdrawal_ends_its_epoch(self):
        self.assertEqual(self.bound((1, 4, 5, ["0x1"], 200), (2, 3, 5, None, 200)), {(5, None)})

    def test_one_without_an_answer(self):
        self.assertEqual(self.bound((1, 2, 5, ["0x1"], 200), (3, 4, 6, ["0x2"], None)), {(5, (1,)), (6, (2,))})
        self.assertEqual(self.bound((1, 2, 5, ["0x1"], 200), (3, 4, 4, ["0x2"], None)), {(5, (1,))})
        self.assertEqual(self.bound((1, 2, 5, ["0x1"], 503)), {(5, (1,)), (None, None)})

    def test_a_refusal(self):
        self.assertEqual(self.bound((1, 2, 5, ["0x1"], 200), (3, 4, 6, ["0x2"], 409)), {(5, (1,))})


tap.main(__name__)
