#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The vSwitch with all its parts: the whole agents of two hypervisors, the plugin in a real OpenSM, and hypervisors that are switches on
ibsim, whose vports show what the agents write. Only libvirt is not there: the test is the source's side of the migration towards the destination."""

import http.client
import json
import os
import shutil
import socketserver
import subprocess
import tempfile
import threading
import unittest
import uuid

import fabric
import fattree
import tap
import test_vswitch_dynamic
import vantage
import vswitches
from test_agent import ENV, Agent, conf_text

VGUID = "0x02c9ab0000000011"
DOMAIN = "6d3a0000-0000-4000-8000-000000000001"
SOURCE, DESTINATION = 3, 4    # hypervisors at one leaf
KEY = "0x8005"    # another tenant's
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


class Ports(Firmware):
    """VFs have ports only while they have tenants."""

    def write(self, n, text):
        guid = int(text.replace(":", ""), 16)
        at = (n, 1)
        if guid not in NOBODY:
            self.tenants[at] = guid
            self.net.give(*at, f"0x{guid:016x}")
        elif self.tenants.pop(at, None):
            self.net.take(*at)


class Host(Agent):
    """The whole agent of hypervisor n. Ended by SIGTERM only: that takes its /sys down, too."""

    def __init__(self, n, where, sm, lid, firmware, policy):
        super().__init__(where)
        self.sm = sm
        self.peer_port = fabric.free_port()
        self.env = {**ENV, "SIM_PORT_GUID": fabric.port_guid(n), "SIM_LID": f"{where}/lid", "SIM_FIRMWARE": firmware}
        self.show_lid(lid)
        self.write(conf_text(where, f"vfs = 1\n[sm]\nbackend = vhcasm\nurl = http://{sm.api.listen}\nlid_policy = {policy}\npoll = 200ms\n"
                                    "[policy]\nallow_default_partition = yes\n"
                                    f"[api]\npeer_listen = 127.0.0.1:{self.peer_port}\n"))

    def show_lid(self, lid):
        """The port's, from now on."""
        with open(f"{self.where}/lid.new", "w") as f:
            f.write(str(lid))
        os.rename(f.name, self.env["SIM_LID"])

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
        try:
            self.wait(lambda: self.get("/v1/outbox")[1]["outbox"] == [], WAIT)
        except AssertionError as e:
            raise AssertionError(f"{e}\n{self.pending()}") from None

    def pending(self):
        """What both sides say of a report that does not get through."""
        facts = {"outbox": self.get("/v1/outbox")[1], **{path: self.sm.api.call("GET", path)[1] for path in ("/healthz", "/v1/fabric")}}
        told = [line for line in self.sm.log().splitlines() if " -> " in line and "] 0x04 -> " not in line]    # all but its steps
        return "\n".join([*(f"{name}: {json.dumps(doc)}" for name, doc in facts.items()), *told[-60:]])

    def end(self):
        if self.process:
            self.stop()


class Hosts:
    """Of a test case: agents, and what a source asks of its destination."""

    def begin(self, firmware):
        self.dir = tempfile.mkdtemp(prefix="vhca-vswitch.")
        self.addCleanup(shutil.rmtree, self.dir, True)
        self.firmware = firmware
        self.addCleanup(self.firmware.close)

    def host(self, n):
        host = Host(n, tempfile.mkdtemp(dir=self.dir), self.sm, self.lids[fabric.port_guid(n)], self.firmware.serve(n), self.POLICY)
        host.start()
        self.addCleanup(host.end)
        if host.process.poll() == 77:
            self.skipTest(host.log_text())
        host.await_vf("free")
        return host

    def claim(self, host):
        status, doc, _ = host.request("POST", "/v1/claims", {"domain": DOMAIN, "name": "ib0", "partition": "0xffff", "guid": VGUID})
        self.assertEqual(status, 201, doc)
        host.await_reports()
        return host.get("/v1/claims")[1]["claims"][0]

    def release(self, host, claim):
        status, doc, _ = host.request("DELETE", f"/v1/claims/{claim['id']}")
        self.assertIn(status, (200, 202, 204), doc)
        host.await_vf("free")
        host.await_reports()

    def offer(self, destination, claim):
        """Path of the migration at the destination, which keeps a VF for it."""
        path = f"/v1/peer/claims/{uuid.uuid4()}"
        vf = {"name": "ib0", "way": "metadata", "fabric": "default", "guid": VGUID, "epoch": claim["epoch"], "pkeys": ["0xffff"],
              "guest_address": "0000:07:00.0", "port_guid": fabric.port_guid(SOURCE), "gid_index": 0, "lid": self.lids[fabric.port_guid(SOURCE)]}
        status, doc = destination.peer("PUT", path, {"domain": DOMAIN, "name": "vm1", "node": "hva", "mode": "external", "vfs": [vf]})
        self.assertIn(status, (200, 201, 202), doc)
        destination.wait(lambda: destination.peer("GET", path)[1]["state"] == "reserved", WAIT)
        return path

    def hand_over(self, destination, path, claim):
        status, doc = destination.peer("POST", f"{path}/handover", {"vfs": [{"guid": VGUID, "epoch": claim["epoch"] + 1}]})
        self.assertEqual(status, 200, doc)
        destination.await_vf("programmed")
        destination.await_reports()


