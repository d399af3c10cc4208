# SPDX-License-Identifier: LGPL-2.1-or-later
"""A VM of OpenNebula: the scripts of drivers/opennebula, called on the hypervisors as one_vmm_exec.rb calls them, around doubles of the stock ones.

What a script gets stands in tests/data/one-vectors.json. The doubles do what the stock scripts of vmm/kvm do with libvirt, and no more.
"""

import base64
import os
import sys

from kit import hypervisors
from kit.base import ROOT, SLOW, wait_for
from kit.case import Guest, check, equal
from kit.guest import NAMESPACE, asks_for
from kit.migration import Moving

os.environ.setdefault("VHCA_SOURCE_DIR", str(ROOT))
sys.path.insert(0, str(ROOT / "tests/integration"))
import opennebula as one  # noqa: E402

REMOTES = "/var/tmp/one"
DATASTORE = "/var/lib/one/42"
CHECKPOINT = f"{DATASTORE}/checkpoint"
INSTALLED = "/usr/share/vhcad/opennebula"
PKEYS = ["0x8001", "0x8002"]
# Of the scripts, for an agent that is being started: of 10 s it has needed 7 where pairs share the cores.
PATIENCE = f"VHCA_ANSWER_WAIT={int(30 * SLOW)}"
STOCK = {
    "deploy": 'cat >"$1" && exec virsh -q create "$1"',
    "cancel": 'exec virsh -q destroy "$1"',
    "shutdown": 'while [ "$(virsh domstate "$1" 2>/dev/null)" = running ]; do sleep 0.5; done',
    "save": 'exec virsh -q save "$1" "$2"',
    "restore": 'exec virsh -q restore "$1"',
    "migrate": 'exec virsh -q migrate --live --p2p "$1" "qemu+tcp://$2/system" --migrateuri "tcp://$(getent hosts "$2" | cut -d " " -f 1)"',
}


def install(rig):
    """What `onehost sync` brings: our scripts, and beside them the stock ones."""
    scripts = "".join(f"cat >{REMOTES}/vmm/kvm/{name} <<'END'\n#!/bin/sh\n{body}\nEND\n"
                      f"[ -e {REMOTES}/vmm/vhca/{name} ] || cp {REMOTES}/vmm/vhca/pass {REMOTES}/vmm/vhca/{name}\n" for name, body in STOCK.items())
    for host in rig.hosts:
        host.sh(f"rm -rf {REMOTES} {DATASTORE}; mkdir -p {REMOTES}/vmm/kvm {DATASTORE}\n"
                f"cp -r {INSTALLED}/vmm {INSTALLED}/vnm {REMOTES}\n{scripts}chmod 755 {REMOTES}/vmm/kvm/*")


