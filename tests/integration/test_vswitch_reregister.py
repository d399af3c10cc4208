#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The Set(PortInfo) that gives a port its moved LID also tells its client to register anew with the SA: as it goes over the wire, by smpcount.c."""

import os
import unittest

import fabric
import fattree
import tap
import vswitches

VGUID = "0x02c9ab0000000011"


class Wire:
    """For cases with a fabric (net) and an OpenSM (sm)."""

    def told(self, request):
        """{LID: Set(PortInfo) with it and with the bit} of a move, which sends two, and in which OpenSM does nothing."""
        self.sm.rest()
        sweeps, smps, before = self.swept(), self.sm.smps(), self.sm.reregisters()
        request()
        self.sm.rest()
        self.assertEqual((self.swept(), self.sm.smps()["port_info"] - smps["port_info"]), (sweeps, 2))
        return dict(self.sm.reregisters() - before)

    def swept(self):
        return self.sm.api.call("GET", "/v1/fabric")[1]["sweeps"]

    def at(self, *places):
        """LIDs that the ports themselves show."""
        return [self.net.lid(place) for place in places]


class Exchange(Wire, fattree.Case):
    HOSTS = (3, 14)    # of other leaves

    def exchange(self, **args):
        """({LID: times told}, their LIDs before), of two there and back."""
        self.net, self.sm = self.tree, self.manager(**args).start()
        lids = fattree.Lids(self.tree, self.sm)
        before = [lids.of[host] for host in self.HOSTS]
        self.assertEqual(self.at(*self.HOSTS), before)
        there = self.told(lambda: lids.move(*self.HOSTS))
        self.assertEqual(self.at(*self.HOSTS), before[::-1])
        back = self.told(lambda: lids.move(*self.HOSTS))
        self.assertEqual(self.at(*self.HOSTS), before)
        self.assertEqual(there, back)
        self.assertEqual(self.sm.stop(), 0)
        return there, before

    def test_both_are_told(self):
        told, lids = self.exchange(hardware={"VHCA_CLIENT_REREGISTER": "1"})
        self.assertEqual(told, dict.fromkeys(lids, 1))

    def test_not_where_opensm_is_not_to(self):
        self.assertEqual(self.exchange(hardware={"VHCA_CLIENT_REREGISTER": "1"}, conf="no_clients_rereg TRUE")[0], {})

    def test_not_a_port_that_does_not_know_it(self):
        """As ibsim's own."""
        self.assertEqual(self.exchange()[0], {})


@unittest.skipIf(fabric.missing(), fabric.missing())
class Vports(Wire, unittest.TestCase):
    def test_both_are_told(self):
        source, to = (1, 1), (4, 2)
        self.net = vswitches.VSwitches()
        self.addCleanup(self.net.close)
        self.net.program(*source, VGUID)
        self.sm = self.net.manager(opensm_conf="routing_engine ftree\n", counter=os.environ["VHCA_SMPCOUNT_LIB"], hardware={"VHCA_CLIENT_REREGISTER": "1"}).start()
        lids, other = vswitches.lids(self.sm), self.net.guid[to]
        ports = [f"F{n}-{v}" for n, v in (source, to)]
        self.assertEqual(self.sm.api.bind(VGUID, 1, source[0], [], gid_index=0)[0], 200)
        self.assertEqual(vswitches.move(self.sm, VGUID, 2, source, to, "host")[0], 200)
        self.net.exchange(source, to)
        self.assertEqual(self.at(*ports), [lids[VGUID], lids[other]])
        told = self.told(lambda: self.assertEqual(vswitches.move(self.sm, VGUID, 2, source, to)[0], 200))
        self.assertEqual(told, {lids[VGUID]: 1, lids[other]: 1})
        self.assertEqual(self.at(*ports), [lids[other], lids[VGUID]])
        self.assertEqual(self.sm.stop(), 0)


tap.main(__name__)
