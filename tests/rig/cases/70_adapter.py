# SPDX-License-Identifier: LGPL-2.1-or-later
"""The simulated adapter itself, without our agent: it grants nothing that the SM has not granted, and keeps mlx4's rules."""

import time

from kit.base import RIG, ROOT, wait_for
from kit.case import VFS, case, check, equal
from kit.host import PF
from kit.hypervisors import OPENSM_CONF, OPENSM_PLUGIN

CONTROL = f"/sys/kernel/debug/simhca/{PF}"
FIRST, SECOND = 0x0002C900_5AFE_0001, 0x0002C900_5AFE_0002
LAST = 127
NOBODY = 0xFFFFFFFFFFFFFFFF
LINES = 150  # of the script, at least
# The drivers forget what our agent and the cases before have asked of them, mlx4_core its counters; OpenSM, which has the
# device open, starts anew after that.
QUIET = """set -e
systemctl stop vhcad opensm-vhcad 'rig-cable@*'
modprobe -r mlx4_ib
modprobe -r mlx4_core
modprobe mlx4_core ports=%d
modprobe mlx4_ib
udevadm settle
for i in $(seq 600); do [ -e /sys/bus/pci/devices/%s/infiniband/*/iov/ports/%d/mcgs ] && break; sleep 0.1; done"""
ENDED = ("vhcad", "hva opensm-vhcad", "adapter")  # by only_the_adapter


def quiet(host, ports=1):
    """Our agent and the SM out of the way, the drivers as after a boot."""
    host.sh(QUIET % (ports, PF, ports))


def only_the_adapter(rig, plugin=True):
    """The drivers and the SM as after a boot, without our agent. The reset after a dirty case starts the agent."""
    for host in rig.hosts:
        quiet(host)
    rig.hva.put("/etc/opensm/opensm.conf", (OPENSM_CONF + (OPENSM_PLUGIN if plugin else "")).encode())
    rig.hva.sh("systemctl start opensm-vhcad")
    wait_for(lambda: states(rig) == ["ACTIVE", "ACTIVE"], 60, "both ports to be ACTIVE")


def device(host):
    """Its name is udev's choice, not mlx4_0."""
    return f"/sys/class/infiniband/{host.sh(f'ls /sys/bus/pci/devices/{PF}/infiniband').strip()}"


def states(rig):
    return [h.read(f"{device(h)}/ports/1/state").split()[1] for h in rig.hosts]


def request(host, index, guid):
    host.sh(f"echo {guid:x} > {device(host)}/iov/ports/1/admin_guids/{index}")


def granted(host, index):
    return int("".join(host.read(f"{device(host)}/iov/ports/1/gids/{index}").split(":")[4:]), 16)


def wait_granted(host, index, guid, timeout=60):
    wait_for(lambda: granted(host, index) == guid, timeout, f"{host.name}: gids/{index} to show 0x{guid:016x}")


def stat(host, name):
    lines = dict(line.split() for line in host.read(f"{CONTROL}/stats").splitlines())
    return int(lines[name])


@case(dirty=True, kills=ENDED)
def grants_are_the_sms(rig):
    """A GUID appears in gids only when OpenSM has granted it; after a new SM's start it is asked for again."""
    only_the_adapter(rig)
    host = rig.hva
    request(host, 1, FIRST)
    wait_granted(host, 1, FIRST)
    host.sh("systemctl stop opensm-vhcad")
    request(host, 2, SECOND)
    before = stat(host, "sa_sets")
    wait_for(lambda: stat(host, "sa_sets") > before + 1, 60, "the driver to ask again for what nobody answers")
    equal(granted(host, 2), 0, "gids/2 without an SM")
    host.sh("systemctl start opensm-vhcad")
    for index, guid in ((1, FIRST), (2, SECOND)):
        wait_granted(host, index, guid, 60)


@case(dirty=True, kills=ENDED)
def duplicates_are_declined(rig):
    """OpenSM declines a GUID that another port has (ERR 5108); once that port has given it up, the request succeeds."""
    only_the_adapter(rig)
    request(rig.hva, 1, FIRST)
    wait_granted(rig.hva, 1, FIRST)
    request(rig.hvb, 2, FIRST)
    wait_for(lambda: stat(rig.hvb, "sa_declined") > 0, 60, "hvb's request to be declined")
    equal(granted(rig.hvb, 2), 0, "hvb: gids/2 of a declined request")
    check("ERR 5108" in rig.hva.sh("grep -a 'ERR 5108' /var/log/opensm.log"), "OpenSM's log does not tell of the duplicate")
    request(rig.hva, 1, NOBODY)
    wait_granted(rig.hva, 1, 0)
    wait_granted(rig.hvb, 2, FIRST, 90)


def withdraw_all_then_request(rig):
    """What an agent does on a fresh port: it withdraws all VFs' random GUIDs, then asks for the first VF's."""
    for index in (1, 2, 3, 4):
        request(rig.hva, index, NOBODY)
    wait_for(lambda: stat(rig.hva, "sa_deletes") > 0, 60, "the Deletes")
    request(rig.hva, 1, FIRST)


