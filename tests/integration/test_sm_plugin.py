#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""libvhcasm.so inside a real OpenSM that manages ibsim's simulated fabric: reports, log, health."""

import contextlib
import http.client
import os
import re
import signal
import socket
import statistics
import threading
import time

import fabric
import tap

from plugin_case import NO_KEYS, PKEY_TABLE, VGUID1, VGUID2, Case


class Basics(Case):
    """One OpenSM for all cases; each leaves the table empty, and uses epochs above those of the earlier ones."""

    epoch = 0

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.sm = cls.fabric.manager().start()
        cls.api = cls.sm.api
        cls.lids = [cls.fabric.lid(host) for host in range(1, fabric.HOSTS + 1)]

    def setUp(self):
        """Nothing is left of the case before: no binding, no declaration, no key, and the LIDs are where they were."""
        Basics.epoch += 100
        self.assertEqual([self.api.call("GET", f"/v1/{what}")[1][what] for what in ("bindings", "members")], [[], []])
        fabric.wait_for("the tables", lambda: self.tables() == [NO_KEYS] * fabric.HOSTS)
        self.assertEqual(self.fabric.watch(1).ask("who", *self.lids), [f"H{host}" for host in range(1, fabric.HOSTS + 1)])

    def tables(self):
        """The first block of each host's P_Key table, as the port itself has it."""
        return self.fabric.watch(1).ask("get", *([lid, PKEY_TABLE, 0] for lid in self.lids))

    def tearDown(self):
        for row in self.api.rows("bindings"):
            self.api.withdraw(row["vguid"], row["epoch"])
        for host in range(1, fabric.HOSTS + 1):
            self.api.declare(host, [])

    def test_health_and_readiness(self):
        status, doc = self.api.call("GET", "/readyz")
        self.assertEqual(status, 200)
        self.assertEqual(doc["sm_state"], "master")
        self.assertEqual(doc["master_guid"], fabric.port_guid(1))
        self.assertRegex(doc["opensm_version"], r"^OpenSM 3\.3")
        self.assertIsNone(doc["problem"])
        self.assertEqual([r["code"] for r in doc["reasons"] if r["blocks"]], [])
        self.assertEqual(self.api.call("GET", "/healthz")[1]["status"], "ok")

    def test_binding_puts_the_port_into_its_partition(self):
        lid = self.fabric.lid(2)
        doc = self.check(self.api.bind(VGUID1, self.epoch, 2, ["0x8001"], lid=lid), 200)
        self.assertEqual((doc["state"], doc["lid"], doc["pkeys"]), ("pending", lid, ["0x8001"]))
        self.wait_key(2, "0x8001")
        self.assertFalse(self.fabric.has(3, "0x8001"))
        fabric.wait_for("the SM's own copy", lambda: self.check(self.api.get(VGUID1), 200)["findings"] == [])
        self.check(self.api.withdraw(VGUID1, self.epoch), 200)
        self.wait_key(2, "0x8001", there=False)

    def test_in_effect_says_when_a_sweep_took_it_over(self):
        in_effect = lambda: self.api.call("GET", "/readyz")[1]["in_effect"]
        fabric.wait_for("nothing pending", in_effect)
        self.addCleanup(self.fabric.sim.send_signal, signal.SIGCONT)
        self.fabric.sim.send_signal(signal.SIGSTOP)    # no port gets a key
        self.check(self.api.bind(VGUID1, self.epoch, 4, ["0x8001"], lid=None), 200)
        self.assertFalse(in_effect())
        self.fabric.sim.send_signal(signal.SIGCONT)
        fabric.wait_for("in effect", in_effect)
        self.assertTrue(self.fabric.has(4, "0x8001"))

    def test_two_bindings_share_a_key(self):
        self.check(self.api.bind(VGUID1, self.epoch, 2, ["0x8001"]), 200)
        self.check(self.api.bind(VGUID2, self.epoch, 2, ["0x8001", "0x8002"]), 200)
        self.wait_key(2, "0x8002")
        self.check(self.api.withdraw(VGUID2, self.epoch), 200)
        self.wait_key(2, "0x8002", there=False)
        self.assertTrue(self.fabric.has(2, "0x8001"))
        self.check(self.api.withdraw(VGUID1, self.epoch), 200)
        self.wait_key(2, "0x8001", there=False)

    def test_keys_in_use_keep_their_index(self):
        self.check(self.api.bind(VGUID1, self.epoch, 3, ["0x8001"]), 200)
        self.check(self.api.bind(VGUID2, self.epoch, 3, ["0x8002"]), 200)
        self.wait_key(3, "0x8002")
        index = {key: i for i, key in self.fabric.pkeys(3).items()}["0x8002"]
        self.check(self.api.withdraw(VGUID1, self.epoch), 200)
        self.wait_key(3, "0x8001", there=False)
        self.assertEqual(self.fabric.pkeys(3)[index], "0x8002")
        self.assertEqual(self.fabric.pkeys(3)[0], "0xffff")

    def test_declared_members(self):
        doc = self.check(self.api.declare(3, ["0x8005", "0x0006"]), 200)
        self.assertEqual(doc["effective"], ["0x0006", "0x8005"])
        self.check(self.api.bind(VGUID1, self.epoch, 3, ["0x8001"]), 200)
        self.wait_key(3, "0x8005")
        self.wait_key(3, "0x0006")
        rows = self.check(self.api.call("GET", "/v1/members"), 200)["members"]
        self.assertEqual([(r["port_guid"], r["pkeys"], r["from_bindings"], r["effective"]) for r in rows],
                         [(fabric.port_guid(3), ["0x0006", "0x8005"], ["0x8001"],
                           ["0x0006", "0x8001", "0x8005"])])
        self.check(self.api.declare(3, []), 200)
        self.wait_key(3, "0x8005", there=False)
        self.assertTrue(self.fabric.has(3, "0x8001"))

    def test_moved_binding_moves_its_keys(self):
        self.check(self.api.bind(VGUID1, self.epoch, 2, ["0x8001"]), 200)
        self.wait_key(2, "0x8001")
        self.check(self.api.bind(VGUID1, self.epoch + 1, 3, ["0x8001"]), 200)
        self.wait_key(3, "0x8001")
        self.wait_key(2, "0x8001", there=False)

    def test_state_follows_the_aliases_that_the_sa_grants(self):
        state = lambda: self.check(self.api.get(VGUID1), 200)["state"]
        self.check(self.api.bind(VGUID1, self.epoch, 2, [], gid_index=3), 200)
        self.assertEqual(state(), "pending")
        self.fabric.sa_guid("set", 2, 3, VGUID1)
        self.assertEqual(state(), "granted")
        # An owner that has not moved, but says another index; OpenSM declines a second Set.
        self.check(self.api.bind(VGUID1, self.epoch, 2, [], gid_index=4), 200)
        self.fabric.sa_guid("set", 2, 4, VGUID1)
        doc = self.check(self.api.get(VGUID1), 200)
        self.assertEqual(doc["state"], "pending")
        self.assertIn(f"held by port {fabric.port_guid(2)} at index 3", doc["findings"][0])
        self.sm.resweep()
        self.check(self.api.bind(VGUID1, self.epoch, 2, [], gid_index=3), 200)
        self.assertEqual(state(), "granted")
        self.fabric.sa_guid("delete", 2, 3, VGUID1)
        self.assertEqual(state(), "pending")

    def test_a_ports_guid_is_no_virtual_one(self):
        """Its keys were edited by who bound it, at his port or at its own."""
        victim = fabric.port_guid(2)
        self.check(self.api.declare(2, ["0x8002"]), 200)
        self.wait_key(2, "0x8002")
        for host in (3, 2):
            for answer in (self.api.bind(victim, self.epoch, host, ["0x8009"]), self.api.move(victim, self.epoch, (2, 0), (host, 0), ["0x8009"]),
                           self.api.move(victim, self.epoch, (2, 0), (host, 0), phase="prepare")):
                doc = self.check(answer, 409, "guid_is_a_port")
                self.assertIn(victim, doc["detail"])
                self.assertTrue(doc["hint"])
        self.check(self.api.get(victim), 404)
        self.assertEqual(self.api.call("GET", "/v1/members")[1]["members"][0]["effective"], ["0x8002"])

    def test_findings_name_what_is_different(self):
        doc = self.check(self.api.bind(VGUID1, self.epoch, 3, ["0x8009"], gid_index=7, lid=40000), 200)
        self.assertEqual(doc["state"], "pending")
        self.assertRegex(doc["findings"][0], "reported LID 40000")
        self.assertRegex(doc["findings"][-1], "Not yet.*0x8009")

    def test_epochs(self):
        self.check(self.api.bind(VGUID1, self.epoch, 2, []), 200)
        self.check(self.api.bind(VGUID1, self.epoch - 1, 3, []), 409, "superseded")
        doc = self.check(self.api.bind(VGUID1, self.epoch, 3, []), 409, "epoch_tie")
        self.assertFalse(doc["retryable"])
        self.check(self.api.withdraw(VGUID1, self.epoch - 1), 409, "superseded")
        self.check(self.api.withdraw(VGUID1, self.epoch), 200)
        self.assertEqual(self.check(self.api.withdraw(VGUID1, self.epoch), 200)["state"], "withdrawn")
        self.check(self.api.bind(VGUID1, self.epoch - 1, 2, []), 409, "superseded")
        self.assertEqual(self.check(self.api.get(VGUID1), 200)["state"], "withdrawn")
        self.check(self.api.bind(VGUID1, self.epoch + 1, 3, []), 200)
        self.check(self.api.get("0x02c9ab00000000ff"), 404, "unknown_binding")

    def test_nobody_is_locked_out_by_an_epoch(self):
        """One DELETE at the last epoch, and nobody could bind that virtual GUID again."""
        last = 2 ** 63 - 1
        for answer in (self.api.withdraw(VGUID2, last), self.api.bind(VGUID2, last, 2, []), self.api.move(VGUID2, last, (2, 3), (3, 9))):
            self.assertIn("/v1/epochs/" + VGUID2, self.check(answer, 409, "epoch_too_high")["hint"])
        self.check(self.api.bind(VGUID2, self.epoch, 2, []), 200)
        self.check(self.api.withdraw(VGUID2, last), 409, "epoch_too_high")
        forget = lambda: self.api.call("DELETE", f"/v1/epochs/{VGUID2}")
        self.check(forget(), 409, "still_bound")
        self.check(self.api.withdraw(VGUID2, self.epoch), 200)
        self.assertEqual(forget(), (200, {"vguid": VGUID2, "epoch": self.epoch}))
        self.check(forget(), 404, "unknown_binding")
        self.check(self.api.get(VGUID2), 404, "unknown_binding")
        self.check(self.api.bind(VGUID2, 1, 2, []), 200)

    def test_refused_reports(self):
        put = lambda body: self.api.call("PUT", f"/v1/bindings/{VGUID1}", body)
        good = {"epoch": self.epoch, "port_guid": fabric.port_guid(2), "gid_index": 1, "lid": 0, "pkeys": []}
        doc = self.check(put({**good, "port_guid": "0x00000000000000ab"}), 409, "unknown_port")
        self.assertTrue(doc["retryable"])
        self.check(put({**good, "pkeys": [f"0x{0x8001 + i:04x}" for i in range(64)]}), 507, "table_full")
        self.check(put({**good, "pkeys": ["0x8001", "0x0001"]}), 409, "both_memberships")
        for wrong in ({"epoch": -1}, {"epoch": "1"}, {"port_guid": "0x0"}, {"port_guid": 7},
                      {"gid_index": 65536}, {"pkeys": ["0x8001", "0x8001"]}, {"pkeys": ["1_"]},
                      {"pkeys": "0x8001"}, {"colour": "red"}, {"lid": -1}):
            with self.subTest(wrong=wrong):
                self.check(put({**good, **wrong}), 400, "bad_request")
        for body in (b"", b"{", b"[]", b"null", b"{}\0", b'{"epoch":' + b"[" * 100, b"\xff\xfe"):
            with self.subTest(body=body):
                self.check(put(body), 400)
        self.check(self.api.call("PUT", "/v1/bindings/0x0", good), 400, "bad_request")
        self.check(self.api.call("PUT", "/v1/bindings/zebra", good), 400, "bad_request")
        self.check(self.api.call("DELETE", f"/v1/bindings/{VGUID1}"), 400, "bad_request")
        self.check(self.api.call("DELETE", f"/v1/bindings/{VGUID1}?epoch=1x"), 400, "bad_request")
        self.check(self.api.call("GET", "/v1/nothing"), 404)
        self.check(self.api.call("POST", "/v1/members", {}), 405)
        self.check(put({**good, "pkeys": ["0x%04x" % i for i in range(0x8001, 0x9000)]}), 413)
        self.check(put(b" " * 100000), 413)
        self.assertEqual(self.api.rows("bindings"), [])

    def test_wild_clients_do_no_harm(self):
        """Half requests, garbage and silent connections beside a working client."""
        idle = []
        for text in (b"", b"PUT /v1/bind", b"\0\1\2\3\r\n\r\n", b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 5000,
                     b"PUT /v1/bindings/1 HTTP/1.1\r\nContent-Length: 99999999999999\r\n\r\n"):
            for _ in range(8):
                s = socket.socket(socket.AF_UNIX)
                s.connect(self.api.path)
                try:
                    s.sendall(text)
                except OSError:
                    pass
                idle.append(s)
        self.check(self.api.bind(VGUID1, self.epoch, 2, []), 200)
        for s in idle:
            s.close()
        self.assertTrue(self.sm.alive())

    def test_pages(self):
        for i in range(7):
            self.check(self.api.bind(f"0x02c9ab00000001{i:02x}", self.epoch + 5, 2 + i % 2, ["0x8077"]), 200)
        doc = self.check(self.api.call("GET", "/v1/bindings?limit=3"), 200)
        self.assertEqual(len(doc["bindings"]), 3)
        rows, after = doc["bindings"], doc["next"]
        while after:
            doc = self.check(self.api.call("GET", f"/v1/bindings?limit=3&after={after}"), 200)
            rows, after = rows + doc["bindings"], doc["next"]
        self.assertEqual([r["vguid"] for r in rows], [f"0x02c9ab00000001{i:02x}" for i in range(7)])
        doc = self.check(self.api.call("GET", f"/v1/bindings?port_guid={fabric.port_guid(3)}"), 200)
        self.assertEqual(len(doc["bindings"]), 3)
        self.check(self.api.call("GET", "/v1/bindings?limit=0"), 400, "bad_request")
        self.assertEqual(self.check(self.api.call("GET", f"/v1/bindings?limit=1&fields=epoch,vguid&after={rows[0]['vguid']}"), 200),
                         {"bindings": [{"vguid": rows[1]["vguid"], "epoch": self.epoch + 5}], "next": rows[1]["vguid"]})
        for path in ("/v1/bindings", "/v1/members", "/v1/lids"):
            doc = self.check(self.api.call("GET", path + "?fields=port_guid&limit=2"), 200)
            self.assertEqual([entry.keys() for entry in doc[path.rsplit("/", 1)[1]]], [{"port_guid"}] * 2)
            doc = self.check(self.api.call("GET", path + "?fields=port_guid,colour"), 400, "bad_request")
            self.assertIn('"colour" is no member', doc["detail"])

    def test_a_burst_costs_few_sweeps_and_repetition_none(self):
        before = self.sm.sweeps()
        for i in range(50):
            self.check(self.api.bind(f"0x02c9ab00000002{i:02x}", self.epoch + 6, 2, [f"0x{0x8010 + i % 5:04x}"]), 200)
        self.wait_key(2, "0x8014")
        used = self.sm.sweeps() - before
        self.assertLessEqual(used, 4)
        fabric.wait_for("in effect", lambda: self.api.call("GET", "/readyz")[1]["in_effect"])
        before = self.sm.sweeps()
        for i in range(50):
            self.check(self.api.bind(f"0x02c9ab00000002{i:02x}", self.epoch + 6, 2, [f"0x{0x8010 + i % 5:04x}"]), 200)
        time.sleep(0.7)
        self.assertEqual(self.sm.sweeps(), before)


