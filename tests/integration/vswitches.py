# SPDX-License-Identifier: LGPL-2.1-or-later
"""The vSwitch model on ibsim: each hypervisor is a switch, and behind it its PF and its VFs are HCAs with a port each.

Hypervisor n is the switch Vn: port 1 leads to its leaf, at port 2 is the PF Hn, at port 2 + v is the VF Fn-v.
"""

import os
import re
import struct

import fabric
import fattree

LEAVES, SPINES, PER_LEAF, VFS = 3, 2, 2, 3
HYPERVISORS = LEAVES * PER_LEAF
UPLINK, PF = 1, 2
SWITCH_INFO, TOP = 0x12, 6    # offset of LinearFDBTop
LFT_BLOCK, KEYS, KEY_BLOCK = 64, 64, 32


def resize(leaves, spines, per_leaf, vfs):
    """All that is made from now on is so large."""
    global LEAVES, SPINES, PER_LEAF, VFS, HYPERVISORS
    LEAVES, SPINES, PER_LEAF, VFS, HYPERVISORS = leaves, spines, per_leaf, vfs, leaves * per_leaf


def own_guid(n, v):
    """Port GUID of a VF before any guest: a vport always has one, and so a LID."""
    return f"0x{0x0002c90700000000 + (n * 64 + v) * 16 + 1:016x}"


def hypervisor(n):
    leaf, port = (n - 1) // PER_LEAF + 1, (n - 1) % PER_LEAF + 1
    vfs = range(1, VFS + 1)
    text = fattree.node("Hca", f"H{n}", int(fabric.port_guid(n), 0) - 1, [(1, f"V{n}", PF)])
    for v in vfs:
        text += fattree.node("Hca", f"F{n}-{v}", int(own_guid(n, v), 0) - 1, [(1, f"V{n}", PF + v)])
    return text + fattree.node("Switch", f"V{n}", 0x0002c90800000000 + n * 16,
                               [(UPLINK, f"L{leaf}", port), (PF, f"H{n}", 1), *((PF + v, f"F{n}-{v}", 1) for v in vfs)], PF + VFS + 1)


def with_two_ports(n, v, text):
    """The network, but this VF has a second port, at the switch's port after all VFs."""
    one, switch, last = f'Hca 1 "F{n}-{v}"\n[1] "V{n}"[{PF + v}]\n', f'[{PF + VFS}] "F{n}-{VFS}"[1]\n', PF + VFS + 1
    return text.replace(one, one.replace("Hca 1", "Hca 2") + f'[2] "V{n}"[{last}]\n').replace(switch, switch + f'[{last}] "F{n}-{v}"[2]\n')


def network():
    text = "".join(hypervisor(n) for n in range(1, HYPERVISORS + 1))
    for leaf in range(1, LEAVES + 1):
        text += fattree.node("Switch", f"L{leaf}", 0x0002c90400000000 + leaf * 16,
                             [(p, f"V{(leaf - 1) * PER_LEAF + p}", UPLINK) for p in range(1, PER_LEAF + 1)] +
                             [(PER_LEAF + s, f"S{s}", leaf) for s in range(1, SPINES + 1)])
    for s in range(1, SPINES + 1):
        text += fattree.node("Switch", f"S{s}", 0x0002c90500000000 + s * 16,
                             [(leaf, f"L{leaf}", PER_LEAF + s) for leaf in range(1, LEAVES + 1)])
    return text


def leaf_way(leaf):
    """Exit ports from the first PF on; to other leaves by the first spine."""
    return [1, UPLINK] if leaf == 1 else [1, UPLINK, PER_LEAF + 1, leaf]


