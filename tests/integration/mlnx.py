# SPDX-License-Identifier: LGPL-2.1-or-later
"""networking-mlnx as Debian 11 has it, with python3-neutron of the machine."""

import importlib.util

import debian

PACKAGE = "pool/main/n/networking-mlnx/python3-networking-mlnx_16.0.0-1_all.deb"
SHA256 = "05204bcf10b3791a6c3b39814a722609e3e84f12ad7bd76f85a4d80e4496fa4b"
LACKS = "no python3-neutron, or no networking-mlnx of Debian 11"


def fetch():
    """Where its Python packages are; None: they cannot be had."""
    if importlib.util.find_spec("neutron") is None:
        return None
    tree = debian.fetch(PACKAGE, SHA256, "networking-mlnx-16.0.0")
    return tree and tree / "usr/lib/python3/dist-packages"


CODE = fetch()
