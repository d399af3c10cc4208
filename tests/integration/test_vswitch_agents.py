#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The vSwitch with all its parts: the whole agents of two hypervisors, the plugin in a real OpenSM, and hypervisors that are switches on
ibsim, whose vports show what the agents write. Only libvirt is not there: the test is the source's side of the migration towards the destination."""

import http.client
import json
import os
import shutil
import socket
import socketserver
import subprocess
import tempfile
import threading
import unittest
import uuid

import fabric
import fattree
import tap
import vantage
import vswitches
from test_agent import ENV, Agent, conf_text

VGUID = "0x02c9ab0000000011"
DOMAIN = "6d3a0000-0000-4000-8000-000000000001"
SOURCE, DESTINATION = 3, 4    # hypervisors at one leaf
WAIT = 100    # for an agent on FUSE on a busy machine
NOBODY = (0, 0xffffffffffffffff)


class Firmware:
    """Of all hypervisors: shows on ibsim what is written, at once. The vports of a fabric have so many GUIDs as there are vports: the one that a
    tenant's displaces goes to the vport that the tenant has left."""

    def __init__(self, net):
        self.net, self.left = net, []
        self.tenants = {}
        self.servers = []

    def write(self, n, text):
        guid = int(text.replace(":", ""), 16)
        at = (n, 1)
        if guid in NOBODY:
            if self.tenants.pop(at, None):
                self.left.append(at)
                self.net.program(*at, f"0x{0x0002c9ffffffff01 + 256 * n:016x}")
            return
        displaced = self.net.guid[at]
        self.tenants[at] = guid
        self.net.program(*at, f"0x{guid:016x}")
        if self.left:
            self.net.program(*self.left.pop(), displaced)

    def serve(self, n):
        """Path of the socket where hypervisor n's writes arrive."""
        firmware, path = self, os.path.join(self.net.dir, f"firmware{n}")

        class Handler(socketserver.StreamRequestHandler):
            def handle(self):
                firmware.write(n, self.rfile.readline().decode().strip())
                self.wfile.write(b"done\n")

        server = socketserver.UnixStreamServer(path, Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.servers.append(server)
        return path

    def close(self):
        for server in self.servers:
            server.shutdown()
            server.server_close()


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Host(Agent):
    """The whole agent of hypervisor n. Ended by SIGTERM only: that takes its /sys down, too."""

    def __init__(self, n, where, sm, lid, firmware):
        super().__init__(where)
        self.peer_port = free_port()
        self.env = {**ENV, "SIM_PORT_GUID": fabric.port_guid(n), "SIM_LID": str(lid), "SIM_FIRMWARE": firmware}
        self.write(conf_text(where, f"vfs = 1\n[sm]\nbackend = vhcasm\nurl = http://{sm.api.listen}\nlid_policy = vport\npoll = 200ms\n"
                                    f"[api]\npeer_listen = 127.0.0.1:{self.peer_port}\n"))

    def start(self):
        self.log = open(f"{self.where}/log", "ab")
        self.process = subprocess.Popen([os.environ["VHCA_SIM_HOST"], self.conf], stderr=self.log, stdout=self.log, env=self.env)
        self.wait(lambda: self.process.poll() is not None or self.get("/readyz")[0] == 200, WAIT)

    def peer(self, method, path, body=None):
        """As the agent of another hypervisor asks."""
        conn = http.client.HTTPConnection("127.0.0.1", self.peer_port, timeout=30)
        try:
            conn.request(method, path, None if body is None else json.dumps(body))
            answer = conn.getresponse()
            return answer.status, json.loads(answer.read())
        finally:
            conn.close()

    def vf(self):
        return self.get("/v1/vfs")[1]["vfs"][0]

    def await_vf(self, state):
        self.wait(lambda: self.get("/v1/vfs")[1]["vfs"] and self.vf()["state"] == state, WAIT)

    def await_reports(self):
        self.wait(lambda: self.get("/v1/outbox")[1]["outbox"] == [], WAIT)

    def end(self):
        if self.process:
            self.stop()


@unittest.skipIf(fabric.missing(), fabric.missing())
class Agents(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="vhca-vswitch.")
        self.addCleanup(shutil.rmtree, self.dir, True)
        self.net = vswitches.VSwitches()
        self.addCleanup(self.net.close)
        self.firmware = Firmware(self.net)
        self.addCleanup(self.firmware.close)
        port = free_port()
        self.sm = self.net.manager(opensm_conf="routing_engine ftree\n", counter=os.environ["VHCA_SMPCOUNT_LIB"],
                                   listen=f"127.0.0.1:{port}")
        self.sm.start()
        self.lids = vswitches.lids(self.sm)

    def host(self, n):
        host = Host(n, tempfile.mkdtemp(dir=self.dir), self.sm, self.lids[fabric.port_guid(n)], self.firmware.serve(n))
        host.start()
        self.addCleanup(host.end)
        if host.process.poll() == 77:
            self.skipTest(host.log_text())
        host.await_vf("free")
        return host

    def seen(self, watch):
        """The SA's records of paths from a peer to all vports, and where their LIDs lead to."""
        guids = sorted(self.lids)
        records = watch.ask("records", self.lids[fabric.port_guid(1)], int(fabric.port_guid(watch.host), 0),
                            *((int(guid, 0), None) for guid in guids), *((None, self.lids[guid]) for guid in guids))
        self.assertNotIn(None, records)
        return records, dict(zip(guids, watch.ask("who", *(self.lids[guid] for guid in guids))))

    def claimed(self, source):
        """A guest's VF at the source, in a fabric that has settled."""
        status, doc, _ = source.request("POST", "/v1/claims", {"domain": DOMAIN, "name": "ib0", "partition": "0xffff", "guid": VGUID})
        self.assertEqual(status, 201, doc)
        source.await_reports()
        fattree.heavy_sweep(self.sm)
        self.lids = vswitches.lids(self.sm)
        self.assertIn(VGUID, self.lids)
        return source.get("/v1/claims")[1]["claims"][0]

    def migrate(self, source, destination, claim):
        """The source's side: what its agent asks of the destination's, and the VF given up in between."""
        path = f"/v1/peer/claims/{uuid.uuid4()}"
        vf = {"name": "ib0", "way": "metadata", "fabric": "default", "guid": VGUID, "epoch": claim["epoch"], "pkeys": ["0xffff"],
              "guest_address": "0000:07:00.0", "port_guid": fabric.port_guid(SOURCE), "gid_index": 0, "lid": self.lids[fabric.port_guid(SOURCE)]}
        status, doc = destination.peer("PUT", path, {"domain": DOMAIN, "name": "vm1", "node": "hva", "mode": "external", "vfs": [vf]})
        self.assertIn(status, (200, 201, 202), doc)
        destination.wait(lambda: destination.peer("GET", path)[1]["state"] == "reserved", WAIT)
        status, doc, _ = source.request("DELETE", f"/v1/claims/{claim['id']}")
        self.assertIn(status, (200, 202, 204), doc)
        source.await_vf("free")
        source.await_reports()
        status, doc = destination.peer("POST", f"{path}/handover", {"vfs": [{"guid": VGUID, "epoch": claim["epoch"] + 1}]})
        self.assertEqual(status, 200, doc)
        destination.await_vf("programmed")
        destination.await_reports()

    def test_guid_and_lid_follow_the_guest(self):
        source, destination = self.host(SOURCE), self.host(DESTINATION)
        claim = self.claimed(source)
        watches = [vantage.Vantage(self.net, host) for host in (1, 6)]
        for watch in watches:
            self.addCleanup(watch.close)
        before = [self.seen(watch) for watch in watches]
        self.assertEqual(before[0][1][VGUID], f"F{SOURCE}-1")
        displaced = self.net.guid[DESTINATION, 1]
        sent, kept, sweeps = self.sm.smps(), vswitches.guid2lid(self.sm), self.sm.api.call("GET", "/v1/fabric")[1]["sweeps"]
        self.migrate(source, destination, claim)
        wire = {kind: n - sent[kind] for kind, n in self.sm.smps().items()}
        print(f"# {wire}", flush=True)
        moves = self.sm.api.call("GET", "/v1/fabric")[1]
        self.assertEqual((moves["sweeps"], moves["moves"]["applied"]), (sweeps, 1))    # OpenSM has computed nothing
        self.assertEqual((wire["port_info"], wire["all"]), (2, wire["lft"] + 2))
        self.assertLessEqual(wire["all"], 5)
        for watch, (records, places) in zip(watches, before):
            places[VGUID], places[displaced] = f"F{DESTINATION}-1", f"F{SOURCE}-1"
            self.assertEqual(self.seen(watch), (records, places))
        self.assertEqual(vswitches.guid2lid(self.sm), kept)
        binding = self.sm.api.get(VGUID)[1]
        self.assertEqual((binding["epoch"], binding["port_guid"]), (claim["epoch"] + 1, fabric.port_guid(DESTINATION)))
        lft = self.sm.smps()["lft"]
        fattree.heavy_sweep(self.sm)
        self.assertEqual(self.sm.smps()["lft"], lft)
        self.assertEqual(vswitches.lids(self.sm), self.lids)
        for host in (source, destination):
            host.end()
        self.assertEqual(self.sm.stop(), 0)


tap.main(__name__)
