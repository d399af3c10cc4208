#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The monitoring probe of drivers/opennebula, against a whole agent on a simulated ConnectX-3 of four VFs, one of them reserved."""

import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
import unittest

import tap
from host_case import OTHER_UUID, OTHER_VF, PF, UUID, HostCase

PROBE = pathlib.Path(os.environ["VHCA_SOURCE_DIR"]) / "drivers/opennebula/im/kvm-probes.d/host/system/vhca"
IN_TIME = 3    # seconds, in which monitord has everything else waiting
# What OpenNebula's parser takes for an attribute: a name, and a quoted value or a vector of such.
PAIR = r'[A-Z][A-Z0-9_]*="[^"\\\n]*"'
LINE = re.compile(rf"({PAIR})|([A-Z][A-Z0-9_]*)=\[ ({PAIR}(?:, {PAIR})*) \]")


def probe(place):
    """(stdout, stderr, exit status, seconds) of the probe, as monitord runs it."""
    begun = time.monotonic()
    p = subprocess.run([str(PROBE), "7", "hv1"], input="<HOST_ID>7</HOST_ID>", capture_output=True, text=True, timeout=60, check=False,
                       env={"PATH": "/usr/bin:/bin", "VHCA_SOCKET": place})
    return p.stdout, p.stderr, p.returncode, time.monotonic() - begun


def attributes(text):
    """{name: value, or a list of vectors}; whatever OpenNebula would not read is an error."""
    found = {}
    for line in text.splitlines():
        m = LINE.fullmatch(line)
        if not m:
            raise AssertionError(f"no attribute: {line!r}")
        if m[1]:
            name, value = m[1].split("=", 1)
            if name in found:
                raise AssertionError(f"{name} twice")
            found[name] = value[1:-1]
        else:
            found.setdefault(m[2], []).append(dict(re.findall(r'([A-Z0-9_]+)="([^"]*)"', m[3])))
    return found


class Probe(HostCase):
    CONF = (f"vfs = keep\nfabric = phys-net1\nreserve = {OTHER_VF}\n"
            "[partition physics]\npkey = 0x8001\n[partition storage-2]\npkey = 0x0002\n")

    def attributes(self):
        """Of the first answer: a busy machine may take longer than the probe waits for one."""
        said = []
        self.host.wait(lambda: said.append(probe(f"{self.where}/run/vhcad.sock")) or said[-1][0])
        self.assertEqual({(err, status) for _, err, status, _ in said}, {("", 0)})
        return attributes(said[-1][0])

    def claim(self, uuid, partition):
        status, answer = self.host.request("POST", "/v1/claims", {"domain": uuid, "name": "ib0", "partition": partition, "fabric": "phys-net1"})[:2]
        self.assertLess(status, 300, answer)
        self.addCleanup(self.host.request, "DELETE", f"/v1/claims/{answer['id']}")

    def test_a_host_at_rest(self):
        self.host.wait(lambda: self.attributes()["IB_VF_FREE"] == "3")
        found = self.attributes()
        self.assertEqual(found["IB_AGENT"][0]["STATUS"], "ready")
        self.assertEqual(len(found["IB_HCA"]), 1)
        hca = found.pop("IB_HCA")[0]
        self.assertEqual({k: hca[k] for k in ("PF", "FABRIC", "PORT", "STATE", "LID", "VFS", "VFS_FREE", "PKEYS_FREE")},
                         {"PF": PF, "FABRIC": "phys-net1", "PORT": "1", "STATE": "ACTIVE", "LID": "3", "VFS": "4",
                          "VFS_FREE": "3", "PKEYS_FREE": "2"})
        self.assertNotIn("NUMA_NODE", hca)
        del found["IB_AGENT"], found["IB_SM_REACHABLE"]
        self.assertEqual(found, {"IB_VF_FREE": "3", "IB_PKEYS_FREE": "2", "IB_PORTS_ACTIVE": "1", "IB_NUMA_NODE": "-1",
                                 "IB_VF_FREE_PHYS_NET1": "3", "IB_PKEYS_FREE_PHYS_NET1": "2", "IB_PORTS_ACTIVE_PHYS_NET1": "1",
                                 "IB_NUMA_NODE_PHYS_NET1": "-1",
                                 "IB_GUESTS_PHYSICS": "0", "IB_GUESTS_STORAGE_2": "0"})

    def test_what_guests_have_is_not_free(self):
        self.claim(UUID, "physics")
        self.claim(OTHER_UUID, "0x8001")
        found = self.attributes()
        self.assertEqual((found["IB_VF_FREE"], found["IB_VF_FREE_PHYS_NET1"], found["IB_HCA"][0]["VFS_FREE"]), ("1", "1", "1"))
        self.assertEqual((found["IB_GUESTS_PHYSICS"], found["IB_GUESTS_STORAGE_2"]), ("2", "0"))

    def test_a_drained_host_offers_nothing(self):
        self.addCleanup(self.host.request, "DELETE", "/v1/drain")
        status, answer = self.host.request("POST", "/v1/drain", {"park": True})[:2]
        self.assertEqual(status, 202, answer)
        found = self.attributes()
        self.assertEqual((found["IB_AGENT"][0]["STATUS"], found["IB_VF_FREE"], found["IB_VF_FREE_PHYS_NET1"]), ("drained", "0", "0"))
        self.assertEqual(found["IB_NUMA_NODE"], "-1")

    def test_the_page_names_what_there_is(self):
        page = (PROBE.parents[6] / "docs/opennebula.md").read_text("utf-8")
        said = set(re.findall(r"\bIB_[A-Z_]+\b", page[page.index("## 6."):page.index("## 7.")]))
        there = self.attributes()
        names = {re.sub("PHYS_NET1$", "FABRIC", re.sub("(PHYSICS|STORAGE_2)$", "PARTITION", name)) for name in there}
        self.assertEqual({re.sub("DEFAULT$", "FABRIC", re.sub("PHYSICS$", "PARTITION", name)) for name in said}, names)
        members = {key for name in ("IB_AGENT", "IB_HCA") for key in there[name][0]}
        self.assertEqual(members | {"NUMA_NODE"}, set(re.findall("`([A-Z_]+)`", page[page.index("| `IB_AGENT`"):page.index("FABRIC and PARTITION")]))
                         - {"IB_AGENT", "IB_HCA"})

    def test_an_agent_that_hangs(self):
        self.host.signal(signal.SIGSTOP)
        self.addCleanup(self.host.signal, signal.SIGCONT)
        said = [probe(f"{self.where}/run/vhcad.sock")]
        while said[-1][3] >= IN_TIME and len(said) < 5:    # others on this machine only make it longer
            said.append(probe(f"{self.where}/run/vhcad.sock"))
        self.assertEqual({answer[:3] for answer in said}, {("", "", 0)})
        self.assertLess(said[-1][3], IN_TIME)


