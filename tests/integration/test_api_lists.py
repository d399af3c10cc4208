#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Lists of a whole agent on a simulated adapter of four VFs: filters, and parts of them."""

import contextlib
import json
import os
import sqlite3
import subprocess
import time
import urllib.parse
import uuid

import openapi
import tap
from host_case import FREE, HCA, OTHER_UUID, OTHER_VF, PF, UUID, VF, WAIT, HostCase

LAST = "0000:01:00.4"
VFS = [FREE, VF, OTHER_VF, LAST]
NAMES = "[policy]\nallow_default_partition = yes\n[partition storage]\npkey = 0x8001\n[partition later]\npkey = 0x8009\n"
BY = {"/v1/vfs": "bdf", "/v1/claims": "id", "/v1/partitions": "pkey", "/v1/migrations": "id"}
LEASE = 3_600_000    # ms
DOCUMENT = openapi.Document()


class ListCase(HostCase):
    def ask(self, path, expected=200, **query):
        """The answer, which is as the document says; so is what was asked."""
        path += "?" + urllib.parse.urlencode(query)
        got, doc, _ = self.host.get(path)
        self.assertEqual((got, DOCUMENT.check_answer("GET", path, got, doc)), (expected, []), doc)
        if expected == 200:
            self.assertEqual(DOCUMENT.check_request("GET", path, None), [], path)
        return doc

    def pages(self, path, **query):
        """What the entries of each page of the whole list are named by."""
        key, by = path.rsplit("/", 1)[1], BY[path]
        doc = self.ask(path, **query)
        pages = [[entry[by] for entry in doc[key]]]
        while doc["next"]:
            doc = self.ask(path, after=doc["next"], **query)
            pages.append([entry[by] for entry in doc[key]])
        return pages


