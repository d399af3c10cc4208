# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the plugin says, beside what was asked of it and what the subnet shows: keys and GUIDs by SMP from the ports and from the switch ports before
them, ways by the switches' own tables, records by the SA. Nothing of this asks the plugin."""

import re
import struct
import threading

import fabric
import vantage
import vswitches

NODE_INFO, GUID_INFO, PORT_INFO, PKEY_TABLE, LFT = 0x11, 0x14, 0x15, 0x16, 0x19
GUID_RECORD, PKEY_RECORD = 0x30, 0x33
PER_BLOCK, GUIDS, GUID_BLOCKS, DROPPED = 32, 8, 2, 255
DEFAULT, BASE = 0xffff, 0x7fff
SWITCH_ROOM = 8    # for keys of ibsim's switches themselves
FARTHEST = 16    # switches on a way
EXHAUSTED = 507
REFUSED_FIRST = ("bad_request", "not_the_owner", "unknown_partition", "superseded", "epoch_tie", "both_memberships", "no_such_path",
                 "method_not_allowed", "body_too_large")


# ---- what was asked ----

class Asked:
    """A request that may have had an effect. answered: None if its sender has not seen an answer that says so."""

    def __init__(self, sent, answered, value):
        self.sent, self.answered, self.value = sent, answered, value


def last_words(asked):
    """Values that may be the last: of those for sure the ones that no other one has followed, and all that may have come late."""
    sure = [a for a in asked if a.answered is not None]
    begun = max((a.sent for a in sure), default=None)
    return {a.value for a in asked if a.answered is None or a.answered >= begun}


def has_no_effect(method, body, status, code):
    """A report comes first, and then the LID that goes with it: what is refused for that one's sake may stand."""
    if status in (None, 200) or 500 <= status != EXHAUSTED:
        return False
    with_lid = method == "DELETE" or isinstance(body, dict) and body.get("lid_policy", "host") not in ("host", None)
    return not with_lid or code in REFUSED_FIRST


class Ledger:
    """What one plugin was asked, and has acknowledged or may have done: {GUID: [Asked]}, with epochs for bindings."""

    def __init__(self):
        self.lock = threading.Lock()
        self.bindings, self.members = {}, {}

    def note(self, sent, answered, method, path, body, status, code=None):
        """status: None without an answer; code: of a refusal."""
        if isinstance(body, bytes) or has_no_effect(method, body, status, code):
            return
        at = answered if status == 200 else None
        try:
            self._note(sent, at, method, path.partition("?"), body)
        except (TypeError, KeyError, ValueError, AttributeError):
            if status == 200:    # what is not even a request was acknowledged
                raise

    def _note(self, sent, at, method, path, body):
        kind, _, guid = path[0].removeprefix("/v1/").partition("/")
        if kind == "members" and method == "PUT":
            self._add(self.members, guid, Asked(sent, at, keys_of(body)))
        elif kind == "bindings" and method == "PUT":
            self._add(self.bindings, guid, Asked(sent, at, (body["epoch"], place_of(body), keys_of(body))))
        elif kind == "bindings" and method == "DELETE":
            epoch = int(re.search(r"epoch=(\d+)", path[2]).group(1))
            self._add(self.bindings, guid, Asked(sent, at, (epoch, None, frozenset())))
        elif kind == "moves" and body["phase"] == "commit":
            self._add(self.bindings, body["vguid"], Asked(sent, at, (body["epoch"], place_of(body["to"]), keys_of(body))))

    def _add(self, table, guid, asked):
        if table is self.bindings and not isinstance(asked.value[0], int):
            raise TypeError("no epoch")
        with self.lock:
            table.setdefault(int(guid, 0), []).append(asked)

    def bound(self):
        """{vGUID: {(epoch, place, keys)}}, of which one holds; a place of None says: withdrawn."""
        return {guid: self._bound(asked) for guid, asked in self.bindings.items()}

    def _bound(self, asked):
        sure = [a.value[0] for a in asked if a.answered is not None]
        highest = max(sure, default=-1)
        values = last_words([a for a in asked if a.value[0] == highest])
        if any(a.value[:2] == (highest, None) and a.answered is not None for a in asked):
            values = {(highest, None, frozenset())}    # that epoch is over
        values |= {a.value for a in asked if a.answered is None and a.value[0] > highest}
        return values if sure else values | {(None, None, frozenset())}

    def declared(self):
        """{port GUID: {keys}}, of which one holds."""
        found = {guid: last_words(asked) for guid, asked in self.members.items()}
        for guid, asked in self.members.items():
            if all(a.answered is None for a in asked):
                found[guid].add(frozenset())
        return found


