#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The page that the plugin serves for people: who gets it and with which policy, and, in headless Chromium, what it shows."""

import base64
import hashlib
import http.client
import http.server
import json
import os
import re
import shutil
import signal
import ssl
import subprocess
import tempfile
import threading
import time
import unittest
import urllib.parse

import browser
import fabric
import masters
import tap
import vswitches
from plugin_case import VGUID1, VGUID2, Case

HOSTILE = "<img src=x onerror=alert(1)>"
TOKEN = "s3cret-of-a-reader"
POLICY = re.compile(r"default-src 'none'; style-src 'sha256-([^']+)'; script-src 'sha256-([^']+)'; connect-src 'self'; base-uri 'none'; "
                    r"form-action 'none'; frame-ancestors 'none'")
BINDINGS, HOSTS_AT_A_LEAF = 65536, 64
SOON = 0.3      # s, for a person who types, on a machine that has more to do


def fetch(conn, method="GET", url="/", **headers):
    """(status, headers, text)"""
    try:
        conn.request(method, url, None, headers)
        answer = conn.getresponse()
        return answer.status, answer.headers, answer.read().decode()
    finally:
        conn.close()


class Door(Case):
    def test_headers(self):
        sm = self.manager().start()
        status, head, page = fetch(sm.api.connection(10))
        self.assertEqual((status, head["Content-Type"]), (200, "text/html; charset=utf-8"))
        self.assertEqual((head["X-Content-Type-Options"], head["Referrer-Policy"], head["Cache-Control"]), ("nosniff", "no-referrer", "no-cache"))
        self.assertFalse([name for name in head if name.lower().startswith("access-control-")])
        digests = POLICY.fullmatch(head["Content-Security-Policy"]).groups()
        for tag, digest in zip(("style", "script"), digests):
            inside, = re.findall(f"<{tag}>(.*?)</{tag}>", page, re.S)
            self.assertEqual(base64.b64encode(hashlib.sha256(inside.encode()).digest()).decode(), digest)
        self.assertEqual(fetch(sm.api.connection(10), **{"If-None-Match": head["ETag"]})[::2], (304, ""))
        self.assertEqual(fetch(sm.api.connection(10), "HEAD")[::2], (200, ""))
        self.assertEqual(fetch(sm.api.connection(10), "POST")[0], 405)

    def test_nothing_from_outside(self):
        """Neither an address of somebody else, nor what makes HTML of a text."""
        page = fetch(self.manager().start().api.connection(10))[2]
        self.assertEqual(re.findall(r"(?:https?:)?//[\w.]+|\b(?:src|href|action)\s*=|@import|url\(|style=|\son\w+=", page), [])
        self.assertEqual(re.findall(r"\w*(?:innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval|Function)\s*[(=]", page), [])

    def test_role(self):
        sm = self.manager(listen=f"127.0.0.1:{fabric.free_port()}", conf="[http]\nroles = address:127.0.0.1:metrics\n").start()
        for path in ("/", "/v1/moves"):
            status, _, text = fetch(sm.api.connection(10), url=path)
            self.assertEqual((status, json.loads(text)["code"]), (403, "role_needed"))

    def test_who_is_let_in(self):
        where = tempfile.mkdtemp(prefix="vhca-page.")
        self.addCleanup(shutil.rmtree, where)
        subprocess.run([os.environ["VHCA_MAKE_CERTS"], where], check=True, timeout=60)
        with open(os.open(f"{where}/tokens", os.O_WRONLY | os.O_CREAT, 0o600), "w") as f:
            f.write(f"reader read {hashlib.sha256(TOKEN.encode()).hexdigest()}\n")
        sm = self.manager(listen=f"127.0.0.1:{fabric.free_port()}", conf="[http]\n" + "".join(
            f"{key} = {where}/{name}\n" for key, name in (("tls_certificate", "server.pem"), ("tls_key", "server.key"), ("token_file", "tokens"))))
        trust = ssl.create_default_context(cafile=f"{where}/ca.pem")

        def ask(**headers):
            try:
                return fetch(http.client.HTTPSConnection(sm.api.listen, timeout=10, context=trust), **headers)[0]
            except OSError:
                return None
        sm.start(wait=False)
        fabric.wait_for("the door", lambda: sm.alive() and ask() == 401)
        self.assertEqual(ask(Authorization=f"Bearer {TOKEN}"), 200)

    def test_another_page_changes_nothing(self):
        sm = self.manager().start()
        status, _, text = fetch(sm.api.connection(10), "DELETE", f"/v1/bindings/{VGUID1}?epoch=1", Origin="http://localhost:8515")
        self.assertEqual((status, json.loads(text)["code"]), (400, "bad_request"))


