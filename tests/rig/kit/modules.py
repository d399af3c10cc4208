# SPDX-License-Identifier: LGPL-2.1-or-later
"""The simulated HCA's kernel modules, for the kernel of a release of Debian."""

import contextlib
import fcntl
import pathlib
import re
import shutil
import tempfile

from kit.base import CACHE, RIG, RigError, key_of, run, say

SIMHCA = RIG / "simhca"
HERE = "bookworm"  # of this machine, whose compiler makes modules for its kernel
COMPILER = ["linux-headers-amd64", "make", "gcc", "libc6-dev"]


def builder(suite):
    """A root with this release's headers and compiler; "/" where it is this machine's."""
    if suite == HERE:
        return pathlib.Path("/")
    root = CACHE / f"builder-{suite}-{key_of(*COMPILER)}"
    with locked(root):
        if not root.exists():
            with tempfile.TemporaryDirectory(dir=CACHE) as top:
                run(["mmdebstrap", "--variant=minbase", "--mode=root", f"--include={','.join(COMPILER)}",
                     "--aptopt=APT::Install-Recommends \"false\"", suite, f"{top}/root"], timeout=1800, env={"TMPDIR": str(CACHE)})
                pathlib.Path(top, "root").rename(root)
            say(f"  compiler and headers of {suite}")
    return root


@contextlib.contextmanager
def locked(path):
    with open(f"{path}.lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def kernel_of(suite):
    """Version of the newest kernel headers that this release's compiler has: module and root file system use the same."""
    found = [p.name.removeprefix("linux-headers-") for p in (builder(suite) / "usr/src").glob("linux-headers-*-amd64")]
    if not found:
        raise RigError("no kernel headers in /usr/src: run tools/deps rig")
    return max(found, key=lambda n: [int(x) for x in re.findall(r"\d+", n)])


def built(suite):
    """Folder with the modules for this release, compiled when their source or the kernel is new."""
    kernel, root = kernel_of(suite), builder(suite)
    where = CACHE / f"modules-{kernel}-{key_of(SIMHCA)}"
    with locked(CACHE / "modules"):
        if not where.exists():
            with tempfile.TemporaryDirectory(dir=root / "tmp") as top:
                source = pathlib.Path(shutil.copytree(SIMHCA, f"{top}/simhca"))
                run(["chroot", root, "make", "-s", "-C", f"/usr/src/linux-headers-{kernel}", f"M=/{source.relative_to(root)}", "modules"])
                keep(source.glob("*.ko"), where)
    return where


def keep(files, where):
    """Put them into a new folder, all or none."""
    with tempfile.TemporaryDirectory(dir=CACHE) as top:
        made = pathlib.Path(top, "made")
        made.mkdir()
        for ko in files:
            shutil.copy(ko, made)
            run(["strip", "-g", made / ko.name])
        made.rename(where)


def install(stage, suite):
    """The modules in updates/, where modprobe finds them before the real drivers."""
    kernel = kernel_of(suite)
    target = stage / f"lib/modules/{kernel}/updates"
    target.mkdir(exist_ok=True)
    for ko in built(suite).glob("*.ko"):
        shutil.copy(ko, target)
    for name in target.parent.glob("modules.*"):
        if not name.name.startswith(("modules.builtin", "modules.order")):
            name.unlink()
    run(["depmod", "-b", stage, kernel])
