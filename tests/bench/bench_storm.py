#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""tests/bench/bench_storm.py [--own-ports] BUILD [AGENTS [MOVES [LID_MOVES]]]: all agents of the largest subnet at one OpenSM at once.

2891 agents with 16 VFs each are the vSwitch paper's limit: 46256 VMs. There each VM takes a LID; here LIDs are the hosts', as on a shared port, so it is a limit of
reports, not of LIDs. Real OpenSM (ftree) with the plugin on ibsim, in a fat-tree of two levels with 324 hosts: some nine agents share a port. With --own-ports one of three
levels with 2916 hosts, one for each. The agents register their bindings and members, then 1000 VMs move as fast as that is accepted, then (some) pairs of hosts
exchange LIDs, while one heavy sweep follows the other. In the end OpenSM is killed (-9) and started again. The agents are production outboxes and HTTP clients
(tests/integration/storm_agents.c), plain HTTP; libumad2sim leaves OpenSM less than 1024 descriptors, so that only 768 connections are open at a time: the others wait.

BUILD is a release build directory. Exit 1 if anything is lost, refused or in the wrong place, or if another bound is broken.
"""

import random
import sys

import fabric
import figures
import fattree
import storm

VFS, WINDOW = 16, 64
AT_ONCE = 96    # agents that register; each opens up to 8 connections
LIMITS = ("-N", "14000", "-S", "2000", "-P", "90000", "-L", "49152")
PHASES = ("register", "GET /healthz", "moves", "LIDs")
TIMES = ("after the storm", "after kill -9")


def bounds(bindings):
    """A move is two requests and waits for two writes to the disk; OpenSM itself may grow by 16 MiB."""
    right = [f"{phase}, wrong answers" for phase in PHASES] + ["LIDs in the wrong place"]
    right += [f"{what}, {when}" for when in TIMES for what in ("bindings lost", "ports with other keys")]
    most = {f"memory, {when}, a binding": f"value <= {4 + (16 << 10) / bindings:.3g}" for when in ("all agents registered", "after the storm")}
    return {name: "value == 0" for name in right} | most | {"moves, each": "ratio <= 50", "moves, p99": "ratio <= 2"}


def memory(sm, before, agents, when, ret):
    """OpenSM's resident memory, and what of it is not without agents."""
    now = storm.rss(sm)
    ret.add(f"memory, {when}", now / 2**20, "MiB", "memory, no agents", before / 2**20)
    ret.add(f"memory, {when}, a binding", (now - before) / 1024 / agents.bindings, "KiB")


def phase(name, sm, run, ret):
    """Runs it while OpenSM sweeps; (outcome, seconds of the longest sweep)."""
    cpu = sm.cpu_seconds()
    with storm.Sweeps(sm) as sweeps:
        outcome = run()
    longest = max(sweeps.seconds)
    print(f"{name:10} {outcome}; OpenSM's processor {sm.cpu_seconds() - cpu:.1f} s, {len(sweeps.seconds)} heavy sweeps, the longest {longest:.1f} s", flush=True)
    ret.add(f"{name}, wrong answers", outcome.wrong)
    return outcome, longest


def look(tree, sm, agents, when, ret):
    lost = storm.lost(sm, agents)
    storm.settle(sm, 600)
    strange = storm.strange_ports(tree, sm, random.Random(1).sample(range(2, tree.hosts + 1), 20))
    if lost or strange:
        print(f"{when}: lost {lost[:3]}, other keys {strange}", flush=True)
    ret.add(f"bindings lost, {when}", len(lost))
    ret.add(f"ports with other keys, {when}", len(strange))


def speed(name, outcome, longest, ret, of=None, base=None):
    """How long each of a phase took, all in all and at worst."""
    ret.add(f"{name}, each", 1000 / outcome.rate, "ms", of, base and 1000 / base.rate)
    ret.add(f"{name}, p50", outcome.p50, "ms", "longest heavy sweep meanwhile", longest * 1000)
    ret.add(f"{name}, p99", outcome.p99, "ms", "longest heavy sweep meanwhile", longest * 1000)


def exchange(tree, sm, lid_moves, ret):
    """LIDs change places; 0 in the wrong place."""
    found = []
    phase("LIDs", sm, lambda: found.append(storm.move_lids(tree, sm, lid_moves)) or found[0][0], ret)
    lids = found[0][1]
    ret.add("LIDs in the wrong place", len(lids.of.items() ^ lids.guid2lid().items()))


def measure(tree, sm, agents, moves, lid_moves, ret):
    before = storm.rss(sm)
    ret.add("memory, no agents", before / 2**20, "MiB")
    registered, longest = phase("register", sm, lambda: agents.run("register", agents.count, AT_ONCE), ret)
    speed("register", registered, longest, ret)
    memory(sm, before, agents, "all agents registered", ret)
    bare, _ = phase("GET /healthz", sm, lambda: agents.run("bare", moves, WINDOW), ret)
    moved, longest = phase("moves", sm, lambda: agents.run("moves", moves, WINDOW), ret)
    speed("moves", moved, longest, ret, "GET /healthz, each", bare)
    exchange(tree, sm, lid_moves, ret)
    look(tree, sm, agents, TIMES[0], ret)
    memory(sm, before, agents, "after the storm", ret)
    sm.kill()
    sm.start(timeout=3600)
    look(tree, sm, agents, TIMES[1], ret)


def main():
    parser = figures.parser(__doc__)
    parser.add_argument("agents", metavar="AGENTS", type=figures.count, nargs="?", default=2891)
    parser.add_argument("moves", metavar="MOVES", type=figures.count, nargs="?", default=1000)
    parser.add_argument("lid_moves", metavar="LID_MOVES", type=figures.count, nargs="?", default=100)
    parser.add_argument("--own-ports", action="store_true", help="2916 hosts: one for each agent")
    args = figures.parse_plugin(parser)
    tree = fattree.FatTree(18, 18, 18, pods=9 if args.own_ports else 0, options=LIMITS)
    ret = figures.Figures("storm-own-ports" if args.own_ports else "storm", bounds(args.agents * VFS))
    address = f"127.0.0.1:{fabric.free_port()}"
    print(f"{args.agents} agents x {VFS} VFs = {args.agents * VFS} bindings at {tree.hosts - 1} hosts, {tree.switches} switches", flush=True)
    try:
        sm = tree.manager(opensm_conf="routing_engine ftree\nlog_flags 0x03", listen=address, counter=args.build / "tests/integration/libsmpcount.so")
        sm.start(timeout=3600)
        with storm.Agents(args.build / "tests/integration/storm_agents", f"http://{address}", args.agents, VFS, tree.hosts) as agents:
            measure(tree, sm, agents, args.moves, min(args.lid_moves, tree.hosts // 2 - 1), ret)
        sm.stop(timeout=600)
    finally:
        tree.close()
    return ret.end()


if __name__ == "__main__":
    sys.exit(main())
