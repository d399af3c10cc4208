#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""POST /v1/plan of a whole agent on a simulated adapter of four VFs, two of them reserved: which VFs a domain would get, and that nothing comes of the question."""

import contextlib
import sqlite3

import openapi
import tap
from host_case import FREE, HCA, OTHER_UUID, PF, UUID, WAIT, HostCase

LAST = "0000:01:00.4"
NO_UUID = "00000000-0000-0000-0000-000000000000"
DOCUMENT = openapi.Document()


def vf(name, partition="0x8001", **more):
    return {"name": name, "partition": partition, "fabric": "physnet1", **more}


def place(name, bdf, claim=None):
    return {"name": name, "bdf": bdf, "pf": PF, "fabric": "physnet1", "numa": None, "claim": claim}


def xml(*names, name="one-42", uuid=NO_UUID):
    vfs = "".join(f'<v:vf name="{vf}" partition="0x8001" fabric="physnet1"/>' for vf in names)
    return (f'<domain><name>{name}</name><uuid>{uuid}</uuid><metadata><v:infiniband xmlns:v="urn:vhcad:domain:1">{vfs}</v:infiniband>'
            "</metadata></domain>")


class Plan(HostCase):
    CONF = HCA + "[partition storage]\npkey = 0x8001\n"

    def setUp(self):
        self.host.wait(lambda: self.host.get("/v1/node")[1]["libvirt"]["synced"] and
                       {vf["state"] for vf in self.host.get("/v1/vfs")[1]["vfs"]} == {"free"}, WAIT)

    def ask(self, expected=200, **body):
        """The answer, which is as the document says, and so is what was asked if it is accepted."""
        status, doc, _ = self.host.request("POST", "/v1/plan", body)
        self.assertEqual((status, DOCUMENT.check_answer("POST", "/v1/plan", status, doc)), (expected, []), doc)
        if status != 400:
            self.assertEqual(DOCUMENT.check_request("POST", "/v1/plan", body), [])
        return doc

    def claim(self, uuid, name):
        status, claim, _ = self.host.request("POST", "/v1/claims", {"domain": uuid, **vf(name)})
        self.assertEqual(status, 201, claim)
        self.addCleanup(self.host.request, "DELETE", f"/v1/claims/{claim['id']}")
        return claim

    def traces(self):
        """What was written to the adapter; all that would show a claim: what can be read, and what is on the disk. What tells of libvirt or the
        adapter is not looked at: an agent that has just begun goes on with that."""
        writes = self.host.writes()     # waits until nothing is written
        with contextlib.closing(sqlite3.connect(f"file:{self.where}/state/state.db?mode=ro", uri=True)) as db:
            journal = [list(db.execute(f"SELECT * FROM {table}")) for table in ("claims", "vguids", "suppressed", "outbox", "repeats")]
        vfs, claims, outbox, events = (self.host.get(f"/v1/{what}")[1] for what in ("vfs", "claims", "outbox", "events"))
        return (writes, journal, [(vf["bdf"], vf["state"], vf["claim"]) for vf in vfs["vfs"]], claims, outbox,
                [e for e in events["events"] if e["kind"] == "claim"])

    def test_nothing_comes_of_it(self):
        before = self.traces()
        self.assertEqual(self.ask(domain=UUID, vfs=[vf("ib0"), vf("ib1", "storage", guid="sm")]),
                         {"domain": UUID, "vfs": [place("ib0", FREE), place("ib1", LAST)]})
        self.ask(507, domain=UUID, vfs=[vf("ib0"), vf("ib1"), vf("ib2")])
        self.ask(xml=xml("ib0", "ib1"))
        self.assertEqual(self.traces(), before)

    def test_what_there_is_has_its_claim(self):
        claim = self.claim(UUID, "ib0")
        wanted = [vf("ib0", "0x8009"), vf("ib1")]
        self.assertEqual(self.ask(domain=UUID, vfs=wanted), {"domain": UUID, "vfs": [place("ib0", claim["bdf"], claim["id"]), place("ib1", LAST)]})
        doc = self.ask(507, domain=OTHER_UUID, vfs=wanted)
        self.assertEqual((doc["code"], doc["detail"].split(":")[0]), ("no_free_vf", "ib1"))
        self.assertIn("; 2 more are reserved", doc["detail"])

    def test_the_xml_of_a_domain(self):
        self.assertEqual(self.ask(xml=xml("ib0")), {"domain": None, "vfs": [place("ib0", FREE)]})
        self.assertEqual(self.ask(xml=xml("ib0", uuid=UUID)), {"domain": UUID, "vfs": [place("ib0", FREE)]})
        self.assertEqual(self.ask(xml=xml()), {"domain": None, "vfs": []})
        self.assertEqual(self.ask(400, xml=xml("ib0", "ib0"))["code"], "bad_vf_request")
        self.assertEqual(self.ask(400, xml="<domain/>")["code"], "bad_domain_xml")

    def test_a_domain_without_a_uuid_is_known_by_its_name(self):
        """Because it runs, or because it has a claim here."""
        claim = self.claim(UUID, "ib0")    # which has no other name
        self.assertEqual(self.ask(xml=xml("ib0", name=UUID)), {"domain": UUID, "vfs": [place("ib0", FREE, claim["id"])]})
        running = self.host.get("/v1/domains/test")[1]["uuid"]
        self.assertEqual(self.ask(xml=xml(name="test"))["domain"], running)
        doc = self.ask(507, xml=xml("ib0", name="test"))
        self.assertEqual((doc["code"], doc["detail"]), ("no_root_port", "ib0: domain test has 0 free pcie-root-ports of 0, needs 1 for its VFs: "
                                                                        "No space left on device"))

    def test_a_name_given_twice(self):
        self.assertIn("name \"ib0\" is used twice", self.ask(400, domain=UUID, vfs=[vf("ib0"), vf("ib0", "0x8002")])["detail"])

    def test_bodies_that_are_none(self):
        for body in ({}, {"domain": UUID}, {"domain": UUID, "vfs": []}, {"domain": UUID, "vfs": [vf(f"ib{i}") for i in range(17)]},
                     {"domain": UUID, "vfs": [{"name": "ib0"}]}, {"domain": UUID, "vfs": ["ib0"]}, {"domain": UUID, "vfs": [vf("ib0", colour="red")]},
                     {"xml": xml("ib0"), "domain": UUID}, {"xml": xml("ib0"), "vfs": [vf("ib0")]}):
            with self.subTest(body):
                self.assertEqual(self.ask(400, **body)["code"], "bad_request")
        self.assertEqual(self.ask(404, domain="nobody", vfs=[vf("ib0")])["code"], "no_such_domain")


tap.main(__name__)
