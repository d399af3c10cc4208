# SPDX-License-Identifier: LGPL-2.1-or-later
"""Both hypervisors together: up, down, install, reset."""

import concurrent.futures
import socket
import time

from kit.base import RigError, say
from kit.image import Image
from kit.vm import Vm, free_port

NAMES = ("hva", "hvb")
WARM = """set -e
virsh -c qemu:///system version >/dev/null
tar -C / -cf - var/cache/libvirt/qemu/capabilities var/cache/apparmor"""


def both(function):
    """Run function(name) for both at once; the first error wins."""
    with concurrent.futures.ThreadPoolExecutor(len(NAMES)) as pool:
        return dict(zip(NAMES, pool.map(function, NAMES)))


def first_boot(image):
    """Boot a fresh disk once and bring home what libvirt and AppArmor computed."""
    vm = Vm("hva")
    vm.start(image, (free_port(socket.SOCK_DGRAM), free_port(socket.SOCK_DGRAM)))
    try:
        vm.wait()
        code, tar = vm.exchange(WARM, timeout=120)
    finally:
        vm.stop()
    if code:
        raise RigError(f"first boot: {tar[-1000:].decode(errors='replace')}")
    return tar


def build():
    """Make sure that all images exist."""
    if any(Vm(n).pid() for n in NAMES):
        return
    image = Image()
    image.ensure(first_boot)
    return image


def up():
    """Start both and wait until they are usable. Those already running stay as they are."""
    image = Image()
    running = [n for n in NAMES if Vm(n).pid()]
    if len(running) == len(NAMES):
        stale = [n for n in NAMES if Vm(n).info().get("image") != image.key]
        if stale:
            say(f"  note: {', '.join(stale)} runs an older image; tests/rig/rig down, then up")
    else:
        down()
        image.ensure(first_boot)
        ports = (free_port(socket.SOCK_DGRAM), free_port(socket.SOCK_DGRAM))
        Vm("hva").start(image, ports)
        Vm("hvb").start(image, ports[::-1])
    started = time.monotonic()
    states = both(lambda n: Vm(n).wait())
    say(f"  hypervisors up in {time.monotonic() - started:.1f} s ({', '.join(states.values())})")


def down():
    for name in NAMES:
        Vm(name).stop()