class Lids(Case):
    """[lids] enable = no, as shipped: LIDs stay, and nothing of OpenSM's is wrapped for their sake."""

    def put_lid(self, sm):
        return sm.api.call("PUT", f"/v1/lids/{self.fabric.lid(2)}", {"port_guid": fabric.port_guid(3)})

    def bind(self, sm, **more):
        return sm.api.call("PUT", f"/v1/bindings/{VGUID1}", {
            "epoch": 1, "port_guid": fabric.port_guid(2), "gid_index": 1, "lid": 0, "pkeys": ["0x8001"], **more})

    def move(self, sm, policy):
        place = lambda host: {"port_guid": fabric.port_guid(host), "gid_index": 1, "lid": self.fabric.lid(host), "vport": 1}
        return sm.api.call("POST", "/v1/moves", {
            "id": "x", "epoch": 1, "vguid": VGUID1, "phase": "commit", "from": place(2), "to": place(3), "pkeys": [],
            "lid_policy": policy})

    def test_lids_stay(self):
        sm = self.manager().start()
        answers = [self.put_lid(sm), self.bind(sm, lid_policy="dynamic"), self.move(sm, "follow"), self.move(sm, "vport")]
        for answer in answers:
            doc = self.check(answer, 409, "cannot_move")
            self.assertIn("enable = yes", doc["hint"])
        self.check(sm.api.get(VGUID1), 404, "unknown_binding")
        self.assertNotIn("wrapped", sm.log())
        self.check(self.bind(sm), 200)    # keys need none of it
        self.wait_key(2, "0x8001")
        self.check(sm.api.withdraw(VGUID1, 1), 200)
        self.assertEqual(sm.stop(), 0)

    def test_lids_may_move(self):
        sm = self.manager(lids=True).start()
        self.check(self.put_lid(sm), 200)
        self.assertIn("wrapped", sm.log())
        self.assertEqual(sm.stop(), 0)

    def test_dynamic_lids_of_before(self):
        """Their ports keep them as any others do, and who asks for them again later gets no stale ones."""
        sm = self.manager()
        os.makedirs(sm.state_dir)
        path = os.path.join(sm.state_dir, "dynamic-lids")
        with open(path, "w", encoding="ascii") as f:
            f.write(f"vhcasm-dynamic-lids 1\nd {VGUID1} 77 {fabric.port_guid(2)}\nend 1\n")
        sm.start()
        with open(path, encoding="ascii") as f:
            self.assertEqual(f.read(), "vhcasm-dynamic-lids 1\nend 0\n")
        self.assertIn("1 dynamic LIDs are ordinary ones now", sm.log())
        self.assertEqual(sm.stop(), 0)


