#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What OpenSM with libvhcasm.so knows after a restart, and another OpenSM after a take-over."""

import os
import stat
import time

import fabric
import masters
import tap

from plugin_case import VGUID1, VGUID2, Case


class Restarts(Case):
    def state_of_things(self, sm):
        rows = sm.api.rows("bindings")
        return ([(r["vguid"], r["epoch"], r["port_guid"], r["pkeys"]) for r in rows],
                self.fabric.pkeys(2), self.fabric.pkeys(3))

    def fill(self, sm):
        self.check(sm.api.bind(VGUID1, 3, 2, ["0x8001", "0xffff"]), 200)
        self.check(sm.api.bind(VGUID2, 4, 3, ["0x8002"]), 200)
        self.check(sm.api.withdraw(VGUID2, 5), 200)
        self.check(sm.api.declare(3, ["0x8003"]), 200)
        self.wait_key(2, "0x8001")
        self.wait_key(3, "0x8003")
        self.wait_key(3, "0x8002", there=False)
        return self.state_of_things(sm)

    def test_restart_restores_membership_without_agents(self):
        sm = self.manager().start()
        before = self.fill(sm)
        self.assertEqual(sm.stop(), 0)
        sm.start()
        self.assertEqual(self.state_of_things(sm), before)
        self.check(sm.api.bind(VGUID2, 4, 3, []), 409, "superseded")    # tombstones, too
        self.check(sm.api.withdraw(VGUID1, 3), 200)
        self.check(sm.api.declare(3, []), 200)
        self.wait_key(2, "0x8001", there=False)
        self.assertEqual(sm.stop(), 0)

    def test_kill_and_restart_on_a_fabric_that_forgot(self):
        sm = self.manager().start()
        before = self.fill(sm)
        sm.kill()
        other = self.manager(host=4).start()    # knows nothing: takes the keys away
        self.wait_key(2, "0x8001", there=False)
        self.assertEqual(other.stop(), 0)
        sm.start()
        self.assertEqual(self.state_of_things(sm), before)
        self.assertEqual(sm.stop(), 0)

    def test_answered_means_durable(self):
        sm = self.manager().start()
        for i in range(20):
            self.check(sm.api.bind(f"0x02c9ab00000001{i:02x}", 1, 2, ["0x8001"]), 200)
        sm.kill()
        sm.start()
        rows = sm.api.rows("bindings")
        self.assertEqual(len(rows), 20)
        self.assertEqual(sm.stop(), 0)

    def test_a_state_directory_that_vanishes(self):
        sm = self.manager().start()
        os.rename(sm.state_dir, sm.state_dir + ".away")
        doc = self.check(sm.api.bind(VGUID1, 1, 2, ["0x8001"]), 503, "state_not_saved")
        self.assertTrue(doc["retryable"])
        self.assertIn("bindings", sm.api.call("GET", "/readyz")[1]["problem"])
        before = sm.cpu_seconds()
        time.sleep(1.5)
        self.assertLess(sm.cpu_seconds() - before, 0.5)
        self.assertFalse(self.fabric.has(2, "0x8001"))
        os.rename(sm.state_dir + ".away", sm.state_dir)
        self.wait_key(2, "0x8001")    # saved and brought into effect without a further report
        self.assertEqual(sm.stop(), 0)

    def test_damaged_state_refuses_the_plugin_not_opensm(self):
        sm = self.manager().start()
        self.fill(sm)
        self.assertEqual(sm.stop(), 0)
        path = os.path.join(sm.state_dir, "bindings")
        with open(path) as f:
            text = f.read()
        with open(path, "w") as f:
            f.write(text[:-20])
        swept = sm.sweeps()    # the log goes on
        self.assertRegex(sm.refused(), r"vhcasm: not started: .*/bindings: line \d+: .*move it away")
        fabric.wait_for("a sweep", lambda: sm.sweeps() > swept)
        # The partition file of before is named in opensm.conf: the tenants keep their keys.
        self.wait_key(2, "0x8001")
        self.assertEqual(sm.stop(), 0)

    def test_the_state_is_nobody_elses_to_read(self):
        sm = self.manager().start()
        self.fill(sm)
        self.assertEqual({name: stat.S_IMODE(os.stat(os.path.join(sm.state_dir, name)).st_mode) for name in os.listdir(sm.state_dir)},
                         {"bindings": 0o640, "partitions.conf": 0o640, "lock": 0o600})
        self.assertEqual(sm.stop(), 0)

    def test_what_a_killed_one_was_writing_is_removed(self):
        sm = self.manager()
        os.makedirs(sm.state_dir)
        old = os.path.join(sm.cache_dir, "guid2lid.tmp-4D5e6F")
        left = [old, *(os.path.join(sm.state_dir, f"{name}.tmp-a1B2c3") for name in ("bindings", "partitions.conf", "dynamic-lids"))]
        # Two managers may have one file of LIDs, and one begins while the other writes it.
        kept = [os.path.join(sm.state_dir, "bindings.backup"), os.path.join(sm.cache_dir, "guid2lid.tmp-a1B2c3")]
        for path in (*left, *kept):
            with open(path, "x", encoding="ascii") as f:
                f.write("half")
        os.utime(old, (time.time() - 601,) * 2)
        sm.start()
        self.assertEqual([os.path.exists(path) for path in (*left, *kept)], [False] * len(left) + [True] * len(kept))
        self.assertEqual(sm.stop(), 0)

    def test_two_managers_do_not_share_a_state(self):
        first = self.manager().start()
        second = self.manager(host=2)
        second.state_dir = first.state_dir
        self.assertIn("in use by another OpenSM", second.refused())
        self.assertEqual(second.stop(), 0)
        self.assertEqual(first.stop(), 0)


