# SPDX-License-Identifier: LGPL-2.1-or-later
"""HTTP with what listens in a hypervisor, through its command channel: no program is started there."""

import functools
import http.client
import json
import ssl
import tempfile

from kit import tls
from kit.base import NoAnswer
from kit.vm import Vm


class Connection(http.client.HTTPConnection):
    """One request's connection to "unix PATH" or "tcp ADDRESS PORT" as seen in the hypervisor."""

    def __init__(self, vm, target, context=None, timeout=60):
        super().__init__(target.split()[1] if context else "a", timeout=timeout)
        self.vm, self.target, self.context = vm, target, context

    def connect(self):
        self.sock = self.vm.relay(self.target, self.timeout)
        if self.context:
            self.sock = self.context.wrap_socket(self.sock, server_hostname=self.host)


def ask(vm, target, path, method="GET", body=None, context=None, timeout=60):
    """(status, text). NoAnswer if nobody answers."""
    connection = Connection(vm, target, context, timeout)
    try:
        headers = {"Content-Type": "application/json"} if body is not None else {}
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode(errors="replace")
    except (OSError, http.client.HTTPException) as e:
        raise NoAnswer(f"{vm.name}: {method} {path}: {type(e).__name__} {e}") from None
    finally:
        connection.close()


@functools.lru_cache
def own_certificate(name, boot):
    """What the hypervisor itself shows and believes; a new boot has the certificates of a new installation."""
    del boot
    found = Vm(name).files(tls.OWN, tls.KEY, tls.CA)
    context = ssl.create_default_context(cadata=found[tls.CA])
    with tempfile.NamedTemporaryFile("w") as pem:
        pem.write(found[tls.OWN] + found[tls.KEY])
        pem.flush()
        context.load_cert_chain(pem.name)
    return context
