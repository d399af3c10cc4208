# SPDX-License-Identifier: LGPL-2.1-or-later
"""One hypervisor whose adapter is of the mlx5 family (simhca's mlx5_core, the kernel's own ib_ipoib and rtnetlink).

One story, so that the adapter changes its family once: first our back end alone, then our agent with a guest. What is believed is `ip`,
which shares no code with us. There is no adapter: nothing here shows what firmware does.
"""

import json
from kit.base import wait_for
from kit.blocking import Watch, Write, answered_throughout, holding_guest
from kit.case import VFS, case, check, equal, free_vfs
from kit.host import PF
from kit.hypervisors import build_tool

A, B = 0x02C9_AB00_0000_0002, 0x02C9_AB00_0000_0009
NOBODY = (0, 0, "disable")
DEVICE = f"/sys/bus/pci/devices/{PF}"
PARAMETERS = "/sys/module/mlx5_core/parameters"
FREED = (0, (1 << 64) - 1)
# The adapter leaves mlx4_core, which stays loaded: mlx5_core stands on it, and takes what driver_override gives it.
BECOME = f"""set -e
systemctl stop vhcad opensm-vhcad
systemctl stop 'rig-cable@*'
modprobe -r mlx5_core
echo mlx5_core > {DEVICE}/driver_override
[ ! -e {DEVICE}/driver ] || echo {PF} > {DEVICE}/driver/unbind
modprobe mlx5_core ofed=%d
for i in $(seq 100); do [ -e {DEVICE}/infiniband ] && break; sleep 0.1; done
udevadm settle"""


class Adapter:
    """hva's adapter as mlx5, and the program `vport` beside it."""

    def __init__(self, host):
        self.host = host
        host.put("/run/vport", build_tool("vport").read_bytes(), "755")

    def become(self, ofed=False):
        """Fresh from the driver, without VFs."""
        self.host.sh(BECOME % ofed)

    def set_vfs(self, count):
        self.host.sh(f"echo {count} > {DEVICE}/sriov_numvfs")

    def name(self):
        return self.host.sh(f"ls {DEVICE}/net").strip()

    def ours(self, *words):
        """(exit code, text) of /run/vport VERB PF VF [GUID]."""
        verb, vf, *guid = words
        code, text = self.host.code(" ".join(["/run/vport", verb, PF, str(vf), *(f"0x{g:016x}" for g in guid)]))
        return code, text.strip()

    def vfs(self):
        """[(node GUID, port GUID, link state)] as ip reads them."""
        link = json.loads(self.host.sh(f"ip -j -d link show dev {self.name()}"))[0]
        return [(number(v["node guid"]), number(v["port guid"]), v["link_state"]) for v in link["vfinfo_list"]]

    def files(self, vf):
        """What MLNX_OFED's files say: node GUID, port GUID, policy."""
        return self.host.sh(f"cd {DEVICE}/sriov/{vf} && cat node port policy").split()

    def set(self, parameter, value):
        self.host.sh(f"echo {value} > {PARAMETERS}/{parameter}")

    def ip(self, vf, *words):
        self.host.sh(f"ip link set dev {self.name()} vf {vf} " + " ".join(words))


def start_agent(host):
    """The agent, with an empty store, and the SM."""
    host.sh("rm -rf /var/lib/vhcad/* /run/vhcad/*; systemctl start opensm-vhcad vhcad", timeout=90)
    wait_for(lambda: free_vfs(host) == VFS, 60, "the agent to call its VFs free", 0.3)


def alarms(host, bdf):
    """The agent's alarms about a VF, oldest first."""
    text = host.sh("curl -sf --unix-socket /run/vhcad/vhcad.sock http://localhost/v1/events")
    return [e["text"] for e in json.loads(text)["events"] if e["kind"] == "alarm" and e["subject"] == bdf]


def number(guid):
    return int(guid.replace(":", ""), 16)


def colons(guid):
    return guid.to_bytes(8, "big").hex(":")


