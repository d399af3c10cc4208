# SPDX-License-Identifier: LGPL-2.1-or-later
"""Debian root file systems in which commands are typed as on a machine of that release.

Two kinds, both kept as tars in the cache under a key of what shapes them:
  pristine   mmdebstrap's smallest one with sudo; nothing of ours
  equipped   that, and what one group of tools/deps has installed in it
Mounts live in a namespace of their own and end with the commands. Packages that apt has fetched are kept, one folder a release.
"""

import contextlib
import fcntl
import hashlib
import os
import pathlib
import shutil
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
VHCA_CACHE = pathlib.Path(os.environ.get("VHCA_CACHE") or "/var/cache/vhcad-dev")
CACHE = VHCA_CACHE / "pristine"
SOURCE = "usr/src/vhcad"
ARCHIVES = "var/cache/apt/archives"
TIMEOUT = 1500
# A file system of its own is thrown away after the run: nobody waits for its disk.
BOOTSTRAP = ["mmdebstrap", "--variant=minbase", "--mode=root", "--include=sudo", "--dpkgopt=force-unsafe-io"]
KEYS = "/usr/share/keyrings/debian-archive-{}-stable.gpg"
# In the new namespaces: what a chroot needs to look like a machine. The folders that follow the script are bound, pair by pair.
ENTER = """set -e
top=$1 commands=$2
shift 2
mount --bind "$top" "$top"
mount -t proc proc "$top/proc"
mount -t sysfs -o ro sysfs "$top/sys"
mount -t tmpfs tmpfs "$top/tmp"
mount -t tmpfs tmpfs "$top/dev/shm"
mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts "$top/dev/pts"
for node in fuse; do
	[ -e "/dev/$node" ] || continue
	touch "$top/dev/$node"
	mount --bind "/dev/$node" "$top/dev/$node"
done
while [ $# -gt 0 ]; do
	mkdir -p "$1" "$top/$2"
	mount --bind "$1" "$top/$2"
	shift 2
done
cd "$top"
exec chroot . env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 /bin/bash -euxc "cd /usr/src/vhcad; $commands"
"""


class Failure(Exception):
    """A command did not do what README says."""


def run(argv, what, **options):
    """Run a command; return its output."""
    p = subprocess.run([str(a) for a in argv], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                       text=True, errors="replace", timeout=TIMEOUT, check=False, **options)
    if p.returncode:
        raise Failure(f"{what}: exit code {p.returncode}\n" + "\n".join(p.stdout.splitlines()[-40:]))
    return p.stdout


def cached_tar(name, shape, make):
    """The tar of this name and shape; make(file) makes it, and those of other shapes go."""
    tar = CACHE / f"{name}-{hashlib.sha256(shape.encode()).hexdigest()[:12]}.tar"
    with open(CACHE / f"{name}.lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two rooms may want the same one
        if not tar.exists():
            new = CACHE / f"{name}.new.tar"
            make(new)
            for old in CACHE.glob(f"{name}-{'?' * 12}.tar"):
                old.unlink()
            new.rename(tar)
    return tar


def pristine_tar(suite):
    """The smallest Debian of this release, its signatures checked by Debian's own keys."""
    def make(tar):
        if not os.path.exists(KEYS.format(suite)):  # a keyring from before this release
            run(["apt-get", "update", "-q"], "apt-get")
            run(["apt-get", "install", "-q", "-y", "--no-install-recommends", "debian-archive-keyring"], "apt-get")
        run([*BOOTSTRAP, suite, tar], "mmdebstrap")
    return cached_tar(suite, " ".join([*BOOTSTRAP, suite]), make)


def equipped_tar(suite, group, top):
    """The same after `tools/deps GROUP`; where it has to be made, below top."""
    def make(tar):
        machine = Machine(suite, None, top)
        machine.type(f"tools/deps {group}")
        run(["tar", "-c", "-C", machine.top, f"--exclude=./{SOURCE}", f"--exclude=./{ARCHIVES}/*.deb", "-f", tar, "."], "tar")
        shutil.rmtree(machine.top)
    return cached_tar(f"{suite}-{group.replace(' ', '-')}", BOOTSTRAP[-1] + (ROOT / "tools/deps").read_text(), make)


def copy_tree(target):
    """What git knows of this tree; of a tarball everything but its builds."""
    p = subprocess.run(["git", "-c", f"safe.directory={ROOT}", "ls-files", "-z", "-co", "--exclude-standard"], cwd=ROOT,
                       stdout=subprocess.PIPE, check=False)
    names = [n for n in p.stdout.decode().split("\0") if n and (ROOT / n).exists()] if p.returncode == 0 else []
    names = names or [n.name for n in ROOT.iterdir() if not n.name.startswith("build")]
    tar = subprocess.run(["tar", "-c", "-C", ROOT, "--owner=root", "--group=root", "-f", "-", "--", *names],
                         stdout=subprocess.PIPE, check=True)
    subprocess.run(["tar", "-x", "-C", target, "-f", "-"], input=tar.stdout, check=True)


def link_packages(source, target):
    """What apt has fetched, from one folder into another. Each root has its own, since apt locks it."""
    target.mkdir(parents=True, exist_ok=True)
    for package in source.glob("*.deb"):
        with contextlib.suppress(FileExistsError):
            os.link(package, target / package.name)


class Machine:
    """A root file system below top in which commands are typed: pristine, or with one group of packages."""

    def __init__(self, suite, group, top):
        tar = equipped_tar(suite, group, top) if group else pristine_tar(suite)
        self.suite, self.top = suite, pathlib.Path(tempfile.mkdtemp(prefix=f"{suite}.", dir=top))
        self.top.chmod(0o755)
        run(["tar", "-x", "-p", "-C", self.top, "-f", tar], "tar")
        shutil.copy("/etc/resolv.conf", self.top / "etc/resolv.conf")
        source = self.top / SOURCE
        source.mkdir(parents=True)
        copy_tree(source)
        self.packages = CACHE / f"packages-{suite}"
        link_packages(self.packages, self.top / ARCHIVES)

    def type(self, commands, bound=()):
        """Type these lines at a root shell in the source tree; return what they print. bound: pairs of a folder here and there."""
        folders = [name for pair in bound for name in pair]
        try:
            return run(["unshare", "--mount", "--pid", "--fork", "--kill-child", "--propagation=private", "/bin/sh", "-c", ENTER,
                        "enter", self.top, commands, *folders], commands)
        finally:
            link_packages(self.top / ARCHIVES, self.packages)
