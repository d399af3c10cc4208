# SPDX-License-Identifier: LGPL-2.1-or-later
"""For tests of vhcactl: a fake agent, an HTTP server on a unix socket with canned answers."""

import http.server
import json
import os
import re
import shutil
import socketserver
import subprocess
import tempfile
import threading
import unittest

CTL = os.environ["VHCACTL"]


def problem(status, kind, code, detail, hint=""):
    return status, {"type": f"urn:vhcad:problem:{code}", "title": "t", "status": status, "detail": detail,
                    "code": code, "kind": kind, "hint": hint, "retryable": False}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self):
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length)
        self.server.seen.append((self.command, self.path, json.loads(body) if body else None))
        path = self.path.partition("?")[0]
        status, doc = self.server.answers.get((self.command, path), problem(404, "not-found", "no_route", path))
        if callable(doc):
            status, doc = doc(self)
        data = doc if isinstance(doc, bytes) else json.dumps(doc).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json" if status < 400 else "application/problem+json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = do_DELETE = answer

    def address_string(self):
        return "unix"

    def log_message(self, *args):
        pass


class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, path, answers):
        self.answers, self.seen = answers, []
        super().__init__(path, Handler)
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def handle_error(self, request, client_address):
        pass    # a client that has gone


class CtlCase(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="vhca-ctl.")
        self.addCleanup(shutil.rmtree, self.dir)
        self.socket = os.path.join(self.dir, "vhcad.sock")

    def agent(self, answers):
        """answers: {"GET /path": document or (status, document) or function(handler) -> (status, document)}"""
        table = {}
        for key, doc in answers.items():
            table[tuple(key.split(" "))] = doc if isinstance(doc, tuple) else (200, doc)
        server = Server(self.socket, table)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        return server

    def ctl(self, *args, env=None, stdin=None):
        return subprocess.run([CTL, "--socket", self.socket, *args], stdin=stdin, capture_output=True, text=True, timeout=60,
                              env={**os.environ, "TZ": "UTC", **(env or {})}, check=False)

    def rows(self, *args):
        """Table as lists of cells; cells are two blanks apart."""
        p = self.ctl(*args)
        self.assertEqual((p.returncode, p.stderr), (0, ""))
        return [re.split(r" {2,}", line) for line in p.stdout.splitlines()]
