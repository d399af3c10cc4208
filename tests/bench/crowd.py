# SPDX-License-Identifier: LGPL-2.1-or-later
"""Strangers at a door with TLS, each connection from an address of its own (127.1.0.0/16): those that say nothing, those that send a byte a second
of a ClientHello, and those that shake hands with a certificate of another authority and ask something. They are processes that give way to what is measured."""

import multiprocessing
import os
import random
import select
import socket
import ssl
import time

HELLO = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 512
AGAIN = 1    # seconds until one that was thrown out comes again
REQUEST = b"GET /v1/bindings HTTP/1.1\r\nHost: x\r\n\r\n"


def dial(port):
    s = socket.socket()
    s.setblocking(False)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind((f"127.1.{random.randrange(256)}.{random.randrange(1, 255)}", 0))
    s.connect_ex(("127.0.0.1", port))
    return s


def hold(port, number, drips, stop, ret):
    """So many connections; whichever is thrown out comes again. Sends how many there were in all."""
    os.nice(5)
    poll, held, due, tried = select.epoll(), {}, [time.monotonic() + AGAIN * i / number for i in range(number)], 0
    next_drip = time.monotonic() + 1
    while not stop.is_set():
        now = time.monotonic()
        while due and due[0] <= now:
            due.pop(0)
            s, tried = dial(port), tried + 1
            held[s.fileno()] = [s, 0]
            poll.register(s, select.EPOLLIN | select.EPOLLRDHUP)
        if drips and now >= next_drip:
            next_drip += 1
            for row in held.values():
                try:
                    row[1] += row[0].send(HELLO[row[1]:row[1] + 1])
                except OSError:
                    pass    # is not accepted yet, or over: the poll says so
        for fd, _ in poll.poll(0.02):
            held.pop(fd)[0].close()
            due.append(now + AGAIN)
    ret.send(tried)


def shake(port, rate, files, stop, ret):
    """So many handshakes a second. Sends how many were done, of how many."""
    os.nice(5)
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.load_cert_chain(f"{files}/stranger.pem", f"{files}/stranger.key")
    poll, under_way, begun, tried, done = select.epoll(), {}, time.monotonic(), 0, 0
    while not stop.is_set():
        while tried < (time.monotonic() - begun) * rate and len(under_way) < 2 * rate:
            s = context.wrap_socket(dial(port), do_handshake_on_connect=False)
            tried += 1
            under_way[s.fileno()] = s
            poll.register(s, select.EPOLLOUT)
        for fd, _ in poll.poll(0.002):
            s = under_way[fd]
            try:
                s.do_handshake()
                s.send(REQUEST)
                done += 1
            except ssl.SSLWantReadError:
                poll.modify(s, select.EPOLLIN | select.EPOLLRDHUP)
                continue
            except OSError:
                pass
            under_way.pop(fd).close()
    ret.send((done, tried, time.monotonic() - begun))


class Crowd:
    """with Crowd(port, files) as crowd: ...; afterwards tried and shaken say what there was."""

    def __init__(self, port, files, idle=2000, dripping=200, rate=500):
        self.stop, self.parts = multiprocessing.Event(), []
        for target, args in ((hold, (port, idle, False)), (hold, (port, dripping, True)), (shake, (port, rate, files))):
            ours, theirs = multiprocessing.Pipe()
            self.parts.append((multiprocessing.Process(target=target, args=(*args, self.stop, theirs), daemon=True), ours))

    def __enter__(self):
        for process, _ in self.parts:
            process.start()
        time.sleep(2 * AGAIN)
        return self

    def __exit__(self, *_):
        self.stop.set()
        said = [ours.recv() for _, ours in self.parts]
        for process, _ in self.parts:
            process.join()
        self.tried = said[0] + said[1]
        self.shaken, self.shakes_tried, self.seconds = said[2]
