#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""mlx4_script.py SCRIPT PF: play tests/data/mlx4.script on simhca, in the hypervisor where OpenSM runs.

The case has loaded the drivers; before each later section what the one before it changed is put back. The driver of a VF in its guest is played
through the VF's config space (core_vf.c): it resets, waits for the answer, and starts.
"""

import errno
import fnmatch
import os
import pathlib
import subprocess
import sys
import time

SCRIPT, PF = sys.argv[1], sys.argv[2]
PCI = pathlib.Path("/sys/bus/pci/devices", PF)
CONTROL = pathlib.Path("/sys/kernel/debug/simhca", PF)
AWAIT_S = 90
COMMAND, REGISTER, MASTER = 4, 12, 4  # PCI: command, its bus master bit, cache line size
RESET, ANSWER, RUNNING, COUNT = 0xD0, 0xC0, 0xE0, 0x0F
OPENSM = "opensm-vhcad"
NOBODY = "f" * 16


class Problem(Exception):
    """A line that does not come out as it says."""


def until(condition, what):
    end = time.monotonic() + AWAIT_S
    while not condition():
        if time.monotonic() > end:
            raise Problem(f"not within {AWAIT_S} s: {what()}")
        time.sleep(0.05)


def run(*argv):
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)


class Vf:
    """A VF's config space, as its driver in a guest uses it."""

    def __init__(self, number):
        self.number = number
        self.path = PCI / f"virtfn{number - 1}"

    def get(self, offset):
        with open(self.path / "config", "rb") as f:
            return f.read(64)[offset]

    def set(self, offset, value):
        fd = os.open(self.path / "config", os.O_WRONLY)
        try:
            os.pwrite(fd, bytes([value]), offset)
        finally:
            os.close(fd)

    def active(self):
        words = next(line.split() for line in (CONTROL / "state").read_text().splitlines() if line.startswith(f"vf {self.number} "))
        return words[words.index("active") + 1] == "1"

    def start(self):
        count = (self.get(REGISTER) + 1) & COUNT
        self.set(REGISTER, RESET | count)
        self.set(COMMAND, self.get(COMMAND) | MASTER)
        until(lambda: self.get(REGISTER) == ANSWER | count, lambda: f"answer to the reset of VF {self.number}")
        self.set(REGISTER, RUNNING | count)
        until(self.active, lambda: f"VF {self.number} to be active")

    def stop(self):
        self.set(REGISTER, 0)
        self.set(COMMAND, self.get(COMMAND) & ~MASTER)
        until(lambda: not self.active(), lambda: f"VF {self.number} not to be active")


