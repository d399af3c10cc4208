#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""tests/bench/bench_doors.py BUILD [SECONDS]: what those who may ask wait for while strangers crowd the doors of vhcad and the plugin.

At vhcad's peer_listen and at the plugin's door, one after the other: 2000 connections that say nothing, 200 that send a byte a second, 500 handshakes a second with
a certificate of another authority (tests/bench/crowd.py); in less than ten seconds a tenth of that, for on a machine that does much else nobody gets through such
a crowd in time. Meanwhile root asks vhcad for its node, the hook for a domain of ours and a peer for a claim, each on
a connection of its own; an agent reports to the plugin, a real OpenSM on ibsim. Before that, what 20 that send a byte a second cost the program, alone.
BUILD is a release build directory.
"""

import contextlib
import http.client
import os
import shutil
import socket
import ssl
import statistics
import struct
import subprocess
import sys
import tempfile
import time
import uuid

import crowd
import figures

PAUSE = 0.02
DRIPPING = 20    # so few that they stay until the deadline for handshakes
RATE = 500
ASKED = {"vhcad": ("GET /v1/node", "the hook's answer", "a peer's answer"), "plugin": ("a report",)}
MOST_MS = {"GET /v1/node": 20, "the hook's answer": 5, "a report": 100}
HOOK = f"version 1\nop prepare\nsubop begin\nextra -\nname vm\nuuid {uuid.uuid4()}\nrequest 0\n".encode()


CROWD = {"idle": 2000, "dripping": 200, "rate": RATE}
SHORT = 10    # in less, as a test, no more is asked of a callback than what vhcad itself tells of, 50 ms; and that it is quiet beside slow senders
LONG = 60    # seconds at each door that the times below are promised for, on a machine that does nothing else


def bounds(seconds):
    """In less, only what no machine decides."""
    slow = {f"{who}: {what}, p99": f"value <= {MOST_MS[what]}" for who, asked in ASKED.items() for what in asked if what in MOST_MS}
    slow |= {f"{who}: handshakes a second": f"value >= {RATE * 0.9:.0f}" for who in ASKED}
    failed = {f"{who}: {what}, not answered": "value == 0" for who, asked in ASKED.items() for what in asked}
    quiet = {f"{who}: processor beside slow senders": "value <= 5" for who in ASKED}
    if seconds < SHORT:
        return failed | quiet | {"vhcad: longest callback": "value <= 50"}
    return failed | {"vhcad: longest callback": "value <= 10"} | (slow if seconds >= LONG else {})


def context(files):
    ret = ssl.create_default_context(cafile=f"{files}/ca.pem")
    ret.load_cert_chain(f"{files}/client.pem", f"{files}/client.key")
    return ret


def exchange(path, data, enough):
    """One on a unix socket, to its end."""
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(30)
        s.connect(path)
        s.sendall(data)
        answer = b""
        while part := s.recv(65536):
            answer += part
    return enough in answer


def measure(asks, seconds):
    """{what: (seconds of each, how many were not answered)}; at least two of each, as p99() needs."""
    took, failed, until = {what: [] for what in asks}, dict.fromkeys(asks, 0), time.monotonic() + seconds
    while time.monotonic() < until or min(map(len, took.values())) < 2:
        for what, ask in asks.items():
            begun = time.perf_counter()
            try:
                answered = ask()
            except (OSError, http.client.HTTPException):
                answered = False
            took[what].append(time.perf_counter() - begun)
            failed[what] += not answered
        time.sleep(PAUSE)
    return {what: (took[what], failed[what]) for what in asks}


def p99(times):
    return statistics.quantiles(times, n=100)[-1] * 1000


def processor_s(pid):
    """What the process has had."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as f:
        return sum(map(int, f.read().rpartition(")")[2].split()[11:13])) / os.sysconf("SC_CLK_TCK")


def processor_share(pid, port, files, seconds):
    """In percent of one, while some are always in the middle of a handshake."""
    with crowd.Crowd(port, files, idle=0, dripping=DRIPPING, rate=0):
        begun, used = time.monotonic(), processor_s(pid)
        time.sleep(seconds)
        return 100 * (processor_s(pid) - used) / (time.monotonic() - begun)


