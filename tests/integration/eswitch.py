# SPDX-License-Identifier: LGPL-2.1-or-later
"""vhca-eswitch, and a client of it as neutron-mlnx-agent is one."""

import json
import os
import re
import signal
import subprocess
import time

import zmq

from host_case import MAC, OTHER_MAC, OTHER_VF, VF, WAIT

PROGRAM = os.path.join(os.environ["VHCA_SOURCE_DIR"], "drivers/openstack/vhca-eswitch")
GIVEN_UP = 3    # seconds, after which neutron-mlnx-agent has gone


class Eswitch:
    """The program, on a port that the kernel chooses."""

    def __init__(self, where, *args, listen="127.0.0.1:0"):
        self.path = f"{where}/eswitch.log"
        self.log = open(self.path, "wb")
        self.process = subprocess.Popen(["/usr/bin/python3", PROGRAM, "--listen", listen, "--socket", f"{where}/run/vhcad.sock", *(args or ("--user", "0"))],
                                        stderr=self.log, stdout=self.log)
        end = time.monotonic() + WAIT
        while not (line := re.search(r"listening on (\S+):(\d+)\n", self.text())):
            if self.process.poll() is not None or time.monotonic() > end:
                raise AssertionError(self.text())
            time.sleep(0.02)
        self.address = line[1], int(line[2])

    def text(self):
        with open(self.path, encoding="utf-8") as f:
            return f.read()

    def client(self, kind=zmq.REQ):
        return Client(self.address, kind)

    def end(self):
        """Its exit status."""
        self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(WAIT)
        self.log.close()
        return status


class Client:
    def __init__(self, address, kind=zmq.REQ):
        self.socket = zmq.Context.instance().socket(kind)
        self.socket.setsockopt(zmq.LINGER, 0)
        self.socket.connect("tcp://{}:{}".format(*address))
        self.seconds = None

    def raw(self, data, patience=WAIT):
        """The reply to these bytes; None: there is none."""
        begun = time.monotonic()
        self.socket.send(data)
        reply = self.socket.recv() if self.socket.poll(patience * 1000) else None
        self.seconds = time.monotonic() - begun
        return None if reply is None else json.loads(reply)

    def say(self, action, patience=WAIT, **members):
        return self.raw(json.dumps({"action": action, **members}).encode(), patience)

    def close(self):
        self.socket.close()


class Story:
    """What happens to two ports of one instance; each step is a method, so that a record can name it."""

    def __init__(self, host, eswitch):
        self.host = host
        self.eswitch = eswitch

    def pkeys(self):
        return [key for claim in self.host.get("/v1/claims")[1]["claims"] if claim["bdf"] == VF for key in claim["pkeys"]]

    def plug(self, mac=MAC, bdf=VF):
        done = self.host.add(mac=mac, bdf=bdf)
        assert done[2] == 0, done

    def plug_other(self):
        self.plug(OTHER_MAC, OTHER_VF)

    def begin(self, bdf=VF):
        self.host.wait(lambda: self.host.begin(bdf=bdf) == "pass\n", WAIT)

    def begin_other(self):
        self.begin(OTHER_VF)

    def unplug(self, mac=MAC):
        done = self.host.delete(mac=mac)
        assert done[2] == 0, done

    def reboot(self):
        self.unplug()
        self.plug()
        self.begin()

    def kill_vhcad(self):
        self.host.kill()

    def clear(self):
        self.unplug()
        self.unplug(OTHER_MAC)


def keep(lines, path):
    """A record without what is said twice in a row."""
    kept, pair = [], []
    for kind, what in lines:
        if kind == "do":
            kept.append([kind, what])
            pair = []
        elif kind == "ask":
            asked = what
        elif kind == "hear" and pair != (asked, what):
            pair = (asked, what)
            kept += [["ask", asked], ["hear", what]]
    with open(path, "w", encoding="utf-8") as f:
        f.write("[\n" + ",\n".join(map(json.dumps, kept)) + "\n]\n")
