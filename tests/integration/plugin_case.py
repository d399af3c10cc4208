# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tests of libvhcasm.so inside a real OpenSM that manages ibsim's simulated fabric."""

import unittest

import fabric

PKEY_TABLE, NO_KEYS = 0x16, "ffff" + "0000" * 31    # only the default partition
VGUID1, VGUID2 = "0x02c9ab0000000001", "0x02c9ab0000000002"


@unittest.skipIf(fabric.missing(), fabric.missing())
class Case(unittest.TestCase):
    """A fabric for each class, an OpenSM for each case unless the class keeps one."""

    @classmethod
    def setUpClass(cls):
        cls.fabric = fabric.Fabric()
        cls.addClassCleanup(cls.fabric.close)

    def manager(self, **args):
        sm = self.fabric.manager(**args)
        self.addCleanup(sm.kill)
        return sm

    def wait_key(self, host, key, there=True):
        fabric.wait_for(f"{key} {'on' if there else 'off'} H{host}: {self.fabric.pkeys(host)}",
                        lambda: self.fabric.has(host, key) == there)

    def check(self, answer, status, code=None):
        self.assertEqual(answer[0], status, answer)
        if code:
            self.assertEqual(answer[1]["code"], code, answer)
        return answer[1]