class Log(Case):
    """Each report of each agent is a line in OpenSM's log only if that is asked for."""

    def told(self, flags):
        sm = self.manager(opensm_conf=f"log_flags {flags}").start()
        self.check(sm.api.bind(VGUID1, 1, 3, ["0x8001"]), 200)
        self.wait_key(3, "0x8001")
        self.check(sm.api.withdraw(VGUID1, 1), 200)
        self.wait_key(3, "0x8001", there=False)
        self.assertEqual(sm.stop(), 0)
        self.assertIn("vhcasm: version", sm.log())
        return [words in sm.log() for words in ("bound to port", "withdrawn at epoch", "written for")]

    def test_as_opensm_logs_by_default(self):
        self.assertEqual(self.told("0x03"), [False] * 3)

    def test_verbose(self):
        self.assertEqual(self.told("0x07"), [True] * 3)


class Health(Case):
    """A subnet whose health is asked for, while something is held up."""

    def begin(self, **args):
        self.sm = self.manager(**args).start()
        self.check(self.sm.api.bind(VGUID1, 1, 2, ["0x8001"]), 200)
        self.wait_key(2, "0x8001")
        self.took = []

    def timed(self, ask):
        begun = time.monotonic()
        answer = ask()
        return answer, time.monotonic() - begun

    def ask_health(self):
        """How old the three say that their values are; notes in self.took how long they took."""
        ages = []
        for path in ("/healthz", "/readyz"):
            (status, doc), seconds = self.timed(lambda path=path: self.sm.api.call("GET", path))
            self.took.append(seconds)
            self.assertEqual((status, doc["sm_state"], doc["master_guid"], doc["bindings"]),
                             (200, "master", fabric.port_guid(1), 1))
            ages.append(doc["age_ms"])
        values, seconds = self.timed(self.sm.api.metrics)
        self.took.append(seconds)
        self.assertEqual((values["vhcasm_master"], values["vhcasm_bindings"]), (1, 1))
        return [*ages, values["vhcasm_subnet_age_seconds"] * 1000]

    def answered_at_once(self):
        """A machine under load may be late once; who waited for a lock or a disk would be each time."""
        self.assertLess(statistics.median(self.took), 0.1, self.took)
        print(f"# health: median {1000 * statistics.median(self.took):.1f} ms, slowest of {len(self.took)}: {1000 * max(self.took):.1f} ms", flush=True)

    def ends_after_the_lock(self, waits):
        """OpenSM waits for its own threads and for the plugin's, of which one waits for the lock."""
        self.sm.process.send_signal(signal.SIGTERM)
        fabric.wait_for("the signal", lambda: "Got signal" in self.sm.output())
        self.assertTrue(self.sm.give_lock_back())
        self.assertEqual(self.sm.process.wait(20), 0)
        waits.join()

    def send_report(self, epoch, answered):
        """A thread that waits for the answer to a report, which the plugin has received; answered(epoch, status) is called there."""
        api, sent = fabric.Api(self.sm.api.listen), threading.Event()
        conn = api.connection(60)
        wait = conn.getresponse
        conn.getresponse = lambda: sent.set() or wait()
        api.connection = lambda timeout: conn

        def report():
            with contextlib.suppress(OSError, http.client.HTTPException):    # OpenSM has ended
                answered(epoch, api.bind(VGUID1, epoch, 3, ["0x8001"])[0])
        thread = threading.Thread(target=report)
        thread.start()
        self.assertTrue(sent.wait(60))
        self.ask_health()    # it has looked at all that had come before
        return thread


