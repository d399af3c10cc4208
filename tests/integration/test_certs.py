#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What vhca-certs makes lets the hosts of its authority in, at an agent and at the plugin, and nobody else."""

import contextlib
import fcntl
import http.client
import json
import os
import pathlib
import shutil
import ssl
import stat
import subprocess
import tempfile
import unittest
import unittest.mock
import uuid

import fabric
import tap

from test_agent import Agent, conf_text

PROGRAM = pathlib.Path(os.environ["VHCA_SOURCE_DIR"], "conf/vhca-certs")
HOSTS = ("localhost,127.0.0.1", "hv1.example.org,10.0.0.1,2001:db8::7", "hv2.example.org", "admin.example.org")


class Case(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="vhca-certs.")
        self.addCleanup(shutil.rmtree, self.dir)

    def make(self, where, *hosts):
        """The lines that it prints."""
        done = subprocess.run([PROGRAM, f"{self.dir}/{where}", *hosts], capture_output=True, text=True, timeout=60)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout.splitlines()

    def refused(self, status, words, *args):
        before = {path: path.read_bytes() for path in pathlib.Path(self.dir).rglob("*") if path.is_file()}
        done = subprocess.run([PROGRAM, *args], capture_output=True, text=True, timeout=60)
        self.assertEqual((done.returncode, done.stdout), (status, ""), done.stderr)
        self.assertIn(words, done.stderr)
        self.assertEqual({path: path.read_bytes() for path in pathlib.Path(self.dir).rglob("*") if path.is_file()}, before)

    def ask(self, port, client, method, path, body=None):
        """(status, document), of whoever shows that certificate to a server whose name the authority has to have signed."""
        trust = ssl.create_default_context(cafile=f"{self.dir}/tls/ca.pem")
        trust.load_cert_chain(f"{self.dir}/{client}.pem", f"{self.dir}/{client}.key")
        conn = http.client.HTTPSConnection("localhost", port, timeout=20, context=trust)
        try:
            conn.request(method, path, None if body is None else json.dumps(body))
            answer = conn.getresponse()
            return answer.status, json.loads(answer.read())
        finally:
            conn.close()


class Files(Case):
    def test_names_modes_and_who_is_who(self):
        said = self.make("tls", *HOSTS)
        self.assertEqual(said, [f"{self.dir}/tls/{host.split(',')[0]}.pem: cert:{host.split(',')[0]}" for host in HOSTS])
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in pathlib.Path(self.dir, "tls").iterdir()}
        names = ("ca", *(host.split(",")[0] for host in HOSTS))
        self.assertEqual(modes, {f"{name}.{kind}": mode for name in names for kind, mode in (("pem", 0o644), ("key", 0o600))})
        shown = subprocess.run(["openssl", "x509", "-in", f"{self.dir}/tls/hv1.example.org.pem", "-noout", "-ext", "subjectAltName,extendedKeyUsage"],
                               capture_output=True, text=True, check=True, timeout=60).stdout
        self.assertIn("DNS:hv1.example.org, IP Address:10.0.0.1, IP Address:2001:DB8:0:0:0:0:0:7\n", shown)
        self.assertIn("TLS Web Server Authentication, TLS Web Client Authentication\n", shown)

    def test_another_host_later_is_of_the_same_authority(self):
        self.make("tls", "hv1.example.org")
        before = pathlib.Path(self.dir, "tls/ca.pem").read_bytes()
        self.make("tls", "hv2.example.org")
        self.assertEqual(pathlib.Path(self.dir, "tls/ca.pem").read_bytes(), before)
        subprocess.run(["openssl", "verify", "-CAfile", f"{self.dir}/tls/ca.pem", f"{self.dir}/tls/hv1.example.org.pem",
                        f"{self.dir}/tls/hv2.example.org.pem"], check=True, stdout=subprocess.DEVNULL, timeout=60)

    def test_nothing_is_overwritten_and_wrong_words_make_nothing(self):
        where = f"{self.dir}/tls"
        self.make("tls", "hv1.example.org")
        self.refused(1, "hv1.example.org.pem or .key is there already", where, "hv2.example.org", "hv1.example.org")
        for word in ("HV3", "*", "../hv3", "hv3\nsubjectAltName=DNS:hv1", "hv3,DNS:hv1", "-hv3", "$(id)", "hv3 hv4", "hv3\nhv4", " hv3", ",hv3"):
            self.refused(2, "is neither a name in lower case nor an address", where, "hv2.example.org", word)
        for word in ("10.0.0.1,hv3", ""):
            self.refused(2, f'"{word}" does not begin with a name', where, word)
        self.refused(2, "ca is the authority's name here", where, "ca")
        self.refused(2, "hv3 is named twice", where, "hv3", "hv3,10.0.0.1")
        for args in ((), (where,), ("--days", "0", where, "hv3"), ("--help", where)):
            self.refused(2, "usage: vhca-certs", *args)
        for name, other in (("ca.key", "ca.pem"), ("ca.pem", "ca.key")):
            os.rename(f"{where}/{name}", f"{self.dir}/{name}")
            self.refused(1, f"one of {where}/ca.pem and ca.key is there, and the other is not", where, "hv3")
            os.rename(f"{self.dir}/{name}", f"{where}/{name}")

    def test_what_openssl_refuses_makes_nothing_of_the_others(self):
        self.refused(1, "bad ip address", f"{self.dir}/tls", "hv1.example.org", "hv2.example.org,999.0.0.1")

    def test_letters_are_those_of_ascii(self):
        subprocess.run(["localedef", "-i", "en_US", "-f", "UTF-8", f"{self.dir}/en_US.UTF-8"], check=False, capture_output=True, timeout=60)
        with unittest.mock.patch.dict(os.environ, LOCPATH=self.dir, LC_ALL="en_US.UTF-8"):
            self.refused(2, "is neither a name in lower case nor an address", f"{self.dir}/tls", "hv\N{LATIN SMALL LETTER E WITH ACUTE}")

    def test_one_is_at_work_at_a_time(self):
        """Two that begin would each make an authority, and one host of them have a certificate that no other believes."""
        os.mkdir(f"{self.dir}/tls")
        with contextlib.ExitStack() as stack:
            other = os.open(f"{self.dir}/tls", os.O_RDONLY)
            stack.callback(os.close, other)
            fcntl.flock(other, fcntl.LOCK_EX)
            process = subprocess.Popen([PROGRAM, f"{self.dir}/tls", "hv1.example.org"], stdout=subprocess.DEVNULL)
            stack.callback(process.kill)
            with self.assertRaises(subprocess.TimeoutExpired):
                process.wait(3)
            self.assertEqual(os.listdir(f"{self.dir}/tls"), [])
            fcntl.flock(other, fcntl.LOCK_UN)
            self.assertEqual(process.wait(60), 0)


