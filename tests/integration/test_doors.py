#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Who gets through the four doors: each authority, purpose, name, time and word of the revocation list, with each token, at the peers' door of a vhcad,
at that of drivers and monitoring, at that of the plugin in a real OpenSM, and at vhcad.sock, where only the user counts."""

import contextlib
import grp
import hashlib
import http.client
import itertools
import json
import os
import pwd
import re
import shutil
import socket
import ssl
import subprocess
import tempfile
import time
import unittest
import uuid

import fabric
import tap
from test_agent import Agent, conf_text

AUTHORITIES = ("ca", "other-ca")
PURPOSES = ("none", "clients", "servers", "mail", "code", "anything")
NAMES = ("listed", "unlisted", "unnamed")
TIMES = ("now", "past", "future")
WORDS = ("kept", "revoked")
TOKENS = {"no token": None, "a wrong token": "the-token-of-nobody", "a token": "the-token-of-a-reader"}
# At [api] listen; the tokens there, beside that of a reader.
HERE = (("metrics", "GET", "/healthz", None, 200, None), ("read", "GET", "/v1/vfs", None, 200, None),
        ("operate", "DELETE", f"/v1/claims/{uuid.uuid4()}", None, 404, "no_such_claim"), ("admin", "DELETE", "/v1/drain", None, 200, None))
SLOW = 25    # seconds; the door ends what is idle for 30
RANKS = ("metrics", "read", "operate", "admin")
MAY = {"agent": {"agent"}, "read": {"read"}, "admin": {"agent", "read", "admin"}, "nobody": set(), "operate": {"read"}}
# What the plugin is asked: the role that is needed, and the status if it is there.
ASKED = (("read", "GET", "/v1/members", None, 200), ("agent", "PUT", f"/v1/members/{fabric.port_guid(2)}", {"pkeys": []}, 200),
         ("admin", "DELETE", f"/v1/pins/{fabric.port_guid(3)}", None, 404))


def certificates():
    """(file, name) of all, the name None if it must not be believed; and of no certificate."""
    yield None, None
    for parts in itertools.product(AUTHORITIES, PURPOSES, NAMES, TIMES, WORDS):
        authority, purpose, name, time, word = parts
        good = (authority, time, word) == ("ca", "now", "kept") and purpose in ("none", "clients", "anything")
        yield "-".join(parts), name if good else None


class Doors(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = tempfile.mkdtemp(prefix="vhca-doors.")
        cls.addClassCleanup(shutil.rmtree, cls.dir)
        subprocess.run([os.environ["VHCA_MAKE_CERTS"], "--matrix", cls.dir], check=True, timeout=60)

    @contextlib.contextmanager
    def connection(self, port, certificate):
        trust = ssl.create_default_context(cafile=f"{self.dir}/ca.pem")
        if certificate:
            trust.load_cert_chain(f"{self.dir}/{certificate}.pem", f"{self.dir}/matrix.key")
        with contextlib.closing(http.client.HTTPSConnection("127.0.0.1", port, timeout=30, context=trust)) as conn:
            yield conn

    @staticmethod
    def ask(conn, token, questions):
        """The answers to (method, path, body): [(status, code)]."""
        answers = []
        for method, path, body in questions:
            conn.request(method, path, body and json.dumps(body), {"Authorization": f"Bearer {token}"} if token else {})
            answer = conn.getresponse()
            answers.append((answer.status, json.loads(answer.read()).get("code")))
        return answers

    def play(self, port, questions, expected):
        """All clients, and on the connection of each all tokens; expected(name, token) is what they are to hear."""
        wrong, n = [], 0
        for certificate, name in certificates():
            with self.connection(port, certificate) as conn:
                for word, token in TOKENS.items():
                    heard, wanted, n = self.ask(conn, token, questions), expected(name, token), n + 1
                    if heard != wanted:
                        wrong.append(f"{certificate}, {word}: {heard}, not {wanted}")
        self.assertEqual((n, wrong[:20]), (651, []), f"{len(wrong)} of {n}")

    def agent(self, extra):
        agent = Agent(self.dir)
        agent.write(conf_text(self.dir, extra))
        agent.start()
        self.addCleanup(agent.stop)
        return agent

    def test_of_peers(self):
        """No token counts there, and who is no [peer] has no role at all."""
        port = fabric.free_port()
        self.agent(f"[api]\npeer_listen = 127.0.0.1:{port}\n[tls]\ncertificate = {self.dir}/ca-server.pem\nkey = {self.dir}/ca-server.key\n"
                   f"ca = {self.dir}/ca.pem\ncrl = {self.dir}/ca-matrix.crl\n"
                   "[peer hv1]\nagent = https://localhost:1\nlibvirt = test:///default\ncertificate = cert:hv1.matrix\n")
        answers = {None: (401, "unauthorized"), "listed": (404, "no_such_migration"), "unlisted": (403, "role_needed"), "unnamed": (403, "role_needed")}
        self.play(port, [("GET", f"/v1/peer/claims/{uuid.uuid4()}", None)], lambda name, _: [answers[name]])

    def write_tokens(self, *lines):
        """Each (name, role, token)."""
        with open(os.open(f"{self.dir}/tokens", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as f:
            f.writelines(f"{name} {role} {hashlib.sha256(token.encode()).hexdigest()}\n" for name, role, token in lines)

    def network_door(self, port, roles):
        return (f"[api]\nlisten = 127.0.0.1:{port}\nlisten_roles = {roles}\ntoken_file = {self.dir}/tokens\n"
                f"[tls]\ncertificate = {self.dir}/ca-server.pem\nkey = {self.dir}/ca-server.key\n"
                f"ca = {self.dir}/ca.pem\ncrl = {self.dir}/ca-matrix.crl\n"
                "[peer hv1]\nagent = https://localhost:1\nlibvirt = test:///default\ncertificate = cert:hv1.matrix\n")

    @staticmethod
    def heard_at_network(role):
        may = RANKS[:RANKS.index(role) + 1] if role else ()
        return [(status, code) if needed in may else (403, "role_needed") for needed, _, _, _, status, code in HERE]

    def test_of_drivers_and_monitoring(self):
        """As at the plugin, but whom no rule names, a [peer] too, has no role; and no agent of another host is heard."""
        port = fabric.free_port()
        self.write_tokens(("reader", "read", TOKENS["a token"]))
        self.agent(self.network_door(port, "cert:hv2.matrix:admin"))
        roles = {"listed": None, "unlisted": "admin", "unnamed": None}

        def expected(name, token):
            if not name and token != TOKENS["a token"]:
                return [(401, "unauthorized")] * (len(HERE) + 1)
            return self.heard_at_network(roles[name] if name else "read") + [(404, "no_such_path")]
        self.play(port, [asked[1:4] for asked in HERE] + [("GET", f"/v1/peer/claims/{uuid.uuid4()}", None)], expected)

    def stays(self, agent, conn, token, say):
        """Whether a connection lasts while reloads give its caller one role after the other: it may be idle for 30 s, which a machine can be too slow for."""
        questions, sock, begun = [asked[1:4] for asked in HERE], None, 0
        for role in RANKS:
            say(role)
            self.assertEqual(agent.request("POST", "/v1/reload")[0], 200)
            try:
                heard = self.ask(conn, token, questions)
            except (http.client.RemoteDisconnected, OSError):
                if sock and time.monotonic() > begun + SLOW:
                    return False
                raise
            self.assertEqual(heard, self.heard_at_network(role))
            self.assertIs(conn.sock, sock or conn.sock)
            sock, begun = conn.sock, time.monotonic()
        return True

    def test_every_role_by_token_and_by_certificate(self):
        """A reload gives them, to connections that stay."""
        port, secret = fabric.free_port(), "the-token-of-a-driver"
        self.write_tokens(("driver", "read", secret))
        agent = self.agent(self.network_door(port, ""))
        for certificate, token, say in (
                (None, secret, lambda role: self.write_tokens(("driver", role, secret))),
                ("ca-clients-unlisted-now-kept", None, lambda role: agent.write(conf_text(self.dir, self.network_door(port, f"cert:hv2.matrix:{role} *:metrics"))))):
            def play():
                with self.connection(port, certificate) as conn:
                    return self.stays(agent, conn, token, say)
            self.assertTrue(any(play() for _ in range(20)), certificate)
        log = agent.log_text()
        self.assertNotIn(secret, log)
        self.assertNotIn(hashlib.sha256(secret.encode()).hexdigest(), log)
        self.assertIn("audit: token:driver (admin, 127.0.0.1) DELETE /v1/drain: 200", log)

    def test_plain_http_has_the_roles_that_are_said(self):
        port = fabric.free_port()
        agent = self.agent(f"[api]\nlisten = 127.0.0.1:{port}\nlisten_roles = *:metrics\n")
        self.assertIn(f"nobody shows who he is at 127.0.0.1:{port}", agent.log_text())
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=30)) as conn:
            self.assertEqual(self.ask(conn, None, [asked[1:4] for asked in HERE]), self.heard_at_network("metrics"))

    def test_a_door_with_tls_speaks_no_plain_http(self):
        port = fabric.free_port()
        self.write_tokens(("reader", "read", TOKENS["a token"]))
        self.agent(self.network_door(port, "*:admin"))
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=30)) as conn, \
                self.assertRaises((http.client.HTTPException, OSError)):
            self.ask(conn, TOKENS["a token"], [("GET", "/healthz", None)])

    def test_the_network_door_is_bounded_as_the_others(self):
        """The 65th connection of an address costs it its oldest, and who has the socket is heard meanwhile."""
        port = fabric.free_port()
        agent = self.agent(f"[api]\nlisten = 127.0.0.1:{port}\nlisten_roles = *:metrics\n")

        def crowd_is_told():
            with contextlib.ExitStack() as stack:
                for _ in range(70):
                    stack.enter_context(contextlib.closing(socket.create_connection(("127.0.0.1", port), timeout=30)))
                self.assertEqual(agent.get("/healthz")[0], 200)
            return re.search(r"late or too many: .*source \d", agent.log_text())
        agent.wait(crowd_is_told, 200)

    def test_who_waits_on_the_network_keeps_nobody_here_from_waiting(self):
        """One address has as many long polls as the door takes; who waits at the socket is none of them."""
        port = fabric.free_port()
        agent = self.agent(f"[api]\nlisten = 127.0.0.1:{port}\nlisten_roles = *:read\n")

        def waits(source, seconds):
            conn = http.client.HTTPConnection("127.0.0.1", port, timeout=90, source_address=(source, 0))
            conn.request("GET", f"/v1/events?since=now&wait={seconds}")
            return conn

        def all_wait():
            with contextlib.ExitStack() as stack:
                for _ in range(64):
                    stack.enter_context(contextlib.closing(waits("127.0.0.1", 60)))
                with contextlib.closing(waits("127.0.0.2", 1)) as another:
                    status = another.getresponse().status
                self.assertEqual(agent.get("/v1/events?since=now&wait=1")[0], 200)
            return status == 503
        agent.wait(all_wait, 200)

    def test_no_web_page_changes_anything(self):
        """A browser shows its user's certificate for any page that asks, and sends a POST of plain text without a question."""
        port = fabric.free_port()
        self.write_tokens(("reader", "read", TOKENS["a token"]))
        agent = self.agent(self.network_door(port, "cert:hv2.matrix:admin"))
        page = {"Origin": "https://elsewhere.example", "Content-Type": "text/plain"}
        with self.connection(port, "ca-clients-unlisted-now-kept") as conn:
            for method, path, body, wanted in (("POST", "/v1/drain", '{"park": true}', 400), ("GET", "/v1/drain", None, 200), ("DELETE", "/v1/drain", None, 400)):
                conn.request(method, path, body=body, headers=page)
                answer = conn.getresponse()
                text = answer.read().decode()
                self.assertEqual(answer.status, wanted, text)
                self.assertEqual(json.loads(text).get("code"), "bad_request" if wanted == 400 else None)
        self.assertFalse(agent.get("/v1/drain")[1]["drained"])
        self.assertIn("audit: cert:hv2.matrix (admin, 127.0.0.1) POST /v1/drain: 400 bad_request", agent.log_text())

    def test_both_doors_see_the_same_events(self):
        """Who waits at one hears of what was done at the other, at once."""
        port = fabric.free_port()
        self.write_tokens(("admin", "admin", TOKENS["a token"]))
        agent = self.agent(self.network_door(port, ""))
        with self.connection(port, None) as conn:
            since = agent.get("/v1/events?since=now")[1]["cursor"]
            conn.request("GET", f"/v1/events?since={since}&wait=60", headers={"Authorization": f"Bearer {TOKENS['a token']}"})
            self.assertEqual(agent.request("POST", "/v1/drain", {"park": True})[0], 202)
            self.assertTrue(json.loads(conn.getresponse().read())["events"])

    def test_of_the_plugin(self):
        """A certificate that is believed decides, and a token where there is none."""
        if fabric.missing():
            self.skipTest(fabric.missing())
        subnet, port = fabric.Fabric(), fabric.free_port()
        self.addCleanup(subnet.close)
        reader = TOKENS["a token"]
        self.write_tokens(("reader", "read", reader))
        sm = subnet.manager(listen=f"127.0.0.1:{port}", conf=(
            f"[http]\ntls_certificate = {self.dir}/ca-server.pem\ntls_key = {self.dir}/ca-server.key\ntls_ca = {self.dir}/ca.pem\n"
            f"tls_crl = {self.dir}/ca-matrix.crl\ntoken_file = {self.dir}/tokens\nroles = cert:hv2.matrix:admin\n"
            f"[agents]\nhv1 = cert:hv1.matrix {fabric.port_guid(2)}\n"))
        sm.start(wait=False)
        fabric.wait_for("OpenSM is ready", lambda: sm.alive() and self.is_ready(port, reader), 60)
        roles = {"listed": "agent", "unlisted": "admin", "unnamed": "read"}

        def expected(name, token):
            if not name and token != reader:
                return [(401, "unauthorized")] * len(ASKED)
            may = MAY[roles[name] if name else "read"]
            return [(status, None if status == 200 else "unknown_pin") if needed in may else (403, "role_needed") for needed, _, _, _, status in ASKED]
        self.play(port, [asked[1:4] for asked in ASKED], expected)
        self.assertEqual(sm.stop(), 0)

    def is_ready(self, port, token):
        try:
            with self.connection(port, None) as conn:
                return self.ask(conn, token, [("GET", "/readyz", None)])[0][0] == 200
        except OSError:
            return False

    LATE = ("192.0.2.7", "[2001:db8::7]")    # of documentation: nobody's

    @staticmethod
    def is_heard(address, port, path):
        """Any answer counts."""
        try:
            with contextlib.closing(http.client.HTTPConnection(address.strip("[]"), port, timeout=30)) as conn:
                conn.request("GET", path)
                return conn.getresponse().status
        except OSError:
            return None

    @unittest.skipIf(os.geteuid(), "a network namespace needs root")
    def test_an_address_that_comes_up_later_stops_no_agent(self):
        """As at boot, before the network: the socket is served, and both doors are as soon as they can be."""
        for one, other in itertools.permutations(self.LATE):
            with fabric.own_network():
                agent = Agent(self.dir)
                agent.write(conf_text(self.dir, f"[api]\ninsecure = yes\nlisten = {one}:8516\nlisten_roles = *:metrics\npeer_listen = {other}:8514\n"))
                agent.start()
                try:
                    self.assertIsNone(self.is_heard(one, 8516, "/healthz"))
                    for address in self.LATE:
                        fabric.bring_up(address)
                    agent.wait(lambda: self.is_heard(one, 8516, "/healthz") == 200)
                    agent.wait(lambda: self.is_heard(other, 8514, f"/v1/peer/claims/{uuid.uuid4()}") == 404)
                finally:
                    self.assertEqual(agent.stop(), 0)

    @unittest.skipIf(os.geteuid(), "a network namespace needs root")
    def test_an_address_that_comes_up_later_stops_no_plugin(self):
        if fabric.missing():
            self.skipTest(fabric.missing())
        for address in self.LATE:
            with fabric.own_network(), contextlib.ExitStack() as stack:
                subnet = fabric.Fabric()
                stack.callback(subnet.close)
                sm = subnet.manager(listen=f"{address}:8515", conf="[http]\ninsecure = yes\n").start(wait=False)
                fabric.wait_for("the plugin has begun", lambda: sm.alive() and f"serves {address}:8515" in sm.log(), 60)
                self.assertIsNone(self.is_heard(address, 8515, "/healthz"))
                fabric.bring_up(address)
                fabric.wait_for("its door is open", lambda: sm.alive() and self.is_heard(address, 8515, "/healthz") == 200, 60)
                self.assertEqual(sm.stop(), 0)

    def test_of_this_host(self):
        """It speaks no TLS, and a token says nothing."""
        nobody = pwd.getpwnam("nobody")
        os.chmod(self.dir, 0o711)
        agent = self.agent(f"[api]\ngroup = {grp.getgrgid(nobody.pw_gid).gr_name}\nroles = {nobody.pw_name}:read\n")
        for user, role in ((None, "admin"), (nobody, "read")):
            for word, token in TOKENS.items():
                for needed, method, path in (("read", "GET", "/v1/vfs"), ("admin", "POST", "/v1/domains/none/takeover")):
                    status, doc, _ = agent.request(method, path, headers=f"Authorization: Bearer {token}\r\n" if token else "", user=user)
                    self.assertEqual((status, doc.get("code")) == (403, "role_needed"), needed not in MAY[role], f"{role}, {word}: {method} {path}: {status} {doc}")
        trust = ssl.create_default_context(cafile=f"{self.dir}/ca.pem")
        trust.load_cert_chain(f"{self.dir}/ca-clients-listed-now-kept.pem", f"{self.dir}/matrix.key")
        with socket.socket(socket.AF_UNIX) as s, self.assertRaises(OSError):
            s.settimeout(30)
            s.connect(f"{self.dir}/run/vhcad.sock")
            trust.wrap_socket(s, server_hostname="localhost")


tap.main(__name__)