def with_hostile_name():
    return vswitches.network().replace('"H4"', f'"{HOSTILE}"')


@unittest.skipIf(browser.missing(), browser.missing())
class StandBy(masters.Masters, Case):
    setUpClass = masters.Masters.setUpClass

    def new_fabric(self):
        return fabric.Fabric()

    def test_it_says_who_knows_more(self):
        self.manager(opensm_conf=masters.MASTER).start()
        other = self.manager(host=4, listen=f"127.0.0.1:{fabric.free_port()}", opensm_conf=masters.STANDBY)
        self.enter_standby(other)
        page = browser.Browser()
        self.addCleanup(page.close)
        page.open(f"http://{other.api.listen}/")
        for where, words in (("#state", "standby, not ready"), ("#reasons", "ask the plugin of the master"), ("#fabric", "Only the master's plugin knows the subnet.")):
            fabric.wait_for(words, lambda: words in page.text(where), 20, 0.1)


@unittest.skipIf(browser.missing(), browser.missing())
class Page(Case):
    @classmethod
    def setUpClass(cls):
        cls.fabric = vswitches.VSwitches(with_hostile_name())
        cls.addClassCleanup(cls.fabric.close)
        cls.browser = browser.Browser()
        cls.addClassCleanup(cls.browser.close)

    def open(self):
        self.sm = self.manager(listen=f"127.0.0.1:{fabric.free_port()}", opensm_conf="routing_engine ftree",
                               conf="[http]\nroles = address:127.0.0.1:admin\n").start()
        self.browser.open("about:blank")    # what the page before asked for was somebody else's
        self.browser.asked.clear()
        self.browser.said.clear()
        self.browser.open(f"http://{self.sm.api.listen}/")
        self.see("#state", "master, ready")
        self.see("#fabric", "F1-1")

    def see(self, where, *words, there=True):
        for word in words:
            fabric.wait_for(f"{word!r} in {where}", lambda w=word: (w in self.browser.text(where)) == there, 20, 0.1)

    def end(self):
        self.assertEqual(self.browser.said, [])
        here = f"http://{self.sm.api.listen}/"
        self.assertEqual([url for url in self.browser.asked if not url.startswith(here)], [])
        self.assertEqual(self.sm.stop(), 0)

    def filter(self, words):
        self.browser.evaluate(f"document.getElementById('filter').value = {json.dumps(words)}; document.getElementById('filter').dispatchEvent(new Event('input'))")

    def test_what_happens_appears(self):
        self.open()
        self.see("#fabric", "L1", "H1", "V1 port 2")
        self.see("#waiting", "Nothing is bound.")
        self.see("#moves", "Nothing has moved")
        vport = vswitches.own_guid(1, 1)
        self.check(self.sm.api.bind(VGUID1, 1, 2, ["0x8001"]), 200)
        self.check(self.sm.api.bind(vport, 1, 1, [], gid_index=0), 200)
        self.see("#fabric", VGUID1, "0x8001", vport, "granted")
        self.see("#waiting", VGUID1, "pending", "H2")
        self.check(vswitches.move(self.sm, vport, 2, (1, 1), (3, 2), "host"), 200)
        self.fabric.exchange((1, 1), (3, 2))
        self.addCleanup(self.fabric.exchange, (3, 2), (1, 1))
        move = self.check(vswitches.move(self.sm, vport, 2, (1, 1), (3, 2)), 200)["lid_move"]
        sent = f"{move['smps']['lft'] + move['smps']['port_info']} SMPs ({move['smps']['lft']} LFT, {move['smps']['port_info']} PortInfo)"
        self.see("#moves", "H1 → H3", f"LID {move['lid']}", sent, "applied", "2 since OpenSM was started")
        self.check(self.sm.api.withdraw(VGUID1, 1), 200)
        self.see("#fabric", VGUID1, there=False)
        self.see("#waiting", "Everything that is bound is in force.")
        self.end()

    def test_a_hostile_name_is_a_text(self):
        self.open()
        self.see("#fabric", HOSTILE)
        self.check(self.sm.api.bind(VGUID1, 1, 4, []), 200)
        self.check(self.sm.api.bind(VGUID1, 2, 5, []), 200)
        self.see("#moves", f"{HOSTILE} → H5")
        self.assertEqual(self.browser.evaluate("document.querySelectorAll('img').length"), 0)
        self.end()

    def test_filter(self):
        self.open()
        self.check(self.sm.api.bind(VGUID1, 1, 2, ["0x8001"]), 200)
        self.check(self.sm.api.bind(VGUID2, 1, 5, ["0x8002"]), 200)
        self.see("#fabric", VGUID1)
        for words, shown, hidden in ((VGUID1.upper(), ("L1", "H2", VGUID1), ("H5", VGUID2)), ("l3 8002", (VGUID2,), (VGUID1, "L1")), ("H5", ("L3", VGUID2), (VGUID1,)),
                                     ("nothing like it", ("Nothing that fits.",), ("L1",))):
            self.filter(words)
            self.see("#fabric .list", *shown)
            self.see("#fabric .list", *hidden, there=False)
        self.filter("")
        self.see("#fabric", "L1")
        self.browser.evaluate("document.getElementById('fold').click()")
        self.see("#fabric .list", "H1", there=False)
        self.browser.evaluate("document.querySelector('#fabric .list button').focus()")
        self.browser.type(" ")
        self.see("#fabric .list", "H1")
        self.assertEqual(self.browser.evaluate("document.activeElement.textContent"), "L1")
        self.end()

    def test_health(self):
        self.open()
        self.check(self.sm.api.call("POST", "/v1/lids/pause"), 200)
        self.see("#reasons", "moves_paused", "vhcasmctl resume")
        self.check(self.sm.api.call("POST", "/v1/lids/resume"), 200)
        self.see("#reasons", "moves_paused", there=False)
        self.assertEqual(self.sm.stop(), 0)
        self.see("#reasons", "The plugin does not answer.", "What is shown is of")
        self.see("#state", "no answer")
        self.assertTrue(self.browser.evaluate("document.body.classList.contains('stale')"))

    def test_an_opensm_that_hangs(self):
        """It takes requests, as its kernel does, and answers none."""
        self.open()
        self.sm.process.send_signal(signal.SIGSTOP)
        self.addCleanup(self.sm.process.send_signal, signal.SIGCONT)
        self.see("#state", "no answer")
        self.assertTrue(self.browser.evaluate("document.body.classList.contains('stale')"))
        self.see("#reasons", "The plugin does not answer.", "What is shown is of")
        self.sm.process.send_signal(signal.SIGCONT)
        self.see("#state", "master, ready")
        self.see("#reasons", "does not answer", there=False)
        self.end()

    def test_what_was_looked_at_does_not_stay(self):
        """A binding has come back to what it was before the page looked at it: its list has the same ETag then."""
        self.open()
        self.check(self.sm.api.bind(VGUID1, 1, 2, []), 200)
        self.see("#waiting", VGUID1, "pending")
        time.sleep(5)    # what has begun, ends: the list is known with this row
        self.browser.evaluate(f"""(async () => {{
            const real = ask;
            ask = async (url, ...more) => (url.endsWith("{VGUID1}") ? {{ body: {{ ...(await real(url, ...more)).body, state: "refused" }} }} : real(url, ...more));
            await bindings.look("{VGUID1}");
            ask = real;
            drawLists();
        }})()""")
        self.see("#waiting", "pending")
        self.end()

    def test_where_it_is_instead(self):
        """By the name of the host, not by its port's GUID."""
        self.open()
        self.fabric.sa_guid("set", 2, 3, VGUID1)
        self.check(self.sm.api.bind(VGUID1, 1, 3, [], gid_index=3), 200)
        self.see("#waiting", "elsewhere", f"GUID {VGUID1} is held by port H2 at index 3.")
        self.see("#figures", "Elsewhere\n1")
        self.end()

    def test_who_copies_is_not_disturbed(self):
        self.open()
        self.check(self.sm.api.bind(VGUID1, 1, 2, []), 200)
        self.see("#fabric", VGUID1)
        select = "[...document.querySelectorAll('#fabric .name')].find((e) => e.textContent === %r)" % VGUID1
        self.browser.evaluate(f"getSelection().selectAllChildren({select})")
        self.check(self.sm.api.bind(VGUID2, 1, 2, []), 200)
        self.see("#waiting", VGUID2)
        self.assertEqual((self.browser.evaluate("getSelection().toString()"), VGUID2 in self.browser.text("#fabric")), (VGUID1, False))
        self.browser.evaluate("getSelection().removeAllRanges()")
        self.see("#fabric", VGUID2)
        self.end()

    def test_what_is_not_seen_asks_nothing(self):
        """And what has not changed is not sent again."""
        self.open()
        tags = lambda: self.browser.evaluate("performance.getEntriesByType('resource').slice(-4).map((e) => [e.name.split('/').pop(), e.responseStatus])")
        fabric.wait_for("304", lambda: ["moves", 304] in tags() and ["lids?limit=512", 304] in tags(), 20)
        self.browser.evaluate("Object.defineProperty(document, 'hidden', {value: true, configurable: true})")
        time.sleep(3)    # what has begun, ends
        self.browser.evaluate("0")
        asked = len(self.browser.asked)
        time.sleep(5)
        self.browser.evaluate("0")
        self.assertEqual(len(self.browser.asked), asked)
        self.browser.evaluate("delete document.hidden; document.dispatchEvent(new Event('visibilitychange'))")
        fabric.wait_for("requests", lambda: self.browser.evaluate("0") is not None and len(self.browser.asked) > asked, 10)
        self.end()

    def test_narrow_and_dark(self):
        """Nothing is wider than the window; the colours are those that are asked for."""
        self.addCleanup(self.browser.resize, 1280, 800)
        self.open()
        for width, height in ((1280, 800), (390, 844)):
            self.browser.resize(width, height)
            for scheme in ("light", "dark"):
                self.browser.scheme(scheme)
                self.assertLessEqual(self.browser.evaluate("document.documentElement.scrollWidth"), width)
                ground = self.browser.evaluate("getComputedStyle(document.body).backgroundColor")
                red = int(re.match(r"rgb\((\d+)", ground)[1])
                self.assertTrue(red < 64 if scheme == "dark" else red > 192, ground)
        self.browser.scheme("light")
        self.end()


