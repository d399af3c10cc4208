#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""tests/bench/bench_vswitch.py BUILD [NODES...]: what a moved LID costs, beside what OpenSM's own way costs, on the paper's four fat-trees.

BUILD is a build directory (without sanitizers, if times matter); NODES are of 324 648 5832 11664, and vports,
which are hypervisors that are switches, with VFs that have ports of their own; default 324 648 vports. Real OpenSM (ftree) on ibsim. SMPs are counted outside of OpenSM
(tests/integration/preload/smpcount.c). "heavy sweep" is one on a subnet that is up: what OpenSM itself needs
before it sends a single changed block. Times are the plugin's, from the first SMP to the last answer,
and beside them those of who has asked for the move ("for a caller", with its HTTP and fsync) and the lower bound of the same run: as many LFT SMPs by a bare loop
over umad with OpenSM's window (bench_lft.c). Of a sweep, wall clock. "best" is a pair inside a leaf whose LIDs share a block, "worst" one of other
pods; each pair is moved there in one mode and back in the other. In the end moves in up to 36 leaves,
asked for together and one after the other, and keys that one port after the other gets: wall clock, as
a client sees it. Of the vports: VMs that go to another hypervisor and take their port along, with a key and without,
and vGUIDs that get a dynamic LID, take it to another hypervisor and give it back, one by one; then guests of all hypervisors that start at once, and get a dynamic LID each. Exit 1 if a bound is broken: the paper's SMPs exactly, times far from what is usual.
"""

import argparse
import json
import random
import statistics
import subprocess
import sys
import time

import figures
import fabric
import fattree
import vswitches

# nodes: pods, leaves a pod, hosts a leaf, spines (of a pod), table I: LIDs, first sweep, best, worst
TREES = {324: (0, 18, 18, 18, 360, 216, 1, 72), 648: (0, 36, 18, 18, 702, 594, 1, 108),
         5832: (18, 18, 18, 18, 6804, 104004, 1, 1944), 11664: (36, 18, 18, 18, 13284, 336960, 1, 3240)}
LIMITS = ("-N", "14000", "-S", "2000", "-P", "90000", "-L", "49152")
ROUNDS = 20
WINDOW = 4    # max_wire_smps of OpenSM
LEAVES = 36    # with a move at the same time
VPORTS = "vports"
HYPERVISORS = (18, 18, 18, 4)    # leaves, spines, hypervisors a leaf, VFs of each: 1620 ports of HCAs, 360 switches
STORM = 1000    # guests
SWEEP = "heavy sweep"
MODES = ("deterministic", "skyline")


def vport_bounds():
    """A vport inside a leaf changes the leaf and both hypervisors, in the blocks of its own LID and the other's."""
    slow = dict.fromkeys(("in a leaf", "in a leaf, with a key", "any two", "a dynamic LID, given", "a dynamic LID, moved", "a dynamic LID, freed"), "ratio <= 0.1")
    smps = {"in a leaf, LFT SMPs": "value <= 6", f"{SWEEP} after the moves, LFT SMPs": "value == 0"}
    storm = {f"{STORM} dynamic LIDs at once": "value <= 3000", f"{STORM} dynamic LIDs at once, LFT SMPs": f"value <= {STORM * 36}"}
    return {f"{VPORTS}: {name}": bound for name, bound in (slow | smps | storm).items()}


def bounds(nodes):
    """What has to hold in a tree. SMPs of sweeps and moves are Table I of the paper."""
    if nodes == VPORTS:
        return vport_bounds()
    full, least, most = TREES[nodes][5:]
    exact = {"first sweep, LFT SMPs": full, "best, skyline, LFT SMPs": least, "worst, deterministic, LFT SMPs": most,
             "path computations during the moves": 0, "heavy sweep after the moves, LFT SMPs": 0, "a key, P_Key table SMPs": 1,
             "sweeps while keys were given": 0}
    slow = {f"{kind}, {mode}": "ratio <= 0.1" for kind in ("best", "worst", "in a leaf", "any two") for mode in MODES}
    slow |= {"moves, asked for together": "ratio <= 0.7", "a key": "ratio <= 2"}
    return {f"{nodes}: {name}": bound for name, bound in ({n: f"value == {v}" for n, v in exact.items()} | slow).items()}


