#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Benchmarks fail when something is slow: a slow-down is planted where that is cheap, else what was measured is made up."""

import contextlib
import importlib
import io
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import figures
import page
import tap

HERE = pathlib.Path(__file__).resolve().parent
BUILD = os.environ.get("VHCA_BUILD_DIR")
sys.path.insert(0, str(HERE.parents[1] / "tools"))
bench = importlib.import_module("bench")

IDENTITY = {"bare": (1000, 0, 0, 0), "program": (1290, 16128, 48890, 17136), "again": (1060, 0, 32508, 17136),
            "scrub": (1070, 16128, 32508, 16884), "cheapest": (500, 0, 0, 0), "shell": (8800, 16128, 0, 16128)}
PINNING = {"clear": (3000000, 0), "4k": (1700000, 50000), "4k-used": (75000, 40000), "2m": (900000, 35000), "2m-used": (6000, 35000)}
PLAIN = {"detach": 3.5, "copy": 16, "attach": 1, "total": 21, "without": 21, "removed_to_migrate": 3200, "resumed_to_attach": 2700}
OURS = PLAIN | {"total": 19, "without": 18, "removed_to_migrate": 145, "resumed_to_attach": 87, "resumed_to_granted": 3500}
OPENNEBULA = {"ruby, start": [(100, 120)], "stand-in of pci.rb": [(170, 200)], "probe": [(120, 150)]} | {
    f"{kind}/{action}, {whose}": [(took, took)] for action in ("deploy", "migrate")
    for kind, whose, took in (("kvm", "other VM", 5), ("vhca", "other VM", 8), ("kvm", "a VM of ours", 5), ("vhca", "a VM of ours", 220))}
OPENSTACK = [0.004] * 9, [0.3] * 9, 0, 0, [0.002] * 9
BLACKOUT = {"three_commits": (1.5, 3, 5), "removed_to_migrate": (1.8, 6.9, 9), "resumed_to_attach": (0.7, 1.5, 2), "resumed_to_granted": (1.9, 5, 6)}


def quietly(function, *args):
    """(result, what was said)"""
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        return function(*args), text.getvalue()


def module(name):
    return importlib.import_module(f"bench_{name}")


def all_bounds():
    """{benchmark: its bounds}"""
    plain = ("hook", "blackout", "channels", "opennebula", "openstack", "identity", "pinning", "migration")
    return {name: module(name).BOUNDS for name in plain} | {
        "doors": module("doors").bounds(60), "vswitch": module("vswitch").bounds(324), "vports": module("vswitch").bounds("vports"),
        "storm": module("storm").bounds(46256)}


def figure_at(bound, factor):
    """(value, base) for a figure at the limit of a bound, or so far from it."""
    what, _, limit = bound.split(" or ")[0].split()
    at = float(limit) * factor if float(limit) else factor - 1
    return (at, 1) if what == "ratio" else (at, None)


class Bounds(unittest.TestCase):
    def run_all(self, name, bounds, change=None, factor=1.0, without=None):
        """Exit code of a run whose figures stand at their limits, but for one."""
        ret = figures.Figures(name, bounds)
        for figure, bound in bounds.items():
            if figure != without:
                value, base = figure_at(bound, factor if figure == change else 1.0)
                ret.add(figure, value, "s", "x", base)
        return ret.end()

    def test_each_bound_breaks_alone(self):
        """at its limit it holds; beyond, or when nothing was measured, the run fails"""
        for name, bounds in all_bounds().items():
            self.assertGreater(len(bounds), 1, name)
            self.assertEqual(quietly(self.run_all, name, bounds)[0], 0, name)
            for figure, bound in bounds.items():
                beyond = 0.9 if ">=" in bound else 1.1
                for how in ({"change": figure, "factor": beyond}, {"without": figure}):
                    with self.subTest(f"{name}: {figure} {how}"):
                        self.assertEqual(quietly(lambda: self.run_all(name, bounds, **how))[0], 1)

    def test_bound_without_ratio_breaks(self):
        self.assertFalse(figures.holds("ratio <= 3", {"ratio": None, "value": 1}))

    def test_either_bound_is_enough(self):
        for value, ratio, kept in ((9, 7, True), (20, 4, True), (20, 7, False), (20, None, False)):
            self.assertEqual(figures.holds("value <= 10 or ratio <= 5", {"value": value, "ratio": ratio}), kept)

    def test_results_are_lines_of_json(self):
        with tempfile.NamedTemporaryFile("r") as f:
            os.environ[figures.RESULTS] = f.name
            self.addCleanup(os.environ.pop, figures.RESULTS)
            quietly(self.run_all, "x", {"a": "ratio <= 2", "b": "value == 0"}, "b", 2)
            a, b = map(json.loads, f)
        self.assertEqual(a, {"benchmark": "x", "name": "a", "value": 2, "unit": "s", "ratio": 2, "of": "x", "bound": "ratio <= 2", "ok": True})
        self.assertEqual((b["name"], b["ok"]), ("b", False))


