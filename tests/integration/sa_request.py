#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""sa_request.py set|delete|join SM_LID PORT_LID INDEX GUID: what an mlx4 driver asks the SA when a VF wants its alias
GUID, and gives it up; what IPoIB asks when it joins the broadcast group of the default partition (PORT_LID and INDEX count for nothing).

Prints the status of the answer. Talks libibumad, so that it also runs on ibsim.
"""

import struct
import sys

import umad

METHODS = {"set": umad.SET, "delete": umad.SA_DELETE}
GUIDINFO_RECORD, MCMEMBER_RECORD = 0x30, 0x38
PER_BLOCK = 8
BROADCAST = bytes.fromhex("ff12401bffff000000000000ffffffff")
FULL_MEMBER = 1


def guidinfo(method, port_lid, index, guid):
    """An SA MAD for one entry of a port's GUID table."""
    block, slot = divmod(index, PER_BLOCK)
    mask = 1 << 0 | 1 << 1 | 1 << (4 + slot)    # LID, block, this GUID
    guids = [guid if i == slot else 0 for i in range(PER_BLOCK)]
    return umad.sa(METHODS[method], GUIDINFO_RECORD, mask, struct.pack(">HBBI8Q", port_lid, block, 0, 0, *guids))


def join(guid):
    mask = 1 << 0 | 1 << 1 | 1 << 16    # MGID, port GID, join state
    return umad.sa(umad.SET, MCMEMBER_RECORD, mask,
                   BROADCAST + struct.pack(">QQ", 0xfe80 << 48, guid) + bytes(16) + bytes([FULL_MEMBER, 0, 0, 0]))


def main():
    method, sm_lid, port_lid, index, guid = (sys.argv[1], *(int(a, 0) for a in sys.argv[2:6]))
    agent = umad.Agent(umad.SA, 2)
    agent.send(sm_lid, join(guid) if method == "join" else guidinfo(method, port_lid, index, guid))
    answer = agent.receive(5000)
    if answer is None:
        sys.exit("no answer")
    print(f"0x{struct.unpack_from('>H', answer, 4)[0]:04x}")


if __name__ == "__main__":
    main()
