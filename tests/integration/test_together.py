#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The three programs together: vhcad with libvirt's test driver, vhcactl and the hook as its clients, and
docs/openapi.yaml as what the answers must be."""

import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

import openapi
import tap
from test_agent import Agent

CTL, HOOK = os.environ["VHCACTL"], os.environ["VHCA_HOOK"]
WANTS = b"<domain><metadata><v:x xmlns:v='urn:vhcad:domain:1'/></metadata></domain>"


class Together(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.where = tempfile.mkdtemp(prefix="vhcad-")
        cls.run_dir = f"{cls.where}/run"
        cls.agent = Agent(cls.where)
        cls.agent.start()
        cls.agent.wait(lambda: cls.agent.get("/v1/node")[1]["libvirt"]["synced"])
        cls.document = openapi.Document()

    @classmethod
    def tearDownClass(cls):
        cls.agent.process.kill()
        cls.agent.process.wait()
        cls.agent.log.close()
        shutil.rmtree(cls.where)

    def ctl(self, *args):
        return subprocess.run([CTL, "--socket", f"{self.run_dir}/vhcad.sock", *args], capture_output=True, text=True,
                              timeout=30, check=False)

    def hook(self, op, subop):
        """Exit code and seconds."""
        started = time.monotonic()
        code = subprocess.run([HOOK, "vm1", op, subop, "-"], input=WANTS, cwd=self.run_dir, capture_output=True,
                              timeout=30, check=False).returncode
        return code, time.monotonic() - started

    def test_answers_are_as_documented(self):
        for path, schema in (("/v1/node", "Node"), ("/v1/hcas", "HcaList"), ("/v1/vfs", "VfList"),
                             ("/v1/domains", "DomainList"), ("/v1/claims", "ClaimList"), ("/v1/outbox", "Outbox"),
                             ("/v1/events?since=0", "Events"), ("/healthz", "Health"), ("/readyz", "Readiness")):
            with self.subTest(path):
                status, doc, _ = self.agent.get(path)
                self.assertEqual((status, self.document.check(schema, doc)), (200, []))

    def test_refusals_are_as_documented(self):
        for method, path, body in (
                ("GET", "/v1/vfs/0000:01:00.1", None), ("GET", "/v1/nothing", None), ("PUT", "/v1/vfs", {}),
                ("GET", "/v1/events?since=x", None), ("POST", "/v1/domains/nobody/vfs/ib0", {"partition": "0x8001"}),
                ("POST", "/v1/domains/test/vfs/ib0", {}), ("DELETE", "/v1/claims/x", None),
                ("POST", "/v1/domains/test/vfs/ib0", {"partition": "0x8001"}), ("POST", "/v1/claims", b"{")):
            with self.subTest(f"{method} {path}"):
                status, doc, head = self.agent.request(method, path, body)
                self.assertIn("application/problem+json", head)
                self.assertEqual(self.document.check("Problem", doc), [])
                self.assertEqual(doc["status"], status)

    def test_vhcactl_reads(self):
        for command in ("node", "hcas", "vfs", "domains", "claims", "outbox"):
            for args in ((command,), (command, "--json")):
                p = self.ctl(*args)
                self.assertEqual((p.returncode, p.stderr), (0, ""))
        self.assertEqual(json.loads(self.ctl("--json", "domains").stdout)["domains"][0]["name"], "test")

    def test_vhcactl_is_refused(self):
        for code, args in ((3, ("detach", "test", "ib0")), (3, ("detach", "a b/c?d", "ib0")),
                           (3, ("attach", "nobody", "ib0", "--partition", "0x8001")),
                           (2, ("attach", "test", "ib 0", "--partition", "0x8001")),
                           (2, ("attach", "test", "ib0", "--partition", "0x8001", "--guid", "0")),
                           (5, ("attach", "test", "ib0", "--partition", "0x8001"))):
            with self.subTest(args):
                p = self.ctl(*args)
                self.assertEqual((p.returncode, p.stdout), (code, ""), p.stderr)
                self.assertIn(f"vhcactl: {args[1]}/{args[2]}: ", p.stderr)

    def test_hook_is_answered(self):
        for op, subop in (("prepare", "begin"), ("start", "begin"), ("started", "begin"), ("stopped", "end"),
                          ("release", "end"), ("reconnect", "begin")):
            code, seconds = self.hook(op, subop)
            self.assertEqual(code, 0)
            self.assertLess(seconds, 1.0)

    def test_hook_while_the_agent_hangs(self):
        self.agent.process.send_signal(signal.SIGSTOP)
        try:
            for op, subop in (("prepare", "begin"), ("reconnect", "begin")):
                code, seconds = self.hook(op, subop)
                self.assertEqual(code, 0)
                self.assertLess(seconds, 2.0)
        finally:
            self.agent.process.send_signal(signal.SIGCONT)
        self.assertEqual(self.ctl("node").returncode, 0)


tap.main(__name__)
