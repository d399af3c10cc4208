#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Credit loops: LIDs move on random fabrics under updn, dnup and ftree, and after each move and each sweep the ways of all LIDs close none.

The ways are those that the switches themselves have. A channel is a cable in one direction; it depends on the one that a packet takes next.
What an engine of OpenSM's closes a loop with by itself, without any move, is no fabric for this test: another one is drawn.
"""

import os
import random
import struct
import time
import unittest

import fabric
import fattree
import seeds
import tap

FABRICS = int(os.environ.get("VHCA_FABRICS", "6"))    # for each engine
MOVES, DRAWS = 12, 40
RADIX, LFT_BLOCK = 8, 64
MODES = ("skyline", "skyline", "auto", "deterministic")
UP, NOWHERE = "updn", 255


class Network:
    """Switches T1.. with hosts and, inside, some without: {(switch, port): (what, port)}."""

    def __init__(self, rng, leaves, inner, hosts):
        self.rng, self.cables, self.hosts = rng, {}, leaves * hosts
        self.leaves = [f"T{n}" for n in range(1, leaves + 1)]
        self.switches = self.leaves + [f"T{leaves + n}" for n in range(1, inner + 1)]
        for host in range(1, self.hosts + 1):
            self.connect(f"H{host}", self.leaves[(host - 1) % leaves])

    def free(self, node):
        return next((p for p in range(1, (1 if node[0] == "H" else RADIX) + 1) if (node, p) not in self.cables), None)

    def connect(self, a, b):
        ends = (a, self.free(a)), (b, self.free(b))
        if a == b or None in (ends[0][1], ends[1][1]) or any(there[0] == b for (here, _), there in self.cables.items() if here == a):
            return False
        self.cables.update({ends[0]: ends[1], ends[1]: ends[0]})
        return True

    def ring(self):
        """All switches in one, and some cables across."""
        order = self.rng.sample(self.switches, len(self.switches))
        for a, b in zip(order, order[1:] + order[:1]):
            self.connect(a, b)
        for _ in range(self.rng.randrange(len(order))):
            self.connect(*self.rng.sample(order, 2))
        return self

    def tree(self):
        """Each leaf at each inner switch, but for a few."""
        for leaf in self.leaves:
            inner = self.switches[len(self.leaves):]
            left_out = self.rng.choice(inner[1:]) if self.rng.random() < 0.2 else None
            for switch in inner:
                if switch != left_out:
                    self.connect(leaf, switch)
        return self

    def text(self):
        ends = lambda node: [(p, *there) for (here, p), there in sorted(self.cables.items()) if here == node]
        return "".join(fattree.node("Hca", f"H{h}", 0x0002c90300000000 + h * 16, ends(f"H{h}")) for h in range(1, self.hosts + 1)) + \
            "".join(fattree.node("Switch", t, 0x0002c90400000000 + int(t[1:]) * 16, ends(t), RADIX) for t in self.switches)


class Fabric(fabric.Fabric):
    LIDS_MOVE = True


def closes_loop(depends):
    """Is there one in {channel: those that it depends on}?"""
    ends, above = set(), set()

    def visit(channel):
        if channel in above:
            return True
        if channel in ends:
            return False
        above.add(channel)
        found = any(visit(c) for c in depends.get(channel, ()))
        above.remove(channel)
        ends.add(channel)
        return found
    return any(visit(channel) for channel in depends)


@unittest.skipIf(fabric.missing(), fabric.missing())
class Loops(unittest.TestCase):
    def start(self, engine):
        """A fabric that is drawn and OpenSM on it; False if this is none for the engine."""
        if engine == "ftree":
            self.net = Network(self.rng, self.rng.randrange(3, 6), self.rng.randrange(2, 4), 2).tree()
        else:
            self.net = Network(self.rng, self.rng.randrange(4, 8), self.rng.randrange(3), 2).ring()
        self.ibsim = Fabric(self.net.text(), console=True)
        self.addCleanup(self.ibsim.close)
        conf = f"routing_engine {engine}\n"
        if engine == UP:
            root = self.rng.choice(self.net.switches)
            with open(os.path.join(self.ibsim.dir, "roots"), "w") as f:
                f.write(f"0x{0x0002c90400000000 + int(root[1:]) * 16:x}\n")
            conf += f"root_guid_file {self.ibsim.dir}/roots\n"
        self.sm = self.ibsim.manager(opensm_conf=conf, counter=os.environ["VHCA_SMPCOUNT_LIB"]).start(timeout=60)
        self.used = self.sm.api.call("GET", "/v1/fabric")[1]["routing_engine"]
        self.lids = {row["node"]: row["lid"] for row in self.sm.api.rows("lids")}
        return self.used == engine and not closes_loop(self.depends())

    def tables(self):
        """{switch: exit ports by LID}, as the switches have them."""
        blocks = range(max(self.lids.values()) // LFT_BLOCK + 1)
        wanted = [(switch, block) for switch in self.net.switches for block in blocks]
        answers = self.ibsim.watch(1).ask("get", *([self.lids[switch], fattree.LFT, block] for switch, block in wanted))
        found = {switch: b"" for switch in self.net.switches}
        for (switch, _), ports in zip(wanted, answers):
            found[switch] += bytes.fromhex(ports)
        return found

    def depends(self):
        """Also looks that all LIDs arrive where they are, from each leaf."""
        tables, depends = self.tables(), {}
        for name, lid in self.lids.items():
            for leaf in self.net.leaves:
                at, last = leaf, None
                for _ in range(len(self.net.switches)):
                    channel = at, tables[at][lid]
                    there = self.net.cables.get(channel, (None,))[0]
                    if there is None or there[0] == "H" or at == name:
                        break
                    depends.setdefault(last, set()).add(channel)
                    depends.setdefault(channel, set())
                    at, last = there, channel
                self.assertEqual(at if name[0] == "T" else there, name, f"LID {lid} from {leaf}")
        depends.pop(None, None)
        return depends

    def check(self, when):
        self.assertFalse(closes_loop(self.depends()), when)

    def move(self, n):
        a, b = self.rng.sample(range(2, self.net.hosts + 1), 2)
        mode = self.rng.choice(MODES)
        status, answer = self.sm.api.call("PUT", f"/v1/lids/{self.lids[f'H{a}']}", {"port_guid": fabric.port_guid(b), "mode": mode})
        self.assertEqual((status, answer.get("state")), (200, "applied"), answer)
        self.lids[f"H{a}"], self.lids[f"H{b}"] = self.lids[f"H{b}"], self.lids[f"H{a}"]
        self.taken[mode, answer["mode"]] = self.taken.get((mode, answer["mode"]), 0) + 1
        self.check(f"move {n}: H{a} and H{b}, {mode}")

    def run_engine(self, engine, seed=seeds.FIXED):
        self.taken, found, start = {}, 0, time.monotonic()
        for draw in range(DRAWS):
            if found == FABRICS:
                break
            self.rng = random.Random(f"{seed} {engine} {draw}")
            try:
                if not self.start(engine):
                    continue
                found += 1
                with self.subTest(draw=draw):
                    for n in range(MOVES):
                        self.move(n)
                        if n % 4 == 3:
                            fattree.heavy_sweep(self.sm)
                            self.check(f"a sweep after move {n}")
                    self.assertEqual(self.sm.stop(), 0)
            finally:
                self.ibsim.close()
        print(f"# {engine}: seed {seed}, {found} fabrics of {draw}, {self.taken}, {time.monotonic() - start:.1f} s", flush=True)
        self.assertEqual(found, FABRICS)
        self.assertGreater(self.taken.get(("skyline", "skyline"), 0), FABRICS)

    def test_updn(self):
        self.run_engine(UP)

    def test_dnup(self):
        self.run_engine("dnup")

    def test_ftree(self):
        self.run_engine("ftree")


@unittest.skipIf(fabric.missing(), fabric.missing())
class Aggregation(unittest.TestCase):
    """SHARP's nodes look like HCAs at spines, and send to each other only: ways from there close no loop that counts."""

    NODE, DEVICE = "Mellanox Technologies Aggregation Node", 53001
    LEAVES, SPINES, HOSTS, PORT = 4, 3, 2, 8

    def modes(self, at_spines=None, device=0):
        """(of skyline moves across leaves, whether OpenSM's log tells of loops), with such an HCA at each spine."""
        text = fattree.two_levels(self.LEAVES, self.SPINES, self.HOSTS)
        for s in range(1, self.SPINES + 1) if at_spines else ():
            head = f'Switch {fattree.RADIX} "S{s}"\n'
            text = text.replace(head, f'{head}[{self.PORT}] "A{s}"[1]\n')
            text += f'devid=0x{device:x}\ncaguid=0x{0x0002c90a00000000 + s * 16:x}\nHca 1 "A{s}" # "{at_spines}"\n[1] "S{s}"[{self.PORT}]\n\n'
        net = fabric.Fabric(text)
        try:
            sm = net.manager(lids=True, opensm_conf="routing_engine minhop").start()
            rows = sm.api.rows("lids")
            self.assertEqual([row["node"] for row in rows].count(at_spines), self.SPINES if at_spines else 0)
            lid = next(row["lid"] for row in rows if row["port_guid"] == fabric.port_guid(2))
            plans = [sm.api.call("PUT", f"/v1/lids/{lid}?plan=yes", {"port_guid": fabric.port_guid(host), "mode": "skyline"})
                     for host in range(3, self.LEAVES * self.HOSTS + 1)]
            self.assertEqual({status for status, _ in plans}, {200}, plans)
            loops = "close loops" in sm.log()
            self.assertEqual(sm.stop(), 0)
        finally:
            net.close()
        return [plan["mode"] for _, plan in plans], loops

    def test_at_spines(self):
        bare = self.modes()
        self.assertIn("skyline", bare[0])
        self.assertFalse(bare[1])
        self.assertEqual(self.modes(self.NODE, self.DEVICE), bare)
        self.assertEqual(self.modes(self.NODE), (["deterministic"] * len(bare[0]), True))    # a host that calls itself so


tap.main(__name__)
