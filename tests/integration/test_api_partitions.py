#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""/v1/partitions of a whole agent on a simulated adapter, whose port has two P_Keys in a table of four."""

import openapi
import tap
from host_case import FREE, HCA, PF, UUID, HostCase

NAMES = "[partition storage]\npkey = 0x8001\n[partition readers]\npkey = 0x0001\n[partition later]\npkey = 0x8009\n"
DOCUMENT = openapi.Document()


class Partitions(HostCase):
    CONF = HCA + NAMES

    def ask(self, path, status=200):
        """The answer, which is as the document says."""
        got, doc, _ = self.host.get(path)
        self.assertEqual((got, DOCUMENT.check_answer("GET", path, got, doc)), (status, []), doc)
        return doc

    def port(self, pkey):
        return {"pf": PF, "port": 1, "fabric": "physnet1", "pkey": pkey, "table_entries": 4, "table_free": 2}

    def test_those_with_a_name_a_guest_or_a_place_in_a_table(self):
        self.host.wait(lambda: self.ask("/v1/hcas")["hcas"][0]["ports"])
        before = self.ask("/v1/partitions")["partitions"]
        self.assertEqual([p["pkey"] for p in before], ["0x8001", "0x8009", "0xffff"])
        self.assertEqual(before[0], {"pkey": "0x8001", "names": [{"name": "storage", "pkey": "0x8001"}, {"name": "readers", "pkey": "0x0001"}],
                                     "members": [], "ports": [self.port("0x8001")]})
        self.assertEqual(before[1]["ports"], [self.port(None)])
        self.assertEqual(before[2], {"pkey": "0xffff", "names": [], "members": [], "ports": [self.port("0xffff")]})
        for word in ("storage", "readers", "0x8001", "0x0001"):
            self.assertEqual(self.ask(f"/v1/partitions/{word}"), before[0])
        for word in ("Storage", "0x8002", "0x0000", "0", "x"):
            self.assertEqual(self.ask(f"/v1/partitions/{word}", 404)["code"], "partition_not_here", word)

    def test_members_are_the_claims_that_do_not_end(self):
        want = {"domain": UUID, "name": "ib0", "bdf": FREE, "fabric": "physnet1", "partition": "storage"}
        status, claim, _ = self.host.request("POST", "/v1/claims", want)
        self.assertEqual(status, 201, claim)
        member = {"claim": claim["id"], "domain": UUID, "domain_name": UUID, "name": "ib0", "fabric": "physnet1", "bdf": FREE}
        self.assertEqual(self.ask("/v1/partitions/storage")["members"], [{**member, "pkey": "0x8001"}])
        for other in ("later", "0xffff"):
            self.assertEqual(self.ask(f"/v1/partitions/{other}")["members"], [])
        self.assertEqual(self.host.request("DELETE", f"/v1/claims/{claim['id']}")[0], 200)
        self.assertEqual(self.ask("/v1/partitions/storage")["members"], [])


tap.main(__name__)
