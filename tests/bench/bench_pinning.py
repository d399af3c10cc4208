#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""sudo tests/bench/bench_pinning.py [MIB]: what a GiB of a guest's memory costs when its first VF is plugged in, and when its last one goes.

On a hypervisor of the rig (real vfio, vfio-pci and VT-d code, emulated CPU), as QEMU does it: VFIO_IOMMU_MAP_DMA over all of the guest's memory. Beside
it, in the same run, what it costs to write that memory once: take the ratios to a real host, not the seconds. docs/design/0009-big-guests.md says what
follows. tests/rig/pinning runs on any host that has a VF to spare. Exit 1 if huge pages are not cheaper.
"""

import pathlib
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "rig"))

from kit import hypervisors  # noqa: E402
from kit.base import Lock, say  # noqa: E402
from kit.host import VFS  # noqa: E402

ROUNDS = 3
VF = VFS[0]
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
    per_gib = 1024 / mib / 1e6
    clear = found["clear"][0]
    say(f"{mib} MiB; seconds for a GiB, and the ratio to writing that memory once")
    say("                 pin    ratio    unpin    ratio")
    for kind, (pin, unpin) in found.items():
        say(f"{kind:8} {pin * per_gib:11.3f} {pin / clear:8.3f} {unpin * per_gib:8.3f} {unpin / clear:8.3f}")
    return found["2m-used"][0] >= found["4k-used"][0]


def main():
    mib = int(sys.argv[1]) if len(sys.argv) > 1 else 512
    with Lock("bench_pinning"):
        try:
            return int(report(measure(hypervisors.alone(), mib), mib))
        finally:
            hypervisors.down()


if __name__ == "__main__":
    sys.exit(main())
