#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Any request, in any order: clients send what comes to their mind to a real OpenSM, or to two, beside heavy sweeps, drivers and hardware that changes.

In between nobody asks for anything: then each LID has one owner, is reached from everywhere, and a heavy sweep has nothing to write.
A seed draws the routing engine, too: SEEDS have all four. VHCA_SEED takes their place; VHCA_ROUNDS and VHCA_SECONDS say how many rounds there are before the one in
which OpenSM is killed, and how long each is.
"""

import collections
import http.client
import json
import os
import random
import re
import threading
import time
import unittest

import fabric
import fattree
import masters
import seeds
import tap
import vantage
import vswitches
import witness

SEEDS = ("1", "2", "4", "6")    # one for each engine, and those that have failed
ROUNDS = int(os.environ.get("VHCA_ROUNDS", "1"))
SECONDS = float(os.environ.get("VHCA_SECONDS", "2"))
CLIENTS = 6
ANSWERED = 200    # in each half of a burst, at least
TIMEOUT = 70    # s; a move waits for sweeps, and one that is not acknowledged for its time-outs
DYNAMIC = 6

ANSWERS = {200, 400, 404, 405, 409, 413, 421, 501, 503, 507}
HOSTS = range(1, vswitches.HYPERVISORS + 1)
PFS = [fabric.port_guid(n) for n in HOSTS]
VPORTS = [vswitches.own_guid(n, v) for n in HOSTS for v in range(1, vswitches.VFS + 1)]
GUESTS = [f"0x02c9ab00000000{n:02x}" for n in range(1, 9)]
SWITCHES = ["0x0002c90400000010", "0x0002c90500000010", "0x0002c90800000010"]
NO_GUIDS = ["0x0000000000000000", "0xffffffffffffffff", "0x0000000000000001", "0x8000000000000000", "", "x", "0x1" * 40, 7, None, [], {}]
LIDS = [0, 1, 63, 64, 0xbffe, 0xbfff, 0xc000, 0xfffe, 0xffff, 0x10000, -1, 1 << 63, "7", None, 1.5, True]
KEYS = ["0x8001", "0x0001", "0x8002", "0x8003", "0x0004", "0xffff", "0x7fff"]
NO_KEYS = ["0x0000", "0x8000", "0x10000", "-1", "", "x", 7, None, [], "0x8001 "]


class Client:
    """Sends random requests, one after the other."""

    def __init__(self, case, name):
        self.rng = random.Random(f"{case.seed} {name}")
        self.case = case

    def mostly(self, good, bad, part=0.06):
        return self.rng.choice(bad if self.rng.random() < part else good)

    def guid(self):
        rows = self.rng.choices((GUESTS, VPORTS, PFS, SWITCHES, NO_GUIDS), (8, 8, 3, 1, 1))[0]
        return self.rng.choice(rows)

    def pf(self):
        return self.mostly(PFS, VPORTS + SWITCHES + GUESTS + NO_GUIDS, 0.1)

    def lid(self):
        return self.mostly(range(1, 48), LIDS, 0.15)

    def keys(self):
        n = self.rng.choice((0, 0, 1, 2, 3, 8, 130) if self.rng.random() < 0.2 else (0, 1, 2, 3))
        return [self.mostly(KEYS, NO_KEYS, 0.02) for _ in range(n)]

    def epoch(self):
        return self.mostly(range(1, 60), [0, -1, (1 << 63) - 1, 1 << 63, "1", None], 0.03)

    def spoilt(self, body):
        """Now and then something is missing, or there is more."""
        if self.rng.random() < 0.03:
            body.pop(self.rng.choice(sorted(body)))
        if self.rng.random() < 0.02:
            body["more"] = body
            body = {**body, "more": None}
        if self.rng.random() < 0.02:
            return self.rng.randbytes(self.rng.choice((0, 1, 100, 20000)))
        return body

    # ---- what it asks for: (method, path, body) ----

    def put_binding(self):
        return "PUT", f"/v1/bindings/{self.guid()}", self.spoilt({
            "epoch": self.epoch(), "port_guid": self.pf(), "gid_index": self.mostly(range(0, 9), LIDS), "lid": self.lid(), "pkeys": self.keys(),
            "lid_policy": self.mostly(("host", "dynamic", "dynamic"), ("follow", "vport", "", None, 1))})

    def withdraw(self):
        query = f"?epoch={self.epoch()}"
        if self.rng.random() < 0.5:
            query += f"&port_guid={self.pf()}"
        if self.rng.random() < 0.3:
            query += "&keep_lid=" + self.mostly(("yes", "no"), ("", "maybe"))
        return "DELETE", f"/v1/bindings/{self.guid()}{query}", None

    def place(self):
        return {"port_guid": self.pf(), "gid_index": self.mostly(range(0, 9), LIDS), "lid": self.lid(),
                "vport": self.mostly(range(1, vswitches.VFS + 1), [0, 4, 5, 254, 255, 65535, -1, None])}

    def move(self):
        return "POST", "/v1/moves", self.spoilt({
            "id": self.mostly(("a",), ("", "x" * 300, None)), "epoch": self.epoch(), "vguid": self.guid(), "pkeys": self.keys(),
            "phase": self.mostly(("prepare", "commit", "commit"), ("", "abort", None)), "from": self.place(), "to": self.place(),
            "lid_policy": self.mostly(("host", "follow", "vport", "vport", "dynamic"), ("", None))})

    def put_member(self):
        return "PUT", f"/v1/members/{self.pf()}", self.spoilt({"pkeys": self.keys()})

    def put_lid(self):
        query = self.mostly(("", "", "?plan=yes"), ("?plan=no", "?plan=", "?plan=2"))
        return "PUT", f"/v1/lids/{self.lid()}{query}", self.spoilt({
            "port_guid": self.rng.choice((self.pf(), self.guid())),
            "mode": self.mostly(("auto", "deterministic", "skyline"), ("best", None, 1))})

    def get(self):
        return "GET", self.rng.choice((
            f"/v1/lids/{self.lid()}", f"/v1/bindings/{self.guid()}", f"/v1/bindings?limit={self.mostly((1, 3), (0, -1, 1 << 40, ''))}",
            f"/v1/bindings?after={self.guid()}", f"/v1/members?port_guid={self.guid()}", "/v1/fabric", "/healthz", "/readyz", "/v1/nothing")), None

    def run(self):
        kinds, weights = (self.put_binding, self.withdraw, self.move, self.put_member, self.put_lid, self.get), (5, 4, 6, 1, 5, 4)
        while not self.case.over.is_set():
            method, path, body = self.rng.choices(kinds, weights)[0]()
            path = path.replace(" ", "%20")
            api, sent = self.rng.choice(self.case.managers).api, time.monotonic()
            try:
                if self.rng.random() < 0.03:
                    self.note(api, sent, method, path, body, None)
                    self.ask_and_go(api, method, path, body)
                    continue
                status, answer = api.call(method, path, body, TIMEOUT)
                self.note(api, sent, method, path, body, status, answer.get("code"))
            except (OSError, http.client.HTTPException) as e:
                self.note(api, sent, method, path, body, None)
                if not self.case.killed.is_set():
                    self.case.wrong.append((method, path, body, repr(e)))
                time.sleep(0.01)
                continue
            except AssertionError as e:    # not as docs/openapi-vhcasm.yaml says
                self.case.wrong.append(str(e))
                return
            code = answer.get("code", "done") if status != 200 else answer.get("state", "done")
            self.case.seen[f"{status} {code}"] += 1
            if not self.is_expected(status, path, answer) or status == 200 and not self.is_right(answer):
                self.case.wrong.append((method, path, body, status, answer))

    def note(self, api, sent, method, path, body, status, code=None):
        """Of the plugin that is looked at in the end."""
        if api is self.case.sm.api:
            self.case.ledger.note(sent, time.monotonic(), method, path, body, status, code)

    def ask_and_go(self, api, method, path, body):
        """Does not wait for the answer."""
        conn = api.connection(TIMEOUT)
        try:
            conn.request(method, path, body if isinstance(body, bytes) else json.dumps(body))
        except BrokenPipeError:
            pass    # refused before the body was read
        finally:
            conn.close()

    def is_expected(self, status, path, answer):
        """Nobody withdraws as one port what another one has; beside that all clients may do all."""
        if status != 403:
            return status in ANSWERS
        port = re.search(r"port_guid=(0x[0-9a-f]+)", path)
        return answer["code"] == "not_the_owner" and port and re.search(f"bound to port (?!{port[1]}).*, not to {port[1]}$", answer["detail"])

    def is_right(self, answer):
        """A move that was answered is there, or what is missing is said."""
        move = answer.get("lid_move", answer if "missing" in answer else None)
        return not move or move["state"] == ("repairing" if move["missing"] else "applied") or move["state"] == "planned"


@unittest.skipIf(fabric.missing(), fabric.missing())
class Case(unittest.TestCase):
    def begin(self, seed):
        self.seed, self.rng = seeds.tell(seed), random.Random(seed)
        self.net = vswitches.VSwitches()
        self.addCleanup(self.net.close)
        self.engine = seeds.engine(seed)
        self.drain = self.rng.choice(("yes", "no"))
        print(f"# {self.engine}, drain = {self.drain}", flush=True)
        self.ledger, self.granted = witness.Ledger(), collections.defaultdict(set)
        self.seen, self.wrong, self.over, self.killed = collections.Counter(), [], threading.Event(), threading.Event()

    def manager(self, conf="", **args):
        return self.net.manager(opensm_conf=f"routing_engine {self.engine}\n{conf}", conf=f"[lids]\ndynamic = {DYNAMIC}\ndrain = {self.drain}",
                                counter=os.environ["VHCA_SMPCOUNT_LIB"], **args)

    def hardware(self):
        """Guests come, go and migrate without anybody's report, and SMPs get lost."""
        there = sorted(self.net.guid)
        while not self.over.wait(self.rng.random() * 0.5):
            place = self.rng.choice(there)
            what = self.rng.random()
            if what < 0.6:
                self.net.exchange(place, self.rng.choice([other for other in there if other != place]))
            elif what < 0.8:
                self.net.take(*place)
                self.over.wait(self.rng.random())
                self.net.give(*place, self.net.guid[place])
            else:
                self.lose_some(self.rng.choice((f"F{place[0]}-{place[1]}", f"V{place[0]}", "L1", "S1")))

    def lose_some(self, node):
        attribute = self.rng.choice((fattree.LFT, fattree.PORT_INFO))
        self.net.console(f'Error "{node}" {self.rng.choice((30, 100))} {attribute}')
        self.over.wait(self.rng.random() * 2)
        self.net.console(f'Error "{node}" 0 {attribute}')

    def drivers(self):
        """Ask the SA for aliases and give them back."""
        rng = random.Random(f"{self.seed} drivers")
        while not self.over.is_set():
            what, host, index, guid = rng.choice(("set", "set", "delete")), rng.choice(HOSTS), rng.randrange(1, 9), rng.choice(GUESTS)
            status = self.net.sa_request(what, host, index, guid)
            if what == "set" and (status == "0x0000" or not status.startswith("0x")):    # without an answer it may have been given
                self.granted[int(guid, 0)].add(index)

    def kill(self):
        """The clients and whoever asks for sweeps see that."""
        self.killed.set()
        self.sm.kill()

    def sweeps(self):
        while not self.over.is_set() and not self.killed.is_set():
            try:
                fattree.heavy_sweep(self.sm, TIMEOUT)
            except (OSError, http.client.HTTPException, AssertionError):
                if not self.killed.is_set():
                    self.wrong.append("no sweep")
                return

    def burst(self, name, others, what):
        """Clients, the hardware and others are at work, before and after what happens in the middle."""
        self.over.clear()
        threads = [threading.Thread(target=work) for work in (self.hardware, *others)]
        threads += [threading.Thread(target=Client(self, f"{name} {n}").run) for n in range(CLIENTS)]
        for thread in threads:
            thread.start()
        try:
            self.some_answers()
            what()
        finally:
            self.over.set()
            for thread in threads:
                thread.join()
        self.assertEqual(self.wrong, [], f"seed {self.seed}")

    def some_answers(self):
        """Half of a burst: for its time, and so many on a busy machine, too."""
        before = sum(self.seen.values())
        self.over.wait(SECONDS / 2)
        fabric.wait_for("answers", lambda: self.wrong or sum(self.seen.values()) - before >= ANSWERED, 60)

    # ---- what is true when nobody asks for anything ----

    def settle(self):
        def settled():
            fattree.heavy_sweep(self.sm)
            return self.sm.api.call("GET", "/v1/fabric")[1]["moves"]["repairing"] == 0 and self.sm.api.call("GET", "/healthz")[1]["in_effect"]
        fabric.wait_for("all in effect", settled, 60)
        self.sm.rest()
        before = self.sm.smps()["lft"]
        fattree.heavy_sweep(self.sm)
        self.assertEqual(self.sm.smps()["lft"] - before, 0, "LFT SMPs of a heavy sweep")

    def rows(self):
        """{LID: row} of all LIDs that anybody has."""
        answers = {lid: self.sm.api.call("GET", f"/v1/lids/{lid}") for lid in (*range(1, 80), 0xbfff, 0xc000, 0xffff)}
        return {lid: row for lid, (status, row) in answers.items() if status == 200}

    def owners(self):
        return {lid: (row["vguid"], row["port_guid"], row["switch_guid"], row["switch_port"]) for lid, row in self.rows().items()}

    def check_lids(self):
        rows = self.rows()
        of = {row["port_guid"]: lid for lid, row in rows.items() if not row["is_switch"] and row["vguid"] in (None, row["port_guid"])}
        names = {**{guid: f"H{n}" for n, guid in zip(HOSTS, PFS)}, **{guid: f"F{n}-{v}" for (n, v), guid in self.net.guid.items()}}
        self.assertEqual(of.keys(), names.keys())
        vguids = [row["vguid"] for row in rows.values() if row["vguid"]]
        self.assertEqual(len(set(vguids)), len(vguids), rows)
        self.assertEqual(self.sm.api.call("GET", "/v1/fabric")[1]["dynamic_lids"], len(vguids))
        in_file = {guid: int(lid, 16) for guid, lid in re.findall(r"^(0x[0-9a-f]+) (0x[0-9a-f]+) ", vswitches.guid2lid(self.sm), re.M)}
        self.assertEqual({guid: in_file.get(guid) for guid in of}, of)
        self.assertEqual(len(set(in_file.values())), len(in_file))
        self.check_ways(of, names)

    def check_ways(self, of, names):
        """From three hosts, and to the SA from its own: ibsim sends back the first request after it has lost an OpenSM, so that one is repeated."""
        guids, wanted = sorted(of), sorted(of.keys() - {PFS[0]})    # OpenSM has no LID for its own port at the beginning of a sweep
        for host in (1, 4, vswitches.HYPERVISORS):
            place = vantage.Vantage(self.net, host)
            try:
                self.assertEqual(place.ask("who", *(of[g] for g in guids)), [names[g] for g in guids], f"from H{host}")
                if host == 1:
                    ask = ("paths", of[PFS[0]], int(PFS[0], 0), *([int(g, 0), None] for g in wanted))
                    place.ask(*ask[:4])
                    self.assertEqual(place.ask(*ask), [[int(g, 0), of[g]] for g in wanted])
            finally:
                place.close()

    def pages(self, what):
        rows, after = [], ""
        while after is not None:
            answer = self.sm.api.call("GET", f"/v1/{what}?limit=3{after}")[1]
            rows += answer[what]
            after = f"&after={answer['next']}" if answer["next"] else None
        return rows

    def check_bindings(self):
        """What the plugin says is what it was asked, and what ports, switches and the SA show."""
        bindings, members, rows = self.pages("bindings"), self.pages("members"), self.rows()
        self.assertTrue(witness.agrees_with_itself(bindings, members), (bindings, members))
        of = {row["port_guid"]: lid for lid, row in rows.items() if not row["is_switch"] and row["vguid"] in (None, row["port_guid"])}
        dynamic = {lid: row["port_guid"] for lid, row in rows.items() if row["port_guid"] in PFS and lid != of[row["port_guid"]]}
        trial = witness.Trial(self.net, of, self.ledger, bindings, members, self.granted, dynamic)
        print(f"# {trial.tally()}", flush=True)
        self.assertEqual(trial.faults, [], f"seed {self.seed}")

    def check_all(self):
        self.settle()
        self.check_lids()
        self.check_bindings()

    def end(self):
        print(f"# {sum(self.seen.values())} answers: {dict(self.seen.most_common())}", flush=True)
        self.assertEqual(self.sm.stop(), 0)


