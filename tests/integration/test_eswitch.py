#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""vhca-eswitch in eswitchd's place, by ZeroMQ, before a whole agent on a simulated ConnectX-3 of four VFs, two of them reserved."""

import json
import os
import pwd
import random
import shutil
import signal
import socket
import statistics
import struct
import subprocess
import tempfile
import threading
import time
import unittest

import zmq

import seeds
import tap
from callers import acting_as
from eswitch import GIVEN_UP, PROGRAM, Eswitch, Story
from host_case import FREE, GUID, MAC, OTHER_MAC, OTHER_UUID, OTHER_VF, PF, UUID, VF, WAIT, HostCase, StubCase

FABRIC = "physnet1"
LATE = "vhcad has not answered in time"
NO_TIME = "no time is left to ask vhcad"
HIDDEN = 5      # seconds, in which the agent is to miss a port
PORT = {"fabric": FABRIC, "pci_slot": VF}
PLUG = {"fabric": FABRIC, "device_id": UUID, "vnic_mac": MAC, "dev_name": VF, "vnic_type": "ib_hostdev"}
VNIC = {VF: {"mac": MAC, "pci_slot": VF}}
ACTIONS = ("define_fabric_mapping", "get_vnics", "plug_nic", "delete_port", "set_vlan", "port_release", "port_up", "port_down",
           "get_eswitch_tables")


class Case(HostCase):
    """And one vhca-eswitch; no port is left behind a test."""

    def setUp(self):
        self.eswitch = Eswitch(self.where)
        self.client = self.eswitch.client()

    def tearDown(self):
        self.client.close()
        text = self.eswitch.text()
        self.assertEqual(self.eswitch.end(), 0, text)
        self.assertNotIn("Traceback", text)
        for mac in (MAC, OTHER_MAC):
            self.host.wait(lambda mac=mac: self.host.request("DELETE", f"/v1/fabrics/{FABRIC}/ports/{mac}")[0] in (200, 404), WAIT)

    def ok(self, action, response, **members):
        self.assertEqual(self.client.say(action, **members), {"status": "OK", "response": response, "action": action}, self.eswitch.text())

    def refused(self, pattern, action, **members):
        reply = self.client.say(action, **members)
        self.assertEqual((reply["status"], reply["action"]), ("FAIL", action if action in ACTIONS else None), reply)
        self.assertRegex(reply["reason"], pattern)

    def listed(self, vnics):
        self.host.wait(lambda: self.client.say("get_vnics", fabric="*")["response"] == vnics, WAIT)

    def begin(self):
        self.host.wait(lambda: self.host.begin() == "pass\n", WAIT)

    def plug(self):
        self.ok("plug_nic", {"dev": VF}, **PLUG)

    def pkeys(self, bdf=VF):
        return [c["pkeys"] for c in self.host.get("/v1/claims")[1]["claims"] if c["bdf"] == bdf]

    def shown(self):
        """What the guest sees of the P_Keys that its port has."""
        return [p["pkey"] for p in self.host.vf(VF)["pkeys"] if p["pkey"]]


