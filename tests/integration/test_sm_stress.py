#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Four clients ask libvhcasm.so at once while OpenSM sweeps; OpenSM stops at any moment."""

import random
import threading
import time

import fabric
import fattree
import seeds
import sm_log
import tap
from plugin_case import Case


class Stress(Case):
    REQUESTS = 1000

    def client(self, sm, seed, errors):
        rng = random.Random(seed)
        for i in range(self.REQUESTS // 4):
            vguid = f"0x02c9ab0000000{rng.randrange(16):03x}"
            kind = rng.randrange(10)
            time.sleep(rng.random() * 0.01)
            sm.api.metrics()
            try:
                if kind < 5:
                    answer = sm.api.bind(vguid, rng.randrange(1, 40), rng.randrange(1, 6),
                                         rng.sample(["0x8001", "0x8002", "0x8003", "0x0004"], rng.randrange(5)))
                elif kind < 7:
                    answer = sm.api.withdraw(vguid, rng.randrange(1, 40))
                elif kind < 8:
                    answer = sm.api.declare(rng.randrange(1, 6), rng.sample(["0x8001", "0x8009"], rng.randrange(3)))
                elif kind < 9:
                    answer = sm.api.call("GET", rng.choice(["/v1/bindings", "/v1/members", "/readyz"]))
                else:
                    answer = sm.api.call("PUT", f"/v1/bindings/{vguid}", rng.randbytes(rng.randrange(300)))
                if answer[0] >= 500 and answer[0] != 503:
                    errors.append(answer)
            except Exception as e:      # a client's thread: the case looks at the list
                errors.append(repr(e))

    def test_requests_while_sweeps_run(self):
        sm = self.manager().start()
        errors, before = [], sm.sweeps()
        drawn = [f"{seed} {n}" for seed in (seeds.FIXED, seeds.tell(seeds.FRESH)) for n in range(2)]
        clients = [threading.Thread(target=self.client, args=(sm, seed, errors)) for seed in drawn]
        with fattree.Sweeps(sm):
            for c in clients:
                c.start()
            for c in clients:
                c.join()
        self.assertEqual(errors, [])
        self.assertGreater(sm.sweeps() - before, 5)
        rows = sm.api.rows("members")
        effective = {r["port_guid"]: set(r["effective"]) for r in rows}
        for host in range(1, fabric.HOSTS + 1):
            want = effective.get(fabric.port_guid(host), set()) | {"0xffff"}
            fabric.wait_for(f"H{host} has {want}: {self.fabric.pkeys(host)}",
                            lambda: set(self.fabric.pkeys(host).values()) == want, 15)
        self.assertTrue(sm.alive())
        self.assertEqual(sm.stop(), 0)
        self.assertEqual(sm_log.unexplained(sm.log()), [])    # another sweep has done what was lost: the keys are there

    def test_stop_at_any_moment(self):
        for i in range(6):
            sm = self.manager().start(wait=False)
            # Earlier than this OpenSM has not blocked its signals yet.
            fabric.wait_for("the plugin", lambda: "vhcasm: version" in sm.log(), every=0.001)
            time.sleep(0.05 * i)
            self.assertEqual(sm.stop(), 0, sm.output()[-2000:])


tap.main(__name__)
