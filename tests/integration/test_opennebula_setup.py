#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""vhca-one-setup on front-ends laid out as OpenNebula 6.10 and 7.4 lay theirs out."""

import os
import pathlib
import re
import shlex
import shutil
import stat
import subprocess
import tempfile
import unittest

import tap
from opennebula import DOUBLE, ROOT, STOCK, program, write

SETUP = ROOT / "drivers/opennebula/vhca-one-setup"
ATTRIBUTES = ["IB_GUID", "IB_PKEYS"]

# The same shape as what the packages ship: a commented example, brackets and quotes in comments, the two variants of kvm.
HEAD = """# A configuration [of oned] with "quotes", caf\xe9
#VM_MAD = [ NAME="kvm", EXECUTABLE="one_vmm_dummy", ARGUMENTS="-t 1 kvm" ]
DB = [ BACKEND = "sqlite" ]
"""
KVM = """
VM_MAD = [
    NAME           = "kvm",
    SUNSTONE_NAME  = "KVM",
    EXECUTABLE     = "one_vmm_exec",
    ARGUMENTS      = "-t 15 -r 0 kvm -p",
    DEFAULT        = "vmm_exec/vmm_exec_kvm.conf",
    TYPE           = "kvm",
    SUPPORT_SHAREABLE    = "yes"%s
]

# nested
VM_MAD = [
    NAME           = "qemu",
    EXECUTABLE     = "one_vmm_exec",
    ARGUMENTS      = "-t 15 -r 0 kvm",
    TYPE           = "qemu"
]
"""
ACTIONS = """,
    IMPORTED_VMS_ACTIONS = "terminate, terminate-hard, hold, release, suspend,
        resume, delete, reboot [x]"
"""
TAIL = """
VM_RESTRICTED_ATTR = "NIC/MAC"
INHERIT_VNET_ATTR       = "MTU"
VN_MAD_CONF = [
    NAME = "bridge",
    BRIDGE_TYPE = "linux"
]"""
LAYOUTS = {
    "6.10": (HEAD + KVM % ACTIONS.rstrip("\n") + TAIL + "\n", ["vgpu"]),
    "7.4": (HEAD + KVM % "" + TAIL, ["exec", "exec_cancel", "vgpu", "vtpm_setup"]),     # and no end of the last line
}


def tree(where):
    """{path: (mode, content)} of all that is there."""
    return {str(p.relative_to(where)): (stat.S_IMODE(p.stat().st_mode), p.read_bytes() if p.is_file() else None)
            for p in pathlib.Path(where).rglob("*")}


class SetupCase(unittest.TestCase):
    def front_end(self, release):
        where = pathlib.Path(tempfile.mkdtemp(prefix="vhca-one."))
        self.addCleanup(shutil.rmtree, where)
        conf, more = LAYOUTS[release]
        write(where / "etc/oned.conf", conf.encode("latin-1"))
        (where / "etc/oned.conf").chmod(0o640)
        for name in STOCK + more:
            program(where / "remotes/vmm/kvm" / name, DOUBLE)
        for name in ("save.ceph", "opennebula_vm.rb"):
            program(where / "remotes/vmm/kvm" / name, DOUBLE)
        write(where / "remotes/vmm/kvm/kvmrc", "LIBVIRT_URI=qemu:///system\n")
        program(where / "remotes/vnm/bridge/pre", DOUBLE)
        program(where / "remotes/im/kvm-probes.d/host/system/pci.rb", DOUBLE)
        return where

    def setup_tool(self, where, *args, code=0):
        p = subprocess.run([str(SETUP), *args, "--oned-conf", f"{where}/etc/oned.conf", "--remotes", f"{where}/remotes"],
                           capture_output=True, text=True, timeout=60, env={**os.environ, "LC_ALL": "C", "PATH": "/usr/bin:/bin"}, check=False)
        self.assertEqual(p.returncode, code, p.stdout + p.stderr)
        return p


