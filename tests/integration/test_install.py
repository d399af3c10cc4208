#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What `meson install` puts where, by meson's own list: programs have pages, units begin what is there, Python finds what is its own."""

import importlib.metadata
import json
import os
import pathlib
import re
import shutil
import site
import subprocess
import tempfile
import unittest

import tap

META = pathlib.Path(os.environ["VHCA_BUILD_DIR"]) / "meson-info"
NEUTRON_CONF = "/etc/neutron/neutron.conf"


def introspect(what):
    return json.loads((META / f"intro-{what}.json").read_text("utf-8"))


# Where it goes: where it comes from.
FILES = {pathlib.Path(there): pathlib.Path(here) for here, there in introspect("installed").items()}
PACKAGE = {there: here for there, here in FILES.items() if there.parent.name.startswith("networking_vhca")}


class Installation(unittest.TestCase):
    def test_each_program_has_a_page(self):
        pages = {there.stem for there in FILES if there.parent.parent.name == "man"}
        programs = {there.name for there in FILES if there.parent.name in ("bin", "sbin")}
        self.assertGreater(len(programs), 4)
        self.assertEqual(programs - pages, set())

    def test_units_begin_what_is_installed(self):
        """with files that are there; neutron.conf is Neutron's, which has it below /etc"""
        units = [here for there, here in FILES.items() if there.suffix == ".service" and "systemd" in there.parts]
        self.assertEqual(len(units), 4)
        for unit in units:
            for word in re.findall(r"/\S+", re.search(r"^ExecSt(?:art|op)=(.*)", unit.read_text("utf-8"), re.M)[1]):
                with self.subTest(f"{unit.name}: {word}"):
                    self.assertTrue(word == NEUTRON_CONF or pathlib.Path(word) in FILES)

    @unittest.skipUnless(shutil.which("systemd-analyze"), "systemd-analyze is not installed")
    def test_vhcads_unit_leaves_little_open(self):
        """and says of each item why"""
        unit = next(here for there, here in FILES.items() if there.name == "vhcad.service")
        with tempfile.TemporaryDirectory() as where:
            shutil.copy(unit, where)
            ask = ["systemd-analyze", "security", "--offline=true", "--no-pager", "--threshold=25"]
            done = subprocess.run([*ask, f"{where}/vhcad.service"], capture_output=True, text=True, timeout=60, check=False)
            rows = json.loads(subprocess.run([*ask, "--json=short", f"{where}/vhcad.service"], capture_output=True, text=True, timeout=60, check=False).stdout)
        print(f"# {done.stdout.splitlines()[-1]}", flush=True)
        self.assertEqual(done.returncode, 0, done.stdout)
        reasons = [word for line in re.findall(r"^#   (\S.*?): ", unit.read_text("utf-8"), re.M) for word in line.split(", ")]
        found = {row["name"] for row in rows if row["exposure"]}
        self.assertEqual({re.sub(r"=(/.*)?$", "", name) for name in found}, set(reasons))

    def test_guests_are_parked_before_libvirt_guests_ends(self):
        """what is begun last is stopped first, and the agent is there until then"""
        unit = next(here for there, here in FILES.items() if there.name == "vhcad-park.service").read_text("utf-8")
        after = re.search(r"^After=(.*)", unit, re.M)[1].split()
        self.assertLessEqual({"vhcad.service", "libvirt-guests.service", "libvirtd.service", "virtqemud.service"}, set(after))
        self.assertIn("\nRemainAfterExit=yes\n", unit)

    def test_python_finds_its_package(self):
        """Debian's looks into /usr/lib/python3 and /usr/local/lib/python3.N; for another prefix there is PYTHONPATH"""
        folders = {str(there.parents[1]) for there in PACKAGE}
        self.assertEqual(len(folders), 1)
        if next(o["value"] for o in introspect("buildoptions") if o["name"] == "prefix") in ("/usr", "/usr/local"):
            self.assertLessEqual(folders, set(site.getsitepackages()))

    def test_entry_point_leads_to_the_driver(self):
        with tempfile.TemporaryDirectory() as stage:
            for there, here in PACKAGE.items():
                (pathlib.Path(stage) / there.parent.name).mkdir(exist_ok=True)
                shutil.copy(here, pathlib.Path(stage) / there.parent.name)
            found = [(d.metadata["Name"], d.version, d.entry_points) for d in importlib.metadata.distributions(path=[stage])]
            self.assertEqual([names[:2] for names in found], [("networking-vhca", introspect("projectinfo")["version"])])
            entry = next(e for e in found[0][2] if (e.group, e.name) == ("neutron.ml2.mechanism_drivers", "vhca"))
            module, _, name = entry.value.partition(":")
            self.assertIn(f"\nclass {name}(", pathlib.Path(stage, *module.split(".")).with_suffix(".py").read_text("utf-8"))


tap.main(__name__)
