#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Faults planted in products (meson.build): the sanitizers' tests have to fail, and to say where."""

import os
import pathlib
import subprocess
import unittest

import tap

TESTS = pathlib.Path(__file__).resolve().parents[1]
STRAND, PLUGIN = os.environ.get("VHCA_PLANTED_STRAND"), os.environ["VHCA_PLANTED_PLUGIN"]
LIFE = ["/usr/bin/python3", str(TESTS / "integration/test_sm_life.py")]
STRESS = ["/usr/bin/python3", str(TESTS / "integration/test_sm_stress.py")]


class Planted(unittest.TestCase):
    def fails(self, argv, *words):
        done = subprocess.run(argv, env={**os.environ, "VHCA_PLUGIN": PLUGIN}, capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        for word in words:
            self.assertIn(word, done.stdout)


class Races(Planted):
    def test_strand_read_without_lock(self):
        self.fails([TESTS / "threads.py", STRAND], "ThreadSanitizer: data race", "vhca_strand_busy_since strand.c")

    def test_locks_in_both_orders(self):
        self.fails([TESTS / "threads.py", os.environ["VHCA_PLANTED_LOCKS"]], "ThreadSanitizer: lock-order-inversion", "back planted_locks.c")

    def test_gate_read_without_lock(self):
        self.fails([TESTS / "threads.py", *STRESS], "ThreadSanitizer: data race", "vhca_osm_gate_sweeps gate.c", "vhca_osm_gate_sweep_end gate.c")


class Leaks(Planted):
    def test_plugin_is_not_freed(self):
        self.fails(LIFE, "irect leak of")


for name in ("Leaks",) if STRAND else ("Races",):
    del globals()[name]    # of the other sanitizer
del Planted

tap.main(__name__)
