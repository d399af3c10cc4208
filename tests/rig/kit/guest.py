# SPDX-License-Identifier: LGPL-2.1-or-later
"""A nested guest of a hypervisor: its domain XML, its life, and what it says on its serial line."""

import collections
import json
import re

from kit.base import RigError, wait_for

NAMESPACE = "urn:vhcad:domain:1"
READY_TIMEOUT = 150
SLOT_EVENT = "/sys/firmware/acpi/interrupts/gpe01"  # by which QEMU asks for an ACPI slot
MACHINE = "pc-q35-7.2"  # Debian 12's newest: such a guest may go to Debian 13 and come back
# Of the case that runs, by UUID of the domain: P_Keys that it asked for by metadata or at run time, and its name.
ASKED = collections.defaultdict(set)
NAMES = {}
# pci=: the kernel's searches for an AGP bridge and for peer buses read thousands of registers, each a way out to the hypervisor's
# QEMU: 11 s of a boot's 18 (initcall_debug).
DOMAIN = """<domain type='kvm'>
 <name>{name}</name><uuid>{uuid}</uuid>
 <metadata>{metadata}</metadata>
 <memory unit='MiB'>{memory}</memory><vcpu>1</vcpu>
 <os><type arch='x86_64' machine='{machine}'>hvm</type>
  <kernel>/var/lib/libvirt/images/guest.vmlinuz</kernel><initrd>/var/lib/libvirt/images/{initrd}.initrd</initrd>
  <cmdline>console=ttyS1 quiet no_timer_check tsc=reliable mitigations=off nokaslr net.ifnames=0 pci=noearly,lastbus=0 {cmdline}</cmdline></os>
 <features><acpi/><apic/></features>
 <on_crash>preserve</on_crash>
 <devices><emulator>/usr/bin/qemu-system-x86_64</emulator>
  <controller type='usb' model='none'/>
  <controller type='pci' index='0' model='pcie-root'/>
  {ports}{hostdevs}{agent}
  <serial type='file'><source path='/var/log/libvirt/qemu/{name}.serial' append='off'/><target port='0'/></serial>
  <serial type='file'><source path='/var/log/libvirt/qemu/{name}.console' append='off'/><target port='1'/></serial>
  <memballoon model='none'/>
 </devices>
</domain>"""
# The controller on bus 0, so that it takes no root port from the VFs.
AGENT = """<controller type='virtio-serial' index='0'><address type='pci' domain='0' bus='0' slot='0x10' function='0'/></controller>
 <channel type='unix'><target type='virtio' name='org.qemu.guest_agent.0'/></channel>"""
HOSTDEV = """<hostdev mode='subsystem' type='pci' managed='no'><source>
 <address domain='0x{0}' bus='0x{1}' slot='0x{2}' function='0x{3}'/></source></hostdev>"""


def request(*vfs):
    """The metadata element: request(("ib0", "0x8001")) asks for one VF in one partition."""
    lines = "".join(f"<vhca:vf name='{name}' partition='{partition}'/>" for name, partition in vfs)
    return f"<vhca:infiniband xmlns:vhca='{NAMESPACE}'>{lines}</vhca:infiniband>" if vfs else ""


def uuid_of(number):
    return f"5ca1ab1e-0000-4000-8000-{number:012d}"


def asks_for(uuid, text):
    """A domain asks for the partitions that this text names by number."""
    ASKED[uuid].update(int(key, 16) for key in re.findall(r"\b0x[0-9a-fA-F]{1,4}\b", text))


def hostdev(bdf):
    return HOSTDEV.format(*re.split("[:.]", bdf))


def hostdevs_of(xml):
    """Host addresses of the PCI devices in a domain's XML, {address: (alias, guest address)}."""
    found = {}
    for block in re.findall(r"<hostdev .*?</hostdev>", xml, re.S):
        address = re.findall(
            r"<address (?:type='pci' )?domain='0x(\w+)' bus='0x(\w+)' slot='0x(\w+)' function='0x(\w+)'", block)
        if not address:
            raise RigError(f"hostdev without address: {block}")
        names = [f"{d}:{b}:{s}.{f}" for d, b, s, f in address]
        alias = re.search(r"<alias name='([^']*)'", block)
        found[names[0]] = (alias.group(1) if alias else "", names[1] if len(names) > 1 else "")
    return found


