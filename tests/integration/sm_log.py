# SPDX-License-Identifier: LGPL-2.1-or-later
"""Errors in a log of OpenSM, and which of them a time-out that is logged for the same transaction explains.

Where ibsim has no processor for most of a second, an SMP gets no answer. OpenSM says so three times: 5411 with the transaction's number, 3113 with the
same number, and 3119 (of a Set) or 3120 (of a Get) with its attribute. It leaves a sweep if that was one to its own port (330A, 3309).
"""

import re

HEAD = re.compile(r"^\w{3} +\d+ (\d\d):(\d\d):(\d\d) (\d{6}) \[(\w+)\] 0x\w\w -> (.*)$")
ERROR = re.compile(r"\bERR (\w+)")
SENT = re.compile(r"Send completed with error \(IB_TIMEOUT\).*Method 0x(\w+), Attr 0x(\w+), TID (0x\w+)", re.S)
PATH = re.compile(r"hop path: Initial path = ([\d,]+),")
ENDED = re.compile(r"error \(IB_TIMEOUT\): Subn(Get|Set)\(\w+\), attr_mod 0x\w+, TID (0x\w+)")
SAID = {"3119": ("Set", re.compile(r"failed for attribute 0x(\w+) ")), "3120": ("Get", re.compile(r"getting attribute 0x(\w+) "))}
METHODS = {"1": "Get", "2": "Set"}
OWN_PORT, OWN_PORT_ATTRIBUTES = "0", ("11", "15")    # NodeInfo, PortInfo
NEAR, DAY = 2.0, 86400.0    # s; from the time-out to what the sweeper, another thread, says of it
MOST = 8    # time-outs that one log may have


class TimeOut:
    def __init__(self, when, method, attribute, tid):
        self.when, self.method, self.attribute, self.tid, self.path = when, METHODS.get(method), attribute, tid, None

    def __str__(self):
        return f"{self.method} of attribute 0x{self.attribute} by path {self.path}"


def entries(log):
    """(time of the day, thread, text) of each, with the lines that follow it."""
    found = []
    for line in log.splitlines():
        head = HEAD.match(line)
        if head:
            hours, minutes, seconds, micro = (int(head.group(n)) for n in range(1, 5))
            found.append([hours * 3600 + minutes * 60 + seconds + micro / 1e6, head.group(5), head.group(6)])
        elif ERROR.search(line) or not found:
            found.append([0.0, "", line])    # if it is an error, nobody explains it
        else:
            found[-1][2] += "\n" + line
    return found


class Errors:
    """others: texts that nothing explains. time_outs: what explains the rest."""

    def __init__(self, log):
        self.time_outs, self.others, self.of_thread = [], [], {}
        for when, thread, text in entries(log):
            if not ERROR.search(text):
                self._learn_path(thread, text)
            elif not self._explains(ERROR.search(text).group(1), when, thread, text):
                self.others.append(text)

    def _learn_path(self, thread, text):
        path, last = PATH.search(text), self.of_thread.get(thread)
        if path and last and last.path is None:
            last.path = path.group(1)

    def _explains(self, code, when, thread, text):
        if code == "5411":
            return self._begins(when, thread, text)
        last = self.of_thread.get(thread)
        if code == "3113":
            ended = ENDED.search(text)
            return bool(ended and last and (last.method, last.tid) == ended.groups())
        if code in SAID:
            method, attribute = SAID[code]
            said = attribute.search(text)
            self.of_thread[thread] = None    # it is said once
            return bool(said and last and (last.method, last.attribute) == (method, said.group(1)))
        return code in ("330A", "3309") and self._lost_own_port(when)

    def _begins(self, when, thread, text):
        sent = SENT.search(text)
        if sent:
            self.of_thread[thread] = TimeOut(when, *sent.groups())
            self.time_outs.append(self.of_thread[thread])
        return bool(sent)

    def _lost_own_port(self, when):
        return any(t.path == OWN_PORT and t.method == "Get" and t.attribute in OWN_PORT_ATTRIBUTES and (when - t.when) % DAY < NEAR
                   for t in self.time_outs)


def unexplained(log, most=MOST):
    """What a test fails for. Each time-out that excuses something is printed."""
    errors = Errors(log)
    for t in errors.time_outs:
        print(f"# excused: a time-out, {t}", flush=True)
    if len(errors.time_outs) > most:
        errors.others.append(f"{len(errors.time_outs)} time-outs, at most {most} are excused")
    return errors.others
