#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""tests/bench/bench_hook.py BUILD [RUNS]: what the hook costs every domain of the host: its run time beside /bin/true's.

For a domain that is not ours (the hook must find that out): the median and the 95th percentile of a
whole process, and the ratio to /bin/true. Exit 1 if a bound is broken. The bound on the median decides
what the hook may be made of: docs/design/0014-authority.md.
"""

import os
import statistics
import sys
import time

import figures

TRUE = "/bin/true"
BOUNDS = {"hook, median": "ratio <= 1.2", "hook, p95": "ratio <= 5", "what the hook adds, median": "value <= 1500"}
XML = ("<domain type='kvm'><name>vm1</name><uuid>6b3e1d60-0d6f-4f5e-9d38-0123456789ab</uuid><devices>"
       + "<disk type='file' device='disk'><source file='/var/lib/x.img'/><target dev='vda'/></disk>" * 40
       + "</devices></domain>").encode()


def run_once(argv):
    """Seconds from spawn to exit, stdin as libvirt gives it: a pipe that holds the XML."""
    r, w = os.pipe()
    os.write(w, XML)
    os.close(w)
    started = time.perf_counter()
    pid = os.posix_spawn(argv[0], argv, {"LC_ALL": "C"}, file_actions=[(os.POSIX_SPAWN_DUP2, r, 0)])
    _, status = os.waitpid(pid, 0)
    seconds = time.perf_counter() - started
    os.close(r)
    if status:
        sys.exit(f"{argv[0]}: wait status {status}")
    return seconds


def measure(hook, runs):
    """Seconds of every run: (of the hook, of /bin/true), in turn, so that other load hits both alike."""
    rows = [(run_once([hook, "vm1", "prepare", "begin", "-"]), run_once([TRUE])) for _ in range(runs)]
    return tuple(zip(*rows))


def report(hook, true):
    ret = figures.Figures("hook", BOUNDS)
    for name, of in (("median", statistics.median), ("p95", lambda t: statistics.quantiles(t, n=20)[-1])):
        ret.add(f"{TRUE}, {name}", of(true) * 1e6, "us")
        ret.add(f"hook, {name}", of(hook) * 1e6, "us", f"{TRUE}, {name}", of(true) * 1e6)
    ret.add("what the hook adds, median", (statistics.median(hook) - statistics.median(true)) * 1e6, "us")
    return ret.end()


def main():
    parser = figures.parser(__doc__)
    parser.add_argument("runs", metavar="RUNS", type=figures.count, nargs="?", default=500)
    parser.add_argument("--hook", help="another program, to see a bound break")
    args = parser.parse_args()
    return report(*measure(args.hook or str(args.build / "hooks/vhcad"), args.runs))


if __name__ == "__main__":
    sys.exit(main())
