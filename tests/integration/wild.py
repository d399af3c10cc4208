# SPDX-License-Identifier: LGPL-2.1-or-later
"""Requests made from an OpenAPI document, good and bad ones, and what holds for every answer. The same seed makes the same requests of the same answers."""

import collections
import json
import os
import random
import re._parser as regex    # the parse tree: the documents' patterns are lists of characters and repeats
import string
import time
import urllib.parse

REQUESTS = int(os.environ.get("VHCA_WILD_REQUESTS", "2500"))    # some 5 s
HANGS = 20       # seconds: what takes longer
KNOWN = 0.8      # of values that a name or a pattern asks for, so many are ones that an answer has had
BROKEN = 0.4     # of requests
NASTY = ("", "0", "x" * 5000, "\u00fc\U0001f980", "../..", "%00", "a b", "'; DROP TABLE claims; --", "-1", "18446744073709551616", "null", "\x1b[31m")
ODD = (None, True, False, -1, 0, 2**31, 2**63, 2**64, -2**63, 1e308, "", [], {}, [[]], {"": None}, *NASTY)


class Requests:
    """Of one document. `words`: what a member or a parameter of this name may have here. `longest`: the greatest number of one that makes its answer wait."""

    def __init__(self, document, seed, words=(), longest=(), without=()):
        self.document, self.rng, self.given, self.longest = document, random.Random(seed), dict(words), dict(longest)
        self.operations = sorted((op for op in document.operations() if not op[0].startswith(tuple(without))), key=lambda op: (op[0], op[2]))
        self.seen = collections.defaultdict(list)    # of a member of this name, in answers
        self.answers = collections.Counter()         # by operation and class of status

    # ---- values ----

    def learn(self, value, name=None):
        """What an answer has may be asked for."""
        if isinstance(value, dict):
            for key, child in value.items():
                self.learn(child, key)
        elif isinstance(value, list):
            for child in value:
                self.learn(child, name)
        elif isinstance(value, (str, int)) and value not in self.seen[name]:
            self.seen[name] = (self.seen[name] + [value])[-50:]

    def matching(self, tree):
        """A text that a parsed pattern takes."""
        text = ""
        for kind, of in tree:
            if kind == regex.LITERAL:
                text += chr(of)
            elif kind == regex.IN:
                text += chr(self.rng.choice([c for what, c in of if what == regex.LITERAL] + [self.rng.randint(*c) for what, c in of if what == regex.RANGE]))
            elif kind == regex.MAX_REPEAT:
                text += "".join(self.matching(of[2]) for _ in range(self.rng.randint(of[0], min(of[1], of[0] + 40))))
            elif kind in (regex.ANY, regex.NOT_LITERAL):
                text += self.rng.choice("aZ0:- ")
            elif kind == regex.SUBPATTERN:
                text += self.matching(of[3])
            elif kind == regex.BRANCH:
                text += self.matching(self.rng.choice(of[1]))
            elif kind != regex.AT:
                raise AssertionError(f"{kind} in a pattern")
        return text

    def words(self, schema, name):
        if schema.get("format") == "uuid":
            return f"{self.rng.getrandbits(128):032x}"[:8] + "-0000-4000-8000-" + f"{self.rng.getrandbits(48):012x}"
        if "pattern" in schema:
            return self.matching(regex.parse(schema["pattern"]))
        known = [v for key in (name, "name", "bdf", "id", "uuid") for v in self.seen[key] if isinstance(v, str)]
        return self.rng.choice(known + ["".join(self.rng.choices(string.ascii_lowercase, k=5))])

    def value(self, schema, name=None):
        """One that the schema takes."""
        schema = self.document.resolve(schema)
        for part in ("anyOf", "allOf"):
            if part in schema:
                return self.value(self.rng.choice(schema[part]) if part == "anyOf" else schema[part][0], name)
        if "const" in schema or "enum" in schema:
            return schema.get("const", self.rng.choice(schema.get("enum", [None])))
        kind = schema.get("type", "object")
        kind = self.rng.choice([k for k in kind if k != "null"] or kind) if isinstance(kind, list) else kind
        known = [v for v in [*self.given.get(name, ()), *self.seen[name]] if isinstance(v, str if kind == "string" else int) and not isinstance(v, bool)]
        if kind in ("string", "integer") and known and name not in self.longest and self.rng.random() < KNOWN:
            return self.rng.choice(known)
        if kind == "string":
            return self.rng.choice(schema["examples"]) if "examples" in schema and self.rng.random() < 0.5 else self.words(schema, name)
        if kind == "integer":
            least, most = schema.get("minimum", 0), self.longest.get(name, schema.get("maximum", 2**31))
            return self.rng.choice((least, most, self.rng.randint(least, most)))
        if kind == "boolean":
            return self.rng.random() < 0.5
        if kind == "array":
            return [self.value(schema["items"], name) for _ in range(self.rng.randrange(4))]
        needed = schema.get("required", [])
        return {key: self.value(child, key) for key, child in schema.get("properties", {}).items() if key in needed or self.rng.random() < 0.4}

    # ---- what breaks them ----

    def damage(self, value):
        """The same with one place changed."""
        if isinstance(value, (dict, list)) and value and self.rng.random() < 0.6:
            copy = dict(value) if isinstance(value, dict) else list(value)
            key = self.rng.choice(list(copy) if isinstance(copy, dict) else range(len(copy)))
            what = self.rng.randrange(4)
            if what == 0:
                del copy[key]
            elif what == 1 and isinstance(copy, dict):
                copy[self.rng.choice(("colour", "", key + " ", key.upper()))] = self.rng.choice(ODD)
            else:
                copy[key] = self.damage(copy[key])
            return copy
        return self.rng.choice(ODD)

    def body(self, schema, broken):
        """Bytes, or None."""
        value = self.value(schema)
        if not broken:
            return json.dumps(value).encode()
        text = json.dumps(self.damage(value), allow_nan=False).encode()
        return self.rng.choice((text, text, text, text[:-1], text + b"}", text[:1] + b'"a": 1, "a": 2, ' + text[1:], b"[" * 40, b"\xff" + text, b" " * 70000, b"", None))

    def make(self):
        """(method, URL, body, headers, operation)."""
        path, shared, method, op = self.rng.choice(self.operations)
        broken = self.rng.random() < BROKEN
        query, headers = [], {}
        for parameter in map(self.document.resolve, shared + op.get("parameters", [])):
            value = self.value(parameter["schema"], parameter["name"])
            if parameter["name"] == "fields":
                known = self.document.fields(path)
                value = ",".join(self.rng.sample(known, self.rng.randint(1, len(known))))
            if broken and self.rng.random() < 0.3 and parameter["in"] != "header":
                value = self.rng.choice(NASTY)
            if parameter["in"] == "path":
                path = path.replace("{" + parameter["name"] + "}", urllib.parse.quote(str(value), safe=":"))
            elif self.rng.random() < 0.4 and parameter["in"] == "query":
                query.append((parameter["name"], value))
            elif self.rng.random() < 0.4:
                headers[parameter["name"]] = str(value).encode("ascii", "replace").decode()
        if broken and self.rng.random() < 0.2:
            query.append((self.rng.choice(("colour", "state", "", "wait")), self.rng.choice(("", "x", "%ff"))))
        url = path + ("?" + urllib.parse.urlencode(query) if query else "")
        body = None
        if "requestBody" in op:
            body = self.body(op["requestBody"]["content"]["application/json"]["schema"], broken)
        return method.upper(), url, body, headers, op["operationId"]

    # ---- answers ----

    def errors(self, method, url, status, doc):
        """What is wrong with an answer. 5xx is for what a machine says by a code of its own: a defect has none."""
        errors = self.document.check_answer(method, url, status, doc) if isinstance(doc, dict) else []
        if status < 200 or status >= 500 and (not isinstance(doc, dict) or doc.get("kind") in (None, "internal")):
            errors.append(f"status {status}: {doc}")
        return errors

    def play(self, ask):
        """ask(method, URL, body, headers) -> (status, document or text). Raises for the first answer that is wrong."""
        for _ in range(REQUESTS):
            method, url, body, headers, name = self.make()
            begun = time.monotonic()
            status, doc = ask(method, url, body, headers)
            errors = self.errors(method, url, status, doc)
            if time.monotonic() - begun > HANGS:
                errors.append(f"it took more than {HANGS} s")
            if errors:
                raise AssertionError(f"{method} {url} {headers} {body and body[:500]!r}: {errors}")
            self.answers[name, status // 100] += 1
            if status < 300:
                self.learn(doc)

    def count(self):
        """(how many operations there are, were asked, and were accepted)"""
        return len(self.operations), len({name for name, _ in self.answers}), len({name for name, kind in self.answers if kind == 2})
