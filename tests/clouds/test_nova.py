#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Nova's own API, conductor, scheduler, placement and two nova-computes run ebrctl against two agents: docs/design/0020-openstack.md."""

import os
import sys
import time
import unittest

# Debian's Nova has its tests in the package, tools/deps cloud.
try:
    from nova.tests.functional.libvirt import test_pci_sriov_servers as sriov
except ImportError as why:
    print(f"1..0 # SKIP {why} (tools/deps cloud)")
    sys.exit(0)

import fixtures
from nova.privsep import sys_admin_pctxt
from nova.tests.fixtures import libvirt as fake
from nova.tests.functional.libvirt.base import LibvirtNeutronFixture
from oslo_concurrency import processutils

import hosts
import hypervisor
import tap
from hypervisor import CLOUD

MAC, SECOND_MAC = "fa:16:3e:12:34:56", "fa:16:3e:12:34:57"
FABRIC = "physnet4"     # as Nova's test base calls it
A, B = "test_compute0", "test_compute1"
BOUND = {"binding:vif_type": "ib_hostdev", "binding:vif_details": {"port_filter": False, "physical_network": FABRIC}}
PORT = {**LibvirtNeutronFixture.network_4_port_1, **BOUND, "mac_address": MAC}
SECOND_PORT = {**LibvirtNeutronFixture.network_4_port_2, **BOUND, "mac_address": SECOND_MAC}


def setUpModule():
    CLOUD.hosts = {name: hosts.Host(name, FABRIC, f"0x0002c9030000001{n}") for n, name in enumerate((A, B))}
    for host in CLOUD.hosts.values():
        host.start()
    for host in CLOUD.hosts.values():
        host.until_ready()


def tearDownModule():
    for host in CLOUD.hosts.values():
        host.end()


class Commands:
    """In the place of processutils where Nova runs commands as root."""

    ProcessExecutionError = processutils.ProcessExecutionError

    @staticmethod
    def execute(command, *args, **kwargs):
        if command != "ebrctl":
            return processutils.execute(command, *args, **kwargs)
        name = CLOUD.local.host
        done = CLOUD.hosts[name].ebrctl(*args)
        CLOUD.step(name, "add" if args[0] == "add-port" else "del", done.stderr)
        if done.returncode:
            raise processutils.ProcessExecutionError(done.stdout, done.stderr, done.returncode, command)
        return done.stdout, done.stderr


def leave_disks(driver, context, instance, dest, flavor, network_info, block_device_info=None, timeout=0, retry_interval=0):
    """Nova's test base replaces the whole of it, since there are no disks; this is the rest of it."""
    del context, dest, flavor, block_device_info
    driver.power_off(instance, timeout, retry_interval)
    driver.unplug_vifs(instance, network_info)
    return "{}"


