# SPDX-License-Identifier: LGPL-2.1-or-later
"""A whole agent on a simulated ConnectX-3 of four VFs, two of them reserved, for one class of tests."""

import contextlib
import os
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import threading
import time
import unittest

from test_agent import ENV, Agent, conf_text

WAIT = 100    # for an agent on FUSE on a busy machine
PF = "0000:01:00.0"
FREE, VF, OTHER_VF = "0000:01:00.1", "0000:01:00.2", "0000:01:00.3"
UUID, OTHER_UUID = "6d3a0000-0000-4000-8000-000000000001", "6d3a0000-0000-4000-8000-000000000002"
MAC, OTHER_MAC = "fa:16:3e:12:34:56", "fa:16:3e:12:34:57"
GUID = "0xfa163e0000123456"
PORT_GUID = "0x0002c90300000011"
HCA = f"vfs = keep\nfabric = physnet1\nreserve = {VF} {OTHER_VF}\n"
SETTLED = 1   # seconds in which whatever was begun has shown


def ebrctl(where, *args):
    """(stdout, stderr, exit status, seconds)"""
    begun = time.monotonic()
    done = subprocess.run([os.environ["VHCA_EBRCTL"], *args], cwd=where, capture_output=True, text=True, timeout=60)
    return done.stdout, done.stderr, done.returncode, time.monotonic() - begun


class Host(Agent):
    """The adapter outlives its agent, which is a child."""

    before = {}    # more of sim_host's environment

    def __init__(self, where):
        super().__init__(where)
        self.write(conf_text(where, HCA))

    def start(self):
        with open(f"{self.where}/lid", "w", encoding="ascii") as lid:
            lid.write("3")
        open(f"{self.where}/writes", "w", encoding="ascii").close()
        self.log = open(f"{self.where}/log", "ab")
        self.process = subprocess.Popen(
            [os.environ["VHCA_SIM_HOST"], self.conf], stderr=self.log, stdout=self.log,
            env={**ENV, "SIM_PORT_GUID": PORT_GUID, "SIM_LID": lid.name, "SIM_VFS": "4",
                 "SIM_PID": f"{self.where}/pid", "SIM_WRITES": f"{self.where}/writes", **self.before})
        self.until_free()

    def until_free(self):
        self.wait(lambda: self.process.poll() is not None or self.get("/readyz")[0] == 200, WAIT)
        if self.process.poll() == 77:
            raise unittest.SkipTest(self.log_text())

    def signal(self, signo):
        with open(f"{self.where}/pid", encoding="ascii") as f:
            os.kill(int(f.read()), signo)

    def kill(self):
        """Another life begins on the same adapter."""
        with open(f"{self.where}/pid", encoding="ascii") as f:
            old = f.read()
        self.signal(signal.SIGKILL)
        self.wait(lambda: open(f"{self.where}/pid", encoding="ascii").read() not in ("", old), WAIT)
        self.until_free()

    def writes(self):
        time.sleep(SETTLED)
        with open(f"{self.where}/writes", encoding="utf-8") as f:
            return f.read().splitlines()

    def end(self):
        if self.process and self.process.poll() is None:
            self.signal(signal.SIGTERM)
            self.process.wait(WAIT)
        self.log.close()

    def vf(self, bdf):
        return self.get(f"/v1/vfs/{bdf}")[1]

    def ebrctl(self, *args):
        return ebrctl(self.where, *args)

    def add(self, mac=MAC, uuid=UUID, fabric="physnet1", vnic="ib_hostdev", bdf=VF):
        return self.ebrctl("add-port", mac, uuid, fabric, vnic, bdf)

    def begin(self, uuid=UUID, bdf=VF):
        """The qemu hook asks, as when libvirt begins the domain with that VF; its answer."""
        text = f"version 1\nop prepare\nsubop begin\nextra -\nname vm\nuuid {uuid}\nrequest 0\nhostdev {bdf}\n".encode()
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(10)
            s.connect(f"{self.where}/run/hook.sock")
            s.sendall(struct.pack(">I", len(text)) + text)
            answer = b""
            while part := s.recv(4096):
                answer += part
        return answer[4:].decode()

    def plug(self):
        """Claimed, and the instance begins."""
        done = self.add()
        self.wait(lambda: self.begin() == "pass\n", WAIT)
        return done

    def delete(self, fabric="physnet1", mac=MAC):
        return self.ebrctl("del-port", fabric, mac)


class Mortal(Host):
    """One that can be told at which step of its journal it is killed."""

    def __init__(self, where):
        super().__init__(where)
        self.before = {"SIM_STEPS": f"{where}/steps"}

    def pid(self):
        with open(f"{self.where}/pid", encoding="ascii") as f:
            return f.read()

    def dies_within(self, steps, act):
        """(what act() has returned, whether it died); another life has begun then."""
        path, old = self.before["SIM_STEPS"], self.pid()
        with open(path, "w", encoding="ascii") as f:
            f.write(str(steps))
        got = act()
        try:
            os.unlink(path)
            return got, False
        except FileNotFoundError:
            self.wait(lambda: self.pid() not in ("", old), WAIT)
            self.until_ready()
            return got, True

    def until_ready(self):
        self.until_free()
        self.wait(lambda: self.get("/v1/node")[1]["libvirt"]["synced"], WAIT)


class HostCase(unittest.TestCase):
    """One host for all tests of the class."""

    CONF = HCA    # beside what each agent of a test has
    HOST = Host

    @classmethod
    def setUpClass(cls):
        cls.where = tempfile.mkdtemp(prefix="vhca-host.")
        cls.addClassCleanup(shutil.rmtree, cls.where)
        cls.host = cls.HOST(cls.where)
        cls.prepare()
        cls.addClassCleanup(cls.host.end)
        cls.host.start()

    @classmethod
    def prepare(cls):
        """What is there before the agent."""
        cls.host.write(conf_text(cls.where, cls.CONF))


class StubCase(unittest.TestCase):
    """No vhcad, or one that does not answer as one."""

    def setUp(self):
        self.where = tempfile.mkdtemp(prefix="vhca-stub.")
        self.addCleanup(shutil.rmtree, self.where)
        os.mkdir(f"{self.where}/run")
        self.path = f"{self.where}/run/vhcad.sock"

    def serve(self, *answers):
        """From now on each connection gets the next, and the last one for ever; None: nothing, and it stays open; (seconds, answer): after these."""
        if os.path.exists(self.path):
            os.unlink(self.path)
        server = socket.socket(socket.AF_UNIX)
        server.bind(self.path)
        server.listen()
        self.addCleanup(server.close)
        self.asked = 0

        def run():
            left = list(answers)
            while True:
                try:
                    conn = server.accept()[0]
                except OSError:
                    return
                conn.recv(65536)
                self.asked += 1
                answer = left.pop(0) if len(left) > 1 else left[0]
                if answer is None:
                    self.addCleanup(conn.close)
                    continue
                seconds, answer = answer if isinstance(answer, tuple) else (0, answer)
                threading.Timer(seconds, say, (conn, answer)).start()

        def say(conn, answer):
            with contextlib.suppress(OSError), conn:    # who has asked may have gone
                conn.sendall(answer)
        threading.Thread(target=run, daemon=True).start()
