#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""vantage_point.py: looks at the fabric from the host where it is attached, as often as it is asked, without starting a program each time.

A line on standard input is a JSON array; its answer is one, a line too, in the same order:
  ["who", LID, ...]                              name of the node that a LID-routed SMP reaches, null without an answer
  ["nobody", LID, LID, ...]                      the same of all but the first, which leads to a node that answers: ibsim answers in the order
                                                 in which it is asked, so there is nothing to wait for when that one has
  ["paths", SM_LID, MY_GUID, [GUID, LID], ...]   port GUID and LID of the SA's record for a path from here; asked for by
                                                 the GID, or by the LID if the GUID is null; null if the SA has none
  ["records", SM_LID, MY_GUID, [GUID, LID], ...] the same records as they are, in hexadecimal
  ["sa", SM_LID, [ATTRIBUTE, MASK, RECORD], ...] what the SA has for these components of a record, which is in hexadecimal, null if it has none
  ["get", [LID, ATTRIBUTE, MODIFIER], ...]       the 64 bytes that whoever has the LID answers, in hexadecimal, null without an answer
  ["directed", [[PORT, ...], ATTRIBUTE, MODIFIER], ...]    the same of whoever is at the end of a way: no LID is needed for it
  ["set", [LID, ATTRIBUTE, MODIFIER, DATA], ...] the same, after it was told these, in hexadecimal
"""

import json
import struct
import sys

import umad

NODE_DESCRIPTION, PATH_RECORD = 0x10, 0x35
DGID, SGID, DLID, SLID, NUMB_PATH = 1 << 2, 1 << 3, 1 << 4, 1 << 5, 1 << 12
SM_KEY = 1    # OpenSM's own, without which it hides P_Keys
PREFIX = 0xfe80 << 48
METHOD, RESPONSE = 3, 0x80
SMP_DATA, SMP_SIZE, SA_DATA, RECORD = umad.SMP_DATA, 64, 56, 64
WAIT_MS = 4500      # longer than a request and its repetitions take


def exchange(agent, requests, own_last=False):
    """The answers to [(LID, function that makes the datagram of a transaction)]; None where there is none. own_last: the last one is for this host
    itself, which always answers, and after whoever answers of the others; so there is nothing to wait for when it has."""
    for tid, (lid, make) in enumerate(requests):
        agent.send(lid, make(tid + 1))
    answers, once, last, asked = {}, set(range(1, len(requests) + 1)), len(requests), 1
    while asked if own_last else len(answers) < len(requests):
        mad = agent.receive(WAIT_MS)
        if mad is None:
            break
        tid = struct.unpack_from(">Q", mad, 8)[0] & 0xffffffff
        if not mad[METHOD] & RESPONSE:    # ibsim gives one back to its sender, now and then, where OpenSM was killed and started again
            if tid in once:
                once.remove(tid)
                lid, make = requests[tid - 1]
                agent.send(lid, make(tid))
                if own_last and tid != last:
                    asked += 1
                    agent.send(requests[-1][0], requests[-1][1](last))
            continue
        asked -= tid == last
        good = struct.unpack_from(">H", mad, 4)[0] & 0x7fff == 0
        answers[tid] = mad if good else None
    return [answers.get(tid + 1) for tid in range(len(requests))]


def who(agent, lids):
    answers = exchange(agent, [(lid, lambda tid: umad.smp(NODE_DESCRIPTION, tid)) for lid in lids])
    return [mad and name(mad) for mad in answers]


def name(mad):
    return mad[SMP_DATA:].split(b"\0")[0].decode()


def nobody(agent, answers, lids):
    """The names of those that have answered before."""
    found = {}
    for tid, lid in enumerate((*lids, answers)):
        agent.send(lid, umad.smp(NODE_DESCRIPTION, tid + 1))
    while len(lids) + 1 not in found:
        mad = agent.receive(WAIT_MS)
        if mad is None:
            raise OSError(f"no answer of LID {answers}")
        tid = struct.unpack_from(">Q", mad, 8)[0] & 0xffffffff
        if mad[METHOD] & RESPONSE:
            found[tid] = name(mad)
        else:    # as in exchange()
            agent.send((*lids, answers)[tid - 1], umad.smp(NODE_DESCRIPTION, tid))
    return [found.get(tid + 1) for tid in range(len(lids))]


def path_request(me, sm_lid, guid, lid, tid):
    mask = NUMB_PATH | (DGID | SGID if guid else DLID | SLID)
    return umad.sa(umad.GET, PATH_RECORD, mask,
                   struct.pack(">QQQQQHHIBB", 0, PREFIX, guid or 0, PREFIX, me, lid or 0, sm_lid, 0, 0, 1), tid)


def records(agent, sm_lid, me, wanted):
    answers = exchange(agent, [(sm_lid, lambda tid, row=row: path_request(me, sm_lid, *row, tid)) for row in wanted])
    return [mad and mad[SA_DATA:SA_DATA + RECORD] for mad in answers]


def paths(agent, sm_lid, me, wanted):
    return [record and (struct.unpack_from(">Q", record, 16)[0], struct.unpack_from(">H", record, 40)[0])
            for record in records(agent, sm_lid, me, wanted)]


def smps(agent, method, wanted):
    answers = exchange(agent, [(lid, lambda tid, a=attribute, m=modifier, d=data: umad.smp(a, tid, m, method, bytes.fromhex("".join(d))))
                               for lid, attribute, modifier, *data in wanted])
    return [mad and mad[SMP_DATA:SMP_DATA + SMP_SIZE].hex() for mad in answers]


def directed(agent, wanted):
    requests = [(umad.PERMISSIVE_LID, lambda tid, w=way, a=attribute, m=modifier: umad.directed(w, a, tid, m))
                for way, attribute, modifier in (*wanted, ([], NODE_DESCRIPTION, 0))]
    return [mad and mad[SMP_DATA:SMP_DATA + SMP_SIZE].hex() for mad in exchange(agent, requests, True)[:-1]]


def sa_gets(agent, sm_lid, wanted):
    answers = exchange(agent, [(sm_lid, lambda tid, a=attribute, m=mask, r=record: umad.sa(umad.GET, a, m, bytes.fromhex(r), tid, SM_KEY))
                               for attribute, mask, record in wanted])
    return [mad and mad[SA_DATA:].hex() for mad in answers]


def main():
    smi, way, sa = umad.Agent(umad.SUBN, 1), umad.Agent(umad.DIRECTED, 1), umad.Agent(umad.SA, 2)
    for line in sys.stdin:
        what, *args = json.loads(line)
        if what == "who":
            answer = who(smi, args)
        elif what == "nobody":
            answer = nobody(smi, args[0], args[1:])
        elif what in ("get", "set"):
            answer = smps(smi, umad.GET if what == "get" else umad.SET, args)
        elif what == "directed":
            answer = directed(way, args)
        elif what == "sa":
            answer = sa_gets(sa, args[0], args[1:])
        elif what == "paths":
            answer = paths(sa, args[0], args[1], args[2:])
        else:
            answer = [record and record.hex() for record in records(sa, args[0], args[1], args[2:])]
        print(json.dumps(answer), flush=True)


main()
