#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""sa_request.py set|delete|join SM_LID PORT_LID INDEX GUID: what an mlx4 driver asks the SA when a VF wants its alias
GUID, and gives it up; what IPoIB asks when it joins the broadcast group of the default partition (PORT_LID and INDEX count for nothing).

Prints the status of the answer. Talks libibumad, so that it also runs on ibsim.
"""

import ctypes
import struct
import sys

METHODS = {"set": 0x02, "delete": 0x15}
SA_CLASS, SA_VERSION, SA_QP, QKEY = 3, 2, 1, 0x80010000
GUIDINFO_RECORD, MCMEMBER_RECORD = 0x30, 0x38
PER_BLOCK = 8
BROADCAST = bytes.fromhex("ff12401bffff000000000000ffffffff")
FULL_MEMBER = 1


def mad(method, attribute, mask, record):
    header = struct.pack(">BBBBHHQHHI", 1, SA_CLASS, SA_VERSION, method, 0, 0, 0x76686361, attribute, 0, 0)
    return header + bytes(12) + struct.pack(">QHHQ", 0, 0, 0, mask) + record.ljust(200, b"\0")


def guidinfo(method, port_lid, index, guid):
    """An SA MAD for one entry of a port's GUID table."""
    block, slot = divmod(index, PER_BLOCK)
    mask = 1 << 0 | 1 << 1 | 1 << (4 + slot)    # LID, block, this GUID
    guids = [guid if i == slot else 0 for i in range(PER_BLOCK)]
    return mad(METHODS[method], GUIDINFO_RECORD, mask, struct.pack(">HBBI8Q", port_lid, block, 0, 0, *guids))


def join(guid):
    mask = 1 << 0 | 1 << 1 | 1 << 16    # MGID, port GID, join state
    return mad(METHODS["set"], MCMEMBER_RECORD, mask,
               BROADCAST + struct.pack(">QQ", 0xfe80 << 48, guid) + bytes(16) + bytes([FULL_MEMBER, 0, 0, 0]))


def main():
    method, sm_lid, port_lid, index, guid = (sys.argv[1], *(int(a, 0) for a in sys.argv[2:6]))
    umad = ctypes.CDLL("libibumad.so.3")
    umad.umad_get_mad.restype = ctypes.c_void_p
    if umad.umad_init() < 0:
        sys.exit("umad_init failed")
    port = umad.umad_open_port(None, 0)
    agent = umad.umad_register(port, SA_CLASS, SA_VERSION, 0, None)
    if port < 0 or agent < 0:
        sys.exit("no port to send from")
    buf = ctypes.create_string_buffer(umad.umad_size() + 256)
    umad.umad_set_addr(buf, sm_lid, SA_QP, 0, QKEY)
    request = join(guid) if method == "join" else guidinfo(method, port_lid, index, guid)
    ctypes.memmove(umad.umad_get_mad(buf), request, 256)
    if umad.umad_send(port, agent, buf, 256, 1000, 3) < 0:
        sys.exit("umad_send failed")
    length = ctypes.c_int(256)
    if umad.umad_recv(port, buf, ctypes.byref(length), 5000) < 0:
        sys.exit("no answer")
    mad = ctypes.string_at(umad.umad_get_mad(buf), 256)
    print(f"0x{struct.unpack_from('>H', mad, 4)[0]:04x}")


if __name__ == "__main__":
    main()
