#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""If-Match on what changes a claim or a cloud's port, of a whole agent on a simulated adapter."""

import re
import uuid

import openapi
import tap
from host_case import FREE, HCA, MAC, UUID, VF, WAIT, HostCase

ABSENT = "11111111-1111-4111-8111-111111111111"
OLD = '"0123456789abcdef-1f"'
LEASE = 60    # seconds
CHANGED, MISSING = "it has changed", "it is not there"
DOCUMENT = openapi.Document()


class Matched(HostCase):
    CONF = HCA + "[partition storage]\npkey = 0x8001\n"

    def ask(self, method, path, body, status, match=None, key=None):
        """The answer, which is as the document says, and so is what was asked if it is accepted."""
        headers = {k: v for k, v in {"If-Match": match, "Idempotency-Key": key}.items() if v}
        got, doc, _ = self.host.request(method, path, body, "".join(f"{k}: {v}\r\n" for k, v in headers.items()))
        self.assertEqual((got, DOCUMENT.check_answer(method, path, got, doc)), (status, []), doc)
        if status < 300:
            self.assertEqual(DOCUMENT.check_request(method, path, body, headers), [])
        return doc

    def refuse(self, method, path, body, match, what):
        """What cannot be done, it names, and the way out."""
        doc = self.ask(method, path, body, 412, match)
        self.assertEqual((doc["code"], doc["kind"], doc["retryable"], doc["detail"]), ("precondition_failed", "conflict", False, f"header: If-Match: {path}: {what}"))
        self.assertIn("GET /v1/claims/{id} again" if what == CHANGED else "without If-Match", doc["hint"])

    def claim(self, bdf=FREE):
        """(id, tag) of one that has come to rest."""
        claim = self.ask("POST", "/v1/claims", {"domain": ABSENT, "name": "ib0", "bdf": bdf, "partition": "storage", "lease": LEASE}, 201)["id"]
        return claim, self.rest(claim)

    def rest(self, claim):
        """Its tag when it waits for its guest: nothing of it changes by itself any more, before its lease ends."""
        tags = []

        def is_at_rest():
            _, doc, head = self.host.get(f"/v1/claims/{claim}")
            tags.append(re.search('^ETag: (.*)\r$', head, re.M)[1])
            return (doc["state"], doc["reserved"]) in (("programmed", False), ("claimed", True)) and doc["lease_ends_ms"]
        self.host.wait(is_at_rest, WAIT)
        return tags[-1]

    def free(self, bdf):
        self.host.wait(lambda: self.host.vf(bdf)["state"] == "free", WAIT)

    def test_claim_is_released_as_it_was_read(self):
        claim, read = self.claim()
        path = f"/v1/claims/{claim}"
        for match in (OLD, "W/" + read, f"{OLD}, {OLD}", read.strip('"'), "x" * 2000):
            self.refuse("DELETE", path, None, match, CHANGED)
        renewed = self.ask("POST", f"{path}/lease", {"lease": LEASE + 1}, 200, read)
        self.assertEqual(renewed["lease"], LEASE + 1)
        self.refuse("DELETE", path, None, read, CHANGED)
        self.refuse("POST", f"{path}/lease", {"lease": LEASE}, read, CHANGED)
        self.assertEqual(self.ask("GET", path, None, 200)["lease"], LEASE + 1)
        self.ask("DELETE", path, None, 200, f"{OLD}, {self.rest(claim)}")
        self.free(FREE)

    def test_any_claim_and_none(self):
        claim, _ = self.claim()
        self.ask("DELETE", f"/v1/claims/{claim}", None, 200, "*")
        self.assertEqual(self.ask("DELETE", f"/v1/claims/{uuid.uuid4()}", None, 404, "*")["code"], "no_such_claim")
        self.assertEqual(self.ask("DELETE", "/v1/claims/x", None, 404, OLD)["code"], "no_such_claim")
        self.assertEqual(self.ask("POST", f"/v1/claims/{uuid.uuid4()}/lease", {"lease": LEASE}, 404, OLD)["code"], "no_such_claim")
        self.free(FREE)

    def test_port_is_changed_as_it_was_read(self):
        path, body = f"/v1/fabrics/physnet1/ports/{MAC}", {"domain": ABSENT, "bdf": VF}
        for match in ("*", OLD):
            self.refuse("PUT", path, body, match, MISSING)
            self.assertEqual(self.ask("DELETE", path, None, 404, match)["code"], "no_such_claim")
            self.refuse("PUT", f"{path}/partitions", {"partitions": []}, match, MISSING)
        self.assertEqual(self.host.vf(VF)["state"], "free")
        claim = self.ask("PUT", path, body, 200)["id"]
        read = self.rest(claim)
        self.refuse("PUT", f"{path}/partitions", {"partitions": ["storage"]}, OLD, CHANGED)
        self.assertEqual(self.ask("GET", f"/v1/claims/{claim}", None, 200)["pkeys"], [])
        self.assertEqual(self.ask("PUT", f"{path}/partitions", {"partitions": ["storage"]}, 200, read)["pkeys"], ["0x8001"])
        for method, asked in (("PUT", body), ("DELETE", None)):
            self.refuse(method, path, asked, read, CHANGED)
        self.assertEqual(self.ask("PUT", path, body, 200, "*")["id"], claim)
        self.ask("DELETE", path, None, 200, self.rest(claim))
        self.free(VF)

    def test_port_that_cannot_be_meant_is_refused_as_without(self):
        """Also by a PUT, for which it is not there otherwise; and what the right one has stays."""
        path, body = f"/v1/fabrics/physnet1/ports/{MAC}", {"domain": ABSENT, "bdf": VF}
        claim = self.ask("PUT", path, body, 200)["id"]
        read = self.rest(claim)
        for where, status, code in (("/v1/fabrics/physnet1/ports/fa:16:3e", 400, "bad_guid"), (f"/v1/fabrics/physnet2/ports/{MAC}", 409, "wrong_fabric")):
            for match in ("*", OLD, read):
                for method, more, asked in (("PUT", "", body), ("PUT", "/partitions", {"partitions": []}), ("DELETE", "", None)):
                    self.assertEqual(self.ask(method, where + more, asked, status, match)["code"], code)
        self.assertEqual(self.rest(claim), read)
        self.ask("DELETE", path, None, 200, read)
        self.free(VF)

    def test_a_key_hears_what_it_was_told(self):
        claim, read = self.claim()
        path = f"/v1/claims/{claim}/lease"
        told = self.ask("POST", path, {"lease": LEASE + 1}, 200, read, "one")
        self.assertEqual(self.ask("POST", path, {"lease": LEASE + 1}, 200, read, "one"), told)
        self.refuse("POST", path, {"lease": LEASE + 1}, read, CHANGED)
        refused = self.ask("POST", path, {"lease": LEASE}, 412, read, "two")
        self.assertEqual(self.ask("POST", path, {"lease": LEASE}, 412, "*", "two"), refused)
        self.ask("DELETE", f"/v1/claims/{claim}", None, 200)
        self.free(FREE)

    def test_where_it_means_nothing_it_is_refused(self):
        for method, path, body in (("GET", "/v1/vfs", None), ("POST", "/v1/claims", {"domain": UUID, "name": "ib0", "bdf": FREE, "partition": "storage"}),
                                   ("POST", f"/v1/migrations/{uuid.uuid4()}/abort", None), ("DELETE", "/v1/drain", None)):
            doc = self.ask(method, path, body, 400, "*")
            self.assertEqual((doc["code"], doc["detail"].partition(" takes")[0].partition(" /")[0]), ("bad_request", f"header: If-Match: {method}"))
        self.assertEqual(self.ask("GET", "/v1/claims", None, 200)["claims"], [])


tap.main(__name__)
