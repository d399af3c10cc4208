#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""docs/openapi.yaml and docs/openapi-vhcasm.yaml are whole, and list the routes that agent and plugin serve: no more, no fewer."""

import re
import unittest

import yaml

import openapi
import tap

ROUTE = re.compile(r'\{\s*"([A-Z]+)",\s*"(/[^"]*)",\s*VHCA_CALLER_([A-Z]+),\s*\w+(?:,\s*"([^"]*)"(?:,\s*(\w+))?|(?:,\s*NULL){2},\s*(\w+),\s*"([^"]*)")?\}')
CODE = re.compile(r'VHCA_ERR_(\w+),\s*(?:"(\w+)"|VHCA_CODE_(\w+))')
CONSTANT = re.compile(r'^#define VHCA_CODE_(\w+)\s+"(\w+)"$', re.M)
KIND = re.compile(r'\[VHCA_ERR_(\w+)\] = \{"[\w-]+", (\d+), \d+\}')
EXCEPTION = re.compile(r'\{VHCA_CODE_(\w+), (\d{3}), (true|false)\}')
ROW = re.compile(r"^(\w+) +(\d{3}) +(yes|no) ", re.M)
PARTS = ("agent", "common", "conf", "ctl", "hooks", "opensm", "pkey", "sm", "sriov")
# Whose codes are in no answer: the agent has not started then, or says it in words (`problem` of an adapter, the hook).
ELSEWHERE = {"agent/agent.c", "agent/vf/hook.c", "agent/hook_server.c", "agent/plan.c", "common/http/listen.c", "common/http/server.c",
             "common/base/file.c", "common/store/migrate.c", "common/store/store.c", "common/ticket/ticket.c", "sriov/enable.c",
             "sriov/inventory.c"}
UNANSWERED = {"api_socket", "guest_at_it", "host", "lid_stays", "no_such_group", "outbox", "ports_failed", "start",
              "inventory_unread", "ports_unread", "vfs_not_made", "vfs_unbound"}    # reasons of /readyz
REASON = re.compile(r'\[VHCA_READINESS_\w+\] = \{(?:"(\w+)"|VHCA_CODE_(\w+)),\s*(true|false)')
REASON_ROW = re.compile(r"^(\w+) +(yes|no) +(?:unknown|warning|wrong) ", re.M)


def sources(*patterns):
    """The text of these files."""
    return "".join(path.read_text("utf-8") for pattern in patterns for path in sorted(openapi.ROOT.glob(pattern)))


def codes(*parts, without=()):
    """{code: its kinds}, of the sources of these folders."""
    found = {}
    for path in (path for part in parts for path in (openapi.ROOT / part).rglob("*.[ch]")):
        if str(path.relative_to(openapi.ROOT)) not in without:
            for kind, code, constant in CODE.findall(path.read_text("utf-8")):
                found.setdefault(code or constant.lower(), set()).add(kind)
    return found


