#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The plugin from load to unload, with requests, moves and sweeps in between: nothing that it took is left.

In a build with the address sanitizer the leak sanitizer looks when OpenSM ends. OpenSM leaks itself, so what counts is an allocation with our library in its
stack; it is unloaded by then, and known by the addresses that it had. A build with another sanitizer has another reason to run this.

SMPs without an answer are leaked by OpenSM when it ends, whoever has asked for them: osm_vendor_unbind() (libvendor/osm_vendor_ibumad.c) leaves callbacks behind
that free neither an answer nor its request, and clear_madw() there frees the first request that has no answer, and no other. So a life ends when everything has
its answer; and where there is none, nothing but SMPs may be left.
"""

import ctypes
import glob
import os
import re
import signal
import unittest

import fabric
import fattree
import tap

VGUIDS = [f"0x02c9ab00000000{n:02x}" for n in range(1, 9)]
LEAKS = "detect_leaks=1:exitcode=0:symbolize=0:fast_unwind_on_malloc=0"
FRAME = re.compile(r"^ +#\d+ 0x([0-9a-f]+)$", re.M)


class Manager(fabric.Manager):
    """Its leaks are reported when it ends."""

    def _environment(self):
        env = super()._environment()
        env["ASAN_OPTIONS"] += f':{LEAKS}:log_path={self.dir}/leaks:stack_trace_format="    #%n %p"'
        env["VHCA_NO_KEY_ANSWERS"] = f"{self.dir}/no-key-answers"
        return env

    def lose_answers(self):
        """Those to P_Keys, from now on."""
        self._write("no-key-answers", "")

    def mapped(self, name):
        """(from, to) of a library of the process."""
        with open(f"/proc/{self.process.pid}/maps", encoding="ascii") as f:
            rows = re.findall(rf"^([0-9a-f]+)-([0-9a-f]+) .*/{name}[.0-9]*$", f.read(), re.M)
        return int(rows[0][0], 16), int(rows[-1][1], 16)

    def leaks(self, where):
        """[(what, its stack)] of the reports of allocations with a frame between these addresses, and how many there were in all."""
        text = "".join(open(log, encoding="ascii").read() for log in glob.glob(f"{self.dir}/leaks.*"))
        blocks = [(head, [int(a, 16) for a in FRAME.findall(stack)])
                  for head, stack in re.findall(r"^(\w+ leak of .*:)\n((?: +#.*\n)+)", text, re.M)]
        return [(head, stack) for head, stack in blocks if any(where[0] <= a < where[1] for a in stack)], len(blocks)


def relative(where, leaks):
    """The same to read, and for addr2line."""
    return [head + "".join(f" +0x{a - where[0]:x}" if where[0] <= a < where[1] else " -" for a in stack) for head, stack in leaks]


class Symbol(ctypes.Structure):
    _fields_ = [("file", ctypes.c_char_p), ("base", ctypes.c_void_p), ("name", ctypes.c_char_p), ("address", ctypes.c_void_p)]


class Vendor:
    """The library of OpenSM that has its MADs, here and in a process that has it elsewhere."""

    def __init__(self, where):
        self.where, self.library = where, ctypes.CDLL("libosmvendor.so.5")
        self.base = self._look_up(ctypes.cast(self.library.osm_mad_pool_get, ctypes.c_void_p).value).base

    @staticmethod
    def _look_up(address):
        found = Symbol()
        ctypes.CDLL(None).dladdr(ctypes.c_void_p(address), ctypes.byref(found))
        return found

    def has_allocated(self, stack):
        """Is it a MAD, or its buffer?"""
        return any(self.where[0] <= a < self.where[1] and self._look_up(a - self.where[0] + self.base).name == b"osm_mad_pool_get" for a in stack)


def partitions(sm):
    with open(f"{sm.state_dir}/partitions.conf", encoding="ascii") as f:
        return f.read()


def in_effect(sm):
    fabric.wait_for("keys are in effect", lambda: sm.api.call("GET", "/healthz")[1]["in_effect"], 20)


@unittest.skipIf(fabric.missing(), fabric.missing())
class Life(fattree.Case):
    TREE = (3, 2, 3)

    def begin(self, engine, opensm_conf=""):
        sm = Manager(self.tree, opensm_conf=f"routing_engine {engine}\n{opensm_conf}", conf="[lids]\ndynamic = 4",
                     counter=os.environ["VHCA_SMPCOUNT_LIB"])
        self.tree.managers.append(sm)
        self.addCleanup(sm.kill)
        return sm.start()

    def reports(self, sm):
        for n, vguid in enumerate(VGUIDS):
            self.check(sm.api.bind(vguid, 1, 2 + n % 4, ["0x8001", f"0x{0x8002 + n:04x}"], gid_index=1 + n), 200)
            self.check(sm.api.bind(vguid, 1, 6, []), 409, "epoch_tie")
        self.check(sm.api.declare(3, ["0x8005", "0x0006"]), 200)
        self.check(sm.api.call("PUT", f"/v1/bindings/{VGUIDS[0]}", b"{"), 400)
        for url in ("/v1/bindings", "/v1/members", "/v1/fabric", "/healthz", "/v1/lids/1", "/v1/lids/40000", "/v1/nothing"):
            sm.api.call("GET", url)
        sm.api.metrics()

    def moves(self, sm, engine):
        lids = fattree.Lids(self.tree, sm)
        for a, b in ((2, 3), (4, 8), (5, 9)):
            for mode in fattree.MODES[engine]:
                self.check(lids.put(a, b, mode, plan=True), 200)
                self.check(lids.put(a, b, mode), 200)
                lids.exchanged(a, b)

    def live(self, engine):
        """All of it, and then the leaks that are ours, of how many."""
        sm = self.begin(engine)
        self.reports(sm)
        self.moves(sm, engine)
        fattree.heavy_sweep(sm)
        sm.resweep()
        self.moves(sm, engine)
        for vguid in VGUIDS[::2]:
            self.check(sm.api.withdraw(vguid, 1), 200)
        self.check(sm.api.declare(3, []), 200)
        fattree.heavy_sweep(sm)
        in_effect(sm)    # what was written while the sweep went on is sent behind it
        sm.rest()    # with PortInfo to all switches: ibsim's forget that they enforce partitions
        where = sm.mapped("libvhcasm.so")
        self.assertEqual(sm.stop(60), 0, sm.output()[-2000:])
        ours, n = sm.leaks(where)
        return relative(where, ours), n

    def test_ends_with_nothing_left(self):
        for engine in ("ftree", "dfsssp"):
            with self.subTest(engine):
                ours, n = self.live(engine)
                print(f"# {engine}: {n} leaks, of which ours: {len(ours)}")
                self.assertEqual(ours, [])

    def test_leaves_only_smps_without_an_answer(self):
        sm = self.begin("ftree", "transaction_timeout 60000\n")
        in_effect(sm)
        where, vendor = sm.mapped("libvhcasm.so"), Vendor(sm.mapped("libosmvendor.so"))
        sm.lose_answers()
        before = sm.api.counted()["pkey_table"]
        self.check(sm.api.declare(4, ["0x8005", "0x0006"]), 200)
        fabric.wait_for("P_Key SMPs are sent", lambda: sm.api.counted()["pkey_table"] > before + 1)    # one of them OpenSM frees
        self.assertEqual(sm.stop(60), 0, sm.output()[-2000:])
        ours, n = sm.leaks(where)
        if n:    # the leak sanitizer is there
            self.assertNotEqual(ours, [])
        self.assertEqual(relative(where, [leak for leak in ours if not vendor.has_allocated(leak[1])]), [])

    def test_asks_nothing_of_an_opensm_that_ends(self):
        sm = self.begin("ftree", "sa_db_dump TRUE\n")
        lids, dump = fattree.Lids(self.tree, sm), os.path.join(sm.dir, "opensm-sa.dump.tmp")
        self.assertEqual(self.tree.sa_request("set", 5, 1, "0x02c9ab0000000099"), "0x0000")    # else it has nothing new to dump
        in_effect(sm)
        os.mkfifo(dump)    # it ends when somebody reads this
        sm.process.send_signal(signal.SIGTERM)
        fabric.wait_for("OpenSM ends", lambda: lids.put(2, 3, plan=True)[1].get("code") == "ending")
        before = partitions(sm)
        self.check(sm.api.declare(5, ["0x8007"]), 200)
        fabric.wait_for("the partition file", lambda: partitions(sm) != before)
        with open(dump, "rb", 0, opener=lambda path, flags: os.open(path, flags | os.O_NONBLOCK)) as f:    # it need not come so far
            fabric.wait_for("its end", lambda: (f.read(), sm.process.poll())[1] is not None, 60)
        self.assertEqual(sm.process.returncode, 0, sm.output()[-2000:])
        self.assertEqual([line for line in sm.log().splitlines() if "pkey_mgr" in line], [])


tap.main(__name__)
