# SPDX-License-Identifier: LGPL-2.1-or-later
"""Both hypervisors together: up, down, install, reset."""

import concurrent.futures
import fcntl
import hashlib
import json
import os
import socket
import subprocess
import tempfile
import time

from kit import door, modules, tls
from kit.base import CACHE, ROOT, RigError, run, say, wait_for
from kit.host import PF, VFS, Host
from kit.image import Image
from kit.vm import Vm, free_ports

NAMES = ("hva", "hvb")
# VHCA_RIG_SUITE=trixie makes hvb a Debian 13, so that guests migrate between the two.
SUITES = {"hva": modules.HERE, "hvb": os.environ.get("VHCA_RIG_SUITE", modules.HERE)}
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
    vm.start(image, free_ports(socket.SOCK_DGRAM, 2))
    try:
        vm.wait()
        code, tar = vm.exchange(WARM, timeout=120)
    finally:
        vm.stop()
    if code:
        raise RigError(f"first boot: {tar[-1000:].decode(errors='replace')}")
    return tar


def make_images():
    """The image of each, {name: Image}, made if it is not there."""
    images = {name: Image(suite) for name, suite in SUITES.items()}
    for image in images.values():
        image.ensure(first_boot)
    return images


def build():
    """Make sure that all images exist."""
    if not any(Vm(n).pid() for n in NAMES):
        make_images()


def up():
    """Start both and wait until they are usable. Those already running stay as they are."""
    running = [n for n in NAMES if Vm(n).pid()]
    if len(running) == len(NAMES):
        stale = [n for n in NAMES if Vm(n).info().get("image") != Image(SUITES[n]).key]
        if stale:
            say(f"  note: {', '.join(stale)} runs an older image; tests/rig/rig down, then up")
    else:
        down()
        images = make_images()
        ports = free_ports(socket.SOCK_DGRAM, 2)
        Vm("hva").start(images["hva"], ports)
        Vm("hvb").start(images["hvb"], ports[::-1])
    started = time.monotonic()
    states = both(lambda n: Vm(n).wait())
    say(f"  hypervisors up in {time.monotonic() - started:.1f} s ({', '.join(states.values())})")


def alone(vfs=4):
    """hva, started anew, without its peer, agent and SM, for a benchmark. vfs: how many its adapter can have."""
    image = Image(SUITES["hva"])
    image.ensure(first_boot)
    down()
    vm = Vm("hva")
    vm.start(image, free_ports(socket.SOCK_DGRAM, 2), vfs=vfs)
    vm.wait()
    return Host("hva")


def down():
    for name in NAMES:
        Vm(name).stop()


# ---- the project in them ----

PRIVATE = {"hva": "192.168.77.1", "hvb": "192.168.77.2"}  # addresses of the private link
SM_HOST = "hva"
SM_ADDRESS = f"{PRIVATE[SM_HOST]}:8515"
SM_CURL = f"{tls.CURL} https://{SM_ADDRESS}"  # and a path
AGENT_CONF = f"""# The rig's own settings; everything else is the default.
[hca default]
manage = yes
vfs = {len(VFS)}

[sm]
backend = vhcasm
url = https://{SM_ADDRESS}

[api]
peer_listen = %(own_address)s:8514

[tls]
certificate = {tls.OWN}
key = {tls.KEY}
ca = {tls.CA}

[peer %(other)s]
agent = https://%(other_address)s:8514
libvirt = qemu+tcp://%(other)s/system
migration = tcp://%(other_address)s
certificate = cert:%(other)s
"""
PLUGIN_CONF = f"""[http]
listen = {SM_ADDRESS}
tls_certificate = {tls.OWN}
tls_key = {tls.KEY}
tls_ca = {tls.CA}
[partitions]
inherit = 0
"""   # a reset wipes the plugin's state: keys of the story before must go at once
OPENSM_CONF = """guid 0x0
log_file /var/log/opensm.log
sweep_interval 5
"""
OPENSM_PLUGIN = """event_plugin_name vhcasm
event_plugin_options /etc/vhcad/vhcasm.conf
partition_config_file /var/lib/vhcasm/partitions.conf
"""
UNPACK = """set -e
systemctl stop vhcad opensm-vhcad 2>/dev/null || true
tar -x --touch --no-same-owner --no-overwrite-dir --keep-directory-symlink -C / -f -
systemd-tmpfiles --create 2>/dev/null || true
udevadm control --reload
systemctl daemon-reload
systemctl enable --quiet vhcad
systemctl reload libvirtd
"""
# Everything that a case may have left behind goes away with the adapter's driver and the agent's state, except what the
# PCI device itself keeps (its driver_override, and the autoprobe that the agent turns off before it enables mlx5's VFs), and
# what udev loads only once: ib_ipoib, which a case with MLNX_OFED's files takes away.
RESET = f"""set -e
systemctl stop vhcad opensm-vhcad
for d in $(virsh -q list --name); do virsh -q destroy $d; done
for d in $(virsh -q list --all --name); do virsh -q undefine --managed-save $d; done
rm -rf /var/lib/vhcad/* /run/vhcad/* /var/lib/vhcasm/* /var/cache/opensm/* /var/log/opensm.log
rm -f /var/log/libvirt/qemu/*
systemctl stop 'rig-cable@*'
echo > /sys/bus/pci/devices/{PF}/driver_override
echo 1 > /sys/bus/pci/devices/{PF}/sriov_drivers_autoprobe
modprobe -r mlx5_core
modprobe -r mlx4_ib
modprobe -r mlx4_core
modprobe -a ib_ipoib mlx4_ib
for i in $(seq 100); do [ -e /sys/bus/pci/devices/{PF}/virtfn3 -a -e /sys/bus/pci/devices/{PF}/net ] && break; sleep 0.1; done
"""


