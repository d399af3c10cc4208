#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""libvhcasm.so is asked whatever its document says, and what it does not, while OpenSM sweeps: as test_wild.py does with the agent."""

import json

import fabric
import openapi
import seeds
import tap
import wild
from plugin_case import VGUID1, VGUID2, Case

PORTS = [fabric.port_guid(host) for host in range(1, fabric.HOSTS + 1)]
WORDS = {"vguid": [VGUID1, VGUID2], "port_guid": PORTS, "pkeys": ["0x8001", "0x8002"], "epoch": list(range(1, 9)), "limit": [1, 512]}


class Wild(Case):
    def run_seed(self, seed):
        sm = self.manager().start()
        requests = wild.Requests(openapi.Document("openapi-vhcasm.yaml"), seed, WORDS)

        def ask(method, url, body, headers):
            conn = sm.api.connection(wild.HANGS)
            try:
                conn.request(method, url, body, headers)
            except BrokenPipeError:
                pass    # refused before the body was read; the answer is there all the same
            reply = conn.getresponse()
            text = reply.read().decode()
            conn.close()
            if requests.rng.random() < 0.01:
                sm.resweep()
            return reply.status, json.loads(text) if "json" in reply.getheader("Content-Type", "") else text
        requests.play(ask)
        print(f"# {dict(requests.answers)}", flush=True)
        operations, asked, accepted = requests.count()
        self.assertEqual(asked, operations)
        self.assertGreaterEqual(accepted, 10, "it learns too little to get anywhere")
        self.assertEqual(sm.stop(), 0)
        self.assertNotRegex(sm.output(), "runtime error|Sanitizer")

    def test_fixed_seed(self):
        self.run_seed(seeds.FIXED)

    def test_fresh_seed(self):
        self.run_seed(seeds.tell(seeds.FRESH))


tap.main(__name__)