class Slowed(unittest.TestCase):
    def run_bench(self, name, *args):
        p = subprocess.run([sys.executable, "-B", HERE / f"bench_{name}.py", BUILD, *args], stdout=subprocess.PIPE, text=True, check=False)
        return p.returncode, p.stdout

    def test_hook(self):
        """/bin/true in its place is as fast as /bin/true; a shell that sleeps is not"""
        code, text = self.run_bench("hook", "300", "--hook", "/bin/true")
        self.assertRegex(text, r"(?m)^hook, median .* ok: ")
        with tempfile.NamedTemporaryFile("w", suffix=".sh", delete=False) as f:
            self.addCleanup(os.unlink, f.name)
            f.write("#!/bin/sh\nsleep 0.1\n")
        os.chmod(f.name, 0o755)
        code, text = self.run_bench("hook", "10", "--hook", f.name)
        self.assertEqual(code, 1)
        self.assertRegex(text, r"(?m)^hook, median .* FAILED: ratio")

    def test_blackout(self):
        """two hosts that wait for each other, as no two hosts do"""
        code, text = self.run_bench("blackout", "4", "--wait-ms", "30")
        self.assertEqual(code, 1)
        self.assertRegex(text, r"(?m)^DEVICE_REMOVED to migrate, p99 .* FAILED: value")


class MadeUp(unittest.TestCase):
    """What the rig would measure."""

    def expect(self, name, good, bad):
        """good: arguments of report(); bad: {figure that breaks: other arguments}"""
        code, text = quietly(module(name).report, *good)
        self.assertEqual(code, 0, text)
        for broken, args in bad.items():
            with self.subTest(broken):
                code, text = quietly(module(name).report, *args)
                self.assertEqual(code, 1)
                self.assertRegex(text, rf"(?m)^{broken} .*FAILED")

    def test_opennebula(self):
        slow = {"probe, processor": {"probe": [(300, 150)]}, "probe, clock": {"probe": [(120, 2000)]},
                "deploy adds, other VM, processor": {"vhca/deploy, other VM": [(105, 8)]},
                "migrate adds, other VM, fastest, clock": {"vhca/migrate, other VM": [(8, 17), (8, 18)]},
                "migrate adds, a VM of ours, clock": {"vhca/migrate, a VM of ours": [(220, 900)]}}
        self.expect("opennebula", (OPENNEBULA,), {k: (OPENNEBULA | v,) for k, v in slow.items()})

    def test_openstack(self):
        again, python, writes, refused, up = OPENSTACK
        self.expect("openstack", OPENSTACK, {
            "add-port again, p50": ([0.04] * 9, python, writes, refused, up), "nova-compute restarts, writes": (again, python, 1, refused, up),
            "nova-compute restarts, refused": (again, python, writes, 1, up), "UP behind the begin, p99": (again, python, writes, refused, [*up, 60])})

    def test_identity(self):
        bad = {"the same again, writes": {"again": (1060, 1, 0, 0)}, "all programmed": {"program": (2100, 16128, 0, 0)},
               "all programmed, writes": {"program": (1290, 16129, 0, 0)}, "all scrubbed, writes": {"scrub": (1070, 16127, 0, 0)}}
        self.expect("identity", (IDENTITY,), {k: (IDENTITY | v,) for k, v in bad.items()})

    def test_pinning(self):
        self.expect("pinning", (PINNING, 512), {"huge pages, beside 4 KiB, touched, pin": (PINNING | {"2m-used": (75000, 1)}, 512),
                                                "huge pages, touched, pin": (PINNING | {"2m-used": (600000, 1)}, 512)})

    def test_migration(self):
        slow = {"whole migration": ("total", 60), "time without the VF": ("without", 60), "DEVICE_REMOVED to migrate, p50": ("removed_to_migrate", 1900),
                "RESUMED to attach, p99": ("resumed_to_attach", 2100)}
        self.expect("migration", ({"ours": [OURS], "plain": [PLAIN]},),
                    {name: ({"ours": [OURS | {key: value}], "plain": [PLAIN]},) for name, (key, value) in slow.items()})

    def test_channels(self):
        found = {"tables": 70, "number": 200, "deterministic": 0.1, "skyline": 0.4}
        self.expect("channels", (found,), {"11664: numbering of channels": (found | {"number": 900},), "11664: a skyline plan across leaves, numbered": (found | {"skyline": 8},)})

    def test_blackout(self):
        self.expect("blackout", (BLACKOUT,), {"RESUMED to attach, p99": (BLACKOUT | {"resumed_to_attach": (1, 16, 17)},),
                                              "DEVICE_REMOVED to migrate, p99": (BLACKOUT | {"removed_to_migrate": (8, 16, 17)},)})


