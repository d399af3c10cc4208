#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""vhcactl against a fake agent: an HTTP server on a unix socket with canned answers in the shape of docs/openapi.yaml."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import threading
import time
import unittest
import urllib.parse

import openapi
import tap
from ctl_case import CTL, CtlCase, problem

UUID = "6b3e1d60-0d6f-4f5e-9d38-0123456789ab"

NODE = {"node_name": "hva", "version": "0.1.0", "api": 1, "boot_id": "b", "started_ms": 1763617226000,
        "libvirt": {"uri": "qemu:///system", "connected": True},
        "sm": {"backend": "vhcasm", "reachable": False, "fenced": True, "pending": 2},
        "loop": {"max_callback_us": 1234, "blocking_calls": 0},
        "counts": {"unmanaged": 0, "free": 3, "attached": 1, "quarantined": 1}}
HCAS = {"hcas": [
    {"bdf": "0000:01:00.0", "family": "mlx4", "driver": "mlx4_core", "ibdev": "mlx4_0", "node_guid": None, "numa": 0,
     "fabric": "default", "managed": True, "total_vfs": 16, "num_vfs": 8, "want_vfs": 4, "busy_since_ms": None, "port": 1, "want_port": 1,
     "problem": "8 VFs exist, 4 are configured: set num_vfs=4 in /etc/modprobe.d/vhcad.conf and reload mlx4_core",
     "capabilities": {"host_pkey_map": True, "sees_grant": True, "link_policy": False},
     "ports": [{"port": 1, "guid": "0x0002c90300a1b2c3", "lid": 4, "sm_lid": 1, "state": "active",
                "pkeys": ["0xffff", "0x8001"]},
               {"port": 2, "guid": "0x0002c90300a1b2c4", "lid": 0, "sm_lid": 0, "state": "down",
                "pkeys": [f"0x80{i:02x}" for i in range(1, 17)]}]},
    {"bdf": "0000:41:00.0", "family": "mlx5", "driver": "mlx5_core", "ibdev": None, "fabric": "default",
     "managed": False, "total_vfs": 16, "num_vfs": 0, "want_vfs": None, "port": 1, "want_port": 1, "problem": None,
     "capabilities": {"host_pkey_map": False, "sees_grant": False, "link_policy": True}, "ports": []}]}
VFS = {"vfs": [
    {"bdf": "0000:01:00.1", "pf": "0000:01:00.0", "index": 0, "numa": 0, "driver": "vfio-pci", "iommu_group": 12,
     "state": "attached", "since_ms": 1, "reason": None, "domain": "vm1", "name": "ib0", "claim": UUID,
     "guid": "0x02c9ab0000000001", "requested": "0x02c9ab0000000001", "granted": True, "gid_index": 1,
     "pkeys": [{"index": 0, "pkey": "0x8001", "physical": 1}, {"index": 1, "pkey": "0xffff", "physical": 0}],
     "missing": []},
    {"bdf": "0000:01:00.2", "pf": "0000:01:00.0", "index": 1, "driver": "vfio-pci", "state": "programmed", "claim": UUID,
     "reason": "0x8002 is not in the port's table", "domain": "a long name", "name": "ib1",
     "guid": "0x02c9ab0000000002", "granted": False, "pkeys": [], "missing": ["0x8002"]},
    {"bdf": "0000:01:00.3", "pf": "0000:01:00.0", "index": 2, "driver": None, "state": "quarantined",
     "reason": "scrub: admin_guids reads back 0x0", "domain": None, "name": None, "claim": None, "guid": None,
     "granted": False, "pkeys": [], "missing": []}]}
DOMAINS = {"domains": [
    {"uuid": UUID, "name": "vm1", "requests": [
        {"name": "ib0", "partition": "0x8001", "guid": "auto", "fabric": "default", "problem": None},
        {"name": "ib1", "partition": "nowhere", "guid": "auto", "fabric": "default",
         "problem": "partition nowhere is not configured"}],
     "vfs": [{"name": "ib0", "bdf": "0000:01:00.1", "state": "attached", "guid": "0x02c9ab0000000001",
              "granted": True, "guest_address": "0000:07:00.0", "problem": None, "reason": None}]},
    {"uuid": UUID, "name": "plain", "requests": [], "vfs": []}]}
CLAIMS = {"claims": [
    {"id": UUID, "domain": UUID, "domain_name": "vm1", "name": "ib0", "bdf": "0000:01:00.1", "state": "attached",
     "guid": "0x02c9ab0000000001", "epoch": 3, "pkeys": ["0x8001"], "way": "metadata", "created_ms": 1763617226000,
     "reason": None}]}
OUTBOX = {"outbox": [
    {"seq": 7, "kind": "binding", "vguid": "0x02c9ab0000000001", "epoch": 3, "bound": True,
     "port_guid": "0x0002c90300000a01", "state": "waiting", "age_ms": 125000, "attempts": 4, "next_try_ms": 2500,
     "reason": "http://192.168.77.1:8515: Connection refused"},
    {"seq": 8, "kind": "binding", "vguid": "0x02c9ab0000000002", "epoch": 1, "bound": False,
     "port_guid": "0x0002c90300000a01", "state": "in_flight", "age_ms": 400, "attempts": 1, "next_try_ms": 0,
     "reason": None},
    {"seq": 9, "kind": "move", "vguid": "0x02c9ab0000000003", "epoch": 5, "bound": True,
     "port_guid": "0x0002c90300000a01", "state": "pending", "age_ms": 0, "attempts": 0, "next_try_ms": 0,
     "reason": None},
    {"seq": 10, "kind": "members", "port_guid": "0x0002c90300000a01", "state": "pending", "age_ms": 0,
     "attempts": 0, "next_try_ms": 0, "reason": None}]}
MIGRATION = "0f2d7a52-8c1b-4f0e-a5d7-9b8c7d6e5f40"
BEGUN = {"id": MIGRATION, "role": "source", "domain": UUID, "domain_name": "vm1", "peer": "hvb", "state": "claiming",
         "step_ms": {}, "blackout_us": {}, "started_ms": 1763617226000, "ended_ms": None, "reason": None, "degraded": False,
         "vfs": [{"name": "ib0", "bdf": "0000:01:00.1", "guid": "0x02c9ab0000000001", "epoch": 3, "state": "attached",
                  "attached": True, "granted": True}]}
STEPS = {"claiming": 43, "detaching": 1207, "handing_over": 80, "copying": 5310, "finishing": 1574}
DONE = {**BEGUN, "state": "done", "step_ms": STEPS, "blackout_us": {"removed_to_migrate": 6120}, "ended_ms": 1763617226000 + 8214}
FAILED = {**BEGUN, "state": "failed", "step_ms": {"claiming": 43, "detaching": 1207, "aborting": 12, "restoring": 900},
          "ended_ms": 1763617226000 + 2162, "reason": "the destination refused: no free VF"}
