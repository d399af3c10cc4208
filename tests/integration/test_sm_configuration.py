#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The files and the roles by which libvhcasm.so is configured, inside a real OpenSM."""

import json
import os
import pwd
import re
import socket
import unittest

import fabric
import openapi
import tap

from plugin_case import VGUID1, VGUID2, Case


class Configuration(Case):
    def base(self, text):
        path = os.path.join(self.fabric.dir, "base.conf")
        with open(path, "w") as f:
            f.write(text)
        return path

    def test_base_file_is_merged_and_read_again(self):
        path = self.base("Default=0x7fff,ipoib:ALL=limited,SELF=full;\nadmin=0x0100:ALL=full;\n")
        sm = self.manager(base_file=path).start()
        self.check(sm.api.bind(VGUID1, 1, 2, ["0x8001"]), 200)
        self.wait_key(2, "0x8001")
        self.assertEqual(self.fabric.pkeys(2)[0], "0x7fff")
        self.assertTrue(self.fabric.has(2, "0x8100"))
        self.base("Default=0x7fff,ipoib:ALL=full;\n")
        sm.resweep()
        self.wait_key(2, "0x8100", there=False)
        self.assertTrue(self.fabric.has(2, "0x8001"))
        # A mistake must not take the tenants' keys: OpenSM would fall back to its default rule.
        self.base("Default=0x7fff,ipoib ALL=full;\n")
        sm.resweep()
        fabric.wait_for("the mistake is reported", lambda: sm.api.call("GET", "/readyz")[1]["problem"])
        doc = sm.api.call("GET", "/readyz")[1]
        self.assertIn(("outdated", doc["problem"]), [(r["code"], r["reason"]) for r in doc["reasons"]])
        self.check(sm.api.bind(VGUID1, 1, 2, ["0x8001", "0x8002"]), 200)
        self.wait_key(2, "0x8002")
        self.assertTrue(self.fabric.has(2, "0x8001"))
        self.assertNotIn("retrying with default", sm.log())
        self.base("Default=0x7fff,ipoib:ALL=full;\n")
        sm.resweep()
        fabric.wait_for("the problem is gone",
                        lambda: not sm.api.call("GET", "/readyz")[1]["problem"])
        self.assertEqual(sm.stop(), 0)

    def test_opensm_understands_what_the_plugin_accepts(self):
        accepted = ["Default=0x7fff, ipoib, mtu=4, rate=3 : ALL=limited, SELF=full ;\n"
                    "storage = 0x0123 , sl=3,defmember=full :\n   0x0002c90300000021,\n"
                    "   12 = both ; 0x8013:ALL_CAS;",
                    "# nothing but a comment\n", "A=0x2,sl=1:ALL=full;A=0x0002:NONE;\n\n",
                    "A=0x2:\n\tSELF ,\n\tALL_SWITCHES=limited; B=3 : ALL_ROUTERS,0x11=full;",
                    "IP=0x44,ipoib:mgid=ff12:401b::16,Q_Key=0x1\n  ALL=full;"]
        path = self.base(accepted[0])
        sm = self.manager(base_file=path).start()
        self.check(sm.api.bind(VGUID1, 1, 2, ["0x8001", "0x8123"]), 200)
        self.wait_key(2, "0x8123")
        for text in accepted[1:]:
            with self.subTest(text=text):
                before = sm.sweeps()
                self.base(text)
                sm.resweep()
                fabric.wait_for("a sweep", lambda: sm.sweeps() > before)
                fabric.wait_for("in effect", lambda: sm.api.call("GET", "/readyz")[1]["in_effect"])
                self.assertIsNone(sm.api.call("GET", "/readyz")[1]["problem"])
                self.assertTrue(self.fabric.has(2, "0x8001") and self.fabric.has(2, "0x8123"))
        self.assertEqual(re.findall(r"PARSE ERROR[^\n]*|retrying with default", sm.log() + sm.output()), [])
        self.assertEqual(sm.stop(), 0)

    def test_allowed_keys(self):
        sm = self.manager(conf="allowed = 0x0001-0x000f 0x0100").start()
        self.check(sm.api.bind(VGUID1, 1, 2, ["0x800f", "0x0100", "0xffff"]), 200)
        self.check(sm.api.bind(VGUID1, 1, 2, ["0x8010"]), 403, "unknown_partition")
        self.check(sm.api.declare(2, ["0x0011"]), 403, "unknown_partition")
        self.assertEqual(sm.stop(), 0)

    def test_allowed_keys_are_read_again(self):
        """Without a restart and without a signal; what was given stays, and a mistake changes nothing."""
        sm = self.manager(conf="allowed = 0x0001-0x000f").start()
        ask = lambda vguid, key: sm.api.bind(vguid, 1, 2, [key])
        self.check(ask(VGUID1, "0x8010"), 403, "unknown_partition")
        self.check(ask(VGUID1, "0x8001"), 200)
        sm.configure("allowed = 0x0010")
        fabric.wait_for("the new keys", lambda: ask(VGUID2, "0x8010")[0] == 200)
        self.check(sm.api.bind("0x02c9ab0000000003", 1, 2, ["0x8002"]), 403, "unknown_partition")
        problem = lambda: sm.api.call("GET", "/readyz")[1]["problem"]
        sm.configure("allowed = everything")
        self.assertRegex(fabric.wait_for("the mistake is told", problem), r"vhcasm\.conf:\d+: allowed: ")
        self.check(sm.api.bind("0x02c9ab0000000003", 1, 2, ["0x8010"]), 200)
        sm.configure("allowed = 0x0010 0x0011")
        fabric.wait_for("the mistake is mended", lambda: problem() is None)
        self.check(sm.api.bind("0x02c9ab0000000004", 1, 2, ["0x8011"]), 200)
        for key in ("0x8001", "0x8010", "0x8011"):
            self.wait_key(2, key)
        self.assertEqual(sm.stop(), 0)

    def test_both_memberships_with_opensms_option(self):
        sm = self.manager(opensm_conf="allow_both_pkeys TRUE").start()
        self.check(sm.api.bind(VGUID1, 1, 2, ["0x8001", "0x0001"]), 200)
        self.wait_key(2, "0x8001")
        self.wait_key(2, "0x0001")
        self.assertEqual(sm.stop(), 0)

    def test_tcp(self):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        sm = self.manager(listen=f"127.0.0.1:{port}").start()
        self.check(sm.api.bind(VGUID1, 1, 2, ["0x8001"]), 200)
        self.wait_key(2, "0x8001")
        self.assertFalse(os.path.exists(os.path.join(sm.dir, "run")))
        self.assertEqual(sm.api.call("GET", "/openapi.json"), (200, fabric.document().doc))
        other = self.manager(host=2, listen=f"127.0.0.1:{port}")
        self.assertIn("Address already in use", other.refused())
        self.assertEqual(other.stop(), 0)
        self.assertEqual(sm.stop(), 0)

    def test_wrong_configuration_refuses_the_plugin(self):
        sm = self.manager(conf="allowed = everything")
        self.assertRegex(sm.refused(), r"vhcasm\.conf:\d+: allowed: ")
        self.assertEqual(sm.stop(), 0)

    def test_another_partition_file_is_taken_over(self):
        sm = self.manager()
        path = self.base("Default=0x7fff,ipoib:ALL=full;\nadmin=0x0200:ALL=full;\n")
        sm.opensm_conf = f"partition_config_file {path}"    # a later line wins
        sm.start()
        self.check(sm.api.bind(VGUID1, 1, 2, ["0x8001"]), 200)
        self.wait_key(2, "0x8001")
        self.assertTrue(self.fabric.has(2, "0x8200"))
        self.assertIn("write the latter into opensm.conf", sm.log())
        self.assertEqual(sm.stop(), 0)


