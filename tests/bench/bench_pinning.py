#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""sudo tests/bench/bench_pinning.py [MIB]: what a GiB of a guest's memory costs when its first VF is plugged in, and when its last one goes.

On a hypervisor of the rig (real vfio, vfio-pci and VT-d code, emulated CPU), as QEMU does it:
VFIO_IOMMU_MAP_DMA over all of the guest's memory. Beside it, in the same run, what it costs to write that
memory once: take the ratios to a real host, not the seconds. docs/design/0009-big-guests.md says what
follows. tests/rig/pinning runs on any host that has a VF to spare. Exit 1 if a bound is broken.
"""

import sys

import figures
from kit import hypervisors
from kit.base import Lock
from kit.host import VFS

ROUNDS = 3
VF = VFS[0]
CLEAR = "writing it once"
KINDS = {"4k": "4 KiB pages, never touched", "4k-used": "4 KiB pages, touched", "2m": "huge pages, never touched",
         "2m-used": "huge pages, touched"}
BOUNDS = {"huge pages, touched, pin": "ratio <= 0.05", "huge pages, beside 4 KiB, touched, pin": "ratio <= 0.9"}
PREPARE = f"""set -e
modprobe vfio-pci
cd /sys/bus/pci/devices/{VF}
echo vfio-pci > driver_override
[ ! -e driver ] || echo {VF} > driver/unbind
echo {VF} > /sys/bus/pci/drivers_probe
echo {{pages}} > /proc/sys/vm/nr_hugepages
[ $(cat /proc/sys/vm/nr_hugepages) -eq {{pages}} ]
basename $(readlink iommu_group)"""


def measure(host, mib):
    """{kind: (pin, unpin)}, microseconds, each the shortest of all rounds."""
    host.put("/run/pinning", hypervisors.build_tool("pinning").read_bytes(), "755")
    group = host.sh(PREPARE.format(pages=mib // 2)).split()[-1]
    found = {}
    for _ in range(ROUNDS):
        for line in host.sh(f"/run/pinning {group} {mib}", timeout=300).splitlines():
            kind, *figures = line.split()
            found.setdefault(kind, []).append(tuple(map(int, figures)))
    return {kind: tuple(map(min, zip(*rows))) for kind, rows in found.items()}


def report(found, mib):
    """All for a GiB."""
    ret = figures.Figures("pinning", BOUNDS)
    seconds = {kind: [us * 1024 / mib / 1e6 for us in row] for kind, row in found.items()}
    clear = seconds["clear"][0]
    ret.add(CLEAR, clear, "s")
    for kind, what in KINDS.items():
        for part, value in zip(("pin", "unpin"), seconds[kind]):
            ret.add(f"{what}, {part}", value, "s", CLEAR, clear)
    ret.add("huge pages, beside 4 KiB, touched, pin", seconds["2m-used"][0], "s", "4 KiB pages, touched, pin", seconds["4k-used"][0])
    return ret.end()


def main():
    parser = figures.parser(__doc__, build=False)
    parser.add_argument("mib", metavar="MIB", type=figures.count, nargs="?", default=512)
    args = parser.parse_args()
    with Lock("bench_pinning"):
        try:
            return report(measure(hypervisors.alone(), args.mib), args.mib)
        finally:
            hypervisors.down()


if __name__ == "__main__":
    sys.exit(main())