INCOMING = {**BEGUN, "id": UUID, "role": "destination", "domain_name": "vm2", "domain": MIGRATION, "state": "incoming",
            "blackout_us": {"resumed_to_attach": 1909, "resumed_to_granted": 402013}, "degraded": True, "reason": "hva does not answer"}
MIGRATIONS = {"migrations": [DONE, INCOMING, FAILED]}
CLAIM_RESULT = {**CLAIMS["claims"][0], "vf": VFS["vfs"][0]}

PORT_DOWN = {"step": "physical port", "status": "wrong", "text": "port 1 is DOWN (Polling)", "fix": "plug the cable in"}
VF_EXPLAINED = {"bdf": "0000:01:00.1", "pf": "0000:01:00.0", "state": "attached", "domain": "vm1", "name": "ib0",
                "verdict": {**PORT_DOWN, "subject": "vm1/ib0 (0000:01:00.1)"},
                "findings": [{"step": "GUID", "status": "ok", "text": "GUID is written", "fix": None}, PORT_DOWN]}
DOMAIN_EXPLAINED = {"uuid": UUID, "name": "vm1", "verdict": VF_EXPLAINED["verdict"], "vfs": [VF_EXPLAINED],
                    "findings": [{"step": "request", "status": "ok", "text": "ib0 has VF 0000:01:00.1", "fix": None}]}


class Tables(CtlCase):
    def test_vfs(self):
        self.agent({"GET /v1/vfs": VFS})
        p = self.ctl("vfs")
        self.assertEqual(p.stdout.splitlines(), [
            "BDF           STATE        DRIVER    DOMAIN/NAME      GUID                GRANTED  P_KEYS           REASON",
            "0000:01:00.1  attached     vfio-pci  vm1/ib0          0x02c9ab0000000001  yes      0x8001 0xffff    -",
            "0000:01:00.2  programmed   vfio-pci  a long name/ib1  0x02c9ab0000000002  no       0x8002(missing)  "
            "0x8002 is not in the port's table",
            "0000:01:00.3  quarantined  -         -                -                   -        -                "
            "scrub: admin_guids reads back 0x0"])

    def test_vfs_state(self):
        server = self.agent({"GET /v1/vfs": {"vfs": []}})
        self.assertEqual(self.rows("vfs", "--state", "fr&e"), [["no VF in this state"]])
        self.assertEqual(server.seen, [("GET", "/v1/vfs?state=fr%26e", None)])

    def test_a_full_table_is_shown_whole(self):
        keys = [f"0x{0x8001 + i:04x}" for i in range(127)]
        mapped = {**VFS["vfs"][0], "pkeys": [{"index": i, "pkey": k, "physical": i} for i, k in enumerate(keys)]}
        self.agent({"GET /v1/vfs": {"vfs": [mapped, {**VFS["vfs"][1], "missing": keys}]}})
        rows = self.rows("vfs")
        self.assertEqual(rows[1][6].split(), keys)
        self.assertEqual(rows[2][6].split(), [f"{k}(missing)" for k in keys])

    def test_domains(self):
        self.agent({"GET /v1/domains": DOMAINS})
        self.assertEqual(self.rows("domains"), [
            ["DOMAIN", "NAME", "BDF", "STATE", "GUID", "GRANTED", "IN_GUEST", "REASON"],
            ["vm1", "ib0", "0000:01:00.1", "attached", "0x02c9ab0000000001", "yes", "0000:07:00.0", "-"],
            ["vm1", "ib1", "-", "requested", "-", "-", "-", "partition nowhere is not configured"]])

    def test_vf_that_is_asked_for_in_another_way(self):
        vf = {**DOMAINS["domains"][0]["vfs"][0], "problem": "ib0 keeps its GUID", "reason": "waits for its grant"}
        self.agent({"GET /v1/domains": {"domains": [{"uuid": UUID, "name": "vm1", "requests": [], "vfs": [vf]}]}})
        self.assertEqual(self.rows("domains")[1][-1], "ib0 keeps its GUID")

    def test_hcas(self):
        self.agent({"GET /v1/hcas": HCAS})
        rows = self.rows("hcas")
        self.assertEqual(rows[0][:6], ["BDF", "FAMILY", "DEVICE", "MANAGED", "VFS", "PORT"])
        self.assertEqual(rows[1][:12], ["0000:01:00.0", "mlx4", "mlx4_0", "yes", "8->4/16", "1", "0x0002c90300a1b2c3",
                                        "4", "1", "active", "host", "0xffff 0x8001"])
        self.assertIn("modprobe.d", rows[1][12])
        self.assertEqual(rows[2][11], "0x8001 0x8002 0x8003 0x8004 0x8005 0x8006 +10")
        self.assertEqual(rows[3], ["0000:41:00.0", "mlx5", "-", "no", "0/16"] + ["-"] * 5 + ["sm", "-", "-"])

    def test_adapter_that_hangs(self):
        for busy, problem, words in ((34000, None, "in the kernel for 34s"), (900, None, "-"),
                                     (65000, "4 wanted", "in the kernel for 1m05s; 4 wanted")):
            self.agent({"GET /v1/hcas": {"hcas": [{**HCAS["hcas"][1], "busy_since_ms": busy, "problem": problem}]}})
            self.assertEqual(self.rows("hcas")[1][-1], words)
            os.unlink(self.socket)

    def test_claims(self):
        self.agent({"GET /v1/claims": CLAIMS})
        self.assertEqual(self.rows("claims")[1], [UUID, "vm1/ib0", "0000:01:00.1", "attached", "0x02c9ab0000000001",
                                                  "3", "0x8001", "metadata", "2025-11-20 05:40:26", "-"])

    def test_outbox(self):
        self.agent({"GET /v1/outbox": OUTBOX})
        rows = self.rows("outbox")
        self.assertEqual(rows[1], ["7", "0x02c9ab0000000001", "3", "bound", "waiting", "2m05s", "4", "in 2.5s",
                                   "http://192.168.77.1:8515: Connection refused"])
        self.assertEqual(rows[2], ["8", "0x02c9ab0000000002", "1", "withdrawn", "in_flight", "0.4s", "1", "now", "-"])
        self.assertEqual(rows[3][:4], ["9", "0x02c9ab0000000003", "5", "moved"])
        self.assertEqual(rows[4][:4], ["10", "port 0x0002c90300000a01", "-", "members"])

    def test_node(self):
        self.agent({"GET /v1/node": NODE})
        self.assertEqual(self.ctl("node").stdout, (
            "agent     hva: vhcad 0.1.0, API 1, since 2025-11-20 05:40:26\n"
            "libvirt   qemu:///system: connected\n"
            "SM        vhcasm: NOT reachable, fenced, 2 to report (vhcactl outbox)\n"
            "VFs       3 free, 1 attached, 1 quarantined\n"
            "loop      longest callback 1.2 ms, 0 blocking calls\n"))

    def test_node_without_subnet_manager(self):
        self.agent({"GET /v1/node": {**NODE, "sm": {"backend": "none", "reachable": True}, "counts": {"free": 0}}})
        text = self.ctl("node").stdout
        self.assertIn("\nSM        none: partitions are made by hand, nobody is told\n", text)
        self.assertIn("\nVFs       none\n", text)

    def test_empty_lists_say_so(self):
        names = ("hcas", "vfs", "domains", "claims", "migrations", "outbox")
        self.agent({f"GET /v1/{k}": {k: []} for k in names})
        for name in names:
            p = self.ctl(name)
            self.assertEqual((p.returncode, p.stdout.count("\n"), p.stderr), (0, 1, ""))
            self.assertNotIn("BDF", p.stdout)

    def test_unknown_shapes_do_no_harm(self):
        """A newer agent may add and change members."""
        self.agent({"GET /v1/vfs": {"vfs": [{}, 7, None, {"bdf": [], "state": {}, "pkeys": "x", "missing": [3],
                                                          "granted": "maybe", "guid": 5, "new": 1}]},
                    "GET /v1/node": {}, "GET /v1/domains": {"domains": [{"vfs": 1, "requests": [None]}]},
                    "GET /v1/hcas": {"hcas": [[], {"ports": [1]}]},
                    "GET /v1/migrations": {"migrations": [5, {}, {"started_ms": "x", "state": []}]},
                    "GET /v1/domains/a/explain": {"verdict": [], "findings": [7, {}], "vfs": [1, {}]},
                    "POST /v1/migrations": {"id": "x"},
                    "GET /v1/migrations/x": {"state": "done", "vfs": [1, {}], "step_ms": [{}]}})
        for args in (["vfs"], ["node"], ["domains"], ["hcas"], ["migrations"], ["migrate", "a", "b"],
                     ["explain", "a"]):
            self.assertEqual(self.ctl(*args).returncode, 0)

    def test_names_cannot_move_the_cursor(self):
        vf = {**VFS["vfs"][0], "domain": "a\x1b[2J\nb", "reason": "über\x7f"}
        self.agent({"GET /v1/vfs": {"vfs": [vf]}})
        line = self.ctl("vfs").stdout.splitlines()[1]
        self.assertIn("a?[2J?b/ib0", line)
        self.assertTrue(line.endswith("über?"))

    def test_columns_stay_aligned_with_utf8(self):
        vfs = [{**VFS["vfs"][0], "domain": d} for d in ("größe", "groesse")]
        self.agent({"GET /v1/vfs": {"vfs": vfs}})
        lines = self.ctl("vfs", env={"LC_ALL": "C.UTF-8"}).stdout.splitlines()
        self.assertEqual({line.index("0x02c9ab") for line in lines[1:]}, {lines[0].index("GUID")})


