#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""vhcactl against a fake agent: an HTTP server on a unix socket with canned answers (ctl_docs.py)."""

import contextlib
import fcntl
import json
import os
import pathlib
import pty
import shutil
import socket
import struct
import subprocess
import termios
import threading
import time
import unittest
import urllib.parse

import openapi
import tap
from ctl_case import CTL, CtlCase, problem
from ctl_docs import (UUID, NODE, HCAS, VFS, DOMAINS, CLAIMS, PARTITIONS, CONFIG, OUTBOX, MIGRATIONS, CLAIM_RESULT, PORT_DOWN,
                      VF_EXPLAINED, DOMAIN_EXPLAINED, READY, NOT_READY, SM_AWAY, events)


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
        self.assertEqual(self.rows("vfs", "--state", "fr&e"), [["no such VF"]])
        self.assertEqual(server.seen, [("GET", "/v1/vfs?state=fr%26e", None)])

    def test_a_full_table_is_shown_whole(self):
        keys = [f"0x{0x8001 + i:04x}" for i in range(127)]
        mapped = {**VFS["vfs"][0], "pkeys": [{"index": i, "pkey": k, "physical": i} for i, k in enumerate(keys)]}
        self.agent({"GET /v1/vfs": {"vfs": [mapped, {**VFS["vfs"][1], "missing": keys}]}})
        rows = self.rows("vfs")
        self.assertEqual(rows[1][6].split(), keys)
        self.assertEqual(rows[2][6].split(), [f"{k}(missing)" for k in keys])
        claims = {"claims": [{**CLAIMS["claims"][0], "pkeys": keys}]}
        os.unlink(self.socket)
        self.agent({"GET /v1/claims": claims, "POST /v1/domains/vm1/adopt": claims})
        self.assertEqual(self.rows("adopt", "vm1")[1][-1].split(), keys)
        self.assertEqual(self.rows("claims")[1][6].split(), [*keys[:6], "+121"])

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
                                                  "3", "0x8001", "metadata", "2025-11-20 05:40:26", "-", "-"])

    def test_partitions(self):
        self.agent({"GET /v1/partitions": PARTITIONS})
        self.assertEqual(self.rows("partitions"), [
            ["P_KEY", "NAMES", "VFS", "PF", "PORT", "FABRIC", "AT_PORT", "ROOM"],
            ["0x8001", "storage readers", "1", "0000:01:00.0", "1", "default", "0x8001", "3/128"],
            ["0x8001", "storage readers", "1", "0000:41:00.0", "2", "other", "-", "-"],
            ["0x8009", "-", "0", "-", "-", "-", "-", "-"]])

    def test_config(self):
        self.agent({"GET /v1/config": CONFIG})
        self.assertEqual(self.rows("config"), [["SECTION", "KEY", "VALUE", "DEFAULT"], ["sm", "url", "-", "-"], ["hca 0000:03:00.0", "vfs", "4", "keep"]])

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
        names = ("hcas", "vfs", "domains", "claims", "partitions", "migrations", "outbox")
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
                    "GET /v1/partitions": {"partitions": [7, {"names": [3, {}], "members": 1, "ports": [1, {"table_entries": []}]}]},
                    "GET /v1/migrations": {"migrations": [5, {}, {"started_ms": "x", "state": []}]},
                    "GET /v1/domains/a/explain": {"verdict": [], "findings": [7, {}], "vfs": [1, {}]},
                    "POST /v1/migrations": {"id": "x"},
                    "GET /v1/migrations/x": {"state": "done", "vfs": [1, {}], "step_ms": [{}]}})
        for args in (["vfs"], ["node"], ["domains"], ["hcas"], ["partitions"], ["migrations"], ["migrate", "a", "b"],
                     ["explain", "a"]):
            self.assertEqual(self.ctl(*args).returncode, 0)

    def test_names_cannot_move_the_cursor(self):
        vf = {**VFS["vfs"][0], "domain": "a\x1b[2J\nb", "reason": "über\x7f"}
        self.agent({"GET /v1/vfs": {"vfs": [vf]}})
        line = self.ctl("vfs").stdout.splitlines()[1]
        self.assertIn("a?[2J?b/ib0", line)
        self.assertTrue(line.endswith("über?"))

    def test_no_text_of_an_answer_moves_the_cursor(self):
        """Whichever member it is in, and whichever command shows it; with --json the document stays what it is."""
        def poison(doc):
            if isinstance(doc, dict):
                return {key: poison(value) for key, value in doc.items()}
            if isinstance(doc, list):
                return [poison(value) for value in doc]
            return f"{doc}\x1b[2J\r\u009b2J\x7f" if isinstance(doc, str) else doc
        bdf, renewed = "/v1/vfs/0000%3A01%3A00.1/explain", {**CLAIM_RESULT, "way": "claim", "lease": 600}
        answers = {("node",): ("GET /v1/node", NODE), ("hcas",): ("GET /v1/hcas", HCAS), ("vfs",): ("GET /v1/vfs", {**VFS, "next": None}),
                   ("domains",): ("GET /v1/domains", DOMAINS), ("claims",): ("GET /v1/claims", CLAIMS), ("config",): ("GET /v1/config", CONFIG),
                   ("partitions",): ("GET /v1/partitions", PARTITIONS), ("outbox",): ("GET /v1/outbox", OUTBOX),
                   ("migrations",): ("GET /v1/migrations", MIGRATIONS), ("explain", "0000:01:00.1"): (f"GET {bdf}", VF_EXPLAINED),
                   ("explain", "vm1"): ("GET /v1/domains/vm1/explain", DOMAIN_EXPLAINED), ("status",): ("GET /readyz", NOT_READY),
                   ("forget", "a"): ("DELETE /v1/hcas/a", {"bdf": "b"}), ("lease", UUID, "600"): (f"POST /v1/claims/{UUID}/lease", renewed),
                   ("adopt", "vm1"): ("POST /v1/domains/vm1/adopt", CLAIMS)}
        docs = {route: poison(doc) for route, doc in answers.values()}
        metrics = 'a{domain="\u009b2J\x1b\x7f"} 1\n# EOF\n'
        self.agent({**docs, "GET /metrics": (200, metrics.encode())})
        for args, (route, _) in answers.items():
            with self.subTest(args):
                p = self.ctl(*args)
                self.assertIn("?[2J???2J?", p.stdout)
                self.assertNotRegex(p.stdout + p.stderr, r"[\x00-\x09\x0b-\x1f\x7f-\x9f]")
                p = self.ctl(*args, "--json")
                self.assertNotRegex(p.stdout + p.stderr, r"[\x00-\x09\x0b-\x1f\x7f-\x9f]")
                self.assertEqual(json.loads(p.stdout), docs[route])
        self.assertEqual(self.ctl("metrics").stdout, 'a{domain="??2J??"} 1\n# EOF\n')

    def terminal(self, columns, *args):
        """What it prints on a terminal of so many columns."""
        ours, its = pty.openpty()
        try:
            fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
            p = subprocess.Popen([CTL, "--socket", self.socket, *args], stdin=subprocess.DEVNULL, stdout=its, env={**os.environ, "TZ": "UTC"})
            os.close(its)
            text = b""
            with contextlib.suppress(OSError):    # EIO: nobody has the other side any more
                while data := os.read(ours, 65536):
                    text += data
            self.assertEqual(p.wait(30), 0)
        finally:
            os.close(ours)
        return text.decode("utf-8").replace("\r\n", "\n").splitlines()

    def test_tables_fit_the_terminal(self):
        """With the longest names, all keys and a reason; a pipe gets all, and so does --wide."""
        long, keys = "größe-" * 20, [f"0x{0x8001 + i:04x}" for i in range(127)]
        vf = {**VFS["vfs"][0], "domain": long, "name": "n" * 31, "state": "quarantined", "reason": "r" * 300,
              "pkeys": [{"index": i, "pkey": key, "physical": i} for i, key in enumerate(keys)], "missing": []}
        moves = [{**m, "domain": UUID, "domain_name": long, "peer": "p" * 60, "state": "handing_over", "degraded": True, "reason": "r" * 300} for m in MIGRATIONS["migrations"]]
        domains = [{**d, "name": long, "vfs": [{**v, "state": "quarantined"} for v in d["vfs"]]} for d in DOMAINS["domains"]]
        claim = {**CLAIMS["claims"][0], "domain_name": long, "pkeys": keys, "reason": "r" * 300, "lease_ends_ms": 1763616026000}
        self.agent({"GET /v1/vfs": {"vfs": [vf, VFS["vfs"][0]]}, "GET /v1/claims": {"claims": [claim]}, "GET /v1/hcas": HCAS, "GET /v1/domains": {"domains": domains},
                    "GET /v1/partitions": PARTITIONS, "GET /v1/migrations": {"migrations": moves}, "GET /v1/outbox": OUTBOX, "GET /v1/config": CONFIG})
        for name in ("vfs", "claims", "hcas", "domains", "partitions", "migrations", "outbox", "config"):
            for columns in (80, 132, 400):
                with self.subTest(name=name, columns=columns):
                    lines = self.terminal(columns, name)
                    self.assertLessEqual(max(map(len, lines)), columns, lines)
            whole = self.ctl(name).stdout.splitlines()
            self.assertEqual(self.terminal(80, name, "--wide"), whole)
            self.assertEqual(self.ctl(name, "--wide").stdout.splitlines(), whole)
            if max(map(len, whole)) <= 400:
                self.assertEqual(self.terminal(400, name), whole)
        lines = self.terminal(80, "vfs")
        self.assertEqual(lines[0].split(), ["BDF", "STATE", "DOMAIN/NAME", "GUID", "GRANTED", "REASON"])
        self.assertEqual(lines[1].split()[:2] + lines[1].split()[3:5], [vf["bdf"], "quarantined", vf["guid"], "yes"])
        self.assertTrue(lines[1].endswith("r…") and "größe-" in lines[1], lines[1])
        self.assertEqual(self.terminal(80, "claims")[1].split()[0], UUID)
        self.assertIn(" ".join(keys), self.ctl("vfs").stdout)

    def test_answers_fit_the_terminal_too(self):
        """What is asked for by POST is shown as the lists are."""
        vf = {"name": "n" * 31, "bdf": "0000:01:00.1", "pf": "0000:01:00.0", "fabric": "f" * 31, "numa": 1, "claim": UUID}
        claim = {**CLAIMS["claims"][0], "domain_name": "größe-" * 20, "pkeys": [f"0x{0x8001 + i:04x}" for i in range(127)]}
        self.agent({"POST /v1/plan": {"domain": None, "vfs": [vf]}, "POST /v1/domains/vm1/adopt": {"claims": [claim]}})
        for args in (["plan", "--xml", "/dev/null"], ["adopt", "vm1"]):
            with self.subTest(args):
                lines, whole = self.terminal(80, *args), self.ctl(*args).stdout.splitlines()
                self.assertLessEqual(max(map(len, lines)), 80, lines)
                self.assertIn("0000:01:00.1", lines[1].split())
                self.assertEqual(self.terminal(80, *args, "--wide"), whole)
                self.assertEqual(self.rows(*args, "-o", "bdf"), [["BDF"], ["0000:01:00.1"]])

    def test_fields(self):
        """By their names as JSON, whole; one that is not there is named with those there are."""
        self.agent({"GET /v1/vfs": VFS, "GET /v1/domains": DOMAINS, "GET /v1/claims": CLAIMS, "GET /v1/outbox": {"outbox": []}, "GET /v1/node": NODE})
        vf = VFS["vfs"][0]
        self.assertEqual(self.rows("vfs", "-o", "bdf,guid, index")[:2], [["BDF", "GUID", "INDEX"], [vf["bdf"], vf["guid"], str(vf["index"])]])
        self.assertEqual(self.rows("claims", "--fields", "id,pkeys")[1], [UUID, " ".join(CLAIMS["claims"][0]["pkeys"])])
        self.assertEqual(json.loads(self.rows("vfs", "-o", "bdf,pkeys")[1][1]), vf["pkeys"])
        self.assertEqual([row[0] for row in self.rows("domains", "-o", "name")[1:]], [d["name"] for d in DOMAINS["domains"]])
        p = self.ctl("vfs", "-o", "bdf,colour")
        self.assertEqual((p.returncode, p.stdout), (2, ""))
        self.assertIn("there is no colour", p.stderr)
        self.assertIn(f"there are: {' '.join(vf)}", p.stderr)
        for args in (["vfs", "-o", ""], ["vfs", "-o", "bdf", "--json"], ["vfs", "--wide", "--json"], ["node", "--wide"],
                     ["node", "-o", "x"], ["vfs", "--wide", "-o", "bdf"], ["vfs", "-o"]):
            self.assertEqual(self.ctl(*args).returncode, 2, args)
        self.assertEqual(self.ctl("outbox", "-o", "seq").stdout, self.ctl("outbox").stdout)

    def test_no_name_of_a_member_moves_the_cursor(self):
        """`node` shows the counts by their names, `migrate` the steps."""
        node = {**NODE, "counts": {"fr\x1b[2Jee\u009b2J": 3}}
        self.agent({"GET /v1/node": node})
        p = self.ctl("node")
        self.assertIn("3 fr?[2Jee??2J", p.stdout)
        self.assertNotRegex(p.stdout, r"[\x00-\x09\x0b-\x1f\x7f-\x9f]")
        self.assertEqual(json.loads(self.ctl("node", "--json").stdout), node)

    def test_a_bundle_has_what_was_answered(self):
        """In a file nothing is blotted out, and a terminal that shows it obeys nothing."""
        path = pathlib.Path(self.socket).with_name("bundle")
        hcas, metrics = {"hcas": [{"problem": "a\x1b[2J\u009bb\x7f", "\u009bc": 1}]}, 'a{b="\x1b\u009b"} 1\n'
        self.agent({"GET /v1/node": NODE, "GET /v1/hcas": hcas, "GET /metrics": (200, metrics.encode())})
        p = self.ctl("support-bundle", "--output", str(path))
        self.assertEqual((p.returncode, p.stdout, p.stderr), (0, "", ""))
        text = path.read_text("utf-8")
        self.assertNotRegex(text, r"[\x00-\x09\x0b-\x1f\x7f-\x9f]")
        answers = json.loads(text)["answers"]
        self.assertEqual((answers["/v1/hcas"], answers["/metrics"]), (hcas, metrics))

    def test_columns_stay_aligned_with_utf8(self):
        vfs = [{**VFS["vfs"][0], "domain": d} for d in ("größe", "groesse")]
        self.agent({"GET /v1/vfs": {"vfs": vfs}})
        lines = self.ctl("vfs", env={"LC_ALL": "C.UTF-8"}).stdout.splitlines()
        self.assertEqual({line.index("0x02c9ab") for line in lines[1:]}, {lines[0].index("GUID")})


