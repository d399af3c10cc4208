# SPDX-License-Identifier: LGPL-2.1-or-later
"""Answers of an agent in the shape of docs/openapi.yaml, for tests of vhcactl."""

UUID = "6b3e1d60-0d6f-4f5e-9d38-0123456789ab"

NODE = {"node_name": "hva", "version": "0.1.0", "api": 1, "boot_id": "b", "started_ms": 1763617226000,
        "libvirt": {"uri": "qemu:///system", "connected": True},
        "sm": {"backend": "vhcasm", "reachable": False, "fenced": True, "pending": 2},
        "loop": {"max_callback_us": 1234, "blocking_calls": 0},
        "counts": {"unmanaged": 0, "free": 3, "attached": 1, "quarantined": 1}}
HCAS = {"hcas": [
    {"bdf": "0000:01:00.0", "family": "mlx4", "driver": "mlx4_core", "ibdev": "mlx4_0", "node_guid": None, "numa": 0,
     "fabric": "default", "managed": True, "total_vfs": 16, "num_vfs": 8, "want_vfs": 4, "busy_since_ms": None, "port": 1, "want_port": 1,
     "problem": "8 VFs exist, 4 are configured: set num_vfs=4 in /etc/modprobe.d/vhcad.conf and reload mlx4_core",
     "capabilities": {"host_pkey_map": True, "sees_grant": True, "link_policy": False},
     "ports": [{"port": 1, "guid": "0x0002c90300a1b2c3", "lid": 4, "sm_lid": 1, "state": "active",
                "pkeys": ["0xffff", "0x8001"]},
               {"port": 2, "guid": "0x0002c90300a1b2c4", "lid": 0, "sm_lid": 0, "state": "down",
                "pkeys": [f"0x80{i:02x}" for i in range(1, 17)]}]},
    {"bdf": "0000:41:00.0", "family": "mlx5", "driver": "mlx5_core", "ibdev": None, "fabric": "default",
     "managed": False, "total_vfs": 16, "num_vfs": 0, "want_vfs": None, "port": 1, "want_port": 1, "problem": None,
     "capabilities": {"host_pkey_map": False, "sees_grant": False, "link_policy": True}, "ports": []}]}
VFS = {"next": None, "vfs": [
    {"bdf": "0000:01:00.1", "pf": "0000:01:00.0", "index": 0, "numa": 0, "driver": "vfio-pci", "iommu_group": 12,
     "state": "attached", "since_ms": 1, "reason": None, "domain": "vm1", "name": "ib0", "claim": UUID,
     "guid": "0x02c9ab0000000001", "requested": "0x02c9ab0000000001", "granted": True, "gid_index": 1,
     "pkeys": [{"index": 0, "pkey": "0x8001", "physical": 1}, {"index": 1, "pkey": "0xffff", "physical": 0}],
     "missing": []},
    {"bdf": "0000:01:00.2", "pf": "0000:01:00.0", "index": 1, "driver": "vfio-pci", "state": "programmed", "claim": UUID,
     "reason": "0x8002 is not in the port's table", "domain": "a long name", "name": "ib1",
     "guid": "0x02c9ab0000000002", "granted": False, "pkeys": [], "missing": ["0x8002"]},
    {"bdf": "0000:01:00.3", "pf": "0000:01:00.0", "index": 2, "driver": None, "state": "quarantined",
     "reason": "scrub: admin_guids reads back 0x0", "domain": None, "name": None, "claim": None, "guid": None,
     "granted": False, "pkeys": [], "missing": []}]}
DOMAINS = {"next": None, "domains": [
    {"uuid": UUID, "name": "vm1", "requests": [
        {"name": "ib0", "partition": "0x8001", "guid": "auto", "fabric": "default", "problem": None},
        {"name": "ib1", "partition": "nowhere", "guid": "auto", "fabric": "default",
         "problem": "partition nowhere is not configured"}],
     "vfs": [{"name": "ib0", "bdf": "0000:01:00.1", "state": "attached", "guid": "0x02c9ab0000000001",
              "granted": True, "guest_address": "0000:07:00.0", "problem": None, "reason": None}]},
    {"uuid": UUID, "name": "plain", "requests": [], "vfs": []}]}
CLAIMS = {"next": None, "claims": [
    {"id": UUID, "domain": UUID, "domain_name": "vm1", "name": "ib0", "bdf": "0000:01:00.1", "state": "attached",
     "guid": "0x02c9ab0000000001", "epoch": 3, "pkeys": ["0x8001"], "way": "metadata", "created_ms": 1763617226000,
     "lease": None, "lease_ends_ms": None, "reason": None}]}
PARTITIONS = {"partitions": [
    {"pkey": "0x8001", "names": [{"name": "storage", "pkey": "0x8001"}, {"name": "readers", "pkey": "0x0001"}],
     "members": [{"claim": UUID, "domain": UUID, "domain_name": "vm1", "name": "ib0", "fabric": "default", "bdf": "0000:01:00.1",
                  "pkey": "0x8001"}],
     "ports": [{"pf": "0000:01:00.0", "port": 1, "fabric": "default", "pkey": "0x8001", "table_entries": 128, "table_free": 3},
               {"pf": "0000:41:00.0", "port": 2, "fabric": "other", "pkey": None, "table_entries": None, "table_free": None}]},
    {"pkey": "0x8009", "names": [], "members": [], "ports": []}]}
