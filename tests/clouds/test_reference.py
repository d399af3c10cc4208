#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""networking-mlnx's own ebrctl and eswitchd, and ours: the same 200 calls on two hosts with the same adapter, where every difference has a row in
docs/design/0020-openstack.md; and a host that goes over from the one to the other while its guests run."""

import json
import multiprocessing
import os
import pathlib
import re
import subprocess
import sys
import time
import unittest

import hosts
import mlnx
import page_code
import tap
from eswitch import Client, Eswitch
from fabric import free_port
from hosts import RUNNING, guid_of, vf_address

if not mlnx.CODE:
    print(f"1..0 # SKIP {mlnx.LACKS}")
    sys.exit(0)

os.environ["PYTHONPATH"] += f":{mlnx.CODE}"
sys.path.append(str(mlnx.CODE))
import reference

SOURCE = pathlib.Path(os.environ["VHCA_SOURCE_DIR"])
# Each program of networking-mlnx has a process of its own, of one that has imported what it needs, and this file: they are started a hundred times.
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["test_reference", *reference.PRELOAD])
FABRIC = "physnet1"
SLOTS = vf_address(1), vf_address(2)
FREE = vf_address(3)        # not for the cloud
MACS = [f"fa:16:3e:12:34:{n}" for n in range(56, 60)]     # one each time: for 5 s vhca-eswitch lists no port that was claimed again
UUIDS = "6d3a0000-0000-4000-8000-000000000001", "6d3a0000-0000-4000-8000-000000000002"
XML = "<domain type='kvm' id='1'><name>vm{0}</name><uuid>{1}</uuid><memory>65536</memory><os><type>hvm</type></os><devices>{2}</devices></domain>"
HOSTDEV = ("<hostdev mode='subsystem' type='pci' managed='yes'><driver name='vfio'/><source><address domain='0x{}' bus='0x{}' slot='0x{}' "
           "function='0x{}'/></source><alias name='hostdev0'/></hostdev>")
PATIENCE = 100      # to begin, on a busy machine
# As eswitchd itself leaves VFs: it gives up at a GUID of 15 digits, as the driver's first ones may be.
CLEAN = "\n".join(f"devices/pci0000:00/{hosts.PF}/infiniband/mlx4_0/iov/ports/1/admin_guids/{i + 1}=ffffffffffffffff" for i in range(hosts.VFS))
SILENT = "no reply"


def conf(host, lines):
    """Its part about the adapter."""
    with open(host.conf, encoding="utf-8") as f:
        text = f.read().partition("[hca default]")[0]
    host.write(f"{text}[hca default]\n{lines}")


def domain_xml(n, uuid, slot):
    return XML.format(n, uuid, HOSTDEV.format(slot[:4], slot[5:7], slot[8:10], slot[11]))


def ours(*vfs):
    return f"manage = yes\nvfs = keep\nfabric = {FABRIC}\nreserve = {' '.join(vfs)}\n"


class Reference:
    """eswitchd on a host whose agent leaves the adapter alone, and its ebrctl."""

    def __init__(self, host):
        self.host = host
        self.port = str(free_port())
        self.conf, self.log = f"{host.where}/eswitchd.conf", f"{host.where}/eswitchd.log"
        with open(self.conf, "w", encoding="ascii") as f:
            f.write(f"[DAEMON]\nfabrics = {FABRIC}:ib0\n")
        self.process, self.ends = None, 0

    def begin(self):
        self.process = self.run(reference.eswitchd, self.log, f"{self.host.where}/sys", self.port, self.conf)
        self.client = Client(("127.0.0.1", int(self.port)))
        assert self.say(json.dumps({"action": "define_fabric_mapping", "fabric": FABRIC, "interface": "ib0"})) != SILENT, self.text()

    def run(self, program, out, *args):
        process = FORKS.Process(target=reference.run, args=(program, out, self.log, *args), daemon=True)
        process.start()
        return process

    def text(self):
        with open(self.log, encoding="utf-8") as f:
            return f.read()[-3000:]

    def end(self):
        self.client.close()
        self.process.kill()
        self.process.join()

    def say(self, text):
        """The reply; SILENT: it has ended."""
        self.client.socket.send(text.encode())
        end = time.monotonic() + PATIENCE
        while not self.client.socket.poll(50):
            if self.process.exitcode is not None:
                return SILENT
            assert time.monotonic() < end, self.text()
        return self.client.socket.recv().decode()

    def message(self, text):
        reply = self.say(text)
        if reply == SILENT:
            self.end()
            self.ends += 1
            self.begin()
        return reply

    def ebrctl(self, *args):
        said = pathlib.Path(self.host.where) / "ebrctl.out"
        process = self.run(reference.ebrctl, str(said), self.port, *args)
        process.join(60)
        assert process.exitcode is not None, self.text()
        done = subprocess.CompletedProcess(args, process.exitcode, said.read_text("utf-8"))
        said.unlink()
        return done


class Ours:
    """vhca-eswitch and ebrctl, of a host whose agent has the VFs."""

    def __init__(self, host):
        self.host = host
        self.ebrctl = host.ebrctl

    def begin(self):
        self.eswitch = Eswitch(self.host.where)
        self.client = self.eswitch.client()

    def message(self, text):
        self.client.socket.send(text.encode())
        return self.client.socket.recv().decode() if self.client.socket.poll(PATIENCE * 1000) else SILENT

    def end(self):
        self.client.close()
        assert self.eswitch.end() == 0


# ---- what is called ----

def catalogue(mac, slot, uuid):
    """One port's life, with what nobody should say: (name, ebrctl's arguments or a message's text)."""
    place, plug = {"fabric": FABRIC, "pci_slot": slot}, {"fabric": FABRIC, "device_id": uuid, "vnic_mac": mac, "dev_name": slot}

    def add(**more):
        words = {"mac": mac, "uuid": uuid, "fabric": FABRIC, "vnic": "ib_hostdev", "slot": slot, **more}
        return ["add-port", *words.values()]

    def say(action, *left_out, **members):
        return json.dumps({"action": action, **{k: v for k, v in members.items() if k not in left_out}})
    return (
        ("add-port", add()),
        ("add-port, again", add()),
        ("add-port, capitals", add(mac=mac.upper())),
        ("get_vnics, all", say("get_vnics", fabric="*")),
        ("begin", None),
        ("add-port, no MAC", add(mac="fa:16:3e:12:34")),
        ("add-port, a multicast MAC", add(mac="fb:16:3e:12:34:56")),
        ("add-port, no UUID", add(uuid="vm1")),
        ("add-port, unknown fabric", add(fabric="nowhere")),
        ("add-port, another VNIC type", add(vnic="hw_veb")),
        ("add-port, no VF there", add(slot="0000:7f:00.1")),
        ("add-port, the PF", add(mac="fa:16:3e:00:00:01", slot=hosts.PF)),
        ("add-port, a VF of the host's own", add(mac="fa:16:3e:00:00:02", slot=FREE)),
        ("add-port, another instance's VF", add(mac="fa:16:3e:00:00:03", uuid="6d3a0000-0000-4000-8000-000000000009")),
        ("add-port, its guest runs", add()),    # networking-mlnx has taken its VF for each of those
        ("add-port, four arguments", add()[:-1]),
        ("del-port, one argument", ["del-port", FABRIC]),
        ("write-sys", ["write-sys", "/sys/x", "1"]),
        ("no arguments", []),
        ("define_fabric_mapping", say("define_fabric_mapping", fabric=FABRIC, interface="ib0")),
        ("define_fabric_mapping, unknown fabric", say("define_fabric_mapping", fabric="nowhere", interface="ib0")),
        ("define_fabric_mapping, no interface", say("define_fabric_mapping", fabric=FABRIC)),
        ("get_vnics, its guest runs", say("get_vnics", fabric="*")),
        ("get_vnics, of the fabric", say("get_vnics", fabric=FABRIC)),
        ("get_vnics, unknown fabric", say("get_vnics", fabric="nowhere")),
        ("get_vnics, no fabric", say("get_vnics")),
        ("get_eswitch_tables", say("get_eswitch_tables", fabric=FABRIC)),
        ("set_vlan", say("set_vlan", **place, vlan=1)),
        ("set_vlan, a text", say("set_vlan", **place, vlan="1")),
        ("set_vlan, 0", say("set_vlan", **place, vlan=0)),
        ("set_vlan, too large", say("set_vlan", **place, vlan=0x7fff)),
        ("set_vlan, no number", say("set_vlan", **place, vlan="x")),
        ("set_vlan, no VF there", say("set_vlan", fabric=FABRIC, pci_slot="0000:7f:00.1", vlan=1)),
        ("set_vlan, no vlan", say("set_vlan", **place)),
        ("port_up", say("port_up", **place)),
        ("port_up, no VF there", say("port_up", fabric=FABRIC, pci_slot="0000:7f:00.1")),
        ("port_release", say("port_release", **place, ref_by="pci_slot")),
        ("port_release, by MAC", say("port_release", **place, ref_by="mac")),
        ("plug_nic, again", say("plug_nic", **plug)),
        ("plug_nic, no device", say("plug_nic", "dev_name", **plug)),
        ("plug_nic, another VNIC type", say("plug_nic", **plug, vnic_type="hw_veb")),
        ("another action", say("reboot")),
        ("no action", json.dumps({"fabric": FABRIC})),
        ("an empty object", "{}"),
        ("a list", "[1]"),
        ("no JSON", "hello"),
        ("end", None),
        ("del-port", ["del-port", FABRIC, mac]),
        ("del-port, again", ["del-port", FABRIC, mac]),
        ("delete_port, no such port", say("delete_port", fabric=FABRIC, vnic_mac=mac)),
        ("port_down, no port", say("port_down", **place)),
        ("get_vnics, nothing there", say("get_vnics", fabric="*")),
    )


