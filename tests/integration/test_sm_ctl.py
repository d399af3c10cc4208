#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""vhcasmctl with the plugin in a real OpenSM: every command, by unix socket and by https."""

import hashlib
import http.client
import json
import os
import re
import shutil
import ssl
import subprocess
import tempfile
import time

import fabric
import tap
from plugin_case import VGUID1, VGUID2, Case

CTL = os.environ["VHCASMCTL"]
TOKEN, OTHER = "s3cret-of-the-operator", "s3cret-of-somebody"
NOBODY = "0x02c9ab00000000ff"
ROWS = 600     # more than a page


def run(*args):
    return subprocess.run([CTL, *args], capture_output=True, text=True, timeout=120, check=False)


class CtlCase(Case):
    def where(self):
        """Options that say where the plugin is."""
        return ("--config", os.path.join(self.sm.dir, "vhcasm.conf"))

    def done(self, *args):
        """The lines of a command that has succeeded."""
        p = run(*self.where(), *args)
        self.assertEqual((p.returncode, p.stderr), (0, ""), (args, p.stdout))
        return p.stdout.splitlines()

    def status(self):
        """(exit status, lines)"""
        p = run(*self.where(), "status")
        self.assertEqual(p.stderr, "")
        self.assertEqual(run(*self.where(), "--json", "status").returncode, p.returncode)
        return p.returncode, p.stdout.splitlines()

    def rows(self, *args):
        """A table without its head, as lists of cells, which are two blanks apart."""
        return [re.split(r" {2,}", line) for line in self.done(*args)[1:]]

    def document(self, *args):
        return json.loads("\n".join(self.done("--json", *args)))

    def refused(self, code, words, *args, exit_status):
        """With --json the plugin's problem document is there, too."""
        for json_option in ((), ("--json",)):
            p = run(*self.where(), *json_option, *args)
            self.assertEqual(p.returncode, exit_status, (args, p.stderr))
            self.assertIn(words, p.stderr)
        self.assertEqual(json.loads(p.stdout)["code"], code)