@case(kills=("hva vhcad", "hva opensm-vhcad"))
def the_kernel_takes_our_vf_guids(rig):
    """A tenant, the next one, nobody: what our back end says and what ip reads agree, and no other VF is touched."""
    adapter = rig.story["adapter"] = Adapter(rig.hva)
    adapter.become()
    rig.hva.sh("modprobe ib_ipoib && udevadm settle")
    adapter.set_vfs(4)
    equal(adapter.vfs(), [NOBODY] * 4, "VFs of a fresh adapter")
    for guid in (A, B):
        equal(adapter.ours("program", 2, guid), (0, f"0x{guid:016x} 0x{guid:016x} auto used"), "program")
        equal(adapter.vfs(), [NOBODY, NOBODY, (guid, guid, "auto"), NOBODY], f"VFs with 0x{guid:x}")
    equal(adapter.ours("scrub", 2), (0, "0xffffffffffffffff 0x0000000000000000 down clean"), "scrub")
    equal(adapter.vfs(), [NOBODY] * 4, "VFs after the scrub")
    # A VF that is not enabled: mlx5_ib would write past its table.
    code, text = adapter.ours("program", 4, A)
    check(code == 1 and text.startswith("no_vport: "), f"VF 4 of 4: {text}")


@case(story=True)
def refused_vf_guids_are_told(rig):
    """Firmware that takes no zero gets all ones; every other refusal is an error and leaves the VF with its link down."""
    adapter, nobody = rig.story["adapter"], (1 << 64) - 1
    equal(adapter.ours("program", 0, A)[0], 0, "exit code of program")
    adapter.set("refuse_zero", 1)
    equal(adapter.ours("scrub", 0), (0, "0xffffffffffffffff 0xffffffffffffffff down clean"), "scrub")
    equal(adapter.vfs()[0], (nobody, nobody, "disable"), "VF 0 after the scrub")
    for errno, code in ((1, "vports_not_ours"), (16, "identity_failed"), (95, "no_vf_guids")):
        adapter.set("fail", errno)
        result, text = adapter.ours("program", 0, A)
        check(result == 1 and text.startswith(f"{code}: "), f"errno {errno}: {text}")
    equal(adapter.vfs()[0], (nobody, nobody, "disable"), "VF 0 after the refusals")
    adapter.set("fail", 0)
    adapter.set("refuse_zero", 0)


@case(story=True)
def both_guids_in_one_nest_lose_the_second(rig):
    """Why each GUID is a message of its own: `ip` puts both into one IFLA_VF_INFO, and the kernel drops the port GUID."""
    adapter = rig.story["adapter"]
    adapter.ip(1, "node_guid", colons(A), "port_guid", colons(A))
    equal(adapter.vfs()[1][:2], (A, 0), "GUIDs of VF 1")
    code, text = adapter.ours("read", 1)
    check(code == 0 and text.endswith("used"), f"half an identity is not clean: {text}")


@case(story=True)
def vfs_made_anew_have_their_former_tenants(rig):
    """The driver gives remembered GUIDs back to VFs that are removed and made again: what our agent will find."""
    adapter = rig.story["adapter"]
    equal(adapter.ours("program", 3, B)[0], 0, "exit code of program")
    adapter.set_vfs(0)
    adapter.set_vfs(4)
    equal(adapter.vfs()[3], (B, B, "auto"), "VF 3 made anew")
    adapter.set_vfs(0)


@case(story=True, kills=("hva vhcad", "hva opensm-vhcad"))
def agent_makes_and_scrubs_its_vfs(rig):
    """No VFs: the agent makes as many as are configured, takes them to vfio-pci, and withdraws what a former tenant left in them."""
    host, adapter = rig.hva, rig.story["adapter"]
    start_agent(host)
    equal(host.read(f"{DEVICE}/sriov_numvfs"), "4", "sriov_numvfs")
    equal(host.read(f"{DEVICE}/sriov_drivers_autoprobe"), "0", "sriov_drivers_autoprobe")
    equal([host.driver(b) for b in VFS], ["vfio-pci"] * 4, "drivers of the VFs")
    for vf, state in enumerate(adapter.vfs()):
        check(state[0] in FREED and state[1] in FREED and state[2] == "disable", f"VF {vf} is {state}")
    (hca,) = host.get("hcas")["hcas"]
    equal((hca["family"], hca["capabilities"]), ("mlx5", {"host_pkey_map": False, "sees_grant": False, "link_policy": True}), "adapter")


