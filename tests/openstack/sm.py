# SPDX-License-Identifier: LGPL-2.1-or-later
"""A subnet manager that fences, as far as an agent asks it: who has which GUID, at which epoch (docs/openapi-vhcasm.yaml)."""

import http.server
import json
import threading
import urllib.parse


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def do_PUT(self):
        body = json.loads(self.rfile.read(int(self.headers['Content-Length'])))
        kind, name = self.path.split('/')[2:4]
        if kind == 'bindings':
            self.answer(*self.server.sm.bind(name, body['epoch'], body['port_guid']))
        else:
            self.answer(200, {'port_guid': name})

    def do_DELETE(self):
        url = urllib.parse.urlsplit(self.path)
        self.answer(*self.server.sm.withdraw(url.path.split('/')[3], urllib.parse.parse_qs(url.query)['port_guid'][0]))

    def answer(self, status, body):
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header('Content-Type', 'application/json')
        self.send_header('Content-Length', str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args):
        pass


class Sm:
    def __init__(self):
        self.owners = {}    # GUID: (epoch, port GUID)
        self._server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
        self._server.daemon_threads = True
        self._server.sm = self
        self.url = 'http://127.0.0.1:%d' % self._server.server_port
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self):
        self._server.shutdown()
        self._server.server_close()

    def bind(self, guid, epoch, port):
        known, owner = self.owners.get(guid, (0, port))
        if owner != port and epoch <= known:
            return 409, {'code': 'superseded', 'title': 'superseded', 'known_epoch': known, 'bound': True, 'port_guid': owner}
        self.owners[guid] = epoch, port
        return 200, {'vguid': guid}

    def withdraw(self, guid, port):
        if self.owners.get(guid, (0, port))[1] != port:
            return 409, {'code': 'not_the_owner', 'title': 'not the owner'}
        self.owners.pop(guid, None)
        return 200, {'vguid': guid}