@case(dirty=True, kills=ENDED)
def deletes_starve_sets(rig):
    """mlx4 with stock OpenSM 3.3.23: Deletes on a port that never had an alias stay pending and keep Sets of lower entries
    of their block waiting for ever; one grant anywhere on the port ends it."""
    # OpenSM answers such a Delete with the request's own all-ones (osm_sa_guidinfo_record.c:del_guidinfo, no p_guids), which
    # mlx4 does not take for done (alias_GUID.c:mlx4_ib_notify_slaves_on_guid_change); set_required_record then picks the
    # last pending entry of the block each time.
    host = rig.hva
    only_the_adapter(rig, plugin=False)
    try:
        withdraw_all_then_request(rig)
        wait_for(lambda: stat(host, "sa_deletes") > 1000, 60, "a flood of Deletes")
        equal((granted(host, 1), stat(host, "sa_sets")), (0, 0), "gids/1 and Sets during the flood")
        request(host, LAST, SECOND)
        wait_granted(host, LAST, SECOND)
        wait_granted(host, 1, FIRST)
    finally:
        host.put("/etc/opensm/opensm.conf", (OPENSM_CONF + OPENSM_PLUGIN).encode())


@case(dirty=True, kills=ENDED)
def plugin_ends_starving(rig):
    """With our plugin in OpenSM the same Deletes are settled, the Set is granted, and then there is silence."""
    only_the_adapter(rig)
    withdraw_all_then_request(rig)
    wait_granted(rig.hva, 1, FIRST)
    deletes = stat(rig.hva, "sa_deletes")
    time.sleep(1)
    equal(stat(rig.hva, "sa_deletes"), deletes, "Deletes a second after the grant")


@case(dirty=True, kills=ENDED)
def reset_withdraws(rig):
    """A function level reset of a VF that nobody uses takes its alias GUID away, as vfio's open does."""
    only_the_adapter(rig)
    host = rig.hva
    request(host, 1, FIRST)
    wait_granted(host, 1, FIRST)
    deletes = stat(host, "sa_deletes")
    host.sh(f"echo 1 > /sys/bus/pci/devices/{VFS[0]}/reset")
    wait_granted(host, 1, 0)
    equal(stat(host, "sa_deletes"), deletes + 1, "GUIDInfoRecord Deletes")
    equal(int(host.read(f"{device(host)}/iov/ports/1/admin_guids/1"), 16), FIRST, "admin_guids/1 after the reset")


@case(dirty=True, kills=ENDED)
def maps_keep_the_drivers_rules(rig):
    """simhca shows and takes what mlx4 does, line by line of the script that all our models play; sriov_numvfs is refused with ENOENT."""
    only_the_adapter(rig)
    host = rig.hva
    host.put("/run/mlx4_script.py", (RIG / "mlx4_script.py").read_bytes(), "755")
    host.put("/run/mlx4.script", (ROOT / "tests/data/mlx4.script").read_bytes())
    code, out = host.code(f"/run/mlx4_script.py /run/mlx4.script {PF}", timeout=240)
    check(code == 0 and int(out.split()[0]) > LINES, f"tests/data/mlx4.script: {out.strip()}")
    check("No such file" in host.code(f"echo 0 > /sys/bus/pci/devices/{PF}/sriov_numvfs")[1], "sriov_numvfs can be written")


@case(dirty=True, kills=ENDED)
def cable_carries_the_link(rig):
    """The cable pulled at one end takes the link down at both; OpenSM brings both up again."""
    only_the_adapter(rig)
    rig.hvb.sh(f"echo port down > {CONTROL}/ctl")
    wait_for(lambda: states(rig) == ["DOWN", "DOWN"], 60, "both ends of a pulled cable to be DOWN")
    rig.hvb.sh(f"echo port up > {CONTROL}/ctl")
    wait_for(lambda: states(rig) == ["ACTIVE", "ACTIVE"], 90, "both ends to be ACTIVE again")


MAP = "for p in 1 2; do echo $(cat {iov}/{vf}/ports/$p/pkey_idx/0) $(cat {iov}/ports/$p/admin_guids/1); done"


@case(dirty=True, kills=("hvb vhcad", "hvb adapter"))
def both_ports_are_cleared(rig):
    """A dual-port card's driver puts each VF into the default partition of both ports; our agent clears both, and what comes back on the second."""
    host = rig.hvb
    quiet(host, ports=2)
    iov = f"{device(host)}/iov"

    def shown():
        return [tuple(line.split()) for line in host.sh(MAP.format(iov=iov, vf=VFS[0])).splitlines()]
    wait_for(lambda: [index for index, _ in shown()] == ["0", "0"], 60, "the driver's own maps")
    host.sh("systemctl start vhcad")
    cleared = [("none", f"{NOBODY:x}")] * 2
    wait_for(lambda: shown() == cleared, 60, f"{VFS[0]} cleared on both ports")
    host.wait_vf(VFS[0], "free")
    host.sh(f"echo 0 > {iov}/{VFS[0]}/ports/2/pkey_idx/0; systemctl restart vhcad")
    wait_for(lambda: shown() == cleared, 60, f"{VFS[0]} cleared on the second port again")
    equal([p["port"] for p in host.get("hcas")["hcas"][0]["ports"]], [1, 2], "ports of the adapter")