class OneManager(Case):
    def run_seed(self, seed):
        self.begin(seed)
        self.sm = self.manager().start()
        self.managers, others = [self.sm], (self.drivers, self.sweeps)
        for round_ in range(ROUNDS):
            self.burst(round_, others, self.some_answers)
            self.check_all()
        self.burst("the last", others, self.kill)
        self.sm.start()
        self.check_all()
        before = self.owners()
        self.kill()
        self.sm.start()
        fattree.heavy_sweep(self.sm)
        self.assertEqual(self.owners(), before)
        self.assertNotIn("421 not_master", self.seen)
        self.end()


class TwoManagers(Case):
    """A second one enters with a higher priority, and goes: the first is master, standby, and master again while it is asked."""

    def enter(self):
        self.second.start(timeout=60)
        self.managers.append(self.second)
        time.sleep(SECONDS / 2)

    def go(self):
        if self.rng.random() < 0.5:
            self.assertEqual(self.second.stop(), 0)
        else:
            self.second.kill()
        fabric.wait_for("the take-over", self.sm.api.ready, 30)

    def run_seed(self, seed):
        self.begin(seed)
        self.killed.set()    # a socket that is not there is no fault
        self.sm = self.manager(masters.MASTER).start()
        self.second = self.manager(masters.HIGHER, host=vswitches.HYPERVISORS)
        self.managers = [self.sm]
        self.burst("it enters", (), self.enter)
        fabric.wait_for("standby", lambda: self.sm.api.call("GET", "/healthz")[1]["sm_state"] == "standby", 30)
        self.burst("it goes", (), self.go)
        self.managers = [self.sm]
        self.settle()
        self.check_bindings()
        self.assertIn("421 not_master", self.seen)
        self.end()


class Engines(unittest.TestCase):
    def test_each_is_drawn(self):
        self.assertEqual({seeds.engine(seed) for seed in SEEDS}, set(seeds.ENGINES))


seeds.cases(OneManager, *SEEDS)
seeds.cases(TwoManagers, SEEDS[0])
del Case
tap.main(__name__)
