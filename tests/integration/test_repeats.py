#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""POSTs with an Idempotency-Key, of a whole agent on a simulated adapter: done once, whenever it is killed."""

import itertools
import signal
import threading
import uuid

import openapi
import tap
from host_case import FREE, HCA, OTHER_UUID, UUID, WAIT, HostCase, Mortal
from test_agent import conf_text

LAST = "0000:01:00.4"    # the other one that is free
IOV = "class/infiniband/mlx4_0/iov"
SHOWN = f"""bus/pci/devices/{FREE}/driver_override=vfio-pci
bus/pci/drivers_probe={FREE}
{IOV}/ports/1/admin_guids/1=0x0c00000000000001
{IOV}/{FREE}/ports/1/pkey_idx/0=1
{IOV}/{FREE}/ports/1/pkey_idx/1=none"""
NODE = f"""<node><domain type='test'><name>vm</name><uuid>{UUID}</uuid><memory>8192</memory><os><type>hvm</type></os>
<metadata><vhca:infiniband xmlns:vhca='urn:vhcad:domain:1'><vhca:vf name='ib0' fabric='physnet1' partition='0x8001' guid='0x0c00000000000001'/>
</vhca:infiniband></metadata><devices><hostdev mode='subsystem' type='pci' managed='no'><source><address domain='0x0000' bus='0x01' slot='0x00'
function='0x1'/></source></hostdev></devices></domain></node>"""
DOCUMENT = openapi.Document()


class KeyCase(HostCase):
    HOST = Mortal

    def setUp(self):
        self.host.until_ready()
        self.key = str(uuid.uuid4())

    def post(self, path, body, key=None):
        """(status, document), as it is described; None: the agent died of it."""
        try:
            status, doc, head = self.host.request("POST", path, body, f"Idempotency-Key: {key or self.key}\r\n")
        except (OSError, IndexError):
            return None
        self.assertIn("Content-Type: application/" + ("json" if status < 400 else "problem+json"), head)
        self.assertEqual(DOCUMENT.check_answer("POST", path, status, doc), [])
        return status, doc

    def kill_at_each_step(self, path, body, status, check, end=lambda answer: None):
        """What the first request was answered, if it was, the others are, too; check(answer) each time. Returns the number of steps."""
        deaths = 0
        for steps in itertools.count():
            self.key = str(uuid.uuid4())
            first, died = self.host.dies_within(steps, lambda: self.post(path, body))
            again = self.post(path, body)
            self.assertEqual(again[0], status, again)
            self.assertIn(first, (None, again))
            check(again[1])
            self.host.kill()
            self.host.until_ready()
            self.assertEqual(self.post(path, body), again)
            check(again[1])
            end(again[1])
            if not died:
                return deaths
            deaths += 1


class Repeats(KeyCase):
    def setUp(self):
        super().setUp()
        self.addCleanup(self.clean)

    def clean(self):
        for claim in self.claims():
            self.host.request("DELETE", f"/v1/claims/{claim['id']}")
        self.host.request("DELETE", "/v1/drain")
        self.assertEqual(self.claims(), [])

    def claims(self):
        return self.host.get("/v1/claims")[1]["claims"]

    def want(self, **more):
        return {"domain": UUID, "name": "ib0", "partition": "0x8001", "fabric": "physnet1", **more}

    def test_a_claim_is_made_once(self):
        def check(answer):
            self.assertEqual([(c["id"], c["state"]) for c in self.claims()], [(answer["id"], "programmed")])

        def end(answer):
            self.assertEqual(self.host.request("DELETE", f"/v1/claims/{answer['id']}")[0], 200)
            self.assertEqual(self.post("/v1/claims", self.want()), (201, answer))
            self.assertEqual(self.claims(), [])
        self.assertGreaterEqual(self.kill_at_each_step("/v1/claims", self.want(), 201, check, end), 6)

    def test_a_lease_is_renewed_once(self):
        claim = self.post("/v1/claims", self.want(lease=3600))[1]
        path = f"/v1/claims/{claim['id']}/lease"

        def check(_):
            self.assertEqual([(c["id"], c["lease"]) for c in self.claims()], [(claim["id"], 7200)])
        self.assertGreaterEqual(self.kill_at_each_step(path, {"lease": 7200}, 200, check), 4)

    def test_a_drain_begins_once(self):
        def check(_):
            self.assertTrue(self.host.get("/v1/drain")[1]["drained"])

        def end(answer):
            self.host.request("DELETE", "/v1/drain")
            self.assertEqual(self.post("/v1/drain", {"park": True}), (202, answer))
            self.assertFalse(self.host.get("/v1/drain")[1]["drained"])
        self.assertGreaterEqual(self.kill_at_each_step("/v1/drain", {"park": True}, 202, check, end), 4)

    def test_a_reload_is_answered_again(self):
        self.assertGreaterEqual(self.kill_at_each_step("/v1/reload", None, 200, lambda answer: self.assertEqual(answer, {"status": "reloaded"})), 3)

    def test_what_was_begun_and_has_ended_is_not_begun_again(self):
        """Unless it was answered: at the last steps that is in the journal."""
        died, spent = True, 0
        for steps in itertools.takewhile(lambda _: died, itertools.count()):
            self.key = str(uuid.uuid4())
            died = self.host.dies_within(steps, lambda: self.post("/v1/claims", self.want()))[1]
            made = self.claims()
            self.clean()
            if not made:
                continue
            again = self.post("/v1/claims", self.want())
            spent += again[1].get("code") == "key_spent"
            self.assertIn(again[1].get("code", again[1].get("id")), ("key_spent", made[0]["id"]))
            self.host.kill()
            self.host.until_ready()
            self.assertEqual((self.post("/v1/claims", self.want()), self.claims()), (again, []))
        self.assertGreaterEqual(spent, 3)

    def test_a_key_is_for_one_request(self):
        self.assertEqual(self.post("/v1/claims", self.want())[0], 201)
        for path, body in (("/v1/claims", self.want(name="ib1")), ("/v1/claims", self.want(lease=60)), ("/v1/drain", {"park": True}), ("/v1/reload", None)):
            status, doc = self.post(path, body)
            self.assertEqual((status, doc["code"], doc["retryable"]), (422, "key_reused", False))
        self.assertEqual((len(self.claims()), self.host.get("/v1/drain")[1]["drained"]), (1, False))
        for wrong in ("a b", "x" * 129, "gr\u00fcn"):
            self.assertEqual(self.post("/v1/reload", None, wrong)[1]["code"], "bad_request")
        self.assertEqual(self.post("/v1/reload", None, '"' + "x" * 126 + '"')[0], 200)

    def test_a_refusal_is_answered_again_unless_it_says_that_it_passes(self):
        self.assertEqual(self.post("/v1/claims", self.want(bdf=FREE), "first")[0], 201)
        refused = self.post("/v1/claims", self.want(), "exists")
        self.assertEqual(refused[1]["code"], "exists")
        self.assertEqual(self.post("/v1/claims", self.want(domain=OTHER_UUID, bdf=LAST), "second")[0], 201)
        self.assertEqual(self.post("/v1/claims", self.want(name="ib1"))[1]["code"], "no_free_vf")
        self.assertEqual(self.host.request("DELETE", f"/v1/claims/{self.claims()[0]['id']}")[0], 200)
        self.assertEqual(self.post("/v1/claims", self.want(), "exists"), refused)
        self.assertEqual(self.post("/v1/claims", self.want(name="ib1"))[0], 201)

    def test_other_methods_take_no_key(self):
        header = f"Idempotency-Key: {self.key}\r\n"
        for _ in range(2):
            self.assertEqual(self.host.request("DELETE", "/v1/drain", None, header)[0], 200)
        self.assertEqual(self.host.get("/v1/node", header)[0], 200)
        self.assertEqual(self.post("/v1/reload", None)[0], 200)