class Messages(Case):
    def test_fabrics(self):
        self.ok("define_fabric_mapping", {"fabric": FABRIC, "dev": "ib0"}, fabric=FABRIC, interface="ib0")
        self.refused("no VF is on fabric physnet2; vhcad.conf has physnet1", "define_fabric_mapping", fabric="physnet2", interface="ib0")
        self.ok("get_vnics", {}, fabric="physnet2")

    def test_life_of_a_port(self):
        self.ok("get_vnics", {}, fabric="*")
        self.plug()
        self.ok("get_vnics", {}, fabric="*")
        self.refused("is claimed, not programmed", "port_up", **PORT)
        self.begin()
        self.assertEqual(self.host.vf(VF)["requested"], GUID)
        self.ok("get_vnics", VNIC, fabric="*")
        self.ok("get_vnics", VNIC, fabric=FABRIC)
        self.ok("get_vnics", {}, fabric="physnet2")
        self.ok("get_eswitch_tables", {"tables": {FABRIC: [["MAC", "PCI"], [MAC, VF]]}}, fabric=FABRIC)
        self.ok("set_vlan", {}, vlan=1, **PORT)
        self.assertEqual(self.pkeys(), [["0x8001"]])
        self.ok("port_up", {}, ref_by="pci_slot", **PORT)
        self.ok("port_release", {}, ref_by="pci_slot", **PORT)
        self.assertEqual(self.pkeys(), [["0x8001"]])    # its guest has begun
        self.refused("attached", "port_down", ref_by="pci_slot", **PORT)
        self.ok("get_vnics", {}, fabric="*")    # it is to be set down, and tried again
        self.refused("attached", "set_vlan", vlan=2, **PORT)
        self.assertEqual((self.pkeys(), self.shown()), ([["0x8001"]], ["0x8001"]))
        self.ok("delete_port", {"dev": VF}, fabric=FABRIC, vnic_mac=MAC.upper())
        self.ok("delete_port", {}, fabric=FABRIC, vnic_mac=MAC)
        self.ok("get_vnics", {}, fabric="*")
        self.assertEqual(self.host.vf(VF)["state"], "free")

    def test_partitions_are_what_the_vlan_says(self):
        self.plug()
        for vlan, pkey in ((5, "0x8005"), ("17", "0x8011"), (4094, "0x8ffe"), (0x7ffe, "0xfffe")):
            self.ok("set_vlan", {}, vlan=vlan, **PORT)
            self.assertEqual(self.pkeys(), [[pkey]])
        for action in ("port_release", "port_down"):
            self.ok("set_vlan", {}, vlan=1, **PORT)
            self.ok(action, {}, ref_by="pci_slot", **PORT)
            self.assertEqual(self.pkeys(), [[]])
        for vlan in (0, "0", -1, 0x7fff, 0x8001, 1 << 70, "9" * 5000, "x", "", 1.0, True, None, [1], {"vlan": 1}):
            self.refused("vlan", "set_vlan", vlan=vlan, **PORT)
        self.refused("vlan", "set_vlan", **PORT)
        self.assertEqual(self.pkeys(), [[]])

    def test_the_same_again_writes_nothing(self):
        self.plug()
        self.begin()
        self.ok("set_vlan", {}, vlan=1, **PORT)
        claim, before = self.host.vf(VF)["claim"], self.host.writes()
        self.assertTrue(before)
        for _ in range(5):
            self.plug()
            self.ok("set_vlan", {}, vlan=1, **PORT)
            self.ok("port_up", {}, **PORT)
            self.ok("get_vnics", VNIC, fabric="*")
            self.ok("port_release", {}, **PORT)
            self.ok("define_fabric_mapping", {"fabric": FABRIC, "dev": "ib0"}, fabric=FABRIC, interface="ib0")
        self.assertEqual(self.host.writes(), before)
        self.assertEqual(self.host.vf(VF)["claim"], claim)

    def test_refusals_change_nothing(self):
        self.plug()
        self.begin()
        before, claims = self.host.writes(), self.host.get("/v1/claims")[1]
        for pattern, change in (
                ("fabric: want", {"fabric": "a/b"}), ("fabric: want", {"fabric": 1}), ("fabric: want", {"fabric": "*"}),
                ("vnic_mac: want", {"vnic_mac": "fa:16:3e:12:34"}), ("vnic_mac: want", {"vnic_mac": MAC + "\n"}),
                ("vnic_mac: want", {"vnic_mac": f"{MAC}/partitions"}), ("unicast MAC", {"vnic_mac": "fb:16:3e:12:34:56"}),
                ("dev_name: want", {"dev_name": "ib0"}), ("device_id: want", {"device_id": "vm1"}), ("vnic_type", {"vnic_type": "hw_veb"}),
                ("belongs to", {"device_id": OTHER_UUID, "dev_name": OTHER_VF}),    # another tenant's MAC
                ("is programmed, for", {"device_id": OTHER_UUID, "vnic_mac": OTHER_MAC}),    # another tenant's VF
                ("has VF", {"dev_name": OTHER_VF}), ("not reserved", {"vnic_mac": OTHER_MAC, "dev_name": FREE}),
                (PF, {"vnic_mac": OTHER_MAC, "dev_name": PF}), ("on fabric", {"vnic_mac": OTHER_MAC, "dev_name": OTHER_VF, "fabric": "physnet2"})):
            with self.subTest(change):
                self.refused(pattern, "plug_nic", **{**PLUG, **change})
        for name in ("fabric", "device_id", "vnic_mac", "dev_name"):
            self.refused(f"{name}: want", "plug_nic", **{key: value for key, value in PLUG.items() if key != name})
        self.refused("on fabric physnet1, not on physnet2", "delete_port", fabric="physnet2", vnic_mac=MAC)
        self.refused("vnic_mac: want", "delete_port", fabric=FABRIC, vnic_mac="")
        for action in ("set_vlan", "port_up", "port_down"):
            self.refused(f"no port of fabric {FABRIC} has {OTHER_VF}", action, fabric=FABRIC, pci_slot=OTHER_VF, vlan=5)
            self.refused(f"no port of fabric physnet2 has {VF}", action, fabric="physnet2", pci_slot=VF, vlan=5)
        for action in ("set_vlan", "port_up", "port_down", "port_release"):
            self.refused("pci_slot: want", action, fabric=FABRIC, vlan=5)
            self.refused("pci_slot: want", action, fabric=FABRIC, pci_slot=["x"], vlan=5)
            self.refused("fabric: want", action, pci_slot=VF, vlan=5)
            self.refused("ref_by", action, ref_by="mac_address", vlan=5, **PORT)
        for action in ("get_vnics", "get_eswitch_tables", "define_fabric_mapping"):
            self.refused("fabric: want", action)
            self.refused("fabric: want", action, fabric=["*"])
        self.refused("interface: want", "define_fabric_mapping", fabric=FABRIC)
        self.refused("interface: want", "define_fabric_mapping", fabric=FABRIC, interface="ib 0")
        self.refused("unknown action", "write-sys", path="/sys/x", value="1")
        self.refused("unknown action", "list_ports")
        self.refused("unknown action", "__init__")
        self.assertEqual(self.host.writes(), before)
        self.assertEqual(self.host.get("/v1/claims")[1], claims)

    def test_others_claims_are_out_of_reach(self):
        """One made through the API, on a reserved VF, that is named as a port is; and one whose name is another."""
        for name in ("ib0", "mac-fa163e123457x"):
            status, claim, _ = self.host.request("POST", "/v1/claims", {"domain": OTHER_UUID, "name": name, "fabric": FABRIC, "bdf": OTHER_VF})
            self.assertEqual(status, 201, claim)
            self.ok("get_vnics", {}, fabric="*")
            for action in ("set_vlan", "port_up", "port_down"):
                self.refused("no port of", action, fabric=FABRIC, pci_slot=OTHER_VF, vlan=5)
            self.ok("port_release", {}, fabric=FABRIC, pci_slot=OTHER_VF)
            self.ok("delete_port", {}, fabric=FABRIC, vnic_mac=OTHER_MAC)
            self.assertEqual(self.host.get(f"/v1/claims/{claim['id']}")[1]["state"], "programmed")
            self.assertEqual(self.host.request("DELETE", f"/v1/claims/{claim['id']}")[0], 200)

    def test_texts_that_are_no_request(self):
        for text, pattern in (
                (b"", "no JSON"), (b"x", "no JSON"), (b"{", "no JSON"), (b"\xff\xfe\x00", "no JSON"), (b"null", "no object"), (b"[]", "no object"),
                (b'"get_vnics"', "no object"), (b"NaN", "no object"), (b"1e999", "no object"), (b"{}", "unknown action"),
                (b'{"action": null}', "unknown action"), (b'{"action": ["get_vnics"]}', "unknown action"), (b'{"action": {}}', "unknown action"),
                (b'{"action": "\\ud800"}', "unknown action"), (b"[" * 60000, "no JSON"), (b'{"action":' * 6000, "no JSON"),
                (b'{"action": ' + b"9" * 60000 + b"}", "no JSON|unknown action"), (b'{"action": "' + b"x" * 70000 + b'"}', "at most"),
                (b"x" * 10_000_000, "at most")):
            with self.subTest(text[:20]):
                reply = self.client.raw(text)
                self.assertEqual((reply["status"], reply["action"]), ("FAIL", None))
                self.assertRegex(reply["reason"], pattern)
        self.ok("get_vnics", {}, fabric="*")

    def test_clients_do_not_wait_for_each_other(self):
        """Nor does a text of many frames, one above the limit, or a connection that is no ZeroMQ, end anything."""
        dealer = self.eswitch.client(zmq.DEALER)
        dealer.socket.send_multipart([b"a", b"", b"b", b"c", json.dumps({"action": "get_vnics", "fabric": "*"}).encode()])
        self.assertEqual(dealer.socket.recv_multipart()[:4], [b"a", b"", b"b", b"c"])
        for _ in range(500):
            dealer.socket.send_multipart([b"", json.dumps({"action": "get_vnics", "fabric": "*"}).encode()])
        self.ok("get_vnics", {}, fabric="*")
        dealer.close()
        huge = self.eswitch.client()
        self.assertIsNone(huge.raw(b"x" * 40_000_000, patience=2))
        huge.close()
        for data in (b"GET / HTTP/1.1\r\n\r\n", b"\xff" * 100000, b"\xff\0\0\0\0\0\0\0\1\x7f\3", os.urandom(5000)):
            with socket.create_connection(self.eswitch.address) as s:
                try:
                    s.sendall(data)
                except ConnectionError:
                    pass
        with socket.create_connection(self.eswitch.address):    # and says nothing
            self.ok("get_vnics", {}, fabric="*")

    def test_a_port_that_is_claimed_anew_is_missed_once(self):
        """A hard reboot, between two looks of the agent: MAC and slot are the same, the partitions are gone."""
        self.plug()
        self.begin()
        self.ok("set_vlan", {}, vlan=1, **PORT)

        def claim_anew():
            """What the agent sees then; None: this machine was too busy for that between two looks."""
            self.listed(VNIC)
            begun = time.monotonic()
            self.ok("delete_port", {"dev": VF}, fabric=FABRIC, vnic_mac=MAC)
            self.plug()
            self.begin()
            seen = self.client.say("get_vnics", fabric="*")["response"]
            return seen if time.monotonic() - begun < HIDDEN else None
        self.assertEqual(next((seen for seen in (claim_anew() for _ in range(5)) if seen is not None), None), {})
        self.assertEqual(self.pkeys(), [[]])
        self.ok("port_release", {}, **PORT)
        self.listed(VNIC)

    def test_a_port_that_is_refused_lets_the_others_go_on(self):
        self.plug()
        self.ok("plug_nic", {"dev": OTHER_VF}, **{**PLUG, "vnic_mac": OTHER_MAC, "dev_name": OTHER_VF})
        self.begin()
        self.host.wait(lambda: self.host.begin(bdf=OTHER_VF) == "pass\n", WAIT)
        both = {**VNIC, OTHER_VF: {"mac": OTHER_MAC, "pci_slot": OTHER_VF}}
        self.ok("get_vnics", both, fabric="*")
        self.refused("flat networks", "set_vlan", vlan=0, fabric=FABRIC, pci_slot=OTHER_VF)
        self.ok("get_vnics", VNIC, fabric="*")
        self.ok("port_release", {}, fabric=FABRIC, pci_slot=OTHER_VF)
        self.listed(both)


