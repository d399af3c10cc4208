# SPDX-License-Identifier: LGPL-2.1-or-later
"""The real kernel's rtnetlink between our back end for mlx5 VFs and a device with the VF operations of a ConnectX-6's (simvport).

What is believed is `ip`, which shares no code with us. There is no adapter: nothing here shows what firmware does.
"""

import json
import pathlib
import shutil
import tempfile

from kit.base import RIG, run
from kit.case import case, check, equal
from kit.host import PF
from kit.hypervisors import build_tree

A, B = 0x02C9_AB00_0000_0002, 0x02C9_AB00_0000_0009
NOBODY = (0, 0, "disable")
PARAMETERS = "/sys/module/simvport/parameters"


class Device:
    """simvport as a network device of the host's PF, and the program `vport` beside it, while the block runs."""

    def __init__(self, host):
        self.host = host

    def __enter__(self):
        kernel = self.host.sh("uname -r").strip()
        with tempfile.TemporaryDirectory() as where:
            source = pathlib.Path(where) / "simvport"
            shutil.copytree(RIG / "simvport", source)
            run(["make", "-s", "-C", f"/lib/modules/{kernel}/build", f"M={source}", "modules"])
            self.host.put("/run/simvport.ko", (source / "simvport.ko").read_bytes())
        self.host.put("/run/vport", (build_tree() / "tests/rig/vport").read_bytes(), "755")
        # The adapter's own IPoIB device would be the PF's first; udev renames the new one.
        self.host.sh(f"modprobe -r ib_ipoib; insmod /run/simvport.ko pf={PF} && udevadm settle")
        return self

    def __exit__(self, *_):
        self.host.sh("rmmod simvport; modprobe ib_ipoib")

    def name(self):
        return self.host.sh(f"ls /sys/bus/pci/devices/{PF}/net").strip()

    def ours(self, *words):
        """(exit code, text) of /run/vport VERB PF VF [GUID]."""
        verb, vf, *guid = words
        code, text = self.host.code(" ".join(["/run/vport", verb, PF, str(vf), *(f"0x{g:016x}" for g in guid)]))
        return code, text.strip()

    def vfs(self):
        """[(node GUID, port GUID, link state)] as ip reads them."""
        link = json.loads(self.host.sh(f"ip -j -d link show dev {self.name()}"))[0]
        return [(number(v["node guid"]), number(v["port guid"]), v["link_state"]) for v in link["vfinfo_list"]]

    def set(self, parameter, value):
        self.host.sh(f"echo {value} > {PARAMETERS}/{parameter}")


def number(guid):
    return int(guid.replace(":", ""), 16)


@case
def the_kernel_takes_our_vf_guids(rig):
    """A tenant, the next one, nobody: what our back end says and what ip reads agree, and no other VF is touched."""
    with Device(rig.hva) as device:
        equal(device.vfs(), [NOBODY] * 4, "VFs of a fresh device")
        for guid in (A, B):
            equal(device.ours("program", 2, guid), (0, f"0x{guid:016x} 0x{guid:016x} auto used"), "program")
            equal(device.vfs(), [NOBODY, NOBODY, (guid, guid, "auto"), NOBODY], f"VFs with 0x{guid:x}")
        equal(device.ours("scrub", 2), (0, "0xffffffffffffffff 0x0000000000000000 down clean"), "scrub")
        equal(device.vfs(), [NOBODY] * 4, "VFs after the scrub")
        # A VF that is not enabled: mlx5_ib would write past its table.
        code, text = device.ours("program", 4, A)
        check(code == 1 and text.startswith("no_vport: "), f"VF 4 of 4: {text}")


@case
def refused_vf_guids_are_told(rig):
    """Firmware that takes no zero gets all ones; every other refusal is an error and leaves the VF with its link down."""
    nobody = (1 << 64) - 1
    with Device(rig.hva) as device:
        equal(device.ours("program", 0, A)[0], 0, "exit code of program")
        device.set("refuse_zero", 1)
        equal(device.ours("scrub", 0), (0, "0xffffffffffffffff 0xffffffffffffffff down clean"), "scrub")
        equal(device.vfs()[0], (nobody, nobody, "disable"), "VF 0 after the scrub")
        for errno, code in ((1, "vports_not_ours"), (16, "identity_failed"), (95, "no_vf_guids")):
            device.set("fail", errno)
            result, text = device.ours("program", 0, A)
            check(result == 1 and text.startswith(f"{code}: "), f"errno {errno}: {text}")
        equal(device.vfs()[0], (nobody, nobody, "disable"), "VF 0 after the refusals")


@case
def both_guids_in_one_nest_lose_the_second(rig):
    """Why each GUID is a message of its own: `ip` puts both into one IFLA_VF_INFO, and the kernel drops the port GUID."""
    with Device(rig.hva) as device:
        pair = " ".join(f"{kind} {A.to_bytes(8, 'big').hex(':')}" for kind in ("node_guid", "port_guid"))
        rig.hva.sh(f"ip link set dev {device.name()} vf 1 {pair}")
        equal(device.vfs()[1][:2], (A, 0), "GUIDs of VF 1")
        code, text = device.ours("read", 1)
        check(code == 0 and text.endswith("used"), f"half an identity is not clean: {text}")