class Moved(KeyCase):
    """Migrations of a guest that has a VF, which libvirt's test driver does not take out of it: each is detaching until it is aborted."""

    PARK = {"domain": UUID, "mode": "park"}

    @classmethod
    def conf(cls, patience):
        uri = f"test://{cls.where}/node.xml\ndetach_timeout = {patience}s\ndetach_retry = 1s"
        return conf_text(cls.where, cls.CONF).replace("test:///default", uri)

    @classmethod
    def prepare(cls):
        for name, text in (("node.xml", NODE), ("held", FREE)):
            with open(f"{cls.where}/{name}", "w", encoding="utf-8") as f:
                f.write(text)
        cls.host.write(cls.conf(60))
        cls.host.before |= {"SIM_BEFORE": SHOWN, "SIM_HELD": f"{cls.where}/held"}

    def setUp(self):
        super().setUp()
        if self.host.vf(FREE)["state"] != "attached":
            self.host.wait(lambda: self.host.request("POST", f"/v1/domains/{UUID}/adopt")[0] == 200, WAIT)
        self.addCleanup(self.abort)

    def migrations(self, *final):
        """Those that are under way, and those that have ended."""
        return {m["id"] for m in self.host.get("/v1/migrations")[1]["migrations"] if m["final"] in final}

    def abort(self):
        """By agents that do not wait for the guest."""
        for patience in (1, 60):
            self.host.write(self.conf(patience))
            self.host.kill()
            self.host.until_ready()
            for migration in self.migrations(False):
                self.host.request("POST", f"/v1/migrations/{migration}/abort")
            self.host.wait(lambda: not self.migrations(False), WAIT)

    def test_a_migration_is_begun_once(self):
        """It may fail by itself then: its claims were not in the journal yet."""
        ended = set()

        def check(answer):
            self.assertEqual(self.migrations(False, True) - ended, {answer["id"]})

        def end(answer):
            self.abort()
            self.assertEqual(self.post("/v1/migrations", self.PARK), (202, answer))
            check(answer)
            ended.add(answer["id"])
        self.assertGreaterEqual(self.kill_at_each_step("/v1/migrations", self.PARK, 202, check, end), 6)


class Stopped(HostCase):
    """The agent ends while a request waits for a P_Key that does not come."""

    CONF = HCA + "[sm]\npkey_timeout = 60s\n"

    def ask(self):
        self.answers.append(self.host.request("POST", "/v1/claims", {"domain": UUID, "name": "ib0", "partition": "0x8009", "fabric": "physnet1"},
                                              "Idempotency-Key: k\r\n")[1]["code"])

    def test_the_next_one_goes_on_with_it(self):
        self.answers = []
        asking = threading.Thread(target=lambda: self.assertRaises((OSError, IndexError), self.ask))
        asking.start()
        self.host.wait(lambda: [c["state"] for c in self.host.get("/v1/claims")[1]["claims"]] == ["claimed"])
        self.host.signal(signal.SIGTERM)
        self.assertEqual(self.host.process.wait(WAIT), 0, self.host.log_text())
        asking.join()
        self.host.write(conf_text(self.host.where, HCA + "[sm]\npkey_timeout = 1s\n"))
        self.host.start()
        self.ask()
        self.assertEqual(self.answers, ["pkey_not_on_port"])


tap.main(__name__)
