# SPDX-License-Identifier: LGPL-2.1-or-later
"""Two OpenSMs at one fabric, of which one stands by."""

import fabric

TIMING = "sminfo_polling_timeout 300\npolling_retry_number 2\n"
MASTER, STANDBY = f"sm_priority 5\n{TIMING}", f"sm_priority 1\n{TIMING}"


class Masters:
    """About one take-over in twenty hangs in OpenSM's own sweeper on a busy machine, also without any plugin (it waits for
    an answer that ibsim never gave): such a try does not count, on a new fabric it is made again."""

    TRIES = 4

    @classmethod
    def setUpClass(cls):
        """Each try has a fabric of its own."""

    def setUp(self):
        self.fabric = self.new_fabric()
        self.addCleanup(self.fabric.close)

    def enter_standby(self, standby):
        standby.start(wait=False)
        fabric.wait_for("standby", lambda: self.sm_state(standby) == "standby")

    def sm_state(self, sm):
        try:
            return sm.api.call("GET", "/healthz")[1]["sm_state"]
        except OSError:    # no socket yet, or one that does not listen yet
            return None

    def repeat(self, scenario, *args):
        """Runs scenario() until it returns true: the stand-by took over."""
        for _ in range(self.TRIES):
            if scenario(*args):
                return
            self.fabric.close()
            self.setUp()
        self.fail(f"no take-over in {self.TRIES} tries")

    def in_time(self, what, condition):
        try:
            fabric.wait_for(what, condition, 8)
        except AssertionError:
            print(f"# {what} hung in OpenSM", flush=True)
            return False
        return True

    def took_over(self, standby):
        return self.in_time("the take-over", standby.api.ready)