class Lists(ListCase):
    CONF = HCA + NAMES

    def vfs(self, **query):
        return [vf["bdf"] for vf in self.ask("/v1/vfs", **query)["vfs"]]

    def claim(self, domain, name, bdf, partition, **more):
        want = {"domain": domain, "name": name, "bdf": bdf, "partition": partition}
        status, claim, _ = self.host.request("POST", "/v1/claims", {**want, **more})
        self.assertEqual(status, 201, claim)
        self.addCleanup(self.host.request, "DELETE", f"/v1/claims/{claim['id']}")
        return claim["id"]

    def test_pages_are_the_list(self):
        for i, bdf in enumerate((VF, OTHER_VF, FREE)):
            self.claim(UUID, f"ib{i}", bdf, "storage")
        for path in ("/v1/vfs", "/v1/claims", "/v1/partitions"):
            whole, = self.pages(path)
            self.assertGreaterEqual(len(whole), 3)
            for limit in (1, 2, len(whole), 1000):
                self.assertEqual(self.pages(path, limit=limit), [whole[i:i + limit] for i in range(0, len(whole), limit)], path)

    def test_fields_are_what_was_asked_for(self):
        for i, bdf in enumerate((VF, FREE)):
            self.claim(UUID, f"ib{i}", bdf, "storage")
        for path in (*BY, "/v1/domains", "/v1/hcas", "/v1/outbox", "/v1/config"):
            known = DOCUMENT.fields(path)
            whole = self.ask(path)
            key, = whole.keys() - {"next"}
            self.assertEqual(self.ask(path, fields=",".join(known)).keys(), whole.keys())
            for field in known:
                # Between the two something may have changed.
                self.host.wait(lambda path=path, key=key, field=field: self.ask(path, fields=field)[key] ==
                               [{k: e[k] for k in e.keys() & {field}} for e in self.ask(path)[key]], WAIT)
            for fields, wrong in (("colour", "colour"), (f"{known[0]},colour", "colour"), ("", ""), (f"{known[0]},", ""), (f",{known[0]}", ""),
                                  (known[0][:-1], known[0][:-1]), (f"{known[0]} ", f"{known[0]} "), (" ".join(known[:2]), " ".join(known[:2])), ("x" * 500, "x" * 40)):
                doc = self.ask(path, 400, fields=fields)
                self.assertEqual((doc["code"], doc["detail"], doc["hint"]),
                                 ("bad_request", f'query: fields: "{wrong}" is no member of an entry', " ".join(known)), (path, fields))
            doc = self.ask(path, 400, fields=f"{known[1]},{known[0]},{known[1]}")
            self.assertEqual(doc["detail"], f'query: fields: "{known[1]}" is given twice')

    def test_fields_go_with_filters_pages_and_etags(self):
        self.claim(UUID, "ib0", FREE, "storage")
        doc = self.ask("/v1/vfs", state="free", limit=2, fields="pf,bdf")
        self.assertEqual(doc, {"vfs": [{"bdf": VF, "pf": PF}, {"bdf": OTHER_VF, "pf": PF}], "next": OTHER_VF})
        self.assertEqual(self.ask("/v1/vfs", state="free", after=doc["next"], fields="driver"), {"vfs": [{"driver": "vfio-pci"}], "next": None})
        self.assertEqual(self.ask("/v1/claims", 410, after=str(uuid.uuid4()), fields="id")["code"], "cursor_gone")
        tags = {}

        def is_unchanged():
            for path in ("/v1/vfs", "/v1/vfs?fields=bdf,state", "/v1/vfs?fields=state,bdf", "/v1/vfs?fields=bdf"):
                tags[path] = self.host.get(path)[2].split("ETag: ")[1].split("\r\n")[0]
            return all(self.host.get(path, f"If-None-Match: {tag}\r\n")[0] == 304 for path, tag in tags.items())
        self.host.wait(is_unchanged, WAIT)      # what comes of the claim goes on for a moment
        self.assertEqual(tags["/v1/vfs?fields=bdf,state"], tags["/v1/vfs?fields=state,bdf"])
        self.assertEqual(len(set(tags.values())), 3)

    def test_fields_make_an_answer_small(self):
        """Bytes are what they save: the document is built as a whole, and none is kept."""
        size = {query: len(json.dumps(self.host.get(f"/v1/vfs{query}")[1])) for query in ("", "?fields=bdf,state")}
        self.assertLess(10 * size["?fields=bdf,state"], size[""])

    def test_a_page_goes_on_behind_what_the_filter_takes_no_more(self):
        page = self.ask("/v1/vfs", state="free", limit=1)
        self.assertEqual(([vf["bdf"] for vf in page["vfs"]], page["next"]), ([FREE], FREE))
        self.claim(UUID, "ib0", FREE, "storage")
        self.assertEqual(self.vfs(state="free", limit=1, after=FREE), [VF])

    def test_what_has_left_the_list_is_told(self):
        claim = self.claim(UUID, "ib0", FREE, "storage")
        self.assertEqual(self.host.request("DELETE", f"/v1/claims/{claim}")[0], 200)
        doc = self.ask("/v1/claims", 410, after=claim)
        self.assertEqual((doc["code"], doc["hint"]), ("cursor_gone", "read the list from its begin, without after"))
        for path in ("/v1/vfs", "/v1/domains", "/v1/partitions", "/v1/migrations"):
            self.assertEqual(self.ask(path, 410, after=claim, limit=1)["code"], "cursor_gone", path)

    def test_filters(self):
        self.claim(UUID, "ib0", FREE, "storage")
        self.claim(OTHER_UUID, "ib0", VF, "0xffff")
        fabric, numa = (self.ask("/v1/vfs")["vfs"][0][key] for key in ("fabric", "numa"))
        self.assertEqual(fabric, "physnet1")
        for query, bdfs in (({"pf": PF, "fabric": fabric}, VFS), ({"fabric": "physnet2"}, []), ({"numa": 1023}, []),
                            ({"numa": 0}, VFS if numa == 0 else []), ({"domain": UUID}, [FREE]), ({"domain": OTHER_UUID, "state": "free"}, []),
                            ({"partition": "storage"}, [FREE]), ({"partition": "0x0001"}, [FREE]), ({"partition": "0xffff"}, [VF]),
                            ({"partition": "later"}, []), ({"partition": "storage", "domain": OTHER_UUID}, []), ({"state": "free"}, [OTHER_VF, LAST])):
            self.assertEqual(self.vfs(**query), bdfs, query)
            if "state" not in query:
                taken = [c["bdf"] for c in self.ask("/v1/claims", **query)["claims"]]
                self.assertEqual(taken, [bdf for bdf in bdfs if bdf in (FREE, VF)], query)

    def test_a_claims_fabric_is_the_one_that_it_shows(self):
        """One by address may ask for the VF by another name than its adapter's fabric has."""
        claim = self.claim(UUID, "ib0", FREE, "storage", fabric="default")
        for fabric in ("default", "physnet1"):
            shown = [c["id"] for c in self.ask("/v1/claims")["claims"] if c["fabric"] == fabric]
            self.assertEqual([c["id"] for c in self.ask("/v1/claims", fabric=fabric)["claims"]], shown, fabric)
        self.assertEqual(self.ask(f"/v1/claims/{claim}")["fabric"], "default")

    def test_a_claim_by_address_is_on_its_vfs_fabric(self):
        """By that name a peer chooses an adapter for it."""
        claim = self.claim(UUID, "ib0", FREE, "storage")
        self.assertEqual(self.ask(f"/v1/claims/{claim}")["fabric"], "physnet1")

    def test_what_is_not_possible_is_refused(self):
        for path, query, status, code in (
                ("vfs", {"limit": 0}, 400, "bad_request"), ("vfs", {"limit": 1001}, 400, "bad_request"), ("claims", {"limit": "-1"}, 400, "bad_request"),
                ("domains", {"limit": "x"}, 400, "bad_request"), ("partitions", {"limit": ""}, 400, "bad_request"),
                ("migrations", {"limit": "1 "}, 400, "bad_request"), ("vfs", {"numa": 1024}, 400, "bad_request"), ("claims", {"numa": -1}, 400, "bad_request"),
                ("claims", {"fabric": "a b"}, 400, "bad_request"), ("claims", {"pf": "0000:77:00.0"}, 404, "no_such_hca"),
                ("vfs", {"partition": "nowhere"}, 404, "partition_not_here"), ("claims", {"partition": "0"}, 404, "partition_not_here"),
                ("migrations", {"state": "free"}, 400, "bad_request"), ("migrations", {"final": "yes"}, 400, "bad_request"),
                ("domains", {"state": "running"}, 400, "bad_request"), ("claims", {"status": "free"}, 400, "bad_request"),
                ("partitions", {"fabric": "physnet1"}, 400, "bad_request"), ("hcas", {"limit": 1}, 400, "bad_request")):
            self.assertEqual(self.ask(f"/v1/{path}", status, **query)["code"], code, (path, query))


