# SPDX-License-Identifier: LGPL-2.1-or-later
"""Management datagrams of a process that is attached to ibsim: libibumad, with umad2sim preloaded."""

import ctypes
import struct

SUBN, SA, DIRECTED = 1, 3, 0x81    # management classes
GET, SET, SA_DELETE = 0x01, 0x02, 0x15
SIZE, SMP_DATA, SMP_WAY, HOPS = 256, 64, 128, 7
PERMISSIVE_LID = 0xffff
QKEY = 0x80010000


def header(mgmt_class, version, method, attribute, modifier=0, tid=0x76686361):
    return struct.pack(">BBBBHHQHHI", 1, mgmt_class, version, method, 0, 0, tid, attribute, 0, modifier)


def sa(method, attribute, mask, record, tid=0x76686361, key=0):
    """A request to the SA."""
    return header(SA, 2, method, attribute, tid=tid) + bytes(12) + struct.pack(">QHHQ", key, 0, 0, mask) + record.ljust(200, b"\0")


def smp(attribute, tid, modifier=0, method=GET, data=b""):
    """One that switches route by LID."""
    return (header(SUBN, 1, method, attribute, modifier, tid).ljust(SMP_DATA, b"\0") + data).ljust(SIZE, b"\0")


def directed(way, attribute, tid, modifier=0):
    """One that goes by these exit ports, whatever the switches' tables say."""
    mad = bytearray(header(DIRECTED, 1, GET, attribute, modifier, tid) + bytes(8) + struct.pack(">HH", PERMISSIVE_LID, PERMISSIVE_LID))
    mad[HOPS] = len(way)
    return bytes(mad).ljust(SMP_WAY, b"\0") + bytes((0, *way)).ljust(SIZE - SMP_WAY, b"\0")


class Agent:
    """One class of datagrams at the first port of this process."""

    def __init__(self, mgmt_class, version):
        self.lib = ctypes.CDLL("libibumad.so.3")
        self.lib.umad_get_mad.restype = ctypes.c_void_p
        if self.lib.umad_init() < 0:
            raise OSError("umad_init failed")
        self.qp = 1 if mgmt_class == SA else 0
        self.port = self.lib.umad_open_port(None, 0)
        self.id = self.lib.umad_register(self.port, mgmt_class, version, 0, None)
        if self.port < 0 or self.id < 0:
            raise OSError("no port to send from")
        self.buf = ctypes.create_string_buffer(self.lib.umad_size() + SIZE)

    def send(self, lid, mad):
        self.lib.umad_set_addr(self.buf, lid, self.qp, 0, QKEY if self.qp else 0)
        ctypes.memmove(self.lib.umad_get_mad(self.buf), mad, SIZE)
        if self.lib.umad_send(self.port, self.id, self.buf, SIZE, 1000, 3) < 0:
            raise OSError("umad_send failed")

    def receive(self, timeout_ms):
        """The next answer, None after the time."""
        length = ctypes.c_int(SIZE)
        if self.lib.umad_recv(self.port, self.buf, ctypes.byref(length), timeout_ms) < 0:
            return None
        return ctypes.string_at(self.lib.umad_get_mad(self.buf), SIZE)
