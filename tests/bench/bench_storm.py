#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""tests/bench/bench_storm.py [--own-ports] BUILD [AGENTS [MOVES [LID_MOVES]]]: all agents of the largest subnet at one OpenSM at once.

2891 agents with 16 VFs each are the vSwitch paper's limit: 46256 VMs. There each VM takes a LID; here LIDs are the hosts', as on a shared port, so it is a limit of
reports, not of LIDs. Real OpenSM (ftree) with the plugin on ibsim, in a fat-tree of two levels with 324 hosts: some nine agents share a port. With --own-ports one of three
levels with 2916 hosts, one for each. The agents register their bindings and members, then 1000 VMs move as fast as that is accepted, then (some) pairs of hosts
exchange LIDs, while one heavy sweep follows the other. In the end OpenSM is killed (-9) and started again. The agents are production outboxes and HTTP clients
(tests/integration/storm_agents.c), plain HTTP; libumad2sim leaves OpenSM less than 1024 descriptors, so that only 768 connections are open at a time: the others wait.

BUILD is a release build directory. Exit 1 if anything is lost, refused or in the wrong place, or if one of the bounds below is missed.
"""

import pathlib
import random
import sys

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/integration"))

import bench_args  # noqa: E402
import fattree  # noqa: E402
import storm  # noqa: E402

VFS, WINDOW = 16, 64
AT_ONCE = 96    # agents that register; each opens up to 8 connections
LIMITS = ("-N", "14000", "-S", "2000", "-P", "90000", "-L", "49152")
BYTES, BYTES_PER_BINDING = 16 << 20, 4096    # of OpenSM's resident memory, more than without agents: at all, and for each binding
SLOWER = 50                 # moves a second, beside GET /healthz a second; a move is two requests and waits for two writes to the disk
P99_SWEEPS = 2              # a move takes no longer than so many of the longest sweep of this run

failed = []


def check(ok, what):
    if not ok:
        failed.append(what)
        print(f"FAILED: {what}", flush=True)


def memory(sm, before, agents, when):
    now = storm.rss(sm)
    most = BYTES + BYTES_PER_BINDING * agents.bindings
    print(f"resident memory of OpenSM {when}: {now / 2**20:.0f} MiB, without agents {before / 2**20:.0f} MiB: {(now - before) / agents.bindings:.0f} bytes a binding "
          f"(at most {most / 2**20:.0f} MiB more)", flush=True)
    check(now - before <= most, f"memory {when}")


def phase(name, sm, run):
    """Runs it while OpenSM sweeps; (outcome, seconds of the longest sweep)."""
    cpu = sm.cpu_seconds()
    with storm.Sweeps(sm) as sweeps:
        outcome = run()
    longest = max(sweeps.seconds)
    print(f"{name:10} {outcome}; OpenSM's processor {sm.cpu_seconds() - cpu:.1f} s, {len(sweeps.seconds)} heavy sweeps, the longest {longest:.1f} s", flush=True)
    check(outcome.wrong == 0, f"{name}: {outcome.wrong} wrong")
    return outcome, longest


def look(tree, sm, agents, when):
    lost = storm.lost(sm, agents)
    check(not lost, f"{when}: {len(lost)} of {agents.bindings} bindings lost: {lost[:3]}")
    storm.settle(sm, 600)
    strange = storm.strange_ports(tree, sm, random.Random(1).sample(range(2, tree.hosts + 1), 20))
    check(not strange, f"{when}: ports with other keys than they should have: {strange}")
    print(f"{when}: {len(lost)} of {agents.bindings} bindings differ from what the agents know; of 20 ports {len(strange)} have other keys than they need", flush=True)


def measure(tree, sm, agents, moves, lid_moves):
    before = storm.rss(sm)
    phase("register", sm, lambda: agents.run("register", agents.count, AT_ONCE))
    memory(sm, before, agents, "with all agents")
    bare, _ = phase("bare GET", sm, lambda: agents.run("bare", moves, WINDOW))
    moved, longest = phase("moves", sm, lambda: agents.run("moves", moves, WINDOW))
    print(f"GET /healthz : moves, a second: {bare.rate / moved.rate:.1f} (at most {SLOWER}); p99 of a move : longest sweep {moved.p99 / 1000 / longest:.2f} (at most {P99_SWEEPS})")
    check(bare.rate / moved.rate <= SLOWER, "moves a second")
    check(moved.p99 / 1000 / longest <= P99_SWEEPS, "p99 of moves")
    exchanged = {}
    phase("LIDs", sm, lambda: exchanged.setdefault("outcome", storm.move_lids(tree, sm, lid_moves))[0])
    check(exchanged["outcome"][1].guid2lid() == exchanged["outcome"][1].of, "LIDs are not where they were moved to")
    look(tree, sm, agents, "after the storm")
    memory(sm, before, agents, "after the storm")
    sm.kill()
    sm.start(timeout=3600)
    look(tree, sm, agents, "after kill -9")


def main():
    parser = bench_args.parser(__doc__)
    parser.add_argument("agents", metavar="AGENTS", type=bench_args.count, nargs="?", default=2891)
    parser.add_argument("moves", metavar="MOVES", type=bench_args.count, nargs="?", default=1000)
    parser.add_argument("lid_moves", metavar="LID_MOVES", type=bench_args.count, nargs="?", default=100)
    parser.add_argument("--own-ports", action="store_true", help="2916 hosts: one for each agent")
    args = bench_args.parse(parser)
    tree = fattree.FatTree(18, 18, 18, pods=9 if args.own_ports else 0, options=LIMITS)
    address = f"127.0.0.1:{storm.free_port()}"
    print(f"{args.agents} agents x {VFS} VFs = {args.agents * VFS} bindings at {tree.hosts - 1} hosts, {tree.switches} switches", flush=True)
    try:
        sm = tree.manager(opensm_conf="routing_engine ftree\nlog_flags 0x03", listen=address, counter=args.build / "tests/integration/libsmpcount.so")
        sm.start(timeout=3600)
        with storm.Agents(args.build / "tests/integration/storm_agents", f"http://{address}", args.agents, VFS, tree.hosts) as agents:
            measure(tree, sm, agents, args.moves, min(args.lid_moves, tree.hosts // 2 - 1))
        sm.stop(timeout=600)
    finally:
        tree.close()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
