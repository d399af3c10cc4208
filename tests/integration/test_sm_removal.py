#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The plugin is removed as libvhcasm(7) says, by its own commands: OpenSM goes on without it, and no guest loses a key or a LID."""

import os
import pathlib
import re
import subprocess
import unittest

import fabric
import fattree
import masters
import page_code
import tap
import vswitches
from plugin_case import VGUID1, VGUID2, Case

PAGE = (pathlib.Path(os.environ["VHCA_SOURCE_DIR"]) / "docs/man/libvhcasm.7.rst").read_text("utf-8")
SECTION = re.search(r"^REMOVAL\n=+\n(.*?)^LIMITS\n", PAGE, re.M | re.S)[1]
VHCAD_CONF, COMMANDS, COPY, CLEAN = (block.replace("\\\n", "") for block in page_code.indented(SECTION))
VPORT, DYNAMIC = "0x02c9ab0000000011", "0x02c9ab0000000021"
CTL = os.environ["VHCASMCTL"]


class Operator:
    """Types what the page says, on the host of an OpenSM; the paths are those of the test."""

    def __init__(self, case, sm):
        self.case, self.sm = case, sm

    def here(self, text):
        for path, own in (("/etc/opensm/partitions.conf", f"{self.sm.dir}/stock-partitions.conf"), ("/etc/opensm/opensm.conf", f"{self.sm.dir}/opensm.conf"),
                          ("/var/cache/opensm", self.sm.cache_dir), ("/var/lib/vhcasm", self.sm.state_dir), ("vhcasmctl ", f"{CTL} --config {self.sm.dir}/vhcasm.conf ")):
            text = text.replace(path, own)
        return text

    def type(self, line):
        if line == "systemctl stop opensm":
            self.case.assertEqual(self.sm.stop(), 0)
        elif line == "systemctl start opensm":
            self.start()
        else:
            done = subprocess.run(["sh", "-ec", self.here(line)], capture_output=True, text=True, timeout=60)
            self.case.assertEqual(done.returncode, 0, f"{line}: {done.stdout}{done.stderr}")

    def start(self):
        """OpenSM with the opensm.conf that there is."""
        sm, before = self.sm, self.sm.sweeps()
        with open(os.path.join(sm.dir, "stdout.log"), "a") as out:
            sm.process = subprocess.Popen([fabric.tool("opensm"), "-F", os.path.join(sm.dir, "opensm.conf")], cwd=sm.dir, env=sm._environment(),
                                          stdin=subprocess.DEVNULL, stdout=out, stderr=out, preexec_fn=fabric.few_descriptors)
        self.case.addCleanup(sm.kill)
        fabric.wait_for("the first sweep, or a stand-by", lambda: sm.alive() and (sm.sweeps() > before or self.stands_by()), 30)

    def stands_by(self):
        return "Entering STANDBY" in self.sm.log().rpartition("OpenSM 3")[2]

    def remove(self, before_install=()):
        for line in COMMANDS.splitlines():
            if line.startswith("install"):
                for more in before_install:
                    self.type(more)
            self.type(line)
        self.case.assertNotIn(b"libvhcasm", pathlib.Path(f"/proc/{self.sm.process.pid}/maps").read_bytes())


