# SPDX-License-Identifier: LGPL-2.1-or-later
"""For tests of drivers/opennebula: a hypervisor's /var/tmp/one with doubles of the stock scripts, and a stub vhcactl that records."""

import base64
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import time
import unittest

ROOT = pathlib.Path(os.environ["VHCA_SOURCE_DIR"])
DRIVERS = ROOT / "drivers/opennebula"
STOCK = ("attach_disk attach_nic cancel deploy detach_disk detach_nic migrate migrate_local prereconfigure reboot reconfigure "
         "reset resize resize_disk restore save shutdown snapshot_create snapshot_delete snapshot_revert").split()
UUID = "2f3c1b9e-5d0a-4b9d-9a1c-5f0b6d1c7e11"

# What a stock script would do is to say where it comes from, and to keep what it got.
DOUBLE = """#!/bin/sh
printf '%s\\n' "kvm/${0##*/}" >>"$REC/order"
printf '%s\\0' "$@" >"$REC/kvm.${0##*/}.argv"
cat >"$REC/kvm.${0##*/}.stdin"
echo "stock ${0##*/}"
echo "stock ${0##*/} on stderr" >&2
exit "$(cat "$REC/kvm.${0##*/}.exit" 2>/dev/null || echo 0)"
"""
CTL = """#!/bin/sh
[ -z "$VHCACTL_URL" ] || { echo "vhcactl: $VHCACTL_URL is another host's agent" >&2; exit 1; }
printf '%s\\n' "vhcactl $*" >>"$REC/order"
[ "$1" = --json ] && shift
[ "$1" = --timeout ] && shift 2
[ "$1" != plan ] || cat >"$REC/plan.xml"
[ "$1" != "$(cat "$REC/hangs" 2>/dev/null)" ] || { rm "$REC/hangs"; cat "$REC/fifo"; }
if status=$(sed -n 1p "$REC/ctl.$1.exit" 2>/dev/null) && [ -n "$status" ]; then
	sed -i 1d "$REC/ctl.$1.exit"
	echo "vhcactl: no such thing
more of it" >&2
	[ "$status" -lt 128 ] || kill -$((status - 128)) $$
	exit "$status"
fi
cat "$REC/ctl.$1" 2>/dev/null || echo "said by vhcactl $1"
"""

# libvirt gives metadata without the namespace.
VIRSH = """#!/bin/sh
printf '%s\\n' "virsh $*" >>"$REC/order"
case $* in *" --set "* | *" --remove") exit ;; esac
cat "$REC/virsh" 2>/dev/null && exit
echo "error: metadata not found: Requested metadata element is not present" >&2
exit 1
"""


def vectors():
    """[(release, case, [call])] of all releases, where one stands for those that are the same."""
    doc = json.loads((ROOT / "tests/data/one-vectors.json").read_text("utf-8"))
    found = []
    for release, cases in doc["releases"].items():
        for case, what in cases.items():
            if isinstance(what, str):
                what = doc["releases"][what.removeprefix("as ")][case]
            found.append((release, case, [{**c, "stdin": doc["stdin"][c["stdin"]]} for c in what["calls"]]))
    return found


