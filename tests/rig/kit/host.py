# SPDX-License-Identifier: LGPL-2.1-or-later
"""A hypervisor as cases see it: shell, libvirt, the agent, and the truth in its sysfs (read without the agent)."""

import contextlib
import json
import shlex
import tempfile

from kit import door
from kit.base import RigError, wait_for
from kit.vm import Vm

PF = "0000:01:00.0"
SOCKET = "/run/vhcad/vhcad.sock"
INVOCATION = "/run/systemd/units/invocation:"  # systemd has this link while the unit runs, to an id of this run
VFS = [f"0000:01:00.{n}" for n in range(1, 5)]
IBDEV = f"/sys/bus/pci/devices/{PF}/infiniband/*"
# Everything that the HCA's sysfs says. Formats: drivers/infiniband/hw/mlx4/sysfs.c.
FACTS = [f"{IBDEV}/{file}" for file in (
    "ports/1/lid", "ports/1/sm_lid", "ports/1/state", "ports/1/gids/0",
    "iov/ports/1/admin_guids/*", "iov/ports/1/gids/*", "iov/ports/1/pkeys/*",
    "iov/0*[!0]/ports/1/pkey_idx/*", "iov/0*[!0]/ports/1/gid_idx/*")]
KINDS = {"pkey_idx": "map", "gid_idx": "gid"}


def parse_facts(files):
    """{lid, sm_lid, state, gid, admin_guids: {index: value}, gids, pkeys, "map BDF", "gid BDF"}; {} without the IB driver."""
    raw = {}
    for path, value in files.items():
        ibdev, _, file = path.partition("/infiniband/")[2].partition("/")
        if not ibdev:
            continue
        if isinstance(value, OSError):
            raise RigError(f"sysfs: {value}")
        raw["ibdev"], value, words = ibdev, value.strip(), file.split("/")
        if words[0] == "ports":
            raw["gid" if words[2] == "gids" else words[2]] = value
        elif value:
            table = words[3] if words[1] == "ports" else f"{KINDS[words[4]]} {words[1]}"
            raw.setdefault(table, {})[words[-1]] = value
    return raw


def file_with(text):
    """A file that lasts as long as it is open."""
    file = tempfile.NamedTemporaryFile("w")
    file.write(text)
    file.flush()
    return file


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
        self.vm.put(path, data, mode)

    def read(self, path):
        found = self.vm.files(path).get(path, FileNotFoundError(path))
        if isinstance(found, OSError):
            raise RigError(f"{self.name}: {path}: {found}")
        return found.strip()

    def exists(self, path):
        return path in self.vm.links(path)

    def virsh(self, *args, timeout=60, check=True):
        """What virsh says; RigError if it fails and check is set. It reads an argument that is XML from a file."""
        with contextlib.ExitStack() as files:
            args = [files.enter_context(file_with(a)).name if a.startswith("<") else a for a in args]
            code, text = self.vm.virsh(*args, timeout=timeout)
        if check and code:
            raise RigError(f"{self.name}: virsh {' '.join(args)}: exit code {code}\n{text[-2000:]}")
        return text

    def domains(self, *which):
        """Names of the domains that run; of all with "--all"."""
        return self.virsh("list", "--name", *which).split()

    def is_active(self, unit):
        """Does systemd run this service?"""
        link = INVOCATION + unit + ".service"
        return link in self.vm.links(link)

    # ---- the agent ----

    def vhcactl(self, *args, timeout=60):
        """vhcactl --json ARGS: the parsed answer."""
        text = self.sh(shlex.join(["vhcactl", "--json", *args]), timeout=timeout)
        return json.loads(text)

    def ask(self, path, method="GET", body=None, timeout=60):
        """(status, text) of the agent's answer; NoAnswer if there is none."""
        return door.ask(self.vm, f"unix {SOCKET}", path, method, body, timeout=timeout)

    def api(self, method, path, body=None, timeout=60):
        """The agent's answer to a request to /v1/PATH, whatever its status."""
        return json.loads(self.ask(f"/v1/{path}", method, body, timeout)[1])

    def get(self, path):
        """The agent's document /v1/PATH."""
        return self.api("GET", path)

    def is_ready(self):
        """Does the agent's /readyz say so?"""
        try:
            return self.ask("/readyz")[0] == 200
        except RigError:
            return False

    def agent_vfs(self):
        return {v["bdf"]: v for v in self.get("vfs")["vfs"]}

    def agent_vf(self, bdf):
        return self.agent_vfs().get(bdf, {})

    def vf_of(self, guest, name="ib0"):
        """The agent's view of the VF that a guest has under this name, or {}."""
        for vf in self.agent_vfs().values():
            if vf["name"] == name and vf["domain"] in (guest.name, guest.uuid):
                return vf
        return {}

    def wait_attached(self, guest, name="ib0", granted=False, timeout=120):
        """Wait until the agent calls the guest's VF attached (and granted) and has read its hardware; return its view."""
        def there():
            vf = self.vf_of(guest, name)
            return vf if vf.get("state") == "attached" and vf["requested"] and (vf["granted"] or not granted) else None
        return wait_for(there, timeout, f"{guest.name}: {name} attached{' and granted' if granted else ''}", 0.4)

    def wait_vf(self, bdf, state, timeout=60):
        """Wait until the agent calls the VF so; return its view."""
        seen = {}

        def there():
            seen.update(self.agent_vf(bdf))
            return seen if seen.get("state") == state else None
        try:
            return wait_for(there, timeout, f"{self.name}: {bdf} to be {state}", 0.3)
        except RigError as e:
            raise RigError(f"{e}; it was {seen}") from None

    # ---- truth ----

    def facts(self):
        """The HCA's sysfs, read now: see class Facts."""
        return Facts(parse_facts(self.vm.files(*FACTS)))

    def driver(self, bdf):
        """Driver bound to a PCI function, or ''."""
        return "".join(self.vm.links(f"/sys/bus/pci/devices/{bdf}/driver").values()).rpartition("/")[2]

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
