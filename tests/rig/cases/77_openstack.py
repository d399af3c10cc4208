# SPDX-License-Identifier: LGPL-2.1-or-later
"""OpenStack's sequences on real hosts, through ebrctl and libvirt only. Nova's own code calls the same in tests/clouds, on simulated ones."""

from kit.base import wait_for
from kit.case import case, check, equal
from kit.migration import FULL_MIB_S, SLOW_MIB_S
from kit.nova import DEVICE, Instance, reserved_vfs


@case
def an_instance_lives(rig):
    """Booted, plugged once more, its interface detached and attached, suspended and resumed, rebooted hard, deleted: one address all the time."""
    with reserved_vfs(rig):
        instance = Instance(rig, rig.hva).boot()
        instance.plug(rig.hva)
        instance.assert_has_port(rig.hva)
        interface_leaves_and_comes(instance)
        suspend_and_resume(instance)
        reboot_hard(instance)
        delete(instance)


def interface_leaves_and_comes(instance):
    host = instance.host
    instance.leave(host)
    instance.assert_released(host)
    instance.plug(host)
    instance.set_partitions(host)
    instance.attach(host)


def suspend_and_resume(instance):
    host, name = instance.host, instance.guest.name
    instance.detach(host, "--live")
    host.virsh("managedsave", name, timeout=240)
    instance.assert_reserved(host)
    instance.plug(host)
    host.virsh("start", name, timeout=240)
    instance.attach(host, "--live")


def reboot_hard(instance):
    host = instance.host
    instance.guest.destroy()
    instance.assert_reserved(host)
    instance.unplug(host)
    instance.plug(host)
    instance.set_partitions(host)
    instance.start()
    instance.assert_has_port(host)


def delete(instance):
    instance.guest.destroy()
    instance.guest.undefine()
    instance.unplug(instance.host)
    instance.assert_released(instance.host)


@case
def an_instance_migrates(rig):
    """Live to the other host and back; a copy that fails brings the port back, and the other host, which is told nothing, shows none of it."""
    with reserved_vfs(rig):
        instance = Instance(rig, rig.hva).boot()
        instance.migrate(rig.hvb)
        fail_to_migrate(instance, rig.hva)
        instance.migrate(rig.hva)
        delete(instance)


def fail_to_migrate(instance, there):
    here, name = instance.host, instance.guest.name
    instance.plug(there)
    instance.leave(here)
    here.virsh("migrate-setspeed", name, str(SLOW_MIB_S))
    here.sh(f"systemd-run -q --collect --unit=nova virsh {' '.join(instance.copy())}")
    wait_for(lambda: "Memory processed" in here.virsh("domjobinfo", name, check=False), 150, "the copy to have begun", 0.5)
    instance.disturb(here)
    here.virsh("domjobabort", name)
    wait_for(lambda: not here.is_active("nova"), 60, "the copy to have failed", 0.5)
    here.virsh("migrate-setspeed", name, str(FULL_MIB_S))
    equal(instance.guest.state(), "running", "the instance behind a copy that failed")
    instance.plug(here)
    instance.set_partitions(here)
    instance.attach(here)
    instance.assert_reserved(there)


def ignore_the_unplug(instance, there):
    host, guest = instance.host, instance.guest
    guest.ignore_unplugs()
    instance.plug(there)
    instance.disturb(host)
    instance.virsh_device(host, "detach-device", "--live")
    instance.unplug(host)
    equal(list(guest.live_hostdevs()), [instance.vf], "host devices of a guest that ignores the unplug")
    instance.assert_has_port(host)
    instance.plug(host)
    said = instance.virsh_device(host, "attach-device", "--live", check=False)
    check("error" in said, f"libvirt attached the VF twice: {said}")
    instance.assert_has_port(host)
    instance.assert_reserved(there)
    instance.unplug(there)
    instance.assert_released(there)
    guest.listen()
    instance.detach(host)
    instance.assert_reserved(host)


@case
def a_guest_ignores_the_unplug(rig):
    """Nova gives up, deletes the port and adds it again under the guest, which has its InfiniBand all the time; asked once more it lets go."""
    with reserved_vfs(rig):
        instance = Instance(rig, rig.hva, agent=True).boot()
        ignore_the_unplug(instance, rig.hvb)
        delete(instance)