class Shapes(unittest.TestCase):
    """The canned answers above are what the document promises."""

    def test_canned_answers(self):
        document = openapi.Document()
        for schema, doc in (("Node", NODE), ("HcaList", HCAS), ("VfList", VFS), ("DomainList", DOMAINS),
                            ("ClaimList", CLAIMS), ("Outbox", OUTBOX), ("ClaimResult", CLAIM_RESULT),
                            ("VfExplanation", VF_EXPLAINED), ("DomainExplanation", DOMAIN_EXPLAINED),
                            ("Released", {"state": "free"}), ("MigrationList", MIGRATIONS), ("Events", {"cursor": "a.3", "events": Watch.events(1, 3)}),
                            ("Problem", problem(404, "not-found", "no_such_path", "d")[1])):
            with self.subTest(schema):
                self.assertEqual(document.check(schema, doc), [])


class Explain(CtlCase):
    WALK = ["0000:01:00.1  vm1/ib0  attached",
            "  ok       GUID           GUID is written",
            "  wrong    physical port  port 1 is DOWN (Polling)",
            "                          -> plug the cable in"]
    VERDICT = ["WRONG  vm1/ib0 (0000:01:00.1): physical port: port 1 is DOWN (Polling)", "fix:  plug the cable in"]

    def test_vf(self):
        server = self.agent({"GET /v1/vfs/0000%3A01%3A00.1/explain": VF_EXPLAINED})
        p = self.ctl("explain", "0000:01:00.1")
        self.assertEqual((p.returncode, p.stderr), (0, ""))
        self.assertEqual(p.stdout.splitlines(), [*self.VERDICT, "", *self.WALK])
        self.assertEqual(len(server.seen), 1)

    def test_domain(self):
        self.agent({"GET /v1/domains/vm1/explain": DOMAIN_EXPLAINED})
        p = self.ctl("explain", "vm1")
        self.assertEqual((p.returncode, p.stderr), (0, ""))
        self.assertEqual(p.stdout.splitlines(), [
            *self.VERDICT, "", "  ok       request        ib0 has VF 0000:01:00.1", "", *self.WALK])

    def test_nothing_is_wrong(self):
        fine = {"subject": "vm1", "status": "ok", "step": None, "text": "nothing is wrong", "fix": None}
        self.agent({"GET /v1/domains/vm1/explain": {**DOMAIN_EXPLAINED, "verdict": fine, "findings": [], "vfs": []}})
        self.assertEqual(self.ctl("explain", "vm1").stdout, "OK  vm1: nothing is wrong\n")
        self.assertEqual(self.ctl("explain", "--check", "vm1").returncode, 0)

    def test_check_tells_by_its_exit_status(self):
        for status, code in (("wrong", 12), ("warning", 11), ("unknown", 10), ("ok", 0), ("new word", 1)):
            self.agent({"GET /v1/domains/vm1/explain": {**DOMAIN_EXPLAINED, "verdict": {**PORT_DOWN, "status": status}}})
            plain = self.ctl("explain", "vm1")
            for json_too in ((), ("--json",)):
                self.assertEqual(self.ctl("explain", "vm1", "--check", *json_too).returncode, code)
            self.assertEqual((plain.returncode, plain.stdout), (0, self.ctl("explain", "vm1", "--check").stdout))
            os.unlink(self.socket)

    def test_json_and_errors(self):
        self.agent({"GET /v1/domains/vm1/explain": DOMAIN_EXPLAINED,
                    "GET /v1/domains/vm2/explain": problem(404, "not-found", "no_such_domain", "no vm2", "virsh list")})
        self.assertEqual(json.loads(self.ctl("explain", "vm1", "--json").stdout), DOMAIN_EXPLAINED)
        p = self.ctl("explain", "vm2")
        self.assertEqual((p.returncode, p.stdout, p.stderr), (3, "", "vhcactl: no vm2\nhint: virsh list\n"))

    def test_texts_cannot_move_the_cursor(self):
        bad = {**PORT_DOWN, "text": "a\x1b[2Jb", "fix": "c\nd"}
        self.agent({"GET /v1/vfs/0000%3A01%3A00.1/explain": {**VF_EXPLAINED, "findings": [bad], "domain": "e\rf",
                                                             "verdict": {**bad, "subject": "g\bh"}}})
        text = self.ctl("explain", "0000:01:00.1").stdout
        for word in ("a?[2Jb", "c?d", "e?f", "g?h"):
            self.assertIn(word, text)

