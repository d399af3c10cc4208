#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""vhcactl watch against a fake agent with an event log."""

import json
import os
import signal
import subprocess
import time
import urllib.parse

import tap
from ctl_case import CTL, CtlCase, problem
from ctl_docs import events


class Watch(CtlCase):
    def start(self, *args):
        p = subprocess.Popen([CTL, "--socket", self.socket, "watch", *args], stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True, env={**os.environ, "TZ": "UTC"})
        self.addCleanup(lambda: (p.kill(), p.communicate()))
        return p

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
            return 200, {"cursor": f"a.{state['newest']}", "events": events(since + 1, state["newest"])}
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
        self.assertEqual(p.wait(timeout=60), -signal.SIGINT)

    def test_texts_cannot_move_the_cursor(self):
        bad = {**events(1, 1)[0], "kind": "v\x1bf", "subject": "a\u009b2J", "text": "b\x1b[2J\nc"}
        self.agent({"GET /v1/events": {"cursor": "a.1", "events": [bad]}})
        self.assertRegex(self.start().stdout.readline(), r"^\S+ \S+  v\?f +a\?\?2J: b\?\[2J\?c\n$")
        line = self.start("--json").stdout.readline()
        self.assertNotRegex(line, r"[\x00-\x09\x0b-\x1f\x7f-\x9f]")
        self.assertEqual(json.loads(line), bad)

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
        self.assertEqual(p.wait(timeout=60), 7)


tap.main(__name__)