class Page(unittest.TestCase):
    def setUp(self):
        top = tempfile.TemporaryDirectory()
        self.addCleanup(top.cleanup)
        self.top = pathlib.Path(top.name)
        (self.top / "docs").mkdir()
        self.page = self.top / "docs/bench.md"
        for name in ("BENCHES", "ROOT", "commit"):
            self.addCleanup(setattr, bench, name, getattr(bench, name))
        for name in ("README.md", "NEWS.md"):
            (self.top / name).write_text("it costs [7.0](docs/bench.md#a-x-y-ratio), see [there](docs/bench.md#a-x-y)\n")

    def play(self, **scripts):
        """tools/bench with shell scripts in the benchmarks' place: (exit code, what was said)."""
        bench.ROOT, bench.commit, bench.BENCHES = self.top, lambda: "0", {name: bench.Bench("hook") for name in scripts}
        for name, script in scripts.items():
            bench.BENCHES[name].argv = lambda build, s=script: ["sh", "-c", s]
            bench.BENCHES[name].about = lambda: "what it is"
        return quietly(bench.play, list(scripts), None, self.page)

    def line(self, ok, name="x, y", benchmark="a"):
        figure = {"benchmark": benchmark, "name": name, "value": 3.0, "unit": "ms", "ratio": 1.5, "of": "z", "bound": "ratio <= 2", "ok": ok}
        return f"echo '{json.dumps(figure)}' >> $VHCA_BENCH_RESULTS"

    def test_good_run_writes_page_and_quotes(self):
        code, text = self.play(a=self.line(True))
        self.assertEqual((code, text.splitlines()[-1]), (0, "1 benchmarks kept their bounds, 0 did not"))
        self.assertEqual(page.values(self.page), {"a-x-y": "3", "a-x-y-ratio": "1.50"})
        self.assertEqual(page.sections(self.page), {"a": {"x, y": ("ratio <= 2", "ok")}})
        self.assertIn("it costs [1.50](docs/bench.md#a-x-y-ratio), see [there](docs/bench.md#a-x-y)", (self.top / "README.md").read_text())

    def test_other_sections_stay(self):
        self.play(a=self.line(True), b=self.line(True, "q", "b"))
        self.play(a="true", b=self.line(True, "r", "b"))
        self.assertEqual(list(page.sections(self.page)), ["a", "b"])
        self.assertEqual(list(page.sections(self.page)["b"]), ["r"])

    def test_what_is_not_good_is_said(self):
        for script, word in ((self.line(False) + "; exit 1", "bounds broken"), (self.line(False), "bounds broken"), ("true", "no bound"),
                             (self.line(True) + "; exit 1", "exit code 1"), (self.line(True) + "; kill -9 $$", "exit code -9"),
                             (self.line(None), "no bound")):
            with self.subTest(script):
                code, text = self.play(a=script, b=self.line(True))
                self.assertEqual((code, text.splitlines()[-1]), (1, "1 benchmarks kept their bounds, 1 did not"))
                self.assertIn(word, text)

    def test_broken_bound_stands_on_the_page(self):
        self.play(a=self.line(False))
        self.assertEqual(page.sections(self.page)["a"]["x, y"], ("ratio <= 2", "FAILED"))


tap.main(__name__)