@unittest.skipIf(os.geteuid(), "only root can ask as another user")
class Roles(Case):
    """Who may ask for what at a unix socket: every route as every role."""

    USERS = {"daemon": "metrics", "bin": "read", "sys": "operate", "games": "admin", "news": "agent", "mail": "agent+read", "root": "admin", "nobody": "agent+read"}
    MAY = {"metrics": {"metrics"}, "read": {"metrics", "read"}, "operate": {"metrics", "read", "operate"}, "admin": {"metrics", "read", "operate", "admin", "agent"},
           "agent": {"agent"}, "agent+read": {"metrics", "read", "agent"}}

    def ask(self, sm, user, method, path):
        """(status, code of the problem)"""
        conn = fabric.UnixConnection(sm.api.path, 10, pwd.getpwnam(user))
        conn.request(method, path)
        reply = conn.getresponse()
        text = reply.read()
        conn.close()
        problem = reply.getheader("Content-Type") == "application/problem+json"
        if problem:
            fabric.check_exchange(method, path, None, reply.status, json.loads(text))
        return reply.status, json.loads(text)["code"] if problem else None

    def test_every_route_as_every_role(self):
        rules = " ".join(f"{user}:{role}" for user, role in self.USERS.items() if user not in ("root", "nobody"))
        sm = self.manager(conf=f"[http]\nsocket_mode = 0666\nroles = root:metrics {rules}\n")
        for path in (self.fabric.dir, sm.dir):
            os.chmod(path, 0o711)
        sm.start()
        for user, role in self.USERS.items():
            for path, _, method, op in openapi.Document("openapi-vhcasm.yaml").operations():
                path, needed = re.sub(r"\{[^}]*\}", "none", path), op["x-role"]
                refused = self.ask(sm, user, method.upper(), path) == (403, "role_needed")
                self.assertEqual(refused, needed not in self.MAY[role], f"{user} ({role}): {method} {path}")
        self.assertEqual(sm.stop(), 0)    # which writes the log to its end
        pid = f"pid {os.getpid()}"
        told = re.findall(r"audit: .*", sm.log())
        for user, line in (("games", f"(admin, {pid}) PUT /v1/lids/none: 400 bad_request"), ("nobody", f"(agent+read, {pid}) PUT /v1/lids/none: 403 role_needed"),
                           ("bin", f"(read, {pid}) PUT /v1/members/none: 403 role_needed")):
            self.assertIn(f"audit: uid:{pwd.getpwnam(user).pw_uid} {line}", told)
        self.assertEqual([line for line in told if "GET" in line or f"(agent, {pid}) PUT /v1/members" in line], [])

    def test_wrong_rules_refuse_the_plugin(self):
        sm = self.manager(conf="[http]\nroles = nobody-of-that-name:read")
        self.assertIn("[http] roles: there is no user", sm.refused())
        self.assertEqual(sm.stop(), 0)


tap.main(__name__)
