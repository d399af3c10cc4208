# SPDX-License-Identifier: LGPL-2.1-or-later
"""The subnet manager, or only its HTTP side, is away: guests get their VFs, reports arrive later."""

import json
import re
import textwrap

from kit import tls
from kit.base import RIG, ROOT, wait_for
from kit.case import assert_scrubbed, case, check, equal
from kit.hypervisors import OPENSM_CONF, OPENSM_PLUGIN, SM_ADDRESS
from kit.story import Story

PKEY = 0x8001
RECORD = "/run/recorder.jsonl"
# It fails from its first request on: a busy machine takes its time between two commands, and the agent does not wait for them.
START_RECORDER = """rm -f {file}; touch {file} {file}.fail
systemd-run -q --unit=recorder /usr/bin/python3 /run/recorder.py {address} {port} {file} {own} {key} {ca}"""


def restart_opensm(host, plugin):
    """With or without our plugin: without it the subnet lives on and the plugin's HTTP side is away."""
    host.put("/etc/opensm/opensm.conf", (OPENSM_CONF + (OPENSM_PLUGIN if plugin else "")).encode())
    host.sh("systemctl restart opensm-vhcad")


def none_quarantined(host):
    states = [v["state"] for v in host.agent_vfs().values()]
    check("quarantined" not in states, f"states of the VFs: {states}")


def outbox(host):
    return host.get("outbox")["outbox"]


def whole_again(host, guest, bdf):
    """Everything that was owed has arrived: key mapped, GUID granted, binding known, outbox empty."""
    wait_for(lambda: host.facts().pkey_map(bdf) == {0: PKEY}, 90, f"{bdf}: map with 0x{PKEY:04x}", 0.5)
    vf = host.wait_attached(guest, granted=True)
    guid = int(vf["requested"], 16)
    wait_for(lambda: host.facts().granted_guid(bdf) == guid, 90, "gids", 0.5)
    wait_for(lambda: not outbox(host), 60, "an empty outbox", 0.5)
    return guid


@case(kills=("hva opensm-vhcad",))
def plugin_http_down(rig):
    """The plugin's HTTP side is away: the VF is attached without the key, the report waits, all is made good later."""
    host = rig.hva
    restart_opensm(host, plugin=False)
    try:
        # The case before may have had a guest with this key a moment ago.
        wait_for(lambda: PKEY not in host.facts().port_pkeys().values(), 60, f"0x{PKEY:04x} not in the port's table", 0.4)
        guest = rig.guest(host, 1, ("ib0", "0x8001")).start(wait=False)
        vf = host.wait_attached(guest)
        equal(host.facts().pkey_map(vf["bdf"]), {}, "P_Key map while nobody can make the port a member")
        equal(host.vf_of(guest)["missing"], ["0x8001"], "keys that the agent calls missing")
        check(outbox(host), "the outbox is empty although nobody took the report")
        none_quarantined(host)
        guest.wait_ready().wait_vfs(1)
    finally:
        restart_opensm(host, plugin=True)
    guid = whole_again(host, guest, vf["bdf"])
    equal(Story(rig).bindings()[guid]["state"], "granted", "the plugin's view")
    none_quarantined(host)


@case(kills=("hva opensm-vhcad",))
def opensm_down(rig):
    """OpenSM itself is away: attach and detach work, nothing is granted nor quarantined, all is made good later."""
    host = rig.hva
    host.sh("systemctl stop opensm-vhcad")
    stays = rig.guest(host, 1, ("ib0", "0x8001")).start(wait=False)
    goes = rig.guest(host, 2, ("ib0", "0x8002")).start(wait=False)
    vf, gone = host.wait_attached(stays), host.wait_attached(goes)
    check(not host.vf_of(stays).get("granted"), "granted without a subnet manager?")
    goes.destroy()
    host.wait_vf(gone["bdf"], "free", 60)
    none_quarantined(host)
    host.sh("systemctl start opensm-vhcad")
    whole_again(host, stays, vf["bdf"])
    bindings = Story(rig).bindings()
    check(int(gone["requested"], 16) not in bindings or
          bindings[int(gone["requested"], 16)]["state"] == "withdrawn", f"the stopped guest is still bound: {bindings}")
    none_quarantined(host)