CONFIG = {"settings": [
    {"section": "sm", "key": "url", "value": None, "default": None},
    {"section": "hca 0000:03:00.0", "key": "vfs", "value": "4", "default": "keep"}]}
OUTBOX = {"outbox": [
    {"seq": 7, "kind": "binding", "vguid": "0x02c9ab0000000001", "epoch": 3, "bound": True,
     "port_guid": "0x0002c90300000a01", "state": "waiting", "age_ms": 125000, "attempts": 4, "next_try_ms": 2500,
     "reason": "http://192.168.77.1:8515: Connection refused"},
    {"seq": 8, "kind": "binding", "vguid": "0x02c9ab0000000002", "epoch": 1, "bound": False,
     "port_guid": "0x0002c90300000a01", "state": "in_flight", "age_ms": 400, "attempts": 1, "next_try_ms": 0,
     "reason": None},
    {"seq": 9, "kind": "move", "vguid": "0x02c9ab0000000003", "epoch": 5, "bound": True,
     "port_guid": "0x0002c90300000a01", "state": "pending", "age_ms": 0, "attempts": 0, "next_try_ms": 0,
     "reason": None},
    {"seq": 10, "kind": "members", "port_guid": "0x0002c90300000a01", "state": "pending", "age_ms": 0,
     "attempts": 0, "next_try_ms": 0, "reason": None}]}
MIGRATION = "0f2d7a52-8c1b-4f0e-a5d7-9b8c7d6e5f40"
BEGUN = {"id": MIGRATION, "role": "source", "domain": UUID, "domain_name": "vm1", "peer": "hvb", "state": "claiming",
         "step_ms": {}, "blackout_us": {}, "started_ms": 1763617226000, "ended_ms": None, "reason": None, "degraded": False,
         "vfs": [{"name": "ib0", "bdf": "0000:01:00.1", "guid": "0x02c9ab0000000001", "epoch": 3, "state": "attached",
                  "attached": True, "granted": True}]}
STEPS = {"claiming": 43, "detaching": 1207, "handing_over": 80, "copying": 5310, "finishing": 1574}
DONE = {**BEGUN, "state": "done", "step_ms": STEPS, "blackout_us": {"removed_to_migrate": 6120}, "ended_ms": 1763617226000 + 8214}
FAILED = {**BEGUN, "state": "failed", "step_ms": {"claiming": 43, "detaching": 1207, "aborting": 12, "restoring": 900},
          "ended_ms": 1763617226000 + 2162, "reason": "the destination refused: no free VF"}
INCOMING = {**BEGUN, "id": UUID, "role": "destination", "domain_name": "vm2", "domain": MIGRATION, "state": "incoming",
            "blackout_us": {"resumed_to_attach": 1909, "resumed_to_granted": 402013}, "degraded": True, "reason": "hva does not answer"}
MIGRATIONS = {"next": None, "migrations": [DONE, INCOMING, FAILED]}
CLAIM_RESULT = {**CLAIMS["claims"][0], "vf": VFS["vfs"][0]}

PORT_DOWN = {"step": "physical port", "status": "wrong", "text": "port 1 is DOWN (Polling)", "fix": "plug the cable in"}
VF_EXPLAINED = {"bdf": "0000:01:00.1", "pf": "0000:01:00.0", "state": "attached", "domain": "vm1", "name": "ib0",
                "verdict": {**PORT_DOWN, "subject": "vm1/ib0 (0000:01:00.1)"},
                "findings": [{"step": "GUID", "status": "ok", "text": "GUID is written", "fix": None}, PORT_DOWN]}
DOMAIN_EXPLAINED = {"uuid": UUID, "name": "vm1", "verdict": VF_EXPLAINED["verdict"], "vfs": [VF_EXPLAINED],
                    "findings": [{"step": "request", "status": "ok", "text": "ib0 has VF 0000:01:00.1", "fix": None}]}

SM_AWAY = {"code": "sm_unreachable", "status": "warning", "blocks": False, "reason": "the subnet manager's API does not answer",
           "hint": "vhcactl outbox"}
DISK_FULL = {"code": "state_disk", "status": "wrong", "blocks": True, "reason": "the state database cannot be written", "hint": None}
READY = {"status": "ready", "node_name": "hva", "reasons": []}
NOT_READY = {"status": "not_ready", "node_name": "hva", "reasons": [DISK_FULL, SM_AWAY]}


def events(first, last):
    none = dict.fromkeys(("vf", "claim", "domain", "name", "fabric", "guid"))
    return [{"cursor": f"a.{n}", "time_ms": 1763617226000, "kind": "vf", "subject": "0000:01:00.1", "text": f"event {n}", **none}
            for n in range(first, last + 1)]