class Guest:
    """One domain on one host. Used as: g = Guest(host, "vm1", 1, request(("ib0", "0x8001"))); g.start()."""

    def __init__(self, host, name, number, metadata="", hostdevs=(), ports=3, memory=128, cmdline="",
                 machine=MACHINE, agent=False):
        self.host, self.name = host, name
        self.uuid = uuid_of(number)
        NAMES[self.uuid] = name
        asks_for(self.uuid, " ".join(re.findall(r"partition='([^']*)'", metadata)))
        self.xml = DOMAIN.format(
            name=name, uuid=self.uuid, metadata=metadata, memory=memory, cmdline=cmdline,
            machine=machine, initrd="guest-agent" if agent else "guest", agent=AGENT if agent else "",
            ports="".join(f"<controller type='pci' index='{i + 1}' model='pcie-root-port'/>" for i in range(ports)),
            hostdevs="".join(hostdev(b) for b in hostdevs))

    def define(self):
        self.host.virsh("define", self.xml)
        return self

    def start(self, wait=True):
        """Define and start; wait=True also waits until its init runs."""
        self.define()
        self.host.virsh("start", self.name, timeout=120)
        return self.wait_ready() if wait else self

    def wait_ready(self):
        wait_for(lambda: "GUEST-READY" in self.serial(), READY_TIMEOUT, f"{self.name}: its init to run", 0.5)
        return self

    def attach(self, name, partition):
        """Ask for a VF at run time."""
        asks_for(self.uuid, partition)
        self.host.vhcactl("attach", self.name, name, "--partition", partition, timeout=120)

    def destroy(self):
        self.host.virsh("destroy", self.name)

    def undefine(self):
        self.host.virsh("undefine", self.name)

    def run(self, script, timeout=60):
        """Have the guest's agent run a script in the guest; wait until it has begun. For guests with agent=True."""
        command = json.dumps({"execute": "guest-exec", "arguments": {"path": "/bin/sh", "arg": ["-c", script]}})
        wait_for(lambda: not self.host.vm.virsh("qemu-agent-command", self.name, command)[0], timeout,
                 f"{self.name}: its agent to take a command", 1)

    def ignore_unplugs(self):
        """From now on, of QEMU's requests by ACPI. For guests with agent=True, as listen()."""
        self.run(f"echo disable > {SLOT_EVENT}")

    def listen(self):
        self.run(f"echo enable > {SLOT_EVENT}")

    def state(self):
        return self.host.virsh("domstate", self.name, check=False).strip()

    def serial(self):
        """What the guest's init has written. Its kernel has a line of its own, so that it never writes between two words of a report."""
        return "".join(map(str, self.host.vm.files(f"/var/log/libvirt/qemu/{self.name}.serial").values()))

    def seen(self):
        """The last complete report of the guest: {"VF": [dict...], "IB": [dict...]}."""
        reports = re.findall(r"^GUEST-STATE begin[^\n]*\n(.*?)^GUEST-STATE end", self.serial().replace("\r", ""),
                             re.M | re.S)
        result = {"VF": [], "IB": []}
        for line in (reports[-1] if reports else "").splitlines():
            kind, *words = line.split()
            if kind in result:
                result[kind].append(dict(w.split("=", 1) for w in words if "=" in w))
        return result

    def wait_vfs(self, count, timeout=60):
        """Wait until the guest's own PCI bus shows this many VFs, each with a driver; return them."""
        def there():
            vfs = [v for v in self.seen()["VF"] if v["driver"]]
            return (vfs or True) if len(vfs) == count else None
        found = wait_for(there, timeout, f"{self.name}: {count} VF(s) with a driver, as the guest sees it")
        return [] if found is True else found

    def wait_port(self, guid):
        """Wait until the guest has a port that is ACTIVE under this GUID: then its driver has started, and the SM has granted it.
        Return what the guest says of it."""
        text = ":".join(f"{guid:016x}"[i:i + 4] for i in range(0, 16, 4))
        return wait_for(lambda: next((p for p in self.seen()["IB"] if p["state"] == "4:ACTIVE" and p["gid"].endswith(text)), None), 120,
                        f"{self.name}: a port that is ACTIVE as {text}, as the guest sees it", 0.5)

    def reports(self):
        """How often the guest saw its devices change: an unplug that was undone would show here."""
        return self.serial().count("GUEST-STATE begin")

    def wait_quiet(self):
        """Wait until the guest, which looks once a second, has no more to tell: on a busy machine it hears late of what the host does."""
        seen = [-1]

        def is_quiet():
            seen.append(self.reports())
            return seen[-1] == seen[-2]
        wait_for(is_quiet, 120, f"{self.name} to report no more changes", 5)

    def live_hostdevs(self):
        """Host addresses of the PCI devices in the live XML, {address: (alias, guest address)}."""
        return hostdevs_of(self.host.virsh("dumpxml", self.name, check=False))
