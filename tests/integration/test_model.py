#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The models of tests/model in spin: no error as they are, and an error in each variant that leaves a fence, or a rule, out."""

import os
import pathlib
import subprocess
import tempfile
import unittest

import tap

MODELS = pathlib.Path(os.environ["VHCA_SOURCE_DIR"]) / "tests/model"


def search(variant, seconds=240, model="fencing.pml", level="-O2"):
    """All interleavings of one variant: (number of errors, what spin said)."""
    with tempfile.TemporaryDirectory() as where:
        subprocess.run(["spin", "-a", *variant, str(MODELS / model)], cwd=where, check=True, timeout=seconds,
                       stdout=subprocess.PIPE)
        subprocess.run(["cc", level, "-w", "-DSAFETY", "-DCOLLAPSE", "-DMEMLIM=2048", "-o", "pan", "pan.c"],
                       cwd=where, check=True, timeout=seconds)
        out = subprocess.run(["./pan", "-m200000"], cwd=where, check=True, timeout=seconds,
                             stdout=subprocess.PIPE, text=True).stdout
    complete = "max search depth too small" not in out and "out of memory" not in out
    errors = int(out.split("errors:")[1].split()[0])
    return errors if errors or complete else None, out


class Fencing(unittest.TestCase):
    def test_one_owner_in_every_interleaving(self):
        errors, said = search([])
        self.assertEqual(errors, 0, said)

    def test_an_sm_without_epochs_is_refuted(self):
        self.assertEqual(search(["-DBROKEN_SM"])[0], 1)

    def test_a_source_without_an_arbiter_is_refuted(self):
        self.assertEqual(search(["-DBROKEN_SOURCE"])[0], 1)

    def test_an_epoch_that_is_spent_before_its_state_is_refuted(self):
        self.assertEqual(search(["-DBROKEN_SPENDING"])[0], 1)

    def test_an_sm_that_knows_nothing_follows_a_dead_agent(self):
        errors, said = search(["-DFORGETS"])
        self.assertEqual(errors, 0, said)

    def test_a_report_of_what_is_kept_for_a_guest_is_refuted(self):
        self.assertEqual(search(["-DFORGETS", "-DBROKEN_SILENCE"])[0], 1)


class Authority(unittest.TestCase):
    @staticmethod
    def search(*variant):
        return search([f"-D{word}" for word in variant], model="authority.pml", level="-O0")    # the compiler takes longer than the search

    def test_an_attacker_gets_nothing_and_no_owner_is_refused(self):
        errors, said = self.search()
        self.assertEqual(errors, 0, said)

    def test_each_rule_is_needed(self):
        for variant in ("REACHED", "ANY_HIGHER", "BEARER", "REPLAYED", "LAST_TICKET", "NEVER_SETTLED", "FREED", "FIRST_WORD", "UNDATED", "OWNER_GONE", "ANNOUNCED"):
            with self.subTest(variant):
                self.assertEqual(self.search(variant)[0], 1)


tap.main(__name__)