class Played(Case):
    def test_what_neutron_mlnx_agent_has_said(self):
        """Recorded by test_mlnx_agent: the same events and messages have the same replies."""
        story = Story(self.host, self.eswitch)
        with open(os.path.join(os.environ["VHCA_SOURCE_DIR"], "tests/data/mlnx-agent.json"), encoding="utf-8") as f:
            record = json.load(f)
        for n, (kind, what) in enumerate(record):
            if kind == "do":
                getattr(story, what)()
            elif kind == "ask":
                reply = record[n + 1][1]
                self.host.wait(lambda what=what, reply=reply: self.client.say(**what) == reply, WAIT)
                if what["action"] == "port_up":
                    self.assertEqual(story.pkeys(), ["0x8001"])


class Restarts(Case):
    def test_vhcad_is_killed(self):
        """A list that lacks a port, or a FAIL, would make the agent take it down, or end."""
        self.plug()
        self.begin()
        self.ok("set_vlan", {}, vlan=1, **PORT)
        self.ok("get_vnics", VNIC, fabric="*")
        stop, replies = threading.Event(), []

        def look():
            client = self.eswitch.client()
            while not stop.is_set():
                replies.append(client.say("get_vnics", fabric="*"))
            client.close()
        looks = threading.Thread(target=look)
        looks.start()
        try:
            for _ in range(3):
                before = self.host.writes()
                self.host.kill()
                self.ok("set_vlan", {}, vlan=1, **PORT)
                self.assertEqual([line for line in self.host.writes()[len(before):] if "admin_guid" in line or "pkey_idx" in line], [])
        finally:
            stop.set()
            looks.join()
        self.assertGreater(len(replies), 20)
        self.assertEqual([reply for reply in replies if reply != {"status": "OK", "response": VNIC, "action": "get_vnics"}], [])

    def test_itself_is_killed(self):
        self.plug()
        self.begin()
        self.ok("set_vlan", {}, vlan=1, **PORT)
        before = self.host.writes()
        address = self.eswitch.address
        self.eswitch.process.kill()
        self.eswitch.process.wait(WAIT)
        self.eswitch.log.close()
        self.eswitch = Eswitch(self.where, listen="{}:{}".format(*address))
        self.ok("get_vnics", VNIC, fabric="*")    # by the connection that the client makes again
        self.ok("set_vlan", {}, vlan=1, **PORT)
        self.assertEqual(self.host.writes(), before)