class Nova(sriov.SRIOVServersTest):
    def setUp(self):
        self.flags(api_paste_config=os.path.join(os.path.dirname(__file__), "paste.ini"), group="wsgi")
        self.flags(device_detach_attempts=2, device_detach_timeout=1, group="libvirt")
        super().setUp()
        self.useFixture(fixtures.MonkeyPatch("nova.tests.fixtures.libvirt.Domain", hypervisor.Domain))
        sys_admin_pctxt.set_client_mode(False)
        self.addCleanup(sys_admin_pctxt.set_client_mode, True)
        self.useFixture(fixtures.MonkeyPatch("nova.privsep.libvirt.processutils", Commands))
        for method in ("plug_ib_hostdev", "unplug_ib_hostdev"):
            self.know_host(f"nova.virt.libvirt.vif.LibvirtGenericVIFDriver.{method}")
        self.useFixture(fixtures.MonkeyPatch("nova.tests.functional.libvirt.base.LibvirtNeutronFixture.network_4_port_1", PORT))
        CLOUD.reset()
        CLOUD.computes = self.computes
        self.addCleanup(self.clear)
        self.addOnException(lambda why: print("# " + "\n# ".join(CLOUD.log)))

    @staticmethod
    def clear():
        """What a failed case has left is not the next one's."""
        for host in CLOUD.hosts.values():
            if not host.process:
                host.start()
                host.until_ready()
            for domain in list(host.domains):
                host.hide(domain)
            for mac in (MAC, SECOND_MAC):
                host.ebrctl("del-port", FABRIC, mac)

    def know_host(self, name):
        """Of the VIF driver that calls ebrctl."""
        real = getattr(sriov.nova.virt.libvirt.vif.LibvirtGenericVIFDriver, name.rpartition(".")[2])

        def call(driver, instance, vif):
            CLOUD.local.host = driver.host.get_connection().hostname
            return real(driver, instance, vif)
        self.useFixture(fixtures.MonkeyPatch(name, call))

    # ---- what the scenarios have in common ----

    def boot(self, *names, ports=(PORT,)):
        for name in names:
            self.start_compute(hostname=name, pci_info=fake.HostPCIDevicesInfo(num_pfs=1, num_vfs=hosts.VFS))
        self.ports = [self.neutron.create_port({"port": port})["port"] for port in ports]
        server = self._create_server(networks=[{"port": port["id"]} for port in self.ports], host=names[0])
        self.has_identity(names[0])
        return server

    def port_guids(self):
        return sorted(hosts.guid_of(port["mac_address"]) for port in self.ports)

    def has_identity(self, name):
        """The ports' GUIDs are on the VFs that the guest has there, and nowhere else."""
        host = CLOUD.hosts[name]

        def found():
            vfs = [bdf for vfs in host.domains.values() for bdf in vfs]
            others = [h.guids() for h in CLOUD.hosts.values() if h is not host]
            have = host.guids()
            return sorted(have) == sorted(vfs) and sorted(have.values()) == self.port_guids() and not any(others)
        hosts.until(found, lambda: "\n".join(CLOUD.log) + f"\n{host.guids()} {host.domains}\n" + host.log_text()[-4000:])
        self.invariants()

    def nothing_left(self, untold=None):
        """Every VF is clean, and no agent claims one, but one that Nova has told nothing of the end."""
        for host in CLOUD.hosts.values():
            claims = self.port_guids() if host.name == untold else []
            hosts.until(lambda host=host, claims=claims: not host.guids() and host.claims() == claims,
                        lambda host=host: "\n".join(CLOUD.log) + f"\n{host.name}: {host.guids()} {host.claims()}\n{host.log_text()[-4000:]}")
        self.invariants()

    def invariants(self):
        """What holds at rest, by the hardware, by libvirt and by each agent's own word."""
        for host in (h for h in CLOUD.hosts.values() if h.process):
            used = {bdf for vfs in host.domains.values() for bdf in vfs}
            self.assertLessEqual(set(host.guids()), used, "a VF without a guest shows an identity")
            self.assertEqual(host.pkeys(), {}, "the port has no partition")
            states = {vf["bdf"]: vf["state"] for vf in host.get("/v1/vfs")[1]["vfs"]}
            for bdf, state in states.items():
                self.assertIn(state, ("attached",) if bdf in used else ("free", "claimed"), f"{host.name} {bdf}")
            self.assertEqual(host.get("/v1/node")[1]["loop"]["blocking_calls"], 0)

    def delete(self, server, untold=None):
        self._delete_server(server)
        self.nothing_left(untold)

    def no_identity(self):
        for host in CLOUD.hosts.values():
            hosts.until(lambda host=host: not host.guids(), lambda: "\n".join(CLOUD.log))
        self.invariants()

    def calls(self, name):
        """What ebrctl was called for at a host."""
        return [step.split()[1] for step in CLOUD.log if step.split()[0] == name and step.split()[1] in ("add", "del")]

    def writes_of_identity(self, name, before):
        time.sleep(0.5)
        return [line for line in CLOUD.hosts[name].writes()[len(before):] if "admin_guid" in line or "pkey_idx" in line]

    def power_off(self, name):
        self.computes[name].stop()
        self.api.put_service(self.computes[name].service_ref.uuid, {"forced_down": True})
        CLOUD.hosts[name].power_off()
        for domain in self.computes[name].driver._host.get_connection()._vms.values():
            domain._state, domain.live_vfs = fake.VIR_DOMAIN_SHUTOFF, []

    def power_on(self, name):
        CLOUD.hosts[name].start()
        CLOUD.hosts[name].until_ready()
        self.restart_compute_service(name)
        self.api.put_service(self.computes[name].service_ref.uuid, {"forced_down": False})
        CLOUD.computes = self.computes

    # ---- the scenarios ----

    def test_boot_and_delete(self):
        server = self.boot(A)
        self.delete(server)

    def test_live_migration(self):
        server = self.boot(A, B)
        self._live_migrate(server, "completed")
        self.has_identity(B)
        self.assertEqual((self.calls(A), self.calls(B)), (["add", "del", "del"], ["add", "add"]))
        self.delete(server)

    def test_copy_fails(self):
        """B is never told; the next try takes another VF there, or the same."""
        server = self.boot(A, B)
        CLOUD.copy_fails = True
        self._live_migrate(server, "failed")
        self.has_identity(A)
        CLOUD.copy_fails = False
        self._live_migrate(server, "completed")
        self.has_identity(B)
        self.delete(server)

    def test_unplug_times_out(self):
        """Nova deletes the port under its guest, adds it, cannot attach what is attached, and deletes it again."""
        server = self.boot(A, B)
        before = CLOUD.hosts[A].writes()
        self.fail_to_unplug(server, CLOUD.hosts[A].guids())
        self.assertEqual(self.calls(A), ["add", "del", "add", "del"])
        self.assertEqual(self.writes_of_identity(A, before), [])
        self.begin_anew(server)

    def test_one_of_two_unplugs_times_out(self):
        """The other VF comes back; of the one that has not left nothing is written, though Nova deletes its port as well."""
        server = self.boot(A, B, ports=(PORT, SECOND_PORT))
        host = CLOUD.hosts[A]
        before, guids = host.writes(), host.guids()
        kept, = [bdf for bdf, guid in guids.items() if guid == hosts.guid_of(SECOND_MAC)]
        self.fail_to_unplug(server, {kept})
        self.assertIn(f"{A} device left", "\n".join(CLOUD.log))
        self.assertEqual(host.guids(), guids)
        self.assertEqual([line for line in self.writes_of_identity(A, before) if kept in line or f"admin_guids/{kept[-1]}" in line], [])
        self.begin_anew(server)

    def fail_to_unplug(self, server, vfs):
        """A live migration."""
        CLOUD.stubborn = set(vfs)
        self.api.post_server_action(server["id"], {"os-migrateLive": {"host": None, "block_migration": "auto"}})
        self._wait_for_migration_status(server, ["error"])
        self.has_identity(A)
        CLOUD.stubborn = set()

    def begin_anew(self, server):
        """B, where it has not come, has been told nothing."""
        self.api.post_server_action(server["id"], {"os-resetState": {"state": "active"}})
        server = self._reboot_server(server, hard=True)
        self.has_identity(A)
        self.delete(server, untold=B)

    def test_compute_restarts(self):
        server = self.boot(A)
        before = CLOUD.hosts[A].writes()
        self.restart_compute_service(A)
        CLOUD.computes = self.computes
        self.assertIn("add", self.calls(A))
        self.has_identity(A)
        self.assertEqual(self.writes_of_identity(A, before), [])
        self.delete(server)

    def test_suspend_and_resume(self):
        server = self.boot(A)
        self._suspend_server(server)
        self.no_identity()
        self._resume_server(server)
        self.has_identity(A)
        self.delete(server)

    def test_stop_and_start(self):
        server = self.boot(A)
        self._stop_server(server)
        self.no_identity()
        self._start_server(server)
        self.has_identity(A)
        self.delete(server)

    def test_hard_reboot(self):
        server = self.boot(A)
        self._reboot_server(server, hard=True)
        self.has_identity(A)
        self.delete(server)

    def test_cold_migration(self):
        server = self.boot(A, B)
        self.useFixture(fixtures.MonkeyPatch("nova.virt.libvirt.driver.LibvirtDriver.migrate_disk_and_power_off", leave_disks))
        server = self._migrate_server(server)
        self.has_identity(B)
        server = self._confirm_resize(server)
        self.has_identity(B)
        self.delete(server)

    def test_cold_migration_is_reverted(self):
        server = self.boot(A, B)
        self.useFixture(fixtures.MonkeyPatch("nova.virt.libvirt.driver.LibvirtDriver.migrate_disk_and_power_off", leave_disks))
        server = self._migrate_server(server)
        self.has_identity(B)
        server = self._revert_resize(server)
        self.has_identity(A)
        self.delete(server)

    def test_evacuate(self):
        """A loses its power. When it comes back, its nova-compute deletes the port that lives at B."""
        server = self.boot(A, B)
        self.power_off(A)
        getattr(self, "admin_api", self.api).microversion = "2.93"      # from 2.95 on it would be left stopped
        server = self._evacuate_server(server, expected_host=B, expected_state="ACTIVE")
        self.has_identity(B)
        self.power_on(A)
        self.has_identity(B)
        self.delete(server)

    def test_interface_detach_and_attach(self):
        server = self.boot(A)
        self._detach_interface(server, self.ports[0]["id"])
        self.nothing_left()
        self._attach_interface(server, self.ports[0]["id"])
        self.has_identity(A)
        self.delete(server)


# The cases of Nova's own that the class inherits are Nova's business.
for case in dir(sriov.SRIOVServersTest):
    if case.startswith("test_"):
        setattr(Nova, case, None)


def load_tests(loader, tests, pattern):
    del tests, pattern
    names = [case for case in loader.getTestCaseNames(Nova) if vars(Nova).get(case)]
    return unittest.TestSuite(Nova(case) for case in names if len(sys.argv) == 1 or any(word in case for word in sys.argv[1:]))


tap.main(__name__)