def bindings():
    """The plugin's own table, {vGUID: binding}; RigError if it does not answer."""
    vm = Vm(SM_HOST)
    target = "tcp " + SM_ADDRESS.replace(":", " ")
    status, text = door.ask(vm, target, "/v1/bindings", context=door.own_certificate(vm.name, vm.boot_id()))
    if status != 200:
        raise RigError(f"the plugin's bindings: {status} {text}")
    return {int(b["vguid"], 16): b for b in json.loads(text)["bindings"]}


def agent_conf(name):
    """The agent's configuration on this hypervisor."""
    (other,) = set(NAMES) - {name}
    return AGENT_CONF % {"own_address": PRIVATE[name], "other": other, "other_address": PRIVATE[other]}


def build_tree(*switches, targets=()):
    """Build these targets (else all) as a distribution would, but with these boolean options on; return where."""
    where = CACHE / "-".join(["build", hashlib.sha256(str(ROOT).encode()).hexdigest()[:8], *switches])
    with open(f"{where}.lock", "w", encoding="ascii") as lock:  # several pairs install the same tree
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (where / "build.ninja").exists():
            run(["meson", "setup", "--prefix=/usr", "--sysconfdir=/etc", "--localstatedir=/var",
                 "-Dopensm-plugin=enabled", *(f"-D{s}=true" for s in switches), where, ROOT])
        run(["ninja", "-C", where, *targets], timeout=1200)
    return where


def build_tool(name):
    """A program of tests/rig that a case runs in a hypervisor; its path."""
    target = f"tests/rig/{name}"
    return build_tree("tests", targets=[target]) / target


def compile_tree():
    """What `meson install` puts in place, as a tar."""
    where = build_tree()
    with tempfile.TemporaryDirectory(dir=CACHE) as stage:
        run(["meson", "install", "-C", where, "--no-rebuild", "--quiet"], env={"DESTDIR": stage})
        return subprocess.run(["tar", "-C", stage, "-c", "--owner=root:0", "--group=root:0", "."],
                              stdout=subprocess.PIPE, timeout=60, check=True).stdout


def install():
    """Build this tree, install it in both hypervisors as a user would, and start it from a clean state."""
    started = time.monotonic()
    tar = compile_tree()
    say(f"  built in {time.monotonic() - started:.1f} s")
    certificates = tls.make(PRIVATE)

    def one(name):
        host = Host(name)
        host.sh(UNPACK, stdin=tar, timeout=120)
        host.sh("tar -x -C / -f -", stdin=certificates[name])
        host.put("/etc/vhcad/vhcad.conf.d/rig.conf", agent_conf(name).encode())
        if name == "hva":
            host.put("/etc/vhcad/vhcasm.conf", PLUGIN_CONF.encode())
            host.put("/etc/opensm/opensm.conf", (OPENSM_CONF + OPENSM_PLUGIN).encode())
    both(one)
    reset()
    say(f"  installed and started in {time.monotonic() - started:.1f} s")


def reset():
    """Both back to a clean state: no domains, fresh adapter, empty stores, SM and agents running."""
    both(lambda n: Host(n).sh(RESET, timeout=120))
    Host("hva").sh("systemctl start opensm-vhcad")
    both(lambda n: Host(n).sh("systemctl start vhcad", timeout=90))
    both(settle)


def settle(name):
    """Wait until the fabric is up and the agent has its VFs."""
    host = Host(name)
    wait_for(lambda: "ACTIVE" in (host.facts().state or ""), 60, f"{name}: port ACTIVE", 0.3)
    wait_for(host.is_ready, 60, f"{name}: vhcad ready", 0.3)
