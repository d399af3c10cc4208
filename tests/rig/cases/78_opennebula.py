# SPDX-License-Identifier: LGPL-2.1-or-later
"""OpenNebula's sequences on real hosts, through the drivers' scripts only."""

from kit import opennebula
from kit.base import wait_for
from kit.case import VFS, assert_scrubbed, case, check, equal, free_vfs
from kit.migration import FULL_MIB_S, SLOW_MIB_S
from kit.opennebula import Vm

CONF = "/etc/vhcad/vhcad.conf.d/patience.conf"
IMPATIENT = b"[libvirt]\ndetach_timeout = 10s\ndetach_retry = 2s\n"


def succeeds(result):
    equal(result[0], 0, f"exit code of a script; {result[1]}")


@case
def a_vm_lives(rig):
    """Deployed, a NIC attached, the first one detached, migrated and back, attached again, saved and restored on the other host, cancelled:
    the same addresses all the time, and no NIC that was detached."""
    opennebula.install(rig)
    vm = Vm(rig, rig.hva).deploy()
    vm.attach_nic(2)
    vm.assert_has_ports()
    succeeds(vm.detach_nic(1))
    for there in (rig.hvb, rig.hva):
        here = vm.host
        succeeds(vm.migrate(there))
        vm.assert_has_ports()
        vm.assert_nothing_at(here)
    vm.attach_nic(1)
    vm.assert_has_ports()
    vm.assert_asks_for_nics()
    succeeds(vm.save())
    vm.assert_nothing_at(rig.hva)
    assert_scrubbed(rig.hva, *VFS)
    vm.carry_checkpoint(rig.hvb)
    vm.restore(rig.hvb)
    vm.assert_has_ports()
    vm.end("cancel")
    equal(free_vfs(rig.hvb), VFS, "free VFs right behind clean")


@case
def a_migration_fails(rig):
    """The copy is broken off: the script fails, no other one is called, and the VM has its InfiniBand where it was."""
    opennebula.install(rig)
    vm = Vm(rig, rig.hva, agent=True).deploy()
    vm.host.virsh("migrate-setspeed", "one-42", str(SLOW_MIB_S))
    rig.hva.sh("systemd-run -q --collect --unit=abort sh -c "
               "'until virsh domjobinfo one-42 | grep -q \"Memory processed\"; do sleep 1; done; virsh domjobabort one-42'")
    try:
        code, said = vm.migrate(rig.hvb)
    finally:
        rig.hva.sh("systemctl -q stop abort", check=False)  # else it waits for the next case's copy
    check(code != 0, f"the migration went well: {said}")
    vm.host.virsh("migrate-setspeed", "one-42", str(FULL_MIB_S))
    vm.assert_has_ports()
    vm.assert_nothing_at(rig.hvb)
    vm.guest.run("poweroff -f")
    vm.end("shutdown")
    equal(free_vfs(rig.hva), VFS, "free VFs right behind clean")


@case
def a_guest_ignores_the_unplug(rig):
    """The migration and the detach are refused in time, the VM keeps what it has; once it listens, both are done."""
    opennebula.install(rig)
    rig.hva.put(CONF, IMPATIENT)
    try:
        rig.hva.sh("systemctl reload vhcad", timeout=90)
        vm = Vm(rig, rig.hva, agent=True).deploy()
        vm.guest.ignore_unplugs()
        for refused in (lambda: vm.migrate(rig.hvb), vm.save, lambda: vm.detach_nic(1)):
            code, said = refused()
            check(code != 0 and "vhca" in said, f"a script says {code}: {said}")
            vm.assert_has_ports()
        vm.guest.listen()
        succeeds(vm.migrate(rig.hvb))
        vm.assert_has_ports()
        vm.end("cancel")
    finally:
        rig.hva.sh(f"rm {CONF} && systemctl reload vhcad", timeout=90)


@case(kills=("vhcad",))
def agents_are_killed_in_each_action(rig):
    """A second after each script has begun its host's agent is killed: what fails leaves the VM with its InfiniBand, and goes well the next time."""
    opennebula.install(rig)
    vm = Vm(rig, rig.hva)
    vm.disturb = lambda: "(sleep 1; systemctl is-active -q vhcad && systemctl kill -s KILL vhcad) >/dev/null 2>&1 & "
    vm.deploy()
    vm.attach_nic(2)
    vm.assert_has_ports()
    for action in (lambda: vm.detach_nic(2), lambda: vm.migrate(rig.hvb), vm.save):
        code, _ = action()
        if code:
            vm.assert_has_ports()
            disturb, vm.disturb = vm.disturb, lambda: ""
            succeeds(action())
            vm.disturb = disturb
        if vm.guest.state() == "running":
            vm.assert_has_ports()
    vm.restore(rig.hvb)
    vm.assert_has_ports()
    vm.end("cancel")
    wait_for(lambda: free_vfs(rig.hvb) == VFS, 60, "hvb: all VFs free", 0.5)
