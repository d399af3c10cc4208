# SPDX-License-Identifier: LGPL-2.1-or-later
"""Fat-trees on ibsim, and what is true in them after a move."""

import os
import re
import threading
import unittest

import fabric
import seeds

RADIX = 36
ALL, PORT_INFO, PKEY_TABLE, LFT = 0, 21, 22, 25     # attributes


def node(kind, name, guid, cables, radix=RADIX):
    """cables: [(port, name of the other end, its port)]; radix: ports of a switch, each of which costs a sweep some SMPs"""
    size = 1 if kind == "Hca" else radix
    word = "caguid" if kind == "Hca" else "switchguid"
    return f'{word}=0x{guid:x}\n{kind} {size} "{name}"\n' + "".join(f'[{p}] "{n}"[{q}]\n' for p, n, q in cables) + "\n"


def hosts_of(first_leaf, leaves, hosts):
    """Hosts H1.., port GUIDs as fabric.port_guid(), at leaf switches L1.."""
    return "".join(node("Hca", f"H{(leaf - 1) * hosts + p}", 0x0002c90300000000 + ((leaf - 1) * hosts + p) * 16, [(1, f"L{leaf}", p)])
                   for leaf in range(first_leaf, first_leaf + leaves) for p in range(1, hosts + 1))


def leaf_switch(leaf, hosts, ups):
    return node("Switch", f"L{leaf}", 0x0002c90400000000 + leaf * 16,
                [(p, f"H{(leaf - 1) * hosts + p}", 1) for p in range(1, hosts + 1)] + ups)


def two_levels(leaves, spines, hosts):
    """Each leaf has a cable to each spine S1.."""
    text = hosts_of(1, leaves, hosts)
    for leaf in range(1, leaves + 1):
        text += leaf_switch(leaf, hosts, [(hosts + s, f"S{s}", leaf) for s in range(1, spines + 1)])
    for s in range(1, spines + 1):
        text += node("Switch", f"S{s}", 0x0002c90500000000 + s * 16, [(leaf, f"L{leaf}", hosts + s) for leaf in range(1, leaves + 1)])
    return text


def three_levels(pods, leaves, spines, hosts):
    """Pods of two levels, with spines M1..; the n-th spine of each pod has a cable to each of the n-th group of top switches S1.., as many as a pod has leaves."""
    text = hosts_of(1, pods * leaves, hosts)
    for pod in range(pods):
        for leaf in range(1, leaves + 1):
            text += leaf_switch(pod * leaves + leaf, hosts, [(hosts + m, f"M{pod * spines + m}", leaf) for m in range(1, spines + 1)])
        for m in range(1, spines + 1):
            text += node("Switch", f"M{pod * spines + m}", 0x0002c90600000000 + (pod * spines + m) * 16,
                         [(leaf, f"L{pod * leaves + leaf}", hosts + m) for leaf in range(1, leaves + 1)] +
                         [(leaves + t, f"S{(m - 1) * leaves + t}", pod + 1) for t in range(1, leaves + 1)])
    for m in range(1, spines + 1):
        for t in range(1, leaves + 1):
            s = (m - 1) * leaves + t
            text += node("Switch", f"S{s}", 0x0002c90500000000 + s * 16,
                         [(pod + 1, f"M{pod * spines + m}", leaves + t) for pod in range(pods)])
    return text


class FatTree(fabric.Fabric):
    """Of two levels, or of three with pods."""

    LIDS_MOVE = True

    def __init__(self, leaves, spines, hosts, pods=0, **args):
        net = three_levels(pods, leaves, spines, hosts) if pods else two_levels(leaves, spines, hosts)
        super().__init__(net, **args)
        self.per_leaf = hosts
        self.sm_lid = None    # it never moves
        self.hosts = (pods or 1) * leaves * hosts
        self.switches = pods * (leaves + spines) + spines * leaves if pods else leaves + spines

    def lose(self, node, attribute, percent=100):
        """A node does not see so many of the SMPs with this attribute."""
        self.console(f'Error "{node}" {percent} {attribute}')

    def who(self, lid, host=1):
        """Description of the node that an SMP reaches which is routed by LID from a host: through the switches' own tables."""
        return self.watch(host).ask("who", lid)[0]