class Model:
    """The adapter."""

    def __init__(self):
        self.changed = {}  # file: what to write to put it back
        self.keys = set()

    @staticmethod
    def iov():
        (device,) = os.listdir(PCI / "infiniband")
        return pathlib.Path("/sys/class/infiniband", device, "iov")

    def path(self, word):
        if word.startswith("{"):
            number, _, rest = word[1:].partition("}")
            word = f"{PF[:8]}{int(number) // 8:02d}.{int(number) % 8}{rest}"
        return word

    def read(self, word):
        try:
            return (self.iov() / self.path(word)).read_text().removesuffix("\n")
        except OSError as e:
            return errno.errorcode[e.errno]

    def write(self, word, text):
        path = self.path(word)
        try:
            fd = os.open(self.iov() / path, os.O_WRONLY)
        except OSError as e:
            return errno.errorcode[e.errno]
        try:
            os.write(fd, f"{text}\n".encode())
        except OSError as e:
            return errno.errorcode[e.errno]
        finally:
            os.close(fd)
        if "/pkey_idx/" in path:
            self.changed[path] = "0" if path.endswith("/pkey_idx/0") else "none"
        elif "/admin_guids/" in path and not path.endswith("/0"):
            self.changed[path] = NOBODY
        return "ok"

    def begin(self):
        for port, index in self.keys:
            (CONTROL / "ctl").write_text(f"pkey {index} 0 {port}\n")
        for path, text in list(self.changed.items()):
            self.write(path, text)
            if "/admin_guids/" in path:
                gid = path.replace("admin_guids", "gids")
                until(lambda g=gid: guid_in(self.read(g)) == 0, lambda g=gid: f"{g} to be empty")
        self.changed.clear()
        self.keys.clear()

    def event(self, words):
        what, *rest = words
        if what == "sm":
            run("systemctl", "kill", "-s", "CONT" if rest == ["on"] else "STOP", OPENSM)
        elif what == "key":
            port, index, value = rest
            self.keys.add((port, index))
            (CONTROL / "ctl").write_text(f"pkey {index} {value} {port}\n")
        elif what == "reload":
            self.reload()
        elif what == "flr":
            (Vf(int(rest[0])).path / "reset").write_text("1\n")
        elif what in ("start", "stop"):
            getattr(Vf(int(rest[0])), what)()
        else:
            raise Problem(f"no event '{what}'")

    def reload(self):
        run("systemctl", "stop", OPENSM)
        run("modprobe", "-r", "mlx4_ib")
        run("modprobe", "mlx4_ib")
        run("systemctl", "start", OPENSM)
        until(lambda: (PCI / "infiniband").exists() and (self.iov() / "ports/1/mcgs").exists(), lambda: "iov/ after the reload")
        time.sleep(0.5)  # maps are reset some time after the files are there, without an event

    def give(self, number, port, guid, keys):
        entries = {}
        for index in range(127):
            entries.setdefault(int(self.read(f"ports/{port}/pkeys/{index}"), 16), index)
        for index in range(127):
            text = entries[keys[index]] if index < len(keys) else "none"
            self.expect_ok(f"{{{number}}}/ports/{port}/pkey_idx/{index}", text)
        self.expect_ok(f"ports/{port}/admin_guids/{number}", guid)

    def expect_ok(self, word, text):
        found = self.write(word, text)
        if found != "ok":
            raise Problem(f"write {word} {text}: {found}")


def guid_in(text):
    return int("".join(text.split(":")[-4:]), 16)


def play(model, words):
    verb, *rest = words
    if verb == "read":
        path, _, pattern = rest
        if not fnmatch.fnmatchcase(model.read(path), pattern):
            raise Problem(f"found {model.read(path)}")
    elif verb == "await":
        path, _, pattern = rest
        until(lambda: fnmatch.fnmatchcase(model.read(path), pattern), lambda: f"it is {model.read(path)}")
    elif verb == "write":
        path, text, _, result = rest
        found = model.write(path, "" if text == '""' else text)
        if found != result:
            raise Problem(f"found {found}")
    elif verb == "agree":
        a, b = rest
        until(lambda: 0 != guid_in(model.read(a)) == guid_in(model.read(b)), lambda: f"they are {model.read(a)} and {model.read(b)}")
    elif verb == "give":
        model.give(rest[0], rest[1], rest[2], [int(key, 16) for key in rest[3:]])
    elif verb == "take":
        model.give(rest[0], rest[1], NOBODY, [])
    elif verb == "event":
        model.event(rest)
    else:
        raise Problem(f"no verb '{verb}'")


def main():
    model, played, skipping = Model(), 0, False
    for number, line in enumerate(pathlib.Path(SCRIPT).read_text().splitlines(), 1):
        words = line.partition(" #")[0].split()
        if not words or words[0].startswith("#"):
            continue
        try:
            if words[0].startswith("["):
                model.begin()
                skipping = False
            elif words[0] == "not":
                skipping |= words[1] == "simhca:"
            elif not skipping:
                play(model, words)
                played += 1
        except (Problem, OSError, ValueError) as e:
            print(f"line {number}: {' '.join(words)}: {e}")
            return 1
    print(f"{played} lines")
    return 0


sys.exit(main())