class Socket(CtlCase):
    def setUp(self):
        self.sm = self.manager(lids=True).start()

    def test_status(self):
        fabric.wait_for("OpenSM's file", lambda: self.document("status")["guid2lid_lines"] == 5)
        lines = self.done("status")
        self.assertEqual(lines[0], "SM        master, ready")
        self.assertRegex(lines[1], r"^plugin    libvhcasm \d+\.\d+\.\d+ in OpenSM ")
        self.assertEqual(lines[2], "reports   0 virtual GUIDs are bound, 0 ports need keys: all in effect")
        self.assertRegex(lines[3], r"^LIDs      \d+ are free; guid2lid keeps one for each of 5 GUIDs$")
        self.assertEqual(len(lines), 4)
        self.assertEqual(self.document("status")["status"], "ready")
        self.assertEqual(run("--socket", self.sm.api.path, "status").stdout.splitlines(), lines)

    def test_fabric(self):
        lines = self.done("fabric")
        self.assertEqual(lines[0], "subnet    1 switches, 5 end ports, highest LID 5")
        self.assertEqual(lines[-1], "moves     none")
        self.assertEqual(self.document("fabric"), self.sm.api.call("GET", "/v1/fabric")[1])

    def test_bindings_and_members(self):
        self.assertEqual(self.done("bindings"), ["no virtual GUID is bound"])
        self.assertEqual(self.done("members"), ["no port needs a key"])
        self.check(self.sm.api.bind(VGUID1, 3, 2, ["0x8001"]), 200)
        self.check(self.sm.api.bind(VGUID2, 1, 3, [f"0x80{i:02x}" for i in range(16, 24)], 2), 200)
        self.check(self.sm.api.declare(3, ["0x0005"]), 200)
        for host, key in ((2, "0x8001"), (3, "0x8017"), (3, "0x0005")):
            self.wait_key(host, key)
        p2, p3 = fabric.port_guid(2), fabric.port_guid(3)
        rows = self.rows("bindings")
        self.assertEqual([row[:4] for row in rows], [[VGUID1, "pending", p2, "1"], [VGUID2, "pending", p3, "2"]])
        self.assertEqual(rows[0][4:7], [str(self.fabric.lid(2)), "3", "0x8001"])
        self.assertTrue(rows[1][6].endswith("0x8015 +2"), rows)
        self.assertEqual(self.rows("bindings", "--port", p3), rows[1:])
        self.assertEqual(self.rows("bindings", VGUID1)[0][:6], rows[0][:6])
        self.assertEqual(self.document("bindings", VGUID1)["vguid"], VGUID1)
        self.assertEqual(self.document("bindings"), {"bindings": self.sm.api.rows("bindings"), "next": None})
        self.assertEqual(self.rows("members")[0], [p2, "0x8001", "-", "0x8001", "-"])
        self.assertEqual(self.rows("members", "--port", p3)[0][2], "0x0005")
        self.assertEqual(self.document("members"), {"members": self.sm.api.rows("members"), "next": None})
        self.check(self.sm.api.withdraw(VGUID1, 3), 200)
        self.assertEqual(self.rows("bindings", VGUID1), [[VGUID1, "withdrawn", "-", "-", "-", "3", "-", "-"]])

    def test_all_pages(self):
        for i in range(ROWS):
            self.check(self.sm.api.bind(f"0x{0x02c9ab0000010000 + i:016x}", 1, 2, [], i % 127), 200)
        self.assertEqual(self.document("bindings"), {"bindings": self.sm.api.rows("bindings"), "next": None})
        self.assertEqual(len(self.rows("bindings")), ROWS)

    def test_lids(self):
        rows = self.rows("lids")
        by_port = {row[2]: row for row in rows}
        self.assertEqual([row[0] for row in rows], [str(lid) for lid in range(1, 6)])
        self.assertEqual(by_port[fabric.port_guid(2)][3:], [by_port[fabric.port_guid(3)][3], "2", "H2"])
        self.assertEqual(self.rows("lids", str(self.fabric.lid(2))), [by_port[fabric.port_guid(2)]])
        doc = self.document("lids")
        self.assertEqual(doc, self.check(self.sm.api.call("GET", "/v1/lids"), 200))
        self.assertEqual(doc, {"lids": [self.document("lids", str(lid)) for lid in range(1, 6)], "next": None})
        self.assertIn((f"0x{int(fabric.port_guid(2), 0) - 1:016x}", "H2"), {(row["node_guid"], row["node"]) for row in doc["lids"]})
        pages, after = [], 0
        while after is not None:
            page = self.check(self.sm.api.call("GET", f"/v1/lids?limit=2&after={after}"), 200)
            pages.append(len(page["lids"]))
            after = page["next"]
        self.assertEqual(pages, [2, 2, 1])
        for query in ("limit=0", "limit=513", "after=-1", "after=65536", "after=one", "port_guid=1"):
            self.check(self.sm.api.call("GET", f"/v1/lids?{query}"), 400, "bad_request")

    def test_plan_and_move(self):
        two, three, port = self.fabric.lid(2), self.fabric.lid(3), fabric.port_guid(3)
        lines = self.done("plan", str(two), port)
        self.assertEqual(lines[0], f"LID {two} would go to {port}, LID {three} to {fabric.port_guid(2)}")
        self.assertRegex(lines[1], r"^skyline: 1 switches; SMPs: 1 LFT, 2 PortInfo, 0 to drain before$")
        self.assertRegex(lines[2], r"^  0x[0-9a-f]{16}$")
        self.assertEqual(self.document("plan", str(two), port)["state"], "planned")
        self.assertTrue(self.done("plan", str(two), port, "--mode", "deterministic")[1].startswith("deterministic: "))
        self.assertEqual(self.fabric.lid(2), two)
        lines = self.done("move", str(two), port)
        self.assertEqual(lines[0], f"LID {two} went to {port}, LID {three} to {fabric.port_guid(2)}")
        self.assertRegex(lines[2], r"^all acknowledged after \d+ us$")
        self.assertEqual((self.fabric.lid(2), self.fabric.lid(3)), (three, two))
        self.assertEqual(self.done("move", str(two), port), [f"LID {two} is at {port} already: nothing changes"])
        self.assertEqual(self.document("move", str(two), port)["state"], "applied")
        self.assertIn("1 applied", self.done("fabric")[-1])

    def test_rebalance(self):
        kept = lambda: self.document("fabric")["kept_lids"]
        self.check(self.sm.api.call("PUT", f"/v1/lids/{self.fabric.lid(2)}", {"port_guid": fabric.port_guid(3)}), 200)
        self.assertEqual((kept(), self.done("fabric")[-2]), (2, "kept      2 LIDs, by ways that moves have left"))
        self.assertEqual(self.done("rebalance"), ["OpenSM computes all ways anew; 2 LIDs had some that moves have left"])
        fabric.wait_for("rebalanced", lambda: kept() == 0)
        self.assertEqual(self.document("rebalance"), {"state": "asked", "kept_lids": 0})

    def test_forget_and_unpin(self):
        self.check(self.sm.api.bind(VGUID1, 3, 2, []), 200)
        self.refused("still_bound", VGUID1, "forget", VGUID1, exit_status=4)
        self.check(self.sm.api.withdraw(VGUID1, 3), 200)
        self.assertEqual(self.done("forget", VGUID1), [f"{VGUID1}: epoch 3 is forgotten; the next report may have any"])
        self.refused("unknown_binding", VGUID1, "forget", VGUID1, exit_status=3)
        self.check(self.sm.api.withdraw(VGUID1, 2), 200)
        self.assertEqual(self.document("forget", VGUID1), {"vguid": VGUID1, "epoch": 2})
        self.refused("unknown_pin", fabric.port_guid(2), "unpin", fabric.port_guid(2), exit_status=3)
        self.refused("no_tickets", "whoever has the higher epoch is the owner", "owner", VGUID1, fabric.port_guid(2), exit_status=4)

    def test_bad_input_is_named(self):
        self.refused("unknown_binding", f"{NOBODY}: never reported", "bindings", NOBODY, exit_status=3)
        self.refused("unknown_lid", "LID 4711", "lids", "4711", exit_status=3)
        self.refused("unknown_port", NOBODY, "move", str(self.fabric.lid(2)), NOBODY, exit_status=4)
        self.refused("sm_port", "", "move", "1", fabric.port_guid(2), exit_status=4)
        for args in (("bindings", "x"), ("bindings", "../lids/1"), ("bindings", "--port", "x"), ("lids", "x"), ("lids", "0"), ("members", "--port", "a b&limit=1"),
                     ("plan", "x", NOBODY), ("move", "2", "x"), ("move", "2", NOBODY, "--mode", "best"), ("forget", "x"), ("unpin", "1/2")):
            self.refused("bad_request", "", *args, exit_status=2)