def heavy_sweep(sm, timeout=30):
    """Lets one run to its end."""
    def done():     # the plugin answers when OpenSM lets go of its lock: in a large tree that is the whole computation of ways
        return sm.api.call("GET", "/v1/fabric", timeout=timeout)[1]["sweeps"]
    before = done()
    sm.resweep()
    fabric.wait_for("a heavy sweep", lambda: done() > before, timeout)


class Sweeps:
    """One heavy sweep after the other. Not by the clock: asked again while it discovers, OpenSM begins anew and never gets to the end."""

    def __init__(self, sm):
        self.sm, self.over = sm, threading.Event()
        self.thread = threading.Thread(target=self._run)

    def sweep(self):
        heavy_sweep(self.sm, 300)

    def _run(self):
        while not self.over.is_set():
            self.sweep()

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()


class Lids:
    """Which host has which LID, as the plugin says it; the moves keep it up to date."""

    def __init__(self, tree, sm):
        self.tree, self.sm = tree, sm
        self.of = {}
        for lid in range(1, sm.api.call("GET", "/v1/fabric")[1]["max_lid"] + 1):
            status, row = sm.api.call("GET", f"/v1/lids/{lid}")
            if status == 200 and not row["is_switch"]:
                self.of[int(row["node"].lstrip("H"))] = lid

    def put(self, a, b, mode="auto", plan=False):
        """Asks for the LID of host a at host b (and so the reverse)."""
        return self.sm.api.call("PUT", f"/v1/lids/{self.of[a]}" + ("?plan=yes" if plan else ""),
                                {"port_guid": fabric.port_guid(b), "mode": mode}, timeout=70)

    def move(self, a, b, mode="auto"):
        """Moves, and returns (answer, what was sent on the wire)."""
        before = self.sm.smps()
        status, answer = self.put(a, b, mode)
        if status != 200:
            raise AssertionError(f"H{a} <-> H{b} {mode}: {status} {answer}")
        self.exchanged(a, b)
        return answer, {kind: n - before[kind] for kind, n in self.sm.smps().items()}

    def exchanged(self, a, b):
        self.of[a], self.of[b] = self.of[b], self.of[a]

    def wrong(self, hosts, vantage):
        """Hosts whose LID does not lead to them, from each of some hosts."""
        hosts = list(hosts)
        seen = {v: self.tree.watch(v).ask("who", *(self.of[h] for h in hosts)) for v in vantage}
        return [(h, v, self.of[h]) for i, h in enumerate(hosts) for v in vantage if seen[v][i] != f"H{h}"]

    def guid2lid_lines(self):
        """[(GUID, LID)] of OpenSM's file."""
        with open(self.sm.cache_path("guid2lid"), encoding="ascii") as f:
            return [(int(guid, 16), int(low, 16)) for guid, low in re.findall(r"^0x([0-9a-f]+) 0x([0-9a-f]+) ", f.read(), re.M)]

    def guid2lid(self):
        """{host: LID} of OpenSM's file."""
        lines = {(guid - 0x0002c90300000001) / 16: lid for guid, lid in self.guid2lid_lines()}
        return {host: lines[host] for host in self.of if host in lines}


class Asked:
    """A move that is asked for while others are: of hosts that nobody else moves meanwhile."""

    def __init__(self, lids, a, b, mode):
        self.hosts, self.answer = (a, b), None
        self.thread = threading.Thread(target=self._run, args=(lids, a, b, mode))
        self.thread.start()

    def _run(self, lids, a, b, mode):
        self.answer = lids.put(a, b, mode)

    def result(self):
        self.thread.join()
        status, answer = self.answer
        if (status, answer.get("state")) != (200, "applied"):
            raise AssertionError(f"{self.hosts}: {status} {answer}")
        return answer