class Writing(Health):
    """A disk that takes seconds for an fsync, of which a report needs two and a move of a LID two more."""

    HELD = 1500    # ms

    def answered_at_once(self):
        super().answered_at_once()
        self.assertLess(max(self.took), self.HELD / 1000 - 0.1, self.took)

    def while_it_writes(self, ask):
        """Asks for the health until this is answered; returns the answer."""
        answers = []
        thread = threading.Thread(target=lambda: answers.append(ask()))
        begun = time.monotonic()
        thread.start()
        while thread.is_alive():
            self.ask_health()
            time.sleep(0.05)
        self.assertGreater(time.monotonic() - begun, 2 * self.HELD / 1000)
        self.answered_at_once()
        return answers[0]

    def test_health_answers_while_a_report_is_written(self):
        self.begin(slow=os.environ["VHCA_SLOW_DISK_LIB"])
        self.sm.slow_down(self.HELD)
        self.check(self.while_it_writes(lambda: self.sm.api.bind(VGUID1, 2, 3, ["0x8001"])), 200)
        self.sm.slow_down(0)
        self.wait_key(3, "0x8001")
        self.assertEqual(self.sm.stop(), 0)

    def test_health_answers_while_a_move_is_written(self):
        self.begin(slow=os.environ["VHCA_SLOW_DISK_LIB"], lids=True)
        lid = self.fabric.lid(2)
        self.sm.slow_down(self.HELD)
        answer = self.while_it_writes(lambda: self.sm.api.call("PUT", f"/v1/lids/{lid}", {"port_guid": fabric.port_guid(3)}, timeout=30))
        self.assertEqual(self.check(answer, 200)["state"], "applied")
        self.assertEqual(self.sm.stop(), 0)

    def test_reports_keep_their_order(self):
        """What comes while one is written waits, and none is answered before it is on the disk."""
        self.begin(slow=os.environ["VHCA_SLOW_DISK_LIB"])
        self.sm.slow_down(self.HELD)
        answers = {}
        threads = [self.send_report(epoch, answers.__setitem__) for epoch in (2, 5, 4)]
        for thread in threads:
            while thread.is_alive():
                self.ask_health()
                time.sleep(0.05)
        self.answered_at_once()
        self.assertEqual(answers, {2: 200, 5: 200, 4: 409})
        self.sm.kill()
        self.sm.slow_down(0)
        self.sm.start()
        self.assertEqual(self.check(self.sm.api.get(VGUID1), 200)["epoch"], 5)
        self.assertEqual(self.sm.stop(), 0)