class Migrations(CtlCase):
    PATH = f"/v1/migrations/{MIGRATION}"

    def follow(self, *docs, begun=BEGUN, more=None):
        """An agent that starts a migration, and then answers with one document after the other, the last for ever."""
        left = list(docs)

        def answer(_):
            return 200, left.pop(0) if len(left) > 1 else left[0]
        return self.agent({"POST /v1/migrations": (202, begun), f"GET {self.PATH}": (200, answer), **(more or {})})

    @staticmethod
    def at(state, **members):
        """The document of a migration in a state, with the steps before it."""
        names = list(STEPS)
        steps = {k: STEPS[k] for k in names[:names.index(state)]}
        return {**BEGUN, "state": state, "step_ms": steps, **members}

    def test_prints_a_line_for_each_step(self):
        server = self.follow(self.at("claiming"), self.at("claiming"), self.at("detaching"), self.at("copying"),
                             {**self.at("copying"), "step_ms": {**self.at("copying")["step_ms"], "copying": 99}}, DONE)
        p = self.ctl("migrate", "vm1", "hvb")
        self.assertEqual((p.returncode, p.stderr), (0, ""))
        self.assertEqual(p.stdout.splitlines(), [
            f"vm1: migration {MIGRATION} to hvb",
            "claiming            0.043 s",
            "detaching           1.207 s",
            "handing_over        0.080 s",
            "copying             5.310 s",
            "finishing           1.574 s",
            "vm1: moved to hvb in 8.214 s"])
        self.assertEqual(server.seen[0], ("POST", "/v1/migrations", {"domain": "vm1", "peer": "hvb", "mode": "managed"}))
        self.assertEqual({s[:2] for s in server.seen[1:]}, {("GET", self.PATH)})

    READY = {**BEGUN, "mode": "external", "state": "ready", "lease_left_ms": 300500, "peer_libvirt": "qemu+tcp://hvb/system",
             "peer_migration": None, "step_ms": {"claiming": 43, "detaching": 1207, "handing_over": 80}}

    def test_external_says_what_to_run(self):
        server = self.follow(self.at("detaching"), self.READY)
        p = self.ctl("migrate", "--external", "vm1", "hvb", "--lease", "300")
        self.assertEqual((p.returncode, p.stderr), (0, ""))
        self.assertEqual(server.seen[0], ("POST", "/v1/migrations", {"domain": "vm1", "peer": "hvb", "mode": "external", "lease": 300}))
        lines = p.stdout.splitlines()
        self.assertEqual([line.split()[0] for line in lines[:5]], ["vm1:", "claiming", "detaching", "handing_over", "vm1:"])
        self.assertIn("  virsh migrate --live --p2p vm1 qemu+tcp://hvb/system", lines)
        self.assertIn("Within 300 s", p.stdout)
        os.unlink(self.socket)
        self.follow({**self.READY, "peer_migration": "tcp://192.168.77.2"})
        self.assertIn("  virsh migrate --live --p2p vm1 qemu+tcp://hvb/system --migrateuri tcp://192.168.77.2\n",
                      self.ctl("migrate", "--external", "vm1", "hvb").stdout)
        os.unlink(self.socket)
        self.follow(FAILED)
        self.assertEqual(self.ctl("migrate", "--external", "vm1", "hvb").returncode, 4)

    def test_lease_is_a_number(self):
        self.agent({})
        p = self.ctl("migrate", "--external", "vm1", "hvb", "--lease", "1h")
        self.assertEqual((p.returncode, p.stderr), (2, "vhcactl: --lease: '1h' is no number of seconds\n"))

    def test_copy_is_asked_for(self):
        server = self.follow(DONE)
        p = self.ctl("migrate", "vm1", "hvb", "--copy-timeout", "600", "--bandwidth", "500", "--connections", "8", "--auto-converge", "--tls")
        self.assertEqual((p.returncode, p.stderr), (0, ""))
        self.assertEqual(server.seen[0][2], {"domain": "vm1", "peer": "hvb", "mode": "managed", "copy": {
            "timeout": 600, "bandwidth": 500, "connections": 8, "auto_converge": True, "tls": True}})
        p = self.ctl("migrate", "vm1", "hvb", "--bandwidth", "fast")
        self.assertEqual((p.returncode, p.stderr), (2, "vhcactl: --bandwidth: 'fast' is no number of MiB/s\n"))

    def test_park_and_unpark(self):
        parked = {**BEGUN, "mode": "park", "peer": None, "state": "parked", "lease_left_ms": 60000, "step_ms": {"detaching": 1207}}
        server = self.follow(self.at("detaching"), parked)
        p = self.ctl("park", "vm1")
        self.assertEqual((p.returncode, p.stderr), (0, ""))
        self.assertEqual(server.seen[0], ("POST", "/v1/migrations", {"domain": "vm1", "mode": "park"}))
        self.assertIn("vm1: runs without its VFs for 60 s, or until vhcactl unpark vm1.", p.stdout)
        os.unlink(self.socket)
        for last, code, words in (({**FAILED, "reason": "cancelled by request"}, 0, "vm1: has its VFs again"), (DONE, 4, "does not run here any more")):
            server = self.follow(last, more={"GET /v1/migrations": {"migrations": [parked]}, f"POST {self.PATH}/abort": (202, parked)})
            p = self.ctl("unpark", "vm1")
            self.assertEqual(p.returncode, code)
            self.assertIn(words, p.stdout + p.stderr)
            self.assertIn("POST", [s[0] for s in server.seen])
            os.unlink(self.socket)
        self.follow({**FAILED, "reason": "the guest did not let go of a VF"})
        p = self.ctl("park", "vm1")
        self.assertEqual((p.returncode, p.stderr), (4, "vhcactl: vm1: not parked, all is as it was: the guest did not let go of a VF\n"))

    def test_drain(self):
        def doc(done, *domains, drained=True):
            return {"drained": drained, "since_ms": 1, "peers": ["hvb"], "done": done, "claims": len(domains),
                    "domains": [{"domain": UUID, "domain_name": n, "state": s, "reason": r} for n, s, r in domains]}
        left = [doc(False, ("vm1", "moving", None), ("vm2", "waiting", "hvb has no free VF")),
                doc(False, ("vm1", "moving", None), ("vm2", "moving", None)), doc(True)]
        server = self.agent({"POST /v1/drain": (202, left[0]), "DELETE /v1/drain": (200, doc(False, drained=False)),
                             "GET /v1/drain": lambda _: (200, left.pop(0) if len(left) > 1 else left[0])})
        p = self.ctl("drain", "hvb", "hvc")
        self.assertEqual((p.returncode, p.stderr), (0, ""))
        self.assertEqual(server.seen[0], ("POST", "/v1/drain", {"peers": ["hvb", "hvc"]}))
        self.assertEqual(p.stdout.splitlines(), ["vm1: moving", "vm2: waiting: hvb has no free VF", "vm2: moving",
                                                 "drained: no guest has a VF of this host"])
        server.seen.clear()
        self.assertEqual((self.ctl("drain", "--park", "--no-wait").returncode, server.seen), (0, [("POST", "/v1/drain", {"park": True})]))
        left[:] = [doc(True, ("vm1", "parked", None))]
        self.assertEqual(self.ctl("drain", "--park").stdout.splitlines(), ["vm1: parked", "drained: 1 domains run on without their VFs"])
        left[:] = [doc(False, ("vm1", "waiting", None))]
        p = self.ctl("drain", "hvb", "--timeout", "1")
        self.assertEqual((p.returncode, "1 VFs are still claimed" in p.stderr), (7, True))
        left[:] = [doc(False, drained=False)]
        self.assertEqual(self.ctl("drain", "hvb").returncode, 4)
        self.assertEqual(self.ctl("undrain").stdout, "no longer drained\n")

    def test_lines_come_when_the_step_ends(self):
        gate = threading.Event()

        def answer(_):
            return 200, DONE if gate.is_set() else self.at("detaching")
        self.agent({"POST /v1/migrations": (202, BEGUN), f"GET {self.PATH}": (200, answer)})
        p = subprocess.Popen([CTL, "--socket", self.socket, "migrate", "vm1", "hvb"], stdout=subprocess.PIPE, text=True)
        self.addCleanup(lambda: (p.kill(), p.communicate()))
        self.assertEqual([p.stdout.readline().split()[0] for _ in range(2)], ["vm1:", "claiming"])
        gate.set()
        self.assertEqual([p.stdout.readline().split()[0] for _ in range(5)],
                         ["detaching", "handing_over", "copying", "finishing", "vm1:"])
        self.assertEqual(p.wait(timeout=10), 0)

    def test_says_what_is_not_granted(self):
        vfs = [BEGUN["vfs"][0], {**BEGUN["vfs"][0], "name": "ib1", "granted": False}]
        self.follow({**DONE, "vfs": vfs})
        text = self.ctl("migrate", "vm1", "hvb").stdout
        self.assertIn("ib1", text)
        self.assertNotIn("ib0", text)
        self.assertIn("vhcactl vfs on hvb", text)

    def test_rolled_back(self):
        self.follow(FAILED)
        p = self.ctl("migrate", "vm1", "hvb")
        self.assertEqual(p.returncode, 4)
        self.assertEqual([line.split()[0] for line in p.stdout.splitlines()],
                         ["vm1:", "claiming", "detaching", "aborting", "restoring"])
        self.assertEqual(p.stderr, "vhcactl: vm1: not moved, all is back here as it was: "
                                   "the destination refused: no free VF\n")

    def test_not_all_vfs_are_in_the_guest(self):
        for doc, words in (({**FAILED, "degraded": True}, "not all its VFs are back: the destination refused"),
                           ({**DONE, "degraded": True, "reason": "ib0 does not attach"}, "is on hvb, but not with all")):
            self.follow(doc)
            p = self.ctl("migrate", "vm1", "hvb")
            os.unlink(self.socket)
            self.assertEqual(p.returncode, 6)
            self.assertIn(words, p.stderr)
            self.assertIn("hint: vhcactl domains", p.stderr)
            self.assertNotIn("retried", p.stdout)

    def test_what_is_retried_is_said_once(self):
        stuck = self.at("finishing", degraded=True, reason="hvb does not answer")
        self.follow(stuck, stuck, stuck, {**stuck, "reason": "ib0 is not attached there"}, DONE)
        p = self.ctl("migrate", "vm1", "hvb")
        self.assertEqual(p.returncode, 0)
        self.assertEqual([line for line in p.stdout.splitlines() if "retried" in line],
                         ["finishing      retried: hvb does not answer",
                          "finishing      retried: ib0 is not attached there"])

    def test_a_guest_that_does_not_let_go_is_told(self):
        self.follow(self.at("detaching", reason="waits; its guest agent was asked"), DONE)
        p = self.ctl("migrate", "vm1", "hvb")
        self.assertEqual([line for line in p.stdout.splitlines() if "retried" in line],
                         ["detaching      retried: waits; its guest agent was asked"])
        os.unlink(self.socket)
        self.follow(self.at("detaching", reason="cancelled by request", code="cancelled"), FAILED)
        self.assertNotIn("retried", self.ctl("migrate", "vm1", "hvb").stdout)

    def test_refused(self):
        self.agent({"POST /v1/migrations": problem(404, "not-found", "unknown_peer", "no [peer hvx]", "vhcad.conf(5)")})
        p = self.ctl("migrate", "vm1", "hvx")
        self.assertEqual((p.returncode, p.stdout), (3, ""))
        self.assertEqual(p.stderr, "vhcactl: vm1: no [peer hvx]\nhint: vhcad.conf(5)\n")

    def test_no_wait(self):
        server = self.follow(DONE)
        p = self.ctl("migrate", "--no-wait", "vm1", "hvb")
        self.assertEqual((p.returncode, p.stdout), (0, f"vm1: migration {MIGRATION} to hvb\n"))
        self.assertEqual(len(server.seen), 1)
        self.assertEqual(json.loads(self.ctl("migrate", "--no-wait", "vm1", "hvb", "--json").stdout), BEGUN)

    def test_json_is_the_last_answer(self):
        for doc, code in ((DONE, 0), (FAILED, 4)):
            self.follow(self.at("copying"), doc)
            p = self.ctl("migrate", "vm1", "hvb", "--json")
            os.unlink(self.socket)
            self.assertEqual((p.returncode, json.loads(p.stdout)), (code, doc))

    def test_timeout_ends_the_waiting_only(self):
        self.follow(self.at("copying"))
        p = self.ctl("migrate", "vm1", "hvb", "--timeout", "1")
        self.assertEqual(p.returncode, 7)
        self.assertIn("vm1: not over after 1 s (copying), and goes on\nhint: vhcactl migrations\n", p.stderr)

    def test_outlives_a_restart_of_the_agent(self):
        server = self.follow(self.at("copying"))
        p = subprocess.Popen([CTL, "--socket", self.socket, "migrate", "vm1", "hvb"], stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True)
        self.addCleanup(lambda: (p.kill(), p.communicate()))
        self.assertIn("migration", p.stdout.readline())
        for _ in range(3):
            p.stdout.readline()
        server.shutdown()
        server.server_close()
        os.unlink(self.socket)
        self.assertIn("waiting", p.stderr.readline())
        self.follow(DONE)
        out, err = p.communicate(timeout=20)
        self.assertEqual((p.returncode, err), (0, ""))
        self.assertIn("moved to hvb", out)

    def test_silent_agent_is_not_waited_for_beyond_the_timeout(self):
        self.agent({"POST /v1/migrations": (202, BEGUN),
                    f"GET {self.PATH}": problem(503, "unavailable", "starting", "the agent starts")})
        p = self.ctl("migrate", "vm1", "hvb", "--timeout", "1")
        self.assertEqual(p.returncode, 7)
        self.assertIn("vhcactl: the agent starts; waiting\n", p.stderr)

    def test_forgotten_migration(self):
        self.agent({"POST /v1/migrations": (202, BEGUN),
                    f"GET {self.PATH}": problem(404, "not-found", "unknown_migration", "no such migration")})
        self.assertEqual(self.ctl("migrate", "vm1", "hvb").returncode, 3)

    def test_agent_absent(self):
        self.assertEqual(self.ctl("migrate", "vm1", "hvb").returncode, 7)
        self.assertEqual(self.ctl("migrate", "vm1", "--cancel").returncode, 7)

    def cancel(self, last, *args, running=None):
        running = running or self.at("copying")
        server = self.follow(last, more={"GET /v1/migrations": {"migrations": [FAILED, INCOMING, running]},
                                         f"POST {self.PATH}/abort": (202, running)})
        p = self.ctl("migrate", "--cancel", *args)
        os.unlink(self.socket)
        return p, server

    def test_cancel(self):
        for name in ("vm1", UUID, UUID.upper()):
            p, server = self.cancel({**FAILED, "reason": "cancelled"}, name)
            self.assertEqual((p.returncode, p.stderr), (0, ""))
            self.assertEqual([s[:2] for s in server.seen], [
                ("GET", "/v1/migrations"), ("POST", f"{self.PATH}/abort"), ("GET", self.PATH)])
            lines = p.stdout.splitlines()
            self.assertEqual(lines[0], f"{name}: migration {MIGRATION} to hvb is being cancelled")
            self.assertEqual(lines[-1], f"{name}: cancelled, all is back here as it was")

    def test_cancel_comes_too_late(self):
        p, _ = self.cancel(DONE, "vm1")
        self.assertEqual(p.returncode, 4)
        self.assertIn("vm1: too late, it is on hvb", p.stderr)

    def test_cancel_that_leaves_work(self):
        p, _ = self.cancel({**FAILED, "degraded": True}, "vm1")
        self.assertEqual(p.returncode, 6)

    def test_cancel_without_waiting(self):
        p, server = self.cancel(DONE, "vm1", "--no-wait")
        self.assertEqual((p.returncode, len(server.seen)), (0, 2))

    def test_cancel_json(self):
        p, _ = self.cancel(FAILED, "vm1", "--json")
        self.assertEqual((p.returncode, json.loads(p.stdout)), (0, FAILED))

    def test_cancel_of_nothing(self):
        p, server = self.cancel(DONE, "vm3")
        self.assertEqual((p.returncode, p.stdout), (3, ""))
        self.assertIn("vm3: is not being migrated", p.stderr)
        p, server = self.cancel(DONE, "vm1", running=DONE)   # only what is over
        self.assertEqual(p.returncode, 3)
        self.assertEqual(len(server.seen), 1)

    def test_cancel_at_the_destination(self):
        p, server = self.cancel(DONE, "vm2")
        self.assertEqual((p.returncode, len(server.seen)), (4, 1))
        self.assertIn("hint: vhcactl migrate --cancel vm2 on hvb", p.stderr)

    def test_table(self):
        self.agent({"GET /v1/migrations": MIGRATIONS})
        rows = self.rows("migrations")
        self.assertEqual(rows[0], ["ID", "ROLE", "DOMAIN", "PEER", "STATE", "AGE", "OVERHEAD", "REASON"])
        self.assertEqual([row[:5] + row[6:] for row in rows[1:]], [
            [MIGRATION, "source", "vm1", "hvb", "done", "6.1ms", "-"],
            [UUID, "destination", "vm2", "hvb", "incoming (degraded)", "1.9ms, granted 402.0ms", "hva does not answer"],
            [MIGRATION, "source", "vm1", "hvb", "failed", "-", "the destination refused: no free VF"]])

    def test_age_counts_from_the_begin(self):
        docs = [{**DONE, "started_ms": int(time.time() * 1000) - ms} for ms in (125_000, -60_000)]
        self.agent({"GET /v1/migrations": {"migrations": docs}})
        ages = [row[5] for row in self.rows("migrations")[1:]]
        self.assertRegex(ages[0], r"^2m\d\ds$")
        self.assertEqual(ages[1], "0.0s")   # a clock that was set back


