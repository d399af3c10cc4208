# SPDX-License-Identifier: LGPL-2.1-or-later
"""Texts of OpenMetrics for tests, read by Prometheus's own strict parser. Needs python3-prometheus-client."""

import re

from prometheus_client.openmetrics.parser import text_string_to_metric_families

CONTENT_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"


def families(text):
    """{name: family}; each has its HELP, and each that counts time its unit."""
    found = {family.name: family for family in text_string_to_metric_families(text)}
    for name, family in found.items():
        if not family.documentation or family.type == "unknown" or (family.unit == "seconds") != name.endswith("_seconds"):
            raise AssertionError(family)
    return found


def samples(text):
    """{"name{labels}": value}, in the words of the text, which the parser has taken."""
    families(text)
    return {key: float(value) for key, value in re.findall(r"^([^#\s]\S*) (\S+)$", text, re.M)}


def names(text):
    """Of the samples, without what a histogram adds."""
    return {re.sub(r"(_(bucket|sum|count))?(\{.*\})?$", "", key) for key in samples(text)}
