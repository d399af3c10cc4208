# SPDX-License-Identifier: LGPL-2.1-or-later
"""Two OpenSMs at one fabric, of which one stands by."""

import fabric

TIMING = "sminfo_polling_timeout 300\npolling_retry_number 2\n"
MASTER, STANDBY = f"sm_priority 5\n{TIMING}", f"sm_priority 1\n{TIMING}"
HIGHER = f"sm_priority 8\n{TIMING}"    # a master gives way to it


class Masters:
    @classmethod
    def setUpClass(cls):
        """Each case has a fabric of its own."""

    def setUp(self):
        self.fabric = self.new_fabric()
        self.addCleanup(self.fabric.close)

    def sm_state(self, sm):
        try:
            return sm.api.call("GET", "/healthz")[1]["sm_state"]
        except OSError:    # no socket yet, or one that does not listen yet
            return None

    def wait_standby(self, sm):
        fabric.wait_for("standby", lambda: self.sm_state(sm) == "standby", 30)

    def enter_standby(self, standby):
        standby.start(wait=False)
        self.wait_standby(standby)

    def takes_over(self, standby):
        fabric.wait_for("the take-over", standby.api.ready, 30)
