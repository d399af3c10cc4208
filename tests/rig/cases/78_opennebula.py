# SPDX-License-Identifier: LGPL-2.1-or-later
"""OpenNebula's sequences on real hosts, through the drivers' scripts only."""

import contextlib
import shlex

from kit import opennebula
from kit.base import wait_for
from kit.case import VFS, assert_scrubbed, case, check, equal, free_vfs
from kit.migration import FULL_MIB_S, SLOW_MIB_S
from kit.opennebula import Vm

CONF = "/etc/vhcad/vhcad.conf.d/patience.conf"
KILL = "systemctl is-active -q vhcad && systemctl kill -s KILL vhcad"
IMPATIENT = b"[libvirt]\ndetach_timeout = 10s\ndetach_retry = 2s\n"


def succeeds(result):
    equal(result[0], 0, f"exit code of a script; {result[1]}")


@case
def a_vm_lives(rig):
    """Deployed, a NIC attached, the first one detached, migrated and back, attached again, saved and restored on the other host, cancelled:
    the same addresses all the time, and no NIC that was detached."""
    opennebula.install(rig)
    vm = Vm(rig, rig.hva).deploy()
    succeeds(vm.attach_nic(2))
    vm.assert_has_ports()
    succeeds(vm.detach_nic(1))
    for there in (rig.hvb, rig.hva):
        here = vm.host
        succeeds(vm.migrate(there))
        vm.assert_has_ports()
        vm.assert_nothing_at(here)
    succeeds(vm.attach_nic(1))
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


@contextlib.contextmanager
def beside(host, script):
    """A script that the host runs meanwhile. It ends with that, else it waited for the next case's copy."""
    host.sh(f"systemd-run -q --collect --unit=beside sh -c {shlex.quote(script)}")
    try:
        yield
    finally:
        host.sh("systemctl -q stop beside", check=False)


def fail_to_migrate(vm, there, first="true"):
    """The copy is broken off when something else was done in its midst; the VM has its InfiniBand where it was."""
    here = vm.host
    here.virsh("migrate-setspeed", "one-42", str(SLOW_MIB_S))
    with beside(here, "until virsh domjobinfo one-42 | grep -q 'Memory processed'; do sleep 1; done\n"
                      f"{first}\nvirsh domjobabort one-42"):
        code, said = vm.migrate(there)
    check(code != 0, f"the migration went well: {said}")
    here.virsh("migrate-setspeed", "one-42", str(FULL_MIB_S))
    vm.assert_has_ports()
    vm.assert_nothing_at(there)


def shut_down(vm):
    vm.guest.run("(sleep 3; poweroff -f) >/dev/null 2>&1 &")
    vm.end("shutdown")


@case
def a_migration_fails(rig):
    """The copy is broken off: the script fails, no other one is called, and the VM has its InfiniBand where it was."""
    opennebula.install(rig)
    vm = Vm(rig, rig.hva, agent=True).deploy()
    fail_to_migrate(vm, rig.hvb)
    shut_down(vm)
    equal(free_vfs(rig.hva), VFS, "free VFs right behind clean")


@contextlib.contextmanager
def impatient(host):
    """An agent that asks a guest for ten seconds only."""
    host.put(CONF, IMPATIENT)
    try:
        host.sh("systemctl reload vhcad", timeout=90)
        yield
    finally:
        host.sh(f"rm {CONF} && systemctl reload vhcad", timeout=90)


@case
def a_guest_ignores_the_unplug(rig):
    """The migration and the detach are refused in time, the VM keeps what it has; once it listens, both are done."""
    opennebula.install(rig)
    with impatient(rig.hva):
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


def kills_soon():
    return f"(sleep 1; {KILL}) >/dev/null 2>&1 & "


@case(kills=("vhcad",))
def agents_are_killed_in_each_action(rig):
    """A second after each script has begun its host's agent is killed: what fails leaves the VM with its InfiniBand, and goes well the next time."""
    opennebula.install(rig)
    vm = Vm(rig, rig.hva)
    vm.disturb = kills_soon
    vm.deploy()
    for action in (lambda: vm.attach_nic(2), lambda: vm.detach_nic(2), lambda: vm.migrate(rig.hvb), vm.save):
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


@case(kills=("vhcad",))
def agents_are_killed_where_it_fails(rig):
    """In the midst of a copy that is broken off, while a guest ignores the unplug, and while one shuts down: nothing is lost, and nothing stays."""
    opennebula.install(rig)
    with impatient(rig.hva):
        vm = Vm(rig, rig.hva, agent=True).deploy()
        fail_to_migrate(vm, rig.hvb, f"{KILL}; sleep 2")
        vm.disturb = kills_soon
        vm.guest.ignore_unplugs()
        for refused in (lambda: vm.migrate(rig.hvb), lambda: vm.detach_nic(1)):
            code, said = refused()
            check(code != 0, f"a deaf guest let go: {said}")
            vm.assert_has_ports()
        vm.guest.listen()
        shut_down(vm)
        wait_for(lambda: free_vfs(rig.hva) == VFS, 60, "hva: all VFs free", 0.5)
