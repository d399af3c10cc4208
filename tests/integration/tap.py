# SPDX-License-Identifier: LGPL-2.1-or-later
"""unittest with TAP output: a test file ends with `tap.main(__name__)`."""

import sys
import traceback
import unittest


class TapResult(unittest.TestResult):
    """Prints a line for each case; a case with failing sub-tests is one failure."""

    def __init__(self):
        super().__init__()
        self.count = 0
        self.bad = {}

    def _line(self, verdict, test, note=""):
        self.count += 1
        doc = test.shortDescription() or ""
        print(f"{verdict} {self.count} - {test.id().split('.', 1)[1]} {doc}{note}", flush=True)

    def _note(self, test, err, sub=None):
        text = "".join(traceback.format_exception(*err))
        print("# " + (f"{sub}\n" if sub else "").replace("\n", "\n# ") + text.replace("\n", "\n# "))
        self.bad[test.id()] = True

    def addSuccess(self, test):
        if test.id() not in self.bad:
            self._line("ok", test)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self._note(test, err)
        self._line("not ok", test)

    def addError(self, test, err):
        super().addError(test, err)
        self._note(test, err)
        self._line("not ok", test)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self._line("ok", test, f" # SKIP {reason}")

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            first = test.id() not in self.bad
            self._note(test, err, subtest)
            if first:
                self._line("not ok", test)


def main(name):
    """Run the cases of the calling module."""
    if name != "__main__":
        return
    suite = unittest.defaultTestLoader.loadTestsFromModule(sys.modules[name])
    print(f"1..{suite.countTestCases()}", flush=True)
    result = TapResult()
    suite.run(result)
    sys.exit(0 if result.wasSuccessful() and result.count else 1)
