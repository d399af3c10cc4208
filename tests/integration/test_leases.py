#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Leases of claims, of a whole agent on a simulated adapter: libvirt's test driver says which domains are here."""

import itertools
import time

import openapi
import tap
from host_case import FREE, HCA, MAC, OTHER_MAC, OTHER_UUID, OTHER_VF, SETTLED, UUID, VF, WAIT, HostCase, Mortal

PORT_LEASE, LEASE = 3, 10    # seconds; the latter is the least that there is
STOPPED = OTHER_UUID         # defined, and it does not run
DOCUMENT = openapi.Document()
NODE = f"""<node><domain type='test' xmlns:test='http://libvirt.org/schemas/domain/test/1.0'>
<name>stopped</name><uuid>{STOPPED}</uuid><memory>8192</memory><os><type>hvm</type></os><test:runstate>5</test:runstate>
</domain></node>"""


class Leases(HostCase):
    CONF = HCA + f"[policy]\nport_lease = {PORT_LEASE * 1000 - 999}ms\n"    # a second that has begun is a whole one

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        with open(f"{cls.where}/node.xml", "w", encoding="utf-8") as f:
            f.write(NODE)
        with open(cls.host.conf, encoding="utf-8") as f:
            text = f.read()
        cls.host.write(text.replace("test:///default", f"test://{cls.where}/node.xml"))
        cls.host.kill()
        cls.host.wait(lambda: cls.host.get("/v1/node")[1]["libvirt"]["synced"], WAIT)

    def ask(self, method, path, body, status):
        """The answer, which is as the document says."""
        got, doc, _ = self.host.request(method, path, body)
        self.assertEqual((got, DOCUMENT.check_answer(method, path, got, doc)), (status, []), doc)
        if status < 300:
            self.assertEqual(DOCUMENT.check_request(method, path, body), [])
        return doc

    def claims(self):
        return self.ask("GET", "/v1/claims", None, 200)["claims"]

    def ended(self, *bdfs):
        return not self.claims() and all(self.host.vf(bdf)["state"] == "free" for bdf in bdfs)

    def test_port_whose_domain_never_comes(self):
        for i in range(5):    # Nova says it again
            time.sleep(PORT_LEASE / 4 if i else 0)
            begun = time.monotonic()
            self.assertEqual(self.host.add()[:3], ("ib0", "", 0))
        claim, = self.claims()
        self.assertEqual((claim["reserved"], claim["lease"]), (True, PORT_LEASE))
        self.host.wait(lambda: self.claims()[0]["lease_ends_ms"])
        self.host.wait(lambda: self.ended(VF), WAIT)
        self.assertGreater(time.monotonic() - begun, PORT_LEASE - 0.5)
        told = [e for e in self.host.get("/v1/events")[1]["events"] if e["claim"] == claim["id"]]
        self.assertTrue([e for e in told if "nobody has renewed it in 3 s" in e["text"]], told)

    def test_port_takes_no_lease_but_its_claim_does(self):
        path, body = f"/v1/fabrics/physnet1/ports/{MAC}", {"domain": UUID, "bdf": VF}
        self.ask("PUT", path, {**body, "lease": LEASE}, 400)
        claim = self.ask("PUT", path, body, 200)
        self.assertEqual(claim["lease"], PORT_LEASE)
        self.ask("POST", f"/v1/claims/{claim['id']}/lease", {"lease": LEASE}, 200)
        self.assertEqual(self.ask("PUT", path, body, 200)["lease"], LEASE)
        time.sleep(PORT_LEASE + SETTLED)
        self.assertEqual([c["id"] for c in self.claims()], [claim["id"]])
        self.host.wait(lambda: self.ended(VF), WAIT)

    def test_domain_that_is_stopped_keeps_its_port(self):
        self.assertEqual(self.host.add(mac=OTHER_MAC, uuid=STOPPED, bdf=OTHER_VF)[:3], ("ib0", "", 0))
        self.assertEqual(self.host.add()[:3], ("ib0", "", 0))
        self.host.wait(lambda: self.host.vf(VF)["state"] == "free", WAIT)
        time.sleep(SETTLED)
        claim, = self.claims()
        self.assertEqual((claim["domain"], claim["lease"], claim["lease_ends_ms"]), (STOPPED, PORT_LEASE, None))
        self.assertEqual(self.host.delete(mac=OTHER_MAC)[:3], ("", "", 0))

    def test_claim_is_renewed_and_outlives_a_kill(self):
        want = {"domain": UUID, "name": "ib0", "bdf": VF, "fabric": "physnet1", "lease": LEASE}
        for wrong in (9, 86401, "10", -1):
            self.ask("POST", "/v1/claims", {**want, "lease": wrong}, 400)
        claim = self.ask("POST", "/v1/claims", want, 201)
        self.assertEqual(claim["lease"], LEASE)
        url = f"/v1/claims/{claim['id']}/lease"
        for wrong in ({}, {"lease": 9}, {"lease": None}, {"lease": 10, "more": 1}):
            self.ask("POST", url, wrong, 400)
        self.ask("POST", f"/v1/claims/{UUID}/lease", {"lease": LEASE}, 404)
        self.assertEqual(self.ask("POST", url, {"lease": LEASE + 2}, 200)["lease"], LEASE + 2)
        self.host.kill()
        self.assertEqual([(c["id"], c["lease"]) for c in self.claims()], [(claim["id"], LEASE + 2)])
        self.host.wait(lambda: self.ended(VF), WAIT)
        self.ask("POST", url, {"lease": LEASE}, 404)

    def test_claim_without_a_lease_stays(self):
        claim = self.ask("POST", "/v1/claims", {"domain": UUID, "name": "ib0", "bdf": FREE, "fabric": "physnet1", "partition": "0x8001"}, 201)
        time.sleep(PORT_LEASE + SETTLED)
        self.assertEqual([(c["id"], c["lease"], c["lease_ends_ms"]) for c in self.claims()], [(claim["id"], None, None)])
        self.ask("DELETE", f"/v1/claims/{claim['id']}", None, 200)


