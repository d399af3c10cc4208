# SPDX-License-Identifier: LGPL-2.1-or-later
"""The journal's end of a program's log: what it sends to /run/systemd/journal/socket, of which each test has its own."""

import contextlib
import ctypes
import os
import pathlib
import re
import socket

import fabric

MS_BIND = 0x1000
IDS = {name.lower(): value for name, value in re.findall(
    r'#define VHCA_MESSAGE_(\w+) +"(\w+)"', pathlib.Path(os.environ["VHCA_SOURCE_DIR"], "common/base/message_ids.h").read_text("utf-8"))}


class Journal:
    def __init__(self, where):
        self.run = f"{where}/journal-run"
        os.makedirs(f"{self.run}/systemd/journal")
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(f"{self.run}/systemd/journal/socket")
        self.socket.setblocking(False)
        self.all = []

    def close(self):
        self.socket.close()

    @staticmethod
    def environment(log):
        """Of a program whose stderr that file is: as if it were the journal's."""
        st = os.fstat(log.fileno())
        return {"JOURNAL_STREAM": f"{st.st_dev}:{st.st_ino}"}

    def prepare(self):
        """In a process that is about to begin: its /run has this one."""
        for done in (fabric.LIBC.unshare(fabric.CLONE_NEWNS), fabric.LIBC.mount(b"none", b"/", None, fabric.MS_REC | fabric.MS_PRIVATE, None),
                     fabric.LIBC.mount(self.run.encode(), b"/run", None, MS_BIND, None)):
            if done != 0:
                raise OSError(ctypes.get_errno(), self.run)

    def entries(self, kind):
        """Those that have come so far with that MESSAGE_ID, {field: value} of each."""
        with contextlib.suppress(BlockingIOError):
            while True:
                lines = self.socket.recv(65536).decode().splitlines()
                self.all.append(dict(line.split("=", 1) for line in lines))
        return [entry for entry in self.all if entry["MESSAGE_ID"] == IDS[kind]]
