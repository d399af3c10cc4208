#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""vhcactl migrate, park, drain and their like against a fake agent that tells how a migration goes."""

import json
import os
import pathlib
import re
import subprocess
import threading
import time
import urllib.parse

import tap
from ctl_case import CTL, CtlCase, problem
from ctl_docs import UUID, MIGRATION, BEGUN, STEPS, DOMAINS, DONE, FAILED, INCOMING, MIGRATIONS

TIMEOUT = "4"    # s, of a whole wait, and of each answer of a fake agent that a busy machine holds up


class Migrations(CtlCase):
    PATH = f"/v1/migrations/{MIGRATION}"

    def follow(self, *docs, begun=BEGUN, more=None):
        """An agent that starts a migration, and then answers with one document after the other, the last for ever."""
        left = list(docs)

        def answer(_):
            return 200, left.pop(0) if len(left) > 1 else left[0]
        return self.agent({"POST /v1/migrations": (202, begun), f"GET {self.PATH}": (200, answer), **(more or {})})

    @staticmethod
    def at(state, **members):
        """The document of a migration in a state, with the steps before it."""
        names = list(STEPS)
        steps = {k: STEPS[k] for k in names[:names.index(state)]}
        return {**BEGUN, "state": state, "step_ms": steps, **members}

    def test_prints_a_line_for_each_step(self):
        server = self.follow(self.at("claiming"), self.at("claiming"), self.at("detaching"), self.at("copying"),
                             {**self.at("copying"), "step_ms": {**self.at("copying")["step_ms"], "copying": 99}}, DONE)
        p = self.ctl("migrate", "vm1", "hvb")
        self.assertEqual((p.returncode, p.stderr), (0, ""))
        self.assertEqual(p.stdout.splitlines(), [
            f"vm1: migration {MIGRATION} to hvb",
            "claiming            0.043 s",
            "detaching           1.207 s",
            "handing_over        0.080 s",
            "copying             5.310 s",
            "finishing           1.574 s",
            "vm1: moved to hvb in 8.214 s"])
        self.assertEqual(server.seen[0], ("POST", "/v1/migrations", {"domain": "vm1", "peer": "hvb", "mode": "managed"}))
        self.assertEqual({s[:2] for s in server.seen[1:]}, {("GET", self.PATH)})

    READY = {**BEGUN, "mode": "external", "state": "ready", "lease_left_ms": 300500, "peer_libvirt": "qemu+tcp://hvb/system",
             "peer_migration": None, "step_ms": {"claiming": 43, "detaching": 1207, "handing_over": 80}}

    def test_external_says_what_to_run(self):
        server = self.follow(self.at("detaching"), self.READY)
        p = self.ctl("migrate", "--external", "vm1", "hvb", "--lease", "300")
        self.assertEqual((p.returncode, p.stderr), (0, ""))
        self.assertEqual(server.seen[0], ("POST", "/v1/migrations", {"domain": "vm1", "peer": "hvb", "mode": "external", "lease": 300}))
        lines = p.stdout.splitlines()
        self.assertEqual([line.split()[0] for line in lines[:5]], ["vm1:", "claiming", "detaching", "handing_over", "vm1:"])
        self.assertIn("  virsh migrate --live --p2p vm1 qemu+tcp://hvb/system", lines)
        self.assertIn("Within 300 s", p.stdout)
        os.unlink(self.socket)
        self.follow({**self.READY, "peer_migration": "tcp://192.168.77.2"})
        self.assertIn("  virsh migrate --live --p2p vm1 qemu+tcp://hvb/system --migrateuri tcp://192.168.77.2\n",
                      self.ctl("migrate", "--external", "vm1", "hvb").stdout)
        os.unlink(self.socket)
        self.follow(FAILED)
        self.assertEqual(self.ctl("migrate", "--external", "vm1", "hvb").returncode, 4)

    def test_lines_to_paste(self):
        """Whatever the shell makes of the domain's name."""
        parked = {**BEGUN, "mode": "park", "peer": None, "state": "parked", "lease_left_ms": 60000}
        for name in ("a b", "it's", "a;b", "$(b)"):
            for last, args in ((self.READY, ("migrate", "--external", name, "hvb")), (parked, ("park", name))):
                self.follow(last)
                p = self.ctl(*args)
                self.assertEqual((p.returncode, p.stderr), (0, ""))
                pasted = re.findall(r"(?:virsh migrate --live --p2p|vhcactl migrate --cancel|vhcactl unpark) (.*?)(?: qemu|\. A|\n|$)", p.stdout)
                self.assertEqual(set(pasted), {UUID})
                os.unlink(self.socket)

    def test_lease_is_a_number(self):
        self.agent({})
        p = self.ctl("migrate", "--external", "vm1", "hvb", "--lease", "1h")
        self.assertEqual((p.returncode, p.stderr), (2, "vhcactl: --lease: '1h' is no number of seconds\n"))

    def test_copy_is_asked_for(self):
        server = self.follow(DONE)
        p = self.ctl("migrate", "vm1", "hvb", "--copy-timeout", "600", "--expected-max", "60", "--bandwidth", "500", "--connections", "8", "--auto-converge", "--tls")
        self.assertEqual((p.returncode, p.stderr), (0, ""))
        self.assertEqual(server.seen[0][2], {"domain": "vm1", "peer": "hvb", "mode": "managed", "copy": {
            "timeout": 600, "expected_max": 60, "bandwidth": 500, "connections": 8, "auto_converge": True, "tls": True}})
        p = self.ctl("migrate", "vm1", "hvb", "--bandwidth", "fast")
        self.assertEqual((p.returncode, p.stderr), (2, "vhcactl: --bandwidth: 'fast' is no number of MiB/s\n"))

    def test_expected_time_is_told(self):
        rough = "the dirty rate is not known after 10 s: from memory and bandwidth alone"
        for expected, line in (({"seconds": 17, "dirty_rate": 3, "reason": None}, "expected           17     s of copy"),
                               ({"seconds": 17, "dirty_rate": None, "reason": rough}, f"expected           17     s of copy; {rough}"),
                               ({"seconds": None, "dirty_rate": 900, "reason": None}, "expected       the copy would not end: the guest writes too fast")):
            self.follow({**DONE, "expected": expected})
            self.assertEqual(self.ctl("migrate", "vm1", "hvb").stdout.splitlines().count(line), 1)
            os.unlink(self.socket)

    def test_park_and_unpark(self):
        parked = {**BEGUN, "mode": "park", "peer": None, "state": "parked", "lease_left_ms": 60000, "step_ms": {"detaching": 1207}}
        server = self.follow(self.at("detaching"), parked)
        p = self.ctl("park", "vm1")
        self.assertEqual((p.returncode, p.stderr), (0, ""))
        self.assertEqual(server.seen[0], ("POST", "/v1/migrations", {"domain": "vm1", "mode": "park"}))
        self.assertIn("vm1: runs without its VFs for 60 s, or until vhcactl unpark vm1.", p.stdout)
        os.unlink(self.socket)
        for last, code, words in (({**FAILED, "reason": "cancelled by request"}, 0, "vm1: has its VFs again"), (DONE, 4, "does not run here any more")):
            server = self.follow(last, more={"GET /v1/migrations": {"migrations": [parked]}, f"POST {self.PATH}/abort": (202, parked)})
            p = self.ctl("unpark", "vm1")
            self.assertEqual(p.returncode, code)
            self.assertIn(words, p.stdout + p.stderr)
            self.assertIn("POST", [s[0] for s in server.seen])
            os.unlink(self.socket)
        self.follow({**FAILED, "reason": "the guest did not let go of a VF"})
        p = self.ctl("park", "vm1")
        self.assertEqual((p.returncode, p.stderr), (4, "vhcactl: vm1: not parked, all is as it was: the guest did not let go of a VF\n"))

    def park_guests(self, *domains, last, listed=None):
        """The script of vhcad-park.service, with a vhcactl that asks the fake agent where this host's is meant, and only there."""
        vhcactl = pathlib.Path(self.dir, "vhcactl")
        vhcactl.write_text(f'#!/bin/sh\n[ "$1 $2" = "--socket /run/vhcad/vhcad.sock" ] && shift 2 && exec {CTL} --socket {self.socket} "$@"\n', "utf-8")
        vhcactl.chmod(0o755)
        server = self.follow(last, more={"GET /v1/domains": listed or {"domains": list(domains)}})
        p = subprocess.run([os.environ["PARK_GUESTS"]], capture_output=True, text=True, timeout=30, check=False,
                           env={**os.environ, "PATH": f"{self.dir}:/usr/bin:/bin"})
        os.unlink(self.socket)
        return p, [body for method, _, body in server.seen if method == "POST"]

    def test_guests_are_parked_before_they_are_saved(self):
        """each that has a VF, once; who has none, or waits for one, is saved as it is"""
        vm1, plain = DOMAINS["domains"]
        waits = {**plain, "name": "waits", "requests": [vm1["requests"][1]]}
        vm2 = {**vm1, "uuid": MIGRATION, "name": '--no-wait vm1 "uuid": 2\n"bdf": \'$(false) \\',
               "vfs": [vm1["vfs"][0], {**vm1["vfs"][0], "name": "ib1", "bdf": "0000:01:00.2"}]}
        parked = {**BEGUN, "mode": "park", "peer": None, "state": "parked", "lease_left_ms": 3600000}
        p, posts = self.park_guests(vm1, plain, waits, vm2, last=parked)
        self.assertEqual((p.returncode, p.stderr), (0, ""))
        self.assertEqual(sorted(posts, key=lambda b: b["domain"]),
                         [{"domain": uuid, "mode": "park", "lease": 3600} for uuid in sorted((UUID, MIGRATION))])
        p, posts = self.park_guests(plain, last=parked)
        self.assertEqual((p.returncode, posts), (0, []))
        p, _ = self.park_guests(vm1, last={**FAILED, "reason": "the guest did not let go of a VF"})
        self.assertNotEqual(p.returncode, 0)
        self.assertIn("vm1: not parked", p.stderr)
        p, _ = self.park_guests(vm1, last=parked, listed=problem(503, "unreachable", "libvirt_away", "libvirtd is away"))
        self.assertNotEqual(p.returncode, 0)

    def test_drain(self):
        def doc(done, *domains, drained=True):
            return {"drained": drained, "since_ms": 1, "peers": ["hvb"], "done": done, "claims": len(domains),
                    "domains": [{"domain": UUID, "domain_name": n, "state": s, "reason": r} for n, s, r in domains]}
        left = [doc(False, ("vm1", "moving", None), ("vm2", "waiting", "hvb has no free VF")),
                doc(False, ("vm1", "moving", None), ("vm2", "moving", None)), doc(True)]
        server = self.agent({"POST /v1/drain": (202, left[0]), "DELETE /v1/drain": (200, doc(False, drained=False)),
                             "GET /v1/drain": lambda _: (200, left.pop(0) if len(left) > 1 else left[0])})
        p = self.ctl("drain", "hvb", "hvc")
        self.assertEqual((p.returncode, p.stderr), (0, ""))
        self.assertEqual(server.seen[0], ("POST", "/v1/drain", {"peers": ["hvb", "hvc"]}))
        self.assertEqual(p.stdout.splitlines(), ["vm1: moving", "vm2: waiting: hvb has no free VF", "vm2: moving",
                                                 "drained: no guest has a VF of this host"])
        server.seen.clear()
        self.assertEqual((self.ctl("drain", "--park", "--no-wait").returncode, server.seen), (0, [("POST", "/v1/drain", {"park": True})]))
        left[:] = [doc(True, ("vm1", "parked", None))]
        self.assertEqual(self.ctl("drain", "--park").stdout.splitlines(), ["vm1: parked", "drained: 1 domains run on without their VFs"])
        left[:] = [doc(False, ("vm1", "waiting", None))]
        p = self.ctl("drain", "hvb", "--timeout", TIMEOUT)
        self.assertEqual((p.returncode, "1 VFs are still claimed" in p.stderr), (7, True))
        left[:] = [doc(False, drained=False)]
        self.assertEqual(self.ctl("drain", "hvb").returncode, 4)
        self.assertEqual(self.ctl("undrain").stdout, "no longer drained\n")

    def test_lines_come_when_the_step_ends(self):
        gate = threading.Event()

        def answer(_):
            return 200, DONE if gate.is_set() else self.at("detaching")
        self.agent({"POST /v1/migrations": (202, BEGUN), f"GET {self.PATH}": (200, answer)})
        p = subprocess.Popen([CTL, "--socket", self.socket, "migrate", "vm1", "hvb"], stdout=subprocess.PIPE, text=True)
        self.addCleanup(lambda: (p.kill(), p.communicate()))
        self.assertEqual([p.stdout.readline().split()[0] for _ in range(2)], ["vm1:", "claiming"])
        gate.set()
        self.assertEqual([p.stdout.readline().split()[0] for _ in range(5)],
                         ["detaching", "handing_over", "copying", "finishing", "vm1:"])
        self.assertEqual(p.wait(timeout=60), 0)

    def test_says_what_is_not_granted(self):
        vfs = [BEGUN["vfs"][0], {**BEGUN["vfs"][0], "name": "ib1", "granted": False}]
        self.follow({**DONE, "vfs": vfs})
        text = self.ctl("migrate", "vm1", "hvb").stdout
        self.assertIn("ib1", text)
        self.assertNotIn("ib0", text)
        self.assertIn("vhcactl vfs on hvb", text)

    def test_rolled_back(self):
        self.follow(FAILED)
        p = self.ctl("migrate", "vm1", "hvb")
        self.assertEqual(p.returncode, 4)
        self.assertEqual([line.split()[0] for line in p.stdout.splitlines()],
                         ["vm1:", "claiming", "detaching", "aborting", "restoring"])
        self.assertEqual(p.stderr, "vhcactl: vm1: not moved, all is back here as it was: "
                                   "the destination refused: no free VF\n")

    def test_not_all_vfs_are_in_the_guest(self):
        for doc, words in (({**FAILED, "degraded": True}, "not all its VFs are back: the destination refused"),
                           ({**DONE, "degraded": True, "reason": "ib0 does not attach"}, "is on hvb, but not with all")):
            self.follow(doc)
            p = self.ctl("migrate", "vm1", "hvb")
            os.unlink(self.socket)
            self.assertEqual(p.returncode, 6)
            self.assertIn(words, p.stderr)
            self.assertIn("hint: vhcactl domains", p.stderr)
            self.assertNotIn("retried", p.stdout)

    def test_what_is_retried_is_said_once(self):
        stuck = self.at("finishing", degraded=True, reason="hvb does not answer")
        self.follow(stuck, stuck, stuck, {**stuck, "reason": "ib0 is not attached there"}, DONE)
        p = self.ctl("migrate", "vm1", "hvb")
        self.assertEqual(p.returncode, 0)
        self.assertEqual([line for line in p.stdout.splitlines() if "retried" in line],
                         ["finishing      retried: hvb does not answer",
                          "finishing      retried: ib0 is not attached there"])

    def test_a_guest_that_does_not_let_go_is_told(self):
        self.follow(self.at("detaching", reason="waits; its guest agent was asked"), DONE)
        p = self.ctl("migrate", "vm1", "hvb")
        self.assertEqual([line for line in p.stdout.splitlines() if "retried" in line],
                         ["detaching      retried: waits; its guest agent was asked"])
        os.unlink(self.socket)
        self.follow(self.at("detaching", reason="cancelled by request", code="cancelled"), FAILED)
        self.assertNotIn("retried", self.ctl("migrate", "vm1", "hvb").stdout)

    def test_refused(self):
        self.agent({"POST /v1/migrations": problem(404, "not-found", "unknown_peer", "no [peer hvx]", "vhcad.conf(5)")})
        p = self.ctl("migrate", "vm1", "hvx")
        self.assertEqual((p.returncode, p.stdout), (3, ""))
        self.assertEqual(p.stderr, "vhcactl: vm1: no [peer hvx]\nhint: vhcad.conf(5)\n")

    def test_no_wait(self):
        server = self.follow(DONE)
        p = self.ctl("migrate", "--no-wait", "vm1", "hvb")
        self.assertEqual((p.returncode, p.stdout), (0, f"vm1: migration {MIGRATION} to hvb\n"))
        self.assertEqual(len(server.seen), 1)
        self.assertEqual(json.loads(self.ctl("migrate", "--no-wait", "vm1", "hvb", "--json").stdout), BEGUN)

    def test_json_is_the_last_answer(self):
        for doc, code in ((DONE, 0), (FAILED, 4)):
            self.follow(self.at("copying"), doc)
            p = self.ctl("migrate", "vm1", "hvb", "--json")
            os.unlink(self.socket)
            self.assertEqual((p.returncode, json.loads(p.stdout)), (code, doc))

    def test_timeout_ends_the_waiting_only(self):
        self.follow(self.at("copying"))
        p = self.ctl("migrate", "vm1", "hvb", "--timeout", TIMEOUT)
        self.assertEqual(p.returncode, 7)
        self.assertIn(f"vm1: not over after {TIMEOUT} s (copying), and goes on\nhint: vhcactl migrations\n", p.stderr)

    def test_outlives_a_restart_of_the_agent(self):
        server = self.follow(self.at("copying"))
        p = subprocess.Popen([CTL, "--socket", self.socket, "migrate", "vm1", "hvb"], stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True)
        self.addCleanup(lambda: (p.kill(), p.communicate()))
        self.assertIn("migration", p.stdout.readline())
        for _ in range(3):
            p.stdout.readline()
        server.shutdown()
        server.server_close()
        os.unlink(self.socket)
        self.assertIn("waiting", p.stderr.readline())
        self.follow(DONE)
        out, err = p.communicate(timeout=60)
        self.assertEqual((p.returncode, err), (0, ""))
        self.assertIn("moved to hvb", out)

    def test_silent_agent_is_not_waited_for_beyond_the_timeout(self):
        self.agent({"POST /v1/migrations": (202, BEGUN),
                    f"GET {self.PATH}": problem(503, "unavailable", "starting", "the agent starts")})
        p = self.ctl("migrate", "vm1", "hvb", "--timeout", TIMEOUT)
        self.assertEqual(p.returncode, 7)
        self.assertIn("vhcactl: the agent starts; waiting\n", p.stderr)

    def test_forgotten_migration(self):
        self.agent({"POST /v1/migrations": (202, BEGUN),
                    f"GET {self.PATH}": problem(404, "not-found", "unknown_migration", "no such migration")})
        self.assertEqual(self.ctl("migrate", "vm1", "hvb").returncode, 3)

    def test_agent_absent(self):
        self.assertEqual(self.ctl("migrate", "vm1", "hvb").returncode, 7)
        self.assertEqual(self.ctl("migrate", "vm1", "--cancel").returncode, 7)

    def cancel(self, last, *args, running=None):
        known = [FAILED, INCOMING, running or self.at("copying")]

        def under_way(handler):
            query = dict(urllib.parse.parse_qsl(handler.path.partition("?")[2]))
            self.assertEqual(query.pop("final"), "false")
            domain = query.pop("domain")
            return 200, {"migrations": [m for m in known if domain.lower() in (m["domain"], m["domain_name"]) and m["state"] not in ("done", "failed")]}
        server = self.follow(last, more={"GET /v1/migrations": under_way,
                                         f"POST {self.PATH}/abort": (202, known[-1])})
        p = self.ctl("migrate", "--cancel", *args)
        os.unlink(self.socket)
        return p, server

    def test_cancel(self):
        for name in ("vm1", UUID, UUID.upper()):
            p, server = self.cancel({**FAILED, "reason": "cancelled"}, name)
            self.assertEqual((p.returncode, p.stderr), (0, ""))
            self.assertEqual([s[:2] for s in server.seen], [
                ("GET", f"/v1/migrations?final=false&domain={name}"), ("POST", f"{self.PATH}/abort"), ("GET", self.PATH)])
            lines = p.stdout.splitlines()
            self.assertEqual(lines[0], f"{name}: migration {MIGRATION} to hvb is being cancelled")
            self.assertEqual(lines[-1], f"{name}: cancelled, all is back here as it was")

    def test_cancel_comes_too_late(self):
        p, _ = self.cancel(DONE, "vm1")
        self.assertEqual(p.returncode, 4)
        self.assertIn("vm1: too late, it is on hvb", p.stderr)

    def test_cancel_that_leaves_work(self):
        p, _ = self.cancel({**FAILED, "degraded": True}, "vm1")
        self.assertEqual(p.returncode, 6)

    def test_cancel_without_waiting(self):
        p, server = self.cancel(DONE, "vm1", "--no-wait")
        self.assertEqual((p.returncode, len(server.seen)), (0, 2))

    def test_cancel_json(self):
        p, _ = self.cancel(FAILED, "vm1", "--json")
        self.assertEqual((p.returncode, json.loads(p.stdout)), (0, FAILED))

    def test_cancel_of_nothing(self):
        p, server = self.cancel(DONE, "vm3")
        self.assertEqual((p.returncode, p.stdout), (3, ""))
        self.assertIn("vm3: is not being migrated", p.stderr)
        p, server = self.cancel(DONE, "vm1", running=DONE)   # only what is over
        self.assertEqual(p.returncode, 3)
        self.assertEqual(len(server.seen), 1)

    def test_cancel_at_the_destination(self):
        p, server = self.cancel(DONE, "vm2")
        self.assertEqual((p.returncode, len(server.seen)), (4, 1))
        self.assertIn("hint: vhcactl migrate --cancel vm2 on hvb", p.stderr)

    def test_table(self):
        self.agent({"GET /v1/migrations": MIGRATIONS})
        rows = self.rows("migrations")
        self.assertEqual(rows[0], ["ID", "ROLE", "DOMAIN", "PEER", "STATE", "AGE", "OVERHEAD", "REASON"])
        self.assertEqual([row[:5] + row[6:] for row in rows[1:]], [
            [MIGRATION, "source", "vm1", "hvb", "done", "6.1ms", "-"],
            [UUID, "destination", "vm2", "hvb", "incoming (degraded)", "1.9ms, granted 402.0ms", "hva does not answer"],
            [MIGRATION, "source", "vm1", "hvb", "failed", "-", "the destination refused: no free VF"]])

    def test_age_counts_from_the_begin(self):
        docs = [{**DONE, "started_ms": int(time.time() * 1000) - ms} for ms in (125_000, -60_000)]
        self.agent({"GET /v1/migrations": {"migrations": docs}})
        ages = [row[5] for row in self.rows("migrations")[1:]]
        self.assertRegex(ages[0], r"^2m\d\ds$")
        self.assertEqual(ages[1], "0.0s")   # a clock that was set back


tap.main(__name__)