class Operator(CtlCase):    # ibsim takes ten OpenSMs, one after the other
    def setUp(self):
        self.sm = self.manager(lids=True).start()

    def test_status_says_by_its_exit_what_is_wrong(self):
        self.assertEqual(self.status()[0], 0)
        path = os.path.join(self.sm.dir, "vhcasm.conf")
        with open(path, "a", encoding="ascii") as f:
            f.write("[partitions]\nallowed = nothing\n")
        fabric.wait_for("a wrong file", lambda: self.sm.api.call("GET", "/healthz")[1]["problem"], 20)
        p = run("--socket", self.sm.api.path, "status")
        self.assertEqual((p.returncode, p.stderr), (12, ""))
        lines = p.stdout.splitlines()
        self.assertRegex(lines[4], rf"^  wrong    outdated        {path}:\d+: ")
        self.assertRegex(lines[5], r"^ +-> mend the file that it names")
        self.assertEqual(run("--json", "--socket", self.sm.api.path, "status").returncode, 12)

    def test_pause_and_resume(self):
        two, three = self.fabric.lid(2), self.fabric.lid(3)
        self.assertEqual(self.done("pause"), ["no move begins: 0 wait, 0 are under way"])
        self.assertEqual(self.status()[0], 11)
        self.assertIn("  warning  moves_paused    moves of LIDs are paused: reports that need one wait", self.status()[1])
        with subprocess.Popen([CTL, *self.where(), "move", str(two), fabric.port_guid(3)], stdout=subprocess.PIPE, text=True) as waits:
            fabric.wait_for("it waits", lambda: self.done("fabric")[-1] == "moves     PAUSED, 1 queued")
            self.check(self.sm.api.bind(VGUID1, 1, 2, ["0x8001"]), 200)    # what needs no move goes on
            self.wait_key(2, "0x8001")
            swept = self.document("fabric")["sweeps"]
            self.sm.resweep()
            fabric.wait_for("a sweep", lambda: self.document("fabric")["sweeps"] > swept)
            self.assertEqual(self.document("pause"), {"paused": True, "waiting": 1, "under_way": 0})
            self.assertIsNone(waits.poll())
            self.assertEqual((self.fabric.lid(2), self.fabric.lid(3)), (two, three))
            self.assertEqual(self.done("resume"), ["moves go on: 1 wait, 0 are under way"])
            self.assertIn("all acknowledged", waits.communicate(timeout=10)[0])
        self.assertEqual((self.fabric.lid(2), self.fabric.lid(3)), (three, two))
        self.assertEqual(self.status()[0], 0)


