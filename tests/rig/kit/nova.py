# SPDX-License-Identifier: LGPL-2.1-or-later
"""An InfiniBand port of an OpenStack instance: Nova's calls of ebrctl and libvirt in Nova's order, and the partitions that Neutron's agent sets."""

import contextlib
import json
import re

from kit.base import RigError, wait_for
from kit.case import VFS, Guest, check, equal
from kit.guest import asks_for, hostdev
from kit.hypervisors import PRIVATE
from kit.story import Story, guid_text

FABRIC = "default"
RESERVED = VFS[:2]
CONF = "/etc/vhcad/vhcad.conf.d/reserve.conf"
PKEY = 0x8011
DEVICE = "ib0"
SILENCE = re.compile("vhcad (does not answer|has not answered)")  # of ebrctl, about the agent


@contextlib.contextmanager
def reserved_vfs(rig):
    """Nova's VFs of both hosts, for this long."""
    for host in rig.hosts:
        host.put(CONF, f"[hca default]\nreserve = {' '.join(RESERVED)}\n".encode())
        host.sh("systemctl reload vhcad", timeout=90)
    try:
        yield
    finally:
        for host in rig.hosts:
            host.sh(f"rm {CONF}; systemctl is-active -q vhcad && systemctl reload vhcad", timeout=90)