@case(story=True)
def guest_gets_its_guids(rig):
    """A guest asks for a partition by its metadata: its VF has node and port GUID and follows the port's link, the others nothing."""
    host, adapter = rig.hva, rig.story["adapter"]
    guest = rig.story["guest"] = rig.guest(host, 1, ("ib0", "0x8001"))
    vf = host.wait_attached(guest.start(wait=False))
    guid, index = int(vf["requested"], 16), VFS.index(vf["bdf"])
    equal(adapter.vfs()[index], (guid, guid, "auto"), "the guest's VF")
    equal([s[2] for s in adapter.vfs()].count("disable"), 3, "VFs whose link is down")
    equal((vf["node_guid"], vf["link_policy"], host.driver(vf["bdf"])), (vf["requested"], "auto", "vfio-pci"), "the agent's view")
    rig.story.update(bdf=vf["bdf"], guid=guid, index=index)


@case(story=True)
def explain_names_the_sm(rig):
    """Stock OpenSM has no virtualization support: the VF is not granted, and explain says why and what would help."""
    def names_the_sm():
        now = rig.hva.vhcactl("explain", "vm1")["verdict"]
        return now["status"] == "wrong" and "no virtualization support" in now["text"] and "virt_enabled 2" in now["fix"]
    wait_for(names_the_sm, 60, f"explain to name the SM; at first it says {rig.hva.vhcactl('explain', 'vm1')}", 0.5)
    equal(rig.hva.agent_vf(rig.story["bdf"])["granted"], False, "granted")


@case(story=True)
def foreign_guid_is_healed(rig):
    """Somebody sets the port GUID and the link of a guest's VF by `ip link`: both are put back, and an event tells."""
    host, adapter, bdf = rig.hva, rig.story["adapter"], rig.story["bdf"]
    guid, index = rig.story["guid"], rig.story["index"]

    def is_healed(text):
        vf = host.agent_vf(bdf)
        return (text in alarms(host, bdf) and (int(vf["requested"], 16), vf["link_policy"]) == (guid, "auto")
                and adapter.vfs()[index] == (guid, guid, "auto"))
    for words, found in ((("port_guid", colons(A)), f"GUID 0x{A:016x} instead of 0x{guid:016x}"), (("state", "disable"), "link down")):
        text = f"is not what was programmed: {found}; it is restored"
        adapter.ip(index, *words)
        wait_for(lambda t=text: is_healed(t), 60, f"the VF's own again after {words}", 0.3)


@case(story=True)
def stopping_clears_the_guids(rig):
    """The guest ends: its VF has no GUID and its link is down."""
    host, adapter = rig.hva, rig.story["adapter"]
    rig.story["guest"].destroy()
    host.wait_vf(rig.story["bdf"], "free", 60)
    equal(adapter.vfs()[rig.story["index"]], NOBODY, "the VF that the guest had")


@case(story=True)
def vf_count_is_taken_from_a_guest(rig):
    """A guest holds a VF and somebody writes sriov_numvfs: that waits for the guest, the API for nobody, and the agent makes its VFs again."""
    host = rig.hva
    guest, bdf = holding_guest(rig, host)
    watch = Watch(host)
    write = Write(host, "count", 0, f"{DEVICE}/sriov_numvfs")
    wait_for(lambda: not host.agent_vf(bdf)["present"], 120, f"{bdf} gone, which the scan of each minute sees")
    watch.wait_rounds()
    check(not write.ended(), "the kernel did not wait for the guest")
    guest.destroy()
    begin, end = write.wait_ended()
    answered_throughout(watch.stop(), begin, end)
    equal(host.get("node")["loop"]["blocking_calls"], 0, "blocking calls on the state thread")
    wait_for(lambda: free_vfs(host) == VFS, 90, f"all VFs made again and free: {host.agent_vfs()}")


@case(story=True, dirty=True, kills=("hva vhcad", "hva opensm-vhcad"))
def ofeds_files_take_our_vf_guids(rig):
    """MLNX_OFED's sysfs files and no network device: our back end and the agent work through them."""
    host, adapter = rig.hva, rig.story["adapter"]
    host.sh("modprobe -r ib_ipoib")
    adapter.become(ofed=True)
    adapter.set_vfs(4)
    equal(adapter.ours("program", 2, A), (0, f"0x{A:016x} 0x{A:016x} auto used"), "program")
    equal(adapter.files(2), [colons(A), colons(A), "Follow"], "files of VF 2")
    equal(adapter.files(1), [colons(0), colons(0), "Down"], "files of VF 1")
    start_agent(host)
    equal(adapter.files(2), [colons(0), colons(0), "Down"], "files of VF 2 when the agent calls it free")
