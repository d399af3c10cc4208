# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the hypervisors boot: root file system, kernel module, disk image, nested guest.

Everything is cached by the content of what shapes it. Three layers, each keyed on the one below:
  root   packages, unpacked by mmdebstrap (about a minute)
  warm   what the first boot computes: libvirt's capability cache, AppArmor's compiled profiles
  image  root + overlay/ + the simulated HCA's module + the nested guest, as an ext4 image (seconds)
"""

import lzma
import os
import pathlib
import re
import shutil
import tempfile
import time

from kit.base import CACHE, RIG, RigError, key_of, run, say

PACKAGES = """systemd systemd-sysv udev dbus kmod iproute2 iputils-ping pciutils procps socat zstd
    apparmor linux-image-{kernel} qemu-system-x86 libvirt-daemon-system libvirt-clients dmidecode
    rdma-core ibverbs-utils ibverbs-providers infiniband-diags opensm sqlite3 curl strace python3
    libcurl3-gnutls libjson-c5 libmicrohttpd12 libsqlite3-0 libxml2 libnl-3-200 libnl-route-3-200
    libinih1 libgnutls30""".split()
# Drivers of hardware that QEMU does not have; they would only make unpacking and depmod slow.
EXCLUDE = [f"/lib/modules/*/kernel/{d}/*" for d in """sound drivers/gpu drivers/media drivers/iio
    drivers/staging drivers/scsi drivers/usb drivers/hid drivers/input drivers/hwmon drivers/mtd
    drivers/net/wireless drivers/net/usb drivers/comedi drivers/isdn drivers/mmc drivers/bluetooth
    drivers/nfc drivers/platform net/bluetooth net/mac80211 net/wireless net/batman-adv fs/btrfs
    fs/ocfs2 fs/xfs fs/gfs2 fs/f2fs fs/jfs fs/reiserfs fs/ubifs fs/ceph fs/smb fs/nfs""".split()]
EXCLUDE += ["/usr/share/man/*", "/usr/share/doc/*", "/usr/share/locale/*", "/usr/share/info/*"]
MASKED = """libvirtd.socket libvirtd-ro.socket libvirtd-admin.socket libvirtd-tcp.socket libvirtd-tls.socket
    getty.target serial-getty@ttyS0.service apt-daily.timer apt-daily-upgrade.timer fstrim.timer
    e2scrub_all.timer e2scrub_reap.service systemd-pstore.service systemd-random-seed.service
    opensm.service rdma-ndd.service systemd-networkd.service remote-fs.target dpkg-db-backup.timer
    systemd-binfmt.service systemd-firstboot.service systemd-machine-id-commit.service logrotate.timer man-db.timer
    systemd-update-utmp.service systemd-update-utmp-runlevel.service""".split()
ENABLED = ["rig-setup.service", "rig-cmd.service", "libvirtd.service"]
DISABLED = ["opensm.service"]
# libvirt trusts its capability cache only while these keep their change time.
FIXED_CTIME = ["/usr/sbin/libvirtd", "/usr/bin/qemu-system-x86_64"]
BOOT_MODULES = ["virtio_pci", "virtio_blk", "ext4", "crc32c_generic"]
GUEST_MODULES = ["ib_core", "ib_uverbs"]
# Of guests with a QEMU guest agent, besides.
AGENT_MODULES = ["virtio_pci", "virtio_console"]
AGENT = "/usr/sbin/qemu-ga"
SIMHCA = RIG / "simhca"
PROGRAMS = [RIG / "channel.c", RIG / "compiled.c"]
PARSER = "usr/sbin/apparmor_parser"
XZ = b"\xfd7zXZ\x00"
KEEP = 2


class Image:
    """Paths and keys of one set of images. ensure() makes what is missing."""

    def __init__(self):
        self.kernel = self._kernel()
        packages = [p.format(kernel=self.kernel) for p in PACKAGES]
        self.root_key = key_of("root 1", *packages, *EXCLUDE)
        self.key = key_of("image 1", self.root_key, RIG / "overlay", RIG / "guest", SIMHCA, *PROGRAMS,
                          pathlib.Path(__file__))
        self.packages = packages
        self.root = CACHE / f"root-{self.root_key}"
        self.warm = CACHE / f"warm-{self.root_key}"
        self.dir = CACHE / f"image-{self.key}"
        self.disk, self.vmlinuz, self.initrd = (self.dir / n for n in ("root.img", "vmlinuz", "initrd"))

    @staticmethod
    def _kernel():
        """Version of the newest kernel headers of this machine: module and rootfs use the same."""
        names = (p.name.removeprefix("linux-headers-") for p in
                 pathlib.Path("/usr/src").glob("linux-headers-*-amd64"))
        found = sorted(names, key=lambda n: [int(x) for x in re.findall(r"\d+", n)])
        if not found:
            raise RigError("no kernel headers in /usr/src: run tools/deps rig")
        return found[-1]

    def ready(self):
        return self.disk.exists() and self.warm.exists()

    def ensure(self, warm_boot):
        """Build what is missing. warm_boot(image) boots a disk once and returns a tar of what it computed."""
        if "bookworm" not in pathlib.Path("/etc/os-release").read_text():
            raise RigError("the rig needs Debian 12: binaries built here must run in its hypervisors")
        CACHE.mkdir(parents=True, exist_ok=True)
        if not self.root.exists():
            self._make_root()
        if not self.disk.exists():
            self._make_image()
        if not self.warm.exists():
            started = time.monotonic()
            tar = warm_boot(self)
            self.warm.mkdir()
            run(["tar", "-x", "-C", self.warm, "-f", "-"], stdin=tar)
            shutil.rmtree(self.dir)
            say(f"  first boot remembered: {time.monotonic() - started:.0f} s")
            self._make_image()
        self._prune()

    def _make_root(self):
        started = time.monotonic()
        tmp = pathlib.Path(tempfile.mkdtemp(prefix="root-tmp.", dir=CACHE))
        try:
            options = [f"--dpkgopt=path-exclude={p}" for p in EXCLUDE]
            run(["mmdebstrap", "--variant=minbase", "--mode=root", f"--include={','.join(self.packages)}",
                 "--aptopt=APT::Install-Recommends \"false\"", *options, "bookworm", tmp],
                timeout=1800, env={"INITRD": "No", "TMPDIR": str(CACHE)})
            (tmp / "usr/bin/qemu-system-i386").unlink(missing_ok=True)  # libvirt would probe it too
            os.chmod(tmp, 0o755)
            tmp.rename(self.root)
        finally:
            shutil.rmtree(tmp, ignore_errors=True)
        say(f"  root file system: {time.monotonic() - started:.0f} s")

    def _make_image(self):
        started = time.monotonic()
        tmp = pathlib.Path(tempfile.mkdtemp(prefix="image-tmp.", dir=CACHE))
        try:
            stage = tmp / "root"
            run(["cp", "-al", self.root, stage])
            self._overlay(stage)
            modules = self._build_modules(tmp, stage)
            self._guest(stage, modules)
            self._boot_initrd(stage, tmp / "initrd")
            shutil.copy(stage / f"boot/vmlinuz-{self.kernel}", tmp / "vmlinuz")
            run(["mke2fs", "-q", "-t", "ext4", "-L", "rig", "-d", stage, tmp / "root.img", "3G"])
            self._fix_ctimes(stage, tmp / "root.img")
            shutil.rmtree(stage)
            tmp.rename(self.dir)
        finally:
            shutil.rmtree(tmp, ignore_errors=True)
        say(f"  disk image: {time.monotonic() - started:.0f} s")

    def _overlay(self, stage):
        """Our files over the packages'. The stage is hard-linked to the root: always replace, never write into a file."""
        sources = [RIG / "overlay"] + ([self.warm] if self.warm.exists() else [])
        for source in sources:
            for f in sorted(p for p in source.rglob("*") if p.is_file()):
                target = stage / f.relative_to(source)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.unlink(missing_ok=True)
                shutil.copy2(f, target)
        for source in PROGRAMS:
            run(["gcc", "-std=gnu11", "-D_GNU_SOURCE", "-O2", "-static", "-Wall", "-Wextra", "-Werror",
                 "-o", stage / "usr/lib/rig" / source.stem, source])
        (stage / PARSER).rename(stage / "usr/lib/rig/apparmor_parser")
        (stage / "usr/lib/rig/compiled").rename(stage / PARSER)
        for name in ("resolv.conf", "hostname", "machine-id"):
            (stage / "etc" / name).unlink(missing_ok=True)
        (stage / "etc/libvirt/qemu/networks/autostart/default.xml").unlink(missing_ok=True)
        (stage / "var/log/journal").mkdir(exist_ok=True)
        units = f"--root={stage}"
        run(["systemctl", units, "--quiet", "mask", *MASKED])
        run(["systemctl", units, "--quiet", "disable", *DISABLED], check=False)
        run(["systemctl", units, "--quiet", "enable", *ENABLED])

    def _build_modules(self, tmp, stage):
        """The simulated HCA, in updates/, where modprobe finds it before the real drivers."""
        if not SIMHCA.exists():
            return []
        source = tmp / "simhca"
        shutil.copytree(SIMHCA, source)
        run(["make", "-s", "-C", f"/lib/modules/{self.kernel}/build", f"M={source}", "modules"])
        target = stage / f"lib/modules/{self.kernel}/updates"
        target.mkdir(exist_ok=True)
        modules = sorted(source.glob("*.ko"))
        for ko in modules:
            shutil.copy(ko, target)
            run(["strip", "-g", target / ko.name])
        for name in (stage / f"lib/modules/{self.kernel}").glob("modules.*"):
            if not name.name.startswith(("modules.builtin", "modules.order")):
                name.unlink()
        run(["depmod", "-b", stage, self.kernel])
        return [m.stem for m in modules]

    @staticmethod
    def _add_program(top, program):
        """A program of this machine, in bin/, and its shared libraries where they are here."""
        shutil.copy(program, top / "bin")
        for library in re.findall(r"(/\S+) \(0x", run(["ldd", program])):
            target = top / library.lstrip("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(library, target)

    def _initramfs(self, stage, modules, init, out, program=None):
        """A busybox initramfs with modules (and what they need) numbered in loading order, and perhaps one program more."""
        with tempfile.TemporaryDirectory(dir=CACHE) as name:
            top = pathlib.Path(name)
            for d in ("bin", "mods", "new", "proc", "sys", "dev", "tmp"):
                (top / d).mkdir()
            shutil.copy("/bin/busybox", top / "bin/busybox")
            if program:
                self._add_program(top, program)
            (top / "bin/sh").symlink_to("busybox")
            files = []
            for m in modules:
                for line in run(["modprobe", "-d", stage, "-S", self.kernel, "--show-depends", m]).splitlines():
                    if line.startswith("insmod ") and line.split()[1] not in files:
                        files.append(line.split()[1])
            for n, f in enumerate(files):
                shutil.copy(f, top / f"mods/{n:02d}-{os.path.basename(f)}")
            shutil.copy(init, top / "init")
            run(["sh", "-c", 'find . | cpio -o -H newc --quiet -R 0:0 > "$1"', "sh", out], cwd=top)

    def _unpacked_kernel(self, stage):
        """The ELF kernel in the bzImage: an emulated processor needs two seconds to unpack it at each boot of a guest."""
        packed = (stage / f"boot/vmlinuz-{self.kernel}").read_bytes()
        kernel = lzma.LZMADecompressor().decompress(packed[packed.index(XZ):])
        if not kernel.startswith(b"\x7fELF"):
            raise RigError(f"no ELF kernel in vmlinuz-{self.kernel}")
        return kernel

    def _guest(self, stage, modules):
        images = stage / "var/lib/libvirt/images"
        (images / "guest.vmlinuz").write_bytes(self._unpacked_kernel(stage))
        self._initramfs(stage, GUEST_MODULES + modules, RIG / "guest/init", images / "guest.initrd")
        self._initramfs(stage, AGENT_MODULES + GUEST_MODULES + modules, RIG / "guest/init", images / "guest-agent.initrd", AGENT)

    def _boot_initrd(self, stage, out):
        self._initramfs(stage, BOOT_MODULES, RIG / "guest/boot-init", out)

    def _fix_ctimes(self, stage, disk):
        """One change time for the programs that libvirt's capability cache names, whenever the image was made."""
        drivers = stage.glob("usr/lib/*/libvirt/connection-driver/*.so")
        names = FIXED_CTIME + ["/" + str(p.relative_to(stage)) for p in drivers]
        commands = "".join(f"set_inode_field {n} ctime 20260101000000\n" for n in names)
        run(["debugfs", "-w", "-f", "-", disk], stdin=commands.encode())

    def _prune(self):
        """Keep the newest few of each kind, and always the current ones."""
        for kind in ("root", "warm", "image"):
            found = sorted(CACHE.glob(f"{kind}-*"), key=lambda p: p.stat().st_mtime, reverse=True)
            for old in found[KEEP:]:
                if old not in (self.root, self.warm, self.dir):
                    shutil.rmtree(old, ignore_errors=True)
