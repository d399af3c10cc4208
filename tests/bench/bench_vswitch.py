#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""tests/bench/bench_vswitch.py BUILD [NODES...]: what a moved LID costs, beside what OpenSM's own way costs, on the paper's four fat-trees.

BUILD is a build directory (without sanitizers, if times matter); NODES are of 324 648 5832 11664, default 324 648. Real OpenSM (ftree) on ibsim. SMPs are
counted outside of OpenSM (tests/integration/smpcount.c). "heavy sweep" is one on a subnet that is up: what OpenSM itself needs before it
sends a single changed block. Times are the plugin's, from the first SMP to the last answer; of a sweep, wall clock. Exit 1 if a figure of the paper is missed.
"""

import os
import pathlib
import random
import statistics
import sys
import time

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/integration"))

import fattree  # noqa: E402

# nodes: pods, leaves a pod, hosts a leaf, spines (of a pod), table I: LIDs, first sweep, best, worst
TREES = {324: (0, 18, 18, 18, 360, 216, 1, 72), 648: (0, 36, 18, 18, 702, 594, 1, 108),
         5832: (18, 18, 18, 18, 6804, 104004, 1, 1944), 11664: (36, 18, 18, 18, 13284, 336960, 1, 3240)}
LIMITS = ("-N", "14000", "-S", "2000", "-P", "90000", "-L", "49152")
ROUNDS = 20


def sweep(sm):
    """(SMPs, LFT SMPs, seconds) of a heavy sweep."""
    before, start = sm.smps(), time.monotonic()
    fattree.heavy_sweep(sm, 600)
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


def times(lids, pairs, mode):
    """Median (SMPs, ms) of some moves."""
    rows = []
    for a, b in pairs:
        answer, wire = lids.move(a, b, mode)
        assert answer["state"] == "applied", answer
        rows.append((wire["lft"], answer["duration_us"] / 1000))
    return tuple(statistics.median(column) for column in zip(*rows))


def measure(tree, sm, paper):
    lids, rng = fattree.Lids(tree, sm), random.Random(1)
    hosts = range(2, tree.hosts + 1)
    near = [(a, b) for a in range(2, tree.per_leaf) for b in range(a + 1, tree.per_leaf + 1)]
    far = [(rng.randrange(2, tree.per_leaf), rng.randrange(tree.hosts * 3 // 4, tree.hosts)) for _ in range(500)]
    first = sm.smps()["lft"]
    best = lids.move(*search(lids, near, "skyline", 1), "auto")
    worst = lids.move(*search(lids, far, "deterministic", paper[3]), "auto")
    everywhere = [rng.sample(hosts, 2) for _ in range(ROUNDS)]
    det, sky = times(lids, everywhere, "deterministic"), times(lids, rng.sample(near, ROUNDS), "skyline")
    smps, lft, seconds = sweep(sm)
    print(f"{tree.hosts:6} nodes {tree.switches:5} switches: first sweep {first} LFT SMPs (paper {paper[1]}), best {best[1]['lft']} ({paper[2]}), worst "
          f"{worst[1]['lft']} ({paper[3]}, {worst[0]['duration_us'] / 1000:.1f} ms)\n"
          f"       heavy sweep {smps} SMPs {seconds * 1000:.0f} ms, of them LFT after all these moves: {lft}\n"
          f"       deterministic, any two: {det[0]:.0f} LFT SMPs {det[1]:.1f} ms (1 : {seconds * 1000 / det[1]:.0f})"
          f"   skyline, inside a leaf: {sky[0]:.0f} LFT SMPs {sky[1]:.1f} ms (1 : {seconds * 1000 / sky[1]:.0f})", flush=True)
    return (first, best[1]["lft"], worst[1]["lft"], lft) == (*paper[1:4], 0)


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    os.environ["VHCA_PLUGIN"] = str(build / "opensm/libvhcasm.so")
    right = True
    for nodes in map(int, sys.argv[2:] or ("324", "648")):
        pods, leaves, hosts, spines, *paper = TREES[nodes]
        tree = fattree.FatTree(leaves, spines, hosts, pods=pods, options=LIMITS)
        try:
            sm = tree.manager(opensm_conf="routing_engine ftree", counter=build / "tests/integration/libsmpcount.so")
            sm.start(timeout=600)
            right = measure(tree, sm, paper) and right
            sm.stop()
        finally:
            tree.close()
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
