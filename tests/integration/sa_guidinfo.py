#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""sa_guidinfo.py set|delete SM_LID PORT_LID INDEX GUID: what an mlx4 driver asks the SA when a VF wants its alias GUID.

Prints the status of the answer. Talks libibumad, so that it also runs on ibsim.
"""

import ctypes
import struct
import sys

METHODS = {"set": 0x02, "delete": 0x15}
SA_CLASS, SA_VERSION, SA_QP, QKEY, GUIDINFO_RECORD = 3, 2, 1, 0x80010000, 0x30
PER_BLOCK = 8


def request(method, port_lid, index, guid):
    """An SA MAD for one entry of a port's GUID table."""
    block, slot = divmod(index, PER_BLOCK)
    header = struct.pack(">BBBBHHQHHI", 1, SA_CLASS, SA_VERSION, METHODS[method], 0, 0, 0x76686361,
                         GUIDINFO_RECORD, 0, 0)
    mask = 1 << 0 | 1 << 1 | 1 << (4 + slot)    # LID, block, this GUID
    guids = [guid if i == slot else 0 for i in range(PER_BLOCK)]
    record = struct.pack(">HBBI8Q", port_lid, block, 0, 0, *guids)
    return header + bytes(12) + struct.pack(">QHHQ", 0, 0, 0, mask) + record.ljust(200, b"\0")


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
    ctypes.memmove(umad.umad_get_mad(buf), request(method, port_lid, index, guid), 256)
    if umad.umad_send(port, agent, buf, 256, 1000, 3) < 0:
        sys.exit("umad_send failed")
    length = ctypes.c_int(256)
    if umad.umad_recv(port, buf, ctypes.byref(length), 5000) < 0:
        sys.exit("no answer")
    mad = ctypes.string_at(umad.umad_get_mad(buf), 256)
    print(f"0x{struct.unpack_from('>H', mad, 4)[0]:04x}")


if __name__ == "__main__":
    main()
