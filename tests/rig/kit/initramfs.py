# SPDX-License-Identifier: LGPL-2.1-or-later
"""Busybox initramfs: of the hypervisors' boot, and of the nested guests with their kernel."""

import lzma
import os
import pathlib
import re
import shutil
import tempfile

from kit import modules
from kit.base import CACHE, RIG, RigError, run

GUEST_MODULES = ["ib_core", "ib_uverbs", "mlx4_core", "mlx4_ib", "mlx5_core"]
# Of guests with a QEMU guest agent, besides.
AGENT_MODULES = ["virtio_pci", "virtio_console"]
AGENT = "/usr/sbin/qemu-ga"
XZ = b"\xfd7zXZ\x00"


def add_program(top, program):
    """A program of this machine, in bin/, and its shared libraries where they are here."""
    shutil.copy(program, top / "bin")
    for library in re.findall(r"(/\S+) \(0x", run(["ldd", program])):
        target = top / library.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(library, target)


def add_module(top, number, path):
    """A module under its number in loading order, unpacked: busybox's insmod takes no other."""
    name, packed = os.path.basename(path), pathlib.Path(path).read_bytes()
    if name.endswith(".xz"):
        name, packed = name.removesuffix(".xz"), lzma.decompress(packed)
    (top / f"mods/{number:02d}-{name}").write_bytes(packed)


def make_initramfs(stage, kernel, names, init, out, program=None):
    """With these modules of the stage (and what they need), and perhaps one program more."""
    with tempfile.TemporaryDirectory(dir=CACHE) as name:
        top = pathlib.Path(name)
        for d in ("bin", "mods", "new", "proc", "sys", "dev", "tmp"):
            (top / d).mkdir()
        shutil.copy("/bin/busybox", top / "bin/busybox")
        if program:
            add_program(top, program)
        (top / "bin/sh").symlink_to("busybox")
        files = []
        for m in names:
            for line in run(["modprobe", "-d", stage, "-S", kernel, "--show-depends", m]).splitlines():
                if line.startswith("insmod ") and line.split()[1] not in files:
                    files.append(line.split()[1])
        for n, f in enumerate(files):
            add_module(top, n, f)
        shutil.copy(init, top / "init")
        run(["sh", "-c", 'find . | cpio -o -H newc --quiet -R 0:0 > "$1"', "sh", out], cwd=top)


def unpacked_kernel(root, kernel):
    """The ELF kernel in the bzImage: an emulated processor needs two seconds to unpack it at each boot of a guest."""
    packed = (root / f"boot/vmlinuz-{kernel}").read_bytes()
    elf = lzma.LZMADecompressor().decompress(packed[packed.index(XZ):])
    if not elf.startswith(b"\x7fELF"):
        raise RigError(f"no ELF kernel in vmlinuz-{kernel}")
    return elf


def make_guests(root, suite, images):
    """Kernel and initramfs of guests with and without an agent, from this release's root."""
    kernel = modules.kernel_of(suite)
    (images / "guest.vmlinuz").write_bytes(unpacked_kernel(root, kernel))
    with tempfile.TemporaryDirectory(dir=CACHE) as top:
        stage = pathlib.Path(top)
        (stage / "lib").mkdir()
        run(["cp", "-al", root / "lib/modules", stage / "lib"])
        modules.install(stage, suite)
        make_initramfs(stage, kernel, GUEST_MODULES, RIG / "guest/init", images / "guest.initrd")
        make_initramfs(stage, kernel, AGENT_MODULES + GUEST_MODULES, RIG / "guest/init", images / "guest-agent.initrd", AGENT)
