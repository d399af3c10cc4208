# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the hypervisors boot: root file system, kernel module, disk image, nested guest.

Everything is cached by the content of what shapes it. Three layers, each keyed on the one below:
  root   packages, unpacked by mmdebstrap (about a minute)
  warm   what the first boot computes: libvirt's capability cache, AppArmor's compiled profiles
  image  root + overlay/ + the simulated HCA's module + the nested guest, as an ext4 image (seconds)
"""

import os
import pathlib
import shutil
import tempfile
import time

from kit import modules
from kit.base import CACHE, RIG, RigError, key_of, run, say
from kit.initramfs import make_guests, make_initramfs

PACKAGES = """systemd systemd-sysv udev dbus kmod iproute2 iputils-ping pciutils procps socat zstd
    apparmor linux-image-{kernel} qemu-system-x86 libvirt-daemon-system libvirt-clients dmidecode
    rdma-core ibverbs-utils ibverbs-providers infiniband-diags opensm sqlite3 curl strace python3 ruby
    libcurl3-gnutls libjson-c5 libmicrohttpd12 libsqlite3-0 libxml2 libnl-3-200 libnl-route-3-200
    libinih1 libgnutls30""".split()
# Debian 13 has other names for libraries whose interface has 64-bit times on 32-bit machines.
RENAMED = {"trixie": {f"lib{a}": f"lib{b}" for a, b in (("curl3-gnutls", "curl3t64-gnutls"), ("microhttpd12", "microhttpd12t64"),
                                                         ("gnutls30", "gnutls30t64"))}}
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
    systemd-update-utmp.service systemd-update-utmp-runlevel.service systemd-networkd.socket ldconfig.service
    systemd-hwdb-update.service systemd-journal-catalog-update.service systemd-update-done.service""".split()
ENABLED = ["rig-setup.service", "rig-cmd.service", "libvirtd.service"]
DISABLED = ["opensm.service"]
# libvirt trusts its capability cache only while these keep their change time.
FIXED_CTIME = ["/usr/sbin/libvirtd", "/usr/bin/qemu-system-x86_64"]
BOOT_MODULES = ["virtio_pci", "virtio_blk", "ext4", "crc32c_generic"]
PROGRAMS = [RIG / "channel.c", RIG / "compiled.c"]
PARSER = "usr/sbin/apparmor_parser"
KEEP = 2


class Image:
    """Paths and keys of what a hypervisor with this release of Debian boots. ensure() makes what is missing."""

    def __init__(self, suite):
        self.suite, self.kernel = suite, modules.kernel_of(suite)
        renamed = RENAMED.get(suite, {})
        self.packages = [renamed.get(p, p).format(kernel=self.kernel) for p in PACKAGES]
        root_key = key_of("root 1", suite, *self.packages, *EXCLUDE)
        self.key = key_of("image 1", root_key, RIG / "overlay", RIG / "guest", modules.SIMHCA, *PROGRAMS,
                          *sorted(pathlib.Path(__file__).parent.glob("i*.py")), modules.kernel_of(modules.HERE))
        self.root, self.warm, self.dir = (CACHE / f"{kind}-{suite}-{key}" for kind, key in
                                          (("root", root_key), ("warm", root_key), ("image", self.key)))
        self.disk, self.vmlinuz, self.initrd = (self.dir / n for n in ("root.img", "vmlinuz", "initrd"))

    def ready(self):
        return self.disk.exists() and self.warm.exists()

    def ensure(self, warm_boot):
        """Build what is missing. warm_boot(image) boots a disk once and returns a tar of what it computed."""
        if modules.HERE not in pathlib.Path("/etc/os-release").read_text():
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
                 "--aptopt=APT::Install-Recommends \"false\"", *options, self.suite, tmp],
                timeout=1800, env={"INITRD": "No", "TMPDIR": str(CACHE)})
            (tmp / "usr/bin/qemu-system-i386").unlink(missing_ok=True)  # libvirt would probe it too
            os.chmod(tmp, 0o755)
            tmp.rename(self.root)
        finally:
            shutil.rmtree(tmp, ignore_errors=True)
        say(f"  root file system of {self.suite}: {time.monotonic() - started:.0f} s")

    def _make_image(self):
        started = time.monotonic()
        tmp = pathlib.Path(tempfile.mkdtemp(prefix="image-tmp.", dir=CACHE))
        try:
            stage = tmp / "root"
            run(["cp", "-al", self.root, stage])
            self._overlay(stage)
            modules.install(stage, self.suite)
            self._guests(stage / "var/lib/libvirt/images")
            make_initramfs(stage, self.kernel, BOOT_MODULES, RIG / "guest/boot-init", tmp / "initrd")
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

    def _guests(self, images):
        """The same kernel and initramfs whatever the hypervisor runs: a guest that migrates finds its own."""
        guests = self if self.suite == modules.HERE else Image(modules.HERE)
        if not guests.root.exists():
            guests._make_root()
        make_guests(guests.root, guests.suite, images)

    def _fix_ctimes(self, stage, disk):
        """One change time for the programs that libvirt's capability cache names, whenever the image was made."""
        drivers = stage.glob("usr/lib/*/libvirt/connection-driver/*.so")
        names = FIXED_CTIME + ["/" + str(p.relative_to(stage)) for p in drivers]
        commands = "".join(f"set_inode_field {n} ctime 20260101000000\n" for n in names)
        run(["debugfs", "-w", "-f", "-", disk], stdin=commands.encode())

    def _prune(self):
        """Keep the newest few of each kind, and always the current ones."""
        for kind in ("root", "warm", "image"):
            found = sorted(CACHE.glob(f"{kind}-{self.suite}-*"), key=lambda p: p.stat().st_mtime, reverse=True)
            for old in found[KEEP:]:
                if old not in (self.root, self.warm, self.dir):
                    shutil.rmtree(old, ignore_errors=True)
