# SPDX-License-Identifier: LGPL-2.1-or-later
"""Who looks at the fabric from a host of it: vantage_point.py, which says there what can be asked."""

import json
import os
import shutil
import subprocess
import tempfile

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "vantage_point.py")


class Vantage:
    """One that is attached at a host of a fabric. Paths only from the subnet manager's host, whose LID never changes."""

    def __init__(self, fabric, host):
        self.host, self.dir = host, tempfile.mkdtemp(dir=fabric.dir)    # umad2sim makes its sys-PID there
        self.process = subprocess.Popen(["/usr/bin/python3", "-S", PROGRAM], cwd=self.dir, env=fabric.env(host),    # four a case: each import costs
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, *question):
        self.process.stdin.write(json.dumps(question) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def close(self):
        """It ends with its input, and so leaves ibsim as a client should."""
        self.process.stdin.close()
        self.process.wait(timeout=20)
        self.process.stdout.close()
        shutil.rmtree(self.dir, ignore_errors=True)
