#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""sudo tests/bench/bench_identity.py [RUNS]: programming the identities of all VFs on the rig, beside the bare writes and a shell.

Real sysfs of the rig's mlx4, the agent stopped. All get the same values: a GUID and KEYS P_Keys a VF. Prints the medians, the number of
write(2) calls, and the ratios to the bare loop. Exit 1 if a pass that changes nothing writes, or one writes more than changes.
"""

import pathlib
import statistics
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "rig"))

from kit import hypervisors  # noqa: E402
from kit.base import Lock, say  # noqa: E402
from kit.host import PF, VFS, Host  # noqa: E402

KEYS = 32   # VHCA_VF_PKEYS_MAX
QUIET = """set -e
systemctl stop vhcad opensm-vhcad
mountpoint -q /sys/kernel/debug || mount -t debugfs none /sys/kernel/debug
for i in $(seq %d); do printf 'pkey %%d 0x%%04x' $i $((0x8000 + i)) > /sys/kernel/debug/simhca/%s/ctl; done
ls /sys/bus/pci/devices/%s/infiniband""" % (KEYS, PF, PF)
SHELL = """cd /sys/class/infiniband/{ibdev}/iov
t0=${{EPOCHREALTIME/./}}
n=0
for vf in {vfs}; do
	n=$((n + 1))
	printf '%x' $((0x02c9ab00c0570000 + n)) > ports/1/admin_guids/$n
	for i in $(seq 0 {last}); do echo $((i + 1)) > $vf/ports/1/pkey_idx/$i; done
done
echo shell $((${{EPOCHREALTIME/./}} - t0)) $((n * ({last} + 2)))"""
CLEAN = """cd /sys/class/infiniband/{ibdev}/iov
for f in 0*/ports/1/pkey_idx/*; do case $f in 0000:01:00.0/*) ;; *) echo none > $f;; esac; done
for n in {numbers}; do echo ffffffffffffffff > ports/1/admin_guids/$n; done"""


def once(host, words):
    """{pass: (microseconds, writes)} of one run from nothing to nothing."""
    found = {}
    for script in (f"/run/identity_cost {PF} {words['ibdev']} {len(VFS)} {KEYS}", CLEAN.format(**words),
                   SHELL.format(**words), CLEAN.format(**words)):
        for line in host.sh(script).splitlines():
            name, microseconds, writes = line.split()
            found[name] = int(microseconds), int(writes)
    return found


def report(runs):
    changes = len(VFS) * (KEYS + 1)
    bare = statistics.median(run["bare"][0] for run in runs)
    say(f"{len(VFS)} VFs, a GUID and {KEYS} P_Keys each: {changes} values change; median of {len(runs)} runs")
    for name in runs[0]:
        median = statistics.median(run[name][0] for run in runs)
        say(f"{name:8} {median / 1000:8.1f} ms   {runs[0][name][1]:5} writes   x {median / bare:.2f}")
    return any(run["again"][1] or run["program"][1] != changes for run in runs)


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    with Lock("bench_identity"):
        hypervisors.up()
        hypervisors.install()
        host = Host("hva")
        host.put("/run/identity_cost", (hypervisors.build_tree() / "tests/rig/identity_cost").read_bytes(), "755")
        try:
            words = {"ibdev": host.sh(QUIET).strip(), "vfs": " ".join(VFS), "last": KEYS - 1,
                     "numbers": " ".join(str(n + 1) for n in range(len(VFS)))}
            return int(report([once(host, words) for _ in range(count)]))
        finally:
            hypervisors.reset()


if __name__ == "__main__":
    sys.exit(main())