class Computing(Health):
    """OpenSM keeps its lock, as it does for seconds when it computes the ways through a large fabric."""

    def setUp(self):
        self.begin(slow=os.environ["VHCA_SLOW_LOCK_LIB"])
        self.sm.keep_lock()

    def let_go(self):
        self.assertTrue(self.sm.give_lock_back())

    def test_health_answers_at_once(self):
        fabric.wait_for("old values", lambda: min(self.ask_health()) > 1000)
        self.answered_at_once()
        self.let_go()
        self.wait_key(2, "0x8001")
        fabric.wait_for("fresh values", lambda: max(self.ask_health()) < 500)
        self.assertEqual(self.sm.stop(), 0)

    def test_health_answers_while_reports_wait(self):
        """Reports need OpenSM's tables: they are answered when these can be had, in the order in which they came."""
        answers = []
        threads = [self.send_report(epoch, lambda *answer: answers.append(answer)) for epoch in (2, 4, 3)]
        fabric.wait_for("old values", lambda: min(self.ask_health()) > 1000)
        self.assertEqual(answers, [])
        self.let_go()
        for thread in threads:
            thread.join()
        self.assertEqual(sorted(answers), [(2, 200), (3, 409), (4, 200)])
        self.wait_key(3, "0x8001")
        self.assertEqual(self.sm.stop(), 0)

    def test_the_log_tells_who_gave_up(self):
        """Nothing was done for a request whose sender went while it waited."""
        with self.assertRaises(OSError):
            self.sm.api.call("PUT", "/v1/lids/none", {}, timeout=0.5)
        fabric.wait_for("its end", lambda: re.search(r"audit: uid:0 .* PUT /v1/lids/none: 499\b", self.sm.log()))
        self.let_go()
        self.assertEqual(self.sm.stop(), 0)

    def test_it_ends_while_a_report_waits(self):
        self.ends_after_the_lock(self.send_report(2, lambda *_: None))


