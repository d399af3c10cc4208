#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the hook costs every domain of the host: its run time beside /bin/true's.

bench_hook.py HOOK [RUNS]: for a domain that is not ours (the hook must find that out) the median and the 95th
percentile of a whole process, and the ratio to /bin/true. Exit 1 if the ratio is over 3.
"""

import os
import statistics
import sys
import time

RATIO_MAX = 3.0
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


def main():
    hook, runs = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 500
    commands = {"/bin/true": ["/bin/true"], "hook": [hook, "vm1", "prepare", "begin", "-"]}
    times = {name: [] for name in commands}
    for _ in range(runs):   # in turn, so that other load hits both alike
        for name, argv in commands.items():
            times[name].append(run_once(argv))
    for name, t in times.items():
        print(f"{name:10} median {statistics.median(t) * 1e6:7.0f} us   p95 "
              f"{statistics.quantiles(t, n=20)[-1] * 1e6:7.0f} us")
    ratio = statistics.median(times["hook"]) / statistics.median(times["/bin/true"])
    print(f"hook / true: {ratio:.2f} ({len(XML)} bytes of XML, {runs} runs)")
    return int(ratio > RATIO_MAX)


sys.exit(main())