def keys_of(body):
    return frozenset(int(key, 0) for key in body.get("pkeys") or [])


def place_of(body):
    return int(body["port_guid"], 0), body["gid_index"]


# ---- what the subnet shows ----

def cables(text):
    """{(node, port): (node, port)} of a network as ibsim reads it."""
    found, node = {}, None
    for line in text.splitlines():
        head = re.match(r'(?:Switch|Hca) \d+ "(\S+)"', line)
        cable = re.match(r'\[(\d+)\] "(\S+)"\[(\d+)\]', line)
        node = head.group(1) if head else node
        if cable:
            found[node, int(cable.group(1))] = (cable.group(2), int(cable.group(3)))
    return found


def integers(data, start, size, n=1):
    return [int.from_bytes(data[start + i * size:start + (i + 1) * size], "big") for i in range(n)]


class Look:
    """At a subnet that is at rest: all that the ports themselves say, through a vantage point at host 1."""

    def __init__(self, net, of):
        """of: {port GUID: LID}, to be proven."""
        self.net, self.of = net, of
        with open(f"{net.dir}/net", encoding="ascii") as f:
            self.cables = cables(f.read())
        self.switches = {name: int(lid) for name, lid in re.findall(r'"(\w+)" base port 0 lid (\d+)', net.query("ibswitches") or "")}
        self.place = vantage.Vantage(net, 1)
        try:
            self._look()
        finally:
            self.place.close()
        self.tables = net.tables()

    def _get(self, wanted):
        return [answer and bytes.fromhex(answer) for answer in self.place.ask("get", *wanted)]

    def _look(self):
        """Who does not answer by its LID is not asked for more."""
        names = self.place.ask("who", *self.of.values())
        self.name_of = {lid: name for lid, name in zip(self.of.values(), names) if name}
        infos = [self._get([(lid, attribute, 0) for lid in self.name_of]) for attribute in (NODE_INFO, PORT_INFO, GUID_INFO)]
        self.ports, self.keys, self.before = {}, {}, {}    # {name: (GUID, LID, GUIDs of the first block)}, {name: keys}, and those of the switch port before it
        for (lid, name), node, port, guids in zip(self.name_of.items(), *infos):
            if None not in (node, port, guids):
                self.ports[name] = (integers(node, 20, 8)[0], integers(port, 16, 2)[0], [g for g in integers(guids, 0, 8, 8) if g])
                self.keys[name] = self._keys(lid, 0, integers(node, 28, 2)[0])
        self.keys.update({name: self._keys(lid, 0, SWITCH_ROOM) for name, lid in self.switches.items()})
        for (name, _), (switch, port) in self.cables.items():
            if switch in self.switches and name not in self.switches:
                self.before[name] = self._keys(self.switches[switch], port, 2 * PER_BLOCK)
        self.sa_keys, self.aliases = self._sa_keys(), self._aliases()

    def _keys(self, lid, port, room):
        """In the order of their indexes; 0 where there is none."""
        blocks = self._get([(lid, PKEY_TABLE, port << 16 | n) for n in range((room + PER_BLOCK - 1) // PER_BLOCK)])
        return [key for block in blocks for key in integers(block or b"", 0, 2, PER_BLOCK if block else 0)][:room]

    def end_of_way(self, switch, lid):
        """Name of the node that a packet for a LID reaches from a switch, by the switches' own tables."""
        for _ in range(FARTHEST):
            port = self.tables.get(switch, {}).get(lid, DROPPED)
            if port == 0:
                return switch
            node, _ = self.cables.get((switch, port), (None, None))
            if node not in self.switches:
                return node
            switch = node
        return None

    def _sa(self, attribute, mask, records):
        """By LID, one record at a time: ibsim's library does not know answers of several packets."""
        found = self.place.ask("sa", self.of[pf_guid(1)], *([attribute, mask, record.hex()] for record in records))
        return [answer and bytes.fromhex(answer) for answer in found]

    def _sa_keys(self):
        """{name: keys}, as the SA has them."""
        at = {self.name_of[lid]: (lid, 1) for lid in self.name_of} | {name: (lid, 0) for name, lid in self.switches.items()}
        at = {name: where for name, where in at.items() if name in self.keys}
        blocks = [(name, lid, port, n) for name, (lid, port) in at.items() for n in range((len(self.keys[name]) + PER_BLOCK - 1) // PER_BLOCK)]
        answers = self._sa(PKEY_RECORD, 7, [struct.pack(">HHB", lid, n, port) for _, lid, port, n in blocks])
        found = {name: [] for name in at}
        for (name, *_), answer in zip(blocks, answers):
            found[name] += integers(answer, 8, 2, PER_BLOCK) if answer else []
        return found

    def _aliases(self):
        """{GUID: [(host, index)]} of the aliases that the SA has granted."""
        found, pfs = {}, range(1, vswitches.HYPERVISORS + 1)
        blocks = [(n, block) for n in pfs for block in range(GUID_BLOCKS)]
        answers = self._sa(GUID_RECORD, 3, [struct.pack(">HB", self.of[pf_guid(n)], block) for n, block in blocks])
        for (n, block), answer in zip(blocks, answers):
            for i, guid in enumerate(integers(answer, 8, 8, GUIDS) if answer else []):
                if guid and (block, i) != (0, 0):
                    found.setdefault(guid, []).append((n, block * GUIDS + i))
        return found


# ---- both ----

def agrees_with_itself(bindings, members):
    """False if rows of the plugin contradict each other."""
    ordered = all([row[key] for row in rows] == sorted({row[key] for row in rows}) for rows, key in ((bindings, "vguid"), (members, "port_guid")))
    sums = all(set(row["effective"]) == {*row["pkeys"], *row["from_bindings"]} for row in members)
    return ordered and sums and {key for row in members for key in row["from_bindings"]} == {key for row in bindings for key in row["pkeys"]}


class Trial:
    """faults: sentences, one for each thing that is not as it was asked, or not as it is said."""

    def __init__(self, net, of, ledger, bindings, members, granted, dynamic=()):
        """of: {port GUID: LID}; bindings, members: rows of the plugin; granted: {GUID: {index}} of aliases that drivers were given by the SA,
        which they ask by a LID, and that may have moved meanwhile;
        dynamic: {LID: port GUID} of LIDs that no port shows."""
        self.net, self.of = net, {int(guid, 0): lid for guid, lid in of.items()}
        self.ledger, self.granted, self.faults, self.said, self.declared = ledger, granted, [], {}, {}
        self.look = Look(net, self.of)
        self.names = {int(guid, 0): f"F{n}-{v}" for (n, v), guid in net.guid.items()}
        self.names.update({pf_guid(n): f"H{n}" for n in range(1, vswitches.HYPERVISORS + 1)})
        self.names.update({guid: name for name, guid in switch_guids(net).items()})
        self._bindings(bindings)
        self._members(members)
        self._ports()
        for lid, guid in dict(dynamic).items():
            self._way(lid, self.names.get(int(guid, 0)))
        self._keys()
        self._aliases(bindings)

    def tally(self):
        """How much was looked at: a trial that finds nothing to look at says so."""
        tables = [*self.look.keys.values(), *self.look.before.values()]
        certain = sum(len(asked) == 1 for asked in self.ledger.bound().values())
        return (f"{len(self.said)} bindings ({certain} of {len(self.ledger.bindings)} GUIDs have one last word), {len(self.declared)} declarations, {len(self.look.ports)} ports, {len(self.of)} LIDs from {len(self.look.switches)} switches, "
                f"{sum(sum(map(bool, t)) for t in tables)} keys in {len(tables)} tables, {len(self.look.aliases)} aliases")

    def _bindings(self, rows):
        said = {int(row["vguid"], 0): (row["epoch"], (int(row["port_guid"], 0), row["gid_index"]), keys_of(row)) for row in rows}
        bound = self.ledger.bound()
        for guid in sorted(said.keys() | bound.keys()):
            asked = bound.get(guid, set())
            if guid in said and said[guid] not in asked:
                self.faults.append(f"binding {guid:#x}: {said[guid]} is said, {asked} was asked")
            if guid not in said and not any(place is None for _, place, _ in asked):
                self.faults.append(f"binding {guid:#x}: {asked} was asked, none is said")
        self.said = said

    def _members(self, rows):
        said = {int(row["port_guid"], 0): keys_of(row) for row in rows}
        declared = self.ledger.declared()
        for guid in sorted(said.keys() | declared.keys()):
            keys = said.get(guid, frozenset())
            if keys not in declared.get(guid, {frozenset()}):
                self.faults.append(f"declaration of {guid:#x}: {keys} is said, {declared.get(guid)} was asked")
        self.declared = said

    def _ports(self):
        """Each LID is at its port, and leads to it from every switch."""
        for guid, lid in self.of.items():
            name = self.names.get(guid)
            port = self.look.ports.get(name)
            if port is None or port[:2] != (guid, lid) or port[2] != [guid]:
                self.faults.append(f"{name} shows {port}, not GUID {guid:#x} and LID {lid}")
            self._way(lid, name)

    def _way(self, lid, name):
        lost = [switch for switch in self.look.switches if self.look.end_of_way(switch, lid) != name]
        if lost or len(self.look.tables) != len(self.look.switches):
            self.faults.append(f"LID {lid} does not lead to {name} from {lost}")

    def needed(self):
        """{name: keys} that the ports need for what was asked."""
        found = {name: {DEFAULT} for name in self.look.keys}
        wanted = [(guid if guid in self.names else place[0], keys) for guid, (_, place, keys) in self.said.items()]
        for guid, keys in (*wanted, *self.declared.items()):
            if guid in self.names:
                found.setdefault(self.names[guid], {DEFAULT}).update(key for key in keys if key & BASE != BASE)
        return found

    def _keys(self):
        needed = self.needed()
        self._tables("P_Key table of", self.look.keys, needed)
        self._tables("P_Key table before", self.look.before, needed)
        self._tables("SA's P_Key table of", self.look.sa_keys, needed)

    def _tables(self, what, tables, needed):
        for name, table in tables.items():
            keys = [key for key in table if key]
            if sorted(keys) != sorted(needed.get(name, {DEFAULT})) or table[:1] != [DEFAULT]:
                self.faults.append(f"{what} {name}: {shown(keys)}, needed {shown(needed.get(name, {DEFAULT}))}")

    def _aliases(self, rows):
        """At one place each, where a driver was given it; what the plugin says of it is so."""
        for guid, at in self.look.aliases.items():
            if len(at) != 1 or not {index for _, index in at} <= self.granted.get(guid, set()):
                self.faults.append(f"alias {guid:#x} is at {at}, drivers were given it at {self.granted.get(guid)}")
        hosts = {pf_guid(n): n for n in range(1, vswitches.HYPERVISORS + 1)}
        for row in rows:
            guid, at = int(row["vguid"], 0), (hosts.get(int(row["port_guid"], 0)), row["gid_index"])
            if guid not in self.names and (row["state"] == "granted") != (at in self.look.aliases.get(guid, [])):
                self.faults.append(f"binding {guid:#x} is {row['state']}, the SA has it at {self.look.aliases.get(guid)}")


def shown(keys):
    return [f"0x{key:04x}" for key in sorted(keys)]


def pf_guid(n):
    return int(fabric.port_guid(n), 0)


def switch_guids(net):
    return {name: int(guid, 0) for guid, name in re.findall(r'(0x\w+) ports \d+ "(\w+)"', net.query("ibswitches") or "")}
