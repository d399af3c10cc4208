#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The three programs together: vhcad with libvirt's test driver, vhcactl and the hook as its clients, and
docs/openapi.yaml as what the answers must be."""

import http.client
import json
import os
import shutil
import signal
import ssl
import subprocess
import tempfile
import time
import unittest
import uuid

import fabric
import openapi
import tap
from test_agent import Agent, conf_text

CTL, HOOK = os.environ["VHCACTL"], os.environ["VHCA_HOOK"]
TOKEN = "s3cret-s3cret-s3cret"
WANTS = b"<domain><metadata><v:x xmlns:v='urn:vhcad:domain:1'/></metadata></domain>"
AWAY = b"<domain><metadata><v:away xmlns:v='urn:vhcad:away:1' migration='%s'/></metadata></domain>"


def offer(**members):
    """What a source asks for; this host has no adapter."""
    vf = {"name": "ib0", "way": "metadata", "fabric": "default", "guid": "0x02c9ab0000000001", "epoch": 3,
          "pkeys": ["0x8001"], "guest_address": "0000:07:00.0", "port_guid": "0x0002c90300000a01", "gid_index": 1,
          "lid": 4, **members}
    return {"domain": str(uuid.uuid4()), "name": "vm1", "node": "hva", "vfs": [vf]}


class Together(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.where = tempfile.mkdtemp(prefix="vhcad-")
        cls.run_dir = f"{cls.where}/run"
        cls.agent = Agent(cls.where)
        cls.port = fabric.free_port()
        subprocess.run([os.environ["VHCA_MAKE_CERTS"], cls.where], check=True, timeout=60)
        for place, name in (("own.pem", "server.pem"), ("own.key", "server.key"), ("list.crl", "ca-none.crl")):
            shutil.copy(f"{cls.where}/{name}", f"{cls.where}/{place}")
        with open(f"{cls.where}/token", "w", encoding="ascii", opener=lambda path, flags: os.open(path, flags, 0o600)) as f:
            f.write(TOKEN)
        cls.agent.write(conf_text(cls.where, f"[api]\npeer_listen = 127.0.0.1:{cls.port}\n"
                                  f"[tls]\ncertificate = {cls.where}/own.pem\nkey = {cls.where}/own.key\nca = {cls.where}/ca.pem\n"
                                  f"crl = {cls.where}/list.crl\n[sm]\ntoken_file = {cls.where}/token\n"
                                  "[peer there]\nagent = http://127.0.0.1:1\nlibvirt = test:///default\n"
                                  "[peer hva]\nagent = https://localhost:1\nlibvirt = test:///default\n"))
        cls.agent.start()
        cls.agent.wait(lambda: cls.agent.get("/v1/node")[1]["libvirt"]["synced"])
        cls.document = openapi.Document()

    @classmethod
    def tearDownClass(cls):
        try:
            code = cls.agent.stop()
            if code:
                raise AssertionError(f"the agent ended with {code}:\n{cls.agent.log_text()}")
        finally:
            shutil.rmtree(cls.where)

    def ctl(self, *args):
        return subprocess.run([CTL, "--socket", f"{self.run_dir}/vhcad.sock", *args], capture_output=True, text=True,
                              timeout=30, check=False)

    def peer(self, method, path, body=None, certificate="client"):
        """As another agent asks: status and document."""
        trust = ssl.create_default_context(cafile=f"{self.where}/ca.pem")
        if certificate:
            trust.load_cert_chain(f"{self.where}/{certificate}.pem", f"{self.where}/{certificate}.key")
        conn = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=30, context=trust)
        self.addCleanup(conn.close)
        conn.request(method, path, None if body is None else json.dumps(body))
        answer = conn.getresponse()
        return answer.status, json.loads(answer.read())

    def hook(self, op, subop, xml=WANTS):
        """Exit code and seconds."""
        started = time.monotonic()
        code = subprocess.run([HOOK, "vm1", op, subop, "-"], input=xml, cwd=self.run_dir, capture_output=True,
                              timeout=30, check=False).returncode
        return code, time.monotonic() - started

    def test_support_bundle_has_all_but_secrets(self):
        path = f"{self.where}/bundle.json"
        p = self.ctl("support-bundle", "--output", path)
        self.assertEqual((p.returncode, p.stdout, p.stderr, os.stat(path).st_mode & 0o777), (0, "", "", 0o600))
        with open(path, encoding="utf-8") as f:
            text = f.read()
        answers = json.loads(text)["answers"]
        lists = {url for url, _, method, _ in self.document.operations() if method == "get" and "{" not in url}
        domains = {f"/v1/domains/{domain['uuid']}/explain" for domain in answers["/v1/domains"]["domains"]}
        self.assertEqual(len(domains), 1)
        self.assertEqual(answers.keys(), lists - {"/openapi.json", "/healthz", "/v1/opennebula/probe/host-system"} | domains)
        self.assertIn("vhcad_build_info", answers.pop("/metrics"))
        for url, answer in answers.items():
            status = 503 if answer.get("status") == "not_ready" else 200
            self.assertEqual(self.document.check_answer("GET", url, status, answer), [], url)
        with open(f"{self.where}/own.key", encoding="ascii") as f:
            secrets = [TOKEN, *f.read().splitlines()[1:-1]]
        self.assertGreater(len(secrets), 2)
        self.assertEqual([word for word in secrets if word in text], [])
        self.assertIn(f"{self.where}/token", text)

    def test_answers_are_as_documented(self):
        for path, schema in (("/v1/node", "Node"), ("/v1/hcas", "HcaList"), ("/v1/vfs", "VfList"),
                             ("/v1/domains", "DomainList"), ("/v1/claims", "ClaimList"), ("/v1/outbox", "Outbox"),
                             ("/v1/migrations", "MigrationList"), ("/v1/domains/test/explain", "DomainExplanation"),
                             ("/v1/events?since=oldest", "Events"), ("/healthz", "Health"), ("/readyz", "Readiness")):
            with self.subTest(path):
                status, doc, _ = self.agent.get(path)
                self.assertEqual((status, self.document.check(schema, doc)), (200, []))

    def test_refusals_are_as_documented(self):
        for method, path, body in (
                ("GET", "/v1/vfs/0000:01:00.1", None), ("GET", "/v1/nothing", None), ("PUT", "/v1/vfs", {}),
                ("GET", "/v1/events?since=x", None), ("POST", "/v1/domains/nobody/vfs/ib0", {"partition": "0x8001"}),
                ("POST", "/v1/domains/test/vfs/ib0", {}), ("DELETE", "/v1/claims/x", None),
                ("POST", "/v1/domains/test/vfs/ib0", {"partition": "0x8001"}), ("POST", "/v1/claims", b"{"),
                ("GET", "/v1/migrations/x", None), ("POST", f"/v1/migrations/{uuid.uuid4()}/abort", None),
                ("POST", "/v1/migrations", {"domain": "test"}),
                ("POST", "/v1/migrations", {"domain": "test", "peer": "there", "mode": "by hand"})):
            with self.subTest(f"{method} {path}"):
                status, doc, head = self.agent.request(method, path, body)
                self.assertIn("application/problem+json", head)
                self.assertEqual(self.document.check("Problem", doc), [])
                self.assertEqual(doc["status"], status)

    def test_vhcactl_reads(self):
        for command in ("node", "hcas", "vfs", "domains", "claims", "migrations", "outbox"):
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

    def test_vhcactl_migrates_nothing(self):
        for code, args in ((3, ("migrate", "nobody", "there")), (3, ("migrate", "test", "nowhere")),
                           (4, ("migrate", "test", "there")), (3, ("migrate", "test", "--cancel"))):
            with self.subTest(args):
                p = self.ctl(*args)
                self.assertEqual((p.returncode, p.stdout), (code, ""), p.stderr)
                self.assertIn(f"vhcactl: {args[1]}: ", p.stderr)

    def test_peers_are_answered_as_documented(self):
        path = f"/v1/peer/claims/{uuid.uuid4()}"
        for method, tail, body, want in (
                ("GET", "", None, 404), ("PUT", "", {}, 400), ("PUT", "", offer(guid="0x0"), 400),
                ("PUT", "", offer(way="by hand"), 400), ("PUT", "", {**offer(), "vfs": [7]}, 400),
                ("POST", "/handover", {"vfs": [{"guid": "0x02c9ab0000000001", "epoch": 4}]}, 404)):
            with self.subTest(f"{method} {tail} {body}"):
                status, doc = self.peer(method, path + tail, body)
                self.assertEqual((status, self.document.check("Problem", doc)), (want, []), doc)
        self.assertEqual(self.document.check("PeerOffer", offer()), [])

    def test_peer_is_refused_what_this_host_has_not(self):
        path = f"/v1/peer/claims/{uuid.uuid4()}"
        status, doc = self.peer("PUT", path, offer())
        self.assertEqual((status, self.document.check("Problem", doc)), (507, []), doc)
        self.assertEqual(self.agent.get("/v1/claims")[1], {"claims": [], "next": None})

    def test_peer_is_refused_what_this_hosts_memory_cannot_hold(self):
        tib = 1 << 30  # in KiB
        for memory, want, code, words in (
                ({"kib": 1024 * tib}, 507, "guest_memory", "needs 1048576 GiB of memory"),
                ({"kib": tib, "pages": "huge", "page_kib": 3}, 507, "guest_memory", "none of that size is available"),
                ({"kib": 1 << 20, "hard_limit_kib": 1 << 19}, 409, "hard_limit", "<hard_limit> of 512 MiB"),
                ({"kib": "much"}, 400, "bad_request", "kib"),
                ({"kib": 1024}, 507, "no_free_vf", "no free VF"),
                ({"kib": 1024 * tib, "pages": "mixed"}, 507, "no_free_vf", "no free VF")):
            with self.subTest(memory):
                status, doc = self.peer("PUT", f"/v1/peer/claims/{uuid.uuid4()}", {**offer(), "memory": memory})
                self.assertEqual((status, doc["code"], self.document.check("Problem", doc)), (want, code, []), doc)
                self.assertIn(words, doc["detail"])
        self.assertEqual(self.document.check("PeerOffer", {**offer(), "memory": {
            "kib": tib, "hard_limit_kib": 0, "pages": "huge", "page_kib": 2048}}), [])

    def test_given_up_before_it_was_asked_for(self):
        path = f"/v1/peer/claims/{uuid.uuid4()}"
        for _ in range(2):
            status, doc = self.peer("POST", path + "/abort")
            self.assertEqual((status, self.document.check("PeerClaims", doc)), (200, []))
            self.assertEqual(doc["state"], "ended")
        status, doc = self.peer("PUT", path, offer())
        self.assertEqual((status, self.document.check("Problem", doc)), (409, []), doc)
        self.assertEqual(self.peer("GET", path)[1]["state"], "ended")

    def connection(self, certificate):
        trust = ssl.create_default_context(cafile=f"{self.where}/ca.pem")
        trust.load_cert_chain(f"{self.where}/{certificate}.pem", f"{self.where}/{certificate}.key")
        conn = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=30, context=trust)
        self.addCleanup(conn.close)
        conn.connect()
        return conn

    def status(self, conn):
        conn.request("GET", f"/v1/peer/claims/{uuid.uuid4()}")
        answer = conn.getresponse()
        answer.read()
        return answer.status

    def reload_with(self, word, **files):
        """These take the places of others; the word stands once more in the log then."""
        for place, name in files.items():
            shutil.copy(f"{self.where}/{name}", f"{self.where}/{place.replace('_', '.')}.new")
            os.rename(f"{self.where}/{place.replace('_', '.')}.new", f"{self.where}/{place.replace('_', '.')}")
        seen = self.agent.log_text().count(word)
        self.agent.process.send_signal(signal.SIGHUP)
        self.agent.wait(lambda: self.agent.log_text().count(word) > seen)

    def test_certificates_change_and_connections_stay(self):
        stays = self.connection("client")
        first = stays.sock
        subject = lambda: self.connection("client").sock.getpeercert()["subject"][0][0][1]
        self.assertEqual((self.status(stays), subject()), (404, "server"))
        self.reload_with("configuration reloaded", own_pem="client.pem", own_key="client.key")
        self.assertEqual((self.status(stays), subject()), (404, "client"))
        self.assertIs(stays.sock, first)
        self.reload_with("reload refused, the old configuration stays", own_pem="expired.pem")
        self.assertEqual((self.status(stays), subject()), (404, "client"))
        self.assertIn("own.pem: the certificate has expired on", self.agent.log_text())
        self.reload_with("configuration reloaded", own_pem="server.pem", own_key="server.key")
        self.assertEqual((self.status(stays), subject()), (404, "server"))
        self.assertIs(stays.sock, first)

    def test_who_is_revoked_is_heard_no_more(self):
        stays = self.connection("client")
        self.assertEqual(self.status(stays), 404)
        self.reload_with("configuration reloaded", list_crl="ca-client.crl")
        self.assertEqual((self.status(stays), self.status(self.connection("client"))), (401, 401))
        self.reload_with("reload refused, the old configuration stays", list_crl="other-ca-none.crl")
        self.assertEqual(self.status(self.connection("client")), 401)
        self.reload_with("configuration reloaded", list_crl="ca-none.crl")
        self.assertEqual(self.status(self.connection("client")), 404)

    def test_peer_without_a_certificate_is_refused(self):
        for method, path, body in (("GET", "/v1/nothing", None), ("PUT", f"/v1/peer/claims/{uuid.uuid4()}", offer())):
            status, doc = self.peer(method, path, body, certificate=None)
            self.assertEqual((status, doc["code"], self.document.check("Problem", doc)), (401, "unauthorized", []), doc)

    def test_each_listener_serves_its_own(self):
        for path in ("/v1/vfs", "/v1/node", "/v1/migrations", "/healthz"):
            self.assertEqual(self.peer("GET", path)[0], 404, path)
        self.assertEqual(self.agent.get(f"/v1/peer/claims/{uuid.uuid4()}")[1]["code"], self.agent.get("/v1/no")[1]["code"])

    def test_hook_is_answered(self):
        for op, subop in (("prepare", "begin"), ("start", "begin"), ("started", "begin"), ("stopped", "end"),
                          ("release", "end"), ("reconnect", "begin")):
            runs = [self.hook(op, subop)]
            while runs[-1][1] >= 1.0 and len(runs) < 5:    # others on this machine only make it longer
                runs.append(self.hook(op, subop))
            self.assertEqual({code for code, _ in runs}, {0})
            self.assertLess(runs[-1][1], 1.0)

    def test_hook_refuses_a_guest_that_nobody_awaits(self):
        for migration in (str(uuid.uuid4()).encode(), b"unreadable"):
            self.assertEqual(self.hook("migrate", "begin", AWAY % migration)[0], 1)
        self.assertEqual(self.hook("migrate", "begin")[0], 0)

    def test_hook_while_the_agent_hangs(self):
        self.agent.process.send_signal(signal.SIGSTOP)
        try:
            for op, subop in (("prepare", "begin"), ("reconnect", "begin")):
                self.assertEqual(self.hook(op, subop)[0], 0)    # within its deadline: test_hook
            self.assertEqual(self.hook("migrate", "begin", AWAY % str(uuid.uuid4()).encode())[0], 1)
        finally:
            self.agent.process.send_signal(signal.SIGCONT)
        self.assertEqual(self.ctl("node").returncode, 0)


tap.main(__name__)
