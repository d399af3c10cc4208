#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""vhcactl --url: a whole agent is asked from afar, by certificate and by token, by option and by environment."""

import hashlib
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import unittest

import fabric
import tap
from test_agent import Agent, conf_text

CTL = os.environ["VHCACTL"]
TOKENS = {"read": "the-token-of-a-reader", "admin": "the-token-of-an-admin"}
# What says the same whenever it is asked; the others below begin as they do by the socket.
STEADY = (("hcas",), ("vfs",), ("domains",), ("claims",), ("partitions",), ("migrations",), ("outbox",), ("config",))


class Remote(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = tempfile.mkdtemp(prefix="vhca-remote.")
        cls.addClassCleanup(shutil.rmtree, cls.dir)
        subprocess.run([os.environ["VHCA_MAKE_CERTS"], cls.dir], check=True, timeout=60)
        cls.write("tokens", "".join(f"{role} {role} {hashlib.sha256(token.encode()).hexdigest()}\n" for role, token in TOKENS.items()))
        for role, token in TOKENS.items():
            cls.write(role, token + "\n")
        cls.port = fabric.free_port()
        cls.url = f"https://127.0.0.1:{cls.port}"
        cls.agent = Agent(cls.dir)
        cls.agent.write(conf_text(cls.dir, (
            f"[api]\nlisten = 127.0.0.1:{cls.port}\nlisten_roles = cert:localhost:operate\ntoken_file = {cls.dir}/tokens\n"
            f"[tls]\ncertificate = {cls.dir}/server.pem\nkey = {cls.dir}/server.key\nca = {cls.dir}/ca.pem\n")))
        cls.agent.start()
        cls.addClassCleanup(cls.agent.stop)
        cls.agent.wait(lambda: cls.agent.get("/v1/node")[1]["libvirt"]["synced"])    # from now on nothing changes by itself

    @classmethod
    def write(cls, name, text):
        with open(os.open(f"{cls.dir}/{name}", os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="ascii") as f:
            f.write(text)

    def by(self, *files):
        """The options for these, each with its file behind it."""
        options = [word if word.startswith("--") else f"{self.dir}/{word}" for word in files]
        return ["--url", self.url, "--ca", f"{self.dir}/ca.pem", *options]

    def ctl(self, *args, **env):
        return subprocess.run([CTL, *args], capture_output=True, text=True, timeout=120, env={**os.environ, "TZ": "UTC", **env}, check=False)

    def here(self, *args):
        return self.ctl("--socket", f"{self.dir}/run/vhcad.sock", *args)

    CERTIFICATE = ("--cert", "client.pem", "--key", "client.key")

    def test_what_there_is(self):
        """As by the socket, whoever asks."""
        for files, more in ((self.CERTIFICATE, ()), (("--token-file", "read"), ("--json",))):
            for command in STEADY:
                p, here = self.ctl(*self.by(*files), *more, *command), self.here(*more, *command)
                self.assertEqual((p.returncode, p.stdout, p.stderr), (0, here.stdout, ""), command)
            self.assertIn("node-a", self.ctl(*self.by(*files), "node").stdout)
            self.assertIn("# EOF\n", self.ctl(*self.by(*files), "metrics").stdout)
            self.assertIn(self.ctl(*self.by(*files), "status").returncode, (0, 10, 11, 12))
            self.assertEqual(self.ctl(*self.by(*files), "explain", "0000:01:00.1").returncode, 3)
            self.assertEqual(self.ctl(*self.by(*files), "support-bundle", "--output", f"{self.dir}/bundle").returncode, 0)

    def test_changes_need_their_role(self):
        """Who has it by a token or a certificate does what root does here; the others hear which it is."""
        for files in (self.CERTIFICATE, ("--token-file", "read")):
            p = self.ctl(*self.by(*files), "undrain")
            self.assertEqual((p.returncode, p.stdout), (8, ""))
            self.assertIn("the role admin is needed", p.stderr)
        p = self.ctl(*self.by(*self.CERTIFICATE), "lease", "6d3a0000-0000-4000-8000-000000000001", "60")
        self.assertEqual(p.returncode, 3, p.stderr)
        admin = self.by("--token-file", "admin")
        for command in (("reload",), ("drain", "--park"), ("undrain",)):
            p = self.ctl(*admin, *command)
            self.assertEqual((p.returncode, p.stderr), (0, ""), command)
        log = self.agent.log_text()
        self.assertIn("audit: token:admin (admin, 127.0.0.1) POST /v1/reload: 200", log)
        for token in TOKENS.values():
            self.assertNotIn(token, log)

    def test_watch(self):
        with subprocess.Popen([CTL, *self.by("--token-file", "read"), "watch", "--since", "now"], stdout=subprocess.PIPE, text=True) as watch:
            lines, seen = [], threading.Event()

            def read():
                for line in watch.stdout:
                    lines.append(line)
                    seen.set()
            reader = threading.Thread(target=read)
            reader.start()
            try:
                for _ in range(100):    # it may begin behind an event
                    self.here("drain", "--park")
                    self.here("undrain")
                    if seen.wait(1):
                        break
                self.assertTrue(lines)
            finally:
                watch.send_signal(signal.SIGTERM)
                reader.join()

    def test_the_environment_says_what_no_option_does(self):
        env = {"VHCACTL_URL": self.url, "VHCACTL_CA": f"{self.dir}/ca.pem", "VHCACTL_TOKEN_FILE": f"{self.dir}/read"}
        self.assertEqual(self.ctl("vfs", **env).returncode, 0)
        self.assertEqual(self.ctl("vfs", **env, VHCACTL_CERT="", VHCACTL_KEY="").returncode, 0)
        with_certificate = {"VHCACTL_URL": self.url, "VHCACTL_CA": f"{self.dir}/ca.pem", "VHCACTL_CERT": f"{self.dir}/client.pem", "VHCACTL_KEY": f"{self.dir}/client.key"}
        p = self.ctl("undrain", **with_certificate)
        self.assertIn("cert:localhost has operate", p.stderr)
        p = self.ctl("--token-file", f"{self.dir}/admin", "undrain", **with_certificate)
        self.assertEqual((p.returncode, p.stderr), (0, ""))    # and not as that certificate
        p = self.ctl("--url", "https://127.0.0.1:1", "vfs", **env)
        self.assertEqual(p.returncode, 7)
        self.assertEqual(self.ctl("--socket", f"{self.dir}/run/vhcad.sock", "undrain", **env).returncode, 0)    # as root, here
        p = self.ctl("vfs", VHCACTL_URL="https://op:s3cret@h:1")
        self.assertEqual((p.returncode, p.stderr), (2, "vhcactl: VHCACTL_URL: a host and a port, and nothing else\nhint: a token goes into --token-file\n"))

    def test_who_is_not_let_in_hears_the_way(self):
        self.write("wrong", "the-token-of-nobody-here\n")
        for files in ((), ("--token-file", "wrong")):
            p = self.ctl(*self.by(*files), "vfs")
            self.assertEqual((p.returncode, p.stdout), (8, ""), p.stderr)
            self.assertIn("hint: --cert FILE and --key FILE with a certificate that [tls] ca", p.stderr)
            self.assertNotIn("the-token-of-nobody", p.stderr)
        for url, ca in ((self.url, "client.pem"), (f"https://127.0.0.2:{self.port}", "ca.pem"), (f"http://127.0.0.1:{self.port}", None), ("https://127.0.0.1:1", "ca.pem")):
            p = self.ctl("--url", url, *(["--ca", f"{self.dir}/{ca}", "--token-file", f"{self.dir}/read"] if ca else []), "vfs")
            self.assertEqual((p.returncode, p.stdout), (7, ""), p.stderr)
            self.assertIn(f"the agent does not answer: GET {url}/v1/vfs: ", p.stderr)
            self.assertIn("--ca has to know the agent's certificate", p.stderr)

    def test_wrong_usage(self):
        for args, words in ((("--socket", "/s", "--url", self.url), "--socket and --url: one of them"),
                            (("--cert", "/f"), "a unix socket asks for no certificate and no token"),
                            (("--url", "http://h:1", "--token-file", "/f"), "certificates and tokens go by https only"),
                            (("--url", "h:1"), "--url: neither https://HOST:PORT nor http://HOST:PORT"),
                            (("--url", "https:///"), "--url: a host and a port, and nothing else"),    # curl would ask a host "v1"
                            (("--url", self.url, "--cert", f"{self.dir}/client.pem"), "client.pem: a certificate needs its key"),
                            (("--url", self.url, "--token-file", f"{self.dir}/none"), "/none: No such file")):
            p = self.ctl(*args, "vfs")
            self.assertEqual((p.returncode, p.stdout), (2, ""), args)
            self.assertIn(words, p.stderr)
            self.assertIn("\nhint: ", p.stderr)


tap.main(__name__)
