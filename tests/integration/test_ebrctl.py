#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""ebrctl as Nova calls it, against a whole agent on a simulated ConnectX-3 of four VFs, two of them reserved."""

import os
import re
import signal
import socket
import struct
import threading
import time
import unittest

import tap
from host_case import FREE, GUID, MAC, OTHER_MAC, OTHER_UUID, OTHER_VF, PF, UUID, VF, WAIT, HostCase, StubCase, ebrctl

LATE = 10 + 6    # seconds, after which it has given up, and a busy machine has started and ended it


class Ports(HostCase):
    def tearDown(self):
        for mac in (MAC, OTHER_MAC):
            self.done(self.host.delete(mac=mac), "")

    def done(self, result, stdout):
        self.assertEqual(result[:3], (stdout, "", 0), self.host.log_text() if result[2] else "")
        self.assertLess(result[3], LATE)

    def refused(self, result, pattern):
        out, err, code, seconds = result
        self.assertEqual((out, code), ("", 1))
        self.assertRegex(err, f"^ebrctl: [^\n]*{pattern}[^\n]*\n$")
        self.assertLess(seconds, LATE)

    def test_vfs_say_which_are_reserved(self):
        self.assertEqual([vf["bdf"] for vf in self.host.get("/v1/vfs?state=free")[1]["vfs"] if vf["reserved"]], [VF, OTHER_VF])

    def test_add_and_del(self):
        self.done(self.host.add(), "ib0")
        vf = self.host.vf(VF)
        self.assertEqual((vf["state"], vf["requested"], vf["domain"]), ("claimed", None, UUID))
        self.assertEqual([claim["reserved"] for claim in self.host.get("/v1/claims")[1]["claims"]], [True])
        self.assertRegex(self.host.begin(uuid=OTHER_UUID), "^refuse ")
        self.assertEqual(self.host.vf(VF)["state"], "claimed")
        self.done(self.host.plug(), "ib0")
        vf = self.host.vf(VF)
        self.assertEqual((vf["state"], vf["requested"], vf["domain"]), ("programmed", GUID, UUID))
        self.assertEqual([claim["reserved"] for claim in self.host.get("/v1/claims")[1]["claims"]], [False])
        self.assertEqual([p["pkey"] for p in vf["pkeys"] if p["pkey"]], [])
        self.done(self.host.delete(), "")
        vf = self.host.vf(VF)
        self.assertEqual((vf["state"], vf["requested"], vf["claim"]), ("free", None, None))

    def test_the_same_call_again_writes_nothing(self):
        self.done(self.host.plug(), "ib0")
        claim, before = self.host.vf(VF)["claim"], self.host.writes()
        self.assertTrue(any("FA163E0000123456" in line.upper().replace("0X", "") for line in before), before[-8:])
        for _ in range(5):
            self.done(self.host.add(), "ib0")
        self.done(self.host.add(mac=MAC.upper()), "ib0")
        self.assertEqual(self.host.writes(), before)
        self.assertEqual(self.host.vf(VF)["claim"], claim)

    def test_the_agent_is_killed_between(self):
        self.done(self.host.plug(), "ib0")
        claim, before = self.host.vf(VF)["claim"], self.host.writes()
        self.host.kill()
        self.done(self.host.add(), "ib0")
        self.assertEqual(self.host.vf(VF)["claim"], claim)
        self.host.wait(lambda: self.host.vf(VF)["requested"] == GUID)    # read after the agent is ready
        self.assertEqual([line for line in self.host.writes()[len(before):] if "admin_guid" in line or "pkey_idx" in line], [])
        self.host.kill()
        self.done(self.host.delete(), "")
        self.assertEqual(self.host.vf(VF)["state"], "free")

    def test_an_agent_that_has_just_begun_knows_the_device(self):
        self.done(self.host.plug(), "ib0")
        for _ in range(4):
            self.host.signal(signal.SIGKILL)
            said = [self.host.add()]
            while re.search("does not answer|has not answered", said[-1][1]) and len(said) < 5:    # a busy machine
                said.append(self.host.add())
            self.done(said[-1], "ib0")
            self.host.until_free()

    def hook_until_killed(self):
        try:
            self.host.begin()
        except OSError:
            pass    # it was

    def test_killed_while_it_is_asked(self):
        for delay in (0, 0.005, 0.02, 0.1):
            with self.subTest(delay):
                result = []
                call = threading.Thread(target=lambda: result.append(self.host.add()))
                call.start()
                time.sleep(delay)
                self.host.kill()
                call.join()
                self.assertIn(result[0][2], (0, 1))
                self.done(self.host.add(), "ib0")
                self.assertEqual(self.host.vf(VF)["requested"], None)
                begun = threading.Thread(target=self.hook_until_killed)
                begun.start()
                time.sleep(delay)
                self.host.kill()
                begun.join()
                self.done(self.host.plug(), "ib0")
                # None until this life has read it: the one before may have programmed it.
                self.host.wait(lambda: self.host.vf(VF)["requested"] == GUID, WAIT)
                self.done(self.host.delete(), "")
                self.assertEqual(self.host.vf(VF)["requested"], None)

    def test_unknown_is_deleted_already(self):
        before = self.host.writes()
        self.done(self.host.delete(), "")
        self.done(self.host.delete(fabric="nowhere"), "")
        self.done(self.host.plug(), "ib0")
        self.refused(self.host.delete(fabric="nowhere"), "on fabric physnet1, not on nowhere")
        self.assertEqual(self.host.vf(VF)["state"], "programmed")
        self.assertNotEqual(self.host.writes(), before)

    def test_refusals_change_nothing(self):
        self.done(self.host.plug(), "ib0")
        before, claims = self.host.writes(), self.host.get("/v1/claims")[1]
        for pattern, kwargs in (
                ("no unicast MAC address", {"mac": "fa:16:3e:12:34"}), ("no unicast MAC address", {"mac": "fb:16:3e:12:34:56"}),
                ("no unicast MAC address", {"mac": ""}), ("no unicast MAC address", {"mac": "fa:16:3e:12:34:5\n"}),
                ("no unicast MAC address", {"mac": MAC + "0" * 200}),
                ("no UUID", {"uuid": "vm1"}), ("ib_hostdev", {"vnic": "hw_veb"}), ("no PCI address", {"bdf": "01:00.2"}),
                ("no fabric", {"fabric": "a/b"}), ("on fabric physnet1, not on nowhere", {"mac": OTHER_MAC, "fabric": "nowhere", "bdf": OTHER_VF}),
                ("0000:01:00.0", {"mac": OTHER_MAC, "bdf": PF}), ("0000:7f:00.1", {"mac": OTHER_MAC, "bdf": "0000:7f:00.1"}),
                ("not reserved.*reserve", {"mac": OTHER_MAC, "bdf": FREE}),
                (f"is programmed, for .*; claim {self.host.vf(VF)['claim']}.*vhcactl detach {UUID} mac-fa163e123456", {"mac": OTHER_MAC, "uuid": OTHER_UUID}),
                ("belongs to", {"uuid": OTHER_UUID, "bdf": OTHER_VF}), ("has VF", {"bdf": OTHER_VF})):
            with self.subTest(kwargs):
                self.refused(self.host.add(**kwargs), pattern)
        for args in ((), ("add-port",), ("del-port", "physnet1"), ("write-sys", "/sys/x", "1"), ("del-port", "physnet1", MAC, "x")):
            with self.subTest(args):
                self.refused(self.host.ebrctl(*args), "usage: ")
        self.refused(self.host.delete(mac="x"), "no unicast MAC address")
        self.assertEqual(self.host.writes(), before)
        self.assertEqual(self.host.get("/v1/claims")[1], claims)

    def test_partitions_are_set_later(self):
        self.done(self.host.add(), "ib0")
        path = f"/v1/fabrics/physnet1/ports/{MAC}/partitions"
        for body, status in (({"partitions": ["0x8001 0x8002"]}, 400), ({"partitions": "0x8001"}, 400), ({}, 400), ({"partitions": [1]}, 400)):
            self.assertEqual(self.host.request("PUT", path, body)[0], status, body)
        self.assertEqual(self.host.request("PUT", path.replace("physnet1", "nowhere"), {"partitions": []})[1]["code"], "wrong_fabric")
        for pkeys in (["0x8011", "0x0012"], ["0x8011", "0x0012"], []):
            status, port, _ = self.host.request("PUT", path, {"partitions": pkeys})
            self.assertEqual((status, port["pkeys"], port["device"]), (200, pkeys, "ib0"), port)
            self.done(self.host.add(), "ib0")

    def test_two_ports_of_an_instance(self):
        self.done(self.host.add(), "ib0")
        self.done(self.host.add(mac=OTHER_MAC, bdf=OTHER_VF), "ib0")
        self.done(self.host.delete(), "")
        self.assertEqual([self.host.vf(bdf)["state"] for bdf in (VF, OTHER_VF)], ["free", "claimed"])


