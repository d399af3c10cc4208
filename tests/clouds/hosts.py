# SPDX-License-Identifier: LGPL-2.1-or-later
"""Hypervisors for a cloud's own code: on each the whole agent and its libvirt hook, on a simulated ConnectX-3.

What libvirt shows there, and which VFs guests have, is what begin(), show() and end() make of it.
"""

import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest
import uuid

from test_agent import ENV, Agent, conf_text

WAIT = 60       # for an agent on FUSE on a busy machine
SETTLED = 60    # for what the agent does by itself
PF = "0000:81:00.0"
VFS = 4
NO_GUID = "f" * 16
PAUSED_BY_USER, PAUSED_BY_MIGRATION = "3 1", "3 2"    # virDomainState and its reason
RUNNING = "1 1"


def vf_address(index):
    return f"{PF[:-1]}{index}"


def guid_of(mac):
    octets = mac.lower().replace(":", "")
    return octets[:6] + "0000" + octets[6:]


class Host(Agent):
    """One hypervisor. What its hardware shows is read here from the simulated /sys, and asked of nobody."""

    before = ""     # what another driver has done there before the first agent, "path=text" a line
    events_ms = 20  # how late libvirt's are

    def __init__(self, name, fabric, port_guid):
        super().__init__(tempfile.mkdtemp(prefix=f"vhca-{name}."))
        self.name = name
        self.port_guid = port_guid
        self.domains = {}       # those that run: UUID to VFs
        os.mkdir(f"{self.where}/libvirt")
        reserved = " ".join(vf_address(i + 1) for i in range(VFS))
        text = conf_text(self.where, f"vfs = keep\nfabric = {fabric}\nreserve = {reserved}\n")
        self.write(text.replace("test:///default", f"folder://{self.where}/libvirt").replace("node-a", name))

    # ---- life ----

    def start(self):
        """The host begins, and its agent."""
        files = {name: f"{self.where}/{name}" for name in ("pid", "writes", "held", "lid", "sys", "boot_id")}
        for name, text in (("lid", "3"), ("writes", ""), ("held", ""), ("pid", ""), ("boot_id", str(uuid.uuid4()))):
            with open(files[name], "w", encoding="ascii") as f:
                f.write(text)
        self.log = open(f"{self.where}/log", "ab")
        self.process = subprocess.Popen(
            [os.environ["VHCA_CLOUD_HOST"], self.conf], stderr=self.log, stdout=self.log,
            env={**ENV, "SIM_PORT_GUID": self.port_guid, "SIM_PF": PF, "SIM_VFS": str(VFS), "SIM_BEFORE": self.before,
                 "SIM_EVENTS_MS": str(self.events_ms), **{f"SIM_{k.upper()}": v for k, v in files.items()}})

    def until_ready(self):
        self.wait(lambda: self.process.poll() is not None or self.get("/readyz")[0] == 200, WAIT)
        if self.process.poll() == 77:
            raise unittest.SkipTest(self.log_text())

    def pid(self):
        with open(f"{self.where}/pid", encoding="ascii") as f:
            return f.read().strip()

    def kill(self):
        """The agent dies; the next one begins at once, on the same adapter."""
        old = self.pid()
        os.kill(int(old), signal.SIGKILL)
        self.wait(lambda: self.pid() not in ("", old), WAIT)
        self.until_ready()

    def power_off(self):
        """No agent, no guest, no adapter from one moment to the next. (SIGUSR1 ends the adapter with its agent.)"""
        os.kill(int(self.pid()), signal.SIGUSR1)
        self.process.wait(WAIT)
        self.process = None
        self.log.close()
        os.unlink(f"{self.where}/sys")
        for domain in list(self.domains):
            self.hide(domain)

    def end(self):
        if self.process and self.process.poll() is None:
            os.kill(int(self.pid()), signal.SIGTERM)
            self.process.wait(WAIT)
            self.log.close()
        shutil.rmtree(self.where)

    # ---- ebrctl ----

    def ebrctl(self, *args):
        return subprocess.run([os.environ["VHCA_EBRCTL"], *args], cwd=self.where, capture_output=True, text=True, timeout=60, check=False)

    # ---- libvirt ----

    def hook(self, name, operation, sub, xml):
        """What libvirt's hook says to it: "", or why not. It waits for less than 2 s, which may be too few on a busy machine: then it is asked again."""
        end = time.monotonic() + WAIT
        while True:
            done = subprocess.run([os.environ["VHCA_HOOK"], name, operation, sub, "-"], cwd=f"{self.where}/run", input=xml,
                                  capture_output=True, text=True, timeout=20, check=False)
            if not done.returncode or not re.search("does not answer|ran into its deadline", done.stderr) or time.monotonic() > end:
                return done.stderr if done.returncode else ""

    def _hold(self):
        with open(f"{self.where}/held.new", "w", encoding="ascii") as f:
            f.writelines(f"{bdf}\n" for vfs in self.domains.values() for bdf in vfs)
        os.rename(f.name, f"{self.where}/held")

    def show(self, uuid, vfs, state, xml):
        """The domain is so from now on."""
        self.domains[uuid] = list(vfs)
        self._hold()
        with open(f"{self.where}/libvirt/new", "w", encoding="utf-8") as f:
            f.write(f"{state}\n{xml}")
        os.rename(f.name, f"{self.where}/libvirt/{uuid}")

    def hide(self, uuid):
        self.domains.pop(uuid, None)
        self._hold()
        if os.path.exists(f"{self.where}/libvirt/{uuid}"):
            os.unlink(f"{self.where}/libvirt/{uuid}")

    # ---- hardware ----

    def _file(self, path):
        with open(f"{self.where}/sys/bus/pci/devices/{PF}/infiniband/mlx4_0/iov/{path}", encoding="ascii") as f:
            return f.read().strip()

    def guids(self):
        """VF to the GUID that it has; those without are left out."""
        if not self.process:
            return {}
        have = {vf_address(i): self._file(f"ports/1/admin_guids/{i}").removeprefix("0x").zfill(16) for i in range(1, VFS + 1)}
        return {bdf: guid for bdf, guid in have.items() if guid != NO_GUID}

    def pkeys(self):
        """VF to what its P_Key map shows; those that show nothing are left out."""
        have = {bdf: [self._file(f"{bdf}/ports/1/pkey_idx/{k}") for k in range(4)] for bdf in map(vf_address, range(1, VFS + 1))}
        return {bdf: keys for bdf, keys in have.items() if set(keys) != {"none"}}

    def writes(self):
        with open(f"{self.where}/writes", encoding="utf-8") as f:
            return f.read().splitlines()

    # ---- the agent's word ----

    def claims(self):
        """GUIDs of its claims."""
        return sorted(claim["guid"].removeprefix("0x") for claim in self.get("/v1/claims")[1]["claims"])


def until(condition, what, seconds=SETTLED):
    """What condition() returns, as soon as that is true."""
    end = time.monotonic() + seconds
    while not (found := condition()):
        if time.monotonic() > end:
            raise AssertionError(f"not in {seconds} s: {what()}")
        time.sleep(0.02)
    return found
