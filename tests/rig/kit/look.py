# SPDX-License-Identifier: LGPL-2.1-or-later
"""All that tells where a guest's VFs are, read from one hypervisor in one exchange: on a busy machine each exchange takes half a second."""

import json

from kit.guest import hostdevs_of
from kit.host import FACTS, SOCKET, VFS, Facts, parse_facts
from kit.hypervisors import SM_ADDRESS

AGENT = ("vfs", "claims", "outbox")
SCRIPT = "; echo; echo //; ".join((
    "virsh -q dumpxml %(guest)s 2> /dev/null",
    f"({FACTS.replace('%', '%%')})",
    f"for bdf in {' '.join(VFS)}; do readlink /sys/bus/pci/devices/$bdf/driver || echo; done",
    *(f"curl -s --unix-socket {SOCKET} http://a/v1/{what}" for what in AGENT),
    f"curl -s http://{SM_ADDRESS}/v1/bindings"))


class Look:
    """libvirt's XML of the guest, the adapter's sysfs, what the agent says, and the plugin's bindings {vGUID: binding}."""

    def __init__(self, host, guest):
        text = host.sh(SCRIPT % {"guest": guest.name}, check=False)
        self.xml, facts, drivers, *answers = (part.strip() for part in text.split("\n//\n"))
        self.facts = Facts(parse_facts(facts))
        self.drivers = dict(zip(VFS, (line.rpartition("/")[2] for line in drivers.splitlines())))
        vfs, self.claims, self.outbox = (json.loads(a or "{}").get(what, []) for a, what in zip(answers, AGENT))
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
