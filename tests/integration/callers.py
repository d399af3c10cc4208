# SPDX-License-Identifier: LGPL-2.1-or-later
"""Other users of this machine, for root alone."""

import contextlib
import os


@contextlib.contextmanager
def acting_as(user, groups=()):
    """As another user (pwd entry) in his own group and these; None: as oneself."""
    if not user:
        yield
        return
    mine = os.getgroups()
    os.setgroups(groups)
    os.setegid(user.pw_gid)
    os.seteuid(user.pw_uid)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)
        os.setgroups(mine)
