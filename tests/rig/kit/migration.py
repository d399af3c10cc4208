# SPDX-License-Identifier: LGPL-2.1-or-later
"""Migrations as cases see them: begun by the agent's API, judged by sysfs on both hosts, libvirt and OpenSM's SA."""

import re

from kit.base import RigError, wait_for
from kit.case import VFS, assert_scrubbed, check, equal, free_vfs
from kit.story import Story, guid_text

FINAL = ("done", "failed", "ended")
# One pass over memory takes about a minute: enough to disturb it in the middle, little enough to wait for its end.
SLOW_MIB_S = 1
FULL_MIB_S = 1000


class Moving:
    """A guest and what must not change when it moves: for each of its VFs vGUID, P_Keys and guest address."""

    def __init__(self, rig, guest, names=("ib0",)):
        self.rig, self.guest, self.names = rig, guest, names
        self.story = Story(rig)
        self.before = self.identity(guest.host)

    # ---- facts ----

    def identity(self, host):
        """{name: (vGUID in admin_guids, P_Keys of the map, address in the guest)} from sysfs and libvirt."""
        return host.facts().identity(self.guest.live_hostdevs())

    def guids(self):
        return [int(guid, 16) for guid, _, _ in self.before.values()]

    def other(self, host):
        (other,) = [h for h in self.rig.hosts if h is not host]
        return other

    # ---- requests ----

    def speed(self, mib_s):
        self.guest.host.virsh("migrate-setspeed", self.guest.name, str(mib_s))

    def begin(self):
        """Ask the agent of the guest's host; return the migration's id."""
        host = self.guest.host
        document = host.api("POST", "migrations", {"domain": self.guest.name, "peer": self.other(host).name})
        check("id" in document, f"migration refused: {document}")
        return document["id"]

    def view(self, host, migration):
        try:
            return host.get(f"migrations/{migration}")
        except (RigError, ValueError):
            return {}

    def wait_state(self, migration, *states, timeout=240, every=0.1):
        """Wait until the source is in one of these states. An end that is not among them is a failure."""
        host = self.guest.host

        def there():
            state = self.view(host, migration).get("state")
            check(state not in FINAL or state in states, f"migration ended as {self.view(host, migration)}")
            return state if state in states else None
        return wait_for(there, timeout, f"migration in {states}", every)

    def wait_copying(self, migration):
        """Wait until libvirt has moved some memory and has much more to move. It has a QEMU started there before, which takes a while."""
        self.wait_state(migration, "copying", every=0.3)
        wait_for(lambda: re.search(r"Memory processed:\s+[1-9]", self.guest.host.virsh(
            "domjobinfo", self.guest.name, check=False)), 150, "the copy to have begun")

    def begin_and_wait_copying(self):
        """Begin a migration that copies slowly; return its id when libvirt is in the middle of it."""
        self.speed(SLOW_MIB_S)
        migration = self.begin()
        self.wait_copying(migration)
        return migration

    def wait_final(self, migration):
        """Wait for the end; return the source's view of it."""
        self.wait_state(migration, *FINAL, timeout=420, every=0.5)
        return self.view(self.guest.host, migration)

    # ---- judgements ----

    def rolls_back(self, migration, *words):
        """The migration fails with these words in its reason, and everything is at the source as it was."""
        source = self.guest.host
        view = self.wait_final(migration)
        equal(view["state"], "failed", f"end of the migration ({view['reason']})")
        for word in words:
            check(word in (view["reason"] or ""), f"'{word}' is not in the reason: {view['reason']}")
        self.assert_owner(source)
        check(self.guest.name not in self.other(source).domains("--all"),
              f"libvirt at {self.other(source).name} still knows {self.guest.name}")

    def assert_owner(self, host):
        """The guest runs here with all that it had; the other host has no trace of it. Nothing is taken from an agent's word."""
        other, guest = self.other(host), self.guest
        guest.host = host
        equal(guest.state(), "running", f"{guest.name} on {host.name}")
        check(guest.name not in other.domains(), f"{guest.name} runs on {other.name} too")
        wait_for(lambda: self.identity(host) == self.before, 60,
                 f"{guest.name}: {self.before}; it has {self.identity(host)}", 0.5)
        wait_for(lambda: "urn:vhcad:away:1" not in host.virsh("dumpxml", guest.name), 30, f"{guest.name} without the marker", 0.5)
        guest.wait_vfs(len(self.names), timeout=120)
        addresses = {address for _, _, address in self.before.values()}
        wait_for(lambda: {v["pci"] for v in guest.seen()["VF"]} == addresses, 60, f"{guest.name} to see its VFs at {addresses}", 0.5)
        wait_for(lambda: free_vfs(other) == VFS, 60, f"{other.name}: all VFs free", 0.5)
        assert_scrubbed(other, *VFS)
        for one, count in ((host, len(self.names)), (other, 0)):
            claims = one.get("claims")["claims"]
            equal(len(claims), count, f"claims at {one.name}: {claims}")

    def assert_granted(self, host):
        """The port here holds the vGUIDs, the other does not; OpenSM's SA agrees, and its paths lead here."""
        other = self.other(host)
        for name in self.names:
            host.wait_attached(self.guest, name, granted=True)
        lid = int(host.facts().lid, 16)
        for guid in self.guids():
            # A driver that starts in the guest has given the alias back for a moment, of which the agent hears later.
            wait_for(lambda g=guid: g in host.facts().held_guids(), 60, f"{host.name}: {guid_text(guid)} in the port's GUID table", 0.5)
            wait_for(lambda g=guid: g in self.story.sa_guids(lid).values(), 60, f"SA: {guid_text(guid)} among the GUIDs of LID {lid}", 0.5)
            others = self.story.sa_guids(int(other.facts().lid, 16)).values()
            check(guid not in others, f"SA: {other.name} still has {guid_text(guid)}")
            self.story.wait_path(guid, lid)
            wait_for(lambda g=guid: (self.bound(g) or {}).get("lid") == lid, 60, f"the plugin to have {guid_text(guid)} at LID {lid}")
        for one in self.rig.hosts:
            wait_for(lambda h=one: not h.get("outbox")["outbox"], 60, f"{one.name}: an empty outbox", 0.5)

    def bound(self, guid):
        """The plugin's binding of a vGUID if it calls it granted."""
        binding = self.story.bindings().get(guid, {})
        return binding if binding.get("state") == "granted" else None

    def migrate(self):
        """vhcactl migrate to the other host, and all that has to be true then. Returns the migration's times."""
        source = self.guest.host
        text = source.sh(f"vhcactl migrate {self.guest.name} {self.other(source).name}", timeout=420)
        self.assert_owner(self.other(source))
        self.assert_granted(self.guest.host)
        return text


def moving(rig, *vfs, host=None, number=1, granted=True, **options):
    """A guest that is up with its VFs, in OpenSM's books too."""
    vfs = vfs or (("ib0", "0x8001"),)
    guest = rig.guest(host or rig.hva, number, *vfs, **options).start(wait=False)
    for name, _ in vfs:
        guest.host.wait_attached(guest, name)
    guest.wait_ready()
    if granted:
        guest.wait_vfs(len(vfs), timeout=120)
        for name, _ in vfs:
            guest.host.wait_attached(guest, name, granted=True)
    return Moving(rig, guest, tuple(name for name, _ in vfs))