class Fuzz(Case):
    def random_value(self, draw):
        return draw.choice([None, True, -1, 0, 1, 5, 1 << 63, 1.5, "", "*", "x" * 300, "\0", "\ud800", "../..", "a b\r\nX: y", [], [[]], {}, {"a": []},
                            FABRIC, "physnet2", VF, OTHER_VF, FREE, PF, MAC, OTHER_MAC, "ff:ff:ff:ff:ff:ff", UUID, OTHER_UUID, "ib0", "ib_hostdev",
                            "pci_slot", "mac_address", "4095", "0"])

    def random_text(self, draw):
        message = {name: self.random_value(draw) for name in ("fabric", "interface", "pci_slot", "vlan", "ref_by", "device_id", "vnic_mac", "dev_name", "vnic_type")
                   if draw.random() < 0.7}
        if draw.random() < 0.6:    # of a good one
            message.update({**PLUG, **PORT, "interface": "ib0", "vlan": draw.randrange(-2, 0x8002), "ref_by": "pci_slot"})
            for name in draw.sample(sorted(message), draw.randrange(3)):
                message[name] = self.random_value(draw)
        message["action"] = draw.choice(ACTIONS) if draw.random() < 0.95 else self.random_value(draw)
        text = bytearray(json.dumps(message).encode())
        if draw.random() < 0.2:
            for _ in range(draw.randrange(1, 5)):
                text[draw.randrange(len(text))] = draw.randrange(256)
        return bytes(text[:draw.randrange(len(text))] if draw.random() < 0.05 else text)

    def run_seed(self, seed):
        draw = random.Random(seeds.tell(seed))
        for n in range(1500):
            text = self.random_text(draw)
            reply = self.client.raw(text)
            self.assertIsNotNone(reply, text)
            self.assertIn(reply["status"], ("OK", "FAIL"), text)
            self.assertEqual(set(reply), {"status", "action", "response" if reply["status"] == "OK" else "reason"}, text)
            self.assertNotIn("internal", reply.get("reason", ""), text)
            if n % 100 == 0:    # partitions, VFs and domains are only those that may be
                claims = self.host.get("/v1/claims")[1]["claims"]
                self.assertTrue({c["bdf"] for c in claims} <= {VF, OTHER_VF}, claims)
                self.assertTrue({c["name"] for c in claims} <= {f"mac-{mac.replace(':', '')}" for mac in (MAC, OTHER_MAC)}, claims)
                self.assertTrue(all(0x8001 <= int(key, 16) <= 0xfffe for c in claims for key in c["pkeys"]), claims)
        self.ok("define_fabric_mapping", {"fabric": FABRIC, "dev": "ib0"}, fabric=FABRIC, interface="ib0")


