#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""A hypervisor that is somebody else's now asks whatever comes to its mind, with its own certificate: the plugin in a real OpenSM, and the whole agent
of another hypervisor as its peer. Meanwhile guests migrate. What is other nodes' stays as it was.

VHCA_SEED begins the random numbers (seeds.py); VHCA_HOSTILE is the number of requests, half of them to the agent.

Not asked, because it is open (docs/design/0014-authority.md): offers of his own that the agent can take; and without tickets a vGUID of another node for a
port of his own, and the withdrawal of one that nobody has at the moment. With tickets he asks for all of that, too, at the plugin, with tickets that he has
overheard or signed himself.
"""

import base64

import contextlib
import http.client
import json
import os
import random
import re
import shutil
import ssl
import subprocess
import tempfile
import threading
import unittest
import urllib.parse
import uuid

import fabric
import openapi
import seeds
import tap
from test_sm_tls import SimHost

REQUESTS = int(os.environ.get("VHCA_HOSTILE", "3000"))
WAIT = 100    # for an agent on FUSE on a busy machine
HISTORY = 100    # ended migrations that an agent remembers
FIRST = 1000    # epoch of honest vGUIDs; those of the attacker that are below are a former owner's
CERTIFICATES = {"agent": "server", "honest": "named", "hostile": "by-uri", "admin": "by-address"}
AGENT, HONEST, OWN = (fabric.port_guid(host) for host in (2, 3, 4))
PORTS = [fabric.port_guid(host) for host in (1, 2, 3)]
RESTING = [f"0x02c9ab00000001{i:02x}" for i in range(4)]
MOVING = "0x02c9ab0000000200"
KEYS = ["0x8001", "0x8002", "0x0003", "0x8004", "0x7fff"]
NUMBERS = [0, 1, 2, 3, 7, 255, FIRST - 1, FIRST, FIRST + 1, 65535, 65536, 2**31, 2**36, 2**48, 2**63 - 1, 2**63, 2**64, -1, 1.5]
WORDS = ["", "none", "0", "-1", "0x", "0xffffffffffffffff", "0x0000000000000000", "%00", "%2f..%2f..", "..", "x" * 3000, "ä", "\x1b[2J", "1e9", "null"]
NOTHINGS = [None, True, False, [], {}, "", 0, [[[[[[]]]]]], {"a": {"b": {}}}, ["0x8001"] * 200]


class Attacker(threading.Thread):
    """So many requests at one door; `heard` counts the answers by status and code."""

    def __init__(self, document, port, files, seed, number, ids, tickets=None):
        super().__init__(daemon=True)
        self.tickets = tickets    # that he may show; None: nobody asks for them
        self.operations, self.rng, self.number, self.ids = list(openapi.Document(document).operations()), random.Random(seed), number, ids
        self.his = [op for op in self.operations if op[3]["x-role"] == "agent"]
        self.connect = lambda: connection(port, files, "hostile")
        self.over, self.neat = threading.Event(), True
        self.conn, self.heard, self.accepted, self.silent = None, {}, [], 0
        self.own = [f"0x02c9ab00000003{i:02x}" for i in range(40)]

    def run(self):
        for _ in range(self.number):
            if self.over.is_set():
                break
            self.ask(*self.craft())
        self.conn and self.conn.close()

    def ask(self, method, path, data):
        self.conn = self.conn or self.connect()
        try:
            self.conn.request(method, path, data)
            answer = self.conn.getresponse()
            doc = answer.read()
            code = json.loads(doc).get("code") if answer.status >= 400 and doc else None
            self.heard[answer.status, code] = self.heard.get((answer.status, code), 0) + 1
            if answer.status < 300 and method != "GET":
                self.accepted = [*self.accepted[-20:], (method, path, data)]
        except (OSError, http.client.HTTPException):
            self.silent += 1
            self.conn = self.conn and self.conn.close()

    # ---- what he says: in three of four requests something of which only the sense is wrong ----

    def integer(self):
        if self.neat:
            return self.rng.choice((self.rng.randrange(FIRST), self.rng.randrange(2 * FIRST), self.rng.randrange(2**36)))
        return self.rng.choice((self.rng.choice(NUMBERS), self.rng.randrange(2 * FIRST), self.rng.randrange(2 * FIRST), self.rng.randrange(2**63)))

    def guid(self):
        pool = self.rng.choice((RESTING, [MOVING], PORTS, [OWN], self.own, self.own, [f"0x{self.rng.getrandbits(64):016x}"], RESTING if self.neat else WORDS))
        return self.rng.choice(pool)

    def keys(self):
        return self.rng.sample(KEYS, self.rng.randrange(4))

    def place(self):
        return {"port_guid": self.rng.choice([*PORTS, OWN, OWN, self.guid()]), "gid_index": self.rng.choice((0, 1, 2, self.rng.randrange(256 if self.neat else 2**17)))}

    def body(self, operation):
        rng = self.rng
        node = rng.choice(("hvb", "node-a", "hvc.example.org"))
        vf = {"name": "ib0", "way": "metadata", "fabric": "nowhere" if node.startswith("hvc") else "default", "guid": self.guid(), "epoch": self.integer(), "pkeys": ["0x8001"], "port_guid": HONEST}
        come = {"lid_policy": "host"}, {"lid_policy": "dynamic"}, {"lid_policy": "vport", "vport": rng.randrange(4)}, {"lid_policy": "follow", "lid": rng.randrange(12)}
        policy = dict(rng.choice(come))
        return {"putBinding": lambda: {"epoch": self.integer(), **self.place(), "pkeys": self.keys(), **rng.choice(({}, {"lid_policy": "dynamic"}))},
                "moveBinding": lambda: {"id": str(uuid.UUID(int=rng.getrandbits(128))), "epoch": self.integer(), "vguid": self.guid(), "phase": rng.choice(("prepare", "commit", "commit")),
                                        "from": {**self.place(), **{k: v for k, v in policy.items() if k == "lid"}}, "lid_policy": policy["lid_policy"],
                                        "to": {**self.place(), **{k: v for k, v in policy.items() if k == "vport"}}, "pkeys": self.keys()},
                "putMember": lambda: {"pkeys": self.keys()},
                "offerClaims": lambda: {"domain": str(uuid.UUID(int=rng.getrandbits(128))), "name": "vm", "node": node, "vfs": [vf]},
                "handOver": lambda: {"vfs": [{"guid": self.guid(), "epoch": self.integer()}]},
                }.get(operation["operationId"], lambda: {"port_guid": self.guid()})()

    def spoil(self, doc):
        """One member is something else, or is not there."""
        place = doc
        while (inner := [v for v in place.values() if isinstance(v, dict) and v]) and self.rng.random() < 0.5:
            place = self.rng.choice(inner)
        key = self.rng.choice(list(place))
        place[key] = self.rng.choice((*NOTHINGS, self.guid(), self.integer()))
        if self.rng.random() < 0.3:
            del place[key]
        return doc

    def takes(self, vguid, port, epoch):
        """What is open without tickets: see above."""
        return self.tickets is None and vguid in (*RESTING, MOVING) and port == OWN and isinstance(epoch, (int, float)) and epoch >= FIRST

    def steal(self):
        """What with tickets alone is refused."""
        vguid, epoch = self.rng.choice((*RESTING, MOVING, MOVING)), FIRST + self.rng.randrange(2**self.rng.randrange(1, 36))
        if self.rng.random() < 0.2:
            return "DELETE", f"/v1/bindings/{vguid}?epoch={epoch}&port_guid={OWN}{self.rng.choice(('', '&keep_lid=yes'))}", None
        doc = {"epoch": epoch, "port_guid": OWN, "gid_index": 1, "pkeys": ["0x8001"], "settled": self.rng.random() < 0.5,
               "tickets": self.rng.sample(self.tickets[-8:], self.rng.randrange(3))}
        return "PUT", f"/v1/bindings/{vguid}", json.dumps(doc).encode()

    def craft(self):
        """(method, path, body)"""
        if self.tickets and self.rng.random() < 0.3:
            return self.steal()
        rng, self.neat = self.rng, self.rng.random() < 0.75
        path, _, method, operation = rng.choice(self.operations if rng.random() < 0.2 else self.his)
        values = {"vguid": self.guid(), "port_guid": rng.choice((self.guid(), OWN, *PORTS)), "lid": str(self.integer()),
                  "id": rng.choice((*[str(uuid.UUID(int=rng.getrandbits(128)))] * 3, *self.ids[-3:], rng.choice(WORDS)))}
        doc = self.body(operation) if method in ("put", "post") else None
        query = {name: rng.choice((str(self.integer()), self.guid(), "yes")) for name in ("epoch", "port_guid", "keep_lid", "limit", "after", "plan") if not self.neat and rng.random() < 0.2}
        if operation["operationId"] == "deleteBinding":
            query = {"epoch": str(self.integer()), **query, **rng.choice(({}, {"port_guid": rng.choice((OWN, *PORTS))}, {"keep_lid": "yes"}))}
        if doc and not self.neat:
            doc = self.spoil(doc)
        if operation["operationId"] == "putBinding" and self.takes(values["vguid"], doc.get("port_guid"), doc.get("epoch")):
            values["vguid"] = self.own[0]
        to = doc.get("to") if doc else None
        if operation["operationId"] == "moveBinding" and isinstance(to, dict) and self.takes(doc.get("vguid"), to.get("port_guid"), doc.get("epoch")):
            doc["vguid"] = self.own[0]
        if rng.random() < 0.03:
            method, path = rng.choice(("get", "put", "post", "delete", "patch", "options", "brew")), rng.choice((path, path + "/x", "/", "/v1/node"))
        if self.tickets and doc and self.neat and operation["operationId"] in ("putBinding", "moveBinding"):
            doc["tickets"] = rng.sample(self.tickets[-8:], min(len(self.tickets), rng.randrange(1, 5)))
        if self.tickets is None and method == "delete" and values["vguid"] == MOVING:
            query["epoch"] = str(rng.randrange(FIRST))
        where = re.sub(r"\{(\w+)\}", lambda m: urllib.parse.quote(values.get(m[1], "none"), safe="%"), path)
        text = None if doc is None else json.dumps(doc).encode()
        if text and not self.neat and rng.random() < 0.2:
            text = rng.choice((text[:-1], text + text, b"\xff" + text, b"[" * 5000, b"{" + b'"a":1,' * 3000 + b"}", b"NaN", b"x" * 70000))
        return method.upper(), where + ("?" + urllib.parse.urlencode(query) if query else ""), text


def connection(port, files, who):
    trust = ssl.create_default_context(cafile=f"{files}/ca.pem")
    trust.load_cert_chain(f"{files}/{CERTIFICATES[who]}.pem", f"{files}/{CERTIFICATES[who]}.key")
    return http.client.HTTPSConnection("127.0.0.1", port, timeout=60, context=trust)


@unittest.skipIf(fabric.missing(), fabric.missing())
class Site(unittest.TestCase):
    """OpenSM with the plugin, which knows three nodes."""

    SWITCH = ""

    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="vhca-hostile.")
        self.addCleanup(shutil.rmtree, self.dir)
        subprocess.run([os.environ["VHCA_MAKE_CERTS"], self.dir], check=True, timeout=60)
        self.net = fabric.Fabric()
        self.addCleanup(self.net.close)
        self.port, self.epoch, self.ids = fabric.free_port(), FIRST, []
        self.sm = self.net.manager(listen=f"127.0.0.1:{self.port}", lids=True, conf=(
            f"[http]\ntls_certificate = {self.dir}/server.pem\ntls_key = {self.dir}/server.key\ntls_ca = {self.dir}/ca.pem\nroles = cert:2001:db8::7:admin\n{self.SWITCH}"
            f"[agents]\nhva = cert:localhost {AGENT}\nhvb = cert:hv1.example.org {HONEST}\nhvc = cert:spiffe://x/y {OWN}\n"))
        self.sm.start(wait=False)
        fabric.wait_for("OpenSM is ready", self.is_ready, 60)

    def is_ready(self):
        with contextlib.suppress(OSError):
            return self.ask("admin", "GET", "/readyz")[0] == 200

    def ask(self, who, method, path, body=None, port=None):
        with contextlib.closing(connection(port or self.port, self.dir, who)) as conn:
            conn.request(method, path, body and json.dumps(body))
            answer = conn.getresponse()
            return answer.status, json.loads(answer.read())

    def accepted(self, *args, **more):
        status, doc = self.ask(*args, **more)
        self.assertEqual(status, 200, f"{args}: {doc}")
        return doc

    def bind(self, vguid, keys=("0x8001",)):
        self.accepted("honest", "PUT", f"/v1/bindings/{vguid}", {"epoch": self.epoch, "port_guid": HONEST, "gid_index": 1, "lid": 0, "pkeys": list(keys)})

    def others(self):
        """What the plugin has of other nodes, but for the guest that migrates; and what their ports have."""
        rows = {what: {row[of]: row for row in self.accepted("admin", "GET", f"/v1/{what}?limit=512")[what]} for what, of in (("bindings", "vguid"), ("members", "port_guid"), ("lids", "port_guid"))}
        return ({vguid: [rows["bindings"].get(vguid, {}).get(key) for key in ("epoch", "port_guid", "gid_index", "pkeys")] for vguid in RESTING},
                {port: rows["members"].get(port, {}).get("effective") for port in (PORTS[0], HONEST)},
                {port: rows["lids"].get(port, {}).get("lid") for port in PORTS})

    def wire(self):
        """What the ports themselves have."""
        return [(self.net.lid(host), sorted(self.net.pkeys(host).values())) for host in (1, 3)], self.net.guids(3), self.net.lid(2)

    def binding(self):
        doc = self.ask("admin", "GET", f"/v1/bindings/{MOVING}")[1]
        return doc.get("state"), doc.get("epoch"), doc.get("port_guid")


class Hostile(Site):
    def setUp(self):
        super().setUp()
        self.peer_port = fabric.free_port()
        self.host = SimHost(self.dir, f"url = https://127.0.0.1:{self.port}\n[api]\npeer_listen = 127.0.0.1:{self.peer_port}\n"
                            f"[tls]\ncertificate = {self.dir}/server.pem\nkey = {self.dir}/server.key\nca = {self.dir}/ca.pem\n"
                            + "".join(f"[peer {name}]\nagent = https://localhost:1\nlibvirt = test:///default\ncertificate = {certificate}\n"
                                      for name, certificate in (("hvb", "cert:hv1.example.org"), ("hvc", "cert:spiffe://x/y"))))
        self.host.start()
        self.addCleanup(self.host.end)
        self.host.until_ready()
        if self.host.process.poll() == 77:
            self.skipTest(self.host.log_text())

    def arrive(self, name):
        """The guest's VF is reserved, its address handed over, and the plugin knows where it is. The number is known to all as soon as it was said."""
        vf = {"name": "ib0", "way": "metadata", "fabric": "default", "guid": MOVING, "epoch": self.epoch, "pkeys": ["0x8001"], "port_guid": HONEST, "gid_index": 1}
        peer = lambda method, tail="", body=None: self.accepted("honest", method, f"/v1/peer/claims/{name}{tail}", body, port=self.peer_port)
        peer("PUT", "", {"domain": str(uuid.uuid4()), "name": "vm1", "node": "hvb", "vfs": [vf]})
        self.ids.append(name)
        fabric.wait_for("the VF is reserved", lambda: peer("GET")["state"] == "reserved", WAIT)
        self.epoch += 1
        peer("POST", "/handover", {"vfs": [{"guid": MOVING, "epoch": self.epoch}]})
        fabric.wait_for("the report", lambda: self.binding()[1:] == (self.epoch, AGENT), WAIT)
        self.assertEqual(peer("GET")["state"], "incoming")
        peer("POST", "/abort")
        fabric.wait_for("the withdrawal", lambda: self.binding()[0] == "withdrawn", WAIT)
        self.epoch += 1

    def remembers(self, ids):
        """What was ended is answered, whoever has ended what there never was."""
        for name in ids:
            self.assertEqual(self.accepted("honest", "GET", f"/v1/peer/claims/{name}", port=self.peer_port)["state"], "ended")

    def run_seed(self, seed):
        for vguid in RESTING:
            self.bind(vguid)
        self.net.sa_guid("set", 3, 1, RESTING[0])
        fabric.wait_for("the keys", lambda: self.net.has(3, "0x8001"), 20)
        status, claim, _ = self.host.request("POST", "/v1/claims", {"domain": str(uuid.UUID(int=7)), "name": "ib7", "partition": "0x8001"})
        before, wire = self.others(), self.wire()
        self.assertEqual(status, 201, claim)
        attackers = [Attacker("openapi-vhcasm.yaml", self.port, self.dir, f"{seed} plugin", REQUESTS - REQUESTS // 2, self.ids),
                     Attacker("openapi.yaml", self.peer_port, self.dir, f"{seed} agent", REQUESTS // 2, self.ids)]
        attackers[1].operations = [op for op in attackers[1].operations if op[0].startswith("/v1/peer/")]
        for attacker in attackers:
            attacker.start()
            self.addCleanup(attacker.join)
            self.addCleanup(attacker.over.set)
        said, rounds = lambda: f"seed {seed}: {[attacker.accepted for attacker in attackers]}", 0
        while not rounds or any(attacker.is_alive() for attacker in attackers):
            self.bind(MOVING)
            self.assertEqual(self.others(), before, said())
            self.arrive(str(uuid.uuid4()))
            self.assertEqual(self.others(), before, said())
            self.remembers(self.ids[-2:])
            rounds += 1
        for attacker in attackers:
            attacker.join()
            print(f"# {sum(attacker.heard.values())} answers, {attacker.silent} connections ended: {dict(sorted(attacker.heard.items(), key=str))}", flush=True)
            self.assertNotIn(500, {status for status, _ in attacker.heard})
            self.assertGreater(sum(attacker.heard.values()), attacker.number * 0.9)
        print(f"# {rounds} migrations meanwhile", flush=True)
        for _ in range(2 * HISTORY):
            self.assertEqual(self.ask("hostile", "POST", f"/v1/peer/claims/{uuid.uuid4()}/abort", port=self.peer_port)[0], 200)
        self.remembers(self.ids[-5:])
        self.assertEqual(self.wire(), wire)
        after = next(c for c in self.host.get("/v1/claims")[1]["claims"] if c["id"] == claim["id"])
        self.assertEqual([after[key] for key in ("guid", "epoch", "bdf")], [claim[key] for key in ("guid", "epoch", "bdf")])
        self.assertEqual((self.host.end(), self.sm.stop()), (0, 0))


class Tickets(Site):
    """At the plugin alone; the honest migrations are what two agents would say."""

    SWITCH = "[tickets]\nrequired = yes\nsettle = 0\n"

    def ticket(self, signer, name, port):
        with open(f"{self.dir}/{CERTIFICATES[signer]}.pem", encoding="ascii") as f:
            der = ssl.PEM_cert_to_DER_cert(f.read())
        text = f"vhca-ticket-1 {MOVING} {self.epoch} {uuid.uuid4()} {port} {name} {base64.b64encode(der).decode()}"
        signature = subprocess.run(["openssl", "dgst", "-sha256", "-sign", f"{self.dir}/{CERTIFICATES[signer]}.key"], input=text.encode(), stdout=subprocess.PIPE,
                                   check=True, timeout=60).stdout
        return f"{text} {base64.b64encode(signature).decode()}"

    def report(self, who, port, **more):
        self.accepted(who, "PUT", f"/v1/bindings/{MOVING}", {"epoch": self.epoch, "port_guid": port, "gid_index": 1, "lid": 0, "pkeys": ["0x8001"], **more})
        self.assertEqual(self.binding()[1:], (self.epoch, port))

    def migrate(self, who, port, to, name, to_port):
        """The source withdraws, is not heard before the destination is, or goes first; the destination settles it."""
        self.epoch += 1
        tickets = [self.ticket(who, name, to_port)]
        self.tickets += tickets
        if self.epoch % 2:
            self.accepted(who, "DELETE", f"/v1/bindings/{MOVING}?epoch={self.epoch - 1}&port_guid={port}&keep_lid=yes")
        self.report(to, to_port, tickets=tickets)
        self.report(to, to_port, settled=True)

    def run_seed(self, seed):
        for vguid in RESTING:
            self.bind(vguid)
        self.report("honest", HONEST)
        self.tickets = [self.ticket("hostile", "cert:spiffe://x/y", OWN), "vhca-ticket-1 x"]
        fabric.wait_for("the keys", lambda: self.net.has(3, "0x8001"), 20)
        before, rounds = self.others(), 0
        attacker = Attacker("openapi-vhcasm.yaml", self.port, self.dir, f"{seed} tickets", REQUESTS // 2, self.ids, self.tickets)
        attacker.start()
        self.addCleanup(attacker.join)
        self.addCleanup(attacker.over.set)
        while not rounds or attacker.is_alive():
            self.migrate("honest", HONEST, "agent", "cert:localhost", AGENT)
            self.migrate("agent", AGENT, "honest", "cert:hv1.example.org", HONEST)
            self.assertEqual(self.others(), before, f"seed {seed}: {attacker.accepted}")
            rounds += 1
        attacker.join()
        print(f"# {sum(attacker.heard.values())} answers with tickets: {dict(sorted(attacker.heard.items(), key=str))}; {2 * rounds} migrations meanwhile", flush=True)
        self.assertNotIn(500, {status for status, _ in attacker.heard})
        self.assertIn((403, "not_the_owner"), attacker.heard)
        self.assertEqual(self.sm.stop(), 0)


seeds.cases(Hostile, seeds.FIXED)
seeds.cases(Tickets, seeds.FIXED)
tap.main(__name__)