class Json(CtlCase):
    def test_prints_what_the_agent_said(self):
        docs = {"node": NODE, "hcas": HCAS, "vfs": VFS, "domains": DOMAINS, "claims": CLAIMS, "outbox": OUTBOX,
                "migrations": MIGRATIONS}
        self.agent({f"GET /v1/{k}": doc for k, doc in docs.items()})
        for name, doc in docs.items():
            for args in (("--json", name), (name, "--json")):
                p = self.ctl(*args)
                self.assertEqual((p.returncode, p.stderr), (0, ""))
                self.assertEqual(json.loads(p.stdout), doc)

    def test_prints_the_problem_document(self):
        self.agent({"GET /v1/vfs": problem(409, "conflict", "vf_busy", "VF is busy")})
        p = self.ctl("vfs", "--json")
        self.assertEqual(p.returncode, 4)
        self.assertEqual(json.loads(p.stdout)["code"], "vf_busy")
        self.assertIn("VF is busy", p.stderr)


class Changes(CtlCase):
    PATH = "/v1/domains/vm1/vfs/ib0"

    def test_attach(self):
        server = self.agent({f"POST {self.PATH}": CLAIM_RESULT})
        p = self.ctl("attach", "vm1", "ib0", "--partition", "0x8001 storage")
        self.assertEqual((p.returncode, p.stderr), (0, ""))
        self.assertEqual(p.stdout, "vm1/ib0: attached VF 0000:01:00.1 with GUID 0x02c9ab0000000001\n")
        self.assertEqual(server.seen, [("POST", self.PATH, {"partition": "0x8001 storage"})])

    def test_attach_with_all(self):
        vf = {**VFS["vfs"][0], "granted": False, "missing": ["0x8001"]}
        server = self.agent({f"POST {self.PATH}": {**CLAIMS["claims"][0], "vf": vf}})
        p = self.ctl("attach", "--fabric=f2", "vm1", "--guid", "0x02c9ab0000000009", "ib0", "--partition=a",
                     "--pf", "0000:01:00.0", "--numa", "1")
        self.assertIn("not granted", p.stdout)
        self.assertIn("partitions", p.stdout)
        self.assertEqual(server.seen[0][2], {"partition": "a", "guid": "0x02c9ab0000000009", "fabric": "f2",
                                             "pf": "0000:01:00.0", "numa": 1})

    def test_adopt(self):
        server = self.agent({"POST /v1/domains/vm1/adopt": CLAIMS,
                             "POST /v1/domains/vm2/adopt": problem(409, "conflict", "differs", "it differs", "detach it")})
        self.assertEqual(self.rows("adopt", "vm1"), [
            ["DOMAIN/NAME", "BDF", "STATE", "GUID", "WAY", "P_KEYS"],
            ["vm1/ib0", "0000:01:00.1", "attached", "0x02c9ab0000000001", "metadata", "0x8001"]])
        self.assertEqual(server.seen, [("POST", "/v1/domains/vm1/adopt", None)])
        self.assertEqual(json.loads(self.ctl("adopt", "vm1", "--json").stdout), CLAIMS)
        p = self.ctl("adopt", "vm2")
        self.assertEqual((p.returncode, p.stdout, p.stderr), (4, "", "vhcactl: vm2: it differs\nhint: detach it\n"))

    def test_forget(self):
        server = self.agent({"DELETE /v1/hcas/0000%3A03%3A00.0": {"bdf": "0000:03:00.0"},
                             "DELETE /v1/hcas/x": problem(404, "not-found", "no_such_hca", "adapter x", "vhcactl hcas lists them")})
        p = self.ctl("forget", "0000:03:00.0")
        self.assertEqual((p.returncode, p.stdout, p.stderr), (0, "0000:03:00.0 and its VFs are forgotten\n", ""))
        self.assertEqual(server.seen, [("DELETE", "/v1/hcas/0000%3A03%3A00.0", None)])
        self.assertEqual(json.loads(self.ctl("forget", "0000:03:00.0", "--json").stdout), {"bdf": "0000:03:00.0"})
        self.assertEqual(self.ctl("forget", "x").stderr, "vhcactl: x: adapter x\nhint: vhcactl hcas lists them\n")
        self.assertEqual(self.ctl("forget").returncode, 2)

    def test_takeover(self):
        uuid = "5ca1ab1e-0000-4000-8000-000000000001"
        answer = {"domain": uuid, "evidence": "hvb: fenced at 12:03", "seconds": 600}
        server = self.agent({f"POST /v1/domains/{uuid}/takeover": answer,
                             "POST /v1/domains/vm2/takeover": problem(403, "denied", "not_fenced", "nobody evicts", "do it by hand")})
        p = self.ctl("takeover", uuid, "hvb: fenced at 12:03")
        self.assertEqual((p.returncode, p.stderr), (0, ""))
        self.assertIn(f"{uuid} may take its addresses over for 600 seconds", p.stdout)
        self.assertEqual(server.seen, [("POST", f"/v1/domains/{uuid}/takeover", {"evidence": "hvb: fenced at 12:03"})])
        self.assertEqual(json.loads(self.ctl("takeover", uuid, "hvb: fenced at 12:03", "--json").stdout), answer)
        self.assertIn("vm2: nobody evicts\nhint: do it by hand", self.ctl("takeover", "vm2", "x").stderr)
        self.assertEqual(self.ctl("takeover", "vm2").returncode, 2)

    def test_reload(self):
        server = self.agent({"POST /v1/reload": {"status": "reloaded"}})
        p = self.ctl("reload")
        self.assertEqual((p.returncode, p.stdout, p.stderr), (0, "the new configuration is in force\n", ""))
        self.assertEqual(server.seen, [("POST", "/v1/reload", None)])
        self.assertEqual(json.loads(self.ctl("reload", "--json").stdout), {"status": "reloaded"})
        os.unlink(self.socket)
        self.agent({"POST /v1/reload": problem(400, "invalid", "unknown_key", "vhcad.conf:3: timout: unknown key")})
        p = self.ctl("reload")
        self.assertEqual((p.returncode, p.stdout), (2, ""))
        self.assertEqual(p.stderr, "vhcactl: reload refused, the old configuration stays: vhcad.conf:3: timout: unknown key\n")
        os.unlink(self.socket)
        self.assertNotIn("refused", self.ctl("reload").stderr)    # nobody has answered

    def test_detach(self):
        server = self.agent({f"DELETE {self.PATH}": {"state": "free"}})
        p = self.ctl("detach", "vm1", "ib0")
        self.assertEqual((p.returncode, p.stderr), (0, ""))
        self.assertIn("vm1/ib0: detached", p.stdout)
        self.assertEqual(server.seen, [("DELETE", self.PATH, None)])

    def test_detach_of_a_vf_that_has_gone(self):
        self.agent({f"DELETE {self.PATH}": {"state": "quarantined", "reason": "the kernel does not show this VF now"}})
        p = self.ctl("detach", "vm1", "ib0")
        self.assertEqual((p.returncode, p.stderr), (0, ""))
        self.assertEqual(p.stdout, "vm1/ib0: released; the VF is quarantined: the kernel does not show this VF now\n")

    def test_json(self):
        self.agent({f"DELETE {self.PATH}": {"state": "free"}})
        self.assertEqual(json.loads(self.ctl("detach", "vm1", "ib0", "--json").stdout), {"state": "free"})

    def test_names_are_encoded(self):
        server = self.agent({})
        for name in ("a b", "a/b", "a?b#c", "50%", "größe", "a&b=c;+"):
            self.ctl("detach", name, "ib0")
            path = server.seen[-1][1]
            self.assertEqual(path.count("/"), 5, path)
            self.assertEqual(urllib.parse.unquote(path.split("/")[3]), name)

    def test_name_too_long(self):
        p = self.ctl("detach", "x" * 3000, "ib0")
        self.assertEqual(p.returncode, 2)
        self.assertIn("File name too long", p.stderr)