class Others(CtlCase):
    def test_a_standby_says_who_is_the_master(self):
        master = self.manager(host=1, lids=True).start()
        self.sm = self.manager(host=2, lids=True).start(wait=False)
        fabric.wait_for("the stand-by knows the master", lambda: self.sm.alive() and self.knows_master(), 20)
        self.assertEqual(self.status()[0], 0)    # it is what it is for
        self.assertEqual(len(self.done("status")), 4)
        self.assertEqual(self.done("status")[0], f"SM        standby; the master is {fabric.port_guid(1)}, ask the plugin there")
        self.assertEqual(self.document("status")["status"], "not_ready")
        self.refused("not_master", fabric.port_guid(1), "move", "3", fabric.port_guid(3), exit_status=7)
        self.assertEqual(master.stop(), 0)

    def knows_master(self):
        try:
            return self.sm.api.call("GET", "/healthz")[1]["master_guid"] == fabric.port_guid(1)
        except OSError:
            return False

    def test_lids_that_do_not_move(self):
        self.sm = self.manager(lids=False).start()
        self.refused("cannot_move", "[lids]", "move", str(self.fabric.lid(2)), fabric.port_guid(3), exit_status=4)
        self.assertEqual(len(self.rows("lids")), 5)

    def test_status_while_ways_are_computed(self):
        self.sm = self.manager(slow=os.environ["VHCA_SLOW_LOCK_LIB"]).start()
        self.sm.keep_lock()
        fabric.wait_for("its word", lambda: run(*self.where(), "status").returncode == 10)
        self.assertIn("  unknown  busy            OpenSM has its tables locked, as while it computes ways: reports wait", self.status()[1])
        p = run(*self.where(), "--timeout", "1", "fabric")
        self.assertEqual(p.returncode, 7)
        self.assertIn("the plugin does not answer", p.stderr)
        self.assertTrue(self.sm.give_lock_back())
        self.assertEqual(len(self.rows("lids")), 5)

    def test_gc(self):
        """Of a node that has left the subnet: what is bound there, but not what is elsewhere by now."""
        self.fabric = fabric.Fabric(console=True)
        self.addCleanup(self.fabric.close)
        self.sm = self.manager(lids=True).start()
        gone, other, elsewhere = fabric.port_guid(2), fabric.port_guid(3), "0x02c9ab0000000003"
        self.check(self.sm.api.bind(VGUID1, 7, 2, ["0x8001"]), 200)
        self.check(self.sm.api.bind(elsewhere, 4, 2, ["0x8003"], 2), 200)
        self.check(self.sm.api.bind(VGUID2, 1, 3, ["0x8002"]), 200)
        self.check(self.sm.api.declare(2, ["0x8004"]), 200)
        self.refused("port_is_there", gone, "gc", gone, exit_status=4)
        self.refused("nothing_known", NOBODY, "gc", NOBODY, exit_status=3)
        self.refused("bad_request", "", "gc", "x", exit_status=2)
        self.fabric.console('Unlink "H2"')
        self.sm.resweep()
        fabric.wait_for("the port to be missed", lambda: len(self.rows("lids")) == 4, 20)
        self.fabric.sa_guid("set", 3, 3, elsewhere)
        self.assertEqual(self.done("gc", gone), [f"{gone}: 1 virtual GUIDs are withdrawn, 0 dynamic LIDs free; 1 are seen elsewhere, and stay"])
        self.assertEqual([row[:3] for row in self.rows("bindings")], [[VGUID2, "pending", other], [elsewhere, "elsewhere", gone]])
        self.assertEqual(self.rows("bindings", VGUID1)[0][1], "withdrawn")
        self.assertEqual(self.document("members", "--port", gone)["members"][0]["effective"], ["0x8003"])
        self.check(self.sm.api.bind(VGUID1, 7, 3, ["0x8001"], 4), 409, "superseded")    # its owner is fenced, the next one begins above
        self.check(self.sm.api.bind(VGUID1, 8, 3, ["0x8001"], 4), 200)
        self.check(self.sm.api.bind(elsewhere, 5, 3, ["0x8003"], 3), 200)
        self.refused("nothing_known", gone, "gc", gone, exit_status=3)
        self.sm.kill()
        self.sm.start()
        self.assertEqual([row[0] for row in self.rows("bindings")], [VGUID1, VGUID2, elsewhere])

    def test_nobody_there(self):
        gone = os.path.join(self.fabric.dir, "gone")
        for args, words in ((("--socket", gone), f"the plugin does not run, or listens elsewhere: {gone}: No such file"),
                            (("--url", "http://127.0.0.1:1"), "the plugin does not answer: GET http://127.0.0.1:1/readyz: ")):
            p = run(*args, "status")
            self.assertEqual((p.returncode, p.stdout), (7, ""))
            self.assertIn(words, p.stderr)
            self.assertIn("hint: systemctl status opensm", p.stderr)


