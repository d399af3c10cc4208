#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The daemon vhcad itself on a host without adapters, against libvirt's test driver: start, sockets, API, reload, stop."""

import functools
import grp
import http.client
import json
import os
import pathlib
import pwd
import re
import shutil
import signal
import socket
import stat
import struct
import subprocess
import tempfile
import threading
import time
import unittest
import urllib.parse

import exposition
import journal
import openapi
import tap
from callers import acting_as

VHCAD = os.environ["VHCAD"]
# libvirt hands its callbacks' data back from a thread of its own, after virConnectClose(): at exit one may still be on its way.
ENV = {**os.environ, "LSAN_OPTIONS": "suppressions=" + os.path.join(os.path.dirname(__file__), "lsan.supp")}


@functools.cache
def document():
    """All answers of an agent that any test gets are as it says."""
    return openapi.Document()


def conf_text(where, extra=""):
    return (f"[agent]\nstate_dir = {where}/state\nrun_dir = {where}/run\nnode_name = node-a\n"
            f"[libvirt]\nuri = test:///default\n[hca default]\nmanage = yes\n{extra}")


class Agent:
    """One vhcad in a directory of its own."""

    def __init__(self, where):
        self.where = where
        self.conf = f"{where}/vhcad.conf"
        self.process = self.journal = None
        self.write(conf_text(where))

    def write(self, text):
        with open(self.conf, "w", encoding="utf-8") as f:
            f.write(text)

    def start(self):
        self.log = open(f"{self.where}/log", "ab")
        env = {**ENV, **self.journal.environment(self.log)} if self.journal else ENV
        self.process = subprocess.Popen([VHCAD, "-c", self.conf], stderr=self.log, stdout=self.log, env=env,
                                        preexec_fn=self.journal and self.journal.prepare)
        self.wait(lambda: self.get("/readyz")[0] == 200)

    def wait(self, cond, seconds=60):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                if cond():
                    return
            except OSError:
                pass
            time.sleep(0.05)
        raise AssertionError("time-out; log:\n" + self.log_text())

    def log_text(self):
        with open(f"{self.where}/log", encoding="utf-8") as f:
            return f.read()

    def request(self, method, path, body=None, headers="", user=None, groups=()):
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(30)
            with acting_as(user, groups):
                s.connect(f"{self.where}/run/vhcad.sock")
            data = b"" if body is None else (body if isinstance(body, bytes) else json.dumps(body).encode())
            s.sendall(f"{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{headers}"
                      f"Content-Length: {len(data)}\r\n\r\n".encode() + data)
            answer = b""
            while chunk := s.recv(65536):
                answer += chunk
        head, _, rest = answer.partition(b"\r\n\r\n")
        text = any(f"Content-Type: {kind}".encode() in head for kind in (exposition.CONTENT_TYPE, "text/plain"))
        status, doc = int(head.split()[1]), rest.decode() if text else json.loads(rest) if rest else None
        if rest and not text:
            assert not (errors := document().check_answer(method, path, status, doc)), (method, path, status, doc, errors)
        return status, doc, head.decode()

    def get(self, path, headers=""):
        return self.request("GET", path, headers=headers)

    def stop(self, signo=signal.SIGTERM):
        self.process.send_signal(signo)
        code = self.process.wait(60)
        self.log.close()
        self.process = None
        return code


class Case(unittest.TestCase):
    def setUp(self):
        self.where = tempfile.mkdtemp(prefix="vhcad-")
        self.agent = Agent(self.where)

    def tearDown(self):
        if self.agent.process:
            self.agent.process.kill()
            self.agent.process.wait()
            self.agent.log.close()
        shutil.rmtree(self.where)


