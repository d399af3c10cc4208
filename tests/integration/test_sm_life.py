#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The plugin from load to unload, with requests, moves and sweeps in between: nothing that it took is left.

In a build with the address sanitizer the leak sanitizer looks when OpenSM ends. OpenSM leaks itself, so what counts is an allocation with our library in its
stack; it is unloaded by then, and known by the addresses that it had. A build with another sanitizer has another reason to run this.
"""

import glob
import re
import unittest

import fabric
import fattree
import tap

VGUIDS = [f"0x02c9ab00000000{n:02x}" for n in range(1, 9)]
LEAKS = "detect_leaks=1:exitcode=0:symbolize=0:fast_unwind_on_malloc=0"
FRAME = re.compile(r"^ +#\d+ 0x([0-9a-f]+)$", re.M)


class Manager(fabric.Manager):
    """Its leaks are reported when it ends."""

    def _environment(self):
        env = super()._environment()
        env["ASAN_OPTIONS"] += f':{LEAKS}:log_path={self.dir}/leaks:stack_trace_format="    #%n %p"'
        return env

    def mapped(self, name):
        """(from, to) of a library of the process."""
        with open(f"/proc/{self.process.pid}/maps", encoding="ascii") as f:
            rows = re.findall(rf"^([0-9a-f]+)-([0-9a-f]+) .*/{name}$", f.read(), re.M)
        return int(rows[0][0], 16), int(rows[-1][1], 16)

    def leaks(self, where):
        """The reports of allocations with a frame between these addresses, frames relative to them; and how many there were in all."""
        text = "".join(open(log, encoding="ascii").read() for log in glob.glob(f"{self.dir}/leaks.*"))
        blocks = re.findall(r"^(\w+ leak of .*:)\n((?: +#.*\n)+)", text, re.M)
        ours = []
        for head, stack in blocks:
            at = [int(a, 16) for a in FRAME.findall(stack)]
            if any(where[0] <= a < where[1] for a in at):
                ours.append(head + "".join(f" +0x{a - where[0]:x}" if where[0] <= a < where[1] else " -" for a in at))
        return ours, len(blocks)


@unittest.skipIf(fabric.missing(), fabric.missing())
class Life(fattree.Case):
    TREE = (3, 2, 3)

    def begin(self, engine):
        sm = Manager(self.tree, opensm_conf=f"routing_engine {engine}\n", conf="[lids]\ndynamic = 4")
        self.tree.managers.append(sm)
        self.addCleanup(sm.kill)
        return sm.start()

    def reports(self, sm):
        for n, vguid in enumerate(VGUIDS):
            self.check(sm.api.bind(vguid, 1, 2 + n % 4, ["0x8001", f"0x{0x8002 + n:04x}"], gid_index=1 + n), 200)
            self.check(sm.api.bind(vguid, 1, 6, []), 409, "epoch_tie")
        self.check(sm.api.declare(3, ["0x8005", "0x0006"]), 200)
        self.check(sm.api.call("PUT", f"/v1/bindings/{VGUIDS[0]}", b"{"), 400)
        for url in ("/v1/bindings", "/v1/members", "/v1/fabric", "/healthz", "/v1/lids/1", "/v1/lids/40000", "/v1/nothing"):
            sm.api.call("GET", url)
        sm.api.metrics()

    def moves(self, sm, engine):
        lids = fattree.Lids(self.tree, sm)
        for a, b in ((2, 3), (4, 8), (5, 9)):
            for mode in fattree.MODES[engine]:
                self.check(lids.put(a, b, mode, plan=True), 200)
                self.check(lids.put(a, b, mode), 200)
                lids.exchanged(a, b)

    def live(self, engine):
        """All of it, and then the leaks that are ours, of how many."""
        sm = self.begin(engine)
        self.reports(sm)
        self.moves(sm, engine)
        fattree.heavy_sweep(sm)
        sm.resweep()
        self.moves(sm, engine)
        for vguid in VGUIDS[::2]:
            self.check(sm.api.withdraw(vguid, 1), 200)
        self.check(sm.api.declare(3, []), 200)
        fattree.heavy_sweep(sm)
        where = sm.mapped("libvhcasm.so")
        self.assertEqual(sm.stop(60), 0, sm.output()[-2000:])
        return sm.leaks(where)

    def test_ends_with_nothing_left(self):
        for engine in ("ftree", "dfsssp"):
            with self.subTest(engine):
                ours, n = self.live(engine)
                print(f"# {engine}: {n} leaks, of which ours: {len(ours)}")
                self.assertEqual(ours, [])


tap.main(__name__)
