#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""tests/bench/bench_blackout.py BUILD [RUNS]: the agents' own share of a guest's time without its VF, without the rig.

bench_blackout.c says what runs. The ratio to bare commits is near 1 on a disk that takes its time,
and says little on one that does not: so the bound is in milliseconds, or relative where the disk is busy. Exit 1 if a bound is broken.
"""

import subprocess
import sys

import figures

STEPS = {"removed_to_migrate": "DEVICE_REMOVED to migrate", "resumed_to_attach": "RESUMED to attach",
         "resumed_to_granted": "RESUMED to granted"}
COMMITS = "three bare commits"
# Ten milliseconds, unless the disk is so busy that the commits alone take as long.
P99 = "value <= 10 or ratio <= 5"
BOUNDS = {"DEVICE_REMOVED to migrate, p99": P99, "RESUMED to attach, p99": P99}


def measure(program, runs, wait_ms):
    """{series: (p50, p99, max) in ms}"""
    text = subprocess.run([program, str(runs), str(wait_ms)], check=True, stdout=subprocess.PIPE, text=True).stdout
    return {name: [int(us) / 1000 for us in rest] for name, *rest in map(str.split, text.splitlines())}


def report(found):
    ret = figures.Figures("blackout", BOUNDS)
    for i, percent in enumerate(("p50", "p99")):
        commits = found["three_commits"][i]
        ret.add(f"{COMMITS}, {percent}", commits, "ms")
        for series, step in STEPS.items():
            ret.add(f"{step}, {percent}", found[series][i], "ms", f"{COMMITS}, {percent}", commits)
    return ret.end()


def main():
    parser = figures.parser(__doc__)
    parser.add_argument("runs", metavar="RUNS", type=figures.count, nargs="?", default=200)
    parser.add_argument("--wait-ms", type=figures.count, default=0, help="a slow-down, to see a bound break")
    args = parser.parse_args()
    return report(measure(args.build / "tests/bench/bench_blackout", args.runs, args.wait_ms))


if __name__ == "__main__":
    sys.exit(main())
