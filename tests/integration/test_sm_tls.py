#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The plugin's door on the network: TLS, client certificates and tokens; a real OpenSM with the plugin, the whole agent as its client."""

import hashlib
import http.client
import json
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import unittest

import fabric
import journal
import openapi
import tap
from test_agent import ENV, Agent, conf_text

TOKEN, OTHER = "s3cret-of-the-agents", "s3cret-of-somebody"
HOST = 2
DOMAIN = "6d3a0000-0000-4000-8000-000000000001"
WAIT = 100    # for an agent on FUSE on a busy machine


class SimHost(Agent):
    """The agent on a simulated /sys. Ended by SIGTERM only: that takes the file system down, too."""

    def __init__(self, where, extra):
        super().__init__(where)
        self.write(conf_text(where, f"vfs = keep\n[sm]\nbackend = vhcasm\npoll = 200ms\n{extra}"))

    def start(self):
        self.log = open(f"{self.where}/log", "ab")
        with open(f"{self.where}/lid", "w") as f:
            f.write("3")
        self.process = subprocess.Popen([os.environ["VHCA_SIM_HOST"], self.conf], stderr=self.log, stdout=self.log,
                                        env={**ENV, "SIM_PORT_GUID": fabric.port_guid(HOST), "SIM_LID": f.name})

    def until_ready(self):
        self.wait(lambda: self.process.poll() is not None or self.get("/readyz")[0] == 200, WAIT)

    def end(self):
        """Its exit code."""
        if self.process:
            self.process.send_signal(signal.SIGTERM)
            self.code = self.process.wait()
            self.log.close()
            self.process = None
        return self.code


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if fabric.missing():
            raise unittest.SkipTest(fabric.missing())
        cls.fabric = fabric.Fabric()
        cls.dir = tempfile.mkdtemp(prefix="vhca-tls.")
        subprocess.run([os.environ["VHCA_MAKE_CERTS"], cls.dir], check=True, timeout=60)
        cls.secret("tokens", TOKEN)
        cls.secret("wrong", OTHER)

    @classmethod
    def tearDownClass(cls):
        cls.fabric.close()
        shutil.rmtree(cls.dir)

    @classmethod
    def secret(cls, name, text):
        with open(os.open(f"{cls.dir}/{name}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as f:
            f.write(text + "\n")

    def http_conf(self, **keys):
        """More lines for [http]."""
        return "[http]\n" + "".join(f"{key} = {self.dir}/{name}\n" for key, name in keys.items())

    def manager(self, listen=None, **keys):
        self.port = fabric.free_port()
        return self.fabric.manager(listen=listen or f"127.0.0.1:{self.port}", conf=self.http_conf(**keys))

    def started(self, sm):
        sm.start(wait=False)
        fabric.wait_for("OpenSM is ready", lambda: sm.alive() and self.ask("/readyz", token=TOKEN, client="client")[0] == 200, 20)
        return sm

    def ask(self, path, token=None, client=None, method="GET", body=None):
        """As an agent that knows the plugin's authority: (status, document)."""
        trust = ssl.create_default_context(cafile=f"{self.dir}/ca.pem")
        if client:
            trust.load_cert_chain(f"{self.dir}/{client}.pem", f"{self.dir}/{client}.key")
        conn = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=10, context=trust)
        try:
            head = {"Authorization": f"Bearer {token}"} if token else {}
            data = None if body is None else json.dumps(body)
            conn.request(method, path, data, head)
            answer = conn.getresponse()
            doc = json.loads(answer.read())
            fabric.check_exchange(method, path, data, answer.status, doc)
            return answer.status, doc
        except OSError:
            return 0, None
        finally:
            conn.close()

    def no_secret_in(self, text):
        for secret in (TOKEN, OTHER, "PRIVATE KEY"):
            self.assertNotIn(secret, text)


class Door(Case):
    def test_a_token_is_asked_for(self):
        sm = self.started(self.manager(tls_certificate="server.pem", tls_key="server.key", token_file="tokens"))
        for token, client in ((None, None), (OTHER, None), (None, "client")):
            for method, path in (("GET", "/v1/bindings"), ("GET", "/healthz"), ("GET", "/nothing"), ("PUT", "/v1/lids/3")):
                status, doc = self.ask(path, token, client, method, {} if method == "PUT" else None)
                self.assertEqual((status, doc["code"], doc["retryable"]), (401, "unauthorized", False))
        self.assertEqual(self.ask("/v1/bindings", TOKEN)[0], 200)
        with socket.create_connection(("127.0.0.1", self.port), 10) as s:    # plain HTTP
            s.sendall(f"GET /healthz HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n\r\n".encode())
            try:
                self.assertNotIn(b"HTTP/1.1 200", s.recv(4096))
            except ConnectionResetError:
                pass
        self.assertEqual(self.ask("/v1/bindings", TOKEN)[0], 200)
        self.assertEqual(sm.stop(), 0)
        self.no_secret_in(sm.log())
        self.no_secret_in(sm.output())

    def test_a_client_certificate_is_asked_for(self):
        sm = self.started(self.manager(tls_certificate="server.pem", tls_key="server.key", tls_ca="ca.pem"))
        self.assertEqual(self.ask("/v1/bindings", client="client")[0], 200)
        for client in (None, "stranger", "expired"):
            self.assertIn(self.ask("/v1/bindings", client=client)[0], (0, 401))
        self.assertEqual(sm.stop(), 0)
        self.assertEqual(sm.log().count("whoever is let in may report for any host; there is no section [agents]"), 1)

    def test_names_of_certificates_and_tokens_have_roles(self):
        certs = {"named": "cert:hv1.example.org:admin", "by-uri": "cert:spiffe://x/y:read", "by-address": "cert:2001:db8::7:metrics", "client": "cert:localhost:agent"}
        may = {"admin": {"metrics", "read", "admin", "agent"}, "read": {"metrics", "read"}, "metrics": {"metrics"}, "agent": {"agent"}, "agent+read": {"agent", "metrics", "read"}}
        sm = self.manager(tls_certificate="server.pem", tls_key="server.key", tls_ca="ca.pem", token_file="tokens")
        sm.conf += f"roles = {' '.join(certs.values())} token:read\n"
        sm.start(wait=False)
        fabric.wait_for("OpenSM is ready", lambda: sm.alive() and self.ask("/readyz", token=TOKEN)[0] == 200, 20)
        callers = [(None, name, rule.rsplit(":", 1)[1]) for name, rule in certs.items()]
        for token, client, role in (*callers, (None, "unnamed", "agent+read"), (TOKEN, None, "read")):
            for path, _, method, op in openapi.Document("openapi-vhcasm.yaml").operations():
                if path in ("/", "/metrics"):    # no JSON
                    continue
                status, doc = self.ask(re.sub(r"\{[^}]*\}", "none", path), token, client, method.upper())
                refused = status == 403 and doc["code"] == "role_needed"
                self.assertEqual(refused, op["x-role"] not in may[role], f"{client} ({role}): {method} {path}: {status} {doc}")
        self.assertEqual(sm.stop(), 0)
        self.assertIn("audit: cert:hv1.example.org (admin, 127.0.0.1) PUT /v1/lids/none: 400 bad_request", sm.log())
        self.assertIn("audit: token (read, 127.0.0.1) PUT /v1/lids/none: 403 role_needed", sm.log())
        self.no_secret_in(sm.log())

    def test_agents_are_those_that_are_listed(self):
        door = {"tls_certificate": "server.pem", "tls_key": "server.key", "tls_ca": "ca.pem"}
        member = {"pkeys": ["0x8001"]}
        sm = self.manager(**door, token_file="tokens")
        sm.conf += "roles = cert:spiffe://x/y:admin\n[agents]\nhv1 = cert:hv1.example.org\n"
        sm.start(wait=False)
        fabric.wait_for("OpenSM is ready", lambda: sm.alive() and self.ask("/readyz", client="client")[0] == 200, 20)
        for token, client, method, path, body, code in (
                (None, "named", "PUT", f"/v1/members/{fabric.port_guid(HOST)}", member, None),
                (None, "named", "GET", "/v1/members", None, "role_needed"),
                (None, "client", "PUT", f"/v1/members/{fabric.port_guid(HOST)}", member, "role_needed"),
                (None, "client", "GET", "/v1/members", None, None),
                (None, "by-address", "POST", "/v1/moves", {}, "role_needed"),
                (None, "unnamed", "DELETE", "/v1/bindings/0x02c9ab0000000001?epoch=1", None, "role_needed"),
                (TOKEN, None, "PUT", f"/v1/members/{fabric.port_guid(HOST)}", member, "role_needed"),
                (None, "by-uri", "PUT", f"/v1/members/{fabric.port_guid(HOST)}", member, None)):
            status, doc = self.ask(path, token, client, method, body)
            self.assertEqual((status, doc.get("code")), (403 if code else 200, code), f"{client}: {method} {path}: {doc}")
            self.assertEqual("whom [http] roles names and [agents] does not list" in doc.get("hint", ""), bool(code), doc)
        self.assertEqual(sm.stop(), 0)
        self.assertIn(f"audit: cert:localhost (read, 127.0.0.1) PUT /v1/members/{fabric.port_guid(HOST)}: 403 role_needed", sm.log())
        self.assertNotIn("no section [agents]", sm.log())

    def test_an_agent_speaks_for_its_own_node(self):
        """hv1 has its port in its line, hv2's is pinned at its first word. Whoever was listed spoke for any of them."""
        agents = {"hv1": "named", "hv2": "by-address", "hv3": "client"}
        p1, p2, p3 = (fabric.port_guid(host) for host in (2, 3, 4))
        vguid, last = "0x02c9ab0000000001", "0x02c9ab0000000002"
        bound = lambda port, epoch: {"epoch": epoch, "port_guid": port, "gid_index": 1, "lid": 0, "pkeys": ["0x8001"]}
        place = lambda port: {"port_guid": port, "gid_index": 1, "lid": 3}
        move = lambda to, **more: {"id": "1", "epoch": 9, "vguid": vguid, "phase": "commit", "from": place(p1), "to": place(to), "pkeys": [], **more}
        sm = self.manager(tls_certificate="server.pem", tls_key="server.key", tls_ca="ca.pem")
        sm.conf += ("roles = cert:spiffe://x/y:admin\n[agents]\n"
                    f"hv1 = cert:hv1.example.org {p1}\nhv2 = cert:2001:db8::7\nhv3 = cert:localhost\n")
        ask = lambda who, method, path, body=None: self.ask(path, None, agents.get(who, "by-uri"), method, body)
        told = lambda what: ask("admin", "GET", f"/v1/{what}")[1][what]
        known = lambda: ([[row[key] for key in ("vguid", "epoch", "port_guid", "pkeys")] for row in told("bindings")], told("members"))

        def accepted(who, method, path, body=None):
            status, doc = ask(who, method, path, body)
            self.assertEqual(status, 200, doc)
            return doc

        def refused(code, who, method, path, body=None):
            before = known()
            status, doc = ask(who, method, path, body)
            self.assertEqual(doc["code"], code, (status, doc))
            self.assertTrue(doc["hint"])
            self.assertEqual(known(), before)

        def start():
            sm.start(wait=False)
            fabric.wait_for("OpenSM is ready", lambda: sm.alive() and ask("admin", "GET", "/readyz")[0] == 200, 20)

        start()
        accepted("hv1", "PUT", f"/v1/bindings/{vguid}", bound(p1, 1))
        accepted("hv2", "PUT", f"/v1/members/{p2}", {"pkeys": ["0x8002"]})
        for who, port in (("hv2", p1), ("hv3", p1), ("hv1", p2), ("hv3", p2), ("hv1", p3)):
            refused("not_your_port", who, "PUT", f"/v1/members/{port}", {"pkeys": []})
            refused("not_your_port", who, "PUT", f"/v1/bindings/{last}", bound(port, 1))
            refused("not_your_port", who, "POST", "/v1/moves", move(port))
            refused("not_your_port", who, "POST", "/v1/moves", move(port, phase="prepare"))
        refused("not_your_port", "hv3", "PUT", f"/v1/members/{vguid}", {"pkeys": ["0x8009"]})
        refused("role_needed", "hv2", "POST", "/v1/moves", move(p2, lid_policy="follow"))
        for query, code in (("epoch=1", "not_the_owner"), ("epoch=7", "not_the_owner"), (f"epoch=7&port_guid={p2}", "not_the_owner"),
                            (f"epoch=1&port_guid={p1}", "not_your_port"), (f"epoch=1&port_guid={p2}", "epoch_tie")):
            refused(code, "hv2", "DELETE", f"/v1/bindings/{vguid}?{query}")
        accepted("hv2", "PUT", f"/v1/bindings/{vguid}", bound(p2, 2))    # a migration: tickets are yet to come
        refused("superseded", "hv1", "DELETE", f"/v1/bindings/{vguid}?epoch=1&port_guid={p1}")
        refused("not_the_owner", "hv1", "DELETE", f"/v1/bindings/{vguid}?epoch=3&port_guid={p1}")
        for path in (f"/v1/pins/{p2}", f"/v1/epochs/{vguid}"):
            refused("role_needed", "hv3", "DELETE", path)
        accepted("admin", "PUT", f"/v1/members/{p1}", {"pkeys": ["0x8003"]})
        self.assertEqual(sm.stop(), 0)
        start()
        refused("not_your_port", "hv3", "PUT", f"/v1/members/{p2}", {"pkeys": []})
        self.assertEqual(accepted("admin", "DELETE", f"/v1/pins/{p2}"), {"port_guid": p2, "node": "hv2"})
        refused("unknown_pin", "admin", "DELETE", f"/v1/pins/{p2}")
        accepted("hv3", "PUT", f"/v1/members/{p2}", {"pkeys": []})    # the card is in another host now
        refused("not_your_port", "hv2", "PUT", f"/v1/members/{p2}", {"pkeys": []})
        accepted("hv3", "DELETE", f"/v1/bindings/{vguid}?epoch=2&port_guid={p2}")
        self.assertEqual(sm.stop(), 0)
        self.assertIn(f"hv3 is not heard for port {p2}: it is another node's", sm.log())
        self.assertIn(f"hv1 is not heard for port {p3}: its line in [agents] has others", sm.log())
        self.assertIn(f"port {p2} is hv2's from now on", sm.log())
        self.assertIn("2 of 3 nodes in [agents] have no port in their line", sm.log())

    def test_a_node_takes_what_runs_at_another(self):
        """Open without tickets (docs/design/0014-authority.md): a node's own certificate, its own port, and the next epoch are enough."""
        agents, hosts = {"hv1": "named", "hv2": "by-address"}, {"hv1": 2, "hv2": 3}
        vguid, port = "0x02c9ab00000000aa", {who: fabric.port_guid(host) for who, host in hosts.items()}
        sm = self.manager(tls_certificate="server.pem", tls_key="server.key", tls_ca="ca.pem")
        sm.conf += ("roles = cert:spiffe://x/y:admin\n[agents]\n"
                    f"hv1 = cert:hv1.example.org {port['hv1']}\nhv2 = cert:2001:db8::7 {port['hv2']}\n")

        def report(who, epoch):
            body = {"epoch": epoch, "port_guid": port[who], "gid_index": 1, "lid": 0, "pkeys": ["0x8001"]}
            return self.ask(f"/v1/bindings/{vguid}", None, agents[who], "PUT", body)

        def has_all(who):
            return self.fabric.has(hosts[who], "0x8001") and vguid in self.fabric.guids(hosts[who])

        sm.start(wait=False)
        fabric.wait_for("OpenSM is ready", lambda: sm.alive() and self.ask("/readyz", client="by-uri")[0] == 200, 20)
        self.assertEqual(report("hv1", 1)[0], 200)
        self.fabric.sa_guid("set", hosts["hv1"], 1, vguid)
        fabric.wait_for("hv1's guest has its key and its GUID", lambda: has_all("hv1"), 20)
        self.assertEqual(report("hv2", 2)[0], 200)
        self.fabric.sa_guid("set", hosts["hv2"], 1, vguid)
        fabric.wait_for("hv2 has them", lambda: has_all("hv2"), 20)
        fabric.wait_for("hv1's port has neither",
                        lambda: not self.fabric.has(hosts["hv1"], "0x8001") and vguid not in self.fabric.guids(hosts["hv1"]), 20)
        status, doc = report("hv1", 1)
        self.assertEqual((status, doc["code"], doc["port_guid"]), (409, "superseded", port["hv2"]))
        print("# open: a node takes what runs at another one, key and GUID", flush=True)
        self.assertEqual(self.ask(f"/v1/bindings/{vguid}?epoch=2", client="by-uri", method="DELETE")[0], 200)
        self.assertEqual(sm.stop(), 0)

    def test_with_tickets_a_node_takes_nothing_that_runs_at_another(self):
        """The same with `[tickets] required`: it is refused, and told to wait by a master that has lost its state. Admin says whose it is."""
        agents, hosts = {"hv1": "named", "hv2": "by-address"}, {"hv1": 2, "hv2": 3}
        vguid, port = "0x02c9ab00000000aa", {who: fabric.port_guid(host) for who, host in hosts.items()}
        sm = self.manager(tls_certificate="server.pem", tls_key="server.key", tls_ca="ca.pem")
        sm.conf += ("roles = cert:spiffe://x/y:admin\n[tickets]\nrequired = yes\nsettle = 0\n[agents]\n"
                    f"hv1 = cert:hv1.example.org {port['hv1']}\nhv2 = cert:2001:db8::7 {port['hv2']}\n")

        def report(who, epoch, **more):
            body = {"epoch": epoch, "port_guid": port[who], "gid_index": 1, "lid": 0, "pkeys": ["0x8001"], **more}
            status, doc = self.ask(f"/v1/bindings/{vguid}", None, agents[who], "PUT", body)
            return doc.get("code", status)

        def withdraw(who, epoch, more=""):
            status, doc = self.ask(f"/v1/bindings/{vguid}?epoch={epoch}&port_guid={port[who]}{more}", None, agents[who], "DELETE")
            return doc.get("code", status)

        def start():
            sm.start(wait=False)
            fabric.wait_for("OpenSM is ready", lambda: sm.alive() and self.ask("/readyz", client="by-uri")[0] == 200, 20)

        def owner(client, who):
            status, doc = self.ask(f"/v1/owners/{vguid}", None, client, "PUT", {"port_guid": port[who]})
            return doc.get("code", status)

        start()
        self.assertEqual(report("hv1", 1, settled=True), 200)
        fabric.wait_for("hv1's port has its key", lambda: self.fabric.has(hosts["hv1"], "0x8001"), 20)
        move = {"id": "1", "epoch": 2, "vguid": vguid, "phase": "commit", "from": {"port_guid": port["hv1"], "gid_index": 1},
                "to": {"port_guid": port["hv2"], "gid_index": 1}, "pkeys": ["0x8001"]}
        self.assertEqual(self.ask("/v1/moves", None, agents["hv2"], "POST", {**move, "phase": "prepare"})[0], 200)    # a destination has no ticket yet
        refusal = self.ask("/v1/moves", None, agents["hv2"], "POST", move)[1]
        self.assertEqual((refusal["code"], refusal["signers"]), ("not_the_owner", ["cert:hv1.example.org"]))
        self.assertEqual([report("hv2", 2), report("hv2", 2**40), withdraw("hv2", 2**40)], ["not_the_owner"] * 3)
        self.assertEqual([report("hv2", 2, tickets=["vhca-ticket-1 of mine"]), report("hv2", 2, tickets=["x"] * 5)], ["bad_ticket", "bad_request"])
        self.assertEqual(withdraw("hv1", 1, "&keep_lid=yes"), 200)    # on its way
        self.assertEqual([report("hv2", 2), withdraw("hv2", 2)], ["not_the_owner"] * 2)
        self.assertEqual(report("hv1", 2), 200)
        self.assertEqual([owner(agents["hv2"], "hv2"), owner("by-uri", "hv2")], ["role_needed", 200])    # hv1 is known to be dead
        self.assertEqual([report("hv1", 3), report("hv2", 3), report("hv1", 2)], ["not_the_owner", 200, "superseded"])
        fabric.wait_for("the key has gone with it", lambda: self.fabric.has(hosts["hv2"], "0x8001") and not self.fabric.has(hosts["hv1"], "0x8001"), 20)
        self.assertEqual(withdraw("hv2", 3), 200)    # that is nobody's
        self.assertEqual(report("hv1", 4), 200)
        self.assertEqual(sm.stop(), 0)
        os.unlink(os.path.join(sm.dir, "state", "bindings"))
        sm.conf = sm.conf.replace("settle = 0", "settle = 600")
        start()
        self.assertEqual([report("hv2", 9), report("hv1", 4)], ["owner_unknown"] * 2)
        self.assertEqual([owner("by-uri", "hv1"), report("hv1", 4), report("hv2", 9)], [200, 200, "not_the_owner"])
        self.assertEqual(sm.stop(), 0)

    def test_who_was_not_the_last_master_does_not_know_the_owner(self):
        """Also where no LID moves: the one that was master meanwhile has heard tickets, and starts first no more."""
        vguid, port = "0x02c9ab00000000ab", {who: fabric.port_guid(host) for who, host in (("hv1", 2), ("hv2", 3))}
        former = self.manager(tls_certificate="server.pem", tls_key="server.key", tls_ca="ca.pem")
        former.conf += ("roles = cert:spiffe://x/y:admin\n[tickets]\nrequired = yes\nsettle = 600\n[agents]\n"
                        f"hv1 = cert:hv1.example.org {port['hv1']}\nhv2 = cert:2001:db8::7 {port['hv2']}\n")
        other = self.fabric.manager(host=3)
        self.addCleanup(other.kill)

        def start():
            former.start(wait=False)
            fabric.wait_for("OpenSM is ready", lambda: former.alive() and self.ask("/readyz", client="by-uri")[0] == 200, 20)

        def report(client, who, epoch):
            body = {"epoch": epoch, "port_guid": port[who], "gid_index": 1, "lid": 0, "pkeys": ["0x8001"]}
            status, doc = self.ask(f"/v1/bindings/{vguid}", None, client, "PUT", body)
            return doc.get("code", status)

        start()
        self.assertEqual(self.ask(f"/v1/owners/{vguid}", None, "by-uri", "PUT", {"port_guid": port["hv1"]})[0], 200)
        self.assertEqual([report("named", "hv1", 1), report("by-address", "hv2", 2)], [200, "not_the_owner"])
        former.kill()
        start()
        self.assertEqual(report("by-address", "hv2", 2), "not_the_owner")    # it was the last one
        former.kill()
        other.start()
        other.kill()
        start()
        self.assertEqual(report("by-address", "hv2", 2), "owner_unknown")
        self.assertEqual(former.stop(), 0)

    def test_who_is_refused_in_a_loop_does_not_fill_the_log(self):
        sm = self.manager(tls_certificate="server.pem", tls_key="server.key", tls_ca="ca.pem")
        sm.conf += f"[agents]\nhv1 = cert:hv1.example.org {fabric.port_guid(HOST)}\n"
        self.started(sm)
        path, loops = f"/v1/members/{fabric.port_guid(HOST + 1)}", 100
        for _ in range(loops):
            self.assertEqual(self.ask(path, None, "named", "PUT", {"pkeys": []})[1]["code"], "not_your_port")
        self.assertEqual(sm.stop(), 0)
        for words in (f"PUT {path}: 403 not_your_port", f"hv1 is not heard for port {fabric.port_guid(HOST + 1)}"):
            self.assertEqual(sm.log().count(words), 30, words)
        self.assertIn(f"audit: cert:hv1.example.org: {loops - 30} more refusals in a minute", sm.log())

    def test_agents_who_report_do_not_fill_the_log(self):
        """As OpenSM logs by default: thousands of them report anew when the master changes."""
        sm = self.manager(tls_certificate="server.pem", tls_key="server.key", tls_ca="ca.pem")
        sm.conf += f"[agents]\nhv1 = cert:hv1.example.org {fabric.port_guid(HOST)} {fabric.port_guid(HOST + 1)}\n"
        sm.opensm_conf = "log_flags 0x03\n"
        self.started(sm)
        place = lambda host: {"port_guid": fabric.port_guid(host), "gid_index": 1, "lid": 0}
        before = sm.log().count("vhcasm: ")
        for epoch in range(1, 40, 4):
            for method, path, body in (("PUT", "bindings/0x02c9ab0000000001", {"epoch": epoch, **place(HOST), "pkeys": ["0x8001"]}),
                                       ("PUT", f"members/{fabric.port_guid(HOST)}", {"pkeys": ["0x8002"]}),
                                       ("POST", "moves", {"id": "1", "epoch": epoch + 1, "vguid": "0x02c9ab0000000001", "phase": "commit",
                                                          "from": place(HOST), "to": place(HOST + 1), "pkeys": ["0x8001"]}),
                                       ("DELETE", f"bindings/0x02c9ab0000000001?epoch={epoch + 1}", None)):
                self.assertEqual(self.ask(f"/v1/{path}", None, "named", method, body)[0], 200)
        self.assertEqual(sm.log().count("vhcasm: ") - before, 0, sm.log()[-2000:])
        self.assertEqual(sm.stop(), 0)

    def test_agents_are_said_in_one_place(self):
        door = {"tls_certificate": "server.pem", "tls_key": "server.key"}
        for keys, lines, words in (({**door, "tls_ca": "ca.pem"}, "roles = cert:x:agent+read\n[agents]\n", "[http] roles: agent+read is given by [agents]"),
                                   ({**door, "token_file": "tokens"}, "[agents]\n", "[agents] lists certificates, and nobody shows one"),
                                   ({**door, "tls_ca": "ca.pem"}, "[tickets]\nrequired = yes\n", "[tickets] required = yes: without [agents] no node has a name or a key"),
                                   ({**door, "tls_ca": "ca.pem"}, "[agents]\na = cert:x\nb = cert:x\n", "\"cert:x\" stands twice in [agents]"),
                                   ({**door, "tls_ca": "ca.pem"}, "[agents]\na = x\n", "\"x\" is not cert:NAME")):
            with self.subTest(words):
                sm = self.manager(**keys)
                sm.conf += lines
                self.assertIn(words, sm.refused())
                self.assertEqual(sm.stop(), 0, sm.output())

    @unittest.skipIf(os.geteuid(), "only root gives a program a journal of its own")
    def test_the_journal_is_told_of_pins_owners_and_refusals(self):
        sm = self.manager(tls_certificate="server.pem", tls_key="server.key", tls_ca="ca.pem")
        sm.conf += "roles = cert:spiffe://x/y:admin\n[agents]\nhv1 = cert:hv1.example.org\nhv2 = cert:2001:db8::7\n"
        sm.journal = journal.Journal(sm.dir)
        self.addCleanup(sm.journal.close)
        sm.start(wait=False)
        fabric.wait_for("OpenSM is ready", lambda: sm.alive() and self.ask("/readyz", client="by-uri")[0] == 200, 20)
        vguid, ports = "0x02c9ab0000000001", {"named": fabric.port_guid(2), "by-address": fabric.port_guid(3)}
        for client, port in ports.items():
            self.assertEqual(self.ask(f"/v1/members/{port}", None, client, "PUT", {"pkeys": []})[0], 200)
        for epoch, (client, port) in enumerate(ports.items(), 1):
            body = {"epoch": epoch, "port_guid": port, "gid_index": 1, "lid": 0, "pkeys": ["0x8001"]}
            self.assertEqual(self.ask(f"/v1/bindings/{vguid}", None, client, "PUT", body)[0], 200)
        p1, p2 = ports.values()
        self.assertEqual(self.ask(f"/v1/pins/{p1}", None, "named", "DELETE")[0], 403)
        self.assertEqual(self.ask(f"/v1/pins/{p1}", None, "by-uri", "DELETE")[0], 200)
        self.assertEqual(sm.stop(), 0)
        shown = lambda kind, *names: [tuple(entry[name] for name in names) for entry in sm.journal.entries(kind)]
        self.assertEqual(shown("pin", "VHCA_PORT_GUID", "VHCA_NODE", "VHCA_OLD_NODE"), [(p1, "hv1", ""), (p2, "hv2", ""), (p1, "", "hv1")])
        self.assertEqual(shown("owner", "VHCA_VGUID", "VHCA_EPOCH", "VHCA_PORT_GUID", "VHCA_OLD_PORT_GUID", "VHCA_NODE", "VHCA_OLD_NODE"),
                         [(vguid, "2", p2, p1, "hv2", "hv1")])
        self.assertEqual(shown("refused", "VHCA_WHO", "VHCA_ROLE", "VHCA_FROM", "VHCA_METHOD", "VHCA_PATH", "VHCA_STATUS"),
                         [("cert:hv1.example.org", "agent", "127.0.0.1", "DELETE", f"/v1/pins/{p1}", "403")])
        self.assertEqual(shown("change", "SYSLOG_IDENTIFIER", "VHCA_WHO", "VHCA_ROLE", "VHCA_METHOD", "VHCA_STATUS", "VHCA_CODE"),
                         [("opensm", "cert:spiffe://x/y", "admin", "DELETE", "200", "")])
        self.assertIn("audit: cert:hv1.example.org (agent, 127.0.0.1) DELETE", sm.log())

    def test_a_token_has_the_name_and_the_role_of_its_line(self):
        may = {"metrics": {"metrics"}, "read": {"metrics", "read"}, "operate": {"metrics", "read"}, "admin": {"metrics", "read", "admin", "agent"},
               "agent": {"agent"}, "agent+read": {"agent", "metrics", "read"}}
        tokens = {role: f"the-token-of-{role.replace('+', '-')}" for role in may}
        digest = lambda token: hashlib.sha256(token.encode()).hexdigest()
        self.secret("named", "\n".join(f"n{i} {role} {digest(token)}" for i, (role, token) in enumerate(tokens.items())) + f"\nshort admin {digest('short')}")
        sm = self.manager(tls_certificate="server.pem", tls_key="server.key", token_file="named")
        sm.conf += "roles = *:agent\n"    # of others
        sm.start(wait=False)
        fabric.wait_for("OpenSM is ready", lambda: sm.alive() and self.ask("/readyz", tokens["read"])[0] == 200, 20)
        for role, token in tokens.items():
            for path, _, method, op in openapi.Document("openapi-vhcasm.yaml").operations():
                if path in ("/", "/metrics"):    # no JSON
                    continue
                status, doc = self.ask(re.sub(r"\{[^}]*\}", "none", path), token, None, method.upper())
                refused = status == 403 and doc["code"] == "role_needed"
                self.assertEqual(refused, op["x-role"] not in may[role], f"{role}: {method} {path}: {status} {doc}")
        for token in ("short", digest(tokens["admin"]), "the-token-of-nobody"):
            self.assertEqual(self.ask("/healthz", token)[0], 401)
        self.assertEqual(sm.stop(), 0)
        self.assertIn("audit: token:n3 (admin, 127.0.0.1) PUT /v1/lids/none: 400 bad_request", sm.log())
        for text in (*tokens.values(), *map(digest, tokens.values())):
            self.assertNotIn(text, sm.log() + sm.output())

    def test_wrong_files_refuse_the_plugin_and_are_named(self):
        good = {"tls_certificate": "server.pem", "tls_key": "server.key"}
        self.secret("open", TOKEN)
        os.chmod(f"{self.dir}/open", 0o644)
        for keys, words in (({**good, "tls_certificate": "expired.pem", "tls_key": "expired.key"}, "expired.pem: the certificate has expired"),
                            ({**good, "tls_certificate": "none.pem"}, "none.pem: No such file"),
                            ({**good, "tls_ca": "none.pem"}, "none.pem: No such file"),
                            ({**good, "tls_key": "client.key"}, "client.key: no key in PEM for the certificate"),
                            ({**good, "token_file": "open"}, "open: holds a secret"),
                            ({"token_file": "tokens"}, "without a certificate")):
            with self.subTest(words):
                sm = self.manager(**keys)
                self.assertIn(words, sm.refused())
                self.no_secret_in(sm.log())
                self.assertEqual(sm.stop(), 0)

    def put(self, **files):
        """These take the places of others."""
        for place, name in files.items():
            place = f"{self.dir}/{place.replace('_', '.')}"
            shutil.copy(f"{self.dir}/{name}", f"{place}.new")
            os.rename(f"{place}.new", place)

    def test_files_change_and_connections_stay(self):
        self.secret("other", OTHER)
        self.put(own_pem="server.pem", own_key="server.key", list_crl="ca-none.crl", own_tokens="tokens")
        sm = self.started(self.manager(tls_certificate="own.pem", tls_key="own.key", tls_ca="ca.pem", tls_crl="list.crl", token_file="own.tokens"))
        trust = ssl.create_default_context(cafile=f"{self.dir}/ca.pem")
        trust.load_cert_chain(f"{self.dir}/client.pem", f"{self.dir}/client.key")
        stays = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=10, context=trust)
        self.addCleanup(stays.close)

        def status():
            stays.request("GET", "/readyz")
            answer = stays.getresponse()
            answer.read()
            return answer.status

        def subject():
            with socket.create_connection(("127.0.0.1", self.port), 10) as s, trust.wrap_socket(s, server_hostname="localhost") as tls:
                return tls.getpeercert()["subject"][0][0][1]

        def until(name, client):
            fabric.wait_for(f"{name}'s certificate, and {client} for the client's", lambda: (subject(), status()) == (name, client), 20)

        until("server", 200)
        first = stays.sock
        self.put(own_pem="client.pem", own_key="client.key", list_crl="ca-client.crl", own_tokens="other")
        until("client", 401)    # who is revoked
        self.assertIs(stays.sock, first)
        self.assertEqual(self.ask("/readyz", client="client")[0], 401)
        self.assertEqual([self.ask("/readyz", token)[0] for token in (TOKEN, OTHER)], [401, 200])
        self.put(own_pem="expired.pem", list_crl="ca-none.crl")
        fabric.wait_for("its word", lambda: "own.pem: the certificate has expired on" in sm.log(), 20)
        until("client", 401)
        self.put(own_pem="server.pem", own_key="server.key")
        until("server", 200)
        self.assertIs(stays.sock, first)
        self.assertEqual(sm.stop(), 0)
        self.assertEqual(sm.log().count("certificates and tokens are not taken, the old ones stay"), 1)
        self.assertEqual(sm.log().count("certificates and tokens were read again"), 2)
        self.no_secret_in(sm.log())

    def test_a_door_that_knows_nobody_stays_on_this_host(self):
        port = fabric.free_port()
        for keys in ({}, {"tls_certificate": "server.pem", "tls_key": "server.key"}):    # https alone asks nobody who he is
            sm = self.manager(f"0.0.0.0:{port}", **keys)
            self.assertIn(f"0.0.0.0:{port} is beyond this host, and everybody who reaches it may report; set tls_certificate", sm.refused())
            self.assertEqual(sm.stop(), 0)
        sm = self.manager(f"0.0.0.0:{port}")
        sm.conf += "insecure = yes\n"
        sm.start(wait=False)
        fabric.wait_for("its word", lambda: sm.alive() and f"serves 0.0.0.0:{port}" in sm.log(), 20)
        fabric.wait_for("OpenSM has begun", lambda: "Entering MASTER" in sm.output(), 20)
        self.assertIn("everybody who reaches it may report; tls_ca and token_file are not set", sm.log())
        self.assertEqual(sm.stop(), 0)

    def test_a_unix_socket_has_its_mode(self):
        sm = self.manager(f"unix:{self.dir}/s.sock", tls_certificate="server.pem", tls_key="server.key")
        self.assertIn("socket_mode guards a unix socket", sm.refused())
        self.assertEqual(sm.stop(), 0)