def hypervisor_way(n):
    return [1] if n == 1 else leaf_way((n - 1) // PER_LEAF + 1) + [(n - 1) % PER_LEAF + 1]


def switch_ways():
    """{switch: way}"""
    ways = {f"V{n}": hypervisor_way(n) for n in range(1, HYPERVISORS + 1)}
    ways.update({f"L{leaf}": leaf_way(leaf) for leaf in range(1, LEAVES + 1)})
    ways.update({f"S{s}": leaf_way(1) + [PER_LEAF + s] for s in range(1, SPINES + 1)})
    return ways


def end_way(name):
    """To a PF Hn or a VF Fn-v."""
    n, v = re.fullmatch(r"[HF](\d+)(?:-(\d+))?", name).groups()
    return [] if name == "H1" else hypervisor_way(int(n)) + [PF + int(v or 0)]


class VSwitches(fabric.Fabric):
    """The hypervisors' hardware: who has which GUID is up to them, the subnet manager only sees it."""

    LIDS_MOVE = True

    def __init__(self, text=None, options=()):
        super().__init__(text or network(), console=True, options=options)
        self.guid = {(n, v): own_guid(n, v) for n in range(1, HYPERVISORS + 1) for v in range(1, VFS + 1)}

    def env(self, host=1, preload=fabric.UMAD2SIM):
        """host: of a PF its hypervisor, or the name of a VF."""
        env = super().env(host, preload)
        return {**env, "SIM_HOST": host} if isinstance(host, str) else env

    def program(self, n, v, guid):
        """ibsim's HCAs have the port GUID that follows their node GUID."""
        self.console(f'Guid "F{n}-{v}" 0x{int(guid, 0) - 1:x}')
        self.guid[n, v] = guid

    def exchange(self, a, b):
        """Two vports exchange their GUIDs: never is one at two places."""
        guid = self.guid[a], self.guid[b]
        self.program(*a, "0x0002c9ffffffff01")
        self.program(*b, guid[0])
        self.program(*a, guid[1])

    def take(self, n, v):
        """The VF has no port any more: it has no guest, or that has no driver."""
        self.console(f'Unlink "F{n}-{v}"')

    def give(self, n, v, guid):
        """It has one again, with this GUID."""
        self.program(n, v, guid)
        self.console(f'ReLink "F{n}-{v}"')

    def directed(self, *wanted):
        """What is at the end of each [way, attribute, modifier] from the first PF; None without an answer."""
        answers = self.watch(1).ask("directed", *wanted)
        return [answer and bytes.fromhex(answer) for answer in answers]

    def tops(self):
        """{switch: LinearFDBTop}, as the switches themselves answer."""
        ways = switch_ways()
        answers = self.directed(*([way, SWITCH_INFO, 0] for way in ways.values()))
        return {name: struct.unpack_from(">H", info, TOP)[0] for name, info in zip(ways, answers) if info}

    def tables(self):
        """{switch: {LID: exit port}}, as the switches themselves have it; 255 where they drop."""
        ways, tops = switch_ways(), self.tops()
        blocks = [(name, block) for name, top in tops.items() for block in range(top // LFT_BLOCK + 1)]
        answers = self.directed(*([ways[name], fattree.LFT, block] for name, block in blocks))
        found = {name: [] for name in tops}
        for (name, _), ports in zip(blocks, answers):
            found[name].append(ports)
        return {name: dict(enumerate(b"".join(ports)[:tops[name] + 1])) for name, ports in found.items()}

    def pkeys(self, host):
        """As of any fabric, without a program for each question; a port that nothing leads to is asked by itself."""
        way = end_way(host if isinstance(host, str) else f"H{host}")
        blocks = self.directed(*([way, fattree.PKEY_TABLE, block] for block in range(KEYS // KEY_BLOCK)))
        if None in blocks:
            return super().pkeys(host)
        keys = struct.unpack(f">{KEYS}H", b"".join(blocks))
        return {index: f"0x{key:04x}" for index, key in enumerate(keys) if key}

    def place(self, guid):
        """(hypervisor, VF) where a GUID is."""
        return next(at for at, g in self.guid.items() if g == guid)

    def who(self, lid, host):
        """(hypervisor, VF) of the node that an SMP reaches which is routed by LID, from the PF of a hypervisor."""
        out = self.query("smpquery", "nodedesc", str(lid), host=host) or ""
        found = re.search(r"Node Description:\.*F(\d+)-(\d+)", out)
        return found and (int(found.group(1)), int(found.group(2)))


def group_ports(net):
    """{switch: its ports in the broadcast group's tree}, as the switches' own tables have it. A row has a blank or an x for each port."""
    found = {}
    for name, rows in re.findall(r"\((\w+)\):\n(.*?)valid mlids dumped", net.query("dump_mfts") or "", re.S):
        row = re.search(r"^0xc000 {6}(.*)$", rows, re.M)
        found[name] = [i // 2 for i in range(0, len(row.group(1)), 2) if row.group(1)[i] == "x"] if row else []
    return found


def lids(sm):
    """{port GUID: LID} of all HCAs, as the plugin says it."""
    found = {}
    for lid in range(1, sm.api.call("GET", "/v1/fabric")[1]["max_lid"] + 1):
        status, row = sm.api.call("GET", f"/v1/lids/{lid}")
        if status == 200 and not row["is_switch"]:
            found[row["port_guid"]] = lid
    return found


def guid2lid(sm):
    with open(os.path.join(sm.cache_dir, "guid2lid"), encoding="ascii") as f:
        return f.read()


def move(sm, vguid, epoch, source, to, policy="vport", phase="commit", pkeys=()):
    """What a destination's agent reports of a VM that comes from another hypervisor; source, to: (hypervisor, VF)."""
    body = {"id": "0b6c5a5e-3d5d-4e0e-9c53-0d6f5f1f0a01", "epoch": epoch, "vguid": vguid, "phase": phase,
            "from": {"port_guid": fabric.port_guid(source[0]), "gid_index": 0, "lid": 0},
            "to": {"port_guid": fabric.port_guid(to[0]), "gid_index": 0, "lid": 0}, "pkeys": list(pkeys)}
    if policy == "vport":
        body["lid_policy"], body["to"]["vport"] = policy, to[1]
    return sm.api.call("POST", "/v1/moves", body, timeout=70)
