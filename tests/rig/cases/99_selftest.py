# SPDX-License-Identifier: LGPL-2.1-or-later
"""Sabotages of the rig's hypervisors that only the watch can see (kit/watch.py, kit/runner.py): each has to fail the case in which it happens."""

import json
import re
import time

from kit.base import RigError, wait_for
from kit.case import VFS, Case, case, check
from kit.host import PF
from kit.hypervisors import SM_CURL
from kit.runner import attempt, clean, remains

IOV = f"/sys/class/infiniband/$(ls /sys/bus/pci/devices/{PF}/infiniband)/iov"
TENANT_A, TENANT_B = "0x8001", "0x8002"
STRAY = "0x02c9ab00000000e1"  # a vGUID of nobody
CONF = "/etc/vhcad/vhcad.conf.d/broken.conf"
SHORT = "sleep 0.01"


def attempted(rig, sabotage, kills=()):
    """Problems of a case that does this and is content."""
    def run(_rig):
        """It looks at nothing."""
        sabotage()
    run.__module__ = __name__
    return attempt(rig, Case(run, kills=kills))["problem"].splitlines()


def caught(found, *patterns):
    """Each of these was found, and nothing else."""
    for pattern in patterns:
        check(any(re.search(pattern, line) for line in found), f"'{pattern}' is not among {found}")
    other = [line for line in found if not any(re.search(p, line) for p in patterns)]
    check(not other, f"found besides {patterns}: {other}")


def agent_again(host, action):
    """An agent in the place of the one that this action ends."""
    old = host.sh("systemctl show -P MainPID vhcad").strip()
    host.sh(action, timeout=90)
    wait_for(lambda: host.sh("systemctl show -P MainPID vhcad").strip() not in (old, "0") and host.code("vhcactl node")[0] == 0, 60,
             "another vhcad to answer", 0.3)


@case
def nothing_is_nothing(rig):
    """A case in which nothing happens is not blamed, unless it declares that something ends."""
    caught(attempted(rig, lambda: None))
    caught(attempted(rig, lambda: None, kills=("hva vhcad",)), "'hva vhcad' is declared to end in this case and did not")


@case
def a_crash_is_seen(rig):
    """An agent that crashes once and is back a second later fails its case, also one that kills and restarts agents."""
    for kills in ((), ("hva vhcad",)):
        found = attempted(rig, lambda: agent_again(rig.hva, "systemctl kill --kill-who=main -s SEGV vhcad"), kills)
        caught(found, r"hva: vhcad: .*Main process exited, code=\w+, status=11/SEGV", *(() if kills else ["hva vhcad ended: "]))


@case
def a_restart_is_seen(rig):
    """A restart that nobody declared fails its case, on either hypervisor."""
    found = attempted(rig, lambda: agent_again(rig.hvb, "systemctl restart vhcad"), kills=("hva vhcad",))
    caught(found, "hvb vhcad ended: ", "'hva vhcad' is declared to end in this case and did not")


@case
def errors_are_seen(rig):
    """A warning of the kernel and an error in the agent's journal fail their case, and are not told twice."""
    def refusals():
        return int(rig.hva.sh("journalctl -q -b -u vhcad | grep -c 'reload refused'", check=False))

    def sabotage():
        rig.hvb.sh("echo '<4>WARNING: CPU: 0 PID: 1 at selftest' > /dev/kmsg")
        rig.hva.put(CONF, b"[nonsense]\n")
        before = refusals()
        check(rig.hva.code("systemctl reload vhcad")[0] != 0, "a refused reload succeeded")
        wait_for(lambda: refusals() > before, 60, "the agent to refuse what it was given", 0.3)
        rig.hva.sh(f"rm {CONF}")
    caught(attempted(rig, sabotage), "hvb: .*WARNING: CPU: 0 PID: 1 at selftest", "hva: vhcad: reload refused",
           "hva: vhcad: vhcad.service: Control process exited, code=exited, status=2", "hva: vhcad: Reload failed for vhcad.service")
    rig.hva.sh("systemctl reload vhcad")
    caught(attempted(rig, lambda: None))


@case
def an_exposure_of_ten_milliseconds_is_seen(rig):
    """Another tenant's P_Key in the map of a guest's VF, and its GUID on that VF, for 10 ms each: both fail their case."""
    host = rig.hva
    bdfs, guids = [], []
    for number, key in ((1, TENANT_A), (2, TENANT_B)):
        guest = rig.guest(host, number, ("ib0", key), memory=128).define()
        host.sh(f"virsh -q start --paused {guest.name}", timeout=120)
        vf = host.wait_attached(guest)
        bdfs.append(vf["bdf"])
        guids.append(int(vf["requested"], 16))
    facts = host.facts()
    index = facts.gid_index(bdfs[0])
    (place,) = (i for i, key in facts.port_pkeys().items() if key == int(TENANT_B, 16))
    entry, admin = f"{IOV}/{bdfs[0]}/ports/1/pkey_idx/7", f"{IOV}/ports/1/admin_guids/{index}"
    vf = VFS.index(bdfs[0]) + 1
    caught(attempted(rig, lambda: host.sh(f"echo {place} > {entry}; {SHORT}; echo none > {entry}")),
           f"hva: EXPOSURE: vm1 on VF {vf} sees P_Key {TENANT_B} and asked for {TENANT_A}")
    caught(attempted(rig, lambda: host.sh(f"echo {guids[1]:x} > {admin}; {SHORT}; echo {guids[0]:x} > {admin}")),
           f"hva: EXPOSURE: vm1 on VF {vf} has GUID 0x{guids[1]:016x} of vm2")


@case
def what_is_left_is_seen(rig):
    """Cleaning up after a case is not content with an agent's word: not with a VF that is `free` and has a key, nor with a binding at the plugin."""
    host = rig.hvb
    wait_for(lambda: not remains(rig), 60, f"nothing to be left before; at first it is {remains(rig)}")
    entry = f"{IOV}/{VFS[2]}/ports/1/pkey_idx/9"
    host.sh(f"echo 0 > {entry}")
    found = remains(rig)
    host.sh(f"echo none > {entry}")
    caught(found, f"hvb: {VFS[2]} is not clean: ")
    binding = f"/v1/bindings/{STRAY}"
    report = json.dumps({"epoch": 1, "port_guid": f"0x{rig.hva.facts().port_guid:016x}", "gid_index": 1, "pkeys": []})
    rig.hva.sh(f"{SM_CURL}{binding} -X PUT -H 'Content-Type: application/json' -d '{report}'")
    started = time.monotonic()
    try:
        clean(rig, patience=1)
    except RigError as e:
        check(STRAY in str(e), f"what is left: {e}")
    else:
        check(False, f"content after {time.monotonic() - started:.1f} s with a binding left at the plugin")
    finally:
        rig.hva.sh(f"{SM_CURL}{binding}?epoch=1 -X DELETE")