def write(path, text):
    """Whoever reads it meanwhile has all of the old one or of the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f"{path.name}.new")
    new.write_bytes(text if isinstance(text, bytes) else text.encode())
    new.replace(path)


def program(path, text):
    write(path, text)
    path.chmod(0o755)


class HostCase(unittest.TestCase):
    def setUp(self):
        self.where = pathlib.Path(tempfile.mkdtemp(prefix="vhca-one."))
        self.addCleanup(shutil.rmtree, self.where)
        self.remotes = self.where / "one"
        for kind in ("vmm", "vnm"):
            shutil.copytree(DRIVERS / kind, self.remotes / kind)
        for name in STOCK:
            program(self.remotes / "vmm/kvm" / name, DOUBLE)
            if not (self.remotes / "vmm/vhca" / name).exists():
                shutil.copy(self.remotes / "vmm/vhca/pass", self.remotes / "vmm/vhca" / name)
        program(self.where / "bin/vhcactl", CTL)
        program(self.where / "bin/virsh", VIRSH)
        self.env = {**os.environ, "PATH": f"{self.where}/bin:/usr/bin:/bin", "LC_ALL": "C", "TMPDIR": str(self.where / "tmp"),
                    "VHCA_ANSWER_WAIT": "1", "VHCACTL_URL": "https://elsewhere.example:1"}
        (self.where / "tmp").mkdir()
        self.forget()

    def forget(self):
        self.rec = self.where / "rec"
        shutil.rmtree(self.rec, ignore_errors=True)
        self.rec.mkdir()
        self.env["REC"] = str(self.rec)
        write(self.rec / "ctl.node", json.dumps({"libvirt": {"synced": True}}))

    def agent_has(self, domains=(), free=8, reserved=0, claims=(), migrations=(), synced=True):
        requests = "".join(f"<vf name='{request['name']}'/>" for one in domains for request in one["requests"])
        if requests:
            write(self.rec / "virsh", f"<infiniband>{requests}</infiniband>")
        write(self.rec / "ctl.node", json.dumps({"libvirt": {"synced": synced}}))
        vfs = [{"fabric": "default", "reserved": i >= free} for i in range(free + reserved)]
        for what, rows in (("domains", domains), ("vfs", vfs), ("claims", claims), ("migrations", migrations)):
            write(self.rec / f"ctl.{what}", json.dumps({what: list(rows)}))

    def break_next(self, who, *statuses):
        """The next calls of vhcactl's command "ctl.NAME", or the stock "kvm.NAME", end so."""
        write(self.rec / f"{who}.exit", "".join(f"{status}\n" for status in statuses))

    def run_script(self, script, argv, stdin, **env):
        data = stdin if isinstance(stdin, bytes) else stdin.encode()
        return subprocess.run([str(self.remotes / script), *argv], input=data, capture_output=True, timeout=60,
                              env={**self.env, **env}, check=False)

    def begin_script(self, script, argv, stdin, command):
        """Up to its first call of this command of vhcactl's: (the script, what that call waits for the end of)."""
        os.mkfifo(self.rec / "fifo")
        write(self.rec / "hangs", command)
        # Whoever runs these tests may ignore HUP and INT.
        p = subprocess.Popen(["env", "--default-signal", str(self.remotes / script), *argv], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, env=self.env, start_new_session=True)
        self.addCleanup(p.kill)
        p.stdin.write(stdin.encode())
        p.stdin.close()
        p.stdin = None
        deadline = time.monotonic() + 60
        while True:
            try:
                return p, os.fdopen(os.open(self.rec / "fifo", os.O_WRONLY | os.O_NONBLOCK), "w", encoding="utf-8")
            except OSError:    # nobody reads it yet
                self.assertTrue(p.poll() is None and time.monotonic() < deadline, f"no vhcactl {command}: {self.order()}")
                time.sleep(0.01)

    def order(self):
        try:
            return (self.rec / "order").read_text("utf-8").splitlines()
        except FileNotFoundError:
            return []

    def changes(self):
        """The stock scripts and vhcactl's commands that change something, in order."""
        return [line for line in self.order() if not line.startswith("vhcactl --json")]

    def stock_got(self, name):
        argv = (self.rec / f"kvm.{name}.argv").read_bytes().decode().split("\0")[:-1]
        return argv, (self.rec / f"kvm.{name}.stdin").read_bytes()

    def assert_refused(self, p, words):
        """Exit status 1 and one line."""
        self.assertEqual((p.returncode, p.stdout), (1, b""), p.stderr)
        lines = p.stderr.decode().splitlines()
        self.assertEqual(len(lines), 1, p.stderr)
        self.assertIn(words, lines[0])


def nic(number, vn_mad="vhca", **more):
    keys = {"MAC": f"02:00:0a:00:{number:02x}:07", "NETWORK": "net", "NIC_ID": str(number), "VN_MAD": vn_mad, "VLAN_ID": "17",
            **more}
    return "<NIC>" + "".join(f"<{k}>{cdata(v)}</{k}>" for k, v in keys.items() if v is not None) + "</NIC>"


def cdata(text):
    return "<![CDATA[" + text.replace("]]>", "]]]]><![CDATA[>") + "]]>"


def vm(*nics, note="nothing", number=42, deploy_id=UUID):
    return (f"<VM><ID>{number}</ID><DEPLOY_ID>{cdata(deploy_id)}</DEPLOY_ID><TEMPLATE>{''.join(nics)}</TEMPLATE>"
            f"<USER_TEMPLATE><NOTE>{cdata(note)}</NOTE></USER_TEMPLATE></VM>")


def message(*nics, **more):
    return f"<VMM_DRIVER_ACTION_DATA><HOST>hv1</HOST>{vm(*nics, **more)}</VMM_DRIVER_ACTION_DATA>\n"


def vnm(*nics, **more):
    return base64.b64encode(vm(*nics, **more).encode()).decode()


def domain(*attached, requests=(), problem=None):
    return {"uuid": UUID, "name": "one-42", "problem": problem,
            "requests": [{"name": name, "problem": None} for name in requests],
            "vfs": [{"name": name, "state": "attached", "reason": None} for name in attached]}
