#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Prometheus' own promtool: drivers/prometheus/vhcad.rules.yaml, of which each alert fires when it should, says about what, and is quiet
else; and what vhcad says of itself, on a simulated ConnectX-3."""

import platform
import re
import shutil
import subprocess
import tempfile
import unittest

import yaml

import debian
import openapi
import tap
from host_case import HostCase

RULES = openapi.ROOT / "drivers/prometheus/vhcad.rules.yaml"
# Debian 12's; only promtool of it is run.
PACKAGE = "pool/main/p/prometheus/prometheus_2.42.0+ds-5+deb12u1_amd64.deb"
SHA256 = "81d59a24fce84f7fbe97a45a4f2914b6a5881b5cd1db2a6a0e129e515e1a5f55"

HOST = 'instance="hv1",job="vhcad"'
OTHER = 'instance="hv2",job="vhcad"'
PORT = HOST + ',fabric="default"'
SM1, SM2 = 'instance="sm1",job="vhcasm"', 'instance="sm2",job="vhcasm"'
# A host of the textfile collector, whose agent ended a minute after the beginning; the clock of a test begins at 0.
OLD = 'node_textfile_mtime_seconds{instance="hv1",job="node",file="%s"}'


def tables(entries, free):
    return {f"vhcad_pkey_table_entries{{{PORT}}}": f"{entries}x120", f"vhcad_pkey_table_free{{{PORT}}}": f"{free}x120"}


def vfs(free, attached, quarantined=0):
    return {f'vhcad_vfs{{{host},fabric="default",state="{state}"}}': f"{n}x120" for host in (HOST, OTHER)
            for state, n in (("free", free), ("attached", attached), ("quarantined", quarantined))}


# (alert, series by the minute, minute, labels of what fires, its $value; no labels: it does not fire)
CASES = [
    ("VhcadAway", {f"up{{{HOST}}}": "1 1 0x10"}, 5, HOST, 0),
    ("VhcadAway", {f"up{{{HOST}}}": "1 0 1x10"}, 5, None, 0),     # a restart
    ("VhcadAway", {OLD % "/var/lib/prometheus/node-exporter/vhcad.prom": "60x20"}, 9,
     'instance="hv1",job="node",file="/var/lib/prometheus/node-exporter/vhcad.prom"', 480),
    ("VhcadAway", {OLD % "vhcad.prom": "60x20"}, 9, 'instance="hv1",job="node",file="vhcad.prom"', 480),
    ("VhcadAway", {OLD % "vhcad.prom": "0+60x20"}, 15, None, 0),
    ("VhcadAway", {OLD % "/x/other-vhcad.prom": "60x20"}, 15, None, 0),
    ("VhcadNotReady", {f"vhcad_ready{{{HOST}}}": "0x10"}, 6, HOST, 0),
    ("VhcadNotReady", {f"vhcad_ready{{{HOST}}}": "0x3 1x10"}, 8, None, 0),        # a boot
    ("VhcadNotReady", {f"vhcad_ready{{{HOST}}}": "0x2 stale"}, 8, None, 0),       # the agent is away: that is another alert
    ("VhcadStoreNotWritable", {f"vhcad_store_writable{{{HOST}}}": "1 0x5"}, 3, HOST, 0),
    ("VhcadStoreNotWritable", {f"vhcad_store_writable{{{HOST}}}": "1 0 1x5"}, 3, None, 0),
    ("VhcadLibvirtAway", {f"vhcad_libvirt_connected{{{HOST}}}": "0x20"}, 11, HOST, 0),
    ("VhcadLibvirtAway", {f"vhcad_libvirt_connected{{{HOST}}}": "0x8 1x9"}, 11, None, 0),
    ("VhcadPortDownWithGuests", {f"vhcad_ports_down_with_guests{{{PORT}}}": "0 1x5"}, 3, PORT, 1),
    ("VhcadPortDownWithGuests", {f"vhcad_ports_down_with_guests{{{PORT}}}": "0x9"}, 5, None, 0),
    ("VhcadAdapterAway", {f'vhcad_ready_reasons{{{HOST},code="hca_absent"}}': "0 1x9"}, 4, HOST + ',code="hca_absent"', 1),
    ("VhcadAdapterAway", {f'vhcad_ready_reasons{{{HOST},code="hca_absent"}}': "0 1 0x9"}, 4, None, 0),     # reset by its driver
    ("VhcadAdapterAway", {f'vhcad_ready_reasons{{{HOST},code="drained"}}': "1x9"}, 9, None, 0),
    ("VhcadAdapterProblem", {f'vhcad_ready_reasons{{{HOST},code="hca_problem"}}': "1x20"}, 12, HOST + ',code="hca_problem"', 1),
    ("VhcadAdapterProblem", {f'vhcad_ready_reasons{{{HOST},code="hca_problem"}}': "0x20"}, 12, None, 0),
    ("VhcadSubnetManagerAway", {f"vhcad_sm_reachable{{{HOST}}}": "0x30"}, 16, HOST, 0),
    ("VhcadSubnetManagerAway", {f"vhcad_sm_reachable{{{HOST}}}": "0x10 1x20"}, 16, None, 0),
    ("VhcadOutboxOld", {f"vhcad_outbox_oldest_seconds{{{HOST}}}": "0+60x30"}, 22, HOST, 1320),
    ("VhcadOutboxOld", {f"vhcad_outbox_oldest_seconds{{{HOST}}}": "0x30"}, 22, None, 0),
    ("VhcadMigrationWithoutVf", {f"vhcad_migration_without_vf_seconds{{{HOST}}}": "0+60x10"}, 6, HOST, 360),
    ("VhcadMigrationWithoutVf", {f"vhcad_migration_without_vf_seconds{{{HOST}}}": "0 60 120 0x9"}, 6, None, 0),
    ("VhcadPortHeldBack", {f'vhcad_ports_waiting{{{PORT},for="sm"}}': "1x20"}, 11, PORT + ',for="sm"', 1),
    ("VhcadPortHeldBack", {f'vhcad_ports_waiting{{{PORT},for="domain"}}': "1x20"}, 11, None, 0),
    ("VhcadQuarantine", vfs(8, 8, 1), 16, [f'{host},fabric="default",state="quarantined"' for host in (HOST, OTHER)], 1),
    ("VhcadQuarantine", vfs(8, 8), 16, None, 0),
    ("VhcadFewVfsFree", vfs(1, 15), 31, 'fabric="default"', 2),
    ("VhcadFewVfsFree", vfs(4, 12), 31, None, 0),
    ("VhcadFewVfsFree", vfs(0, 0), 31, None, 0),                  # no adapter has VFs
    ("VhcadPkeyTableNearlyFull", tables(128, 7), 11, PORT, 7),
    ("VhcadPkeyTableNearlyFull", tables(128, 8), 11, None, 0),
    ("VhcadPkeyTableNearlyFull", tables(0, 0), 11, None, 0),      # not known yet
    ("VhcadDrift", {f"vhcad_drift_repairs_total{{{HOST}}}": "0x10 1x100"}, 15, HOST, 1),
    ("VhcadDrift", {f"vhcad_drift_repairs_total{{{HOST}}}": "0x10 1x100"}, 75, None, 0),     # an hour later
    ("VhcadDrift", {f"vhcad_drift_repairs_total{{{HOST}}}": "7x10 0x100"}, 15, None, 0),     # a restart
    ("VhcadDrift", {f"vhcad_drift_repairs_total{{{HOST}}}": "7x10 1x100"}, 15, HOST, 1),     # found by the one that began
    ("VhcadLoopStalls", {f"vhcad_loop_stalls_total{{{HOST}}}": "0x5 12x100"}, 40, HOST, 12),
    ("VhcadLoopStalls", {f"vhcad_loop_stalls_total{{{HOST}}}": "0x5 9x100"}, 40, None, 0),
    ("VhcasmNoMaster", {f"vhcasm_ready{{{SM1}}}": "0x20", f"vhcasm_ready{{{SM2}}}": "0x20"}, 6, 'job="vhcasm"', 0),
    ("VhcasmNoMaster", {f"vhcasm_ready{{{SM1}}}": "1x20", f"vhcasm_ready{{{SM2}}}": "0x20"}, 6, None, 0),
    ("VhcasmNoMaster", {f"vhcasm_ready{{{SM1}}}": "1 stale", f"up{{{SM1}}}": "1 0x20", f"vhcasm_ready{{{SM2}}}": "0 1x20"}, 9, None, 0),
    # None of one fabric answers, and another fabric's is well.
    ("VhcasmNoMaster", {'up{instance="a",job="vhcasm-a"}': "0x20", f"vhcasm_ready{{{SM1}}}": "1x20", f"up{{{SM1}}}": "1x20"}, 6,
     'job="vhcasm-a"', 0),
    ("VhcasmNoMaster", {f"up{{{HOST}}}": "1x20", 'up{instance="hv1",job="node"}': "0x20"}, 6, None, 0),      # without the plugin
    ("VhcasmOutdated", {f'vhcasm_ready_reasons{{{SM1},code="outdated"}}': "1x20"}, 6, SM1 + ',code="outdated"', 1),
    ("VhcasmOutdated", {f'vhcasm_ready_reasons{{{SM1},code="rebuilding"}}': "1x20"}, 6, None, 0),
    ("VhcasmComputesWays", {f"vhcasm_subnet_age_seconds{{{SM1}}}": "0+60x20"}, 11, SM1, 660),
    ("VhcasmComputesWays", {f"vhcasm_subnet_age_seconds{{{SM1}}}": "0 60 120 0x20"}, 11, None, 0),
]


def find_promtool():
    """None: it cannot be had."""
    there = shutil.which("promtool")
    tree = None if there or platform.machine() != "x86_64" else debian.fetch(PACKAGE, SHA256, "prometheus-2.42.0")
    return there or tree and str(tree / "usr/bin/promtool")


PROMTOOL = find_promtool()


def run(*args, text=None):
    return subprocess.run([PROMTOOL, *args], input=text, capture_output=True, text=True, timeout=120, check=False)


def expand(text, labels, value):
    """An annotation, by the two templates that there are."""
    text = re.sub(r"\{\{ \$labels\.(\w+) \}\}", lambda m: labels[m[1]], text)
    return re.sub(r"\{\{ \$value(?: \| printf \"%\.0f\")? \}\}", str(value), text)


def expect(rule, series_labels, value):
    labels = dict(re.findall(r'(\w+)="([^"]*)"', series_labels))
    return {"exp_labels": {**labels, **rule["labels"]},
            "exp_annotations": {name: expand(text, labels, value) for name, text in rule["annotations"].items()}}


def story(rule, series, minute, labels, value):
    fires = [labels] if isinstance(labels, str) else labels or []
    return {"interval": "1m", "name": f"{rule['alert']} at {minute} of {series}",
            "input_series": [{"series": name, "values": values} for name, values in series.items()],
            "alert_rule_test": [{"eval_time": f"{minute}m", "alertname": rule["alert"], "exp_alerts": [expect(rule, one, value) for one in fires]}]}


@unittest.skipUnless(PROMTOOL, "there is no promtool, nor Debian 12's package of it")
class Alerts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with open(RULES, encoding="utf-8") as f:
            cls.rules = {rule["alert"]: rule for group in yaml.load(f, openapi.Once)["groups"] for rule in group["rules"]}

    def check(self, cases):
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as f:
            yaml.safe_dump({"rule_files": [str(RULES)], "evaluation_interval": "1m", "tests": [story(self.rules[case[0]], *case[1:]) for case in cases]}, f)
            f.flush()
            return run("test", "rules", f.name)

    def test_promtool_agrees(self):
        p = run("check", "rules", str(RULES))
        self.assertEqual(p.returncode, 0, p.stdout + p.stderr)

    def test_each_fires_and_is_quiet(self):
        p = self.check(CASES)
        self.assertEqual(p.returncode, 0, p.stdout + p.stderr)

    def test_all_are_here(self):
        for fires in (True, False):
            self.assertEqual({case[0] for case in CASES if bool(case[3]) == fires}, set(self.rules))

    def test_the_other_tests_can_fail(self):
        alert, series, minute, labels, value = next(case for case in CASES if case[3])
        for case in ((alert, series, minute, None, value), (alert, series, minute, labels.replace("hv1", "hv2"), value)):
            self.assertNotEqual(self.check([case]).returncode, 0)


@unittest.skipUnless(PROMTOOL, "there is no promtool, nor Debian 12's package of it")
class Exposition(HostCase):
    def older(self):
        """In the text format before OpenMetrics, the only one that `promtool check metrics` reads: a counter is called as its sample."""
        text = self.host.get("/metrics")[1]
        for name in re.findall(r"^# TYPE (\w+) counter$", text, re.M):
            text = re.sub(rf"^# (\w+) {name} ", rf"# \1 {name}_total ", text, flags=re.M)
        return text

    def test_promtool_agrees(self):
        p = run("check", "metrics", text=self.older())
        self.assertEqual((p.returncode, p.stdout + p.stderr), (0, ""))

    def test_promtool_can_refuse(self):
        self.assertNotEqual(run("check", "metrics", text=re.sub(r"^# HELP.*\n", "", self.older(), count=1, flags=re.M)).returncode, 0)


tap.main(__name__)
