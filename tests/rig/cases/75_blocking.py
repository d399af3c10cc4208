# SPDX-License-Identifier: LGPL-2.1-or-later
"""The real kernel's blocking: a VM holds a VF, somebody takes it away, the write waits for the VM, and the API answers all the while."""

from kit.base import wait_for
from kit.blocking import Watch, Write, answered_throughout, holding_guest
from kit.case import VFS, assert_scrubbed, case, check, equal, free_vfs
from kit.host import PF

DRIVERS = "/sys/bus/pci/drivers"


def explained(host, bdf):
    return host.vhcactl("explain", bdf)["verdict"]


@case(dirty=True)
def vfs_are_taken_from_a_guest(rig):
    """Somebody unbinds a guest's VF, then takes the adapter's driver off: both wait for the guest, the API for nobody, and all heals."""
    # mlx4 has no sriov_configure. pci_disable_sriov() is called by its remove(), if no VF's driver runs (mlx4_remove_one).
    host = rig.hvb
    guest, bdf = holding_guest(rig, host)
    watch = Watch(host)
    unbind = Write(host, "unbind", bdf, f"{DRIVERS}/vfio-pci/unbind")
    host.sh("systemctl reload vhcad")  # there is no event before the unbinding is done
    wait_for(lambda: not host.agent_vf(bdf)["driver"], 120, f"{bdf} without driver")
    wait_for(lambda: explained(host, bdf)["status"] == "wrong", 60, f"the verdict wrong while {bdf} is being unbound")
    removal = Write(host, "removal", PF, f"{DRIVERS}/mlx4_core/unbind")
    wait_for(lambda: not host.agent_vf(bdf)["present"], 120, f"{bdf} gone, which the scan of each minute sees")
    wait_for(lambda: not host.get("hcas")["hcas"][0]["present"], 60, "the adapter gone while its driver is taken off")
    wait_for(lambda: PF in explained(host, bdf)["text"], 60, "explain to name the adapter")
    watch.wait_rounds()
    check(not unbind.ended() and not removal.ended(), "the kernel did not wait for the guest")
    guest.destroy()
    begin, _ = unbind.wait_ended()
    _, end = removal.wait_ended()
    answered_throughout(watch.stop(), begin, end)
    equal(host.get("node")["loop"]["blocking_calls"], 0, "blocking calls on the state thread")
    host.sh(f"echo {PF} > {DRIVERS}/mlx4_core/bind")
    wait_for(lambda: free_vfs(host) == VFS, 60, f"all VFs free again: {host.agent_vfs()}")
    assert_scrubbed(host, *VFS)