class Start(Case):
    def run_once(self, *argv):
        return subprocess.run([VHCAD, "-c", self.agent.conf, *argv], env=ENV, capture_output=True, text=True, timeout=20)

    def test_check_config_says_ok_or_the_line(self):
        self.assertEqual(self.run_once("--check-config").returncode, 0)
        self.agent.write(conf_text(self.where, "[sm]\nbackend = carrier-pigeon\n"))
        bad = self.run_once("--check-config")
        self.assertNotEqual(bad.returncode, 0)
        self.assertRegex(bad.stderr, r"vhcad\.conf:\d+: .*backend")

    def test_wrong_value_refuses_to_start(self):
        self.agent.write(conf_text(self.where, "[sm]\ntimout = 5s\n"))
        bad = self.run_once()
        self.assertNotEqual(bad.returncode, 0)
        self.assertIn("timeout", bad.stderr)  # the nearest known key
        self.assertFalse(os.path.exists(f"{self.where}/state/state.db"))

    def test_plan_writes_nothing(self):
        self.assertEqual(self.run_once("--plan").returncode, 0)
        self.assertEqual(os.listdir(self.where), ["vhcad.conf"])

    def test_stops_cleanly_and_starts_again(self):
        for _ in range(3):
            self.agent.start()
            self.assertEqual(self.agent.stop(), 0, self.agent.log_text())

    def test_killed_and_started_again(self):
        for _ in range(3):
            self.agent.start()
            self.assertEqual(self.agent.stop(signal.SIGKILL), -signal.SIGKILL)
        self.agent.start()

    def test_what_a_killed_one_was_writing_is_removed(self):
        left = [pathlib.Path(self.where, where, "vfs.tmp-a1B2c3") for where in ("run", "state")]
        kept = pathlib.Path(self.where, "state", "vfs.backup")
        for path in (*left, kept):
            path.parent.mkdir(exist_ok=True)
            path.write_text("half", encoding="ascii")
        self.agent.start()
        self.assertEqual([path.exists() for path in (*left, kept)], [False, False, True])

    def test_a_second_one_touches_nothing(self):
        """The first may be writing what a start would remove, and has the database."""
        self.agent.start()
        writes = pathlib.Path(self.where, "run", "vfs.tmp-a1B2c3")
        writes.write_text("half", encoding="ascii")
        done = self.run_once()
        self.assertTrue(writes.exists())
        self.assertIn(f"cannot start: {self.where}/state: in use by another vhcad", done.stderr)
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual(self.agent.get("/v1/vfs")[0], 200)

    def test_database_of_a_newer_version_is_refused(self):
        self.agent.start()
        self.agent.stop()
        subprocess.run(["sqlite3", f"{self.where}/state/state.db", "PRAGMA user_version = 999"], check=True, timeout=20)
        bad = self.run_once()
        self.assertNotEqual(bad.returncode, 0)
        self.assertIn("999", bad.stderr)


class Domains(Case):
    """Those of libvirt's test driver, from a file."""

    VMD = ("<devices><hostdev mode='subsystem' type='pci' managed='yes'><source>"
           "<address domain='0x10000' bus='0xe1' slot='0' function='0'/></source></hostdev></devices>")

    def start(self, **domains):
        xml = "".join(f"<domain type='test'><name>{name}</name><uuid>6b3e0f5c-1111-4222-8333-{i:012}</uuid>"
                      f"<memory>65536</memory><os><type>hvm</type></os>{more}</domain>"
                      for i, (name, more) in enumerate(domains.items()))
        with open(f"{self.where}/host.xml", "w", encoding="utf-8") as f:
            f.write(f"<node>{xml}</node>")
        self.agent.write(conf_text(self.where).replace("test:///default", f"test://{self.where}/host.xml"))
        self.agent.start()
        self.agent.wait(lambda: self.agent.get("/v1/node")[1]["libvirt"]["synced"])

    def test_one_that_cannot_be_read_hides_no_other(self):
        self.start(plain="", vmd=self.VMD, large=f"<description>{'x' * (9 << 20)}</description>")
        domains = {d["name"]: d for d in self.agent.get("/v1/domains")[1]["domains"]}
        self.assertEqual(sorted(domains), ["large", "plain", "vmd"])
        self.assertEqual([n for n, d in domains.items() if d["unreadable"]], ["large"])
        self.assertIn("allowed are 1 to 8388608", domains["large"]["unreadable"])
        self.assertIn("large: cannot be read: domain XML: 9", self.agent.log_text())
        verdict = self.agent.get("/v1/domains/large/explain")[1]["verdict"]
        self.assertEqual((verdict["status"], verdict["fix"]), ("wrong", "virsh dumpxml large"))
        status, doc, _ = self.agent.request("POST", "/v1/domains/large/vfs/ib0", {"partition": "0x8001"})
        self.assertEqual((status, doc["code"]), (409, "domain_unreadable"))

    def test_bad_metadata_is_refused_as_a_whole(self):
        self.start(bad="<metadata><v:infiniband xmlns:v='urn:vhcad:domain:1'><v:vf name='ib0' partition='0x8001'/>"
                       "<v:vf name='ib1' partition='0x8001' guid='mine'/></v:infiniband></metadata>")
        domain = self.agent.get("/v1/domains")[1]["domains"][0]
        said = 'domain bad is given no VF: <vhca:vf> number 2: guid="mine" is not valid'
        self.assertEqual(domain["requests"], [])
        self.assertIn(f"{said}; allowed in guid: auto, sm, a unicast GUID", domain["problem"])
        self.assertIn(domain["problem"], self.agent.log_text())
        doc = self.agent.get("/v1/domains/bad/explain")[1]
        self.assertEqual((doc["verdict"]["text"], len(doc["findings"])), (said, 1))
        self.assertRegex(doc["verdict"]["fix"], "^allowed in guid: auto, .*; virsh edit bad, then restart it$")