class Many(http.server.BaseHTTPRequestHandler):
    """The plugin's page, and lists as long as the plugin's may be."""

    protocol_version = "HTTP/1.1"
    page = policy = ""
    lists_wait = False
    health = {"status": "ready", "sm_state": "master", "bindings": BINDINGS, "lids_free": 1, "reasons": []}
    fabric = {"switches": BINDINGS // 1024, "ports": BINDINGS // 16, "dynamic_lids": 0, "dynamic_max": 0, "sm_lid": 1, "routing_engine": "ftree", "sweeps": 1,
              "moves": {"applied": 0, "queued": 0, "repairing": 0}}

    def log_message(self, *_):
        pass

    @staticmethod
    def lid(n):
        if n % (HOSTS_AT_A_LEAF + 1) == 0:
            guid = f"0x{0x100000 + n:016x}"
            return {"lid": n + 1, "vguid": None, "port_guid": guid, "node_guid": guid, "node": f"leaf{n // (HOSTS_AT_A_LEAF + 1)}", "is_switch": True,
                    "switch_guid": None, "switch_port": 0, "leaf_guid": guid}
        leaf = n // (HOSTS_AT_A_LEAF + 1) * (HOSTS_AT_A_LEAF + 1)
        return {"lid": n + 1, "vguid": None, "port_guid": f"0x{0x200000 + n:016x}", "node_guid": f"0x{0x300000 + n:016x}", "node": f"host{n}", "is_switch": False,
                "switch_guid": f"0x{0x100000 + leaf:016x}", "switch_port": n - leaf, "leaf_guid": f"0x{0x100000 + leaf:016x}"}

    @classmethod
    def binding(cls, n):
        host = n // 16
        host += host // HOSTS_AT_A_LEAF + 1
        return {"vguid": f"0x02c9ab{n:010x}", "epoch": 1, "state": "pending" if n % 1000 == 7 else "granted", "port_guid": f"0x{0x200000 + host:016x}", "gid_index": 1,
                "lid": host + 1, "pkeys": ["0x8001"], "findings": []}

    def rows(self, what, query):
        size, make = (BINDINGS, self.binding) if what == "bindings" else (BINDINGS // 16 // HOSTS_AT_A_LEAF * (HOSTS_AT_A_LEAF + 1), self.lid)
        after = query.get("after", [None])[0]
        first = 0 if after is None else int(after, 0) if what == "lids" else int(after, 16) - 0x02c9ab0000000000 + 1
        rows = [make(n) for n in range(first, min(first + 512, size))]
        return {what: rows, "next": None if first + 512 >= size else rows[-1]["lid" if what == "lids" else "vguid"]}

    def send_problem(self, detail):
        data = json.dumps({"detail": detail}).encode()
        self.send_response(503)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        url = urllib.parse.urlsplit(self.path)
        answers = {"/readyz": self.health, "/v1/fabric": self.fabric, "/v1/moves": {"moves": [], "total": 0}}
        if url.path == "/":
            data, kind = self.page.encode(), "text/html; charset=utf-8"
        else:
            doc = answers[url.path] if url.path in answers else self.rows(url.path.rpartition("/")[2], urllib.parse.parse_qs(url.query))
            data, kind = json.dumps(doc).encode(), "application/json"
        if self.lists_wait and url.path.startswith("/v1/") and url.path != "/v1/moves":
            self.send_problem("64 lists wait")
            return
        tag = f'"{hashlib.sha256(data).hexdigest()}"'
        same = self.headers["If-None-Match"] == tag
        self.send_response(304 if same else 200)
        for name, value in (("Content-Type", kind), ("ETag", tag), ("Content-Security-Policy", self.policy), ("Content-Length", "0" if same else str(len(data)))):
            self.send_header(name, value)
        self.end_headers()
        if not same:
            self.wfile.write(data)


@unittest.skipIf(browser.missing(), browser.missing())
class Large(Case):
    """As many bindings as there may be."""

    def setUp(self):
        sm = self.manager().start()
        _, head, Many.page = fetch(sm.api.connection(10))
        Many.policy = head["Content-Security-Policy"]
        self.assertEqual(sm.stop(), 0)
        server = http.server.ThreadingHTTPServer(("127.0.0.1", fabric.free_port()), Many)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        self.browser = browser.Browser()
        self.addCleanup(self.browser.close)
        self.browser.open(f"http://127.0.0.1:{server.server_address[1]}/")

    def test_it_stays_fast(self):
        fabric.wait_for("all leaves", lambda: re.search(r"\d+ leaves", self.browser.text("#fabric")), 120, 0.5)
        self.assertIn(f"{BINDINGS:,}", self.browser.text("#figures"))
        self.assertIn("66", self.browser.text("#waiting"))
        once = lambda does: self.browser.evaluate(f"(() => {{ const t = performance.now(); {does}; return performance.now() - t; }})()") / 1000
        took = {what: min(once(does) for _ in range(5)) for what, does in (
            ("filter", "document.getElementById('filter').value = 'host4000'; filter()"), ("all again", "document.getElementById('filter').value = ''; filter()"),
            ("drawn anew", "drawLists()"), ("scrolled", "document.querySelector('#fabric .list').scrollTop = 900000; lists.fabric.draw()"))}
        print("# " + ", ".join(f"{what} {seconds * 1000:.0f} ms" for what, seconds in took.items()), flush=True)
        for what, seconds in took.items():
            self.assertLess(seconds, SOON, what)
        self.assertLess(self.browser.evaluate("document.querySelectorAll('*').length"), 1000)
        self.assertEqual(self.browser.said, [])

    def test_lists_that_are_refused_have_an_age(self):
        """Of what is shown, not of the last answer about something else."""
        fabric.wait_for("all leaves", lambda: re.search(r"\d+ leaves", self.browser.text("#fabric")), 120, 0.5)
        Many.lists_wait = True
        self.addCleanup(setattr, Many, "lists_wait", False)
        age = lambda: re.search(r"What is shown is of ([\d:]+)\.", self.browser.text("#reasons"))
        fabric.wait_for("a refusal", age, 20)
        before = age()[1]
        fabric.wait_for("the age of the bindings", lambda: f"as of {before}" in self.browser.text("#fabric"), 20)
        time.sleep(5)
        self.assertEqual(age()[1], before)
        self.assertNotIn(before, self.browser.text("#clock"))


tap.main(__name__)
