# SPDX-License-Identifier: LGPL-2.1-or-later
"""Packages of Debian's that are only read: fetched once by apt, by checksum, and unpacked beside the machine."""

import contextlib
import os
import pathlib
import subprocess
import tempfile

OWN = "/var/cache/vhcad-dev" if os.geteuid() == 0 else os.path.expanduser("~/.cache/vhcad-dev")    # as tools/check has it
CACHE = pathlib.Path(os.environ.get("VHCA_CACHE") or OWN)
DOWNLOAD = ("/usr/lib/apt/apt-helper", "-o", "Acquire::Retries=0", "-o", "Acquire::http::Timeout=20", "download-file")


def mirrors():
    """Those that apt has."""
    done = subprocess.run(["apt-get", "indextargets", "--format", "$(REPO_URI)"], capture_output=True, text=True, check=False)
    return sorted(set(done.stdout.split()))


def unpack(url, sha256, place, tree):
    """Whether it is in the cache now."""
    package = f"{place}/p.deb"
    if subprocess.run([*DOWNLOAD, url, package, f"SHA256:{sha256}"], capture_output=True, timeout=180, check=False).returncode:
        return False
    subprocess.run(["dpkg-deb", "-x", package, f"{place}/tree"], check=True)
    os.rename(f"{place}/tree", tree)
    return True


def fetch(package, sha256, name):
    """The tree of a package (its path below a mirror), kept as `name`; None: it cannot be had."""
    tree = CACHE / name
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        if not tree.exists():
            CACHE.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=CACHE) as place:
                any(unpack(f"{mirror.rstrip('/')}/{package}", sha256, place, tree) for mirror in mirrors())
    return tree if tree.exists() else None