def outcome(side, call):
    """What is compared: of a program its output and status, of a message the reply without the words of a reason."""
    if isinstance(call, list):
        done = side.ebrctl(*call)
        return f"`{done.stdout}`, {done.returncode}" if done.stdout else str(done.returncode)
    reply = side.message(call)
    try:
        said = json.loads(reply)
    except ValueError:
        return reply if reply == SILENT else "no JSON"
    return "OK " + json.dumps(said["response"], sort_keys=True) if said["status"] == "OK" else "FAIL"


def general(text, mac, slot):
    """Of either port the same; of other VFs only whether there are any."""
    own, count = re.subn(rf'"(?!{slot})0000:81:00\.\d": {{[^}}]*}},? ?', "", text)
    return own.replace(mac, "MAC").replace(slot, "VF").replace(", }", "}") + (", and other VFs" if count else "")


class Calls(unittest.TestCase):
    def setUp(self):
        self.sides = []
        for name, kind, lines in (("ref", Reference, "manage = no\n"), ("own", Ours, ours(*SLOTS))):
            host = hosts.Host(name, FABRIC, "0x0002c90300000011")
            self.addCleanup(host.end)
            conf(host, lines)
            host.before = CLEAN
            host.start()
            self.sides.append(kind(host))
        for side in self.sides:
            side.host.until_ready()
            side.begin()
            self.addCleanup(side.end)

    def step(self, name, n):
        """Its guest begins or ends, at both."""
        uuid, slot = UUIDS[n % 2], SLOTS[n % 2]
        for side in self.sides:
            xml = domain_xml(n, uuid, slot)
            if name == "end":
                side.host.hide(uuid)
                hosts.until(lambda host=side.host: not host.guids() or isinstance(side, Reference), side.host.log_text)
                continue
            self.assertEqual([side.host.hook(f"vm{n}", operation, "begin", xml) for operation in ("prepare", "start")], ["", ""])
            side.host.show(uuid, [slot], RUNNING, xml)
            hosts.until(lambda host=side.host: host.guids().get(slot) == guid_of(MACS[n]), side.host.log_text)
        if name == "begin":
            own = self.sides[1].host
            hosts.until(lambda: [c["state"] for c in own.get("/v1/claims")[1]["claims"]] == ["attached"], own.log_text)

    def test_every_difference_has_its_row(self):
        """and every row is a difference"""
        found, calls = {}, 0
        for n in range(4):
            mac, slot, uuid = MACS[n], SLOTS[n % 2], UUIDS[n % 2]
            for name, call in catalogue(mac, slot, uuid):
                if call is None:
                    self.step(name, n)
                    continue
                calls += 1
                pair = tuple(general(outcome(side, call), mac, slot) for side in self.sides)
                if pair[0] != pair[1]:
                    found.setdefault(name, set()).add(pair)
        self.assertEqual(calls, 200)
        text = (SOURCE / "docs/design/0020-openstack.md").read_text("utf-8").partition("## Beside the reference\n")[2].partition("\n## ")[0]
        rows = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in text.splitlines() if re.match(r"\| (?!call|-)", line)]
        listed = {}
        for name, reference, own, why in rows:
            self.assertTrue(why, name)
            listed.setdefault(name, set()).add((reference, own))
        self.assertEqual(found, listed)


