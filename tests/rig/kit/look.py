# SPDX-License-Identifier: LGPL-2.1-or-later
"""All that tells where guests' VFs are, read from one hypervisor without starting a program there."""

from kit.base import RigError
from kit.guest import hostdevs_of
from kit.host import FACTS, VFS, Facts, parse_facts
from kit.hypervisors import SM_HOST, bindings

AGENT = ("vfs", "claims", "outbox", "migrations?final=false")
DEVICES = "/sys/bus/pci/devices/"


class Look:
    """libvirt's domains and XML of the guest, the adapter's sysfs, what the agent says, and the plugin's bindings {vGUID: binding}."""

    def __init__(self, host, guest=None):
        self.domains = host.virsh("list", "--all", "--name", check=False).split()
        self.xml = host.virsh("dumpxml", guest.name, check=False) if guest and guest.name in self.domains else ""
        opens = [f"{DEVICES}{bdf}/enable" for bdf in VFS]
        files = host.vm.files(*FACTS, *opens)
        self.open = [path.split("/")[-2] for path in opens if str(files.pop(path, "0")).strip() != "0"]
        self.facts = Facts(parse_facts(files))
        links = host.vm.links(*(f"{DEVICES}{bdf}/driver" for bdf in VFS))
        self.drivers = {path.split("/")[-2]: target.rpartition("/")[2] for path, target in links.items()}
        documents = self._ask_agent(host)
        self.answers = bool(documents)
        vfs, self.claims, self.outbox, self.migrations = (documents.get(what, []) for what in AGENT)
        self.vfs = {v["bdf"]: v for v in vfs}
        self.bindings = self._ask_plugin() if host.name == SM_HOST else {}
        self.identity = self.facts.identity(hostdevs_of(self.xml)) if self.facts.raw else {}

    @staticmethod
    def _ask_agent(host):
        """{list: its members}, or {} if it does not answer to all."""
        try:
            return {what: host.get(what).get(what.partition("?")[0], []) for what in AGENT}
        except (RigError, ValueError):
            return {}

    @staticmethod
    def _ask_plugin():
        try:
            return bindings()
        except (RigError, ValueError):
            return {}

    def states(self):
        """The agent's word for each VF, in the order of their addresses."""
        return [self.vfs[bdf]["state"] for bdf in sorted(self.vfs)]

    def trace_on(self, bdf):
        """What of a tenant is on the VF, as a sentence; None if it is clean."""
        found = (self.facts.pkey_map(bdf), f"{self.facts.admin_guid(bdf):016x}", self.facts.granted_guid(bdf), self.drivers.get(bdf))
        return f"{bdf} is not clean: {found}" if found != ({}, "f" * 16, 0, "vfio-pci") else None

    def remains(self):
        """What is left although no guest should be, in sentences."""
        return list(filter(None, (
            self.domains and f"libvirt has {self.domains}",
            self.open and f"somebody has open {self.open}",
            *((self.trace_on(bdf) for bdf in VFS) if self.facts.raw else ["the adapter has no InfiniBand device"]),
            not self.answers and "the agent does not answer",
            self.states() != ["free"] * len(VFS) and f"the agent's VFs are {self.states()}",
            self.claims and f"claims: {self.claims}",
            self.outbox and f"outbox: {self.outbox}",
            *(f"migration: {m}" for m in self.migrations))))