def sweep(sm):
    """(SMPs, LFT SMPs, seconds) of a heavy sweep."""
    before, start = sm.smps(), time.monotonic()
    fattree.heavy_sweep(sm, 3600)
    after = sm.smps()
    return after["all"] - before["all"], after["lft"] - before["lft"], time.monotonic() - start


def search(lids, pairs, mode, want):
    """The pair of the plan that costs most (or least) of some hundred; stops at the wanted cost."""
    best = None
    for a, b in pairs:
        cost = lids.put(a, b, mode, plan=True)[1]["smps"]["lft"]
        if cost == want:
            return a, b
        if best is None or abs(cost - want) < abs(best[0] - want):
            best = cost, a, b
    return best[1:]


def move(lids, a, b, mode):
    """(LFT SMPs on the wire, ms, ms for the caller)"""
    before, start = lids.sm.smps(), time.monotonic()
    status, answer = lids.put(a, b, mode)
    waited = time.monotonic() - start
    assert (status, answer.get("state")) == (200, "applied"), answer
    lids.exchanged(a, b)
    return lids.sm.smps()["lft"] - before["lft"], answer["duration_us"] / 1000, waited * 1000


def medians(rows):
    return [statistics.median(column) for column in zip(*rows)]


def to_and_fro(lids, pairs, first, second):
    """Medians of what move() says, in two modes, with the same pairs: there in one, back in the other."""
    rows = [(*move(lids, a, b, first), *move(lids, a, b, second)) for a, b in pairs]
    median = medians(rows)
    return median[:3], median[3:]


