# SPDX-License-Identifier: LGPL-2.1-or-later
"""Nova's false libvirt, with PCI host devices, and with what they bring about on a host of hosts.py."""

import threading

from lxml import etree
from nova.tests.fixtures import libvirt as fake
from nova.virt.libvirt import event as libvirt_event

import hosts

HOSTDEV = """<hostdev mode='subsystem' type='pci' managed='yes'>
  <driver name='vfio'/>
  <source><address domain='0x{0:04x}' bus='0x{1:02x}' slot='0x{2:02x}' function='0x{3:x}'/></source>
  <alias name='hostdev{3}'/>
  <address type='pci' domain='0x0000' bus='0x00' slot='0x1{3}' function='0x0'/>
</hostdev>
"""


def numbers(bdf):
    return int(bdf[:4], 16), int(bdf[5:7], 16), int(bdf[8:10], 16), int(bdf[11], 16)


def hostdevs_of(tree):
    """Addresses of the PCI host devices below an element, itself included."""
    found = [e.find("source/address") for e in tree.iter("hostdev") if e.get("type") == "pci"]
    return ["{:04x}:{:02x}:{:02x}.{:x}".format(*(int(a.get(k), 16) for k in ("domain", "bus", "slot", "function"))) for a in found]


class Cloud:
    """Who is where: computes by name, and what must hold at every step."""

    def __init__(self, hypervisors):
        self.hosts = {h.name: h for h in hypervisors}
        self.local = threading.local()
        self.log = []           # what was done, in order
        self.computes = {}      # Nova's, by name
        self.stubborn = set()   # VFs that guests do not let go of
        self.copy_fails = False

    def reset(self):
        self.log, self.computes, self.stubborn, self.copy_fails = [], {}, set(), False

    def step(self, host, *what):
        """Something was done at a host; no vGUID may be at two places."""
        self.log.append(" ".join((host, *what)))
        places = [(guid, name, bdf) for name, h in self.hosts.items() for bdf, guid in h.guids().items()]
        twice = [p for p in places if sum(p[0] == q[0] for q in places) > 1]
        if twice:
            raise AssertionError(f"live twice: {twice}; " + "; ".join(self.log))

    def remote(self, connection):
        return self.hosts[connection.hostname]


CLOUD = Cloud([])


def refuse(code, text):
    raise fake.make_libvirtError(fake.libvirtError, text, error_code=code, error_domain=fake.VIR_FROM_QEMU)