class Serve(Case):
    def setUp(self):
        super().setUp()
        self.agent.start()

    def test_only_the_owner_can_connect(self):
        for name in ("vhcad.sock", "hook.sock"):
            mode = os.stat(f"{self.where}/run/{name}").st_mode
            self.assertTrue(stat.S_ISSOCK(mode))
            self.assertEqual(stat.S_IMODE(mode), 0o600)
        self.assertEqual(stat.S_IMODE(os.stat(f"{self.where}/state/state.db").st_mode), 0o600)

    def test_only_the_list_of_this_boot_is_everybodys_to_read(self):
        paths = [f"{self.where}/{where}/vfs" for where in ("run", "state")]
        self.agent.wait(lambda: all(map(os.path.exists, paths)))
        self.assertEqual([stat.S_IMODE(os.stat(path).st_mode) for path in paths], [0o644, 0o640])

    def test_every_read_answers(self):
        for path, key in (("hcas", "hcas"), ("vfs", "vfs"), ("domains", "domains"), ("claims", "claims"), ("outbox", "outbox")):
            status, doc, _ = self.agent.get(f"/v1/{path}")
            self.assertEqual((status, type(doc[key])), (200, list))
        node = self.agent.get("/v1/node")[1]
        self.assertEqual((node["node_name"], node["api"], node["loop"]["blocking_calls"]), ("node-a", 1, 0))
        self.agent.wait(lambda: self.agent.get("/v1/node")[1]["libvirt"]["synced"])
        self.assertEqual(self.agent.get("/healthz")[0], 200)

    def test_metrics_are_those_described(self):
        self.agent.wait(lambda: self.agent.get("/v1/node")[1]["libvirt"]["synced"])
        self.assertEqual(self.agent.get("/v1/nothing")[0], 404)
        status, text, _ = self.agent.get("/metrics")
        values = exposition.samples(text)
        self.assertEqual((status, values["vhcad_libvirt_connected"], values["vhcad_ready"], values["vhcad_store_writable"]), (200, 1, 1, 1))
        self.assertEqual(values['vhcad_http_requests_total{role="admin",status="404"}'], 1)
        self.assertGreater(values["vhcad_http_request_seconds_count"], 2)
        self.assertLess(len(values), 500)
        described = openapi.Document().doc["paths"]["/metrics"]["get"]["description"]
        self.assertEqual({f.removesuffix("_total") for f in re.findall(r"`(vhcad_\w+)`", described)}, set(exposition.families(text)))

    def test_a_long_poll_is_no_slow_request(self):
        def slow():
            values = exposition.samples(self.agent.get("/metrics")[1])
            return values["vhcad_http_request_seconds_count"] - values['vhcad_http_request_seconds_bucket{le="1.0"}']
        def rise():
            before = slow()
            cursor = self.agent.get("/v1/events")[1]["cursor"]
            self.agent.get(f"/v1/events?since={cursor}&wait=2")
            return slow() - before
        self.assertTrue(any(rise() == 0 for _ in range(5)))    # the other requests may be slow on a busy machine

    def test_unchanged_list_is_not_sent_again(self):
        head = self.agent.get("/v1/vfs")[2]
        etag = next(line.split(": ", 1)[1] for line in head.splitlines() if line.lower().startswith("etag"))
        self.assertEqual(self.agent.get("/v1/vfs", f"If-None-Match: {etag}\r\n")[0], 304)

    def test_the_document_is_served_as_the_tree_has_it(self):
        """So what test_openapi says of its routes, roles and codes holds for what clients read."""
        status, doc, head = self.agent.get("/openapi.json")
        self.assertEqual((status, doc), (200, openapi.Document().doc))
        etag = re.search(r"^ETag: (.*)\r$", head, re.M | re.I)[1]
        self.assertEqual(self.agent.get("/openapi.json", f"If-None-Match: {etag}\r\n")[:2], (304, None))

    def test_errors_are_problem_documents_with_a_way_out(self):
        cases = [
            ("GET", "/v1/nothing", None, 404), ("GET", "/v1/vfs/0000:77:00.1", None, 404),
            ("GET", "/v1/vfs/0000:77:00.1/explain", None, 404), ("GET", "/v1/domains/nobody/explain", None, 404),
            ("POST", "/v1/domains/nobody/adopt", None, 404), ("POST", "/v1/domains/test/adopt", None, 404), ("PUT", "/v1/vfs", {}, 405),
            ("POST", "/v1/domains/test/vfs/ib0", {"partition": "0x8001"}, 507),  # the test domain has no root port
            ("POST", "/v1/domains/nobody/vfs/ib0", {"partition": "0x8001"}, 404),
            ("POST", "/v1/domains/test/vfs/ib0", {}, 400), ("POST", "/v1/domains/test/vfs/ib0", b"{", 400),
            ("POST", "/v1/domains/test/vfs/ib0", {"partition": "0x8001", "colour": "red"}, 400),
            ("POST", "/v1/domains/test/vfs/" + "x" * 60, {"partition": "0x8001"}, 400),
            ("DELETE", "/v1/domains/test/vfs/ib0", None, 404), ("DELETE", "/v1/claims/zzz", None, 404),
            ("POST", "/v1/claims", {"domain": "test", "name": "ib0", "partition": "0x8001", "bdf": "7"}, 400),
            ("POST", "/v1/claims", {"domain": "test", "name": "ib0", "partition": "0x8001", "pf": "7"}, 400),
            ("POST", "/v1/claims", {"domain": "test", "name": "ib0", "partition": "0x8001", "numa": 1024}, 400),
            ("POST", "/v1/migrations", {"domain": "test", "peer": "hvx"}, 404),  # no [peer hvx]
            ("POST", "/v1/migrations", {"domain": "test", "mode": "park"}, 409),  # nothing to park
            ("POST", "/v1/migrations", {"domain": "test", "mode": "external"}, 400),
            ("POST", "/v1/migrations", {"domain": "test", "mode": "park", "peer": "hvx"}, 400),
            ("POST", "/v1/migrations", {"domain": "test", "mode": "park", "lease": 9}, 400),
            ("POST", "/v1/migrations", {"domain": "test", "peer": "hvx", "lease": 60}, 400),
            ("POST", "/v1/migrations", {"domain": "test", "peer": "hvx", "mode": "magic"}, 400),
            ("POST", "/v1/migrations", {"domain": "test", "peer": "hvx", "copy": {"timeout": 9}}, 400),
            ("POST", "/v1/migrations", {"domain": "test", "peer": "hvx", "copy": {"connections": 256}}, 400),
            ("POST", "/v1/migrations", {"domain": "test", "peer": "hvx", "copy": {"speed": 1}}, 400),
            ("POST", "/v1/migrations", {"domain": "test", "peer": "hvx", "copy": []}, 400),
            ("POST", "/v1/migrations", {"domain": "test", "peer": "hvx", "mode": "external", "copy": {}}, 400),
            ("POST", "/v1/migrations", {"domain": "test", "peer": "hvx", "copy": {"timeout": 10, "bandwidth": 1, "tls": True}}, 404),
            ("POST", "/v1/migrations/zzz/lease", {"lease": 60}, 404), ("POST", "/v1/migrations/zzz/lease", {}, 400),
            ("POST", "/v1/drain", {"peers": ["hvx"]}, 404), ("POST", "/v1/drain", {"peers": "hvx"}, 400), ("POST", "/v1/drain", {"peers": [1]}, 400),
            ("POST", "/v1/drain", {"peers": []}, 400), ("POST", "/v1/drain", {}, 400), ("POST", "/v1/drain", {"park": False}, 400),
            ("POST", "/v1/drain", b'{"peers": ["hvx"], "park": true, "peers": []}', 400),
            ("POST", "/v1/drain", {"park": True, "peers": ["hvx"]}, 400), ("POST", "/v1/drain", {"park": 1}, 400),
            ("GET", "/v1/vfs?state=foo", None, 400), ("GET", "/v1/vfs?state=", None, 400),
            ("GET", "/v1/events?since=x", None, 400), ("GET", "/v1/events?since=0", None, 400), ("GET", "/v1/events?wait=9999", None, 400)]
        self.agent.wait(lambda: self.agent.get("/v1/node")[1]["libvirt"]["synced"])
        for method, path, body, want in cases:
            status, doc, _ = self.agent.request(method, path, body)
            self.assertEqual(status, want, f"{method} {path}: {doc}")
            for key in ("code", "detail", "retryable", "status"):
                self.assertIn(key, doc)

    def test_a_parameter_that_is_not_known_is_refused(self):
        """?status=free gave all VFs."""
        self.assertEqual(self.agent.get("/v1/vfs?status=free")[1].get("code"), "bad_request")
        for method, path in openapi.Document().routes():
            if not path.startswith("/v1/peer/"):
                status, doc, _ = self.agent.request(method, path.replace("{}", "x") + "?colour=red")
                self.assertEqual((status, doc["code"]), (400, "bad_request"), path)
                self.assertIn("colour", doc["detail"])
        self.assertEqual(self.agent.get("/v1/vfs?state=free&state=attached")[0], 400)
        self.assertIn("state", self.agent.get("/v1/vfs?status=free")[1]["hint"])

    def test_drain_outlives_a_restart(self):
        self.assertFalse(self.agent.get("/v1/node")[1]["drained"])
        self.assertEqual(self.agent.request("POST", "/v1/drain", {"park": True})[0], 202)
        self.agent.wait(lambda: self.agent.get("/v1/drain")[1]["done"])
        status, doc, _ = self.agent.request("POST", "/v1/claims", {"domain": "test", "name": "ib0", "partition": "0x8001"})
        self.assertEqual((status, doc["code"]), (409, "drained"))
        self.assertEqual(self.agent.stop(), 0)
        self.agent.start()
        self.assertTrue(self.agent.get("/v1/node")[1]["drained"])
        self.assertEqual(self.agent.request("DELETE", "/v1/drain")[1]["drained"], False)

    def test_a_state_that_is_none_is_answered_with_those_there_are(self):
        known = openapi.Document().doc["components"]["schemas"]["VfState"]["enum"]
        for state in known:
            self.assertEqual(self.agent.get(f"/v1/vfs?state={state}")[0], 200)
        status, doc, _ = self.agent.get("/v1/vfs?state=Free")
        self.assertEqual((status, doc["code"]), (400, "bad_request"))
        self.assertEqual(doc["hint"], "state is one of " + ", ".join(known))

    def test_one_object_and_filters(self):
        self.agent.wait(lambda: self.agent.get("/v1/node")[1]["libvirt"]["synced"])
        domain = self.agent.get("/v1/domains")[1]["domains"][0]
        for name in ("test", domain["uuid"]):
            status, doc, _ = self.agent.get(f"/v1/domains/{name}")
            self.assertEqual((status, doc), (200, domain))
        nobody, pf = "6b3e0f5c-1111-4222-8333-000000000000", "0000:77:00.0"
        for path, code in ((f"/v1/domains/{nobody}", "no_such_domain"), ("/v1/domains/nobody", "no_such_domain"), (f"/v1/claims/{nobody}", "no_such_claim"),
                           ("/v1/claims/x", "no_such_claim"), (f"/v1/hcas/{pf}", "no_such_hca"), ("/v1/hcas/x", "no_such_hca"), (f"/v1/vfs?pf={pf}", "no_such_hca"),
                           ("/v1/vfs?domain=nobody", "no_such_domain"), ("/v1/claims?domain=nobody", "no_such_domain")):
            status, doc, _ = self.agent.get(path)
            self.assertEqual((status, doc.get("code")), (404, code), path)
        self.assertEqual(self.agent.get("/v1/vfs?domain=test&state=attached")[1], {"vfs": [], "next": None})
        self.assertEqual(self.agent.get(f"/v1/claims?domain={nobody}")[1], {"claims": [], "next": None})

    def test_explains_a_domain_without_infiniband(self):
        self.agent.wait(lambda: self.agent.get("/v1/node")[1]["libvirt"]["synced"])
        status, doc, _ = self.agent.get("/v1/domains/test/explain")
        self.assertEqual((status, openapi.Document().check("DomainExplanation", doc)), (200, []))
        self.assertEqual((doc["verdict"]["status"], doc["verdict"]["subject"]), ("warning", "test"))
        self.assertIn("vhcactl attach test", doc["verdict"]["fix"])

    def test_long_poll_waits_for_the_next_event(self):
        self.agent.wait(lambda: self.agent.get("/v1/node")[1]["libvirt"]["synced"])
        cursor = self.agent.get("/v1/events")[1]["cursor"]
        started = time.monotonic()
        status, doc, _ = self.agent.get(f"/v1/events?since={cursor}&wait=1")
        self.assertEqual((status, doc["events"]), (200, []))
        self.assertGreaterEqual(time.monotonic() - started, 0.9)

    def test_a_cursor_from_before_a_restart_is_gone(self):
        """Although the new agent tells of as many events as the old one."""
        cursor = self.agent.get("/v1/events")[1]["cursor"]
        self.agent.stop()
        self.agent.start()
        self.agent.wait(lambda: self.agent.get("/v1/node")[1]["libvirt"]["synced"])
        status, doc, _ = self.agent.get(f"/v1/events?since={cursor}")
        self.assertEqual((status, doc.get("code")), (410, "cursor_gone"))
        self.assertIn("since=oldest", doc["hint"])

    def test_now_is_behind_all_events(self):
        self.agent.wait(lambda: self.agent.get("/v1/node")[1]["libvirt"]["synced"])
        doc = self.agent.get("/v1/events?since=now")[1]
        self.assertEqual(doc["events"], [])
        self.assertEqual(self.agent.get(f"/v1/events?since={doc['cursor']}")[1], doc)
        self.assertEqual(self.agent.get("/v1/events")[1], self.agent.get("/v1/events?since=oldest")[1])

    def test_who_cannot_wait_is_told_so(self):
        """One more than 64 that wait: an empty answer at once would have it ask again at once."""
        self.agent.wait(lambda: self.agent.get("/v1/node")[1]["libvirt"]["synced"])
        answers = []
        threads = [threading.Thread(target=lambda: answers.append(self.agent.get("/v1/events?since=now&wait=15"))) for _ in range(100)]
        for t in threads:
            t.start()
        started = time.monotonic()
        self.assertEqual(self.agent.get("/healthz")[0], 200)
        self.assertLess(time.monotonic() - started, 10)    # before they have waited enough
        for t in threads:
            t.join()
        refused = [(doc["code"], doc["retryable"], "Retry-After: 1" in head) for status, doc, head in answers if status == 503]
        self.assertEqual(refused, [("too_many_waiting", True, True)] * 36)

    def test_reload_takes_good_and_keeps_the_old_for_bad(self):
        self.agent.write(conf_text(self.where, "[partition storage]\npkey = 0x8003\n"))
        self.agent.process.send_signal(signal.SIGHUP)
        self.agent.wait(lambda: "configuration reloaded" in self.agent.log_text())
        self.agent.write("[nonsense]\n")
        self.agent.process.send_signal(signal.SIGHUP)
        self.agent.wait(lambda: "reload refused" in self.agent.log_text())
        self.agent.write(conf_text(self.where, "[sm]\npoll = 1s\n"))
        self.agent.process.send_signal(signal.SIGHUP)
        self.agent.wait(lambda: "[sm] poll changes only by a restart" in self.agent.log_text())
        self.assertEqual(self.agent.get("/v1/node")[1]["node_name"], "node-a")

    def test_reload_that_is_asked_for_says_what_came_of_it(self):
        self.agent.write(conf_text(self.where, "[partition storage]\npkey = 0x8003\n"))
        self.assertEqual(self.agent.request("POST", "/v1/reload")[:2], (200, {"status": "reloaded"}))
        self.assertIn("configuration reloaded", self.agent.log_text())
        for text, status, code, words in (("[nonsense]\n", 400, "unknown_section", "vhcad.conf:1: "),
                                          (conf_text(self.where, "[sm]\npoll = 1s\n"), 409, "needs_restart", "[sm] poll changes only by a restart")):
            self.agent.write(text)
            told, doc, _ = self.agent.request("POST", "/v1/reload")
            self.assertEqual((told, doc["code"]), (status, code))
            self.assertIn(words, doc["detail"])
            self.assertIn(f"reload refused, the old configuration stays: {doc['detail']}", self.agent.log_text())

    def test_configuration_is_what_was_read_last(self):
        """Not what the file says by now; and of a token's file there is the path."""
        token = f"{self.where}/token"
        with open(token, "w", encoding="ascii") as f:
            f.write("s3cret-s3cret-s3cret\n")
        os.chmod(token, 0o600)
        self.agent.stop()
        self.agent.write(conf_text(self.where, f"[sm]\ntoken_file = {token}\n[partition storage]\npkey = 0x8003\n"))
        self.agent.start()
        self.agent.write(conf_text(self.where, f"[sm]\ntoken_file = {token}\n[partition storage]\npkey = 0x8004\n"))
        for key in ("0x8003", "0x8004"):
            status, doc, _ = self.agent.get("/v1/config")
            self.assertEqual((status, openapi.Document().check_answer("GET", "/v1/config", status, doc)), (200, []))
            found = {(s["section"], s["key"]): (s["value"], s["default"]) for s in doc["settings"]}
            self.assertEqual((found["partition storage", "pkey"], found["sm", "token_file"]), ((key, None), (token, None)))
            self.assertEqual((found["agent", "run_dir"], found["policy", "port_lease"]), ((f"{self.where}/run", "/run/vhcad"), ("3600s", "3600s")))
            self.assertNotIn("s3cret", str(doc))
            self.assertEqual(self.agent.request("POST", "/v1/reload")[0], 200)

    def ask_hook(self, data, half_close=True):
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(10)
            s.connect(f"{self.where}/run/hook.sock")
            s.sendall(data)
            if half_close:
                s.shutdown(socket.SHUT_WR)
            answer = b""
            while chunk := s.recv(4096):
                answer += chunk
        return answer

    @staticmethod
    def hook_frame(text):
        return struct.pack(">I", len(text)) + text.encode()

    def test_hook_is_answered_from_memory(self):
        ask = self.hook_frame("version 1\nop prepare\nsubop begin\nextra -\nname vm1\nrequest 1\n")
        self.assertEqual(self.ask_hook(ask)[4:], b"pass\n")

    def test_hook_garbage_and_silence_do_no_harm(self):
        for junk in (b"", b"\0", b"\xff" * 4, struct.pack(">I", 5) + b"hello", struct.pack(">I", 1 << 31), b"GET / HTTP/1.1\r\n\r\n"):
            self.assertEqual(self.ask_hook(junk), b"")
        started = time.monotonic()
        self.assertEqual(self.ask_hook(b"\0", half_close=False), b"")  # closed by the agent
        self.assertLess(time.monotonic() - started, 9)
        self.assertEqual(self.agent.get("/healthz")[0], 200)


