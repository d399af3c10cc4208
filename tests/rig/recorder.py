#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""recorder.py ADDRESS PORT FILE CERTIFICATE KEY AUTHORITY: stands in for the plugin's HTTPS side and writes down every request.

Each line of FILE is a JSON object {time, method, path, body}. Bindings are answered as granted. While
FILE.fail exists the answer is 503.
"""

import http.server
import json
import pathlib
import ssl
import sys
import time

ADDRESS, PORT, FILE = sys.argv[1], int(sys.argv[2]), pathlib.Path(sys.argv[3])
CERTIFICATE, KEY, AUTHORITY = sys.argv[4:]


class Recorder(http.server.BaseHTTPRequestHandler):
    """One request, one line."""

    protocol_version = "HTTP/1.1"

    def answer(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        document = json.loads(body) if body else {}
        failing = pathlib.Path(f"{FILE}.fail").exists()
        line = {"time": time.time(), "method": self.command, "path": self.path, "body": document, "failed": failing}
        with open(FILE, "a", encoding="utf-8") as f:
            f.write(json.dumps(line) + "\n")
        subject = self.path.split("?")[0].rpartition("/")[2]  # of /v1/bindings/{vguid} and /v1/members/{port_guid}
        reply = json.dumps({"title": "made to fail", "status": 503} if failing else
                           {"vguid": subject, "port_guid": subject,
                            "epoch": document.get("epoch", 0), "lid": document.get("lid", 0),
                            "state": "granted" if self.command == "PUT" else "withdrawn",
                            "pkeys": document.get("pkeys", []), "findings": []}).encode()
        self.send_response(503 if failing else 200)
        self.send_header("Content-Type", "application/problem+json" if failing else "application/json")
        self.send_header("Content-Length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)

    do_GET = do_PUT = do_POST = do_DELETE = answer

    def log_message(self, format, *args):  # noqa: A002 (the base class names it so)
        """Nothing on stderr."""


class Server(http.server.ThreadingHTTPServer):
    """HTTPS, for clients with a certificate; each connection shakes hands in its own thread."""

    def __init__(self):
        super().__init__((ADDRESS, PORT), Recorder)
        self.context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=AUTHORITY)
        self.context.verify_mode = ssl.CERT_REQUIRED
        self.context.load_cert_chain(CERTIFICATE, KEY)

    def finish_request(self, request, client_address):
        with self.context.wrap_socket(request, server_side=True) as wrapped:
            super().finish_request(wrapped, client_address)


Server().serve_forever()