class Trees(SetupCase):
    def test_install_check_remove_twice_each(self):
        for release in LAYOUTS:
            with self.subTest(release):
                where = self.front_end(release)
                before = tree(where)
                self.setup_tool(where, "--check", code=1)
                for _ in range(2):
                    self.setup_tool(where, "--install")
                    self.assertEqual(self.setup_tool(where, "--check").stdout, "")
                    once = tree(where)
                    self.setup_tool(where, "--install")
                    self.assertEqual(tree(where), once)
                    self.assertEqual({k: v for k, v in once.items() if k in before and k != "etc/oned.conf"},
                                     {k: v for k, v in before.items() if k != "etc/oned.conf"})
                    self.assertEqual(once["etc/oned.conf"][0], 0o640)
                    for _ in range(2):
                        self.setup_tool(where, "--remove")
                        self.assertEqual(tree(where), before)
                    self.setup_tool(where, "--check", code=1)

    def test_what_oned_reads_then(self):
        for release in LAYOUTS:
            with self.subTest(release):
                where = self.front_end(release)
                self.setup_tool(where, "--install")
                conf = re.sub("(?m)^#.*", "", (where / "etc/oned.conf").read_text("latin-1"))
                self.assertEqual(re.findall(r'NAME += "(\w+)",[^]]*?ARGUMENTS +=? *"(.*?)"', conf),
                                 [("kvm", "-t 15 -r 0 vhca -p"), ("qemu", "-t 15 -r 0 kvm")])
                self.assertIn('VN_MAD_CONF = [ NAME = "vhca", BRIDGE_TYPE = "linux" ]', conf)
                self.assertEqual(sorted(re.findall(r'INHERIT_VNET_ATTR\s*= "(IB_\w+)"', conf)), ATTRIBUTES)
                self.assertEqual(sorted(re.findall(r'VM_RESTRICTED_ATTR = "(.*(?:IB_\w+|PHYDEV))"', conf)),
                                 sorted(f"{n}/{a}" for n in ("NIC", "NIC_ALIAS", "NIC_DEFAULT") for a in [*ATTRIBUTES, "PHYDEV"]))
                self.assertEqual(sorted(re.findall(r'VNET_RESTRICTED_ATTR = "(.*IB_\w+)"', conf)),
                                 sorted(f"{ar}{a}" for ar in ("", "AR/") for a in ATTRIBUTES))

    def test_the_probe_is_one_of_the_release(self):
        where = self.front_end("7.4")
        self.setup_tool(where, "--install")
        probe = where / "remotes/im/kvm-probes.d/host/system/vhca"
        self.assertEqual((probe.read_bytes(), stat.S_IMODE(probe.stat().st_mode)), ((SETUP.parent / probe.relative_to(where / "remotes")).read_bytes(), 0o755))
        shutil.rmtree(where / "remotes/im")
        before = tree(where)
        self.assertIn("front-end", self.setup_tool(where, "--install", code=1).stderr)
        self.assertEqual(tree(where), before)

    def test_every_action_of_the_release_is_passed_on(self):
        where = self.front_end("7.4")
        self.setup_tool(where, "--install")
        self.assertLessEqual(set(STOCK + ["exec", "exec_cancel"]), {p.name for p in (where / "remotes/vmm/vhca").iterdir()})
        self.assertFalse((where / "remotes/vmm/vhca/pass").exists())
        (where / "rec").mkdir()
        p = subprocess.run([str(where / "remotes/vmm/vhca/exec"), "a b", ""], input=b"\0x", capture_output=True, timeout=60,
                           env={**os.environ, "REC": str(where / "rec")}, check=False)
        self.assertEqual((p.returncode, p.stdout, (where / "rec/kvm.exec.argv").read_bytes()), (0, b"stock exec\n", b"a b\0\0"))

    def test_check_names_what_an_upgrade_has_changed(self):
        where = self.front_end("6.10")
        self.setup_tool(where, "--install")
        program(where / "remotes/vmm/kvm/exec", DOUBLE)
        (where / "remotes/vmm/vhca/deploy").write_text("#!/bin/sh\n", "utf-8")
        write(where / "etc/oned.conf", LAYOUTS["7.4"][0].encode("latin-1"))
        said = self.setup_tool(where, "--check", code=1).stdout
        for what in ("vmm/vhca/exec", "vmm/vhca/deploy", "oned.conf is not set up"):
            self.assertIn(what, said)
        self.setup_tool(where, "--install")
        self.setup_tool(where, "--check")

    def test_what_the_administrator_changed_stays(self):
        where = self.front_end("7.4")
        conf = where / "etc/oned.conf"
        before = conf.read_bytes()
        self.setup_tool(where, "--install")
        conf.write_bytes(conf.read_bytes().replace(b"-t 15 -r 0 vhca", b"-t 30 -r 1 vhca") + b"\nLOG = [ SYSTEM = \"file\" ]\n")
        self.setup_tool(where, "--check")
        self.setup_tool(where, "--remove")
        self.assertEqual(conf.read_bytes(), before.replace(b"-t 15 -r 0 kvm -p", b"-t 30 -r 1 kvm -p") + b"\nLOG = [ SYSTEM = \"file\" ]\n")

    def test_what_it_does_not_understand_is_left_alone(self):
        for words, old, new in (("neither the directory", b"-t 15 -r 0 kvm -p", b"-t 15 -r 0 mine -p"),
                                ("no VM_MAD", b'"kvm",\n    SUNSTONE', b'"mine",\n    SUNSTONE')):
            with self.subTest(words):
                where = self.front_end("7.4")
                conf = where / "etc/oned.conf"
                conf.write_bytes(conf.read_bytes().replace(old, new))
                before = tree(where)
                self.assertIn(words, self.setup_tool(where, "--install", code=1).stderr)
                self.assertEqual(tree(where), before)
        where = self.front_end("7.4")
        shutil.rmtree(where / "remotes/vmm/kvm")
        before = tree(where)
        self.assertIn("front-end", self.setup_tool(where, "--install", code=1).stderr)
        self.assertEqual(tree(where), before)

    def test_what_was_broken_off_is_done_again(self):
        """Or was taken away by hand: --check says what is missing, --install brings it, --remove takes the rest."""
        def one_file(where):
            (where / "remotes/vmm/vhca/migrate").unlink()

        def a_mode(where):
            (where / "remotes/vmm/vhca/nics").chmod(0o644)

        def a_directory(where):
            shutil.rmtree(where / "remotes/vnm/vhca")

        def the_configuration(where):
            (where / "etc/oned.conf").write_bytes(LAYOUTS["7.4"][0].encode("latin-1"))
        for cut, lines in ((one_file, 1), (a_mode, 1), (a_directory, len(list((SETUP.parent / "vnm/vhca").iterdir()))), (the_configuration, 1)):
            for action in ("--install", "--remove"):
                with self.subTest(cut.__name__, action=action):
                    where = self.front_end("7.4")
                    trees = {"--remove": tree(where)}
                    self.setup_tool(where, "--install")
                    trees["--install"] = tree(where)
                    cut(where)
                    self.assertEqual(len(self.setup_tool(where, "--check", code=1).stdout.splitlines()), lines)
                    self.setup_tool(where, action)
                    self.assertEqual(tree(where), trees[action])

    def test_a_place_that_is_none_is_one_line(self):
        where = self.front_end("7.4")
        for option, path in (("--oned-conf", "etc/oned.conf"), ("--remotes", "remotes")):
            for action in ("--install", "--check", "--remove"):
                with self.subTest(option, action=action):
                    p = subprocess.run([str(SETUP), action, "--oned-conf", f"{where}/etc/oned.conf", "--remotes", f"{where}/remotes",
                                        option, f"{where}/no/{path}"], capture_output=True, text=True, timeout=60, check=False)
                    self.assertEqual((p.returncode, p.stdout, len(p.stderr.splitlines())), (1, "", 1), p.stderr)
                    self.assertIn(f"{where}/no/{path}", p.stderr)

    def test_a_file_of_somebody_else_stays(self):
        where = self.front_end("7.4")
        self.setup_tool(where, "--install")
        write(where / "remotes/vmm/vhca/mine", "x")
        self.assertIn("not of vhcad", self.setup_tool(where, "--remove", code=1).stderr)
        self.assertEqual([p.name for p in (where / "remotes/vmm/vhca").iterdir()], ["mine"])
        self.assertEqual((where / "etc/oned.conf").read_bytes(), LAYOUTS["7.4"][0].encode("latin-1"))

    def test_wrong_usage(self):
        where = self.front_end("7.4")
        for args in ((), ("--please",), ("--install", "--oned-conf"), ("--install", "--other", "x")):
            p = subprocess.run([str(SETUP), *args], capture_output=True, text=True, timeout=60, cwd=where, check=False)
            self.assertEqual((p.returncode, p.stdout), (2, ""), p.stderr)
            self.assertIn("usage:", p.stderr)


tap.main(__name__)
