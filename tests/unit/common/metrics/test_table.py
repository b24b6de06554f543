"""The table of metrics: names by Prometheus' rules, bounded labels, and who uses them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from grafana_foundation_sdk.cog import plugins
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import dashboard as grafana
from grafana_foundation_sdk.models import prometheus

from cli.admin import metrics as textfile
from common.metrics import table
from common.metrics.instruments import Instrument
from common.process.child import ROOT
from tests.unit.docs.test_links import anchors

ALERTS = ROOT / "etc/prometheus/alerts.yaml"
PAGE = ROOT / "docs/monitor.md"
#: words in expressions that begin like a metric and are none
_NAME = re.compile(r"\bmicronova_\w+")
#: what a label may never be: its values would have no bound
UNBOUNDED = {
    "server",
    "server_uuid",
    "project",
    "project_id",
    "user",
    "request_id",
    "path",
    "vmid",
}
SERIES = {
    "counter": ("",),
    "gauge": ("",),
    "histogram": ("_bucket", "_sum", "_count"),
}


def known() -> set[str]:
    return {one.name + end for one in table.ALL for end in SERIES[one.kind]}


@pytest.mark.parametrize("metric", list(table.ALL), ids=lambda one: one.name)
def test_a_metric_is_named_as_prometheus_wants_it(metric: Instrument) -> None:
    assert re.fullmatch(r"micronova_[a-z]+(_[a-z]+)*", metric.name)
    assert metric.name.endswith("_total") == (metric.kind == "counter")
    if metric.kind == "histogram":
        assert metric.name.endswith("_seconds")
    assert metric.text
    # Those of guests are there where the operator asks for them, and knows how many there are.
    if not metric.name.startswith("micronova_guest_"):
        assert not UNBOUNDED & set(metric.labels)
    assert table.answered_by(metric.name)


def test_names_are_unique() -> None:
    names = [one.name for one in table.ALL]
    assert len(names) == len(set(names))


def test_every_metric_is_recorded_somewhere() -> None:
    rooms = ("api", "common", "compute", "conductor", "console", "db", "placement")
    sources = "".join(
        path.read_text(encoding="utf-8")
        for room in (*rooms, "scheduler", "web")
        for path in (ROOT / room).rglob("*.py")
        if path != ROOT / "common/metrics/table.py"
    )
    constants = {name for name, one in vars(table).items() if isinstance(one, Instrument)}
    assert len(constants) == len(table.ALL)
    assert {name for name in constants if f"table.{name}" not in sources} == set()


def test_the_text_file_says_the_same_of_the_record() -> None:
    """`micronova metrics` has the same names, so that one alert fits both."""
    named = {one.name: one for one in table.ALL}
    for _, name, _, labels in textfile._COUNTED:
        assert named[name].labels == labels


def alerts() -> Iterator[dict[str, Any]]:
    for group in yaml.safe_load(ALERTS.read_text(encoding="utf-8"))["groups"]:
        yield from group["rules"]


@pytest.mark.parametrize("alert", list(alerts()), ids=lambda one: one["alert"])
def test_an_alert_names_metrics_that_exist_and_a_paragraph(alert: dict[str, Any]) -> None:
    assert set(_NAME.findall(alert["expr"])) <= known()
    assert alert["labels"]["severity"] in {"critical", "warning", "info"}
    assert alert["annotations"]["summary"]
    page, _, anchor = alert["annotations"]["runbook"].partition("#")
    assert page == "docs/monitor.md"
    assert anchor == alert["alert"].lower()
    assert anchor in anchors(PAGE)


def test_every_alert_is_tried() -> None:
    tried = (ROOT / "tests/functional/monitor/alerts.test.yaml").read_text(encoding="utf-8")
    assert {
        one["alert"] for one in alerts() if f'alertname="{one["alert"]}"' not in tried
    } == set()


def expressions(panel: dict[str, Any]) -> Iterator[str]:
    yield from (target["expr"] for target in panel.get("targets", ()))


def test_the_dashboard_names_metrics_that_exist() -> None:
    text = (ROOT / "etc/grafana/micronova.json").read_text(encoding="utf-8")
    panels = json.loads(text)["panels"]
    used = {
        name for panel in panels for expr in expressions(panel) for name in _NAME.findall(expr)
    }
    assert used
    assert used <= known()
    assert len({panel["id"] for panel in panels}) == len(panels)
    shown = [panel for panel in panels if panel["type"] != "row"]
    assert all(list(expressions(panel)) for panel in shown)


#: what Grafana's Prometheus data source reads of an annotation beside Grafana's schema
BESIDE_THE_SCHEMA = {"annotations.list.0.titleFormat"}


def test_grafana_knows_all_that_the_dashboard_says() -> None:
    """Its SDK is made of Grafana's own schema: what it doesn't know gets lost on the way."""
    plugins.register_default_plugins()
    written = json.loads((ROOT / "etc/grafana/micronova.json").read_text(encoding="utf-8"))
    loaded = grafana.Dashboard.from_json(written)
    kept = json.loads(JSONEncoder().encode(loaded))
    assert set(lost(written, kept)) == BESIDE_THE_SCHEMA
    panels = [one for one in loaded.panels or () if isinstance(one, grafana.Panel)]
    queries = [query for panel in panels for query in panel.targets or ()]
    assert queries
    assert all(isinstance(one, prometheus.Dataquery) for one in queries)


def lost(written: Any, kept: Any, path: str = "") -> Iterator[str]:
    """Yield the paths of what was written and isn't kept, or not as it was."""
    if isinstance(written, dict | list) and type(kept) is type(written):
        for key, value in written.items() if isinstance(written, dict) else enumerate(written):
            there = key in kept if isinstance(kept, dict) else key < len(kept)
            yield from lost(value, kept[key] if there else None, f"{path}.{key}".lstrip("."))
    elif written != kept:
        yield path


def test_the_page_is_current() -> None:
    written = Path(PAGE).read_text(encoding="utf-8")
    assert written.endswith(table.document()), "tox -e generate"
