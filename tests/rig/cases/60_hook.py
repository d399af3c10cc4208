# SPDX-License-Identifier: LGPL-2.1-or-later
"""The qemu hook under libvirtd's AppArmor profile in enforce mode: exit codes of the policy, never slower than its deadline."""

import re

from kit.base import SLOW
from kit.case import VFS, Failure, case, check, equal

HOOK = "/etc/libvirt/hooks/qemu.d/vhcad"
DEADLINE = 2.0
READING = 1.4  # hooks/main.c, STDIN_MS: a run that lasts longer may not have read all
TRIES = 3  # a loaded machine delays a run now and then; a hook that waits for too long does so each time
SLACK = 0.5 * SLOW  # starting a process under TCG
XML = """<domain type='kvm'><name>{name}</name><uuid>5ca1ab1e-0000-4000-8000-0000000000{n:02d}</uuid>{metadata}
<devices>{devices}</devices></domain>"""
METADATA = ("<metadata><vhca:infiniband xmlns:vhca='urn:vhcad:domain:1'><vhca:vf name='ib0' partition='0x8001'/>"
            "</vhca:infiniband></metadata>")
HOSTDEV = ("<hostdev mode='subsystem' type='pci' managed='no'><source><address domain='0x0000' bus='0x01' slot='0x00' "
           f"function='0x{VFS[0][-1]}'/></source></hostdev>")
FOREIGN = HOSTDEV.replace("bus='0x01'", "bus='0x05'")
OURS, ASKS, PLAIN = (XML.format(name=name, n=n, metadata=metadata, devices=devices) for name, n, metadata, devices in (
    ("ours", 41, METADATA, HOSTDEV), ("asks", 42, METADATA, ""), ("plain", 43, "", FOREIGN)))
# Runs the hook as libvirtd would: confined by its profile, XML on stdin; prints exit code and time.
RUN = """set -u
cat > /tmp/hook.xml
t0=$EPOCHREALTIME
aa-exec -p libvirtd -- {hook} vm {op} begin - < /tmp/hook.xml > /tmp/hook.out 2> /tmp/hook.err
code=$?
t1=$EPOCHREALTIME
echo "code=$code us=$((${{t1/./}} - ${{t0/./}})) out=$(wc -c < /tmp/hook.out)"
cat /tmp/hook.err"""
# Accepts on the hook's socket and never answers.
HUNG = """systemctl stop vhcad
rm -f /run/vhcad/hook.sock; mkdir -p /run/vhcad
systemd-run -q --unit=hung-agent -- socat UNIX-LISTEN:/run/vhcad/hook.sock,fork,mode=666 EXEC:'sleep 3600'
for i in $(seq 300); do [ -S /run/vhcad/hook.sock ] && exit 0; sleep 0.1; done
exit 1"""
UNHUNG = "systemctl stop hung-agent; rm -f /run/vhcad/hook.sock; systemctl start vhcad"


def ask(host, xml, op="prepare"):
    """Run the hook; return (exit code, seconds, what it said on stderr) of a run that kept the deadline."""
    for _ in range(TRIES):
        code, seconds, text = ask_once(host, xml, op)
        if seconds < DEADLINE + SLACK:
            return code, seconds, text
    raise Failure(f"hook {op} took {seconds:.2f} s, the last of {TRIES} times")


def ask_with_time(host, xml):
    """ask(), of a run that had the time to read all."""
    for _ in range(TRIES):
        code, seconds, text = ask(host, xml)
        if seconds < READING:
            break
    return code, seconds, text


def ask_once(host, xml, op):
    """It must print nothing on stdout."""
    data = xml if isinstance(xml, bytes) else xml.encode()
    text = host.sh(RUN.format(hook=HOOK, op=op), stdin=data, timeout=60)
    found = re.match(r"code=(\d+) us=(\d+) out=(\d+)\n(.*)", text, re.S)
    check(found, f"hook: unexpected output {text[:300]!r}")
    equal(found.group(3), "0", "bytes that the hook printed on stdout")
    seconds = int(found.group(2)) / 1e6
    return int(found.group(1)), seconds, found.group(4)


@case
def libvirtd_is_confined(rig):
    """libvirtd runs under its AppArmor profile in enforce mode, and so do the guests."""
    status = rig.hva.sh("aa-status")
    check(re.search(r"/usr/sbin/libvirtd \(\d+\) libvirtd", status.partition("processes are in enforce mode")[2]),
          f"libvirtd is not in enforce mode:\n{status}")
    guest = rig.guest(rig.hva, 1).start(wait=False)
    label = rig.hva.sh("cat /proc/$(pgrep -f guest=vm1)/attr/current").strip()
    equal(label, f"libvirt-{guest.uuid} (enforce)", "AppArmor label of the guest")