class Domain(fake.Domain):
    """A domain of Nova's double that a host of ours shows to its agent, too."""

    def __init__(self, connection, xml, running=False, transient=False):
        self.config_vfs = hostdevs_of(etree.fromstring(xml))
        self.live_vfs = list(self.config_vfs) if running else []
        super().__init__(connection, xml, running=running, transient=transient)
        devices = self._def["devices"]
        devices["hostdevs"] = [device for device in devices["hostdevs"] if device["type"] != "pci"]   # Nova 31's has some of its own
        self._job_type = fake.VIR_DOMAIN_JOB_NONE

    @property
    def host(self):
        return CLOUD.remote(self._connection)

    def XMLDesc(self, flags):
        vfs = self.config_vfs if flags & fake.VIR_DOMAIN_XML_INACTIVE else self.live_vfs
        text = "".join(HOSTDEV.format(*numbers(bdf)) for bdf in vfs)
        return super().XMLDesc(flags).replace("</devices>", text + "</devices>")

    def live_xml(self):
        return self.XMLDesc(0).replace("<domain ", f"<domain id='{max(self._id, 1)}' ")

    # ---- what becomes of it at the host ----

    def show(self, state, *what):
        self.host.show(self.UUIDString(), self.live_vfs, state, self.live_xml())
        CLOUD.step(self.host.name, *what)

    def begin(self, state, *what):
        for operation in ("prepare", "start"):
            if said := self.host.hook(self.name(), operation, "begin", self.live_xml()):
                self.host.hook(self.name(), "release", "end", self.live_xml())
                CLOUD.step(self.host.name, f"hook {operation} refuses:", said)
                refuse(fake.VIR_ERR_INTERNAL_ERROR, f"Hook script execution failed: {said}")
        CLOUD.step(self.host.name, "hook lets it begin")
        self.show(state, *what)
        self.host.hook(self.name(), "started", "begin", self.live_xml())

    def finish(self, *what):
        if self.UUIDString() not in self.host.domains:
            return
        xml = self.live_xml()
        self.live_vfs = []
        self.host.hide(self.UUIDString())
        CLOUD.step(self.host.name, *what)
        for operation in ("stopped", "release"):
            self.host.hook(self.name(), operation, "end", xml)

    # ---- what Nova calls ----

    def createWithFlags(self, flags):
        paused = flags & fake.VIR_DOMAIN_START_PAUSED
        self.live_vfs = list(self.config_vfs)
        self.begin(hosts.PAUSED_BY_USER if paused else hosts.RUNNING, "domain begins", " ".join(self.live_vfs))
        super().createWithFlags(flags)

    def resume(self):
        self.show(hosts.RUNNING, "domain runs")
        super().resume()

    def suspend(self):
        self.show(hosts.PAUSED_BY_USER, "domain is paused")
        super().suspend()

    def destroy(self):
        self.finish("domain is destroyed")
        super().destroy()

    def shutdown(self):
        self.finish("domain has shut down")
        super().shutdown()

    def managedSave(self, flags):
        self.finish("domain is saved")
        super().managedSave(flags)
        self._state = fake.VIR_DOMAIN_SHUTOFF

    def attachDevice(self, xml):
        self.attachDeviceFlags(xml, 0)

    def attachDeviceFlags(self, xml, flags):
        vfs = hostdevs_of(etree.fromstring(xml))
        if not vfs:
            super().attachDeviceFlags(xml, flags)
            return
        is_live = self.UUIDString() in self.host.domains
        if is_live and (not flags or flags & fake.VIR_DOMAIN_AFFECT_LIVE):
            if any(set(vfs) & set(used) for used in self.host.domains.values()):
                CLOUD.step(self.host.name, "attach: already in use")
                refuse(fake.VIR_ERR_OPERATION_INVALID, f"PCI device {vfs[0]} is in use by driver QEMU, domain {self.name()}")
            self.live_vfs += vfs
            self.show(hosts.RUNNING, "device attached", *vfs)
        if not is_live or flags & fake.VIR_DOMAIN_AFFECT_CONFIG:
            self.config_vfs += [bdf for bdf in vfs if bdf not in self.config_vfs]

    def detachDeviceFlags(self, xml, flags):
        vfs = hostdevs_of(etree.fromstring(xml))
        if not vfs:
            super().detachDeviceFlags(xml, flags)
            return
        if flags & fake.VIR_DOMAIN_AFFECT_CONFIG:
            self.config_vfs = [bdf for bdf in self.config_vfs if bdf not in vfs]
        if not flags & fake.VIR_DOMAIN_AFFECT_LIVE:
            return
        if CLOUD.stubborn & set(vfs):
            CLOUD.step(self.host.name, "unplug is ignored")
            return
        self.live_vfs = [bdf for bdf in self.live_vfs if bdf not in vfs]
        self.show(hosts.RUNNING, "device left", *vfs)
        for bdf in vfs:
            CLOUD.computes[self.host.name].driver.emit_event(
                libvirt_event.DeviceRemovedEvent(self.UUIDString(), f"hostdev{numbers(bdf)[3]}"))

    def migrateToURI3(self, destination, params, flags):
        """libvirt's part: the hook there, the copy, the guest there alone."""
        self._job_type = fake.VIR_DOMAIN_JOB_UNBOUNDED
        to = next(name for name in CLOUD.hosts if name in destination)
        if self.live_vfs or CLOUD.copy_fails:
            CLOUD.step(self.host.name, "copy fails")
            self._job_type = fake.VIR_DOMAIN_JOB_NONE
            refuse(fake.VIR_ERR_OPERATION_FAILED, "the copy has failed")
        incoming = CLOUD.computes[to].driver._host.get_connection().createXML(params["destination_xml"], 0)
        incoming.live_vfs = []
        incoming.begin(hosts.PAUSED_BY_MIGRATION, "domain comes in")
        self.finish("domain has left")
        incoming.show(hosts.RUNNING, "domain runs")
        self.complete_job()