class Doors(Case):
    def setUp(self):
        super().setUp()
        self.make("tls", *HOSTS)
        self.make("strange", "hv1.example.org")
        self.port = fabric.free_port()

    def test_an_agent_knows_its_peers(self):
        tls = f"{self.dir}/tls"
        agent = Agent(self.dir)
        agent.write(conf_text(self.dir, f"[api]\npeer_listen = 127.0.0.1:{self.port}\n[tls]\ncertificate = {tls}/localhost.pem\n"
                              f"key = {tls}/localhost.key\nca = {tls}/ca.pem\n"
                              "[peer hv1]\nagent = https://hv1.example.org:8514\nlibvirt = test:///default\n"))
        self.addCleanup(lambda: (agent.process.kill(), agent.process.wait(), agent.log.close()))
        agent.start()
        path = f"/v1/peer/claims/{uuid.uuid4()}"
        for client, answer in (("tls/hv1.example.org", (404, "no_such_migration")), ("tls/hv2.example.org", (403, "role_needed")),
                               ("strange/hv1.example.org", (401, "unauthorized"))):
            status, doc = self.ask(self.port, client, "GET", path)
            self.assertEqual((status, doc["code"]), answer, client)

    @unittest.skipIf(fabric.missing(), fabric.missing())
    def test_the_plugin_knows_its_agents(self):
        subnet, tls = fabric.Fabric(), f"{self.dir}/tls"
        self.addCleanup(subnet.close)
        sm = subnet.manager(listen=f"127.0.0.1:{self.port}", conf=(
            f"[http]\ntls_certificate = {tls}/localhost.pem\ntls_key = {tls}/localhost.key\ntls_ca = {tls}/ca.pem\n"
            "roles = cert:admin.example.org:admin\n[agents]\nhv1 = cert:hv1.example.org\n"))
        self.addCleanup(sm.kill)
        sm.start(wait=False)

        def ready():
            try:
                return sm.alive() and self.ask(self.port, "tls/admin.example.org", "GET", "/readyz")[0] == 200
            except OSError:
                return False
        fabric.wait_for("OpenSM is ready", ready, 60)
        path = f"/v1/members/{fabric.port_guid(2)}"
        for client, answer in (("tls/hv1.example.org", (200, None)), ("tls/hv2.example.org", (403, "role_needed")),
                               ("strange/hv1.example.org", (401, "unauthorized")), ("tls/admin.example.org", (200, None))):
            status, doc = self.ask(self.port, client, "PUT", path, {"pkeys": ["0x8001"]})
            self.assertEqual((status, doc.get("code")), answer, client)
        self.assertEqual(sm.stop(), 0)


if __name__ == "__main__":
    tap.main(__name__)