class Bare:
    """LFT SMPs from a host that is not the subnet manager's, by a loop that does nothing else."""

    def __init__(self, program, tree):
        self.process = subprocess.Popen([program, str(WINDOW)], cwd=tree.dir, env=tree.env(2), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait(timeout=20)
        self.process.stdout.close()

    def ms(self, n):
        """The median of some rounds."""
        def once():
            self.process.stdin.write(f"{n:.0f}\n")
            self.process.stdin.flush()
            return int(self.process.stdout.readline()) / 1000
        return statistics.median(once() for _ in range(ROUNDS))


def ask(lids, pairs, at_a_time):
    """Seconds until all are answered, so many at a time."""
    start = time.monotonic()
    for i in range(0, len(pairs), at_a_time):
        asked = [(a, b, lids.sm.api.connection(70)) for a, b in pairs[i:i + at_a_time]]
        for a, b, conn in asked:
            conn.request("PUT", f"/v1/lids/{lids.of[a]}", json.dumps({"port_guid": fabric.port_guid(b), "mode": "skyline"}))
        for a, b, conn in asked:
            answer = json.loads(conn.getresponse().read())
            conn.close()
            assert answer["state"] == "applied", answer
            lids.exchanged(a, b)
    return time.monotonic() - start


def together(tree, sm, lids, tell):
    """A move in each of some leaves: medians, all asked for together beside one after the other, in turns."""
    pairs = [(a, a + 1) for a in range(2, tree.hosts, tree.per_leaf)][:LEAVES]
    rows = [(ask(lids, pairs, len(pairs)), ask(lids, pairs, 1)) for _ in range(ROUNDS)]
    all_at_once, in_turn = (statistics.median(column) * 1000 for column in zip(*rows))
    in_turn_name = f"{len(pairs)} moves, one after the other"
    tell(in_turn_name, in_turn, "ms")
    tell("moves, asked for together", all_at_once, "ms", in_turn_name, in_turn)
    tell("moves under way at once", sm.api.call("GET", "/v1/fabric")[1]["moves"]["most_at_once"])


def key(sm, host, pkeys):
    """(P_Key table SMPs, all SMPs, ms until it is in effect) of a port that is to have these keys."""
    before, start = sm.smps(), time.monotonic()
    status, answer = sm.api.declare(host, pkeys)
    assert status == 200, answer
    fabric.wait_for("in effect", lambda: sm.api.call("GET", "/healthz")[1]["in_effect"], 60, 0.001)
    took = time.monotonic() - start
    return *(sm.smps()[kind] - before[kind] for kind in ("pkey_table", "all")), took * 1000


def keys(tree, sm, tell):
    """A key for each of some ports. By an OpenSM that lets no switch enforce partitions: ibsim's switches forget that, and each is told again with each key."""
    sm.stop(timeout=600)
    sm.opensm_conf += "\npart_enforce off"
    sm.start(timeout=3600)
    of = sweep(sm)[2] * 1000
    swept = lambda: sm.api.call("GET", "/v1/fabric")[1]["sweeps"]
    hosts, before = range(2, tree.hosts, tree.hosts // ROUNDS)[:ROUNDS], swept()
    smps, all_smps, ms = map(statistics.median, zip(*(key(sm, host, ["0x8001"]) for host in hosts)))
    tell(f"{SWEEP} without enforcement", of, "ms")
    tell("a key", ms, "ms", f"{SWEEP} without enforcement", of)
    tell("a key, P_Key table SMPs", smps)
    tell("a key, all SMPs", all_smps)
    tell("sweeps while keys were given", swept() - before)


def computations(sm):
    """How often OpenSM has computed ways, by its own log."""
    return sm.log().count("tables configured on all switches")


def moves(tree, lids, least, most):
    """{kind: {mode: medians of what move() says}}"""
    rng = random.Random(1)
    near = [(a, b) for a in range(2, tree.per_leaf) for b in range(a + 1, tree.per_leaf + 1)]
    far = [(rng.randrange(2, tree.per_leaf), rng.randrange(tree.hosts * 3 // 4, tree.hosts)) for _ in range(500)]
    first = {"best": ([search(lids, near, "skyline", least)], "skyline"), "worst": ([search(lids, far, "deterministic", most)], "deterministic"),
             "in a leaf": (rng.sample(near, ROUNDS), "skyline"),
             "any two": ([rng.sample(range(2, tree.hosts + 1), 2) for _ in range(ROUNDS)], "deterministic")}
    found = {}
    for kind, (pairs, mode) in first.items():
        back = MODES[1 - MODES.index(mode)]
        found[kind] = dict(zip((mode, back), to_and_fro(lids, pairs, mode, back)))
    return found


def beside_a_bare_loop(bare, name, measured, tell):
    """What of a move's time is the wire's, and what its caller waits for beside that."""
    smps, ms, waited = measured
    least = bare.ms(smps)
    tell(f"{name}, as many LFT SMPs by a bare loop", least, "ms")
    tell(f"{name}, all its SMPs", ms, "ms", "as many LFT SMPs by a bare loop", least)
    tell(f"{name}, for a caller", waited, "ms", f"{name}, all its SMPs", ms)


def measure(tree, sm, paper, bare_loop, tell):
    lids, (full, least, most) = fattree.Lids(tree, sm), paper
    tell("first sweep, LFT SMPs", sm.smps()["lft"])
    computed = max(computations(sm), 1)    # the first sweep's line may be in OpenSM's buffer yet
    found = moves(tree, lids, least, most)
    tell("path computations during the moves", computations(sm) - computed)
    smps, lft, seconds = sweep(sm)
    assert computations(sm), "OpenSM's log has other words for it"
    tell(SWEEP, seconds * 1000, "ms")
    tell(f"{SWEEP}, all SMPs", smps)
    tell(f"{SWEEP} after the moves, LFT SMPs", lft)
    with Bare(bare_loop, tree) as bare:
        for name, measured in {f"{kind}, {mode}": modes[mode] for kind, modes in found.items() for mode in MODES}.items():
            tell(name, measured[1], "ms", SWEEP, seconds * 1000)
            tell(f"{name}, LFT SMPs", measured[0])
            beside_a_bare_loop(bare, name, measured, tell)
    together(tree, sm, lids, tell)
    keys(tree, sm, tell)


def timed(sm, ask):
    """(LFT SMPs on the wire, ms, ms for the caller) of a request that moves a LID."""
    before, start = sm.smps(), time.monotonic()
    status, answer = ask()
    waited = time.monotonic() - start
    assert (status, answer["lid_move"]["state"]) == (200, "applied"), answer
    return sm.smps()["lft"] - before["lft"], answer["lid_move"]["duration_us"] / 1000, waited * 1000


def vport_pairs():
    """{kind: [(vGUID, its keys, from, to)]}: first VFs of hypervisors, each in one pair at most."""
    per_leaf, n = vswitches.PER_LEAF, vswitches.HYPERVISORS
    leaf = [(h, h + 1) for first in range(2, n, per_leaf) for h in range(first, first + per_leaf - 3, 2)]
    rng = random.Random(1)
    rng.shuffle(leaf)
    used = {h for pair in leaf[:2 * ROUNDS] for h in pair}
    free = [h for h in range(2, n + 1) if h not in used]
    rng.shuffle(free)
    kinds = {"in a leaf": (leaf[:ROUNDS], []), "in a leaf, with a key": (leaf[ROUNDS:2 * ROUNDS], ["0x8001"]),
             "any two": (list(zip(free[:ROUNDS], free[ROUNDS:2 * ROUNDS])), [])}
    return {kind: [(f"0x02c9ab{k:02x}0000{a:04x}", keys, a, b) for a, b in pairs] for k, (kind, (pairs, keys)) in enumerate(kinds.items())}


def vport_move(net, sm, vguid, keys, a, b):
    """As the agents have it: announced, then the hardware changes, then it is reported."""
    assert vswitches.move(sm, vguid, 2, (a, 1), (b, 1), "host", pkeys=keys)[0] == 200
    net.exchange((a, 1), (b, 1))
    return timed(sm, lambda: vswitches.move(sm, vguid, 2, (a, 1), (b, 1), pkeys=keys))


def dynamic(epoch, host):
    """What an agent says of a vGUID that is to have a LID of its own."""
    return {"epoch": epoch, "port_guid": fabric.port_guid(host), "gid_index": 0, "pkeys": [], "lid_policy": "dynamic"}


def storm(sm):
    """(LFT SMPs on the wire, seconds until all have their LID), of guests that start at once: each hypervisor has one connection, and asks for the next one's when it has an answer."""
    hosts = range(2, vswitches.HYPERVISORS + 1)
    before, lids = sm.smps()["lft"], set()
    connections = {host: sm.api.connection(70) for host in hosts}
    start = time.monotonic()
    for first in range(0, STORM, len(hosts)):
        guests = list(zip(hosts, range(first, min(STORM, first + len(hosts)))))
        for host, n in guests:
            connections[host].request("PUT", f"/v1/bindings/0x02c9abe0{n:08x}", json.dumps(dynamic(1, host)))
        for host, n in guests:
            answer = json.loads(connections[host].getresponse().read())
            assert answer["lid_move"]["state"] == "applied", answer
            lids.add(answer["lid_move"]["lid"])
    took = time.monotonic() - start
    for connection in connections.values():
        connection.close()
    assert len(lids) == STORM
    return sm.smps()["lft"] - before, took


def dynamic_lids(sm):
    """{what: medians}, of vGUIDs without a port."""
    def ask(vguid, epoch, host):
        return timed(sm, lambda: sm.api.call("PUT", f"/v1/bindings/{vguid}", dynamic(epoch, host), 70))
    vguids = [(f"0x02c9abd0000000{n:02x}", 2 + n, 2 + n + vswitches.PER_LEAF) for n in range(ROUNDS)]
    given = [ask(vguid, 1, a) for vguid, a, _ in vguids]
    moved = [ask(vguid, 2, b) for vguid, _, b in vguids]
    freed = [timed(sm, lambda v=vguid: sm.api.withdraw(v, 2)) for vguid, _, _ in vguids]
    return {"a dynamic LID, given": medians(given), "a dynamic LID, moved": medians(moved), "a dynamic LID, freed": medians(freed)}


def measure_vports(net, sm, pairs, bare_loop, tell):
    for vguid, keys, a, _ in (row for rows in pairs.values() for row in rows):
        assert sm.api.bind(vguid, 1, a, keys, gid_index=0)[0] == 200
    fabric.wait_for("in effect", lambda: sm.api.call("GET", "/healthz")[1]["in_effect"], 60)
    found = {kind: medians(vport_move(net, sm, *row) for row in rows) for kind, rows in pairs.items()} | dynamic_lids(sm)
    fattree.heavy_sweep(sm, 3600)    # the vGUIDs that go give their places to others
    _, lft, seconds = sweep(sm)
    tell(SWEEP, seconds * 1000, "ms")
    tell(f"{SWEEP} after the moves, LFT SMPs", lft)
    with Bare(bare_loop, net) as bare:
        for name, measured in found.items():
            tell(name, measured[1], "ms", SWEEP, seconds * 1000)
            tell(f"{name}, LFT SMPs", measured[0])
            beside_a_bare_loop(bare, name, measured, tell)
    in_turn = f"{STORM} dynamic LIDs one by one, by the median"
    tell(in_turn, found["a dynamic LID, given"][2] * STORM, "ms")
    smps, took = storm(sm)
    tell(f"{STORM} dynamic LIDs at once", took * 1000, "ms", in_turn, found["a dynamic LID, given"][2] * STORM)
    tell(f"{STORM} dynamic LIDs at once, LFT SMPs", smps)


def vports(build, ret):
    """All that is measured of hypervisors that are switches; without enforcement, as keys()."""
    vswitches.resize(*HYPERVISORS)
    net = vswitches.VSwitches(options=LIMITS)
    try:
        pairs = vport_pairs()
        for vguid, _, a, _ in (row for rows in pairs.values() for row in rows):
            net.program(a, 1, vguid)
        sm = net.manager(opensm_conf="routing_engine updn\npart_enforce off", conf=f"[lids]\ndynamic = {STORM + 64}", counter=build / "tests/integration/libsmpcount.so")
        sm.start(timeout=3600)
        measure_vports(net, sm, pairs, build / "tests/bench/bench_lft",
                       lambda name, value, unit="", of=None, base=None: ret.add(f"{VPORTS}: {name}", value, unit, of, base))
        sm.stop(timeout=600)
    finally:
        net.close()


def tree_size(text):
    if text == VPORTS:
        return text
    if not text.isdigit() or int(text) not in TREES:
        raise argparse.ArgumentTypeError(f"{text} is none of {', '.join(map(str, TREES))}, {VPORTS}")
    return int(text)


def one_tree(build, nodes, ret):
    """All that is measured in one tree."""
    pods, leaves, hosts, spines, _, *paper = TREES[nodes]
    tree = fattree.FatTree(leaves, spines, hosts, pods=pods, options=LIMITS)
    try:
        sm = tree.manager(opensm_conf="routing_engine ftree", counter=build / "tests/integration/libsmpcount.so")
        sm.start(timeout=3600)
        measure(tree, sm, paper, build / "tests/bench/bench_lft",
                lambda name, value, unit="", of=None, base=None: ret.add(f"{nodes}: {name}", value, unit, of, base))
        sm.stop(timeout=600)
    finally:
        tree.close()


def main():
    parser = figures.parser(__doc__)
    parser.add_argument("nodes", metavar="NODES", type=tree_size, nargs="*")
    args = figures.parse_plugin(parser)
    trees = args.nodes or (324, 648, VPORTS)
    ret = figures.Figures("vswitch", {k: v for nodes in trees for k, v in bounds(nodes).items()})
    for nodes in trees:
        if nodes == VPORTS:
            vports(args.build, ret)
        else:
            one_tree(args.build, nodes, ret)
    return ret.end()


if __name__ == "__main__":
    sys.exit(main())