seeds.cases(Fuzz, seeds.FIXED)


class Silence(StubCase):
    def setUp(self):
        super().setUp()
        self.eswitch = Eswitch(self.where)
        self.client = self.eswitch.client()

    def tearDown(self):
        self.client.close()
        self.assertEqual(self.eswitch.end(), 0)

    def claims(self, *claims):
        return b"HTTP/1.1 200 OK\r\n\r\n" + json.dumps({"claims": claims}).encode()

    def port(self, **members):
        return {"id": "1", "way": "claim", "name": "mac-fa163e123456", "fabric": FABRIC, "bdf": VF, "state": "attached", "sm": "accepted",
                "sm_reason": None, "reserved": False, "pkeys": ["0x8001"], **members}

    def fails(self, pattern, action, **members):
        def seconds():
            reply = self.client.say(action, **members)
            self.assertEqual((reply["status"], reply["action"]), ("FAIL", action))
            if reply["reason"] in (LATE, NO_TIME) and reply["reason"] != pattern:
                return GIVEN_UP    # what it waited for came later than that
            self.assertRegex(reply["reason"], pattern)
            return self.client.seconds
        self.in_time(seconds)

    def in_time(self, seconds, limit=GIVEN_UP):
        """Others on this machine only make it longer: one of five is enough."""
        self.assertTrue(any(seconds() < limit for _ in range(5)))

    def test_down(self):
        for action, members in (("get_vnics", {"fabric": "*"}), ("define_fabric_mapping", {"fabric": FABRIC, "interface": "ib0"}),
                                ("set_vlan", {"vlan": 5, **PORT}), ("port_release", PORT)):
            self.fails("does not answer", action, **members)

    def test_hangs(self):
        self.serve(None)
        for action, members in (("get_vnics", {"fabric": "*"}), ("set_vlan", {"vlan": 5, **PORT}), ("port_up", PORT)):
            self.fails(LATE, action, **members)

    def test_forty_wait_as_long_as_one(self):
        """There are more of them than are worked at."""
        self.serve(None)

        def seconds():
            clients = [self.eswitch.client() for _ in range(40)]
            begun = time.monotonic()
            for client in clients:
                client.socket.send(b'{"action": "get_vnics", "fabric": "*"}')
            for client in clients:
                self.assertEqual(json.loads(client.socket.recv())["status"], "FAIL")
                client.close()
            return time.monotonic() - begun
        self.in_time(seconds, GIVEN_UP + 1)

    def test_the_agent_does_not_wait_for_plugs(self):
        """There are more of them than are worked at, each for 10 s; nor do these wait for each other."""
        self.serve(None)
        clients = [self.eswitch.client() for _ in range(50)]
        begun = time.monotonic()
        for client in clients:
            client.socket.send(json.dumps({"action": "plug_nic", **PLUG}).encode())
        end = time.monotonic() + WAIT
        while self.asked < 32:
            self.assertLess(time.monotonic(), end)
            time.sleep(0.02)
        self.assertEqual(self.client.say("get_vnics", fabric="*")["reason"], LATE)
        self.assertLess(self.client.seconds, 7)
        reasons = []
        for client in clients:
            reasons.append(json.loads(client.socket.recv())["reason"])
            client.close()
        self.assertLess(time.monotonic() - begun, 19)
        self.assertLessEqual(set(reasons), {LATE, NO_TIME})

    def test_the_last_list_is_the_answer_where_no_time_is_left(self):
        """FAIL would end the agent."""
        self.serve(self.claims(self.port()))
        self.assertEqual(self.client.say("get_vnics", fabric="*")["response"], VNIC)
        self.serve(None)
        clients = [self.eswitch.client() for _ in range(40)]
        for client in clients:
            client.socket.send(b'{"action": "get_vnics", "fabric": "*"}')
        for client in clients:
            self.assertEqual(json.loads(client.socket.recv())["response"], VNIC)
            client.close()

    def test_answers_that_are_none(self):
        for answer in (b"", b"hello\r\n\r\n", b"HTTP/1.1 200 OK\r\n\r\n{", b"HTTP/1.1 200 OK\r\n\r\n[]", b"HTTP/1.1 x\r\n\r\n{}", b"x" * 100000):
            with self.subTest(answer[:40]):
                self.serve(answer)
                self.fails("does not answer", "get_vnics", fabric="*")
        for answer in (b"HTTP/1.1 200 OK\r\n\r\n{}", b'HTTP/1.1 200 OK\r\n\r\n{"claims": [1]}'):
            with self.subTest(answer):
                self.serve(answer)
                self.fails("internal error", "get_vnics", fabric="*")
        self.serve(b'HTTP/1.1 500 Broken\r\n\r\n{"detail": "the disk is full"}')
        self.fails("the disk is full", "get_vnics", fabric="*")

    def test_busy_is_asked_again(self):
        busy = b'HTTP/1.1 503 Busy\r\n\r\n{"code": "vf_busy", "detail": "still"}'
        self.serve(self.claims(self.port()), busy, busy, b"HTTP/1.1 200 OK\r\n\r\n{}")
        self.assertEqual(self.client.say("set_vlan", vlan=5, **PORT)["status"], "OK")
        self.serve(self.claims(self.port()), busy)
        self.fails("^still$", "set_vlan", vlan=5, **PORT)

    def test_a_busy_port_lets_the_others_go_on(self):
        """A guest that does not give its VF back may take for ever."""
        self.serve(self.claims(self.port(state="detaching")), b'HTTP/1.1 503 Busy\r\n\r\n{"code": "vf_busy", "detail": "still"}')
        self.fails("^still$", "set_vlan", vlan=5, **PORT)
        self.serve(self.claims(self.port(state="detaching")))
        self.assertEqual(self.client.say("get_vnics", fabric="*")["response"], {})

    def test_the_subnet_managers_silence_is_heard(self):
        """vhcad says it after 2 s. When it is asked again, too little time is left for an answer."""
        silent = 2, b'HTTP/1.1 503 Busy\r\n\r\n{"code": "sm_silent", "detail": "the SM is silent"}'

        def is_heard():
            self.serve(self.claims(self.port()), silent)
            reason = self.client.say("set_vlan", vlan=5, **PORT)["reason"]
            self.serve(self.claims(self.port()))
            return (reason, self.client.say("get_vnics", fabric="*")["response"]) == ("the SM is silent", {})
        self.assertTrue(any(is_heard() for _ in range(5)))    # others on this machine may take the half second

    def test_the_last_list_is_the_answer_while_it_is_broken(self):
        self.serve(self.claims(self.port()))
        self.assertEqual(self.client.say("get_vnics", fabric="*")["response"], VNIC)
        for status in (500, 503, 507):
            self.serve(b'HTTP/1.1 %d Broken\r\n\r\n{"detail": "the disk is full"}' % status)
            self.assertEqual(self.client.say("get_vnics", fabric="*")["response"], VNIC)
            self.assertLess(self.client.seconds, 5 * GIVEN_UP)

    def test_the_last_list_is_the_answer_while_it_hangs(self):
        self.serve(self.claims(self.port()))
        self.assertEqual(self.client.say("get_vnics", fabric="*")["response"], VNIC)
        self.serve(None)

        def seconds():
            self.assertEqual(self.client.say("get_vnics", fabric="*")["response"], VNIC)
            return self.client.seconds
        self.in_time(seconds)
        self.serve(self.claims())
        self.assertEqual(self.client.say("get_vnics", fabric="*")["response"], {})

    def test_what_eswitchd_gave_a_guest_is_kept(self):
        """Behind the partition that is asked for; before it, it is another one that is asked for."""
        refusal = b'HTTP/1.1 409 Conflict\r\n\r\n{"code": "attached", "detail": "the guest has it"}'
        for pkeys, status, asked in ((["0x8005", "0xffff"], "OK", 1), (["0xffff", "0x8005"], "FAIL", 2), ([], "FAIL", 2)):
            self.serve(self.claims(self.port(state="attached", pkeys=pkeys)), refusal)
            self.assertEqual((self.client.say("set_vlan", vlan=5, **PORT)["status"], self.asked), (status, asked), pkeys)

    def test_what_was_adopted_without_a_partition_is_set_up_anew(self):
        """The agent asks for its partition when it has missed it once; a port that comes later is new anyway."""
        self.serve(self.claims(self.port(pkeys=[])))
        begun = time.monotonic()
        self.assertEqual(self.client.say("get_vnics", fabric="*")["response"], {})
        while self.client.say("get_vnics", fabric="*")["response"] != VNIC:
            self.assertLess(time.monotonic() - begun, WAIT)
        self.assertGreater(time.monotonic() - begun, HIDDEN - 1)
        self.serve(self.claims(self.port(pkeys=[]), self.port(pkeys=[], name="mac-fa163e123457", bdf=OTHER_VF)))
        self.assertEqual(set(self.client.say("get_vnics", fabric="*")["response"]), {VF, OTHER_VF})

    def test_the_sm_has_refused_it(self):
        for sm in ("refused", "superseded"):
            self.serve(self.claims(self.port(sm=sm, sm_reason="epoch 4")))
            self.fails(f"{sm} it: epoch 4", "port_up", **PORT)
        for sm in ("not_yet", "unreachable", "accepted"):
            self.serve(self.claims(self.port(sm=sm)))
            self.assertEqual(self.client.say("port_up", **PORT)["status"], "OK")

    def test_what_is_listed(self):
        for state, is_listed in (("claimed", False), ("programmed", True), ("attached", True), ("detaching", True), ("scrubbing", False),
                                 ("quarantined", False)):
            self.serve(self.claims(self.port(state=state)))
            self.assertEqual(bool(self.client.say("get_vnics", fabric="*")["response"]), is_listed, state)
        self.serve(self.claims(self.port(way="metadata"), self.port(name="ib0"), self.port(name="mac-fa163e12345")))
        self.assertEqual(self.client.say("get_vnics", fabric="*")["response"], {})