@case(kills=("hva vhcad",))
def agent_down(rig):
    """Agent down: a VF of ours is refused, a request alone and foreign domains pass, reconnect passes."""
    rig.hva.sh("systemctl stop vhcad")
    code, _, text = ask(rig.hva, OURS)
    equal(code, 1, "prepare with a VF of ours")
    check(VFS[0] in text and "vhcad" in text, f"the refusal does not name the VF: {text}")
    for what, xml, op in (("request only", ASKS, "prepare"), ("foreign hostdev", PLAIN, "prepare"),
                          ("reconnect", OURS, "reconnect"), ("stopped", OURS, "stopped"),
                          ("release", OURS, "release"), ("migrate", OURS, "migrate")):
        equal(ask(rig.hva, xml, op)[0], 0, f"{op} of {what}")


@case(kills=("hva vhcad",))
def agent_down_seen_by_libvirt(rig):
    """Agent down: libvirt does not start a domain with a VF of ours, starts any other, and says why."""
    rig.hva.sh("systemctl stop vhcad")
    guest = rig.guest(rig.hva, 1, hostdevs=[VFS[0]]).define()
    code, text = rig.hva.code("virsh start vm1")
    check(code != 0 and VFS[0] in text, f"virsh start: exit code {code}: {text}")
    equal(guest.state(), "shut off", "state of the refused domain")
    rig.guest(rig.hva, 2, ("ib0", "0x8001")).start(wait=False)


@case(kills=("hva vhcad",))
def agent_hung(rig):
    """Agent accepts and never answers: same exit codes, within the deadline."""
    rig.hva.sh(HUNG)
    try:
        code, seconds, _ = ask(rig.hva, OURS)
        equal(code, 1, "prepare with a VF of ours")
        check(seconds > 0.5, f"refused after {seconds:.2f} s: was the hung agent asked at all?")
        for what, xml, op in (("request only", ASKS, "prepare"), ("foreign hostdev", PLAIN, "prepare"),
                              ("reconnect", OURS, "reconnect"), ("release", OURS, "release")):
            equal(ask(rig.hva, xml, op)[0], 0, f"{op} of {what}")
    finally:
        rig.hva.sh(UNHUNG)


@case(kills=("hva vhcad",))
def ten_megabytes_of_xml(rig):
    """10 MB of XML: scanned to its end, the hostdev behind it is seen, the deadline holds."""
    filler = "<description>" + "x" * 1000 + "</description>"
    big = OURS.replace("<devices>", filler * (10 * 1024 * 1024 // len(filler)) + "<devices>")
    rig.hva.sh("systemctl stop vhcad")
    equal(ask(rig.hva, big)[0], 1, "prepare of 10 MB with a VF of ours, agent down")
    plain = PLAIN.replace("<devices>", filler * (10 * 1024 * 1024 // len(filler)) + "<devices>")
    equal(ask_with_time(rig.hva, plain)[0], 0, "prepare of 10 MB without a VF of ours, agent down")
    rig.hva.sh("systemctl start vhcad")
    equal(ask_with_time(rig.hva, plain)[0], 0, "prepare of 10 MB, agent up")


@case(kills=("hva vhcad",))
def garbage_and_entities(rig):
    """Garbage, entities that explode, truncated XML: no crash, no wait; what was not read to its end may have a VF."""
    laughs = "".join(f"<!ENTITY l{i} '{f'&l{i - 1};' * 10}'>" for i in range(1, 10))
    bomb = f"<!DOCTYPE d [<!ENTITY l0 'x'>{laughs}<!ENTITY f SYSTEM 'file:///etc/shadow'>]>" + PLAIN.replace(
        "</domain>", "<description>&l9;&f;</description></domain>")
    rig.hva.sh("systemctl stop vhcad")
    for what, xml, expected in (
            ("nothing", b"", 1), ("random bytes", bytes(range(256)) * 64, 1), ("entities", bomb.encode(), 0),
            ("truncated before the VF", OURS.split("<hostdev")[0].encode(), 1),
            ("truncated after the VF", OURS.rpartition("</devices>")[0].encode(), 1),
            ("NUL bytes", OURS.replace("<devices>", "\0\0<devices>").encode(), None)):
        code = ask(rig.hva, xml)[0]
        check(code in (0, 1) if expected is None else code == expected, f"{what}: exit code {code}, not {expected}")
    equal(rig.hva.sh("coredumpctl list 2>/dev/null; dmesg | grep -c 'segfault' || true").strip(), "0", "crashes")
    denied = rig.hva.sh("dmesg | grep 'apparmor=\"DENIED\"' | grep -i vhcad || true")
    equal(denied.strip(), "", "AppArmor denials of the hook")