@unittest.skipIf(os.geteuid(), "only root can ask as another user")
class Roles(Case):
    """Who may ask for what at vhcad.sock: every route as every role, by user and by group."""

    ORDER = ("metrics", "read", "operate", "admin")

    def setUp(self):
        super().setUp()
        self.user = pwd.getpwnam("nobody")
        self.group = grp.getgrgid(self.user.pw_gid).gr_name
        os.chmod(self.where, 0o711)
        self.agent.write(self.conf())
        self.agent.start()

    def conf(self, roles=""):
        return conf_text(self.where, f"[api]\ngroup = {self.group}\nroles = {roles}\n")

    def give(self, roles):
        seen = self.agent.log_text().count("configuration reloaded")
        self.agent.write(self.conf(roles))
        self.agent.process.send_signal(signal.SIGHUP)
        self.agent.wait(lambda: self.agent.log_text().count("configuration reloaded") > seen)

    def routes(self):
        """(method, path, role) of the document, but for the peers'."""
        for path, _, method, op in openapi.Document().operations():
            if op["x-role"] != "agent":
                yield method.upper(), re.sub(r"\{[^}]*\}", "none", path), op["x-role"]

    def check_routes(self, role):
        for method, path, needed in self.routes():
            status, doc, _ = self.agent.request(method, path, user=self.user)
            refused = status == 403 and doc["code"] == "role_needed"
            self.assertEqual(refused, self.ORDER.index(role) < self.ORDER.index(needed), f"{role}: {method} {path}: {status} {doc}")

    def test_every_route_as_every_role(self):
        for role in self.ORDER:
            for who in (self.user.pw_name, "@" + self.group):
                self.give(f"{who}:{role}")
                self.check_routes(role)

    def test_a_member_of_the_group_operates(self):
        self.check_routes("operate")

    def test_agents_have_no_business_here(self):
        self.give(f"{self.user.pw_name}:agent")
        for method, path, _ in self.routes():
            self.assertEqual(self.agent.request(method, path, user=self.user)[0], 403)

    def test_the_first_rule_that_fits_decides(self):
        self.give(f"root:metrics @{self.group}:read {self.user.pw_name}:admin")
        self.check_routes("read")
        self.give("*:metrics *:admin")
        self.check_routes("metrics")

    def test_root_is_admin_whatever_the_rules_say(self):
        self.give("root:metrics @root:metrics")
        self.assertEqual(self.agent.request("DELETE", "/v1/drain")[0], 200)

    def test_every_group_of_the_caller_counts(self):
        others = [g for g in grp.getgrall() if g.gr_gid not in (0, self.user.pw_gid)][:3]
        gids = [g.gr_gid for g in others]
        self.give(f"@{others[-1].gr_name}:admin")
        for groups, status in ((gids, 200), (gids[:-1], 403)):
            self.assertEqual(self.agent.request("DELETE", "/v1/drain", user=self.user, groups=groups)[0], status)

    def test_a_refusal_names_the_role_and_the_way_out(self):
        status, doc, _ = self.agent.request("POST", "/v1/domains/test/takeover", {"evidence": "it burns"}, user=self.user)
        self.assertEqual((status, doc["code"], doc["kind"], doc["retryable"]), (403, "role_needed", "denied", False))
        self.assertIn(f"role admin is needed, and uid:{self.user.pw_uid} has operate", doc["detail"])
        self.assertIn("[api] roles in vhcad.conf", doc["hint"])

    def test_a_connection_that_stays_has_the_new_role(self):
        ask = b"POST /v1/drain HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(30)
            with acting_as(self.user):
                s.connect(f"{self.where}/run/vhcad.sock")
            for roles, status in (("", 403), (f"@{self.group}:admin", 400), (f"{self.user.pw_name}:read", 403)):
                self.give(roles)
                s.sendall(ask)
                with http.client.HTTPResponse(s, method="POST") as answer:    # whole, that its rest is not the next one
                    answer.begin()
                    answer.read()
                self.assertEqual(answer.status, status)

    def test_a_path_forges_no_line_of_the_log(self):
        self.agent.request("DELETE", "/x: 200 audit: uid:0 (admin) DELETE /y\x1b[m\xe4" + "z" * 400, user=self.user)
        self.agent.stop()
        lines = [line[line.index("audit: "):] for line in self.agent.log_text().splitlines() if "audit: " in line]
        path = "/x:%20200%20audit:%20uid:0%20(admin)%20DELETE%20/y%1b[m%c3%a4" + "z" * 400
        self.assertEqual(lines, [f"audit: uid:{self.user.pw_uid} (operate, pid {os.getpid()}) DELETE {path[:198]}...: 404 no_such_path"])

    def test_changes_stand_in_the_log_with_name_and_result(self):
        self.agent.wait(lambda: self.agent.get("/v1/node")[1]["libvirt"]["synced"])
        self.agent.request("GET", "/v1/vfs", user=self.user)
        self.agent.request("POST", "/v1/drain", {"park": True}, user=self.user)
        self.agent.request("DELETE", "/v1/domains/test/vfs/ib0%0a", user=self.user)
        self.give(f"{self.user.pw_name}:admin")
        self.agent.request("DELETE", "/v1/drain", user=self.user)
        self.agent.stop()
        who, pid = f"audit: uid:{self.user.pw_uid}", f"pid {os.getpid()}"
        lines = [line[line.index("audit: "):] for line in self.agent.log_text().splitlines() if "audit: " in line]
        self.assertEqual(lines, [f"{who} (operate, {pid}) POST /v1/drain: 403 role_needed",
                                 f"{who} (operate, {pid}) DELETE /v1/domains/test/vfs/ib0%0a: 404 no_such_claim",
                                 f"{who} (admin, {pid}) DELETE /v1/drain: 200"])

    def test_the_journal_has_the_fields_of_each_change_and_refusal(self):
        self.agent.stop()
        self.agent.journal = journal.Journal(self.where)
        self.addCleanup(self.agent.journal.close)
        self.agent.start()
        self.agent.wait(lambda: self.agent.get("/v1/node")[1]["libvirt"]["synced"])
        self.agent.request("GET", "/v1/vfs", user=self.user)
        self.agent.request("DELETE", "/v1/domains/test/vfs/ib0%0aVHCA_WHO:0", user=self.user)
        self.agent.request("POST", "/v1/drain", {"park": True}, user=self.user)
        self.agent.stop()
        who, pid = f"uid:{self.user.pw_uid}", f"pid {os.getpid()}"
        same = {"PRIORITY": "5", "SYSLOG_IDENTIFIER": "vhcad", "VHCA_WHO": who, "VHCA_ROLE": "operate", "VHCA_FROM": pid}
        path = "/v1/domains/test/vfs/ib0%0aVHCA_WHO:0"
        self.assertEqual(self.agent.journal.entries("change"), [{
            **same, "MESSAGE_ID": journal.IDS["change"], "VHCA_METHOD": "DELETE", "VHCA_PATH": path, "VHCA_STATUS": "404",
            "VHCA_CODE": "no_such_claim", "MESSAGE": f"audit: {who} (operate, {pid}) DELETE {path}: 404 no_such_claim"}])
        self.assertEqual(self.agent.journal.entries("refused"), [{
            **same, "MESSAGE_ID": journal.IDS["refused"], "VHCA_METHOD": "POST", "VHCA_PATH": "/v1/drain", "VHCA_STATUS": "403",
            "VHCA_CODE": "role_needed", "MESSAGE": f"audit: {who} (operate, {pid}) POST /v1/drain: 403 role_needed"}])
        self.assertNotIn(f"<5>audit: {who}", self.agent.log_text())    # told once

    def test_without_a_journal_the_line_stays(self):
        self.agent.stop()
        self.agent.journal = journal.Journal(self.where)
        self.agent.journal.close()    # the name is there still, and nobody listens
        self.agent.start()
        self.agent.request("POST", "/v1/drain", {"park": True}, user=self.user)
        self.agent.stop()
        self.assertIn(f"<5>audit: uid:{self.user.pw_uid} (operate, pid {os.getpid()}) POST /v1/drain: 403 role_needed\n", self.agent.log_text())


if __name__ == "__main__":
    tap.main(__name__)