class Page(unittest.TestCase):
    def test_vhcad_takes_that_configuration(self):
        self.assertEqual(VHCAD_CONF.split("\n\n")[0].split("\n")[0], "[sm]")
        where = subprocess.run(["mktemp", "-d"], capture_output=True, text=True, check=True).stdout.strip()
        self.addCleanup(subprocess.run, ["rm", "-r", where])
        pathlib.Path(f"{where}/vhcad.conf").write_text(f"{VHCAD_CONF}url = https://sm1:8515\n")
        done = subprocess.run([os.environ["VHCAD"], "--check-config", "--config", f"{where}/vhcad.conf"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)


class Shared(Case):
    """Ports that guests share, LIDs that hosts have exchanged."""

    def test_keys_and_lids_stay(self):
        sm = self.manager(lids=True).start()
        self.check(sm.api.declare(2, ["0x8001", "0x8002", "0x8003"]), 200)
        self.wait_key(2, "0x8003")
        self.check(sm.api.declare(2, ["0x8001", "0x8003"]), 200)    # a hole: OpenSM would make another table of it
        self.check(sm.api.bind(VGUID1, 1, 3, ["0x8001"]), 200)
        self.check(sm.api.bind(VGUID2, 1, 4, ["0x0002"]), 200)
        lids = fattree.Lids(self.fabric, sm)
        self.assertEqual(self.check(lids.put(2, 3), 200)["state"], "applied")
        self.wait_key(2, "0x8002", there=False)
        fabric.wait_for("in effect", lambda: sm.api.call("GET", "/readyz")[1]["in_effect"])
        before = [(self.fabric.pkeys(host), self.fabric.lid(host)) for host in range(1, fabric.HOSTS + 1)]
        self.assertEqual(self.fabric.lid(2), lids.of[3])
        operator = Operator(self, sm)
        operator.remove(["sed -i 's/^partition_config_file/\\t&/' /etc/opensm/opensm.conf"])    # OpenSM takes it so, too
        now = lambda: [(self.fabric.pkeys(host), self.fabric.lid(host)) for host in range(1, fabric.HOSTS + 1)]
        self.assertEqual(now(), before)
        for line in CLEAN.splitlines():
            operator.type(line)
        self.assertEqual(sm.stop(), 0)
        operator.start()
        self.assertEqual(now(), before)
        self.assertFalse(os.path.exists(sm.state_dir))
        self.assertEqual(sm.stop(), 0)


@unittest.skipIf(fabric.missing(), fabric.missing())
class Virtual(unittest.TestCase):
    """Guests with ports of their own: one that has moved, one with a dynamic LID."""

    check = Case.check

    def setUp(self):
        self.net = vswitches.VSwitches()
        self.addCleanup(self.net.close)

    def report(self, vguid, epoch, host, pkeys, **more):
        body = {"epoch": epoch, "port_guid": fabric.port_guid(host), "gid_index": 0, "pkeys": pkeys, **more}
        return self.check(self.sm.api.call("PUT", f"/v1/bindings/{vguid}", body, timeout=70), 200)

    def truth(self):
        """By the fabric itself: the keys of each port, and who is reached by each LID from afar; and what the SA says of paths there."""
        keys = {name: self.net.pkeys(name) for name in [*(f"H{n}" for n in range(2, vswitches.HYPERVISORS + 1)), *(f"F{n}-{v}" for n, v in self.net.guid)]}
        reached = {host: self.net.watch(host).ask("who", *self.lids.values()) for host in (1, 4, 6)}
        paths = self.net.watch(1).ask("paths", self.lids[fabric.port_guid(1)], int(fabric.port_guid(1), 0),
                                      *((int(guid, 0), None) for guid in self.lids if guid != fabric.port_guid(1)))
        return keys, reached, paths

    def as_before(self, before):
        """Keys and LIDs at once; in the middle of a sweep the SA has no paths."""
        self.assertEqual(self.truth()[:2], before[:2])
        fabric.wait_for("the SA's paths", lambda: self.truth() == before, 20, 0.5)

    def test_keys_lids_and_paths_stay(self):
        self.net.program(1, 1, VPORT)
        self.net.take(2, 1)
        self.sm = self.net.manager(conf="[lids]\ndynamic = 8\n", opensm_conf="routing_engine ftree").start()
        self.report(VPORT, 1, 1, ["0x8001"])
        self.check(vswitches.move(self.sm, VPORT, 2, (1, 1), (3, 2), "host", pkeys=["0x8001"]), 200)
        self.net.exchange((1, 1), (3, 2))
        move = self.check(vswitches.move(self.sm, VPORT, 2, (1, 1), (3, 2), pkeys=["0x8001"]), 200)["lid_move"]
        given = self.report(DYNAMIC, 1, 2, ["0x8002"], lid_policy="dynamic")["lid_move"]
        self.net.give(2, 1, DYNAMIC)
        fabric.wait_for("its port", lambda: self.sm.api.call("GET", f"/v1/lids/{given['lid']}")[1].get("port_guid") == DYNAMIC, 20)
        fattree.heavy_sweep(self.sm)
        fabric.wait_for("in effect", lambda: self.sm.api.call("GET", "/readyz")[1]["in_effect"])
        self.lids = vswitches.lids(self.sm)
        self.assertEqual((self.lids[VPORT], self.lids[DYNAMIC]), (move["lid"], given["lid"]))
        before = self.truth()
        self.assertNotIn(None, before[2])
        self.assertIn("0x8001", before[0]["F3-2"].values())
        self.assertIn("0x8002", before[0]["F2-1"].values())
        Operator(self, self.sm).remove()
        self.as_before(before)
        self.net.take(2, 1)    # a guest stops, and starts
        self.net.give(2, 1, DYNAMIC)
        fabric.wait_for("its LID", lambda: self.truth() == before, 30, 0.5)
        self.assertEqual(self.sm.stop(), 0)
        self.sm.start()    # the plugin comes back, and has what it had
        self.assertEqual([(row["vguid"], row["state"]) for row in self.sm.api.rows("bindings")], [(VPORT, "granted"), (DYNAMIC, "granted")])
        self.as_before(before)
        self.assertEqual(self.sm.stop(), 0)


@unittest.skipIf(fabric.missing(), fabric.missing())
class Two(masters.Masters, Case):
    """The stand-by first."""

    setUpClass = masters.Masters.setUpClass

    def new_fabric(self):
        return fabric.Fabric()

    def test_keys_and_lids_stay(self):
        master = self.manager(lids=True, opensm_conf=masters.MASTER).start()
        standby = self.manager(host=4, lids=True, opensm_conf=masters.STANDBY)
        self.enter_standby(standby)
        self.check(master.api.bind(VGUID1, 1, 2, ["0x8001"]), 200)
        self.check(master.api.declare(3, ["0x8002"]), 200)
        lids = fattree.Lids(self.fabric, master)
        self.assertEqual(self.check(lids.put(2, 3), 200)["state"], "applied")
        self.wait_key(2, "0x8001")
        fabric.wait_for("in effect", lambda: master.api.call("GET", "/readyz")[1]["in_effect"])
        now = lambda: [(self.fabric.pkeys(host), self.fabric.lid(host)) for host in (1, 2, 3)]
        before = now()
        Operator(self, standby).remove([COPY.strip().replace("scp sm1:/var/lib/vhcasm", f"cp {master.state_dir}")])
        self.assertEqual(now(), before)
        swept, by_master = standby.sweeps(), master.sweeps()
        operator = Operator(self, master)
        for line in COMMANDS.splitlines():
            if line == "systemctl start opensm":
                fabric.wait_for("the other one takes over", lambda: standby.sweeps() > swept, 30)
                self.assertEqual(now(), before)
            operator.type(line)
        fabric.wait_for("the master is back", lambda: master.sweeps() > by_master, 30)
        self.assertEqual(now(), before)


tap.main(__name__)
