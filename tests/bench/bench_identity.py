#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""sudo tests/bench/bench_identity.py [ROUNDS]: programming all identities of a full ConnectX-3 beside the bare writes and a shell.

126 VFs (63 on each port: mlx4_core allows 64 a port), each with a GUID and all 127 P_Keys of its port,
on the real sysfs of a hypervisor of the rig that has no agent. All write the same values. For each the
time, the number of write(2) and read(2) calls and of opened files, and the ratio to the bare loop: open,
write, close, by paths made beforehand. Times are the sum of each VF's shortest in all rounds. Exit 1 if a
bound is broken: a pass that changes nothing writes, or one writes more than changes, or takes too long.
docs/design/0004-isolation.md says what the figures mean.
"""

import sys

import figures
from kit import hypervisors
from kit.base import Lock
from kit.host import PF

PORTS = (63, 63)
VFS = sum(PORTS)
KEYS = 127
CHANGES = VFS * (KEYS + 1)
PASSES = {"program": "all programmed", "again": "the same again", "scrub": "all scrubbed",
          "cheapest": "cheapest loop", "shell": "a shell"}
BOUNDS = {"all programmed, writes": f"value == {CHANGES}", "the same again, writes": "value == 0",
          "all scrubbed, writes": f"value == {CHANGES}", "all programmed": "ratio <= 2", "the same again": "ratio <= 2",
          "all scrubbed": "ratio <= 2"}
LOAD = f"""set -e
systemctl stop 'rig-cable@*'
modprobe -r mlx4_ib
modprobe -r mlx4_core
modprobe mlx4_core num_vfs={",".join(map(str, PORTS))} ports={len(PORTS)}
modprobe mlx4_ib
last=/sys/bus/pci/devices/{PF}/infiniband/*/iov/*:{VFS // 8:02}.{VFS % 8}/ports/2/pkey_idx/{KEYS - 1}
for i in $(seq 300); do ls $last >/dev/null 2>&1 && break; sleep 0.1; done
udevadm settle
sleep 1   # the maps are reset after they have appeared
mountpoint -q /sys/kernel/debug || mount -t debugfs none /sys/kernel/debug
for port in 1 2; do for i in $(seq {KEYS - 1}); do
	printf 'pkey %d 0x%04x %d' $i $((0x8000 + i)) $port > /sys/kernel/debug/simhca/{PF}/ctl
done; done
ls /sys/bus/pci/devices/{PF}/infiniband"""
# The same job by a shell; between the rounds everything is taken away by the program under test.
SHELL = """cd /sys/class/infiniband/{ibdev}/iov
declare -a best
for round in $(seq {rounds}); do
	n=0
	for vf in $(ls -d 0*/ports/*/pkey_idx | sed 1,{ports}d); do
		n=$((n + 1))
		port=${{vf#*/ports/}}
		port=${{port%%/*}}
		t0=${{EPOCHREALTIME/./}}
		printf '%x' $((0x02c9ab00c0570000 + n)) > ports/$port/admin_guids/$n
		for i in $(seq 0 {last}); do echo $i > $vf/$i; done
		took=$((${{EPOCHREALTIME/./}} - t0))
		[ -n "${{best[n]}}" ] && [ ${{best[n]}} -le $took ] || best[n]=$took
	done
	/run/identity_cost {pf} {ibdev} {vfs} {keys} 0
done
sum=0
for took in ${{best[@]}}; do sum=$((sum + took)); done
echo shell $sum $((n * ({last} + 2))) 0 $((n * ({last} + 2)))"""


def measure(host, rounds):
    """{pass: (microseconds, writes, reads, opens)}"""
    host.put("/run/identity_cost", hypervisors.build_tool("identity_cost").read_bytes(), "755")
    ibdev = host.sh(LOAD, timeout=300).split()[-1]
    words = {"pf": PF, "ibdev": ibdev, "rounds": rounds, "ports": len(PORTS), "last": KEYS - 1, "keys": KEYS,
             "vfs": " ".join(map(str, PORTS))}
    product = "/run/identity_cost {pf} {ibdev} {vfs} {keys} {rounds}".format(**words)
    lines = (host.sh(product, timeout=900) + host.sh(SHELL.format(**words), timeout=900)).splitlines()
    return {name: tuple(map(int, figures)) for name, *figures in map(str.split, lines)}


def report(found):
    ret = figures.Figures("identity", BOUNDS)
    bare = found["bare"][0] / 1000
    ret.add("bare loop", bare, "ms")
    for name, what in PASSES.items():
        microseconds, writes, reads, opens = found[name]
        ret.add(what, microseconds / 1000, "ms", "bare loop", bare)
        if name != "cheapest":
            for kind, number in (("writes", writes), ("reads", reads), ("opens", opens)):
                ret.add(f"{what}, {kind}", number)
    return ret.end()


def main():
    parser = figures.parser(__doc__, build=False)
    parser.add_argument("rounds", metavar="ROUNDS", type=figures.count, nargs="?", default=5)
    args = parser.parse_args()
    with Lock("bench_identity"):
        try:
            return report(measure(hypervisors.alone(VFS), args.rounds))
        finally:
            hypervisors.down()


if __name__ == "__main__":
    sys.exit(main())