class Errors(CtlCase):
    def test_exit_codes(self):
        for status, kind, code in ((400, "invalid", 2), (404, "not-found", 3), (409, "conflict", 4),
                                   (507, "exhausted", 5), (502, "device", 6), (503, "unavailable", 7),
                                   (403, "denied", 8), (500, "internal", 1), (418, "unheard-of", 1)):
            with self.subTest(kind):
                self.agent({"DELETE /v1/domains/vm1/vfs/ib0": problem(status, kind, "some_code", "it went wrong",
                                                                      "do that")})
                p = self.ctl("detach", "vm1", "ib0")
                os.unlink(self.socket)
                self.assertEqual(p.returncode, code)
                self.assertEqual(p.stdout, "")
                self.assertEqual(p.stderr, "vhcactl: vm1/ib0: it went wrong\nhint: do that\n")

    def test_hint_is_left_out_when_empty(self):
        self.agent({"GET /v1/vfs": problem(409, "conflict", "c", "busy")})
        self.assertEqual(self.ctl("vfs").stderr, "vhcactl: busy\n")

    def test_answer_that_is_no_problem_document(self):
        for body in (b"", b"<html>", b"[]", b'{"detail": 5}'):
            with self.subTest(body):
                self.agent({"GET /v1/vfs": (404, body)})
                p = self.ctl("vfs")
                os.unlink(self.socket)
                self.assertEqual(p.returncode, 3)
                self.assertIn("404", p.stderr)

    def test_answer_without_the_list(self):
        for body in (b"{}", b'{"vfs": 5}', b"[]", b"7"):
            with self.subTest(body):
                self.agent({"GET /v1/vfs": (200, body)})
                p = self.ctl("vfs")
                os.unlink(self.socket)
                self.assertEqual(p.returncode, 1)
                self.assertIn("no list 'vfs'", p.stderr)

    def check_silent(self, p, *words):
        self.assertEqual(p.returncode, 7)
        self.assertEqual(p.stdout, "")
        for word in (*words, "systemctl status vhcad"):
            self.assertIn(word, p.stderr)

    def test_agent_absent(self):
        self.check_silent(self.ctl("vfs"), self.socket, "No such file")

    def test_agent_dead(self):
        with socket.socket(socket.AF_UNIX) as s:
            s.bind(self.socket)
        self.check_silent(self.ctl("vfs"), "does not answer")

    def test_agent_hung(self):
        with socket.socket(socket.AF_UNIX) as s:
            s.bind(self.socket)
            s.listen(1)
            started = time.monotonic()
            self.check_silent(self.ctl("vfs", "--timeout", "1"), "does not answer")
            self.assertLess(time.monotonic() - started, 5)

    def test_agent_closes(self):
        with socket.socket(socket.AF_UNIX) as s:
            s.bind(self.socket)
            s.listen(1)
            threading.Thread(target=lambda: s.accept()[0].close(), daemon=True).start()
            self.check_silent(self.ctl("vfs"), "does not answer")

    @unittest.skipIf(os.geteuid() == 0 and not shutil.which("setpriv"), "root, and no setpriv to become nobody")
    def test_no_permission(self):
        self.agent({"GET /v1/vfs": VFS})
        os.chmod(self.dir, 0o755)
        os.chmod(self.socket, 0o600)
        argv = [CTL, "--socket", self.socket, "vfs"]
        if os.geteuid() == 0:
            argv = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", *argv]
        p = subprocess.run(argv, capture_output=True, text=True, timeout=30, check=False)
        if p.returncode == 127 or "setpriv" in p.stderr:
            self.skipTest("nobody may not run the program from here")
        self.assertEqual(p.returncode, 8)
        self.assertIn("[api] group", p.stderr)

    def test_output_that_cannot_be_written(self):
        self.agent({"GET /v1/vfs": VFS})
        with open("/dev/full", "w", encoding="ascii") as full:
            p = subprocess.run([CTL, "--socket", self.socket, "vfs"], stdout=full, stderr=subprocess.PIPE, text=True,
                               timeout=30, check=False)
        self.assertEqual(p.returncode, 1)
        self.assertIn("could not be written", p.stderr)


