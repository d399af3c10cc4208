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
    here.virsh("domjobabort", name)
    wait_for(lambda: not here.is_active("nova"), 60, "the copy to have failed", 0.5)
    here.virsh("migrate-setspeed", name, str(FULL_MIB_S))
    equal(instance.guest.state(), "running", "the instance behind a copy that failed")
    instance.plug(here)
    instance.set_partitions(here)
    instance.attach(here)
    instance.assert_reserved(there)


@case
def a_guest_ignores_the_unplug(rig):
    """Nova gives up, deletes the port and adds it again under the guest, which has its InfiniBand all the time; asked once more it lets go."""
    with reserved_vfs(rig):
        instance = Instance(rig, rig.hva, agent=True).boot()
        host, guest = rig.hva, instance.guest
        guest.ignore_unplugs()
        instance.plug(rig.hvb)
        instance.virsh_device(host, "detach-device", "--live")
        instance.unplug(host)
        equal(list(guest.live_hostdevs()), [instance.vf], "host devices of a guest that ignores the unplug")
        instance.assert_has_port(host)
        instance.plug(host)
        said = instance.virsh_device(host, "attach-device", "--live", check=False)
        check("error" in said, f"libvirt attached the VF twice: {said}")
        instance.assert_has_port(host)
        instance.assert_reserved(rig.hvb)
        instance.unplug(rig.hvb)
        instance.assert_released(rig.hvb)
        guest.listen()
        instance.detach(host)
        instance.assert_reserved(host)
        delete(instance)


@case(kills=("hvb vhcad",))
def an_instance_is_evacuated(rig):
    """A host that is silent: its instance begins elsewhere once somebody vouches, and what Nova tells the old host when it is back harms nobody."""
    with reserved_vfs(rig):
        instance = Instance(rig, rig.hvb).boot()
        rig.hvb.sh("systemctl stop vhcad")
        try:
            instance.guest.destroy()
            instance.guest.undefine()
            instance.host = instance.guest.host = rig.hva
            rig.hva.sh(f"ebrctl add-port {instance.mac} {instance.guest.uuid} default ib_hostdev {instance.vf}")
            instance.set_partitions(rig.hva)
            rig.hva.virsh("define", instance.with_vf)
            code, said = rig.hva.vm.virsh("start", instance.guest.name, timeout=120)
            check(code != 0, "the instance began while the subnet manager knew its address at hvb")
            # The agent tries again every now and then; meanwhile explain tells of the try.
            explain = f"vhcactl explain {instance.guest.uuid}; vhcactl explain {instance.vf}"
            wait_for(lambda: "takeover" in rig.hva.sh(explain, check=False), 60, f"explain to name a way out; libvirt says {said}", 0.5)
            rig.hva.sh(f"vhcactl takeover {instance.guest.uuid} 'the rig stopped the agent of hvb'")
            # The agent asks the SM once a second; the hook holds a start for no longer.
            wait_for(lambda: not rig.hva.vm.virsh("start", instance.guest.name, timeout=120)[0], 60, "the instance to begin", 1)
        finally:
            rig.hvb.sh("systemctl start vhcad", timeout=90)
        instance.assert_reserved(rig.hvb)
        instance.guest.wait_ready()
        instance.assert_has_port(rig.hva)
        instance.unplug(rig.hvb)
        instance.assert_released(rig.hvb)
        instance.assert_has_port(rig.hva)
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


@case(kills=("vhcad",))
def agents_are_killed_at_each_step(rig):
    """The agent of a host is killed before each thing that Nova does there."""
    with reserved_vfs(rig):
        instance = Instance(rig, rig.hva)
        instance.tries = 3
        instance.disturb = lambda host: host.sh("systemctl start vhcad && systemctl kill -s KILL vhcad", timeout=90)
        instance.boot()
        interface_leaves_and_comes(instance)
        suspend_and_resume(instance)
        instance.migrate(rig.hvb)
        delete(instance)
