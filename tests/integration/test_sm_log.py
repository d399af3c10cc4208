#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What a time-out in OpenSM's log excuses, and that it excuses nothing else. The lines are OpenSM's own, of a run in which ibsim stood still for 1.3 s."""

import unittest

import sm_log
import tap

AT = "Nov 25 01:26:{} {} [{}] 0x01 -> "
RECEIVER, SWEEPER = "857FD6C0", "883F96C0"


def line(second, text, thread=RECEIVER):
    return AT.format(*f"{second:09.6f}".split("."), thread) + text + "\n"


def time_out(second, method, attribute, name, tid, path):
    """All that OpenSM says of one."""
    verb = {1: "Get", 2: "Set"}[method]
    last = f"ERR 3119: Set method failed for attribute 0x{attribute} ({name})" if method == 2 else \
        f"ERR 3120: Timeout while getting attribute 0x{attribute} ({name}); Possible mis-set mkey?"
    return (line(second, "log_send_error: ERR 5411: DR SMP Send completed with error (IB_TIMEOUT) -- dropping\n"
                 f"\t\t\tMethod 0x{method}, Attr 0x{attribute}, TID {tid}") +
            line(second, f"Received SMP on a {path.count(',')} hop path: Initial path = {path}, Return path  = 0,0") +
            line(second, f"sm_mad_ctrl_send_err_cb: ERR 3113: MAD completed in error (IB_TIMEOUT): Subn{verb}({name}), attr_mod 0x0, TID {tid}") +
            line(second, f"sm_mad_ctrl_send_err_cb: {last}"))


KEYS = time_out(24.721498, 2, "16", "P_KeyTable", "0x12ba", "0,1,2")
OWN = time_out(20.762799, 1, "11", "NodeInfo", "0x128f", "0")
LEFT = "state_mgr_is_sm_port_down: ERR 330A: Failed to discover SM port"
LOG = OWN + line(20.762896, LEFT, SWEEPER) + line(21.5, "HEAVY SWEEP COMPLETE", SWEEPER) + KEYS


class Excuses(unittest.TestCase):
    def faults(self, log, **args):
        return len(sm_log.unexplained(log, **args))

    def changed(self, old, new, faults=1):
        """Sabotage of the log: one that excused everything once it had seen a time-out would be blind for it."""
        self.assertEqual(LOG.count(old), 1, old)
        self.assertEqual(self.faults(LOG.replace(old, new)), faults, new)

    def test_a_time_out_explains_its_own_transaction(self):
        self.assertEqual(self.faults(LOG), 0)
        self.assertEqual(len(sm_log.Errors(LOG).time_outs), 2)
        self.assertEqual([t.path for t in sm_log.Errors(LOG).time_outs], ["0", "0,1,2"])

    def test_an_error_of_another_kind(self):
        for text in ("osm_get_port_by_guid: ERR 1F06: no such port", "vhcasm: ERR FFFF: state_dir", "ERR without a code"):
            for thread in (RECEIVER, SWEEPER):
                self.assertEqual(self.faults(LOG + line(24.8, text, thread)), 1)
        self.assertEqual(self.faults(LOG + "\tERR 5411: of a line that goes on\n"), 1)
        self.assertEqual(self.faults("something ERR before the first line\n" + LOG), 1)

    def test_another_transaction(self):
        self.changed("attr_mod 0x0, TID 0x12ba", "attr_mod 0x0, TID 0x12bb")
        self.changed("SubnSet(P_KeyTable)", "SubnGet(P_KeyTable)")

    def test_another_attribute(self):
        self.changed("failed for attribute 0x16", "failed for attribute 0x19")

    def test_a_get_where_a_set_was_lost(self):
        self.changed("ERR 3119: Set method failed for", "ERR 3120: Timeout while getting")

    def test_what_is_said_twice(self):
        self.assertEqual(self.faults(LOG + line(24.9, "sm_mad_ctrl_send_err_cb: ERR 3119: Set method failed for attribute 0x16 (P_KeyTable)")), 1)
        self.assertEqual(self.faults(line(1, "sm_mad_ctrl_send_err_cb: ERR 3119: Set method failed for attribute 0x16 (P_KeyTable)")), 1)

    def test_another_thread(self):
        self.changed(line(24.721498, "sm_mad_ctrl_send_err_cb: ERR 3119: Set method failed for attribute 0x16 (P_KeyTable)"),
                     line(24.721498, "sm_mad_ctrl_send_err_cb: ERR 3119: Set method failed for attribute 0x16 (P_KeyTable)", SWEEPER))

    def test_an_error_that_is_no_time_out(self):
        self.changed("(IB_TIMEOUT): SubnSet", "(IB_ERROR): SubnSet")
        self.assertEqual(self.faults(KEYS.replace("IB_TIMEOUT", "IB_ERROR")), 3)

    def test_a_port_that_is_not_opensms_own(self):
        self.changed("0 hop path: Initial path = 0,", "1 hop path: Initial path = 0,1,")

    def test_long_after(self):
        left = line(20.762896, LEFT, SWEEPER)
        self.changed(left, line(23.5, LEFT, SWEEPER))
        self.assertEqual(self.faults(left + OWN), 1)    # and before

    def test_too_many(self):
        log = "".join(time_out(n, 2, "16", "P_KeyTable", f"0x{n:x}", "0,1,2") for n in range(1, 10))
        self.assertEqual((self.faults(log, most=9), self.faults(log)), (0, 1))


tap.main(__name__)
