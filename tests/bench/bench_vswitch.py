#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""tests/bench/bench_vswitch.py BUILD [NODES...]: what a moved LID costs, beside what OpenSM's own way costs, on the paper's four fat-trees.

BUILD is a build directory (without sanitizers, if times matter); NODES are of 324 648 5832 11664, default 324 648. Real OpenSM (ftree) on ibsim. SMPs are
counted outside of OpenSM (tests/integration/smpcount.c). "heavy sweep" is one on a subnet that is up: what OpenSM itself needs before it
sends a single changed block. Times are the plugin's, from the first SMP to the last answer; of a sweep, wall clock. In the end moves in up to 36 leaves, asked for
together and one after the other, and keys that one port after the other gets: wall clock, as a client sees it. Exit 1 if a figure of the paper is missed, or a key costs a sweep.
"""

import argparse
import json
import pathlib
import random
import statistics
import sys
import time

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/integration"))

import bench_args  # noqa: E402
import fabric  # noqa: E402
import fattree  # noqa: E402

# nodes: pods, leaves a pod, hosts a leaf, spines (of a pod), table I: LIDs, first sweep, best, worst
TREES = {324: (0, 18, 18, 18, 360, 216, 1, 72), 648: (0, 36, 18, 18, 702, 594, 1, 108),
         5832: (18, 18, 18, 18, 6804, 104004, 1, 1944), 11664: (36, 18, 18, 18, 13284, 336960, 1, 3240)}
LIMITS = ("-N", "14000", "-S", "2000", "-P", "90000", "-L", "49152")
ROUNDS = 20
LEAVES = 36    # with a move at the same time


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
    """(LFT SMPs on the wire, ms)"""
    answer, wire = lids.move(a, b, mode)
    assert answer["state"] == "applied", answer
    return wire["lft"], answer["duration_us"] / 1000


def to_and_fro(lids, pairs, first, second):
    """Medians of (LFT SMPs, ms) of moves in two modes, with the same pairs: there in one, back in the other."""
    rows = [(*move(lids, a, b, first), *move(lids, a, b, second)) for a, b in pairs]
    median = [statistics.median(column) for column in zip(*rows)]
    return median[:2], median[2:]


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


def together(tree, sm, lids):
    """A move in each of some leaves: medians, all asked for together beside one after the other, in turns."""
    pairs = [(a, a + 1) for a in range(2, tree.hosts, tree.per_leaf)][:LEAVES]
    before = sm.api.call("GET", "/v1/fabric")[1]["moves"]["together"]
    rows = [(ask(lids, pairs, len(pairs)), ask(lids, pairs, 1)) for _ in range(ROUNDS)]
    seen = sm.api.call("GET", "/v1/fabric")[1]["moves"]
    all_at_once, in_turn = (statistics.median(column) * 1000 for column in zip(*rows))
    print(f"{len(pairs)} moves, each in a leaf of its own, median of {ROUNDS}: asked for together {all_at_once:.1f} ms, one after the other {in_turn:.1f} ms, 1:{in_turn / all_at_once:.1f}; "
          f"at most {seen['most_at_once']} at once, {(seen['together'] - before) / ROUNDS:.1f} of them begun while another was under way\n", flush=True)


def key(sm, host, pkeys):
    """(P_Key table SMPs, all SMPs, ms until it is in effect) of a port that is to have these keys."""
    before, start = sm.smps(), time.monotonic()
    status, answer = sm.api.declare(host, pkeys)
    assert status == 200, answer
    fabric.wait_for("in effect", lambda: sm.api.call("GET", "/healthz")[1]["in_effect"], 60, 0.001)
    took = time.monotonic() - start
    return *(sm.smps()[kind] - before[kind] for kind in ("pkey_table", "all")), took * 1000


def keys(tree, sm):
    """A key for each of some ports. By an OpenSM that lets no switch enforce partitions: ibsim's switches forget that, and each is told again with each key.
    False if that has cost a sweep."""
    sm.stop(timeout=600)
    sm.opensm_conf += "\npart_enforce off"
    sm.start(timeout=3600)
    of = sweep(sm)[2] * 1000
    swept = lambda: sm.api.call("GET", "/v1/fabric")[1]["sweeps"]
    hosts, before = range(2, tree.hosts, tree.hosts // ROUNDS)[:ROUNDS], swept()
    smps, all_smps, ms = map(statistics.median, zip(*(key(sm, host, ["0x8001"]) for host in hosts)))
    print(f"a key at a port, median of {ROUNDS}: {smps:.0f} P_Key table SMP of {all_smps:.0f} SMPs, in effect after {ms:.1f} ms; a heavy sweep without enforcement: {of:.0f} ms, "
          f"1:{of / ms:.0f}\n", flush=True)
    return swept() == before


def computations(sm):
    """How often OpenSM has computed ways, by its own log."""
    return sm.log().count("tables configured on all switches")


def cell(smps, ms, of):
    return f"{smps:7.0f} {ms:8.1f} 1:{of / ms:<7.0f}"


def measure(tree, sm, paper):
    lids, rng = fattree.Lids(tree, sm), random.Random(1)
    lid_count, full, least, most = paper
    first, computed = sm.smps()["lft"], computations(sm)
    near = [(a, b) for a in range(2, tree.per_leaf) for b in range(a + 1, tree.per_leaf + 1)]
    far = [(rng.randrange(2, tree.per_leaf), rng.randrange(tree.hosts * 3 // 4, tree.hosts)) for _ in range(500)]
    best = to_and_fro(lids, [search(lids, near, "skyline", least)], "skyline", "deterministic")
    worst = to_and_fro(lids, [search(lids, far, "deterministic", most)], "deterministic", "skyline")
    leaf = to_and_fro(lids, rng.sample(near, ROUNDS), "skyline", "deterministic")
    any_two = to_and_fro(lids, [rng.sample(range(2, tree.hosts + 1), 2) for _ in range(ROUNDS)], "deterministic", "skyline")
    computed = computations(sm) - computed
    smps, lft, seconds = sweep(sm)
    assert computations(sm), "OpenSM's log has other words for it"
    of = seconds * 1000
    print(f"{tree.hosts} nodes, {tree.switches} switches, {lid_count} LIDs: first sweep {first} LFT SMPs (paper {full}), path computations during the moves {computed}, "
          f"LFT SMPs of a heavy sweep after all these moves {lft}\n"
          f"{'':26}|{'paper':^8}|{'OpenSM heavy sweep':^20}|{'plugin deterministic':^28}|{'plugin skyline':^28}\n"
          f"{'':26}|{'LFT SMPs':^8}|{'all SMPs':>9} {'ms':>8}  |" + f"{'LFT SMPs':>9} {'ms':>8} {'ratio':<9}|" * 2)
    for name, said, (det, sky) in (("best", least, best[::-1]), ("worst", most, worst),
                                   (f"in a leaf, median of {ROUNDS}", "", leaf[::-1]), (f"any two, median of {ROUNDS}", "", any_two)):
        print(f"{name:26}|{said:>7} |{smps:9} {of:8.0f}  | {cell(*det, of)} | {cell(*sky, of)} |")
    print(flush=True)
    together(tree, sm, lids)
    return (first, best[0][0], worst[0][0], computed, lft) == (full, least, most, 0, 0)


def tree_size(text):
    if not text.isdigit() or int(text) not in TREES:
        raise argparse.ArgumentTypeError(f"{text} is none of {', '.join(map(str, TREES))}")
    return int(text)


def main():
    parser = bench_args.parser(__doc__)
    parser.add_argument("nodes", metavar="NODES", type=tree_size, nargs="*")
    args = bench_args.parse(parser)
    right = True
    for nodes in args.nodes or (324, 648):
        pods, leaves, hosts, spines, *paper = TREES[nodes]
        tree = fattree.FatTree(leaves, spines, hosts, pods=pods, options=LIMITS)
        try:
            sm = tree.manager(opensm_conf="routing_engine ftree", counter=args.build / "tests/integration/libsmpcount.so")
            sm.start(timeout=3600)
            right = measure(tree, sm, paper) and keys(tree, sm) and right
            sm.stop(timeout=600)
        finally:
            tree.close()
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