class Checks:
    """What holds for either document."""

    NAME = ROUTES = MANUAL = None
    FIELDS = "api_openapi_"
    BODILESS = ()    # how the paths of POSTs without a body end

    @classmethod
    def setUpClass(cls):
        cls.document = openapi.Document(cls.NAME)

    def test_routes_are_those_served(self):
        served = {m.groups()[:2] for m in ROUTE.finditer(sources(self.ROUTES))}
        written = self.document.routes()
        self.assertTrue(served, f"no route table found in {self.ROUTES}")
        self.assertEqual(sorted(served - written), [], f"served, but not in docs/{self.NAME}")
        self.assertEqual(sorted(written - served), [], f"in docs/{self.NAME}, but not served")

    def codes(self):
        return set(self.document.doc["components"]["schemas"]["ProblemCode"]["enum"])

    def test_codes_are_those_of_the_manual(self):
        """With the status, and whether the same request may succeed later, that the sources give them."""
        kinds = codes(*PARTS)
        status = dict(KIND.findall(sources("common/base/error.c")))
        exceptions = {code.lower(): (number, again == "true") for code, number, again in EXCEPTION.findall(sources("common/http/problem.c"))}
        rows = ROW.findall((openapi.ROOT / "docs/man" / self.MANUAL).read_text("utf-8"))
        self.assertEqual(sorted(code for code, *_ in rows), sorted(self.codes()))
        for code, number, again in rows:
            kind = min(kinds[code])
            self.assertEqual((number, again == "yes"), exceptions.get(code, (status[kind], kind in ("UNAVAILABLE", "EXHAUSTED"))), code)

    def test_roles_are_those_asked_for(self):
        served = {(m[1], m[2]): m[3].lower() for m in ROUTE.finditer(sources(self.ROUTES))}
        self.assertEqual(served, self.document.roles())

    def test_query_parameters_are_those_taken(self):
        taken = {(m[1], m[2]): set((m[4] or "").split()) for m in ROUTE.finditer(sources(self.ROUTES))}
        for path, shared, method, op in self.document.operations():
            with self.subTest(f"{method} {path}"):
                declared = {p["name"] for p in map(self.document.resolve, shared + op.get("parameters", [])) if p["in"] == "query"}
                self.assertEqual(declared, taken[method.upper(), re.sub(r"\{[^}]*\}", "{}", path)])

    def test_fields_are_those_of_an_entry(self):
        """Each list has its own row of what openapi-to-c has found."""
        taken = {m[2]: m[5] for m in ROUTE.finditer(sources(self.ROUTES)) if "fields" in (m[4] or "").split()}
        self.assertEqual(taken, {path: self.FIELDS + self.document.entry(op["responses"]["200"]["content"]["application/json"]["schema"])[0]
                                 for path, _, _, op in self.document.operations()
                                 if "fields" in (self.document.resolve(p)["name"] for p in op.get("parameters", []))})
        self.assertGreaterEqual(len(taken), 3)

    def test_path_parameters_are_declared(self):
        for path, shared, method, op in self.document.operations():
            with self.subTest(f"{method} {path}"):
                declared = {p["name"] for p in map(self.document.resolve, shared + op.get("parameters", []))
                            if p["in"] == "path"}
                self.assertEqual(declared, set(re.findall(r"\{([^}]*)\}", path)))

    def test_operations_are_complete(self):
        ids = [op["operationId"] for *_, op in self.document.operations()]
        self.assertEqual(len(ids), len(set(ids)))
        tags = {tag["name"] for tag in self.document.doc["tags"]}
        for path, _, method, op in self.document.operations():
            with self.subTest(f"{method} {path}"):
                self.assertTrue(op["summary"])
                self.assertLessEqual(set(op["tags"]), tags)
                self.assertIn("default", op["responses"])
                takes_body = method == "put" or method == "post" and not path.endswith(self.BODILESS)
                self.assertEqual(takes_body, "requestBody" in op)

    def test_references_resolve_and_all_is_used(self):
        used = {name for rule in self.document.doc.get("security", []) for name in rule}

        def walk(node):
            if isinstance(node, dict):
                if "$ref" in node:
                    self.assertTrue(self.document.resolve(node))
                    used.add(node["$ref"].rsplit("/", 1)[1])
                for child in node.values():
                    walk(child)
            elif isinstance(node, list):
                for child in node:
                    walk(child)
        walk(self.document.doc)
        components = self.document.doc["components"]
        self.assertEqual({name for group in components.values() for name in group} - used, set())

    def test_required_members_are_described(self):
        for name, schema in self.document.doc["components"]["schemas"].items():
            with self.subTest(name):
                self.assertLessEqual(set(schema.get("required", [])), schema.get("properties", {}).keys())

    def test_schemas_use_known_keywords(self):
        """A comma in an unquoted YAML sentence makes a key of its second half."""
        def walk(schema):
            for keyword in schema.keys() - openapi.SILENT - {"$ref"}:
                self.assertTrue(hasattr(self.document, "check_" + keyword), f"{keyword} in {schema}")
            for child in [*schema.get("properties", {}).values(), *schema.get("allOf", []), *schema.get("anyOf", []), schema.get("items")]:
                if child:
                    walk(child)
        for schema in self.document.doc["components"]["schemas"].values():
            walk(schema)


