#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Many agents at one OpenSM at once, in small; tests/bench/bench_storm.py has them all, with figures."""

import concurrent.futures
import contextlib
import os
import random

import fabric
import fattree
import storm
import tap

AGENTS, VFS, MOVES, WINDOW = 100, 16, 50, 16
ALL = 3000    # agents of a large subnet
MOST = 32 << 20    # of OpenSM, with all that it answers


def bindings(sm):
    """So many as the plugin says, 0 where it does not: all come from one address, which may have no place more."""
    with contextlib.suppress(ConnectionResetError):
        return sm.api.call("GET", "/healthz", timeout=60)[1]["bindings"]
    return 0


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

    def test_all_report_at_once_to_an_opensm_that_boots(self):
        """in its first sweep, and a kill -9 and its next boot in the middle: nothing is lost, and memory does not grow with those that wait"""
        address = f"127.0.0.1:{fabric.free_port()}"
        sm = self.manager(listen=address)
        sm.asan = ":quarantine_size_mb=1"    # else what was freed counts as well
        sm.start(timeout=120)
        before = storm.peak(sm)
        sm.kill()
        with storm.Agents(os.environ["VHCA_STORM_AGENTS"], f"http://{address}", ALL, 1, self.tree.hosts) as agents:
            with concurrent.futures.ThreadPoolExecutor(1) as pool:
                storming = pool.submit(agents.run, "register", ALL, ALL)
                sm.start(timeout=120)
                fabric.wait_for("some have been heard", lambda: bindings(sm) > ALL // 16, 120)
                self.assertFalse(storming.done())
                peaks = [storm.peak(sm)]
                sm.kill()
                sm.start(timeout=120)
                outcome = storming.result()
            peaks.append(storm.peak(sm))
            print(f"# {outcome}; memory {before >> 20} MiB, at most {[peak >> 20 for peak in peaks]}", flush=True)
            self.assertEqual((outcome.n, outcome.wrong), (ALL, 0))
            self.assertEqual(storm.lost(sm, agents), [])
            self.assertLess(max(peaks) - before, MOST)
        self.assertEqual(sm.stop(), 0)


tap.main(__name__)
