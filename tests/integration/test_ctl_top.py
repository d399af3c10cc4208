#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""vhcactl top on a terminal (pty) and without one, against a fake agent with an event log."""

import codecs
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import threading
import time
import urllib.parse

import openapi
import tap
from ctl_case import CTL, CtlCase, problem
from ctl_docs import HCAS, MIGRATIONS, NODE, VFS, events

ENTER, LEAVE = "\x1b[?1049h\x1b[?25l\x1b[?7l", "\x1b[?7h\x1b[?25h\x1b[?1049l"
WAIT = 30
PAUSE = 0.2    # seconds between two frames
# A session's leader that opens a terminal has it: where top is that, nobody could go on with it; where it is a job, this does.
ALONE = 'exec <"$0" >"$0" 2>&1; exec "$@"'
SHELL = 'exec <"$0" >"$0" 2>&1; set -m; "$@"; echo stopped; while read line; do fg; echo stopped; done'
STATES = ("unmanaged", "preparing", "free", "claimed", "programmed", "attached", "detaching", "scrubbing", "quarantined")
DOCUMENT = openapi.Document()


class Top(CtlCase):
    def serve(self, vfs=VFS, migrations=MIGRATIONS):
        """Its event log, which grows by tell(), or with each answer."""
        self.newest, self.more, self.flood, self.asked, self.longest = 3, threading.Event(), False, [], 0.2

        def answer(handler):
            query = urllib.parse.parse_qs(handler.path.partition("?")[2])
            since, wait = query["since"][0].removeprefix("a."), int(query["wait"][0])
            since = 0 if since == "oldest" else int(since)
            self.newest += self.flood
            if wait and since == self.newest:
                self.more.wait(min(wait, self.longest))
                self.more.clear()
            return 200, {"cursor": f"a.{self.newest}", "events": events(since + 1, self.newest)}

        def node(handler):
            self.asked.append(time.monotonic())
            return 200, {**NODE, "counts": dict.fromkeys(STATES, 126)}
        self.vfs = vfs
        return self.agent({"GET /v1/events": (200, answer), "GET /v1/node": (200, node), "GET /v1/hcas": HCAS, "GET /v1/migrations": migrations,
                           "GET /v1/vfs": (200, lambda handler: (200, self.vfs))})

    def tell(self):
        self.newest += 1
        self.more.set()

    def start(self, rows=24, columns=80, args=(), way=ALONE):
        self.terminal, end = pty.openpty()
        self.addCleanup(os.close, self.terminal)
        self.addCleanup(os.close, end)
        fcntl.ioctl(end, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.process = subprocess.Popen(["sh", "-c", way, os.ttyname(end), CTL, "--socket", self.socket, *args, "top"], stdin=subprocess.DEVNULL,
                                        env={**os.environ, "TZ": "UTC"}, start_new_session=True)
        self.addCleanup(lambda: (self.process.kill(), self.process.wait()))
        self.text, self.decoder = "", codecs.getincrementaldecoder("utf-8")("replace")    # a read may end in a character

    def read(self, seconds):
        if select.select([self.terminal], [], [], seconds)[0]:
            self.text += self.decoder.decode(os.read(self.terminal, 65536))

    def frames(self):
        """Lines of each whole screen so far."""
        return [[line.removeprefix("\x1b[K") for line in frame.split("\r\n")[:-1]] for frame in re.findall("\x1b\\[H((?:(?!\x1b\\[[HJ]).)*)\x1b\\[J", self.text, re.S)]

    def until(self, cond, what):
        end = time.monotonic() + WAIT
        while not cond():
            self.assertLess(time.monotonic(), end, (what, self.text[-4000:]))
            self.read(0.1)

    def test_screen_follows_and_fits(self):
        server = self.serve()
        self.start()
        self.until(self.frames, "a screen")
        self.assertTrue(self.text.startswith(ENTER))
        frame = self.frames()[0]
        self.assertEqual(frame[:2], ["hva: libvirt connected, SM AWAY", ("VFs: " + ", ".join(f"126 {s}" for s in STATES))[:80]])
        for words in ("0000:01:00.0/1", "0000:01:00.1  attached", "0000:01:00.3  quarantined", "event 3"):
            self.assertTrue([line for line in frame if words in line], (words, frame))
        self.vfs = {**VFS, "vfs": [{**VFS["vfs"][0], "state": "detaching"}]}
        self.tell()
        self.until(lambda: any("detaching" in line for line in self.frames()[-1]), "the change")
        self.assertTrue([line for line in self.frames()[-1] if "event 4" in line], self.frames()[-1])
        for _ in range(3):
            self.tell()
        self.until(lambda: [line for line in self.frames()[-1] if line.endswith("event 7")], "the events")
        self.assertEqual(re.findall(r"event (\d+)$", "\n".join(self.frames()[-1]), re.M), ["3", "4", "5", "6", "7"])
        for frame in self.frames():
            self.assertLessEqual(len(frame), 23, frame)
            self.assertLessEqual(max(map(len, frame)), 80, frame)
        for method, path, body in server.seen:
            self.assertEqual(DOCUMENT.check_request(method, path, body), [], path)

    def test_a_small_screen_is_not_left(self):
        """Of what is wide each line ends at its edge, of what is long the last line says how much it is."""
        self.serve()
        self.start(rows=6, columns=20)
        self.until(self.frames, "a screen")
        frame = self.frames()[0]
        self.assertEqual((len(frame), frame[0]), (5, "hva: libvirt connect"))
        self.assertRegex(frame[-1], r"^… \d+ more lines$")
        self.assertLessEqual(max(map(len, frame)), 20)

    def test_what_moves_stands_above_many_vfs(self):
        self.serve(vfs={"next": None, "vfs": [{**VFS["vfs"][0], "bdf": f"0000:02:00.{n}"} for n in range(30)]})
        self.start()
        self.until(self.frames, "a screen")
        frame = self.frames()[0]
        self.assertEqual(len(frame), 23)
        for words in ("incoming", "event 3", "0000:02:00.0"):
            self.assertTrue([line for line in frame if words in line], (words, frame))
        shown = [line for line in frame if "0000:02:00." in line]
        self.assertEqual(frame[-1], f"… {30 - len(shown)} more lines")
        self.assertEqual(frame[-1 - len(shown):-1], shown)

    def test_a_flood_of_events_is_no_flood_of_frames(self):
        self.serve()
        self.flood = True
        self.start()
        self.until(lambda: len(self.asked) > 5, "screens")
        self.assertGreaterEqual(min(b - a for a, b in zip(self.asked, self.asked[1:])), PAUSE)

    def test_it_waits_shorter_than_its_time_out(self):
        for seconds in (1, 2, 3):
            server = self.serve()
            self.longest = seconds
            self.start(args=["--timeout", str(seconds)])
            self.until(lambda: len(self.frames()) > 1, "screens")
            waits = {int(path.rpartition("=")[2]) for _, path, _ in server.seen if "wait=" in path}
            self.assertEqual(waits, {0, seconds - 1})
            self.process.kill()
            os.unlink(self.socket)

    def test_terminal_is_as_it_was(self):
        for signo in (None, signal.SIGTERM, signal.SIGHUP):
            self.serve()
            self.start()
            self.until(self.frames, "a screen")
            if signo:
                self.process.send_signal(signo)
            else:
                os.write(self.terminal, b"\x03")    # as ^C is typed
            self.until(lambda: self.process.poll() is not None, "the end")
            self.assertEqual(self.process.returncode, -(signo or signal.SIGINT))
            self.until(lambda: self.text.removesuffix("^C").endswith(LEAVE), "the screen of before")
            os.unlink(self.socket)

    def test_terminal_is_as_it_was_while_it_is_stopped(self):
        self.serve()
        self.start(way=SHELL)
        for times in (1, 2):
            self.until(lambda: len(self.frames()) > 1, "screens")
            self.assertEqual(self.text.count(LEAVE), 0)
            os.write(self.terminal, b"\x1a")    # as ^Z is typed
            self.until(lambda: "stopped" in self.text.rpartition(LEAVE)[2], "the shell")
            self.assertNotIn(ENTER, self.text.rpartition(LEAVE)[2], times)
            self.text = ""
            os.write(self.terminal, b"\n")
            self.until(lambda: ENTER in self.text, "the screen")
            self.text = self.text.partition(ENTER)[2]
        self.until(self.frames, "a screen")

    def test_it_goes_on_where_nobody_would_go_on_with_it(self):
        """What leads its session is not stopped."""
        self.serve()
        self.start()
        self.until(self.frames, "a screen")
        os.write(self.terminal, b"\x1a")
        self.until(lambda: LEAVE in self.text, "another screen")
        self.text = self.text.partition(LEAVE)[2]
        self.until(self.frames, "a screen")
        self.assertIn(ENTER, self.text.partition("\x1b[H")[0])

    def test_agent_that_is_away_is_waited_for(self):
        server = self.serve()
        self.start()
        self.until(self.frames, "a screen")
        node = server.answers["GET", "/v1/node"]
        server.answers["GET", "/v1/node"] = problem(503, "unavailable", "shutting_down", "vhcad ends")
        self.until(lambda: "vhcad ends; waiting" in self.text, "that it is away")
        server.answers["GET", "/v1/node"] = node
        n = len(self.frames())
        self.until(lambda: len(self.frames()) > n, "a screen")
        server.answers["GET", "/v1/node"] = problem(403, "denied", "role_needed", "read is needed")
        self.until(lambda: self.process.poll() is not None, "the end")
        self.assertEqual(self.process.returncode, 8)
        self.until(lambda: LEAVE + "vhcactl: read is needed" in self.text, "why")

    def test_once(self):
        server = self.serve()
        for args in (["--once"], []):
            p = self.ctl("top", *args)
            self.assertEqual((p.returncode, p.stderr), (0, ""))
            self.assertNotIn("\x1b", p.stdout)
            self.assertIn("scrub: admin_guids reads back 0x0\n", p.stdout)
            self.assertIn("0000:01:00.0/2  down", p.stdout)
            self.assertIn("event 3\n", p.stdout)
        self.assertEqual(len(server.seen), 2 * 5)

    def test_texts_move_no_cursor(self):
        self.serve(vfs={"next": None, "vfs": [{**VFS["vfs"][0], "domain": "v\x1b[2Jm\u009b"}]})
        self.assertIn("v?[2Jm??/ib0", self.ctl("top").stdout)

    def test_what_cannot_be_done_is_said(self):
        self.serve()
        p = self.ctl("--json", "top")
        self.assertEqual((p.returncode, p.stdout), (2, ""))
        self.assertIn("top has no JSON", p.stderr)


tap.main(__name__)
