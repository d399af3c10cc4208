#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The agent is asked whatever its document says, and what it does not: no crash, hang, defect or member that is not described.

VHCA_WILD_REQUESTS says how many requests, if it is to be more.
"""

import unittest

import openapi
import seeds
import tap
import wild
from host_case import FREE, HCA, MAC, OTHER_MAC, OTHER_UUID, OTHER_VF, UUID, VF, HostCase

WORDS = {"fabric": ["physnet1"], "domain": [UUID, OTHER_UUID, "test"], "partition": ["storage", "0x8001"], "partitions": ["storage"], "mac": [MAC, OTHER_MAC],
         "guid": ["auto"], "bdf": [FREE, VF, OTHER_VF], "name": ["ib0"]}


class Finds(unittest.TestCase):
    """What would be wrong with an answer."""

    def of(self, status, doc):
        requests = wild.Requests(openapi.Document(), seeds.FIXED)
        return requests.errors("GET", "/v1/drain", status, doc)

    def test_what_is_described(self):
        drain = {"drained": False, "since_ms": None, "peers": [], "done": False, "claims": 0, "domains": []}
        self.assertEqual(self.of(200, drain), [])
        self.assertTrue(self.of(200, {**drain, "more": 1}))
        self.assertTrue(self.of(200, {**drain, "claims": "0"}))

    def test_a_defect_is_told_from_what_a_machine_says(self):
        problem = {"type": "x", "title": "x", "status": 507, "detail": "x", "code": "no_free_vf", "kind": "exhausted", "hint": "", "retryable": True}
        self.assertEqual(self.of(507, problem), [])
        self.assertTrue(self.of(500, {**problem, "status": 500, "code": "internal", "kind": "internal"}))
        self.assertTrue(self.of(503, "text") and self.of(503, problem))


class Wild(HostCase):
    CONF = HCA + "[partition storage]\npkey = 0x8001\n"

    def ask(self, method, url, body, headers):
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        return self.host.request(method, url, body, lines)[:2]

    def run_seed(self, seed):
        requests = wild.Requests(openapi.Document(), seed, WORDS, longest={"wait": 0}, without=("/v1/peer/",))
        requests.play(self.ask)
        self.assertIsNone(self.host.process.poll())
        self.assertNotRegex(self.host.log_text(), "runtime error|Sanitizer|this is a bug")
        self.assertEqual(self.host.get("/v1/node")[1]["loop"]["blocking_calls"], 0)
        operations, asked, accepted = requests.count()
        self.assertEqual(asked, operations)
        self.assertGreaterEqual(accepted, 24, "it learns too little to get anywhere")

    def test_fixed_seed(self):
        self.run_seed(seeds.FIXED)

    def test_fresh_seed(self):
        self.run_seed(seeds.tell(seeds.FRESH))


tap.main(__name__)