class Https(CtlCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.dir = tempfile.mkdtemp(prefix="vhca-smctl.")
        cls.addClassCleanup(shutil.rmtree, cls.dir)
        subprocess.run([os.environ["VHCA_MAKE_CERTS"], cls.dir], check=True, timeout=60)
        for name, text in (("tokens", TOKEN), ("wrong", OTHER), ("named", f"op admin {hashlib.sha256(TOKEN.encode()).hexdigest()}")):
            with open(os.open(f"{cls.dir}/{name}", os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="ascii") as f:
                f.write(text + "\n")

    def serve(self, listen="127.0.0.1", more="", **keys):
        self.port = fabric.free_port()
        self.sm = self.manager(listen=f"{listen}:{self.port}", lids=True, conf="[http]\n" + "".join(
            f"{key} = {self.dir}/{name}\n" for key, name in {"tls_certificate": "server.pem", "tls_key": "server.key", **keys}.items()) + more)
        self.sm.start(wait=False)
        fabric.wait_for("OpenSM is ready", lambda: self.sm.alive() and "ready" in run(*self.url("--token-file", "tokens"), "status").stdout, 20)

    def url(self, *files):
        """(option, file, ...) as options, with the authority that knows the plugin."""
        options = [f"{self.dir}/{word}" if i % 2 else word for i, word in enumerate(files)]
        return ("--url", f"https://127.0.0.1:{self.port}", "--ca", f"{self.dir}/ca.pem", *options)

    def test_the_host_of_the_plugin_needs_no_options(self):
        """With what vhcasm.conf names: a token or a certificate; the plugin is known by its own."""
        for listen, keys in (("127.0.0.1", {"token_file": "tokens"}), ("0.0.0.0", {"tls_ca": "ca.pem", "token_file": "tokens"})):
            self.serve(listen, **keys)
            self.assertEqual(self.done("bindings"), ["no virtual GUID is bound"])
            self.assertEqual(self.sm.stop(), 0)

    def test_certificate(self):
        self.serve(tls_ca="ca.pem", token_file="tokens")
        p = run(*self.url("--cert", "client.pem", "--key", "client.key"), "lids")
        self.assertEqual((p.returncode, p.stderr), (0, ""))
        p = run(*self.url("--cert", "client.pem", "--key", "client.key"), "move", "2", NOBODY)
        self.assertEqual(p.returncode, 8)
        self.assertIn("the role admin is needed", p.stderr)
        p = run(*self.url("--token-file", "tokens"), "bindings")
        self.assertEqual((p.returncode, p.stderr), (0, ""))
        for files in ((), ("--token-file", "wrong")):
            p = run(*self.url(*files), "bindings")
            self.assertEqual((p.returncode, p.stdout), (8, ""))
            self.assertIn("hint: --cert FILE and --key FILE", p.stderr)
            self.assertNotIn(OTHER, p.stderr)
        self.assertEqual(self.sm.stop(), 0)

    def declare(self, port_guid):
        """As an agent, by its certificate."""
        trust = ssl.create_default_context(cafile=f"{self.dir}/ca.pem")
        trust.load_cert_chain(f"{self.dir}/client.pem", f"{self.dir}/client.key")
        conn = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=10, context=trust)
        self.addCleanup(conn.close)
        conn.request("PUT", f"/v1/members/{port_guid}", '{"pkeys": []}')
        self.assertEqual(conn.getresponse().status, 200)

    def test_an_admin_by_token(self):
        self.serve(more="[tickets]\nrequired = yes\n[agents]\nhv2 = cert:localhost\n", tls_ca="ca.pem", token_file="named")
        port, admin = fabric.port_guid(2), self.url("--token-file", "tokens")
        for args, words in ((("unpin", port), f"{port}: is hv2's no more, but the node's that speaks for it next\n"),
                            (("--json", "unpin", port), f'{{\n  "port_guid": "{port}",\n  "node": "hv2"\n}}\n')):
            self.declare(port)
            p = run(*admin, *args)
            self.assertEqual((p.returncode, p.stdout, p.stderr), (0, words, ""))
        p = run(*admin, "owner", VGUID1, port)
        self.assertEqual((p.returncode, p.stdout, p.stderr), (0, f"{VGUID1}: is the node's with port {port}, above epoch 0\n", ""))
        p = run(*admin, "move", str(self.fabric.lid(2)), fabric.port_guid(3))
        self.assertEqual((p.returncode, p.stderr), (0, ""))
        self.assertEqual(self.sm.stop(), 0)
        self.assertIn("audit: token:op (admin, 127.0.0.1) DELETE /v1/pins/", self.sm.log())
        self.assertNotIn(TOKEN, self.sm.log())

    def test_files_are_named(self):
        self.port = 1
        for files, words in ((("--cert", "client.pem"), "client.pem: a certificate needs its key"), (("--key", "client.key"), "client.key: a key needs its certificate"),
                             (("--cert", "none", "--key", "client.key"), "/none: No such file"), (("--cert", "expired.pem", "--key", "expired.key"), "expired.pem: the certificate has expired"),
                             (("--token-file", "none"), "/none: No such file"), (("--token-file", "server.key"), "server.key: line 1: a token has")):
            p = run(*self.url(*files), "status")
            self.assertEqual(p.returncode, 2, p.stderr)
            self.assertIn(words, p.stderr)
            self.assertNotIn("PRIVATE KEY", p.stderr)

    def test_who_is_not_the_plugin_is_not_asked(self):
        self.serve("0.0.0.0", token_file="tokens")
        for url, ca in ((f"https://127.0.0.1:{self.port}", "client.pem"), (f"https://127.0.0.2:{self.port}", "ca.pem")):
            p = run("--url", url, "--ca", f"{self.dir}/{ca}", "--token-file", f"{self.dir}/tokens", "status")
            self.assertEqual(p.returncode, 7)
            self.assertIn("the plugin does not answer", p.stderr)
            self.assertIn("--ca has to know the plugin's certificate", p.stderr)
        self.assertEqual(self.sm.stop(), 0)


tap.main(__name__)