class Node(HostCase):
    """An adapter whose place the kernel knows."""
    CONF = "vfs = keep\n"

    @classmethod
    def prepare(cls):
        super().prepare()
        cls.host.before = {"SIM_NUMA": "1"}

    def test_numa_node(self):
        def found():
            return attributes(probe(f"{self.where}/run/vhcad.sock")[0])
        self.host.wait(lambda: found().get("IB_VF_FREE") == "4")
        self.assertEqual([found()[name] for name in ("IB_NUMA_NODE", "IB_NUMA_NODE_DEFAULT")], ["1", "1"])
        self.assertEqual(found()["IB_HCA"][0]["NUMA_NODE"], "1")


class NoAgent(unittest.TestCase):
    def setUp(self):
        self.where = tempfile.mkdtemp(prefix="vhca-one.")
        self.addCleanup(shutil.rmtree, self.where)
        self.place = f"{self.where}/socket"

    def test_no_socket(self):
        self.assertEqual(probe(self.place)[:3], ("", "", 0))

    def answered(self, data):
        """What the probe says to an agent that answers so."""
        with socket.socket(socket.AF_UNIX) as door:
            door.bind(self.place)
            door.listen()

            def answer():
                end = door.accept()[0]
                with end:
                    end.recv(4096)
                    end.sendall(data)
            thread = threading.Thread(target=answer)
            thread.start()
            said = probe(self.place)
            thread.join()
        os.unlink(self.place)
        return said[:3]

    def test_answers_that_are_none(self):
        for data in (b"", b"\xff\xfe", b"HTTP/1.1 503 Service Unavailable\r\n\r\nIB_VF_FREE=\"1\"\n", b"HTTP/1.1 200 OK\r\n\r\nIB_VF_FREE=\"1",
                     b"HTTP/1.1 200 OK\r\n"):
            with self.subTest(data):
                self.assertEqual(self.answered(data), ("", "", 0))
        self.assertEqual(self.answered(b'HTTP/1.1 200 OK\r\n\r\nIB_VF_FREE="1"\n'), ('IB_VF_FREE="1"\n', "", 0))


tap.main(__name__)
