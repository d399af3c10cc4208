# SPDX-License-Identifier: LGPL-2.1-or-later
"""A libvirtd of the test's own, with libvirt's test driver in it: what one connection changes, all see."""

import os
import shutil
import subprocess
import tempfile
import time

NOBODY = 65534
WAIT = 60    # seconds, for a daemon on a busy machine


class Libvirtd:
    """A session daemon; one connection keeps what runs in test:///default."""

    def __init__(self):
        self.where = tempfile.mkdtemp(prefix="vhca-lv.")
        root = os.geteuid() == 0
        if root:
            os.chown(self.where, NOBODY, NOBODY)
        names = ("HOME", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "XDG_CACHE_HOME")
        self.process = subprocess.Popen(["/usr/sbin/libvirtd"], cwd=self.where, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                        env={**os.environ, **{name: self.where for name in names}},
                                        **({"user": NOBODY, "group": NOBODY, "extra_groups": []} if root else {}))
        self.uri = f"test+unix:///default?socket={self.where}/libvirt/libvirt-sock"

    def keep(self):
        until = time.monotonic() + WAIT
        while not os.path.exists(f"{self.where}/libvirt/libvirt-sock") and time.monotonic() < until:
            time.sleep(0.05)
        self.keeper = subprocess.Popen(["virsh", "-c", self.uri], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.keeper.stdin.write("uri\n")
        self.keeper.stdin.flush()
        while self.keeper.stdout.readline().strip() != self.uri:
            pass

    def virsh(self, *args):
        return subprocess.run(["virsh", "-q", "-c", self.uri, *args], capture_output=True, text=True, timeout=60, check=True).stdout

    def end(self):
        self.keeper.communicate(timeout=20)
        self.process.terminate()
        self.process.wait(20)
        shutil.rmtree(self.where)