def evacuate(instance, there):
    """Its host is silent, and told later what Nova has for it."""
    silent, guest = instance.host, instance.guest
    silent.sh("systemctl stop vhcad")
    try:
        guest.destroy()
        guest.undefine()
        instance.host = guest.host = there
        instance.plug(there)
        instance.set_partitions(there)
        there.virsh("define", instance.with_vf)
        code, said = there.vm.virsh("start", guest.name, timeout=120)
        check(code != 0, "the instance began while the subnet manager knew its address elsewhere")
        # The agent tries again every now and then; meanwhile explain tells of the try.
        explain = f"vhcactl explain {guest.uuid}; vhcactl explain {instance.vf}"
        wait_for(lambda: "takeover" in there.sh(explain, check=False), 60, f"explain to name a way out; libvirt says {said}", 0.5)
        there.sh(f"vhcactl takeover {guest.uuid} 'the rig stopped the agent of {silent.name}'")
        instance.disturb(there)
        # The agent asks the SM once a second; the hook holds a start for no longer.
        wait_for(lambda: not there.vm.virsh("start", guest.name, timeout=120)[0], 60, "the instance to begin", 1)
    finally:
        silent.sh("systemctl start vhcad", timeout=90)
    instance.assert_reserved(silent)
    guest.wait_ready()
    instance.assert_has_port(there)
    instance.unplug(silent)
    instance.assert_released(silent)
    instance.assert_has_port(there)


@case(kills=("hvb vhcad",))
def an_instance_is_evacuated(rig):
    """A host that is silent: its instance begins elsewhere once somebody vouches, and what Nova tells the old host when it is back harms nobody."""
    with reserved_vfs(rig):
        instance = Instance(rig, rig.hvb).boot()
        evacuate(instance, rig.hva)
        delete(instance)


@case
def an_interface_gets_its_name(rig):
    """udev names the adapter's IPoIB interface, which add-port prints, behind the agent's start: it is seen then, not at the next minute's scan."""
    host, instance = rig.hva, Instance(rig, rig.hva)
    with reserved_vfs(rig):
        for before, name in ((DEVICE, "late0"), ("late0", DEVICE)):
            host.sh(f"ip link set {before} down && ip link set {before} name {name}")
            wait_for(lambda name=name: instance.add_port(host, instance.vf) == name, 15, f"ebrctl to print {name}", 0.5)
        instance.unplug(host)
        instance.assert_released(host)


def die(instance):
    """Before each thing that Nova does on a host the agent there is killed, and nova-compute, which begins with add-port for each
    instance that Nova has there."""
    def disturb(host):
        host.sh("systemctl start vhcad && systemctl kill -s KILL vhcad", timeout=90)
        if host is instance.host:
            equal(instance.add_port(host, instance.vf), DEVICE, "what ebrctl add-port prints when nova-compute begins")
    instance.tries = 3
    instance.disturb = disturb


@case(kills=("vhcad",))
def agents_are_killed_at_each_step(rig):
    """The agent of a host and its nova-compute are killed before each thing that Nova does there, from boot to delete."""
    with reserved_vfs(rig):
        instance = Instance(rig, rig.hva)
        die(instance)
        instance.boot()
        interface_leaves_and_comes(instance)
        suspend_and_resume(instance)
        reboot_hard(instance)
        instance.guest.wait_ready()
        instance.migrate(rig.hvb)
        delete(instance)


@case(kills=("vhcad",))
def agents_are_killed_where_it_fails(rig):
    """The same where a copy is broken off, a guest ignores the unplug, and a silent host's instance is evacuated."""
    with reserved_vfs(rig):
        instance = Instance(rig, rig.hvb, agent=True)
        die(instance)
        instance.boot()
        fail_to_migrate(instance, rig.hva)
        ignore_the_unplug(instance, rig.hva)
        instance.plug(rig.hvb)
        instance.attach(rig.hvb)
        evacuate(instance, rig.hva)
        delete(instance)
