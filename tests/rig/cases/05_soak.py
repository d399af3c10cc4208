# SPDX-License-Identifier: LGPL-2.1-or-later
"""Fifty migrations: two guests with two VFs each go to and fro together, and nothing grows."""

import collections
import pathlib
import re
import sqlite3
import tempfile

from kit.base import say, wait_for
from kit.case import VFS, case, check, equal, free_vfs
from kit.cells import ended
from kit.hypervisors import both
from kit.host import Host
from kit.migration import moving

ROUNDS = 25
LOOK_ROUNDS = 5
WARM_ROUNDS = 4  # libvirt's and the agents' caches are full; an even number: the guests are where they began
RSS_GROWTH = 1.05
KEPT = "migrations"  # the history, which has a limit of its own
MEMORY = """pid=$(systemctl show -P MainPID vhcad)
awk '/^VmRSS/ { print $2 }' /proc/$pid/status
ls -l /proc/$pid/fd | sed -n 's/.* -> //p'
ss -Hnaxtp | sed -n "s/ *users:.*pid=$pid,.*//p" """
GO = """for guest in %s; do vhcactl migrate $guest %s > /run/$guest.log 2>&1 & pids="$pids $!"; done
for pid in $pids; do wait $pid || failed=yes; done
[ ! "$failed" ] || { cat /run/vm*.log; exit 1; }"""


def rows(host):
    """How many rows each table of the agent's journal has, the history left out."""
    code, tar = host.vm.exchange("cd /var/lib/vhcad && cat state.db && echo END-OF-DB && cat state.db-wal")
    equal(code, 0, "reading the journal")
    database, _, log = tar.partition(b"END-OF-DB\n")
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "state.db").write_bytes(database)
        (pathlib.Path(folder) / "state.db-wal").write_bytes(log)
        with sqlite3.connect(f"{folder}/state.db") as db:
            tables = [name for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
            return {t: db.execute(f"SELECT count(*) FROM {t}").fetchone()[0] for t in tables if t != KEPT}


def kind(target):
    """What a descriptor is of, without the numbers that differ each time; the agents' and the plugin's ports are no such."""
    return " ".join(re.sub(r"\b(?!851[45]\b)[0-9]+\b", "N", target).split())


def difference(first, last):
    """What has become more, and what less."""
    return f"more: {dict(last - first)}, less: {dict(first - last)}"


def footprint(name):
    """(RSS in KiB, open descriptors by kind, rows) of an agent at rest."""
    host = Host(name)
    rss, *targets = host.sh(MEMORY).splitlines()
    return int(rss), collections.Counter(map(kind, targets)), rows(host)


def resident(name):
    """RSS of an agent, in KiB."""
    return int(Host(name).sh(MEMORY).splitlines()[0])


def connections(host):
    """Of the agent, over TCP."""
    _, *targets = host.sh(MEMORY).splitlines()
    return [line for line in targets if line.startswith("tcp") and "LISTEN" not in line]


def at_rest(rig):
    def is_at_rest(host):
        states = {vf["state"] for vf in host.agent_vfs().values()}
        return ended(host) and states <= {"free", "attached"} and not host.get("outbox")["outbox"]
    for host in rig.hosts:
        wait_for(lambda h=host: is_at_rest(h), 60, f"{host.name}: no migration, change of a VF or report under way", 0.5)
        wait_for(lambda h=host: not connections(h), 120, f"{host.name}: idle connections of the agent are closed", 1)


def move_all(moves, host):
    """All guests to this host, together."""
    source = moves[0].guest.host
    source.sh(GO % (" ".join(m.guest.name for m in moves), host.name), timeout=300)
    for move in moves:
        move.guest.host = host
        wait_for(lambda m=move: m.identity(host) == m.before, 60, f"{move.guest.name} on {host.name}: {move.before}", 0.5)


@case(long=True)
def fifty_migrations(rig):
    """25 times two guests with two VFs each move together: memory, descriptors and journal of both agents are as after the first rounds."""
    moves = [moving(rig, ("ib0", key), ("ib1", key), number=n, memory=128) for n, key in ((1, "0x8001"), (2, "0x8002"))]
    first, course = None, []
    for number in range(ROUNDS):
        if number == WARM_ROUNDS:
            at_rest(rig)
            first = both(footprint)
        move_all(moves, rig.hva if number % 2 else rig.hvb)
        if number % LOOK_ROUNDS == LOOK_ROUNDS - 1:
            course.append(both(resident))
    at_rest(rig)
    equal(free_vfs(rig.hva), VFS, "free VFs at hva")
    move_all(moves, rig.hva)
    at_rest(rig)
    for name, (rss, descriptors, journal) in both(footprint).items():
        say(f"       {name}: RSS {first[name][0]} -> {rss} KiB, on the way {[look[name] for look in course]}")
        check(rss <= first[name][0] * RSS_GROWTH, f"{name}: RSS has grown")
        check(descriptors == first[name][1], f"{name}: descriptors: {difference(first[name][1], descriptors)}")
        equal(journal, first[name][2], f"{name}: rows")