@unittest.skipIf(fabric.missing(), fabric.missing())
class Agents(unittest.TestCase, Hosts):
    POLICY = "vport"

    def setUp(self):
        self.net = vswitches.VSwitches()
        self.addCleanup(self.net.close)
        self.begin(Firmware(self.net))
        self.sm = self.net.manager(opensm_conf="routing_engine ftree\n", counter=os.environ["VHCA_SMPCOUNT_LIB"],
                                   listen=f"127.0.0.1:{fabric.free_port()}")
        self.sm.start()
        self.lids = vswitches.lids(self.sm)

    def seen(self, watch):
        """The SA's records of paths from a peer to all vports, and where their LIDs lead to."""
        guids = sorted(self.lids)
        records = watch.ask("records", self.lids[fabric.port_guid(1)], int(fabric.port_guid(watch.host), 0),
                            *((int(guid, 0), None) for guid in guids), *((None, self.lids[guid]) for guid in guids))
        self.assertNotIn(None, records)
        return records, dict(zip(guids, watch.ask("who", *(self.lids[guid] for guid in guids))))

    def claimed(self, source):
        """A guest's VF at the source, in a fabric that has settled."""
        claim = self.claim(source)
        fattree.heavy_sweep(self.sm)
        self.lids = vswitches.lids(self.sm)
        self.assertIn(VGUID, self.lids)
        return claim

    def migrate(self, source, destination, claim):
        path = self.offer(destination, claim)
        self.release(source, claim)
        self.hand_over(destination, path, claim)

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

    def test_an_sm_that_knows_nothing_hears_all_when_the_lid_changes(self):
        """The SM has lost its state, and nobody has told the agent: it sees the LID that the new one gives."""
        source = self.host(SOURCE)
        claim = self.claimed(source)
        self.assertEqual(self.sm.stop(), 0)
        shutil.rmtree(self.sm.state_dir)
        self.sm.start()
        self.assertEqual(self.sm.api.get(VGUID)[0], 404)
        source.show_lid(self.lids[fabric.port_guid(SOURCE)] + 100)
        fabric.wait_for("the binding", lambda: self.sm.api.get(VGUID)[0] == 200, WAIT)
        binding = self.sm.api.get(VGUID)[1]
        self.assertEqual((binding["epoch"], binding["port_guid"]), (claim["epoch"], fabric.port_guid(SOURCE)))
        source.await_reports()
        source.end()
        self.assertEqual(self.sm.stop(), 0)

    def check_another_ones_keys(self, begin, end):
        """They stay where the guest is going to be, because from begin() to end() OpenSM's SMPs to that port are lost."""
        source, destination = self.host(SOURCE), self.host(DESTINATION)
        claim, place = self.claimed(source), f"F{DESTINATION}-1"
        displaced = self.net.guid[DESTINATION, 1]
        self.assertEqual(self.sm.api.call("PUT", f"/v1/members/{displaced}", {"pkeys": [KEY]})[0], 200)
        fabric.wait_for("the other one's key", lambda: self.net.has(place, KEY), 20)
        path = self.offer(destination, claim)
        self.release(source, claim)
        begin(place)
        self.assertEqual(destination.peer("POST", f"{path}/handover", {"vfs": [{"guid": VGUID, "epoch": claim["epoch"] + 1}]})[0], 200)
        destination.await_vf("programmed")
        destination.wait(lambda: "has not acknowledged its P_Keys yet" in json.dumps(destination.get("/v1/outbox")[1]), WAIT)
        end(place)
        destination.await_reports()
        self.assertFalse(self.net.has(place, KEY))
        self.assertTrue(self.net.has(f"F{SOURCE}-1", KEY))
        for host in (source, destination):
            host.end()
        self.assertEqual(self.sm.stop(), 0)

    def lose(self, place):
        self.net.console(f'Error "{place}" 100 {fattree.PKEY_TABLE}')

    def lose_no_more(self, place):
        self.net.console(f'Error "{place}" 0 {fattree.PKEY_TABLE}')

    def test_no_report_is_accepted_with_another_ones_keys(self):
        self.check_another_ones_keys(self.lose, self.lose_no_more)

    def test_a_sweep_that_loses_the_port_is_not_the_last_one(self):
        """In the sweep that is to repair the move the port does not answer either, and OpenSM drops it."""
        def after_a_sweep(place):
            dropped = f"Removed port with GUID:{VGUID}"
            fabric.wait_for("sweeps that drop the port", lambda: "ERRORS DURING" in self.sm.log().partition(dropped)[2], 60)
            self.sm.rest()
            self.lose_no_more(place)

        self.check_another_ones_keys(self.lose, after_a_sweep)