class Migrations(ListCase):
    """Those of an earlier life of the agent: libvirt's only guest is parked."""

    KEPT = (("source", "vm1", "hvb", "done"), ("destination", "vm2", "hvc", "ended"), ("source", "vm1", "hvc", "failed"),
            ("source", "test", "", "parked"), ("source", "vm2", "hvb", "done"))

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        guest, = cls.host.get("/v1/domains")[1]["domains"]
        cls.host.end()
        cls.ids = [str(uuid.uuid4()) for _ in cls.KEPT]
        cls.domains = [guest["uuid"] if state == "parked" else str(uuid.uuid4()) for *_, state in cls.KEPT]
        with contextlib.closing(sqlite3.connect(f"{cls.where}/state/state.db")) as db, db:
            for n, (role, name, peer, state) in enumerate(cls.KEPT):
                db.execute("INSERT INTO migrations VALUES (?, ?, ?, ?, ?, ?, 0, 0, ?, ?, '', '', '', '[]', ?, ?, ?, '{}', '')",
                           (cls.ids[n], role, cls.domains[n], name, peer, state, n + 1, n + 1, "external" if peer else "park",
                            LEASE, time.time_ns() // 1_000_000 + LEASE))
        cls.host.start()

    def test_filters(self):
        for query, found in (({}, (0, 1, 2, 3, 4)), ({"domain": "vm1"}, (0, 2)), ({"domain": self.domains[1]}, (1,)), ({"domain": self.domains[1].upper()}, (1,)),
                             ({"domain": "vm"}, ()), ({"peer": "hvc"}, (1, 2)), ({"peer": "hv"}, ()), ({"state": "done"}, (0, 4)), ({"state": "copying"}, ()),
                             ({"final": "false"}, (3,)), ({"final": "true"}, (0, 1, 2, 4)), ({"peer": "hvb", "state": "done", "domain": "vm2"}, (4,)),
                             ({"state": "parked", "final": "true"}, ())):
            self.assertEqual(self.pages("/v1/migrations", **query), [[self.ids[n] for n in found]], query)

    def test_pages_are_the_list(self):
        self.assertEqual(self.pages("/v1/migrations", limit=2), [self.ids[0:2], self.ids[2:4], self.ids[4:5]])
        self.assertEqual(self.pages("/v1/migrations", limit=1, domain="vm1"), [[self.ids[0]], [self.ids[2]]])


class History(ListCase):
    """As long a history as is kept of several hosts; without a limit it was 5 MB in one answer."""

    KEPT = [*(("source", "hvb") for _ in range(100)), *(("destination", "hvx") for _ in range(60))]

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.host.end()
        cls.ids = [str(uuid.uuid4()) for _ in cls.KEPT]
        with contextlib.closing(sqlite3.connect(f"{cls.where}/state/state.db")) as db, db:
            for n, (role, peer) in enumerate(cls.KEPT):
                db.execute("INSERT INTO migrations VALUES (?, ?, ?, 'vm', ?, 'done', 0, 0, ?, ?, '', '', '', '[]', 'managed', 0, 0, '{}', '')",
                           (cls.ids[n], role, str(uuid.uuid4()), peer, n + 1, n + 1))
        cls.host.start()

    def test_an_answer_is_bounded_and_says_how_it_goes_on(self):
        self.assertEqual(self.pages("/v1/migrations"), [self.ids[:100], self.ids[100:]])
        self.assertEqual(self.pages("/v1/migrations", peer="hvx"), [self.ids[100:]])
        self.assertEqual(self.pages("/v1/migrations", limit=1000), [self.ids])

    def test_vhcactl_shows_all(self):
        p = subprocess.run([os.environ["VHCACTL"], "--socket", f"{self.where}/run/vhcad.sock", "--json", "migrations"], capture_output=True, text=True, timeout=60, check=True)
        doc = json.loads(p.stdout)
        self.assertEqual(([m["id"] for m in doc["migrations"]], doc["next"]), (self.ids, None))


tap.main(__name__)
