#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""drivers/prometheus: each query of the alerts and of the dashboard asks for series, labels and values that vhcad and the plugin have."""

import json
import re

import yaml

import openapi
import tap
from host_case import HostCase

PLACE = openapi.ROOT / "drivers/prometheus"
RULES, DASHBOARD = PLACE / "vhcad.rules.yaml", PLACE / "vhcad.dashboard.json"
TOKEN = re.compile(r'\s*(?:(?P<series>[a-z_]+)(?P<match>\{[^}]*\})?(?P<range>\[\d+[smhd]\])?|(?P<number>\d+(?:\.\d+)?)|(?P<sign>[-+*/]|[<>]=?|==|!=|[(),]))')
MATCHER = re.compile(r'([a-z_]+)(=~|!~|=|!=)"([^"]*)"')
FUNCTIONS = {"time", "absent", "increase", "rate", "histogram_quantile"}
OF_RANGES = {"increase", "rate"}
AGGREGATIONS = {"sum", "min", "max"}
OPERATORS = {"and", "or", "unless"}
ELSEWHERE = {"up": {"job"}, "node_textfile_mtime_seconds": {"file"}}    # Prometheus' own, and node_exporter's
SCRAPED = {"instance", "job"}
DURATION = re.compile(r"[1-9]\d*[smh]")


def parse(sample):
    """'name{a="b"}' as (name, {a: b})."""
    name, _, labels = sample.partition("{")
    return name, dict(re.findall(r'([a-z_]+)="([^"]*)"', labels))


class Series:
    """What there is: names, and the values of their labels."""

    def __init__(self, samples):
        self.known = {name: {label: None for label in labels} for name, labels in ELSEWHERE.items()}
        for name, labels in map(parse, samples):
            values = self.known.setdefault(name, {})
            for label, value in labels.items():
                values.setdefault(label, set()).add(value)

    def check(self, name, matchers):
        """What is wrong with a selector, as sentences; and its labels."""
        if name not in self.known:
            return [f"{name}: there is no such series"], set()
        labels, errors = self.known[name], []
        for label, operator, value in matchers:
            if label in SCRAPED:
                continue
            if label not in labels:
                errors.append(f"{name}: no label {label}")
            elif operator == "=" and labels[label] is not None and value not in labels[label]:
                errors.append(f"{name}: {label} is never {value}")
        return errors, set(labels) | SCRAPED


def split_matchers(text):
    """Those of '{a="b",c=~"d"}'; None if it is anything else."""
    found = MATCHER.findall(text or "")
    return found if ",".join(f'{a}{o}"{v}"' for a, o, v in found) == (text or "{}")[1:-1] else None


def tokens(expr):
    at = 0
    while expr[at:].strip():
        m = TOKEN.match(expr, at)
        if not m:
            raise ValueError(f"not understood: {expr[at:]!r}")
        at = m.end()
        yield m


def check(expr, series):
    """Errors of an expression, as sentences: as much of PromQL as is used here, and nothing else."""
    errors, labels, groups, depth, grouping, last = [], set(), [], 0, False, None
    for m in tokens(expr):
        word, sign = m["series"], m["sign"]
        if grouping and word:
            groups.append(word)
        elif word in FUNCTIONS | AGGREGATIONS | OPERATORS | {"by"}:
            pass
        elif word:
            matchers = split_matchers(m["match"])
            found, has = series.check(word, matchers or [])
            errors += found + ([] if matchers is not None else [f"{word}: matchers {m['match']} are not understood"])
            if bool(m["range"]) != (last in OF_RANGES):
                errors.append(f"{word}: a range is what increase() and rate() take")
            labels |= has
        depth += {"(": 1, ")": -1}.get(sign, 0)
        grouping = (grouping or last == "by") and sign != ")"
        if depth < 0:
            errors.append("a bracket too many")
        last = word or (last if sign == "(" else sign)
    if depth:
        errors.append("a bracket is open")
    return errors + [f"by ({label}): no series of it has that" for label in groups if label not in labels]


