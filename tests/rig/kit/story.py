# SPDX-License-Identifier: LGPL-2.1-or-later
"""The life of one guest's VF, step by step. tools/demo prints it; cases/10_demo.py runs each step as a case.

Every step asserts what it shows. Truth is read from the host's sysfs and from OpenSM's SA; what the agent
says is compared with it.
"""

import json
import re
import time

from kit import hypervisors
from kit.base import wait_for
from kit.case import Guest, assert_scrubbed, check, equal, free_vfs, request
from kit.host import PF, VFS

PKEY = 0x8001
SA_PATIENCE_MS = 20000  # saquery asks once, and by itself for a second, in which a busy OpenSM may not get to run


def guid_text(guid):
    return f"0x{guid:016x}"


class Story:
    """show(text) prints; the state of one step is used by the next."""

    def __init__(self, rig, show=lambda text: None):
        self.rig, self.show, self.host = rig, show, rig.hva
        self.guest = Guest(rig.hva, "vm1", 1, request(("ib0", f"0x{PKEY:04x}")))
        self.bdf = self.guid = None

    def show_agent(self, *args):
        self.show(f"{self.host.name}# vhcactl {' '.join(args)}\n" + self.host.sh("vhcactl " + " ".join(args)))

    # ---- what OpenSM knows ----

    def sa(self, query):
        return self.rig.hva.sh(f"saquery --timeout {SA_PATIENCE_MS} {query}", check=False)

    def sa_path_lid(self, guid):
        """LID to which the SA sends who asks hva's port for a path to a vGUID, 0 if it knows none."""
        own = self.rig.hva.facts().raw["gid"]
        gid = "fe80::" + ":".join(f"{guid:016x}"[i:i + 4] for i in range(0, 16, 4))
        found = re.search(r"dlid\.+(\d+)", self.sa(f"--sgid-to-dgid {own}-{gid} PR"))
        return int(found.group(1)) if found else 0

    def wait_path(self, guid, lid):
        """Wait until the SA sends there who asks for a path to a vGUID."""
        wait_for(lambda: self.sa_path_lid(guid) == lid, 60, f"the SA's path to {guid_text(guid)} to lead to LID {lid}", 0.5)

    def sa_guids(self, lid):
        """GUIDs that the SA has for a LID: {index: guid}. The first block holds all VFs of the rig."""
        entries = re.findall(r"\bGUID (\d+)\W+0x([0-9a-fA-F]+)", self.sa(f"GIR {lid}/0"))
        return {int(i): int(guid, 16) for i, guid in entries if int(guid, 16)}

    def sa_pkeys(self, lid):
        return {int(x, 16) for x in re.findall(r"0x([0-9a-fA-F]{4})\b", self.sa(f"--smkey 1 PKTR {lid}/1/0"))} - {0}

    def bindings(self):
        """The plugin's own table, {vguid: binding}."""
        return hypervisors.bindings()

    # ---- steps ----

    def hypervisor_has_its_vfs(self):
        host = self.host
        equal(host.read(f"/sys/bus/pci/devices/{PF}/sriov_numvfs"), str(len(VFS)), "sriov_numvfs")
        equal(free_vfs(host), VFS, "VFs that the agent calls free")
        groups = set()
        for bdf in VFS:
            equal(host.driver(bdf), "vfio-pci", f"driver of {bdf}")
            group = host.sh(f"ls /sys/bus/pci/devices/{bdf}/iommu_group/devices").split()
            equal(group, [bdf], f"IOMMU group of {bdf}")
            groups.add(host.sh(f"readlink /sys/bus/pci/devices/{bdf}/iommu_group").strip())
            equal(host.facts().pkey_map(bdf), {}, f"P_Key map of {bdf}")
        equal(len(groups), len(VFS), "number of IOMMU groups")
        self.show_agent("vfs")
        self.show(f"sysfs: {len(VFS)} VFs of {PF}, each bound to vfio-pci, alone in its IOMMU group, P_Key map all none")

    def fabric_is_up(self):
        records = {}
        for host in self.rig.hosts:
            facts = host.facts()
            check("ACTIVE" in facts.state, f"{host.name}: port is {facts.state}")
            records[host.name] = (int(facts.lid, 16), facts.port_guid)
        lids = {int(x) for x in re.findall(r"^\s*lid\.+(\d+)", self.sa("NR"), re.M)}
        for name, (lid, guid) in records.items():
            check(lid in lids, f"{name}: LID {lid} is not among the SA's node records {sorted(lids)}")
            self.show(f"{name}: port {guid_text(guid)} ACTIVE, LID {lid}, known to OpenSM's SA")

    def port_is_not_yet_a_member(self):
        # The SM may still be taking away what another case's guest had.
        wait_for(lambda: PKEY not in self.host.facts().port_pkeys().values(), 60, f"0x{PKEY:04x} not in the port's table", 0.4)
        pkeys = self.host.facts().port_pkeys()
        self.show(f"{self.host.name}: P_Key table of the port: " + " ".join(f"0x{v:04x}" for v in pkeys.values()))

    def guest_asks_for_a_partition(self):
        self.show("domain XML: " + request(("ib0", f"0x{PKEY:04x}")))
        self.guest.start(wait=False)
        self.show("hva# virsh start vm1")

    def port_becomes_a_member(self):
        wait_for(lambda: PKEY in self.host.facts().port_pkeys().values(), 60, f"0x{PKEY:04x} in the port's table", 0.3)
        facts = self.host.facts()
        seen = wait_for(lambda: (lambda s: s if PKEY in s else None)(self.sa_pkeys(int(facts.lid, 16))), 60,
                        f"0x{PKEY:04x} in the SA's P_Key table record")
        self.show(f"{self.host.name}: P_Key table of the port: " + " ".join(f"0x{v:04x}" for v in facts.port_pkeys().values()))
        self.show("SA: PKeyTableRecord of the port: " + " ".join(f"0x{v:04x}" for v in sorted(seen, reverse=True)))

    def guest_gets_its_vf(self):
        vf = self.host.wait_attached(self.guest)
        self.bdf, self.guid = vf["bdf"], int(vf["requested"], 16)
        devices = self.guest.live_hostdevs()
        equal(list(devices), [self.bdf], "PCI devices in vm1's live XML")
        equal(devices[self.bdf][0], "ua-vhca-ib0", "alias of the device")
        self.show_agent("domains")
        self.show(f"libvirt: vm1 has host device {self.bdf} at guest address {devices[self.bdf][1]}")

    def guest_sees_it(self):
        self.guest.wait_ready()
        (vf,) = self.guest.wait_vfs(1)
        equal(vf["id"], "0x15b3:0x1004", "PCI id in the guest")
        equal(vf["driver"], "mlx4_core", "driver in the guest")
        equal(vf["pci"], self.guest.live_hostdevs()[self.bdf][1], "PCI address in the guest")
        self.show(f"vm1 serial: VF at {vf['pci']}, id {vf['id']}, driver {vf['driver']}")

    def map_shows_only_its_partition(self):
        facts = self.host.facts()
        equal(facts.pkey_map(self.bdf), {0: PKEY}, f"P_Key map of {self.bdf}")
        for other in VFS:
            if other != self.bdf:
                equal(facts.pkey_map(other), {}, f"P_Key map of {other}")
        self.show(f"sysfs: {self.bdf} pkey_idx/0 -> 0x{PKEY:04x}, all others none")

    def guid_is_granted(self):
        wait_for(lambda: self.host.facts().granted_guid(self.bdf) == self.guid, 90,
                 f"gids to show {guid_text(self.guid)}", 0.4)
        facts = self.host.facts()
        equal(guid_text(facts.admin_guid(self.bdf)), guid_text(self.guid), "admin_guids")
        lid, index = int(facts.lid, 16), facts.gid_index(self.bdf)
        wait_for(lambda: self.sa_guids(lid).get(index) == self.guid, 60,
                 f"the SA's GUIDInfoRecord of LID {lid} to have {guid_text(self.guid)} at index {index}", 0.5)
        vf = self.host.wait_attached(self.guest, granted=True, timeout=30)
        equal(vf["bdf"], self.bdf, "VF of vm1")
        self.show_agent("vfs")
        self.show(f"sysfs: admin_guids = gids = {guid_text(self.guid)} at index {index}, port LID {lid}\n"
                  f"SA: GUIDInfoRecord of LID {lid}: index {index} = {guid_text(self.guid)}")

    def guest_has_its_port(self):
        port = self.guest.wait_port(self.guid)
        equal(port["lid"], self.host.facts().lid, "LID in the guest")
        equal(port["pkeys"], f"0x{PKEY:04x},0x0000,0x0000", "first P_Keys in the guest")
        self.show(f"vm1 serial: {port['dev']} {port['state']}, LID {port['lid']}, GID {port['gid']}, P_Keys {port['pkeys']}")

    def subnet_manager_knows(self):
        def granted():
            binding = self.bindings().get(self.guid, {})
            return binding if binding.get("state") == "granted" else None
        binding = wait_for(granted, 30, f"the plugin to call {guid_text(self.guid)} granted")
        facts = self.host.facts()
        equal(binding["lid"], int(facts.lid, 16), "LID in the plugin's answer")
        equal([int(k, 16) for k in binding["pkeys"]], [PKEY], "P_Keys in the plugin's answer")
        wait_for(lambda: not self.host.get("outbox")["outbox"], 60, "an empty outbox", 0.5)
        self.show(f"plugin: {json.dumps(binding)}")

    def paths_lead_here(self):
        lid = int(self.host.facts().lid, 16)
        self.wait_path(self.guid, lid)
        self.show(f"SA: PathRecord to {guid_text(self.guid)}: LID {lid}, which is {self.host.name}'s port")

    def guest_migrates(self):
        source, self.host = self.rig.hva, self.rig.hvb
        self.left, self.address = self.bdf, self.guest.live_hostdevs()[self.bdf][1]
        started = time.monotonic()
        text = source.sh("vhcactl migrate vm1 hvb", timeout=420)
        self.show("hva# vhcactl migrate vm1 hvb\n" + text)
        self.guest.host = self.host
        equal(self.guest.state(), "running", "vm1 on hvb")
        check("vm1" not in source.domains("--all"), "libvirt on hva still has vm1")
        vf = self.host.wait_attached(self.guest, granted=True)
        granted = time.monotonic() - started
        equal(int(vf["requested"], 16), self.guid, "vGUID on hvb")
        self.bdf = vf["bdf"]
        self.show_times(source, granted)

    def show_times(self, source, granted):
        """Who was without a VF for how long: the agents' own times, and ours for the grant."""
        here, there = (h.get("migrations?limit=1000")["migrations"][-1]["step_ms"] for h in (source, self.host))
        without = sum(here[s] for s in ("detaching", "copying", "finishing"))
        self.show("timeline: " + ", ".join(f"{name} {ms / 1000:.1f} s" for name, ms in (
            ("VF detached", here["detaching"]), ("memory copied", here["copying"]), ("VF attached", there["attaching"]),
            ("without the VF", without), ("granted after", granted * 1000))))

    def same_address_in_the_guest(self):
        devices = self.guest.live_hostdevs()
        equal(devices, {self.bdf: ("ua-vhca-ib0", self.address)}, "PCI devices in vm1's live XML on hvb")
        (vf,) = self.guest.wait_vfs(1, timeout=120)
        equal(vf["pci"], self.address, "PCI address in the guest")
        self.show(f"libvirt on hvb: vm1 has {self.bdf} at guest address {self.address}, as before\n"
                  f"vm1 serial: VF at {vf['pci']}, driver {vf['driver']}")

    def source_is_scrubbed(self):
        source = self.rig.hva
        source.wait_vf(self.left, "free", 60)
        assert_scrubbed(source, self.left)
        lid = int(source.facts().lid, 16)
        check(self.guid not in self.sa_guids(lid).values(), f"SA: LID {lid} still has {guid_text(self.guid)}")
        equal(source.get("claims")["claims"], [], "claims on hva")
        self.show(f"hva sysfs: {self.left} P_Key map all none, admin_guids withdrawn, on vfio-pci\n"
                  f"SA: LID {lid} has no {guid_text(self.guid)} any more")

    def stopping_scrubs_it(self):
        self.guest.destroy()
        self.host.wait_vf(self.bdf, "free", 60)
        assert_scrubbed(self.host, self.bdf)
        facts = self.host.facts()
        wait_for(lambda: self.guid not in self.sa_guids(int(facts.lid, 16)).values(), 30, "the SA to forget the GUID")
        wait_for(lambda: PKEY not in self.host.facts().port_pkeys().values(), 60,
                 f"0x{PKEY:04x} to leave the port's table", 0.4)
        self.show(f"{self.host.name}# virsh destroy vm1")
        self.show_agent("vfs")
        self.show(f"sysfs: {self.bdf} P_Key map all none, admin_guids withdrawn, on vfio-pci; "
                  "the SA has no GUID for it and the port has left the partition")


