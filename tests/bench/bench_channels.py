#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""tests/bench/bench_channels.py BUILD [RUNS]: what a skyline move across leaves waits for once, the numbering of channels, in the paper's largest fat-tree.

bench_channels.c says what runs; BUILD is a release build. While channels are numbered OpenSM's lock is held, and no other move begins; SMPs of moves that are
under way must not look lost by that, so it has to be short beside the time-out of a transaction. Exit 1 if a bound is broken.
"""

import subprocess
import sys

import figures

TIMEOUT_MS = 1000    # transaction_timeout 200, four times, and 200: timeout_ms() in opensm/osm/lids.c
TABLES = "reading all tables once"
SERIES = {"number": "numbering of channels", "deterministic": "a deterministic plan", "skyline": "a skyline plan across leaves, numbered"}
LARGEST = 36    # pods: 11664 nodes
BOUNDS = {"11664: numbering of channels": f"value <= {TIMEOUT_MS // 2} or ratio <= 8", "11664: a skyline plan across leaves, numbered": "ratio <= 0.1"}


def measure(program, pods, runs):
    """{series: ms}"""
    text = subprocess.run([program, str(pods), str(runs)], check=True, stdout=subprocess.PIPE, text=True).stdout
    return {name: int(us) / 1000 for name, us in map(str.split, text.splitlines())}


def report(found):
    ret = figures.Figures("channels", BOUNDS)
    ret.add(f"11664: {TABLES}", found["tables"], "ms")
    for series, name in SERIES.items():
        ret.add(f"11664: {name}", found[series], "ms", TABLES, found["tables"])
    return ret.end()


def main():
    parser = figures.parser(__doc__)
    parser.add_argument("runs", metavar="RUNS", type=figures.count, nargs="?", default=9)
    args = parser.parse_args()
    return report(measure(args.build / "tests/bench/bench_channels", LARGEST, args.runs))


if __name__ == "__main__":
    sys.exit(main())
