#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""apiwatch.py SOCKET PATH...: asks the agent for each PATH in turn, fifty times a second, and notes how long each answer takes.

Prints a line for each answer: the second at which it was asked for, milliseconds until it was complete, status, path; status 0 means
that there was none. Ends at SIGTERM.
"""

import socket
import sys
import time

PAUSE_S = 0.02
PATIENCE_S = 60  # a request that the agent holds is a finding, so it is waited for


def ask(address, path):
    """Status of the answer, which is read to its end; 0 without one."""
    answer = b""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as s:
            s.settimeout(PATIENCE_S)
            s.connect(address)
            s.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
            while part := s.recv(65536):
                answer += part
    except OSError:
        return 0
    words = answer.split(b" ", 2)
    return int(words[1]) if len(words) == 3 else 0


def watch(address, paths):
    while True:
        for path in paths:
            asked, before = time.time(), time.monotonic()
            status = ask(address, path)
            print(f"{asked:.3f} {(time.monotonic() - before) * 1e3:.1f} {status} {path}", flush=True)
            time.sleep(PAUSE_S)


watch(sys.argv[1], sys.argv[2:])
