# SPDX-License-Identifier: LGPL-2.1-or-later
"""vhcad's API, as far as the L2 agent needs it."""

import dataclasses
import http.client
import json
import re
import socket
import time
from typing import Optional

TIMEOUT = 15        # seconds; a change of partitions takes one or two
WAIT = 50           # for an event
PAUSE = 1           # before the next try
CURSOR_CODES = ('cursor_gone', 'bad_request')
PORT_NAME = re.compile('mac-([0-9a-f]{12})')


class Silent(Exception):
    """No vhcad answers."""


class Refused(Exception):
    """vhcad says no, with a code."""

    def __init__(self, problem):
        self.code = problem.get('code')
        super().__init__(f"{self.code}: {problem.get('detail') or problem.get('title')}")


class _Connection(http.client.HTTPConnection):
    def __init__(self, path, timeout):
        super().__init__('localhost', timeout=timeout)
        self._path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


@dataclasses.dataclass
class Port:
    """A cloud's port: its claim, and what the VF of that shows."""
    mac: str
    bdf: str
    fabric: str
    claim: str
    domain: str
    state: str
    reserved: bool
    held_back: bool     # the SM knows another owner of its GUID
    pkeys: list
    missing: Optional[str]  # why partitions are not in force
    problem: Optional[str]

    @property
    def key(self):
        return self.mac, self.bdf


def _port(mac, claim, vf, has_map):
    refusal = claim['sm_reason'] if claim['sm'] in ('refused', 'superseded') else None
    is_on_port = has_map.get(vf['pf']) and claim['sm'] != 'unreachable'     # without a map the SM alone has partitions
    lack = "the host's port is not in " if is_on_port else f"not in force (subnet manager: {claim['sm_reason'] or 'no answer yet'}): "
    return Port(mac=':'.join(mac[i:i + 2] for i in range(0, 12, 2)), bdf=claim['bdf'], fabric=claim['fabric'],
                claim=claim['id'], domain=claim['domain'], state=claim['state'], reserved=claim['reserved'],
                held_back=claim['waits_for'] == 'sm', pkeys=claim['pkeys'], problem=refusal or claim['reason'],
                missing=lack + ', '.join(vf['missing']) if vf['missing'] else None)


class Vhcad:
    def __init__(self, path):
        self._path = path

    def request(self, method, path, body=None, timeout=TIMEOUT):
        connection = _Connection(self._path, timeout)
        try:
            connection.request(method, path, None if body is None else json.dumps(body))
            response = connection.getresponse()
            answer = json.loads(response.read())
            if not isinstance(answer, dict):
                raise ValueError('an answer that is no object')
        except (OSError, http.client.HTTPException, ValueError, RecursionError) as e:
            raise Silent(f'{self._path}: {e or type(e).__name__}') from e
        finally:
            connection.close()
        if response.status >= 400:
            raise Refused(answer)
        return answer

    def fabrics(self):
        return sorted({hca['fabric'] for hca in self.request('GET', '/v1/hcas')['hcas'] if hca['managed']})

    def ports(self):
        """{(MAC, VF's address): Port}"""
        vfs = {vf['claim']: vf for vf in self.request('GET', '/v1/vfs')['vfs'] if vf['claim']}
        claims = self.request('GET', '/v1/claims')['claims']
        has_map = {hca['bdf']: hca['capabilities']['host_pkey_map'] for hca in self.request('GET', '/v1/hcas')['hcas']}
        names = [(PORT_NAME.fullmatch(claim['name']), claim) for claim in claims]
        ports = [_port(name[1], claim, vfs[claim['id']], has_map) for name, claim in names if name and claim['id'] in vfs]
        return {port.key: port for port in ports}

    def set_partitions(self, port, pkeys):
        self.request('PUT', f'/v1/fabrics/{port.fabric}/ports/{port.mac}/partitions', {'partitions': pkeys})

    def take_over(self, port, evidence):
        self.request('POST', f'/v1/domains/{port.domain}/takeover', {'evidence': evidence})

    def watch(self, on_event, on_gap):
        """For ever, whatever comes. on_gap: events may have been missed, at the beginning, too.

        A silence is none: vhcad knows whether it has kept all that is behind the cursor.
        """
        cursor = None
        while True:
            try:
                cursor = self._watch_once(cursor, on_event, on_gap)
                continue
            except Silent:
                pass
            except Refused as e:
                if e.code in CURSOR_CODES:
                    cursor = None
                else:
                    on_event()  # nobody can wait now (too_many_waiting)
            except Exception:   # an answer that is none
                cursor = None
            time.sleep(PAUSE)

    def _watch_once(self, cursor, on_event, on_gap):
        """The next cursor."""
        if cursor is None:
            cursor = self.request('GET', '/v1/events?since=now')['cursor']
            on_gap()
            return cursor
        answer = self.request('GET', f'/v1/events?since={cursor}&wait={WAIT}', timeout=WAIT + TIMEOUT)
        if answer['events']:
            on_event()
        return answer['cursor']