class Monitoring(HostCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        status, text, _ = cls.host.get("/metrics")
        assert status == 200, status
        # test_sm_counters compares these with what a plugin prints.
        plugin = openapi.Document("openapi-vhcasm.yaml").doc
        names = re.findall(r"`(vhcasm_\w+)`", plugin["paths"]["/metrics"]["get"]["description"])
        reasons = plugin["components"]["schemas"]["Reason"]["properties"]["code"]["enum"]
        cls.series = Series(re.findall(r"^([^#\s]\S*) \S+$", text, re.M) + names + [f'vhcasm_ready_reasons{{code="{code}"}}' for code in reasons])

    def alerts(self):
        with open(RULES, encoding="utf-8") as f:
            return [rule for group in yaml.load(f, openapi.Once)["groups"] for rule in group["rules"]]

    def dashboard(self):
        return json.loads(DASHBOARD.read_text("utf-8"))

    def queries(self):
        return [(panel["title"], target) for panel in self.dashboard()["panels"] for target in panel["targets"]]

    def test_alerts_ask_for_what_there_is(self):
        for rule in self.alerts():
            with self.subTest(rule["alert"]):
                self.assertEqual(check(rule["expr"], self.series), [])

    def test_alerts_say_whom_to_wake_and_what_to_do(self):
        names = [rule["alert"] for rule in self.alerts()]
        self.assertEqual(len(names), len(set(names)))
        for rule in self.alerts():
            with self.subTest(rule["alert"]):
                self.assertLessEqual(rule.keys(), {"alert", "expr", "for", "labels", "annotations"})
                self.assertRegex(rule["alert"], r"\AVhca(d|sm)[A-Z]\w+\Z")
                self.assertTrue(DURATION.fullmatch(rule.get("for", "1m")))
                self.assertEqual(rule["labels"].keys(), {"severity", "team"})
                self.assertIn(rule["labels"]["severity"], ("page", "ticket"))
                self.assertIn(rule["labels"]["team"], ("hosts", "fabric", "compute"))
                self.assertEqual(rule["annotations"].keys(), {"summary", "description"})

    def test_an_operator_is_woken_for_all_that_stops_guests(self):
        text = " ".join(rule["expr"] for rule in self.alerts())
        for name in ("up", "ready", "store_writable", "libvirt_connected", "sm_reachable", "outbox_oldest_seconds", "vfs", "ports_down_with_guests",
                     "ready_reasons", "pkey_table_free", "migration_without_vf_seconds"):
            self.assertRegex(text, rf"\b(vhcad_)?{name}\b")

    def test_the_dashboard_asks_for_what_there_is(self):
        for title, target in self.queries():
            with self.subTest(title):
                self.assertEqual(check(target["expr"], self.series), [])
                self.assertIn('instance=~"$instance"', target["expr"])

    def test_what_is_now_is_no_old_value(self):
        """A panel of one number shows the last one of its time, also of a host that has been away since."""
        for panel in self.dashboard()["panels"]:
            if panel["type"] == "timeseries":
                continue
            for target in panel["targets"]:
                with self.subTest(panel["title"]):
                    self.assertEqual((target.get("instant"), target.get("range")), (True, False))
                    self.assertEqual(target.get("format"), "table" if panel["type"] == "table" else None)

    def test_the_dashboard_is_one_page_without_secrets(self):
        doc = self.dashboard()
        self.assertEqual(len({panel["id"] for panel in doc["panels"]}), len(doc["panels"]))
        taken = [(x, y) for p in doc["panels"] for x in range(p["gridPos"]["x"], p["gridPos"]["x"] + p["gridPos"]["w"])
                 for y in range(p["gridPos"]["y"], p["gridPos"]["y"] + p["gridPos"]["h"])]
        self.assertEqual((len(taken), len(set(taken)), max(x for x, _ in taken)), (24 * 24, 24 * 24, 23))
        self.assertNotRegex(DASHBOARD.read_text("utf-8"), r"https?://|password|token|secureJson")

    def test_the_checker_finds_errors(self):
        """The other tests lean on check(): it must not be a yes-man."""
        for expr in ("vhcad_read == 0", 'vhcad_vfs{state="lost"} > 0', 'vhcad_vfs{color="free"} > 0', "sum by (color) (vhcad_vfs)", "sum(vhcad_vfs",
                     "vhcad_vfs) > 0", "rate(vhcad_grants_total)", "vhcad_grants_total[5m] > 0", "vhcad_vfs{state=free}", "vhcad_grants > 0",
                     'vhcasm_ready_reasons{code="full"} == 1', "median(vhcad_vfs)"):
            with self.subTest(expr):
                self.assertTrue(check(expr, self.series))
        with self.assertRaises(ValueError):
            check("vhcad_vfs ? 1", self.series)


tap.main(__name__)
