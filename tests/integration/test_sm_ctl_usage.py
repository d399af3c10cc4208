#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""vhcasmctl's command line: usage, help, manual, completion, and where it looks for the plugin."""

import os
import re
import subprocess
import tempfile
import unittest

import tap

CTL, SOURCE = os.environ["VHCASMCTL"], os.environ["VHCA_SOURCE_DIR"]
COMMANDS = ["status", "fabric", "bindings", "members", "lids", "plan", "move", "pause", "resume", "rebalance", "gc", "forget", "unpin", "owner"]
GUID = "0x02c9ab0000000001"


def ctl(*args):
    return subprocess.run([CTL, *args], capture_output=True, text=True, timeout=30, check=False)


def text_of(path):
    with open(os.path.join(SOURCE, path), encoding="utf-8") as f:
        return f.read()


class Usage(unittest.TestCase):
    def refused(self, words, *args):
        p = ctl(*args)
        self.assertEqual((p.returncode, p.stdout), (2, ""), (args, p.stderr))
        self.assertRegex(p.stderr, r"\Avhcasmctl: .+\n(hint: .+\n)?\Z")
        self.assertIn(words, p.stderr)

    def test_wrong_usage(self):
        for args in ([], ["nothing"], ["status", "extra"], ["bindings", GUID, GUID], ["bindings", ""], ["plan", "1"], ["move"], ["move", "1", GUID, "x"], ["forget"], ["gc"], ["unpin"], ["owner", GUID], ["rebalance", "x"], ["pause", "x"], ["resume", "x"],
                     ["--what"], ["status", "--port", GUID], ["lids", "--mode", "auto"], ["status", "--timeout", "0"], ["members", GUID], ["help", "nothing"]):
            self.refused("hint: vhcasmctl help", *args)
        self.refused("--port is given twice", "bindings", "--port", GUID, "--port", GUID)
        self.refused(f"{GUID} and --port: one of them", "--url", "http://127.0.0.1:1", "bindings", GUID, "--port", GUID)

    def test_where_and_who_fit(self):
        self.refused("--socket and --url: one of them", "--socket", "/s", "--url", "http://h:1", "status")
        for url in ("h:1", "ftp://h:1", "https://", "http://h:1/v1", "https://op:s3cret@h:1", "https://h:1?x=y"):
            self.refused("--url: ", "--url", url, "status")
        self.assertNotIn("s3cret", ctl("--url", "https://op:s3cret@h:1", "status").stderr)
        for option in ("--ca", "--cert", "--key", "--token-file"):
            self.refused("asks for no certificate and no token", "--socket", "/s", option, "/f", "status")
            self.refused("by https only", "--url", "http://h:1", option, "/f", "status")
        self.assertEqual(ctl("--url", "http://127.0.0.1:1/", "status").returncode, 7)

    def test_configuration(self):
        with tempfile.TemporaryDirectory() as where:
            path = os.path.join(where, "vhcasm.conf")
            self.refused(f"{path}: No such file", "--config", path, "status")
            for conf, status, words in (("[http]\nlisten = no\n", 2, f"{path}:2: listen: "), (f"[http]\nlisten = unix:{where}/s\n", 7, f"{where}/s: No such file"),
                                        ("[http]\nlisten = 127.0.0.1:1\n", 7, "GET http://127.0.0.1:1/readyz"), ("[http]\nlisten = [::]:1\n", 7, "GET http://[::1]:1/readyz"),
                                        ("[http]\nlisten = 0.0.0.0:1\n", 7, "GET http://127.0.0.1:1/readyz"),
                                        ("[http]\nlisten = 127.0.0.1:1\ntls_certificate = /none\ntls_key = /none\n", 2, "/none: No such file")):
                with open(path, "w", encoding="ascii") as f:
                    f.write(conf)
                p = ctl("--config", path, "status")
                self.assertEqual(p.returncode, status, p.stderr)
                self.assertIn(words, p.stderr)
                self.assertIn("hint: ", p.stderr)

    def test_help(self):
        overview = ctl("help").stdout
        self.assertEqual(ctl("--help").stdout, overview)
        self.assertEqual(re.findall(r"^  ([a-z]+) ", overview.split("Options:")[0], re.M), COMMANDS + ["help"])
        for name in COMMANDS:
            p = ctl("help", name)
            self.assertEqual(p.returncode, 0)
            self.assertTrue(p.stdout.startswith(f"Usage: vhcasmctl [OPTIONS] {name}"))
            self.assertEqual(ctl(name, "--help").stdout, p.stdout)
        self.assertTrue(ctl("help", "bindings").stdout.startswith("Usage: vhcasmctl [OPTIONS] bindings [VGUID] [--port PORT_GUID]\n"))
        self.assertTrue(ctl("help", "move").stdout.startswith("Usage: vhcasmctl [OPTIONS] move LID PORT_GUID [--mode MODE]\n"))
        self.assertRegex(ctl("--version").stdout, r"\Avhcasmctl \d+\.\d+\.\d+\n\Z")
        for line in "".join(ctl("help", *args).stdout for args in ([], *([name] for name in COMMANDS))).splitlines():
            self.assertLessEqual(len(line), 112 if "--config" in line else 110)

    def options(self):
        text = "".join(ctl("help", *args).stdout for args in [[], *([name] for name in COMMANDS)])
        return set(re.findall(r"^  (--[a-z-]+)", text, re.M))

    def test_manual_knows_commands_and_options(self):
        manual = text_of("docs/man/vhcasmctl.8.rst")
        section = manual.split("COMMANDS\n")[1].split("OPTIONS\n")[0]
        self.assertEqual(re.findall(r"^\*\*([a-z]+)\*\*", section, re.M), COMMANDS)
        section = manual.split("OPTIONS\n====")[1].split("EXIT STATUS\n")[0]
        self.assertEqual(set(re.findall(r"^(--[a-z-]+)", section, re.M)), self.options())

    def test_completion_knows_commands_and_options(self):
        script = text_of("ctl/vhcasmctl.bash")
        self.assertEqual(re.search(r"commands='(.*)'", script).group(1).split(), COMMANDS + ["help"])
        self.assertEqual(set(re.findall(r"(?<![\w-])--[a-z-]+", script)), self.options())

    def complete(self, *words):
        script = '. "$1"; shift; COMP_WORDS=(vhcasmctl "$@"); COMP_CWORD=$#; _vhcasmctl; printf "%s\\n" "${COMPREPLY[@]}"'
        p = subprocess.run(["bash", "-c", script, "bash", os.path.join(SOURCE, "ctl/vhcasmctl.bash"), *words], capture_output=True, timeout=30, check=True, text=True)
        return [line for line in p.stdout.split("\n") if line]

    def test_completion_completes(self):
        self.assertEqual(self.complete("m"), ["members", "move"])
        self.assertEqual(self.complete("--url", "https://sm1:8515", "bind"), ["bindings"])
        self.assertEqual(self.complete("bindings", "--p"), ["--port"])
        self.assertEqual(self.complete("move", "7", GUID, "--mode", "s"), ["skyline"])
        self.assertEqual(self.complete("--ca", os.path.join(SOURCE, "COPY")), [os.path.join(SOURCE, "COPYING")])
        self.assertEqual(self.complete("help", "un"), ["unpin"])
        self.assertEqual(self.complete("--port", ""), [])


tap.main(__name__)