class Agent(Checks, unittest.TestCase):
    """With the routes of both listeners."""

    NAME, ROUTES, MANUAL, BODILESS = "openapi.yaml", "agent/api/*.c", "vhcad-api.7.rst", ("/abort", "/adopt", "/reload")

    def test_a_constant_is_called_as_its_code(self):
        """The other tests read the code in the constant's name."""
        constants = CONSTANT.findall(sources("common/base/codes.h"))
        self.assertTrue(constants)
        self.assertEqual([name for name, code in constants if name.lower() != code], [])

    def test_a_code_has_one_kind(self):
        """And so one status, one exit status and one word on whether to ask again; in the plugin, too."""
        self.assertEqual({code: kinds for code, kinds in codes(*PARTS).items() if len(kinds) > 1 or "-" in code}, {})

    def test_codes_are_those_of_the_sources(self):
        parts = codes(*(part for part in PARTS if part not in ("ctl", "hooks", "opensm")), without=ELSEWHERE)
        self.assertEqual(UNANSWERED - parts.keys(), set())
        self.assertEqual(sorted(parts.keys() - UNANSWERED - self.codes()), [], f"not in docs/{self.NAME}")
        self.assertEqual(sorted(self.codes() - parts.keys()), [], "not in the sources")

    def test_reasons_are_those_of_the_sources_and_of_the_manual(self):
        """In one order, so that what blocks comes first everywhere."""
        served = [(code or constant.lower(), "yes" if blocks == "true" else "no")
                  for code, constant, blocks in REASON.findall(sources("agent/explain/readiness.c"))]
        self.assertEqual(REASON_ROW.findall((openapi.ROOT / "docs/man" / self.MANUAL).read_text("utf-8")), served)
        self.assertEqual(self.document.doc["components"]["schemas"]["ReasonCode"]["enum"], [code for code, _ in served])

    def test_if_match_is_taken_where_a_state_is_read(self):
        """And a GET of what it names says that state."""
        served = {(m[1], m[2]): m[7] for m in ROUTE.finditer(sources(self.ROUTES)) if m[6]}
        self.assertEqual(served.keys(), {(method.upper(), re.sub(r"\{[^}]*\}", "{}", path)) for path, _, method, op in self.document.operations()
                                         if "If-Match" in (self.document.resolve(p)["name"] for p in op.get("parameters", []))})
        for read in served.values():
            self.assertIn("get", self.document.doc["paths"][read])

    def test_what_peers_ask_is_on_their_listener(self):
        for path, _, method, op in self.document.operations():
            with self.subTest(f"{method} {path}"):
                self.assertEqual(op["tags"] == ["peer"], path.startswith("/v1/peer/"))
                self.assertEqual("servers" in self.document.doc["paths"][path], path.startswith("/v1/peer/"))

    def test_checker_finds_errors(self):
        """The other tests lean on check(): it must not be a yes-man."""
        for schema, value in (("Bdf", "1:00.0"), ("Bdf", 7), ("VfState", "lost"), ("Released", {}), ("Released", []),
                              ("AttachRequest", {"partition": "1", "x": 1}), ("Node", {"api": True}),
                              ("Claim", {"pkeys": ["0x1"]}), ("ClaimResult", {}), ("Health", {"status": "bad"})):
            with self.subTest(schema):
                self.assertNotEqual(self.document.check(schema, value), [])
        self.assertEqual(self.document.check("Released", {"state": "free"}), [])
        claim, tag = "/v1/claims/6d3a0000-0000-4000-8000-000000000001", '"0123456789abcdef-1f"'
        for match in ("*", tag, f"{tag}, {tag}", f"{tag},{tag} ,\t{tag}"):
            self.assertEqual(self.document.check_request("DELETE", claim, None, {"If-Match": match}), [], match)
        for method, name, text in (("DELETE", "If-Match", ""), ("DELETE", "If-Match", f"*, {tag}"), ("DELETE", "If-Match", f"{tag} {tag}"),
                                   ("DELETE", "If-Match", f"{tag},"), ("GET", "If-Match", tag), ("DELETE", "Idempotency-Key", "one")):
            self.assertNotEqual(self.document.check_request(method, claim, None, {name: text}), [], (method, name, text))

    def test_a_second_schema_of_one_name_is_found(self):
        with self.assertRaisesRegex(yaml.constructor.ConstructorError, "'Port'.* twice"):
            yaml.load("schemas:\n  Port: {type: object}\n  Vf: {type: object}\n  Port: {type: string}\n", openapi.Once)


