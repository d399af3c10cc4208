# SPDX-License-Identifier: LGPL-2.1-or-later
"""Two tenants on one host, under the eyes of a watcher that shares nothing with the agent."""

import os
import tempfile

from kit.base import RIG, run, wait_for
from kit.case import VFS, case, check, equal, free_vfs

A, B = 0x8001, 0x8002
SAMPLES_PER_SECOND = 20


class Watch:
    """pkeywatch on a host, from start() to stop()."""

    def __init__(self, host):
        self.host = host
        with tempfile.TemporaryDirectory() as where:
            binary = os.path.join(where, "pkeywatch")
            run(["gcc", "-O2", "-static", "-o", binary, RIG / "pkeywatch.c"])
            with open(binary, "rb") as f:
                host.put("/run/pkeywatch", f.read(), "755")
        host.sh(f"systemctl reset-failed pkeywatch 2>/dev/null; systemd-run -q --unit=pkeywatch "
                f"-p StandardOutput=truncate:/run/pkeywatch.out /run/pkeywatch "
                f"/sys/class/infiniband/{host.facts().ibdev}/iov")

    def stop(self):
        """End it; return ({vf: [set, set...] in order}, samples per second)."""
        self.host.sh("systemctl stop pkeywatch")
        lines = self.host.read("/run/pkeywatch.out").splitlines()
        check(lines and lines[-1].startswith("samples "), f"the watcher ended early: {lines[-3:]}")
        _, samples, _, seconds = lines[-1].split()
        shown = {bdf: [] for bdf in VFS}
        for line in lines[:-1]:
            _, function, keys = line.split()
            if function in shown:
                shown[function].append(frozenset() if keys == "-" else frozenset(int(k, 16) for k in keys.split(",")))
        return shown, int(samples) / float(seconds)


@case
def never_the_other_tenants_key(rig):
    """Start, stop, re-use of a VF by the other tenant: no map ever shows a foreign key or the default partition."""
    host = rig.hva
    watch = Watch(host)
    first = rig.guest(host, 1, ("ib0", "0x8001")).start(wait=False)
    other = rig.guest(host, 2, ("ib0", "0x8002")).start(wait=False)
    vf_a, vf_b = host.wait_attached(first)["bdf"], host.wait_attached(other)["bdf"]
    first.wait_ready()
    first.destroy()
    host.wait_vf(vf_a, "free", 60)
    other.destroy()
    host.wait_vf(vf_b, "free", 60)
    # All VFs go to tenant B now, so the one that A had is among them.
    names = [f"ib{i}" for i in range(len(VFS))]
    many = rig.guest(host, 3, *((n, "0x8002") for n in names), ports=5).start(wait=False)
    for name in names:
        host.wait_attached(many, name)
    equal(free_vfs(host), [], "free VFs while tenant B has all")
    many.destroy()
    wait_for(lambda: free_vfs(host) == VFS, 90, "all VFs free")
    shown, rate = watch.stop()

    check(rate >= SAMPLES_PER_SECOND, f"only {rate:.0f} samples per second")
    for bdf, sets in shown.items():
        check(set(sets) <= {frozenset(), frozenset({A}), frozenset({B})}, f"{bdf} showed {sets}")
        for one, two in zip(sets, sets[1:]):
            check(not one or not two, f"{bdf} went from {set(one)} to {set(two)} without being empty between")
        equal(sets[-1], frozenset(), f"{bdf}: last sight")
    check(frozenset({A}) in shown[vf_a] and frozenset({B}) in shown[vf_a],
          f"{vf_a} was not used by both tenants: {shown[vf_a]}")