class Watch(CtlCase):
    def start(self, *args):
        p = subprocess.Popen([CTL, "--socket", self.socket, "watch", *args], stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True, env={**os.environ, "TZ": "UTC"})
        self.addCleanup(lambda: (p.kill(), p.communicate()))
        return p

    @staticmethod
    def events(first, last):
        return [{"cursor": f"a.{n}", "time_ms": 1763617226000, "kind": "vf", "subject": "0000:01:00.1", "text": f"event {n}"}
                for n in range(first, last + 1)]

    def serve(self, newest=15, gone=0, full=0):
        """Has events 1..newest; each long poll brings one more at once, until `limit`. Its first answers to them are `gone`, `full`."""
        state = {"newest": newest, "limit": newest + 2, "gone": gone, "full": full}

        def answer(handler):
            query = urllib.parse.parse_qs(handler.path.partition("?")[2])
            since, wait = query["since"][0].removeprefix("a."), int(query["wait"][0])
            since = {"oldest": 0, "now": state["newest"]}[since] if since in ("oldest", "now") else int(since)
            for word, told in (("gone", problem(410, "not-found", "cursor_gone", "gone")), ("full", problem(503, "unavailable", "too_many_waiting", "64 wait"))):
                if wait and state[word]:
                    state[word] -= 1
                    return told
            if wait and since == state["newest"]:
                if state["newest"] == state["limit"]:
                    time.sleep(3)
                else:
                    state["newest"] += 1
            return 200, {"cursor": f"a.{state['newest']}", "events": self.events(since + 1, state["newest"])}
        return self.agent({"GET /v1/events": (200, answer)})

    def test_shows_the_last_ten_and_follows(self):
        server = self.serve()
        p = self.start()
        lines = [p.stdout.readline() for _ in range(12)]
        self.assertEqual(lines[0], "2025-11-20 05:40:26  vf      0000:01:00.1: event 6\n")
        self.assertEqual([int(line.split()[-1]) for line in lines], list(range(6, 18)))
        self.assertEqual(server.seen[0][1], "/v1/events?since=oldest&wait=0")
        self.assertEqual(server.seen[1][1], "/v1/events?since=a.15&wait=25")
        p.send_signal(signal.SIGINT)
        self.assertEqual(p.wait(timeout=10), -signal.SIGINT)

    def test_since_and_json(self):
        self.serve()
        p = self.start("--since", "a.2", "--json")
        self.assertEqual([json.loads(p.stdout.readline())["cursor"] for _ in range(15)], [f"a.{n}" for n in range(3, 18)])

    def test_since_now_shows_what_comes(self):
        self.serve()
        self.assertEqual(int(self.start("--since", "now").stdout.readline().split()[-1]), 16)

    def test_a_cursor_that_is_gone_starts_anew(self):
        server = self.serve(newest=3, gone=1)
        p = self.start("--since", "a.3")
        self.assertEqual([int(p.stdout.readline().split()[-1]) for _ in range(3)], [1, 2, 3])
        self.assertIn("some events were missed", p.stderr.readline())
        self.assertEqual([path for _, path, _ in server.seen][2], "/v1/events?since=oldest&wait=25")

    def test_waits_where_too_many_wait(self):
        self.serve(newest=3, full=2)
        started = time.monotonic()
        p = self.start("--since", "now")
        self.assertEqual(int(p.stdout.readline().split()[-1]), 4)
        self.assertGreater(time.monotonic() - started, 1.5)
        self.assertEqual(p.stderr.readline(), "vhcactl: 64 wait; waiting\n")

    def test_outlives_the_agent(self):
        server = self.serve(newest=3)
        p = self.start()
        for _ in range(5):
            p.stdout.readline()
        server.shutdown()
        server.server_close()
        os.unlink(self.socket)
        self.assertIn("waiting", p.stderr.readline())
        self.serve(newest=7)
        self.assertEqual(int(p.stdout.readline().split()[-1]), 6)

    def test_agent_that_never_answered_is_an_error(self):
        p = self.start()
        self.assertEqual(p.wait(timeout=20), 7)


tap.main(__name__)