class Plugin(Checks, unittest.TestCase):
    NAME, ROUTES, MANUAL, BODILESS = "openapi-vhcasm.yaml", "opensm/http/*.c", "libvhcasm.7.rst", ("/rebalance", "/pause", "/resume")
    FIELDS = "vhca_osm_openapi_"

    def test_codes_are_in_the_sources(self):
        self.assertEqual(self.codes() - codes("opensm", "common/http", "common/ticket").keys(), set())

    def test_exchanges(self):
        """What fabric.py leans on: check_answer() and check_request() are no yes-men either."""
        guid, rest = "0x02c9ab0000000001", {"port_guid": "0x02c9ab0000000002", "gid_index": 1, "pkeys": ["0x8001"]}
        url, bound = f"/v1/bindings/{guid}", {"vguid": guid, "epoch": 1, "state": "granted", "lid": 3, "findings": [], **rest}
        problem = {"type": "", "title": "", "status": 409, "detail": "", "code": "epoch_tie", "kind": "conflict", "hint": "", "retryable": False}
        answers = (("PUT", url, 200, bound), ("PUT", url, 409, problem), ("GET", "/nowhere", 409, problem), ("PUT", "/readyz", 409, problem),
                   ("GET", "/v1/bindings?limit=3", 200, {"bindings": [bound], "next": None}),
                   ("GET", "/v1/bindings?fields=lid,lid_move", 200, {"bindings": [{"lid": 3}], "next": None}),
                   ("DELETE", url, 200, {"vguid": guid, "epoch": 1, "state": "withdrawn"}))
        for answer in answers:
            self.assertEqual(self.document.check_answer(*answer), [])
        for method, where, status, doc in ((*answers[0][:3], {**bound, "more": 1}), (*answers[0][:3], {**bound, "lid": None}), ("GET", "/nowhere", 200, bound),
                                           ("PUT", url, 201, bound), ("PUT", url, 400, problem), ("PUT", url, 409, {**problem, "code": "sorry"}),
                                           ("GET", "/v1/bindings?fields=lid", 200, {"bindings": [bound], "next": None}),
                                           ("GET", "/v1/bindings?fields=lid,vguid", 200, {"bindings": [{"lid": 3}], "next": None}),
                                           ("GET", "/v1/bindings", 200, {"bindings": [{**bound, "more": 1}], "next": None})):
            self.assertNotEqual(self.document.check_answer(method, where, status, doc), [], doc)
        report = {"epoch": 1, **rest}
        self.assertEqual(self.document.check_request("PUT", url, report), [])
        for method, where, body in (("PUT", url, {**report, "more": 1}), ("PUT", url, None), ("PUT", url + "?x=1", report), ("PUT", "/v1/bindings/7", report),
                                    ("GET", "/v1/bindings?limit=0", None)):
            self.assertNotEqual(self.document.check_request(method, where, body), [], where)


tap.main(__name__)
