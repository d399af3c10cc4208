#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Many agents at one OpenSM at once, in small; tests/bench/bench_storm.py has them all, with figures."""

import os
import random

import fabric
import fattree
import storm
import tap

AGENTS, VFS, MOVES, WINDOW = 100, 16, 50, 16


class Storm(fattree.Case):
    TREE = (4, 3, 6)    # 24 hosts: five agents or so share a port

    def test_storm(self):
        """registered, moved, fenced, and after a kill -9 still there, while OpenSM sweeps"""
        address = f"127.0.0.1:{fabric.free_port()}"
        sm = self.manager(listen=address).start(timeout=120)
        with storm.Agents(os.environ["VHCA_STORM_AGENTS"], f"http://{address}", AGENTS, VFS, self.tree.hosts) as agents:
            with storm.Sweeps(sm) as sweeps:
                for outcome in (agents.run("register", AGENTS, AGENTS), agents.run("moves", MOVES, WINDOW)):
                    print(f"# {outcome}", flush=True)
                    self.assertEqual(outcome.wrong, 0)
            self.assertTrue(sweeps.seconds)
            self.assertEqual(storm.lost(sm, agents), [])
            storm.settle(sm, 120)
            some = random.Random(1).sample(range(2, self.tree.hosts + 1), 5)
            self.assertEqual(storm.strange_ports(self.tree, sm, some), {})
            sm.kill()
            sm.start(timeout=120)
            self.assertEqual(storm.lost(sm, agents), [])
        self.assertEqual(storm.strange_ports(self.tree, sm, some), {})
        self.assertEqual(sm.stop(), 0)
        self.assertNotIn(" ERR ", sm.log())


tap.main(__name__)