@unittest.skipUnless(os.geteuid() == 0, "acts as other users")
class Door(unittest.TestCase):
    def setUp(self):
        self.where = tempfile.mkdtemp(prefix="vhca-esw.")

    def tearDown(self):
        shutil.rmtree(self.where)

    def begin(self, *args):
        eswitch = Eswitch(self.where, *args)
        self.addCleanup(eswitch.end)
        return eswitch

    def connect(self, eswitch, user=None):
        with acting_as(user):    # whoever makes the socket owns it
            return socket.create_connection(eswitch.address, 10)

    def is_let_in(self, eswitch, user=None):
        """libzmq greets."""
        with self.connect(eswitch, user) as s:
            try:
                return s.recv(10)[:1] == b"\xff"
            except ConnectionError:
                return False

    def test_who_is_let_in(self):
        nobody, daemon = pwd.getpwnam("nobody"), pwd.getpwnam("daemon")
        eswitch = self.begin("--user", "daemon")
        self.assertTrue(self.is_let_in(eswitch))
        self.assertTrue(self.is_let_in(eswitch, daemon))
        self.assertFalse(self.is_let_in(eswitch, nobody))
        self.assertIn(f"refused a connection: it is of uid {nobody.pw_uid}", eswitch.text())
        eswitch = self.begin("--user", str(nobody.pw_uid), "--user", "daemon")
        self.assertTrue(self.is_let_in(eswitch, nobody))
        self.assertTrue(self.is_let_in(eswitch, daemon))

    def test_a_closed_socket_is_not_roots(self):
        """Its request may be here when its maker has closed it, and the kernel calls it root's then."""
        eswitch = self.begin()
        for linger in (0, 1):    # with and without a reset
            eswitch.process.send_signal(signal.SIGSTOP)
            with self.connect(eswitch, pwd.getpwnam("nobody")) as s:
                s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1 - linger, 0))
                s.sendall(b"\xff")
            eswitch.process.send_signal(signal.SIGCONT)
            self.assertTrue(self.is_let_in(eswitch))
        self.assertEqual(eswitch.text().split("\n")[1:], ["refused a connection: it has been closed", ""])

    def test_strangers_keep_nobody_out(self):
        eswitch = self.begin()

        def knock():
            os.setgroups([])
            os.setuid(65534)
            while True:
                s = socket.socket()
                s.connect(eswitch.address)
                s.close()
        child = os.fork()
        if child == 0:
            try:
                knock()
            finally:
                os._exit(0)
        try:
            seconds = []
            for _ in range(20):
                client = eswitch.client()
                self.assertEqual(client.raw(b"x")["status"], "FAIL")
                seconds.append(client.seconds)
                client.close()
            self.assertLess(statistics.median(seconds), GIVEN_UP)    # a busy machine makes some late
        finally:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        self.assertLess(len(eswitch.text()), 2000)

    def test_connections_are_bounded_and_come_back(self):
        eswitch = self.begin()
        crowd = [self.connect(eswitch) for _ in range(64)]
        self.assertTrue(all(s.recv(1) for s in crowd))
        self.assertFalse(self.is_let_in(eswitch))
        for s in crowd:
            s.close()
        end = time.monotonic() + WAIT
        while not self.is_let_in(eswitch) and time.monotonic() < end:
            time.sleep(0.1)
        self.assertTrue(self.is_let_in(eswitch))

    def test_loopback_only(self):
        for address, pattern in (("0.0.0.0:60001", "127.0.0.0/8"), ("10.0.0.1:60001", "127.0.0.0/8"), ("[::]:60001", "want ADDRESS:PORT"),
                                 (":60001", "want ADDRESS:PORT"), ("localhost:60001", "want ADDRESS:PORT"), ("127.0.0.1", "want ADDRESS:PORT"),
                                 ("127.0.0.1:65536", "127.0.0.0/8"), ("*:60001", "want ADDRESS:PORT")):
            done = subprocess.run([PROGRAM, "--listen", address, "--user", "0"], capture_output=True, text=True, timeout=WAIT, check=False)
            self.assertEqual(done.returncode, 2, address)
            self.assertIn(pattern, done.stderr)

    def test_what_keeps_it_from_starting(self):
        done = subprocess.run([PROGRAM, "--user", "nobody-such"], capture_output=True, text=True, timeout=WAIT, check=False)
        self.assertEqual((done.returncode, "no user nobody-such" in done.stderr), (2, True), done.stderr)
        with socket.create_server(("127.0.0.1", 0)) as taken:
            address = "{}:{}".format(*taken.getsockname())
            done = subprocess.run([PROGRAM, "--listen", address, "--user", "0"], capture_output=True, text=True, timeout=WAIT, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, f"^vhca-eswitch: {address}: .*in use")


tap.main(__name__)