@unittest.skipIf(fabric.missing(), fabric.missing())
class Case(unittest.TestCase):
    TREE = (4, 3, 4)    # leaves, spines, hosts a leaf
    CONSOLE = False

    @classmethod
    def setUpClass(cls):
        cls.tree = FatTree(*cls.TREE, console=cls.CONSOLE)
        cls.addClassCleanup(cls.tree.close)

    def manager(self, engine="ftree", conf="", **args):
        sm = self.tree.manager(opensm_conf=f"routing_engine {engine}\n{conf}", counter=os.environ["VHCA_SMPCOUNT_LIB"], **args)
        self.addCleanup(sm.kill)
        return sm

    def check(self, answer, status, code=None):
        self.assertEqual(answer[0], status, answer)
        if code:
            self.assertEqual(answer[1]["code"], code, answer)
        return answer[1]

    def heavy_sweep(self, sm):
        """LFT SMPs of one more heavy sweep."""
        before = sm.smps()["lft"]
        heavy_sweep(sm)
        return sm.smps()["lft"] - before

    def check_places(self, sm, lids, hosts, vantage):
        """What is true right after a move of these hosts."""
        self.assertEqual(lids.wrong(hosts, vantage), [])
        names = [(int(fabric.port_guid(host), 0), lids.of[host]) for host in hosts]
        wanted = [(guid, None) for guid, _ in names] + [(None, lid) for _, lid in names]
        paths = self.ask(sm.host, "paths", lids.of[sm.host], int(fabric.port_guid(sm.host), 0), *wanted)
        self.assertEqual(paths, [[guid, lid] for guid, lid in names] * 2)
        for host in hosts:
            self.assertEqual(lids.guid2lid()[host], lids.of[host])

    def check_everywhere(self, sm, lids, seen_from):
        """Every LID leads to its host from each of some hosts, and the SA and OpenSM's file say the same."""
        hosts = sorted(lids.of)
        for host in seen_from:
            self.assertEqual(self.ask(host, "who", *(lids.of[h] for h in hosts)), [f"H{h}" for h in hosts], f"from H{host}")
        others = [h for h in hosts if h != sm.host]    # in the middle of a sweep OpenSM does not know LIDs for a moment
        wanted = [(int(fabric.port_guid(h), 0), None) for h in others] + [(None, lids.of[h]) for h in others]
        answer = fabric.wait_for("the SA's answer", lambda: self.all_of(
            self.ask(sm.host, "paths", lids.of[sm.host], int(fabric.port_guid(sm.host), 0), *wanted)), 20)
        self.assertEqual(answer, [[int(fabric.port_guid(h), 0), lids.of[h]] for h in others] * 2)
        self.assertEqual(lids.guid2lid(), lids.of)

    def all_of(self, answers):
        return None if None in answers else answers

    def ask(self, host, *question):
        return self.tree.watch(host).ask(*question)


MODES = {"minhop": ("auto", "deterministic", "skyline"), "updn": ("auto", "deterministic", "skyline"),
         "ftree": ("auto", "deterministic", "skyline"), "dfsssp": ("auto", "deterministic")}    # of a move, that each engine allows


class EachEngine:
    """Cases that call run_engine(engine) for each routing engine."""

    def test_minhop(self):
        self.run_engine("minhop")

    def test_updn(self):
        self.run_engine("updn")

    def test_ftree(self):
        self.run_engine("ftree")

    def test_dfsssp(self):
        self.run_engine("dfsssp")


class EachEngineRandom(EachEngine):
    """Those that call run_random(engine, seed) for each: a fifth case has the fresh seed, and the engine that it draws."""

    def run_engine(self, engine, seed=seeds.FIXED):
        self.run_random(engine, seed)

    def test_fresh_seed(self):
        self.run_engine(seeds.engine(seeds.FRESH), seeds.tell(seeds.FRESH))