class Together(Case):
    def host(self, lines):
        where = tempfile.mkdtemp(prefix="vhcad-", dir=self.dir)
        host = SimHost(where, lines)
        host.start()
        self.addCleanup(host.end)
        host.until_ready()
        if host.process.poll() == 77:
            self.skipTest(host.log_text())
        return host

    def bound(self):
        rows = self.ask("/v1/bindings", TOKEN, "client")[1]["bindings"]
        return [row["port_guid"] for row in rows]

    def test_a_report_waits_for_the_right_token(self):
        sm = self.started(self.manager(tls_certificate="server.pem", tls_key="server.key", token_file="tokens"))
        self.secret("token", OTHER)
        host = self.host(f"url = https://127.0.0.1:{self.port}\ntoken_file = {self.dir}/token\n[tls]\nca = {self.dir}/ca.pem\n")
        status, doc, _ = host.request("POST", "/v1/claims", {"domain": DOMAIN, "name": "ib0", "partition": "0x8001"})
        self.assertEqual(status, 201, doc)

        def waiting():
            return [r for r in host.get("/v1/outbox")[1]["outbox"] if "token that this server knows" in (r["reason"] or "")]
        fabric.wait_for("a report that waits", waiting, WAIT)
        self.no_secret_in(json.dumps(waiting()))
        self.assertEqual(self.bound(), [])
        self.assertEqual(host.end(), 0)
        self.secret("token", TOKEN)
        host.start()
        host.until_ready()
        fabric.wait_for("the report", lambda: self.bound() == [fabric.port_guid(HOST)], WAIT)
        fabric.wait_for("its answer", lambda: not host.get("/v1/outbox")[1]["outbox"], WAIT)
        self.assertEqual(host.end(), 0)
        self.no_secret_in(host.log_text())
        self.assertEqual(sm.stop(), 0)
        self.no_secret_in(sm.log())

    def test_the_agent_names_a_wrong_file(self):
        host = self.host(f"url = https://127.0.0.1:1\n[tls]\ncertificate = {self.dir}/expired.pem\nkey = {self.dir}/expired.key\n")
        self.assertNotEqual(host.end(), 0)
        self.assertIn("expired.pem: the certificate has expired", host.log_text())


tap.main(__name__)