# OpenSM reads it when it starts: "0xGUID 0xFIRST 0xLAST" a line.
MOVE_LIDS = r"""
import re
path = "/var/cache/opensm/guid2lid"
text = open(path).read()
open(path, "w").write(re.sub(r"(0x\w+) (0x\w+) (0x\w+)", lambda m: "%s 0x%04x 0x%04x" % (m[1], int(m[2], 16) + 256, int(m[3], 16) + 256), text))
"""


@case(kills=("hva opensm-vhcad",))
def lids_change(rig):
    """The SM gives the ports other LIDs: the guest keeps its VF, the plugin hears of the LID, and paths lead there."""
    guest = rig.guest(rig.hvb, 1, ("ib0", "0x8001")).start()
    vf = rig.hvb.wait_attached(guest, granted=True)
    guid, before = int(vf["requested"], 16), int(rig.hvb.facts().lid, 16)
    equal(Story(rig).bindings()[guid]["lid"], before, "the binding's LID")
    rig.hva.sh("systemctl stop opensm-vhcad")
    rig.hva.sh("python3 -", stdin=MOVE_LIDS.encode())
    rig.hva.sh("systemctl start opensm-vhcad")
    wait_for(lambda: int(rig.hvb.facts().lid, 16) == before + 256, 90, f"hvb: LID {before + 256}", 0.5)
    equal(whole_again(rig.hvb, guest, vf["bdf"]), guid, "vGUID")
    wait_for(lambda: Story(rig).bindings()[guid]["lid"] == before + 256, 60, "the binding's LID to follow", 0.5)
    Story(rig).wait_path(guid, before + 256)
    guest.wait_port(guid)
    none_quarantined(rig.hvb)


def removal():
    """The commands by which libvhcasm(7) removes the plugin, in the rig's unit."""
    page = (ROOT / "docs/man/libvhcasm.7.rst").read_text("utf-8")
    section = re.search(r"^REMOVAL\n=+\n(.*?)^LIMITS\n", page, re.M | re.S)[1]
    block = re.search(r"^    vhcasmctl status\n(?:    .*\n)+", section, re.M)[0]
    return "set -e\n" + re.sub(r"^(systemctl \w+ opensm)$", r"\1-vhcad", textwrap.dedent(block), flags=re.M)


@case(kills=("hva opensm-vhcad",))
def plugin_removed(rig):
    """The plugin is removed as its page says: guests on both hosts keep GUIDs, keys and LIDs, and the SA its paths to them. Then it comes back."""
    hosts = (rig.hva, rig.hvb)
    guests = [rig.guest(host, n, ("ib0", "0x8001")).start() for n, host in enumerate(hosts, 1)]
    vfs = [host.wait_attached(guest, granted=True) for host, guest in zip(hosts, guests)]
    guids = [int(vf["requested"], 16) for vf in vfs]
    places = lambda: [(host.facts().port_pkeys(), host.facts().lid, host.facts().pkey_map(vf["bdf"])) for host, vf in zip(hosts, vfs)]
    wait_for(lambda: rig.hva.code("vhcasmctl status")[0] == 0, 60, "all in effect", 0.5)
    before = places()
    try:
        rig.hva.sh(removal())
        for guid, (_, lid, _) in zip(guids, before):
            Story(rig).wait_path(guid, int(lid, 16))
        equal(places(), before, "keys, LIDs and maps of both hosts")
        for guest, guid in zip(guests, guids):
            guest.wait_port(guid)
        for host in hosts:
            none_quarantined(host)
    finally:
        rig.hva.sh("rm -f /etc/opensm/partitions.conf*")
        restart_opensm(rig.hva, plugin=True)
    for host, guest, vf, guid in zip(hosts, guests, vfs, guids):
        equal(whole_again(host, guest, vf["bdf"]), guid, f"vGUID of {host.name}")


