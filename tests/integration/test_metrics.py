#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""vhcad's /metrics of a host with VFs, as they are claimed, released and refused: a simulated ConnectX-3 of four VFs, two reserved."""

import exposition
import openapi
import tap
from host_case import OTHER_VF, UUID, VF, WAIT, HostCase

SERIES_MAX = 500


class Metrics(HostCase):
    def samples(self):
        """{"name{labels}" without the prefix: value}"""
        status, text, _ = self.host.get("/metrics")
        self.assertEqual(status, 200)
        found = exposition.samples(text)
        self.assertLessEqual(len(found), SERIES_MAX)
        return {key.removeprefix("vhcad_"): value for key, value in found.items()}

    def until(self, key, value):
        self.host.wait(lambda: self.samples()[key] == value, WAIT)

    def vfs(self, state):
        return f'vfs{{fabric="physnet1",state="{state}"}}'

    def operations(self, kind):
        return self.samples()[f'operations_total{{kind="{kind}",outcome="done"}}']

    def test_what_there_is(self):
        self.until(self.vfs("free"), 4)
        found = self.samples()
        self.assertEqual((found['ports{fabric="physnet1"}'], found['ports_active{fabric="physnet1"}'], found["ready"], found["drained"]),
                         (1, 1, 1, 0))
        self.assertGreaterEqual(found['operations_total{kind="prepare",outcome="done"}'], 4)
        self.assertGreater(found["store_commit_seconds_count"], 0)

    def test_reasons_are_those_of_readyz(self):
        """Those that do not block leave the host ready."""
        self.until(self.vfs("free"), 4)
        self.assertEqual(self.host.request("POST", "/v1/drain", {"park": True})[0], 202)
        self.addCleanup(self.host.request, "DELETE", "/v1/drain")
        status, doc, _ = self.host.get("/readyz")
        listed = {key.split('"')[1]: value for key, value in self.samples().items() if key.startswith("ready_reasons{")}
        self.assertEqual((status, doc["status"]), (200, "ready"))
        self.assertEqual({r["code"] for r in doc["reasons"]}, {code for code, value in listed.items() if value})
        self.assertEqual([r["code"] for r in doc["reasons"] if r["blocks"]], [])
        self.assertIn("drained", [r["code"] for r in doc["reasons"]])
        self.assertEqual(openapi.Document().check_answer("GET", "/readyz", status, doc), [])
        self.assertEqual(self.host.request("DELETE", "/v1/drain")[0], 200)
        self.assertEqual(self.samples()['ready_reasons{code="drained"}'], 0)

    def test_a_claim_comes_and_goes(self):
        self.until(self.vfs("free"), 4)
        before, programmed, scrubbed = self.samples(), self.operations("program"), self.operations("scrub")
        status, claim = self.host.request("POST", "/v1/claims", {"domain": UUID, "name": "ib0", "partition": "0x8001", "fabric": "physnet1"})[:2]
        self.assertLess(status, 300, claim)
        self.assertEqual((self.samples()[self.vfs("programmed")], self.samples()[self.vfs("free")]), (1, 3))
        self.assertEqual(self.operations("program"), programmed + 1)
        found = self.samples()
        self.assertEqual(found["program_seconds_count"], before["program_seconds_count"] + 1)
        self.assertGreater(found["program_seconds_sum"], before["program_seconds_sum"])
        self.assertEqual(self.host.request("DELETE", f"/v1/claims/{claim['id']}")[0], 200)
        self.until(self.vfs("free"), 4)
        self.assertEqual(self.operations("scrub"), scrubbed + 1)

    def test_a_reserved_port_is_told_from_a_claimed_one(self):
        key = 'ports_waiting{fabric="physnet1",for="%s"}'
        self.until(self.vfs("free"), 4)
        self.assertEqual(self.host.add()[2], 0)
        found = self.samples()
        self.assertEqual((found[self.vfs("claimed")], found[key % "domain"], found[key % "sm"]), (1, 1, 0))
        self.assertEqual((self.host.vf(VF)["waits_for"], self.host.vf(OTHER_VF)["waits_for"]), ("domain", None))
        self.assertEqual(self.host.delete()[2], 0)
        self.until(key % "domain", 0)

    def test_room_in_the_table_of_keys(self):
        found = self.samples()
        self.assertLess(found['pkey_table_free{fabric="physnet1"}'], found['pkey_table_entries{fabric="physnet1"}'])
        self.assertEqual((found['ports_down_with_guests{fabric="physnet1"}'], found["migration_without_vf_seconds"]), (0, 0))

    def test_a_refused_port(self):
        before = self.samples()
        out, err, status, _ = self.host.add(mac="01:16:3e:12:34:56")    # by ebrctl itself: the agent hears nothing
        self.assertEqual((out, status), ("", 1), err)
        self.assertEqual(self.host.add(fabric="physnet2", bdf=OTHER_VF)[2], 1)
        self.assertEqual(self.samples()["port_claims_refused_total"], before["port_claims_refused_total"] + 1)
        self.assertEqual(self.host.request("PUT", "/v1/fabrics/physnet1/ports/fa:16:3e:00:00:01/partitions", {"partitions": []})[0], 404)
        self.assertEqual(self.samples()["port_claims_refused_total"], before["port_claims_refused_total"] + 1)

    def test_requests_are_counted_by_role_and_status(self):
        before = self.samples()
        self.assertEqual(self.host.get("/v1/vfs/0000:ff:00.0")[0], 404)
        found = self.samples()
        key = 'http_requests_total{role="admin",status="404"}'
        self.assertEqual(found[key], before.get(key, 0) + 1)
        self.assertEqual(found["http_request_seconds_count"], before["http_request_seconds_count"] + 2)


tap.main(__name__)