class Shapes(unittest.TestCase):
    """The canned answers of ctl_docs.py are what the document promises."""

    def test_canned_answers(self):
        document = openapi.Document()
        for schema, doc in (("Node", NODE), ("HcaList", HCAS), ("VfList", VFS), ("DomainList", DOMAINS),
                            ("ClaimList", CLAIMS), ("Config", CONFIG), ("Outbox", OUTBOX), ("ClaimResult", CLAIM_RESULT),
                            ("VfExplanation", VF_EXPLAINED), ("DomainExplanation", DOMAIN_EXPLAINED),
                            ("Released", {"state": "free"}), ("Readiness", READY), ("Readiness", NOT_READY), ("MigrationList", MIGRATIONS), ("Events", {"cursor": "a.3", "events": events(1, 3)}),
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

    def test_an_answer_of_an_error_cannot_move_the_cursor(self):
        self.agent({"GET /v1/domains/vm2/explain": problem(404, "not-found", "no_such_domain", "no a\x1b[2J\n\u009bb", "c\rd")})
        self.assertEqual(self.ctl("explain", "vm2").stderr, "vhcactl: no a?[2J???b\nhint: c?d\n")

    def test_texts_cannot_move_the_cursor(self):
        bad = {**PORT_DOWN, "text": "a\x1b[2Jb", "fix": "c\nd"}
        self.agent({"GET /v1/vfs/0000%3A01%3A00.1/explain": {**VF_EXPLAINED, "findings": [bad], "domain": "e\rf",
                                                             "verdict": {**bad, "subject": "g\bh"}}})
        text = self.ctl("explain", "0000:01:00.1").stdout
        for word in ("a?[2Jb", "c?d", "e?f", "g?h"):
            self.assertIn(word, text)


class Status(CtlCase):
    def test_not_ready(self):
        self.agent({"GET /readyz": (503, NOT_READY)})
        p = self.ctl("status")
        self.assertEqual((p.returncode, p.stderr), (12, ""))
        self.assertEqual(p.stdout.splitlines(), [
            "NOT READY  hva",
            "  wrong    state_disk          the state database cannot be written",
            "  warning  sm_unreachable      the subnet manager's API does not answer",
            "                               -> vhcactl outbox"])

    def test_ready(self):
        self.agent({"GET /readyz": READY})
        p = self.ctl("status")
        self.assertEqual((p.returncode, p.stdout, p.stderr), (0, "READY  hva: nothing is wrong\n", ""))

    def test_exit_status_is_that_of_the_worst(self):
        for statuses, code in ((["warning"], 11), (["unknown"], 10), (["warning", "unknown"], 11), (["unknown", "wrong"], 12), (["new word"], 1)):
            self.agent({"GET /readyz": {**READY, "reasons": [{**SM_AWAY, "status": status} for status in statuses]}})
            for json_too in ((), ("--json",)):
                self.assertEqual(self.ctl("status", *json_too).returncode, code)
            os.unlink(self.socket)

    def test_what_is_not_ready_is_no_success(self):
        """While a host is upgraded vhcactl is newer than its agent, whose reasons were sentences."""
        for answer, lines in (({"status": "not_ready", "reasons": ["VF 0000:01:00.1 is not bound\x1b yet"]},
                               ["NOT READY  ", "  wrong                        VF 0000:01:00.1 is not bound? yet"]),
                              ({}, ["NOT READY  : the agent does not say why"])):
            self.agent({"GET /readyz": (503 if answer else 200, answer)})
            p = self.ctl("status")
            self.assertEqual((p.returncode, p.stdout.splitlines(), p.stderr), (12, lines, ""))
            self.assertEqual(self.ctl("status", "--json").returncode, 12)
            os.unlink(self.socket)

    def test_json_and_errors(self):
        self.agent({"GET /readyz": (503, NOT_READY)})
        self.assertEqual(json.loads(self.ctl("status", "--json").stdout), NOT_READY)
        os.unlink(self.socket)
        self.assertEqual(self.ctl("status").returncode, 7)


class Parts(CtlCase):
    """Filters and pages of lists: an option is the parameter of its name."""

    OF_VFS = {"domain": "my vm", "pf": "0000:01:00.0", "fabric": "f2", "numa": "0", "partition": "storage", "limit": "7"}
    TAKEN = {"vfs": {"state": "free", **OF_VFS}, "claims": OF_VFS, "domains": {"limit": "7"}, "partitions": {"limit": "7"},
             "migrations": {"state": "copying", "domain": "vm1", "peer": "hvb", "final": "false", "limit": "7"}}

    def test_options_are_parameters(self):
        server = self.agent({f"GET /v1/{name}": {name: [], "next": None} for name in self.TAKEN})
        document = openapi.Document()
        for name, query in self.TAKEN.items():
            for part in (*({key: value} for key, value in query.items()), query):
                p = self.ctl(name, *(word for key, value in part.items() for word in (f"--{key}", value)))
                self.assertEqual((p.returncode, p.stderr), (0, ""))
                path, _, asked = server.seen[-1][1].partition("?")
                self.assertEqual((path, dict(urllib.parse.parse_qsl(asked))), (f"/v1/{name}", part))
                self.assertEqual(document.check_request("GET", server.seen[-1][1], None), [])
            if name in ("vfs", "claims", "migrations"):
                self.assertEqual(p.stdout, f"no such {'VF' if name == 'vfs' else name[:-1]}\n")

    def test_no_parameter_is_left_out(self):
        document = openapi.Document()
        for path, _, method, op in document.operations():
            parameters = [document.resolve(p) for p in op.get("parameters", [])]
            if method == "get" and path[4:] in self.TAKEN:
                self.assertEqual({p["name"] for p in parameters if p["in"] == "query"}, {*self.TAKEN[path[4:]], "after", "fields"}, path)    # -o does the same

    def pages(self, rows, size, gone=()):
        """An agent whose list has pages; one of those that begin behind a row in gone is refused once."""
        left = list(gone)

        def answer(handler):
            query = dict(urllib.parse.parse_qsl(handler.path.partition("?")[2]))
            if query.get("after") in left:
                left.remove(query["after"])
                return problem(410, "not-found", "cursor_gone", "gone")
            first = [row["bdf"] for row in rows].index(query["after"]) + 1 if "after" in query else 0
            page = rows[first:first + int(query.get("limit", size))]
            return 200, {"vfs": page, "next": page[-1]["bdf"] if page[-1] is not rows[-1] else None}

        return self.agent({"GET /v1/vfs": answer})

    ROWS = [{**VFS["vfs"][0], "bdf": f"0000:01:00.{i}"} for i in range(8)]

    def test_all_pages_are_shown(self):
        server = self.pages(self.ROWS, 3)
        self.assertEqual(json.loads(self.ctl("vfs", "--json", "--fabric", "f 2").stdout), {"vfs": self.ROWS, "next": None})
        self.assertEqual([path for _, path, _ in server.seen], ["/v1/vfs?fabric=f%202", "/v1/vfs?fabric=f%202&after=0000%3A01%3A00.2",
                                                                "/v1/vfs?fabric=f%202&after=0000%3A01%3A00.5"])

    def test_limit_is_one_page(self):
        server = self.pages(self.ROWS, 8)
        self.assertEqual(json.loads(self.ctl("vfs", "--json", "--limit", "2").stdout), {"vfs": self.ROWS[:2], "next": "0000:01:00.1"})
        self.assertEqual(len(server.seen), 1)

    def test_a_list_that_changes_is_read_anew(self):
        server = self.pages(self.ROWS, 3, ["0000:01:00.5"])
        self.assertEqual(json.loads(self.ctl("vfs", "--json").stdout), {"vfs": self.ROWS, "next": None})
        self.assertEqual(len(server.seen), 6)

    def test_a_list_that_never_holds_still(self):
        server = self.pages(self.ROWS, 3, ["0000:01:00.2"] * 99)
        p = self.ctl("vfs")
        self.assertEqual((p.returncode, p.stdout, p.stderr), (3, "", "vhcactl: gone\n"))
        self.assertLess(len(server.seen), 20)


class Json(CtlCase):
    def test_prints_what_the_agent_said(self):
        docs = {"node": NODE, "hcas": HCAS, "vfs": VFS, "domains": DOMAINS, "claims": CLAIMS,
                "partitions": PARTITIONS, "config": CONFIG, "outbox": OUTBOX, "migrations": MIGRATIONS}
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

    def test_lease(self):
        renewed = {**CLAIM_RESULT, "way": "claim", "lease": 600, "lease_ends_ms": 1763617826000}
        server = self.agent({f"POST /v1/claims/{UUID}/lease": renewed, "GET /v1/claims": {"claims": [renewed]},
                             "POST /v1/claims/x/lease": problem(404, "not_found", "no_such_claim", "claim x")})
        p = self.ctl("lease", UUID, "600")
        self.assertEqual((p.returncode, p.stdout, p.stderr), (0, "vm1/ib0: kept for 600 s without its domain\n", ""))
        self.assertEqual(server.seen, [("POST", f"/v1/claims/{UUID}/lease", {"lease": 600})])
        self.assertEqual(json.loads(self.ctl("lease", UUID, "600", "--json").stdout), renewed)
        self.assertEqual(self.ctl("lease", "x", "600").stderr, "vhcactl: x: claim x\n")
        for args in ((UUID,), (UUID, "soon"), (UUID, "-1")):
            self.assertEqual(self.ctl("lease", *args).returncode, 2)
        self.assertRegex(self.ctl("claims").stdout, r"LEASE_ENDS(.|\n)*2025-11-20")

    def test_plan(self):
        uuid = "5ca1ab1e-0000-4000-8000-000000000001"
        answer = {"domain": uuid, "vfs": [{"name": "ib0", "bdf": "0000:01:00.1", "pf": "0000:01:00.0", "fabric": "default", "numa": 1, "claim": None}]}
        server = self.agent({"POST /v1/plan": answer})
        wish = ("--partition", "0x8001 storage", "--guid", "auto", "--fabric", "f1", "--pf", "0000:01:00.0", "--numa", "1")
        self.assertEqual(self.rows("plan", uuid, "ib0", *wish),
                         [["NAME", "BDF", "PF", "FABRIC", "NUMA", "CLAIM"], ["ib0", "0000:01:00.1", "0000:01:00.0", "default", "1", "-"]])
        self.assertEqual(server.seen, [("POST", "/v1/plan", {"domain": uuid, "vfs": [
            {"name": "ib0", "partition": "0x8001 storage", "guid": "auto", "fabric": "f1", "pf": "0000:01:00.0", "numa": 1}]})])
        self.assertEqual(json.loads(self.ctl("plan", "vm1", "ib0", "--partition", "1", "--json").stdout), answer)

    def test_plan_of_a_domains_xml(self):
        path = pathlib.Path(self.dir) / "vm1.xml"
        path.write_text("<domain>größe</domain>", "utf-8")
        server = self.agent({"POST /v1/plan": {"domain": None, "vfs": []}})
        self.assertEqual(self.ctl("plan", "--xml", str(path)).stdout, "no VF is asked for\n")
        with open(path, encoding="utf-8") as f:
            self.assertEqual(self.ctl("plan", "--xml", "-", stdin=f).stdout, "no VF is asked for\n")
        self.assertEqual(server.seen, [("POST", "/v1/plan", {"xml": "<domain>größe</domain>"})] * 2)
        path.write_bytes(b"x" * 65537)
        p = self.ctl("plan", "--xml", str(path))
        self.assertEqual((p.returncode, p.stderr), (2, f"vhcactl: --xml {path}: File too large\n"))

    def test_plan_that_is_refused(self):
        """Also by an agent that is older than the question: not found."""
        self.agent({"POST /v1/plan": problem(507, "exhausted", "no_free_vf", "ib1: no free VF for fabric default", "detach a VF")})
        p = self.ctl("plan", "--xml", "/dev/null")
        self.assertEqual((p.returncode, p.stdout, p.stderr), (5, "", "vhcactl: ib1: no free VF for fabric default\nhint: detach a VF\n"))
        os.unlink(self.socket)
        self.agent({})
        self.assertEqual(self.ctl("plan", "--xml", "/dev/null").returncode, 3)

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

    def test_metrics(self):
        text = b'# TYPE vhcad_ready gauge\nvhcad_ready 1\n# EOF\n'
        server = self.agent({"GET /metrics": (200, text)})
        self.assertEqual(self.ctl("metrics").stdout.encode(), text)
        self.assertEqual(server.seen, [("GET", "/metrics", None)])
        path = pathlib.Path(self.socket).with_name("vhcad.prom")
        for old in (None, b"old"):
            if old:
                path.write_bytes(old)
            p = self.ctl("metrics", "--output", str(path))
            self.assertEqual((p.returncode, p.stdout, p.stderr, path.read_bytes()), (0, "", "", text))
        self.assertIn("/nowhere/x", self.ctl("metrics", "--output", "/nowhere/x").stderr)
        os.unlink(self.socket)
        self.agent({"GET /metrics": (200, b"")})
        self.assertIn("no text", self.ctl("metrics", "--output", str(path)).stderr)
        os.unlink(self.socket)
        p = self.ctl("metrics", "--output", str(path))
        self.assertNotEqual((p.returncode, p.stderr), (0, ""))
        self.assertEqual((path.read_bytes(), list(path.parent.glob("*.prom*"))), (text, [path]))

    def test_support_bundle(self):
        """What one question has come to is no reason to have no answers."""
        path = pathlib.Path(self.socket).with_name("bundle")
        p = self.ctl("support-bundle", "--output", str(path))
        self.assertEqual((p.returncode, path.exists()), (7, False))
        server = self.agent({"GET /v1/node": NODE, "GET /readyz": NOT_READY, "GET /v1/domains": DOMAINS,
                             f"GET /v1/domains/{UUID}/explain": DOMAIN_EXPLAINED, "GET /metrics": (200, b"# EOF\n")})
        p = self.ctl("support-bundle", "--output", str(path))
        self.assertEqual((p.returncode, p.stdout, p.stderr), (0, "", ""))
        answers = json.loads(path.read_text("utf-8"))["answers"]
        for url, doc in (("/v1/node", NODE), ("/readyz", NOT_READY), (f"/v1/domains/{UUID}/explain", DOMAIN_EXPLAINED), ("/metrics", "# EOF\n")):
            self.assertEqual(answers[url], doc, url)
        self.assertEqual(answers["/v1/vfs"], {"code": "no_route", "reason": "/v1/vfs"})
        self.assertEqual({url for _, url, _ in server.seen}, answers.keys())
        self.assertIn("/nowhere/x", self.ctl("support-bundle", "--output", "/nowhere/x").stderr)

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
            self.assertLess(time.monotonic() - started, 9)    # else it is 10

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


tap.main(__name__)