STEPS = (
    (Story.hypervisor_has_its_vfs, "the hypervisor's VFs are enabled and bound to vfio-pci"),
    (Story.fabric_is_up, "OpenSM has brought both ports up"),
    (Story.port_is_not_yet_a_member, "the host's port is in no tenant's partition"),
    (Story.guest_asks_for_a_partition, "a guest starts that asks for partition 0x8001"),
    (Story.port_becomes_a_member, "the host's port becomes a member"),
    (Story.guest_gets_its_vf, "the guest gets its VF"),
    (Story.guest_sees_it, "as the guest sees it"),
    (Story.map_shows_only_its_partition, "the VF's P_Key map shows the one partition"),
    (Story.guid_is_granted, "its GUID is granted by the subnet manager"),
    (Story.guest_has_its_port, "the guest's port is ACTIVE, with its GUID and its P_Key only"),
    (Story.subnet_manager_knows, "the plugin's table agrees"),
    (Story.paths_lead_here, "the SA's path record for its GUID leads to this host"),
    (Story.guest_migrates, "the guest migrates to the other hypervisor"),
    (Story.same_address_in_the_guest, "it has a VF there, at the same address in the guest"),
    (Story.map_shows_only_its_partition, "that VF's P_Key map shows the one partition"),
    (Story.guid_is_granted, "the same GUID is granted there"),
    (Story.guest_has_its_port, "the guest's port is ACTIVE again, with the other host's LID"),
    (Story.subnet_manager_knows, "the plugin's table has moved"),
    (Story.paths_lead_here, "and the SA's path record with it"),
    (Story.source_is_scrubbed, "the VF that it left is scrubbed and free"),
    (Story.stopping_scrubs_it, "guest stopped: the VF is scrubbed and free"),
)