class GoingOver(unittest.TestCase):
    """docs/openstack.md, "Coming from eswitchd": its commands, on a host where a guest has what eswitchd gave it."""

    def setUp(self):
        self.host = hosts.Host("hva", FABRIC, "0x0002c90300000011")
        self.addCleanup(self.host.end)
        conf(self.host, "manage = no\n")
        self.host.before = CLEAN
        self.host.start()
        self.host.until_ready()
        self.xml = domain_xml(1, UUIDS[0], SLOTS[0])
        reference = Reference(self.host)
        reference.begin()
        self.addCleanup(reference.end)
        self.assertEqual(outcome(reference, ["add-port", *self.port()]), f"`{SLOTS[0]}`, 0")
        self.assertEqual(reference.message(json.dumps({"action": "set_vlan", "fabric": FABRIC, "pci_slot": SLOTS[0], "vlan": 1})),
                         '{"status": "OK", "response": {}, "action": "set_vlan"}')
        self.host.show(UUIDS[0], [SLOTS[0]], RUNNING, self.xml)
        self.keys = {SLOTS[0]: ["1", "0", "none", "none"]}      # behind its own the default partition, as eswitchd has it

    def port(self):
        return [MACS[0], UUIDS[0], FABRIC, "ib_hostdev", SLOTS[0]]

    def claim(self):
        return [{key: claim[key] for key in ("name", "state", "pkeys", "way", "epoch")} for claim in self.host.get("/v1/claims")[1]["claims"]]

    def type(self, commands):
        """In a shell whose systemctl and virsh are these: (what they say, what systemctl was told at last)."""
        told = f"{self.host.where}/told"
        doubles = {"systemctl": f"echo \"$@\" > {told}", "virsh": f"test \"$*\" = 'list --uuid' && printf '%s\\n\\n' {UUIDS[0]}",
                   "vhcactl": f"exec {os.environ['VHCACTL']} --socket {self.host.where}/run/vhcad.sock \"$@\""}
        place = pathlib.Path(self.host.where) / "bin"
        place.mkdir(exist_ok=True)
        for name, text in doubles.items():
            (place / name).write_text(f"#!/bin/sh\n{text}\n", "utf-8")
            (place / name).chmod(0o755)
        done = subprocess.run(["sh", "-ec", commands], capture_output=True, text=True, timeout=60, check=False,
                              env={**os.environ, "PATH": f"{place}:{os.environ['PATH']}"})
        self.assertEqual(done.returncode, 0, done.stderr + self.host.log_text()[-3000:])
        return done.stdout, pathlib.Path(told).read_text("utf-8")

    def test_adopted_without_a_write(self):
        text = (SOURCE / "docs/openstack.md").read_text("utf-8").partition("## Coming from eswitchd\n")[2].partition("\n## ")[0]
        policy, commands = page_code.indented(text)
        self.assertEqual(policy.strip(), "[policy]\nallow_default_partition = yes")
        conf(self.host, ours(*SLOTS) + policy)
        first, after = re.split("(?<=vhcad\n)", commands, maxsplit=1)
        self.assertEqual(self.type(first), ("", "restart vhcad\n"))     # one that runs already has not read the settings
        self.host.kill()
        before = self.host.writes()
        hosts.until(lambda: self.host.get(f"/v1/vfs/{SLOTS[0]}")[1]["state"] == "unmanaged", self.host.log_text)
        self.assertEqual(self.host.ebrctl("add-port", *self.port()).returncode, 1)      # nova-compute may begin again meanwhile
        said, told = self.type(after)
        self.assertIn("mac-fa163e123456", said)
        self.assertEqual(told, "enable --now vhca-eswitch\n")
        self.assertEqual(self.claim(), [{"name": "mac-fa163e123456", "state": "attached", "pkeys": ["0x8001", "0xffff"], "way": "claim", "epoch": 1}])
        self.assertEqual(self.host.ebrctl("add-port", *self.port()).stdout, "ib0")
        self.neutron_agent_finds_it()
        time.sleep(1)
        self.assertEqual([line for line in self.host.writes()[len(before):] if SLOTS[0] in line or "admin_guids/1=" in line], [])
        self.assertEqual((self.host.guids(), self.host.pkeys()), ({SLOTS[0]: guid_of(MACS[0])}, self.keys))
        self.starts_anew()

    def neutron_agent_finds_it(self):
        own = Ours(self.host)
        own.begin()
        self.addCleanup(own.end)
        place = {"fabric": FABRIC, "pci_slot": SLOTS[0]}
        for call, answer in (({"action": "get_vnics", "fabric": "*"}, f'OK {{"{SLOTS[0]}": {{"mac": "{MACS[0]}", "pci_slot": "{SLOTS[0]}"}}}}'),
                             ({"action": "set_vlan", "vlan": 1, **place}, "OK {}"), ({"action": "port_up", **place}, "OK {}"),
                             ({"action": "set_vlan", "vlan": 2, **place}, "FAIL")):
            self.assertEqual(outcome(own, json.dumps(call)), answer)

    def starts_anew(self):
        """As any other: Nova deletes and adds the port, and the default partition is gone."""
        self.host.hide(UUIDS[0])
        hosts.until(lambda: not self.host.guids() and not self.host.pkeys(), self.host.log_text)
        self.assertEqual(self.host.ebrctl("del-port", FABRIC, MACS[0]).returncode, 0)
        self.assertEqual(self.host.ebrctl("add-port", *self.port()).returncode, 0)
        self.assertEqual(self.claim()[0]["pkeys"], [])


tap.main(__name__)
