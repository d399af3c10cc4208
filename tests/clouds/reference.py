#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""networking-mlnx's own eswitchd and ebrctl, unmodified, on a simulated /sys: reference.py eswitchd SYS PORT CONF, reference.py ebrctl PORT ARGUMENT...

What they take for fixed is set from outside: where /sys is, and the port on loopback. netlink is the kernel's, which has no such adapter.
Needs networking_mlnx of Debian 11 (python3-networking-mlnx 16.0.0-1) in PYTHONPATH, and the oslo of python3-neutron.
"""

import os
import sys

from networking_mlnx.eswitchd.common import constants

# What takes seconds to import on a busy machine, for whoever starts them often.
PRELOAD = "networking_mlnx.eswitchd.eswitch_daemon", "networking_mlnx.internal.netdev_ops.impl_pyroute2"


def move(place, root):
    """The paths that a module or a class has."""
    for name, value in list(vars(place).items()):
        if isinstance(value, str) and value.startswith("/sys/"):
            setattr(place, name, root + value.removeprefix("/sys"))


def listen_on(port):
    constants.SOCKET_OS_ADDR, constants.SOCKET_OS_PORT = "127.0.0.1", port


def eswitchd(root, port, conf):
    from oslo_config import cfg
    from oslo_log import log
    from networking_mlnx import privsep
    from networking_mlnx.eswitchd import eswitch_daemon
    from networking_mlnx.eswitchd.utils import ib_utils, pci_utils
    from networking_mlnx.internal.netdev_ops import impl_pyroute2
    for place in (constants, ib_utils.IbUtils, pci_utils.pciUtils):
        move(place, root)
    listen_on(port)
    sys.argv[1:] = ["--config-file", conf]
    log.register_options(cfg.CONF)      # which Neutron's configuration did in those days
    privsep.admin_pctx.set_client_mode(False)
    impl_pyroute2.IpCommand.set_link_state = lambda self, ifname, state: None
    eswitch_daemon.main()


def ebrctl(port, *args):
    listen_on(port)
    sys.argv = ["ebrctl", *args]
    from networking_mlnx.eswitchd.cli import ebrctl as program
    program.main()


def run(program, out, err, *args):
    """In a process that multiprocessing has made: what the program prints is in these files."""
    for fd, path in ((1, out), (2, err)):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), fd)
    program(*args)


if __name__ == "__main__":
    {"eswitchd": eswitchd, "ebrctl": ebrctl}[sys.argv[1]](*sys.argv[2:])
