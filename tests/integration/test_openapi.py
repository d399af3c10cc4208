#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""docs/openapi.yaml is whole, and lists the routes that the agent serves: no more, no fewer."""

import os
import pathlib
import re
import unittest

import openapi
import tap

AGENT = pathlib.Path(os.environ["VHCA_SOURCE_DIR"]) / "agent"
ROUTE = re.compile(r'\{\s*"([A-Z]+)",\s*"(/[^"]*)",')


def served_routes():
    """From the route tables of both listeners: agent/api*.c and agent/peer_api*.c."""
    return {m.groups() for path in sorted(AGENT.glob("*api*.c")) for m in ROUTE.finditer(path.read_text("utf-8"))}


class Document(unittest.TestCase):
    def setUp(self):
        self.document = openapi.Document()

    def test_routes_are_the_agents(self):
        served, written = served_routes(), self.document.routes()
        self.assertTrue(served, "no route table found in agent/api*.c")
        self.assertEqual(sorted(served - written), [], "served, but not in docs/openapi.yaml")
        self.assertEqual(sorted(written - served), [], "in docs/openapi.yaml, but not served")

    def test_path_parameters_are_declared(self):
        for path, shared, method, op in self.document.operations():
            with self.subTest(f"{method} {path}"):
                declared = {p["name"] for p in map(self.document.resolve, shared + op.get("parameters", []))
                            if p["in"] == "path"}
                self.assertEqual(declared, set(re.findall(r"\{([^}]*)\}", path)))

    def test_operations_are_complete(self):
        ids = [op["operationId"] for *_, op in self.document.operations()]
        self.assertEqual(len(ids), len(set(ids)))
        for path, _, method, op in self.document.operations():
            with self.subTest(f"{method} {path}"):
                self.assertTrue(op["summary"])
                self.assertIn("default", op["responses"])
                takes_body = method == "put" or method == "post" and not path.endswith(("/abort", "/adopt"))
                self.assertEqual(takes_body, "requestBody" in op)

    def test_what_peers_ask_is_on_their_listener(self):
        for path, _, method, op in self.document.operations():
            with self.subTest(f"{method} {path}"):
                self.assertEqual(op["tags"] == ["peer"], path.startswith("/v1/peer/"))
                self.assertEqual("servers" in self.document.doc["paths"][path], path.startswith("/v1/peer/"))

    def test_references_resolve_and_all_is_used(self):
        used = set()

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
            for child in [*schema.get("properties", {}).values(), *schema.get("allOf", []), schema.get("items")]:
                if child:
                    walk(child)
        for schema in self.document.doc["components"]["schemas"].values():
            walk(schema)

    def test_checker_finds_errors(self):
        """The other tests lean on check(): it must not be a yes-man."""
        for schema, value in (("Bdf", "1:00.0"), ("Bdf", 7), ("VfState", "lost"), ("Released", {}), ("Released", []),
                              ("AttachRequest", {"partition": "1", "x": 1}), ("Node", {"api": True}),
                              ("Claim", {"pkeys": ["0x1"]}), ("ClaimResult", {}), ("Health", {"status": "bad"})):
            with self.subTest(schema):
                self.assertNotEqual(self.document.check(schema, value), [])
        self.assertEqual(self.document.check("Released", {"state": "free"}), [])


tap.main(__name__)
