# SPDX-License-Identifier: LGPL-2.1-or-later
"""A hypervisor as cases see it: shell, libvirt, the agent, and the truth in its sysfs (read without the agent)."""

import json
import shlex

from kit.base import RigError, wait_for
from kit.vm import Vm

PF = "0000:01:00.0"
SOCKET = "/run/vhcad/vhcad.sock"
VFS = [f"0000:01:00.{n}" for n in range(1, 5)]
# Everything that the HCA's sysfs says, as lines "file NUL value": one process, because a loop in a shell takes 15 s on a busy
# machine. Formats: drivers/infiniband/hw/mlx4/sysfs.c.
FACTS = r"""cd /sys/bus/pci/devices/%s/infiniband/*/ 2>/dev/null || exit 0
cd "/sys/class/infiniband/${PWD##*/}" && echo "${PWD##*/}" && grep -HZ . ports/1/{lid,sm_lid,state,gids/0} \
	iov/ports/1/{admin_guids,gids,pkeys}/* iov/0*/ports/1/{pkey_idx,gid_idx}/*""" % PF
KINDS = {"pkey_idx": "map", "gid_idx": "gid"}


def parse_facts(text):
    """{lid, sm_lid, state, gid, admin_guids: {index: value}, gids, pkeys, "map BDF", "gid BDF"}; {} without the IB driver."""
    if not text:
        return {}
    name, *lines = text.splitlines()
    raw = {"ibdev": name}
    for line in lines:
        path, found, value = line.partition("\0")
        words = path.split("/")
        if not found:
            raise RigError(f"sysfs: {line}")
        if words[0] == "ports":
            raw["gid" if words[2] == "gids" else words[2]] = value
        else:
            table = words[3] if words[1] == "ports" else f"{KINDS[words[4]]} {words[1]}"
            raw.setdefault(table, {})[words[-1]] = value
    return raw


class Host:
    """hva or hvb."""

    def __init__(self, name):
        self.name = name
        self.vm = Vm(name)

    # ---- shell ----

    def sh(self, script, timeout=60, check=True, stdin=b""):
        """Run a script; return its output (stdout and stderr). RigError if it fails and check is set."""
        code, out = self.vm.exchange(script, stdin, timeout)
        text = out.decode(errors="replace")
        if check and code:
            raise RigError(f"{self.name}: {script.strip()[:300]}: exit code {code}\n{text[-2000:]}")
        return text

    def code(self, script, timeout=60, stdin=b""):
        """Run a script; return (exit code, output)."""
        code, out = self.vm.exchange(script, stdin, timeout)
        return code, out.decode(errors="replace")

    def put(self, path, data, mode="644"):
        quoted = shlex.quote(path)
        self.sh(f"mkdir -p $(dirname {quoted}) && cat > {quoted} && chmod {mode} {quoted}", stdin=data)

    def read(self, path):
        return self.sh(f"cat {shlex.quote(path)}").strip()

    def exists(self, path):
        return self.code(f"test -e {shlex.quote(path)}")[0] == 0

    # ---- the agent ----

    def vhcactl(self, *args, timeout=60):
        """vhcactl --json ARGS: the parsed answer."""
        text = self.sh(shlex.join(["vhcactl", "--json", *args]), timeout=timeout)
        return json.loads(text)

    def api(self, method, path, body=None, timeout=60):
        """The agent's answer to a request to /v1/PATH, whatever its status."""
        data = f"-H 'Content-Type: application/json' -d {shlex.quote(json.dumps(body))} " if body else ""
        return json.loads(self.sh(f"curl -s --unix-socket {SOCKET} -X {method} {data}{shlex.quote(f'http://a/v1/{path}')}", timeout=timeout))

    def agent_vfs(self):
        return {v["bdf"]: v for v in self.vhcactl("vfs")["vfs"]}

    def agent_vf(self, bdf):
        return self.agent_vfs().get(bdf, {})

    def vf_of(self, guest, name="ib0"):
        """The agent's view of the VF that a guest has under this name, or {}."""
        for vf in self.agent_vfs().values():
            if vf["name"] == name and vf["domain"] in (guest.name, guest.uuid):
                return vf
        return {}

    def wait_attached(self, guest, name="ib0", granted=False, timeout=120):
        """Wait until the agent calls the guest's VF attached (and granted); return its view."""
        def there():
            vf = self.vf_of(guest, name)
            return vf if vf.get("state") == "attached" and (vf["granted"] or not granted) else None
        return wait_for(there, timeout, f"{guest.name}: {name} attached{' and granted' if granted else ''}", 0.4)

    def wait_vf(self, bdf, state, timeout=60):
        return wait_for(lambda: (lambda v: v if v.get("state") == state else None)(self.agent_vf(bdf)), timeout,
                        f"{self.name}: {bdf} to be {state} (is {self.agent_vf(bdf)})", 0.3)

    # ---- truth ----

    def facts(self):
        """The HCA's sysfs, read now: see class Facts."""
        return Facts(parse_facts(self.sh(FACTS)))

    def driver(self, bdf):
        """Driver bound to a PCI function, or ''."""
        return self.sh(f"readlink /sys/bus/pci/devices/{bdf}/driver || true").strip().rpartition("/")[2]

    def journal(self, unit="vhcad", lines=200):
        return self.sh(f"journalctl --no-pager -b -u {unit} -n {lines} -o short-monotonic", check=False)


class Facts:
    """One snapshot of the HCA. A VF is named by its PCI address; function n of the rig's PF is slave n."""

    def __init__(self, raw):
        self.raw = raw
        self.ibdev, self.lid, self.state = (raw.get(k) for k in ("ibdev", "lid", "state"))

    @property
    def port_guid(self):
        return int("".join(self.raw["gid"].split(":")[4:]), 16)

    def port_pkeys(self):
        """The port's P_Key table: {physical index: value}, without empty entries."""
        table = {int(i): int(v, 16) for i, v in self.raw["pkeys"].items()}
        return {i: v for i, v in sorted(table.items()) if v & 0x7fff}

    def gid_index(self, bdf):
        return int(self.raw[f"gid {bdf}"]["0"])

    def pkey_map(self, bdf):
        """What the guest's table shows: {virtual index: P_Key value}, without `none` entries."""
        pkeys = {int(i): int(v, 16) for i, v in self.raw["pkeys"].items()}
        entries = {int(i): v for i, v in self.raw[f"map {bdf}"].items() if v != "none"}
        return {i: pkeys[int(v)] for i, v in sorted(entries.items())}

    def admin_guid(self, bdf):
        return int(self.raw["admin_guids"][str(self.gid_index(bdf))], 16)

    def held_guids(self):
        """The port's GUID table."""
        return {int("".join(gid.split(":")[4:]), 16) for gid in self.raw["gids"].values()}

    def identity(self, hostdevs):
        """What a guest has on its VFs (Guest.live_hostdevs): {name: (vGUID, P_Keys, address in the guest)}."""
        return {alias.removeprefix("ua-vhca-"): (f"0x{self.admin_guid(bdf):016x}", sorted(self.pkey_map(bdf).values()), address)
                for bdf, (alias, address) in hostdevs.items()}

    def granted_guid(self, bdf):
        """The alias GUID in the port's GUID table, 0 while not granted."""
        return int("".join(self.raw["gids"][str(self.gid_index(bdf))].split(":")[4:]), 16)