class Instance:
    """A guest with one port. Its host is where Nova says that it runs."""

    def __init__(self, rig, host, number=1, agent=False):
        self.rig, self.host, self.vf = rig, host, RESERVED[0]
        self.guest = Guest(host, f"vm{number}", number, agent=agent)
        self.mac = f"52:54:00:ca:fe:{number:02x}"
        self.guid = 0x5254000000cafe00 | number
        self.name = "mac-" + self.mac.replace(":", "")
        self.path = f"fabrics/{FABRIC}/ports/{self.mac}"
        self.with_vf = self.guest.xml.replace("</devices>", self.device(self.vf) + "</devices>")
        asks_for(self.guest.uuid, f"0x{PKEY:04x}")

    @staticmethod
    def device(bdf):
        return hostdev(bdf).replace("managed='no'", "managed='yes'")

    # ---- Nova's calls, Neutron's agent ----

    tries = 1  # of ebrctl, while nobody answers it

    def ebrctl(self, host, words):
        """What it prints. It waits 10 s of the wall clock for an agent that is being started, of which that has needed 7 where pairs
        share the cores: a case that kills agents lets it try again then, and only then."""
        for _ in range(self.tries):
            code, said = host.code(f"ebrctl {words}", timeout=30)
            if code == 0:
                return said
            if not SILENCE.search(said):
                break
        raise RigError(f"{host.name}: ebrctl {words}: exit code {code}\n{said}")

    def disturb(self, host):
        """Before each step: what a case wants to happen then."""

    def plug(self, host, bdf=None):
        """add-port. Nova looks at nothing that comes of it."""
        self.disturb(host)
        equal(self.add_port(host, bdf or self.vf), DEVICE, f"what ebrctl add-port prints for {bdf or self.vf}")
        self.assert_once()

    def add_port(self, host, bdf):
        return self.ebrctl(host, f"add-port {self.mac} {self.guest.uuid} {FABRIC} ib_hostdev {bdf}")

    def unplug(self, host):
        """del-port."""
        self.disturb(host)
        equal(self.ebrctl(host, f"del-port {FABRIC} {self.mac}"), "", "what ebrctl del-port prints")
        self.assert_once()

    def set_partitions(self, host):
        """What Neutron's agent does where it finds a port that was plugged."""
        status, text = host.ask(f"/v1/{self.path}/partitions", "PUT", {"partitions": [f"0x{PKEY:04x}"]})
        equal(status, 200, f"answer to the port's partitions: {text}")

    def virsh_device(self, host, verb, *options, check=True):
        """attach-device or detach-device of the port's VF."""
        return host.virsh(verb, self.guest.name, self.device(self.vf), *options, check=check)

    def detach(self, host, *where):
        """Out of the guest; Nova waits for libvirt's event."""
        self.disturb(host)
        self.virsh_device(host, "detach-device", *(where or ("--live", "--config")))
        wait_for(lambda: not self.guest.live_hostdevs(), 60, f"{self.guest.name} without its VF", 0.5)

    def attach(self, host, *where):
        self.virsh_device(host, "attach-device", *(where or ("--live", "--config")))
        self.assert_has_port(host)

    def start(self):
        """As Nova boots: paused until Neutron says that the port is there."""
        self.host.virsh("define", self.with_vf)
        self.host.virsh("start", self.guest.name, "--paused", timeout=120)
        self.assert_programmed(self.host)
        self.host.virsh("resume", self.guest.name)

    def copy(self, *options):
        """virsh's arguments for what Nova asks of libvirt, when the VF is out of the guest."""
        (there,) = set(PRIVATE) - {self.host.name}
        return ("migrate", "--live", "--p2p", "--persistent", "--undefinesource", *options, self.guest.name,
                f"qemu+tcp://{there}/system", "--migrateuri", f"tcp://{PRIVATE[there]}")

    def migrate(self, there):
        """Nova's live migration; Neutron tells its agent of the port there when the copy is over."""
        here = self.host
        self.plug(there)
        self.assert_reserved(there)
        self.assert_has_port(here)
        self.leave(here)
        here.virsh(*self.copy(), timeout=240)
        self.host = self.guest.host = there
        self.unplug(here)
        self.set_partitions(there)
        self.plug(there)
        self.attach(there)
        self.assert_released(here)

    def leave(self, here):
        self.detach(here)
        self.unplug(here)
        equal(self.programmed_at(), [], f"where {guid_text(self.guid)} is while no guest has it")

    def boot(self):
        """Plugged, started, with InfiniBand."""
        self.plug(self.host)
        self.set_partitions(self.host)
        self.assert_reserved(self.host)
        self.start()
        self.guest.wait_ready()
        self.assert_has_port(self.host)
        return self

    # ---- facts ----

    def programmed_at(self):
        """[(host's name, VF)] wherever hardware has the port's GUID."""
        found = []
        for host in self.rig.hosts:
            facts = host.facts()
            if facts.raw:
                found += [(host.name, bdf) for bdf in VFS if facts.admin_guid(bdf) == self.guid]
        return found

    def assert_once(self):
        found = self.programmed_at()
        check(len(found) < 2, f"{guid_text(self.guid)} is programmed at {found}")

    def assert_reserved(self, host):
        """The agent has the claim, the VF shows nothing of it."""
        view = host.wait_vf(self.vf, "claimed", 60)
        equal(view["name"], self.name, "name of the claim")
        equal(host.facts().pkey_map(self.vf), {}, f"{host.name}: P_Key map of a reserved VF")
        check((host.name, self.vf) not in self.programmed_at(), f"{host.name}: the reserved VF has its GUID")

    def assert_programmed(self, host):
        """The VF has the port's GUID and nothing but its partition, and nobody else has them."""
        wait_for(lambda: host.facts().pkey_map(self.vf) == {0: PKEY}, 60, f"{host.name}: {PKEY:#x} in the map of {self.vf}", 0.3)
        equal(self.programmed_at(), [(host.name, self.vf)], f"where {guid_text(self.guid)} is programmed")

    def assert_has_port(self, host):
        """The guest has its VF and its port; OpenSM's SA sends others there."""
        self.assert_programmed(host)
        equal(list(self.guest.live_hostdevs()), [self.vf], "host devices of the instance")
        self.guest.wait_vfs(1, timeout=120)
        wait_for(lambda: host.facts().granted_guid(self.vf) == self.guid, 90, f"{host.name}: {guid_text(self.guid)} granted", 0.5)
        Story(self.rig).wait_path(self.guid, int(host.facts().lid, 16))

    def assert_released(self, host):
        host.wait_vf(self.vf, "free", 60)
        equal(json.dumps(host.get("claims")["claims"]), "[]", f"claims at {host.name}")