class Silence(StubCase):
    def call(self):
        return ebrctl(self.where, "add-port", MAC, UUID, "physnet1", "ib_hostdev", VF)

    def check(self, pattern, below):
        out, err, code, seconds = self.call()
        self.assertEqual((out, code), ("", 1))
        self.assertRegex(err, f"^ebrctl: [^\n]*{pattern}[^\n]*\n$")
        self.assertLess(seconds, below)

    def die(self):
        dead = socket.socket(socket.AF_UNIX)
        dead.bind(self.path)
        dead.close()

    def begin_later(self, *answers):
        timer = threading.Timer(1, self.serve, answers)
        self.addCleanup(timer.join)
        timer.start()

    def test_agent_is_down(self):
        self.check("does not answer .*No such file.*systemctl status vhcad", LATE)
        self.die()
        self.check("does not answer .*Connection refused", LATE)

    def test_agent_that_begins_is_asked_again(self):
        port = b'HTTP/1.1 200 OK\r\n\r\n{"device": "ib1"}'
        self.begin_later(port)
        self.assertEqual(self.call()[:3], ("ib1", "", 0))
        os.unlink(self.path)
        self.die()
        self.begin_later(b"", port)
        self.assertEqual(self.call()[:3], ("ib1", "", 0))

    def test_agent_hangs(self):
        self.serve(None)
        self.check("has not answered in 10 s", LATE)

    def test_answers_that_are_none(self):
        for answer in (b"hello\r\n\r\n", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\n\r\n{", b"x" * 100000,
                       b'HTTP/1.1 200 OK\r\n\r\n{"device": 1}', b'HTTP/1.1 200 OK\r\n\r\n{"detail": "say \\"device\\": \\"x\\""}'):
            with self.subTest(answer[:40]):
                self.serve(answer)
                self.check("", 9)
                self.assertEqual(self.asked, 1)

    def test_text_is_no_member(self):
        self.serve(b'HTTP/1.1 200 OK\r\n\r\n{"name": "device", "device": "ib1"}')
        self.assertEqual(self.call()[:3], ("ib1", "", 0))

    def test_busy_is_asked_again(self):
        busy = b'HTTP/1.1 503 Busy\r\nRetry-After: 1\r\n\r\n{"code": "vf_busy", "detail": "still"}'
        self.serve(busy, busy, b'HTTP/1.1 200 OK\r\n\r\n{"device" : "ib1"}')
        self.assertEqual(self.call()[:3], ("ib1", "", 0))


if os.environ.get("VHCA_EBRCTL_STATIC"):    # sanitizers cannot be linked so
    class Program(unittest.TestCase):
        def test_needs_no_library(self):
            """No PT_INTERP (3), no PT_DYNAMIC (2)."""
            with open(os.environ["VHCA_EBRCTL_STATIC"], "rb") as f:
                image = f.read()
            offset, = struct.unpack_from("<Q", image, 32)
            size, count = struct.unpack_from("<HH", image, 54)
            kinds = {struct.unpack_from("<I", image, offset + i * size)[0] for i in range(count)}
            self.assertTrue(1 in kinds and not kinds & {2, 3}, kinds)


tap.main(__name__)