def requests(host):
    """In the order of their arrival."""
    return [json.loads(line) for line in host.read(RECORD).splitlines()]


def recorded(host):
    """Those about bindings."""
    return [r for r in requests(host) if r["path"].startswith("/v1/bindings/") and r["method"] in ("PUT", "DELETE")]


def epoch_of(report):
    found = re.search(r"[?&]epoch=(\w+)", report["path"])
    return int(found.group(1), 0) if found else report["body"]["epoch"]


@case(kills=("hva opensm-vhcad",))
def reports_in_order_and_once(rig):
    """Reports that waited arrive in order, and each takes effect once (a recorder stands in for the plugin)."""
    host = rig.hva
    restart_opensm(host, plugin=False)
    host.put("/run/recorder.py", (RIG / "recorder.py").read_bytes(), "755")
    address, _, port = SM_ADDRESS.partition(":")
    try:
        # Nobody listens: three changes of state pile up for vm1's GUID, one for vm2's.
        guests = [rig.guest(host, n, ("ib0", "0x8001")).start(wait=False) for n in (1, 2)]
        vfs = [host.wait_attached(g) for g in guests]
        guests[0].destroy()
        host.wait_vf(vfs[0]["bdf"], "free", 60)
        guests[0].host.sh("virsh -q start vm1", timeout=120)
        again = host.wait_attached(guests[0])
        check(outbox(host), "nothing waits in the outbox")
        # It listens but fails; then it works.
        host.sh(START_RECORDER.format(file=RECORD, address=address, port=port, own=tls.OWN, key=tls.KEY, ca=tls.CA))
        wait_for(lambda: [r for r in requests(host) if r["failed"]], 90, "a report that fails (the port's keys may be the first)", 0.5)
        host.sh(f"rm {RECORD}.fail")
        wait_for(lambda: not outbox(host), 90, "an empty outbox", 0.5)
        reports = [r for r in recorded(host) if not r["failed"]]
        check_reports(reports, {again["requested"], vfs[1]["requested"]})
    finally:
        host.sh("systemctl stop recorder")
        restart_opensm(host, plugin=True)


def check_reports(reports, bound):
    """Epochs never go back, no report took effect twice, and the last word on each GUID of `bound` is that it is bound."""
    last, seen = {}, set()
    for r in reports:
        guid, epoch = r["path"].split("?")[0].rpartition("/")[2], epoch_of(r)
        what = (guid, epoch, r["method"], json.dumps(r["body"], sort_keys=True))
        check(epoch >= last.get(guid, (0,))[0], f"epoch of {guid} went back to {epoch}")
        check(what not in seen, f"accepted twice: {what}")
        seen.add(what)
        last[guid] = (epoch, r["method"])
    for guid in bound:
        check(last.get(guid, (0, ""))[1] == "PUT", f"last word on {guid}: {last.get(guid)} of {sorted(last)}")


@case(kills=("hvb vhcad",))
def the_sm_chooses_a_guid(rig):
    """guid = sm: OpenSM gives a VF a GUID of its own choice, and the claim goes on with that."""
    host = rig.hvb
    claim = host.api("POST", "claims", {"domain": "5ca1ab1e-0000-4000-8000-000000000001", "name": "ib0", "partition": "0x8001", "guid": "sm"})
    check(claim.get("guid"), f"POST /v1/claims says {claim}")
    guid, bdf = int(claim["guid"], 16), claim["bdf"]
    facts = host.facts()
    equal((facts.admin_guid(bdf), facts.granted_guid(bdf)), (guid, guid), f"{bdf}: admin_guids and gids")
    equal(facts.pkey_map(bdf), {0: PKEY}, f"{bdf}: P_Key map")
    host.sh("systemctl restart vhcad")
    equal([c["guid"] for c in host.get("claims")["claims"]], [claim["guid"]], "GUIDs of the claims after a restart of the agent")
    host.api("DELETE", f"claims/{claim['id']}")
    assert_scrubbed(host, bdf)