class Masters(masters.Masters, Case):
    def new_fabric(self):
        return fabric.Fabric()

    def pair(self, inherit=0):
        master = self.manager(host=1, opensm_conf=masters.MASTER).start()
        standby = self.manager(host=2, conf=f"inherit = {inherit}", opensm_conf=masters.STANDBY)
        return master, standby

    def test_a_standby_sends_to_the_master_and_takes_over(self):
        master, standby = self.pair()
        self.enter_standby(standby)
        status, doc = standby.api.call("GET", "/readyz")
        self.assertEqual((status, [r["code"] for r in doc["reasons"] if r["blocks"]]), (503, ["not_master"]))
        doc = self.check(standby.api.bind(VGUID1, 1, 3, ["0x8001"]), 421, "not_master")
        self.assertIn(fabric.port_guid(1), doc["detail"])
        self.assertTrue(doc["retryable"])
        self.check(standby.api.withdraw(VGUID1, 1), 421, "not_master")
        self.check(standby.api.declare(3, []), 421, "not_master")
        doc = self.check(standby.api.call("PUT", "/v1/lids/3", {"port_guid": fabric.port_guid(3)}), 421, "not_master")
        self.assertIn(fabric.port_guid(1), doc["detail"])
        self.assertEqual(master.stop(), 0)
        self.takes_over(standby)
        self.check(standby.api.bind(VGUID1, 1, 3, ["0x8001"]), 200)
        self.wait_key(3, "0x8001")
        self.assertEqual(standby.stop(), 0)

    def test_a_take_over_leaves_the_keys_where_they_are(self):
        master, standby = self.pair(inherit=10)
        for i, key in enumerate(("0x8011", "0x8012", "0x8013")):
            self.check(master.api.bind(f"0x02c9ab000000030{i}", 7, 3, [key]), 200)
            self.wait_key(3, key)
        self.check(master.api.withdraw("0x02c9ab0000000300", 7), 200)
        self.wait_key(3, "0x8011", there=False)
        before = self.fabric.pkeys(3)
        self.enter_standby(standby)
        master.kill()
        self.takes_over(standby)
        self.assertEqual(self.fabric.pkeys(3), before)
        row = next(r for r in standby.api.rows("members")
                   if r["port_guid"] == fabric.port_guid(3))
        self.assertEqual((row["from_bindings"], row["inherited"]), ([], ["0x8012", "0x8013"]))
        # One agent reports again; what nobody reports goes when the time is over.
        self.check(standby.api.bind("0x02c9ab0000000302", 7, 3, ["0x8013"]), 200)
        self.wait_key(3, "0x8012", there=False)    # ten seconds after the take-over
        self.assertEqual({i: k for i, k in before.items() if k != "0x8012"}, self.fabric.pkeys(3))
        self.assertEqual(standby.stop(), 0)

    def test_a_take_over_with_a_slow_disk(self):
        """Six fsyncs of 1.5 s: OpenSM's sweeper waits 5 s for what it reads next, not for all of them."""
        master = self.manager(host=1, opensm_conf=masters.MASTER).start()
        standby = self.manager(host=2, conf="inherit = 600", opensm_conf=masters.STANDBY, slow=os.environ["VHCA_SLOW_DISK_LIB"])
        self.check(master.api.bind(VGUID1, 7, 3, ["0x8011"]), 200)
        self.wait_key(3, "0x8011")
        self.enter_standby(standby)
        standby.slow_down(1500)
        master.kill()
        seen = set()
        fabric.wait_for("the take-over", lambda: seen.add(self.fabric.has(3, "0x8011")) or standby.api.ready(), 30)
        self.assertEqual((seen, "could not be kept" in standby.log()), ({True}, False))
        standby.slow_down(0)
        self.assertEqual(standby.api.call("GET", "/healthz")[1]["problem"], None)
        standby.kill()    # and what was kept is on disk
        standby.start()
        self.assertTrue(self.fabric.has(3, "0x8011"))
        self.assertEqual(standby.stop(), 0)

    def hindered(self, hinder):
        """A standby that is to take over and cannot keep the keys: OpenSM waits, and has been told to."""
        master = self.manager(host=1, opensm_conf=masters.MASTER).start()
        standby = self.manager(host=2, conf="inherit = 600", opensm_conf=masters.STANDBY, slow=os.environ["VHCA_SLOW_DISK_LIB"])
        self.check(master.api.bind(VGUID1, 7, 3, ["0x8011"]), 200)
        self.wait_key(3, "0x8011")
        self.enter_standby(standby)
        hinder(standby)
        master.kill()
        fabric.wait_for("OpenSM waits", lambda: "OpenSM waits until the keys" in standby.log(), 30)
        self.assertTrue(self.fabric.has(3, "0x8011"))
        return standby

    def take_over_late(self, hinder, help_out):
        standby = self.hindered(hinder)
        time.sleep(2)
        self.assertFalse(standby.api.ready())
        help_out(standby)
        seen = set()
        fabric.wait_for("the take-over", lambda: seen.add(self.fabric.has(3, "0x8011")) or standby.api.ready(), 30)
        self.assertEqual(seen, {True})
        self.assertEqual(standby.api.call("GET", "/healthz")[1]["problem"], None)
        self.assertEqual(standby.stop(), 0)

    def test_a_take_over_with_a_disk_that_hangs(self):
        self.take_over_late(lambda sm: sm.slow_down(6000), lambda sm: sm.slow_down(0))

    def test_a_take_over_without_a_directory(self):
        self.take_over_late(lambda sm: os.rename(sm.state_dir, f"{sm.state_dir}.away"),
                            lambda sm: os.rename(f"{sm.state_dir}.away", sm.state_dir))

    def test_it_ends_while_a_take_over_waits(self):
        standby = self.hindered(lambda sm: os.rename(sm.state_dir, f"{sm.state_dir}.away"))
        self.assertEqual(standby.stop(), 0)
        self.assertTrue(self.fabric.has(3, "0x8011"))

    def test_masters_that_live_hand_over_what_the_agents_reported(self):
        """There and back: what the first one remembers is then older than what the ports show."""
        first = self.manager(host=1, conf="inherit = 600", opensm_conf=masters.MASTER).start()
        second = self.manager(host=2, conf="inherit = 600", opensm_conf=masters.HIGHER)
        self.check(first.api.bind(VGUID1, 1, 3, ["0x8011"]), 200)
        self.wait_key(3, "0x8011")
        rebuilding = lambda sm: sm.api.call("GET", "/healthz")[1]["rebuilding"]
        self.assertFalse(rebuilding(first))
        second.start()
        self.wait_standby(first)
        self.check(first.api.bind(VGUID1, 2, 4, ["0x8011"]), 421, "not_master")
        self.assertTrue(rebuilding(second))
        self.wait_key(3, "0x8011")
        self.check(second.api.bind(VGUID1, 1, 3, ["0x8011"]), 200)    # the agent finds it
        self.assertFalse(rebuilding(second))
        self.check(second.api.bind(VGUID2, 1, 4, ["0x8012"]), 200)
        self.wait_key(4, "0x8012")
        self.assertEqual(second.stop(), 0)
        self.takes_over(first)
        self.assertTrue(rebuilding(first))
        self.wait_key(3, "0x8011")
        self.wait_key(4, "0x8012")
        self.check(first.api.bind(VGUID2, 1, 4, ["0x8012"]), 200)
        self.assertFalse(rebuilding(first))
        self.assertEqual(first.stop(), 0)


tap.main(__name__)
