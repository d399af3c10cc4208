#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the plugin says that it has had sent, beside what OpenSM hands to umad_send()."""

import os
import re

import fabric
import tap
from plugin_case import VGUID1, VGUID2, Case


class Counters(Case):
    @classmethod
    def setUpClass(cls):
        cls.fabric = fabric.Fabric(console=True)
        cls.addClassCleanup(cls.fabric.close)

    def setUp(self):
        with open(os.path.join(self.fabric.dir, "base"), "w") as f:
            f.write("Default=0x7fff,ipoib:ALL=full;\n")
        self.sm = self.manager(counter=os.environ["VHCA_SMPCOUNT_LIB"], base_file=f.name).start()
        self.api = self.sm.api

    def tearDown(self):
        self.assertEqual(self.sm.stop(), 0)

    def settle(self):
        fabric.wait_for("in effect", lambda: self.api.call("GET", "/healthz")[1]["in_effect"])
        self.sm.rest()

    def sweeps(self):
        return self.api.metrics()["vhcasm_heavy_sweeps_total"]

    def sweep(self):
        before = self.sweeps()
        self.sm.resweep()
        fabric.wait_for("a sweep", lambda: self.sweeps() > before)

    def count(self, kind):
        return self.api.counted()[kind]

    def sent(self, what):
        """P_Key table SMPs of what(), which /metrics has counted, too, as all before."""
        before = self.sm.smps()["pkey_table"]
        what()
        self.settle()
        self.assertEqual(self.count("pkey_table"), self.sm.smps()["pkey_table"])
        return self.sm.smps()["pkey_table"] - before

    def test_key_tables(self):
        port_and_switch = 2
        self.assertEqual(self.sent(lambda: self.check(self.api.bind(VGUID1, 1, 2, ["0x8001"]), 200)), port_and_switch)
        self.assertEqual(self.sent(lambda: self.check(self.api.bind(VGUID2, 1, 2, ["0x8001"]), 200)), 0)
        self.assertEqual(self.sent(lambda: self.check(self.api.bind(VGUID1, 2, 3, ["0x8001", "0x0002"]), 200)), port_and_switch)
        self.assertEqual(self.sent(lambda: self.check(self.api.declare(4, ["0x8005", "0x8006"]), 200)), port_and_switch)
        self.assertEqual(self.sent(self.sweep), 0)
        self.assertEqual(self.sent(lambda: self.check(self.api.withdraw(VGUID2, 1), 200)), port_and_switch)
        many = [f"0x{0x8100 + n:04x}" for n in range(40)]    # more than a block
        self.assertEqual(self.sent(lambda: self.check(self.api.declare(4, many), 200)), 2 * port_and_switch)
        self.assertEqual(self.sent(lambda: self.check(self.api.declare(4, []), 200)), port_and_switch + 1)    # OpenSM leaves the switch's second block

    def test_a_key_costs_one_smp_and_no_sweep(self):
        self.assertEqual(self.sm.stop(), 0)
        self.sm = self.manager(counter=os.environ["VHCA_SMPCOUNT_LIB"], opensm_conf="part_enforce off\n").start()    # else ibsim's switches forget it, and are told again
        self.api = self.sm.api
        self.settle()
        sweeps, before = self.sweeps(), self.sm.smps()["all"]
        for n, keys in enumerate((["0x8001"], ["0x8001", "0x0002"], ["0x0002"], [])):
            self.assertEqual(self.sent(lambda k=keys: self.check(self.api.declare(4, k), 200)), 1)
            self.assertEqual(self.sm.smps()["all"] - before, n + 1)
            for key in ("0x8001", "0x0002"):
                self.assertEqual(self.fabric.has(4, key), key in keys)
        self.assertEqual(self.sweeps(), sweeps)
        self.assertEqual(self.sent(self.sweep), 0)

    def test_keys_of_the_base_file(self):
        """The plugin's file is what OpenSM distributes, whoever wants it so."""
        def change():
            with open(self.sm.base_file, "a") as f:
                f.write("storage=0x12:ALL=limited,SELF=full;\n")
            self.sm.resweep()
            self.wait_key(3, "0x0012")    # one sweep finds the change, the next one brings it
        self.assertEqual(self.sent(change), 2 * fabric.HOSTS + 1)    # and the switch's own port

    def test_lost_key_tables(self):
        """What the port has not acknowledged is left to a sweep, sent again by each, and counted again."""
        self.addCleanup(self.fabric.console, 'Error "H3" 0 0x16')
        self.fabric.console('Error "H3" 100 0x16')
        before = self.sweeps()
        self.assertEqual(self.sent(lambda: self.check(self.api.bind(VGUID1, 1, 3, ["0x8001"]), 200)), 2 + self.sweeps() - before)
        self.assertGreater(self.sweeps(), before)
        self.assertEqual(self.sent(self.sweep), 1)
        self.fabric.console('Error "H3" 0 0x16')
        self.assertEqual(self.sent(self.sweep), 1)
        self.assertTrue(self.fabric.has(3, "0x8001"))
        self.assertEqual(self.sent(self.sweep), 0)

    def test_guid_tables(self):
        """What a driver asks for is sent, too, but not on the plugin's account."""
        self.fabric.sa_guid("set", 2, 3, VGUID1)
        self.check(self.api.bind(VGUID1, 1, 2, [], gid_index=3), 200)
        self.settle()
        self.assertEqual((self.sm.smps()["guid_info"], self.count("guid_info")), (1, 0))
        for epoch, source, to in ((2, (2, 3), (3, 9)), (3, (3, 9), (2, 3))):
            before = self.sm.smps()["guid_info"]
            plan = self.check(self.api.move(VGUID1, epoch, source, to, phase="prepare"), 200)
            done = self.check(self.api.move(VGUID1, epoch, source, to), 200)
            self.assertEqual((plan["smps"], done["smps"]), (1, 1))
            self.settle()
            self.assertEqual((self.sm.smps()["guid_info"] - before, self.count("guid_info")), (1, epoch - 1))
            self.fabric.sa_guid("set", *to, VGUID1)
        self.check(self.api.move(VGUID1, 3, (3, 9), (2, 3)), 200)    # again: nobody is evicted
        self.settle()
        self.assertEqual((self.sm.smps()["guid_info"], self.count("guid_info")), (5, 2))

    def test_names(self):
        described = fabric.document().doc["paths"]["/metrics"]["get"]["description"]
        names = {re.sub(r"(_(bucket|sum|count))?(\{.*\})?$", "", key) for key in self.api.metrics()}
        self.assertEqual(names, set(re.findall(r"`(vhcasm_\w+)`", described)))

    def test_what_is_now(self):
        gauges = lambda: [self.api.metrics()[f"vhcasm_{name}"] for name in ("master", "rebuilding", "bindings", "lids_dynamic")]
        self.assertEqual(gauges(), [1, 0, 0, 0])
        self.check(self.api.bind(VGUID1, 1, 2, []), 200)
        self.check(self.api.bind(VGUID2, 1, 3, []), 200)
        self.assertEqual(gauges(), [1, 0, 2, 0])
        self.check(self.api.withdraw(VGUID2, 1), 200)
        self.assertEqual(gauges(), [1, 0, 1, 0])


tap.main(__name__)
