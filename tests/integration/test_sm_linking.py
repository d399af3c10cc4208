#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""How the plugin is linked, read from its ELF file."""

import os
import struct
import unittest

import tap

PT_DYNAMIC, DT_FLAGS, DT_FLAGS_1 = 2, 30, 0x6ffffffb
DF_BIND_NOW, DF_1_NOW = 8, 1


def dynamic_section(path):
    """{tag: value} of a 64-bit little-endian ELF file."""
    with open(path, "rb") as f:
        elf = f.read()
    if elf[:6] != b"\x7fELF\x02\x01":
        raise ValueError(f"{path} is no 64-bit little-endian ELF file")
    offset, (size, n) = struct.unpack_from("<Q", elf, 32)[0], struct.unpack_from("<HH", elf, 54)
    for i in range(n):
        kind, _, at, _, _, length = struct.unpack_from("<IIQQQQ", elf, offset + i * size)
        if kind == PT_DYNAMIC:
            return dict(struct.iter_unpack("<QQ", elf[at:at + length]))
    raise ValueError(f"{path} has no dynamic section")


class Linking(unittest.TestCase):
    def test_every_symbol_is_looked_up_at_load(self):
        """One that this OpenSM lacks refuses the plugin, instead of ending OpenSM when it is first called."""
        tags = dynamic_section(os.environ["VHCA_PLUGIN"])
        self.assertTrue(tags.get(DT_FLAGS, 0) & DF_BIND_NOW or tags.get(DT_FLAGS_1, 0) & DF_1_NOW, tags)


tap.main(__name__)