class Meanwhile(Health):
    """Somebody takes OpenSM's lock just when the plugin is about to, which has just found it free, and keeps it."""

    def begin(self, **args):
        super().begin(slow=os.environ["VHCA_SLOW_LOCK_LIB"], **args)

    def wait_held(self, thread):
        """False if nobody holds it when that thread has ended."""
        fabric.wait_for("an end", lambda: self.sm.lock_is_held() or not thread.is_alive(), 60)
        return self.sm.lock_is_held()

    def health_is_answered(self):
        """It tells by its age that the lock is held."""
        fabric.wait_for("old values", lambda: min(self.ask_health()) > 0)

    def at_each(self, ask):
        """Asks anew with the lock taken before the plugin's first, second, ... time; returns how many times it takes it."""
        n = 0
        while True:
            self.sm.take_lock_before(n)
            answers = []
            thread = threading.Thread(target=lambda n=n, answers=answers: answers.append(ask(n)))
            thread.start()
            if self.wait_held(thread):
                self.health_is_answered()
            held = self.sm.give_lock_back()
            thread.join()
            self.assertEqual(answers, [True], f"at lock {n}")
            if not held:
                print(f"# the lock was taken {n} times", flush=True)
                return n
            n += 1

    def test_in_a_report(self):
        def report(n):
            key = f"0x800{n % 2 + 2}"
            self.check(self.sm.api.call("PUT", f"/v1/bindings/{VGUID1}", self.binding(n + 2, key), timeout=60), 200)
            self.wait_key(3, key)
            return True
        self.begin()
        self.assertGreater(self.at_each(report), 5)
        self.assertEqual(self.sm.stop(), 0)

    def binding(self, epoch, key):
        return {"epoch": epoch, "port_guid": fabric.port_guid(3), "gid_index": 1, "lid": 0, "pkeys": [key]}

    def test_in_a_move(self):
        def move(n):
            answer = self.sm.api.call("PUT", f"/v1/lids/{lid}", {"port_guid": fabric.port_guid(2 + (n + 1) % 2)}, timeout=60)
            self.assertEqual(self.check(answer, 200)["state"], "applied")
            return True
        self.begin(lids=True)
        lid = self.fabric.lid(2)
        self.assertGreater(self.at_each(move), 3)
        self.assertEqual(self.sm.stop(), 0)

    def test_in_lists(self):
        def read(_):
            for path in ("bindings", "members", "lids", f"lids/{lid}", f"bindings/{VGUID1}", "fabric"):
                self.check(self.sm.api.call("GET", f"/v1/{path}", timeout=60), 200)
            return True
        self.begin(lids=True)
        lid = self.fabric.lid(2)
        self.assertGreater(self.at_each(read), 5)
        self.assertEqual(self.sm.stop(), 0)

    def test_after_a_sweep(self):
        def sweep(_):
            before = self.sweeps()
            self.sm.resweep()
            fabric.wait_for("a heavy sweep", lambda: self.sweeps() > before, 60)
            self.check(self.sm.api.call("GET", "/v1/fabric", timeout=60), 200)    # it has looked after the sweep, too
            return True
        self.begin(lids=True)
        self.assertGreater(self.at_each(sweep), 1)
        self.assertEqual(self.sm.stop(), 0)

    def sweeps(self):
        """For which it takes no lock: those who ask until there is one are not counted."""
        return self.sm.api.metrics()["vhcasm_heavy_sweeps_total"]

    def test_it_ends(self):
        self.begin()
        self.sm.take_lock_before(0)
        waits = self.send_report(2, lambda *_: None)
        self.assertTrue(self.wait_held(waits))
        self.ends_after_the_lock(waits)


tap.main(__name__)