class DynamicLids(test_vswitch_dynamic.Case, Hosts):
    """A guest's VF has a LID from its claim to its end, by the ways to whatever hypervisor it is at."""
    POLICY = "dynamic"

    def setUp(self):
        super().setUp()
        self.begin(Ports(self.net))
        self.manager("ftree", limit=4, listen=f"127.0.0.1:{fabric.free_port()}")

    def lid(self):
        """The vGUID's, 0 = none."""
        rows = {lid: self.sm.api.call("GET", f"/v1/lids/{lid}") for lid in range(1, self.sm.api.call("GET", "/v1/fabric")[1]["max_lid"] + 5)}
        return next((lid for lid, (status, row) in rows.items() if status == 200 and row["vguid"] == VGUID), 0)

    def sent(self):
        return self.sm.api.call("GET", "/v1/fabric")[1]["moves"]["lft_smps"]

    def leaves_guest(self, lid):
        """The source's guest has let go of its VF; its agent withdraws, as it does in a migration. (Without a libvirt it does not migrate.)"""
        pf = fabric.port_guid(SOURCE)
        self.firmware.write(SOURCE, "0")
        self.wait_port(lid, pf)
        epoch = self.sm.api.get(VGUID)[1]["epoch"]
        answer = self.sm.api.call("DELETE", f"/v1/bindings/{VGUID}?epoch={epoch}&port_guid={pf}&keep_lid=yes")
        self.assertNotIn("lid_move", self.check(answer, 200))

    def test_a_lid_for_a_guest(self):
        source, destination = self.host(SOURCE), self.host(DESTINATION)
        pf = {n: self.lids[fabric.port_guid(n)] for n in (SOURCE, DESTINATION)}
        claim = self.claim(source)
        source.await_vf("programmed")
        lid = self.lid()
        self.assertEqual(self.sent(), test_vswitch_dynamic.SWITCHES)
        self.wait_port(lid, VGUID)
        self.check_there(VGUID, lid, (SOURCE, 1))

        path = self.offer(destination, claim)
        self.leaves_guest(lid)
        self.check_ways(lid, pf[SOURCE])
        sent, other = self.sent(), sum(table[pf[SOURCE]] != table[pf[DESTINATION]] for table in self.net.tables().values())
        self.hand_over(destination, path, claim)
        self.assertEqual((self.lid(), self.sent() - sent), (lid, other))
        self.wait_port(lid, VGUID)
        self.check_there(VGUID, lid, (DESTINATION, 1))
        self.release(source, claim)    # its last word comes too late
        self.assertEqual((self.lid(), self.sent() - sent), (lid, other))
        print(f"# moved with {other} LFT SMPs of {test_vswitch_dynamic.SWITCHES}", flush=True)

        self.assertEqual(destination.peer("POST", f"{path}/abort")[0], 200)
        destination.await_vf("free")
        destination.await_reports()
        self.await_free(lid, VGUID)
        self.assertEqual(self.lid(), 0)
        self.assertEqual({table[lid] for table in self.net.tables().values()}, {test_vswitch_dynamic.DROPPED})
        for host in (source, destination):
            host.end()
        self.assertEqual(self.sm.stop(), 0)

    def test_a_guest_that_comes_back(self):
        """The destination had reported it; then it withdraws, and the source reports it at its next epoch."""
        source, destination = self.host(SOURCE), self.host(DESTINATION)
        claim = self.claim(source)
        source.await_vf("programmed")
        self.wait_port(self.lid(), VGUID)
        path = self.offer(destination, claim)
        self.leaves_guest(self.lid())
        self.hand_over(destination, path, claim)
        self.release(source, claim)
        self.assertEqual(destination.peer("POST", f"{path}/abort")[0], 200)
        destination.await_reports()
        self.claim(source)
        source.await_vf("programmed")
        self.wait_port(self.lid(), VGUID)
        self.check_there(VGUID, self.lid(), (SOURCE, 1))
        self.assertEqual(self.sm.api.call("GET", "/v1/fabric")[1]["dynamic_lids"], 1)
        for host in (source, destination):
            host.end()
        self.assertEqual(self.sm.stop(), 0)


tap.main(__name__)
