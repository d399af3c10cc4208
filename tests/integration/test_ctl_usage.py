#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""vhcactl's command line: usage, help, manual and completion."""

import os
import re
import subprocess
import unittest

import tap
from ctl_case import CtlCase

SOURCE = os.environ["VHCA_SOURCE_DIR"]
COMMANDS = ["status", "node", "hcas", "vfs", "domains", "claims", "lease", "partitions", "explain", "adopt", "takeover", "plan", "attach", "detach", "migrate", "park", "unpark", "drain", "undrain", "migrations", "outbox", "watch", "top", "metrics", "config", "reload", "support-bundle", "forget"]


class Usage(CtlCase):
    def test_wrong_usage(self):
        for args in ([], ["nothing"], ["vfs", "extra"], ["attach", "vm1", "ib0"], ["attach", "--partition", "1"],
                     ["attach", "vm1", "", "--partition", "1"], ["attach", "vm1", "ib0", "--partition", "1", "--numa", "x"], ["detach", "vm1"], ["detach", "a", "b", "c"],
                     ["--what"], ["vfs", "--guid", "1"], ["vfs", "--state"], ["node", "--timeout", "0"],
                     ["node", "--timeout", "1.5"], ["migrate", "vm1"], ["migrate", "--cancel"],
                     ["migrate", "vm1", "hvb", "--cancel"], ["detach", "a", "b", "--no-wait"], ["node", "--timeout", "99999"], ["watch", "--since", "x" * 200],
                     ["plan"], ["plan", "vm1", "--partition", "1"], ["plan", "vm1", "ib0"], ["plan", "vm1", "--xml", "-"], ["plan", "--xml", "-", "--guid", "auto"],
                     ["plan", "--xml", "/nothing"], ["plan", "vm1", "ib0", "--partition", "1", "--numa", "x"], ["help", "nothing"], ["drain"], ["drain", "--no-wait"], ["drain", "hvb", "--park"]):
            with self.subTest(args):
                p = self.ctl(*args)
                self.assertEqual((p.returncode, p.stdout), (2, ""))
                self.assertRegex(p.stderr, r"\Avhcactl: .+\n(hint: vhcactl help.*\n)?\Z")

    def test_an_option_given_twice_is_refused(self):
        """The second took the place of the first: a guest without the keys that it was to have."""
        p = self.ctl("attach", "vm1", "ib0", "--partition", "0x8001", "--partition", "storage")
        self.assertEqual((p.returncode, p.stderr), (2, "vhcactl: --partition is given twice\nhint: several P_Keys are one value: --partition '0x8001 storage'\n"))
        for args in (["vfs", "--state", "free", "--state", "attached"], ["migrate", "vm1", "--cancel", "--cancel"]):
            self.assertIn("is given twice\nhint: vhcactl help\n", self.ctl(*args).stderr)
        self.agent({"GET /v1/vfs": {"vfs": []}})
        self.assertEqual(self.ctl("vfs", "--json", "--json").returncode, 0)    # an alias has one, too

    def test_help(self):
        overview = self.ctl("help").stdout
        self.assertEqual(self.ctl("--help").stdout, overview)
        self.assertEqual(re.findall(r"^  ([a-z-]+) ", overview.split("Options:")[0], re.M), COMMANDS + ["help"])
        for name in COMMANDS:
            p = self.ctl("help", name)
            self.assertEqual(p.returncode, 0)
            self.assertTrue(p.stdout.startswith(f"Usage: vhcactl [OPTIONS] {name}"))
            self.assertEqual(self.ctl(name, "--help").stdout, p.stdout)
        self.assertIn("DOMAIN NAME --partition P_KEYS [--guid GUID] [--fabric NAME] [--pf BDF] [--numa NODE]\n", self.ctl("help", "attach").stdout)
        self.assertIn("migrate DOMAIN PEER [--no-wait] [--external] [--lease SECONDS] [--copy-timeout SECONDS] [--expected-max SECONDS] [--bandwidth MIB] "
                      "[--connections N] [--auto-converge] [--tls]\n       vhcactl [OPTIONS] migrate DOMAIN --cancel\n",
                      self.ctl("help", "migrate").stdout)
        for line in overview.splitlines():
            self.assertLessEqual(len(line), 100)

    def test_version(self):
        self.assertRegex(self.ctl("--version").stdout, r"\Avhcactl \d+\.\d+\.\d+\n\Z")

    def test_the_unit_reloads_by_it(self):
        """kill -HUP ends before anything is read: systemctl reload said that a refused configuration was in force. And no VHCACTL_URL leads it to another host's agent."""
        with open(os.path.join(SOURCE, "conf/systemd/vhcad.service.in"), encoding="ascii") as f:
            self.assertRegex(f.read(), r"(?m)^ExecReload=@bindir@/vhcactl --socket /run/vhcad/vhcad\.sock reload$")

    def test_completion_knows_commands_and_options(self):
        with open(os.path.join(SOURCE, "ctl/vhcactl.bash"), encoding="ascii") as f:
            script = f.read()
        words = re.search(r"commands='(.*)'", script).group(1).split()
        self.assertEqual(words, COMMANDS + ["help"])
        text = "".join(self.ctl("help", *args).stdout for args in [[], *([name] for name in COMMANDS)])
        for option in set(re.findall(r"^  (--[a-z-]+)", text, re.M)):
            self.assertIn(option, script)

    def test_manual_knows_commands_and_options(self):
        with open(os.path.join(SOURCE, "docs/man/vhcactl.1.rst"), encoding="utf-8") as f:
            manual = f.read()
        section = manual.split("COMMANDS\n")[1].split("OPTIONS\n")[0]
        self.assertEqual(re.findall(r"^\*\*([a-z-]+)\*\*", section, re.M), COMMANDS)
        text = "".join(self.ctl("help", *args).stdout for args in [[], *([name] for name in COMMANDS)])
        for option in set(re.findall(r"^  (--[a-z-]+)", text, re.M)):
            self.assertIn(option, manual)

    DOMAINS = ("DOMAIN        NAME  BDF           STATE\nmy vm         ib0   0000:01:00.1  attached\n"
               "my vm         ib 1  0000:01:00.2  attached\nother         ib2   -             requested\n$(echo bad)   ib3   -             requested\n"
               "two  blanks   ib4   0000:01:00.3  attached\nn größe       ib5   0000:01:00.4  attached\nnever         -     -             unreadable\n")

    def complete(self, *words):
        script = ('. "$1"; shift; COMP_WORDS=(vhcactl "$@"); COMP_CWORD=$#; _vhcactl; printf "%s\\n" "${COMPREPLY[@]}"')
        with open(os.path.join(self.dir, "vhcactl"), "w", encoding="utf-8", opener=lambda path, flags: os.open(path, flags, 0o755)) as f:
            f.write(f"#!/bin/sh\ncat <<'END'\n{self.DOMAINS}END\n")
        p = subprocess.run(["bash", "-c", script, "bash", os.path.join(SOURCE, "ctl/vhcactl.bash"), *words],
                           capture_output=True, timeout=30, check=True, encoding="utf-8",
                           env={**os.environ, "LC_ALL": "C.UTF-8", "PATH": f"{self.dir}:{os.environ['PATH']}"})
        return [line for line in p.stdout.split("\n") if line]

    def test_completion_completes(self):
        self.assertEqual(self.complete("d"), ["domains", "detach", "drain"])
        self.assertEqual(self.complete("--json", "vfs", "--st"), ["--state"])
        self.assertEqual(self.complete("vfs", "--state", "q"), ["quarantined"])
        self.assertEqual(self.complete("migrations", "--limit", "3", "--state", "c"), ["claiming", "copying"])
        self.assertEqual(self.complete("migrations", "--final", "f"), ["false"])
        self.assertEqual(self.complete("claims", "--domain", "my"), ["my\\ vm"])
        self.assertEqual(self.complete("claims", "--partition", ""), [])
        self.assertEqual(self.complete("claims", "--p"), ["--pf", "--partition"])
        self.assertEqual(self.complete("attach", "vm1", "ib0", "--g"), ["--guid"])
        self.assertEqual(self.complete("migrate", "vm1", "--can"), ["--cancel"])
        self.assertEqual(self.complete("mig"), ["migrate", "migrations"])
        self.assertEqual(self.complete("explain", "--ch"), ["--check"])
        self.assertEqual(self.complete("drain", "--p"), ["--park"])
        self.assertEqual(self.complete("--url", "https://hv1:8516", "--token-file", "t", "und"), ["undrain"])

    def test_completion_knows_what_each_list_takes(self):
        with open(os.path.join(SOURCE, "ctl/vhcactl.bash"), encoding="ascii") as f:
            valued = re.search(r"valued='(.*)'", f.read()).group(1).split()
        common = self.complete("node", "--")
        for name in COMMANDS:
            text = self.ctl("help", name).stdout
            own = re.findall(r"^  (--[a-z-]+)", text, re.M)
            self.assertEqual(sorted(self.complete(name, "--")), sorted(own + common), name)
            self.assertLessEqual(set(re.findall(r"^  (--[a-z-]+) [A-Zt]", text, re.M)), set(valued), name)

    def test_completion_of_names_with_blanks(self):
        self.assertEqual(self.complete("adopt", "o"), ["other"])
        self.assertEqual(self.complete("adopt", "m"), ["my\\ vm"])
        self.assertEqual(self.complete("adopt", "my\\ "), ["my\\ vm"])
        self.assertEqual(self.complete("adopt", "'my v"), ["my vm"])
        for domain in ("my\\ vm", "'my vm'", '"my vm"'):
            self.assertEqual(self.complete("detach", domain, "i"), ["ib\\ 1", "ib0"])
        self.assertEqual(self.complete("adopt", "t"), ["two\\ \\ blanks"])
        self.assertEqual(self.complete("detach", "two\\ \\ blanks", "i"), ["ib4"])

    def test_completion_names_what_is_there(self):
        """The line of a domain that cannot be read names no VF; columns are counted in characters."""
        self.assertEqual(self.complete("adopt", "n"), ["n\\ größe", "never"])
        self.assertEqual(self.complete("detach", "'n größe'", "i"), ["ib5"])
        self.assertNotIn("-", self.complete("detach", "never", ""))

    def test_completion_runs_no_name(self):
        """What a domain is called may come from a tenant."""
        self.assertEqual(self.complete("adopt", "\\$"), ["\\$\\(echo\\ bad\\)"])
        self.assertNotIn("bad", self.complete("adopt", ""))


tap.main(__name__)