class Vm:
    """one-42. Its first NIC of ours is there from the deployment on, its second may be attached."""

    def __init__(self, rig, host, agent=False):
        self.rig, self.host = rig, host
        self.guest = Guest(host, "one-42", 42, agent=agent)
        asks_for(self.guest.uuid, " ".join(PKEYS))
        self.nics = [1]
        self.moving = None

    def xml(self, attach=None):
        """The VM as oned tells it."""
        nics = [one.nic(n, NIC_ID=str(n), PHYDEV="default", IB_PKEYS=PKEYS[n - 1], IB_GUID="mac", VLAN_ID=None,
                        ATTACH="YES" if n == attach else None) for n in (self.nics if attach is None else [*self.nics, attach])]
        return one.vm(*nics).replace(one.UUID, self.guest.uuid)

    @staticmethod
    def mac(number):
        return f"02:00:0a:00:{number:02x}:07"

    # ---- the scripts ----

    def disturb(self):
        """A line of shell that runs beside a script, and is over when that one's result is told."""
        return ""

    def run(self, host, script, *argv, stdin, timeout=240):
        words = " ".join([f"{REMOTES}/{script}", *argv])
        return host.code(f"{self.disturb()}{PATIENCE} {words}\ncode=$?\nwait\nexit $code", timeout=timeout, stdin=stdin.encode())

    def vmm(self, host, action, *argv, stdin=None):
        """(exit code, output) of an action of the VM driver."""
        data = stdin or f"<VMM_DRIVER_ACTION_DATA>{self.xml()}</VMM_DRIVER_ACTION_DATA>"
        return self.run(host, f"vmm/vhca/{action}", *argv, stdin=data)

    def vnm(self, host, action, *argv, attach=None):
        """An action of the network driver, which must not fail."""
        code, said = self.run(host, f"vnm/vhca/{action}", *argv, stdin=base64.b64encode(self.xml(attach).encode()).decode())
        equal(code, 0, f"{host.name}: vnm {action}: exit code; {said}")

    # ---- what oned does ----

    def deploy(self):
        host, name = self.host, self.host.name
        host.put(f"{DATASTORE}/vm.xml", self.xml().encode())
        self.vnm(host, "pre")
        code, said = self.vmm(host, "deploy", f"{DATASTORE}/deployment.0", name, "42", name, stdin=self.guest.xml)
        equal(code, 0, f"deploy: exit code; {said}")
        check(NAMESPACE in host.virsh("dumpxml", "one-42"), "the domain asks for no VF")
        self.vnm(host, "post", "one-42", name)
        self.guest.wait_ready()
        self.moving = Moving(self.rig, self.guest, ("ib1",))
        self.assert_has_ports()
        return self

    def migrate(self, there):
        """(exit code, output) of the migration; what oned does around it is done if it went well."""
        here = self.host
        self.vnm(there, "pre")
        code, said = self.vmm(here, "migrate", "one-42", there.name, here.name, "42", here.name)
        if code == 0:
            self.vnm(here, "clean", here.name)
            self.host = self.guest.host = there
            self.vnm(there, "post", "one-42", here.name)
        return code, said

    def save(self):
        name = self.host.name
        code, said = self.vmm(self.host, "save", "one-42", CHECKPOINT, name, "42", name)
        if code == 0:
            self.vnm(self.host, "clean", name)
        return code, said

    def restore(self, there):
        """Where the checkpoint has been brought."""
        self.vnm(there, "pre")
        code, said = self.vmm(there, "restore", CHECKPOINT, there.name, "one-42", "42", there.name)
        equal(code, 0, f"restore: exit code; {said}")
        self.host = self.guest.host = there
        self.vnm(there, "post", "one-42", there.name)

    def carry_checkpoint(self, there):
        """What OpenNebula's transfer manager does between two hosts."""
        address = hypervisors.PRIVATE[there.name]
        there.sh(f"systemd-run -q --collect --unit=carry socat -u TCP-LISTEN:9999,bind={address} CREATE:{CHECKPOINT}")
        self.host.sh(f"for i in $(seq 50); do socat -u FILE:{CHECKPOINT} TCP:{address}:9999 2>/dev/null && break; sleep 0.1; done", timeout=120)
        wait_for(lambda: not there.is_active("carry"), 60, "the checkpoint to be there", 0.3)

    def attach_nic(self, number):
        """(exit code, output). Where it fails oned forgets the NIC, and calls nothing more."""
        name = self.host.name
        self.vnm(self.host, "pre", attach=number)
        data = f"<VMM_DRIVER_ACTION_DATA>{self.xml(attach=number)}</VMM_DRIVER_ACTION_DATA>"
        code, said = self.vmm(self.host, "attach_nic", "one-42", self.mac(number), "-", "-", "vhca", f"one-42-{number}", "42", name, stdin=data)
        if code == 0:
            self.vnm(self.host, "post", "one-42", name, attach=number)
            self.nics.append(number)
        return code, said

    def detach_nic(self, number):
        name = self.host.name
        data = f"<VMM_DRIVER_ACTION_DATA>{self.xml()}</VMM_DRIVER_ACTION_DATA>"
        code, said = self.vmm(self.host, "detach_nic", "one-42", self.mac(number), "42", name, stdin=data)
        if code == 0:
            self.vnm(self.host, "clean", name)
            self.nics.remove(number)
        return code, said

    def end(self, action):
        """cancel, or shutdown of a guest that ends by itself."""
        name = self.host.name
        code, said = self.vmm(self.host, action, "one-42", name, "42", name)
        equal(code, 0, f"{action}: exit code; {said}")
        self.vnm(self.host, "clean", name)

    # ---- facts ----

    def assert_has_ports(self):
        """What it had when it was deployed, with what was attached since, here and in the SM's books only."""
        names = tuple(f"ib{n}" for n in self.nics)
        for name in names:
            self.host.wait_attached(self.guest, name, granted=True)
        self.guest.wait_vfs(len(names), timeout=120)
        found = self.moving.identity(self.host)
        equal(sorted(found), sorted(names), "names of the VM's VFs")
        for number in self.nics:
            guid, keys, _ = found[f"ib{number}"]
            equal((guid, keys), (f"0x{self.guid(number):016x}", [int(PKEYS[number - 1], 16)]), f"vGUID and P_Keys of ib{number}")
        (other,) = [h for h in self.rig.hosts if h is not self.host]
        held = other.facts().held_guids()
        check(not held & {self.guid(n) for n in self.nics}, f"{other.name} holds a vGUID of {self.host.name}'s VM")

    def assert_asks_for_nics(self):
        """What a save takes along."""
        (domain,) = [d for d in self.host.get("domains")["domains"] if d["uuid"] == self.guest.uuid]
        equal(sorted(r["name"] for r in domain["requests"]), sorted(f"ib{n}" for n in self.nics), "what the domain asks for")

    def guid(self, number):
        """By policy mac, as vhcad(8) derives it."""
        octets = self.mac(number).split(":")
        return int("".join([*octets[:3], "0000", *octets[3:]]), 16)

    def assert_nothing_at(self, host):
        wait_for(lambda: not host.get("claims")["claims"], 60, f"no claim at {host.name}", 0.5)
