# SPDX-License-Identifier: LGPL-2.1-or-later
"""All that tells where guests' VFs are, read from one hypervisor in one exchange: on a busy machine each exchange takes half a second."""

import json

from kit.guest import hostdevs_of
from kit.host import FACTS, SOCKET, VFS, Facts, parse_facts
from kit.hypervisors import SM_CURL
from kit.migration import FINAL

AGENT = ("vfs", "claims", "outbox", "migrations")
SCRIPT = "; echo; echo //; ".join((
    "virsh -q list --all --name",
    "virsh -q dumpxml %(guest)s 2> /dev/null",
    f"({FACTS.replace('%', '%%')})",
    f"for bdf in {' '.join(VFS)}; do readlink /sys/bus/pci/devices/$bdf/driver || echo; done",
    "grep -H . " + " ".join(f"/sys/bus/pci/devices/{bdf}/enable" for bdf in VFS),
    *(f"curl -s --unix-socket {SOCKET} http://a/v1/{what}" for what in AGENT),
    f"{SM_CURL}/v1/bindings"))


class Look:
    """libvirt's domains and XML of the guest, the adapter's sysfs, what the agent says, and the plugin's bindings {vGUID: binding}."""

    def __init__(self, host, guest=None):
        text = host.sh(SCRIPT % {"guest": guest.name if guest else "''"}, check=False)
        domains, self.xml, facts, drivers, enabled, *answers = (part.strip() for part in text.split("\n//\n"))
        self.domains = domains.split()
        self.facts = Facts(parse_facts(facts))
        self.drivers = dict(zip(VFS, (line.rpartition("/")[2] for line in drivers.splitlines())))
        self.open = [line.split("/")[-2] for line in enabled.splitlines() if not line.endswith(":0")]
        self.answers = all(answers[:-1])
        vfs, self.claims, self.outbox, self.migrations = (json.loads(a or "{}").get(what, []) for a, what in zip(answers, AGENT))
        self.vfs = {v["bdf"]: v for v in vfs}
        self.bindings = {int(b["vguid"], 16): b for b in json.loads(answers[-1] or "{}").get("bindings", [])}
        self.identity = self.facts.identity(hostdevs_of(self.xml)) if self.facts.raw else {}

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
            *(f"migration: {m}" for m in self.migrations if m["state"] not in FINAL))))
