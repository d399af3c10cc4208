# SPDX-License-Identifier: LGPL-2.1-or-later
"""A storm of agents at one OpenSM: they all register, then VMs move as fast as that is accepted, while OpenSM sweeps."""

import concurrent.futures
import contextlib
import json
import os
import random
import subprocess
import time

import fabric
import fattree


def percentile(values, percent):
    return sorted(values)[min(len(values) - 1, len(values) * percent // 100)]


class Outcome:
    """Of one phase: so many were done in so many seconds, each took so long."""

    def __init__(self, us, seconds, delayed=0, wrong=0):
        self.n, self.seconds, self.delayed, self.wrong = len(us), seconds, delayed, wrong
        self.p50, self.p99, self.worst = (percentile(us, p) / 1000 for p in (50, 99, 100))

    @property
    def rate(self):
        return self.n / self.seconds

    def __str__(self):
        return (f"{self.n:6} in {self.seconds:6.1f} s = {self.rate:7.0f}/s, p50 {self.p50:8.1f} ms, p99 {self.p99:8.1f} ms, longest {self.worst:8.1f} ms, "
                f"{self.delayed} delayed, {self.wrong} wrong")


class Sweeps(fattree.Sweeps):
    """And how long each takes."""

    def __init__(self, sm):
        super().__init__(sm)
        self.seconds = []

    def sweep(self):
        start = time.monotonic()
        while True:
            # All agents have one address: above its share of connections, the next one takes the place of one that was not heard yet.
            with contextlib.suppress(ConnectionResetError):
                super().sweep()
                break
        self.seconds.append(time.monotonic() - start)


class Agents:
    """So many agents, in some processes of storm_agents.c."""

    def __init__(self, program, url, count, vfs, hosts, processes=2):
        share = [count // processes + (i < count % processes) for i in range(processes)]
        self.count, self.bindings = count, count * vfs
        self.children = [subprocess.Popen([program, url, str(sum(share[:i])), str(n), str(vfs), str(hosts)], stdin=subprocess.PIPE,
                                          stdout=subprocess.PIPE, text=True) for i, n in enumerate(share)]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for child in self.children:
            child.stdin.close()
            child.wait(timeout=60)
            child.stdout.close()

    def _ask(self, lines):
        for child, line in zip(self.children, lines):
            child.stdin.write(line + "\n")
            child.stdin.flush()
        with concurrent.futures.ThreadPoolExecutor(len(self.children)) as pool:    # a pipe holds less than an answer
            return [json.loads(text) for text in pool.map(lambda child: child.stdout.readline(), self.children)]

    def run(self, command, n, window):
        """Outcome of a phase of storm_agents.c; n and window are shared by the processes."""
        k, start = len(self.children), time.monotonic()
        lines = [f"{command} {n // k + (i < n % k)} {min(window, self.count) // k}" for i in range(k)]
        answers = self._ask(lines)
        seconds = time.monotonic() - start
        return Outcome([us for a in answers for us in a["us"]], seconds, sum(a["delayed"] for a in answers), sum(a["wrong"] for a in answers))

    def state(self):
        """{vguid: (epoch, port GUID, GID index)} as the agents have it."""
        return {vguid: tuple(rest) for part in self._ask(["state"] * len(self.children)) for vguid, *rest in part}


def memory(sm, which):
    with open(f"/proc/{sm.process.pid}/status") as f:
        return next(int(line.split()[1]) for line in f if line.startswith(which)) * 1024


def rss(sm):
    """Resident memory of OpenSM with the plugin, in bytes."""
    return memory(sm, "VmRSS:")


def peak(sm):
    """The most that it has had."""
    return memory(sm, "VmHWM:")


def rows(sm, kind):
    """All of a list of the plugin, page by page."""
    found, after = [], ""
    while True:
        status, page = sm.api.call("GET", f"/v1/{kind}" + after, timeout=60)
        assert status == 200, page
        found += page[kind]
        if not page["next"]:
            return found
        after = f"?after={page['next']}"


def lost(sm, agents):
    """Bindings that the plugin does not have as the agents do: (vguid, wanted, found)."""
    wanted = agents.state()
    found = {row["vguid"]: (row["epoch"], row["port_guid"], row["gid_index"]) for row in rows(sm, "bindings")}
    return [(vguid, wanted.get(vguid), found.get(vguid)) for vguid in wanted.keys() | found.keys() if wanted.get(vguid) != found.get(vguid)]


def strange_ports(tree, sm, hosts):
    """Of these hosts, those whose ports do not hold exactly the keys that the plugin says, beside those of the default partition."""
    said = {row["port_guid"]: set(row["effective"]) for row in rows(sm, "members")}
    usual = {"0x7fff", "0xffff"}
    held = {host: set(tree.pkeys(host).values()) - usual for host in hosts}
    return {host: keys for host, keys in held.items() if keys != said.get(fabric.port_guid(host), set()) - usual}


def settle(sm, timeout):
    """Waits until all that was reported is in effect."""
    fabric.wait_for("all is in effect", lambda: sm.api.call("GET", "/healthz", timeout=timeout)[1]["in_effect"], timeout)


def move_lids(tree, sm, n, at_once=16):
    """n pairs of hosts exchange their LIDs; Outcome, with those not answered "applied" as wrong."""
    lids = fattree.Lids(tree, sm)
    hosts = random.Random(1).sample(sorted(set(lids.of) - {1}), 2 * n)

    def one(pair):
        start = time.monotonic()
        status, answer = lids.put(*pair)
        return (time.monotonic() - start) * 1e6, status == 200 and answer["state"] == "applied"

    start = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
        answers = list(pool.map(one, zip(hosts[::2], hosts[1::2])))
    outcome = Outcome([us for us, _ in answers], time.monotonic() - start, wrong=sum(not ok for _, ok in answers))
    for a, b in zip(hosts[::2], hosts[1::2]):
        lids.of[a], lids.of[b] = lids.of[b], lids.of[a]
    return outcome, lids