def compare(who, asks, pid, port, files, seconds, ret):
    alone = measure(asks, max(seconds / 6, 2))
    ret.add(f"{who}: processor beside slow senders", processor_share(pid, port, files, max(seconds / 6, 2)), "%")
    with crowd.Crowd(port, files, **{what: n // (10 if seconds < SHORT else 1) for what, n in CROWD.items()}) as strangers:
        beside = measure(asks, seconds)
    for what in asks:
        ret.add(f"{who}: {what}, p50", statistics.median(beside[what][0]) * 1000, "ms", "without strangers", statistics.median(alone[what][0]) * 1000)
        ret.add(f"{who}: {what}, p99", p99(beside[what][0]), "ms", "without strangers", p99(alone[what][0]))
        ret.add(f"{who}: {what}, not answered", alone[what][1] + beside[what][1])
    ret.add(f"{who}: connections a second", strangers.tried / strangers.seconds)
    ret.add(f"{who}: handshakes a second", strangers.shakes_tried / strangers.seconds)
    ret.add(f"{who}: handshakes done", strangers.shaken)


def ask_tls(port, trust, method, path, body=None, status=200):
    conn = http.client.HTTPSConnection("127.0.0.1", port, timeout=10, context=trust)
    with contextlib.closing(conn):
        conn.request(method, path, body)
        return conn.getresponse().status == status


def crowd_agent(files, seconds, ret):
    from test_agent import Agent, conf_text    # which wants to know where vhcad is
    from fabric import free_port
    port, trust = free_port(), context(files)
    agent = Agent(files)
    agent.write(conf_text(files, f"[api]\npeer_listen = 127.0.0.1:{port}\n[tls]\ncertificate = {files}/server.pem\nkey = {files}/server.key\n"
                          f"ca = {files}/ca.pem\n[peer hva]\nagent = https://localhost:1\nlibvirt = test:///default\n"))
    agent.start()
    try:
        agent.wait(lambda: agent.get("/v1/node")[1]["libvirt"]["synced"])
        node = b"GET /v1/node HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
        asks = {"GET /v1/node": lambda: exchange(f"{files}/run/vhcad.sock", node, b" 200 OK"),
                "the hook's answer": lambda: exchange(f"{files}/run/hook.sock", struct.pack(">I", len(HOOK)) + HOOK, b"pass"),
                "a peer's answer": lambda: ask_tls(port, trust, "GET", f"/v1/peer/claims/{uuid.uuid4()}", status=404)}
        compare("vhcad", asks, agent.process.pid, port, files, seconds, ret)
        ret.add("vhcad: longest callback", agent.get("/v1/node")[1]["loop"]["max_callback_us"] / 1000, "ms")
    finally:
        agent.stop()


class Reporter:
    """An agent: one connection, as long as it lasts, and a state that changes each time."""

    def __init__(self, port, files):
        import fabric
        self.conn, self.epoch, self.port_guid = http.client.HTTPSConnection("127.0.0.1", port, timeout=10, context=context(files)), 0, fabric.port_guid(2)

    def report(self):
        self.epoch += 1
        body = f'{{"epoch": {self.epoch}, "port_guid": "{self.port_guid}", "gid_index": 1, "lid": 0, "pkeys": ["0x8001"]}}'
        for last in (False, True):    # one that was idle may have been ended meanwhile
            try:
                self.conn.request("PUT", "/v1/bindings/0x02c9ab0000000001", body)
                answer = self.conn.getresponse()
                answer.read()
                return answer.status == 200
            except (OSError, http.client.HTTPException):
                self.conn.close()
                if last:
                    raise


def crowd_plugin(files, seconds, ret):
    import fabric
    subnet, port = fabric.Fabric(), fabric.free_port()
    try:
        keys = {"tls_certificate": "server.pem", "tls_key": "server.key", "tls_ca": "ca.pem"}
        sm = subnet.manager(listen=f"127.0.0.1:{port}", conf="[http]\n" + "".join(f"{key} = {files}/{name}\n" for key, name in keys.items()))
        sm.start(wait=False)
        fabric.wait_for("OpenSM is ready", lambda: is_ready(port, files), 60)
        compare("plugin", {"a report": Reporter(port, files).report}, sm.process.pid, port, files, seconds, ret)
        sm.stop()
    finally:
        subnet.close()


def is_ready(port, files):
    try:
        return ask_tls(port, context(files), "GET", "/readyz")
    except OSError:
        return False


def main():
    parser = figures.parser(__doc__)
    parser.add_argument("seconds", metavar="SECONDS", type=figures.count, nargs="?", default=LONG, help="at each door")
    args = figures.parse_plugin(parser)
    os.environ["VHCAD"] = str(args.build / "agent/vhcad")
    ret = figures.Figures("doors", bounds(args.seconds))
    files = tempfile.mkdtemp(prefix="vhca-doors.")
    try:
        subprocess.run([args.build / "tests/integration/make_certs", files], check=True, timeout=60)
        crowd_agent(files, args.seconds, ret)
        crowd_plugin(files, args.seconds, ret)
    finally:
        shutil.rmtree(files)
    return ret.end()


if __name__ == "__main__":
    sys.exit(main())