class Killed(HostCase):
    """At each step of the journal: where nobody comes, the claim ends, and its VF is free and shows nobody."""

    CONF = HCA + "[policy]\nport_lease = 1000ms\n"
    HOST = Mortal

    def setUp(self):
        self.host.until_ready()

    def put(self):
        """Its status; None: the agent died of it."""
        try:
            return self.host.request("PUT", f"/v1/fabrics/physnet1/ports/{MAC}", {"domain": UUID, "bdf": VF})[0]
        except (OSError, IndexError):
            return None

    def has_ended(self):
        try:
            vf = self.host.vf(VF)
            return not self.host.get("/v1/claims")[1]["claims"] and (vf["state"], vf["requested"], vf["pkeys"]) == ("free", None, [])
        except (OSError, IndexError):
            return False

    def await_end(self):
        """In this life of the agent, or it dies."""
        pid = self.host.pid()
        self.host.wait(lambda: self.has_ended() or self.host.pid() != pid, WAIT)

    def kill_at_each_step(self, act):
        died = True
        for deaths in itertools.takewhile(lambda _: died, itertools.count()):
            died = self.host.dies_within(deaths, act)[1]
            self.host.wait(self.has_ended, WAIT)
            self.host.kill()
            self.host.until_ready()
            self.assertTrue(self.has_ended())
        return deaths

    def test_as_it_is_claimed(self):
        self.assertGreaterEqual(self.kill_at_each_step(self.put), 2)

    def test_as_it_is_claimed_and_ends(self):
        def act():
            if self.put() == 200:
                self.await_end()
        self.assertGreaterEqual(self.kill_at_each_step(act), 6)

    def test_as_it_is_renewed(self):
        """Each PUT begins it anew; it ends behind the last one."""
        def act():
            for _ in range(3):
                time.sleep(0.5)
                if self.put() != 200:
                    return
            self.await_end()
        self.assertGreaterEqual(self.kill_at_each_step(act), 6)


tap.main(__name__)
