#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""README's installation, typed as it stands there, in a Debian 12 that has nothing of ours. Prints TAP; needs root.

The root file system is mmdebstrap's smallest one with sudo; it is kept as a tar in the cache and unpacked for each run.
Its mounts live in a namespace of their own and end with the commands.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
CACHE = pathlib.Path(os.environ.get("VHCA_CACHE", "/var/cache/vhcad-dev")) / "pristine"
SUITE = "bookworm"
SOURCE = "usr/src/vhcad"
TIMEOUT = 900
# In the new namespaces: what a chroot needs to look like a machine.
ENTER = """set -e
mount --bind "$1" "$1"
mount -t proc proc "$1/proc"
mount -t sysfs -o ro sysfs "$1/sys"
mount -t tmpfs tmpfs "$1/tmp"
cd "$1"
exec chroot . env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 /bin/bash -euxc "cd /$2; $3"
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


def readme_block(heading):
    """The indented lines that follow the paragraph with this heading in README.md."""
    text = (ROOT / "README.md").read_text().partition(f"**{heading}**")[2]
    found = re.search(r"\n\n((?:       .*\n|\n)+)", text)
    if not found:
        raise Failure(f"README.md has no commands after **{heading}**")
    return re.sub(r"^ {7}", "", found[1], flags=re.M).strip()


def base_tar():
    """The smallest Debian, made once."""
    tar = CACHE / f"{SUITE}.tar"
    if not tar.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        new = CACHE / f"{SUITE}.new.tar"
        run(["mmdebstrap", "--variant=minbase", "--mode=root", "--include=sudo", SUITE, new], "mmdebstrap")
        new.rename(tar)
    return tar


class Machine:
    """A root file system in which commands are typed."""

    def __init__(self, top):
        self.top = top
        run(["tar", "-x", "-p", "-C", top, "-f", base_tar()], "tar")
        shutil.copy("/etc/resolv.conf", top / "etc/resolv.conf")
        source = top / SOURCE
        source.mkdir(parents=True)
        self._copy_tree(source)

    @staticmethod
    def _copy_tree(target):
        """What git knows of this tree; of a tarball everything but its builds."""
        p = subprocess.run(["git", "-c", f"safe.directory={ROOT}", "ls-files", "-z", "-co", "--exclude-standard"], cwd=ROOT,
                           stdout=subprocess.PIPE, check=False)
        names = [n for n in p.stdout.decode().split("\0") if n and (ROOT / n).exists()] if p.returncode == 0 else []
        names = names or [n.name for n in ROOT.iterdir() if not n.name.startswith("build")]
        tar = subprocess.run(["tar", "-c", "-C", ROOT, "--owner=root", "--group=root", "-f", "-", "--", *names],
                             stdout=subprocess.PIPE, check=True)
        subprocess.run(["tar", "-x", "-C", target, "-f", "-"], input=tar.stdout, check=True)

    def type(self, commands):
        """Type these lines at a root shell in the source tree; return what they print."""
        return run(["unshare", "--mount", "--pid", "--fork", "--kill-child", "--propagation=private", "/bin/sh", "-c", ENTER,
                    "enter", self.top, SOURCE, commands], commands)


def readme_installs(machine):
    """Dependencies, configuration, compilation, installation, each without a warning of the compiler."""
    out = machine.type(readme_block("Build and install"))
    warnings = [line for line in out.splitlines() if re.search(r"\b(warning|WARNING):", line)]
    if warnings:
        raise Failure("\n".join(warnings[:20]))


def installation_is_complete(machine):
    """What README goes on to use is there: programs, hook, unit, pages, and the plugin where the loader looks."""
    machine.type("vhcad --version; vhcactl --version; test -x /etc/libvirt/hooks/qemu.d/*vhca*; "
                 "find / -xdev -name vhcad.service | grep .; ls /usr/lib/*-linux-gnu/libvhcasm.so; "
                 "find /usr/share/man -name 'vhcad.8*' | grep .; test -f /usr/lib/modprobe.d/vhcad-mlx4.conf")


def configuration_is_accepted(machine):
    """README's local.conf and its command."""
    text = readme_block("Configuration")
    conf, _, command = text.rpartition("\n")
    where = machine.top / "etc/vhcad/vhcad.conf.d/local.conf"
    if not conf.startswith("[hca") or not command.startswith("vhcad --check-config"):
        raise Failure(f"README.md's step 4 is no configuration with `vhcad --check-config` after it: {text}")
    where.parent.mkdir(parents=True, exist_ok=True)
    where.write_text(conf + "\n")
    machine.type(command.partition(";")[0])


def demo_dependencies(machine):
    """`tools/deps build rig` brings every program that the rig's kit calls, and no more of it is needed to build."""
    machine.type("tools/deps build rig")
    kit = "".join(f.read_text() for f in sorted((ROOT / "tests/rig/kit").glob("*.py")))
    programs = set(re.findall(r'(?:run|Popen)\(\[?"([a-z][\w.+-]*)"', kit)) | set(re.findall(r'"(qemu-system-\w+)"', kit))
    if len(programs) < 8:
        raise Failure(f"only these programs were found in tests/rig/kit: {sorted(programs)}")
    machine.type("; ".join(f"command -v {p}" for p in sorted(programs)) + "; ls -d /usr/src/linux-headers-*-amd64; test -x /bin/busybox")


STEPS = (readme_installs, installation_is_complete, configuration_is_accepted, demo_dependencies)


def main():
    if os.geteuid() != 0:
        print("tests/pristine/run.py: needs root (it builds a root file system)", file=sys.stderr)
        return 1
    print(f"1..{len(STEPS)}", flush=True)
    bad = 0
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="root.", dir=CACHE, ignore_cleanup_errors=True) as name:
        os.chmod(name, 0o755)
        machine, problem = None, ""
        for i, step in enumerate(STEPS, 1):
            try:
                machine = machine or Machine(pathlib.Path(name))
                step(machine)
                problem = ""
            except (Failure, OSError, subprocess.SubprocessError) as e:
                problem = str(e)
            bad += bool(problem)
            print(f"{'not ok' if problem else 'ok'} {i} - pristine: {SUITE}: {step.__name__.replace('_', ' ')}", flush=True)
            for line in problem.splitlines():
                print(f"# {line}", flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
