"""``micronova metrics``: Prometheus reads it, and the alerts name what is in it."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import yaml
from prometheus_client.parser import text_string_to_metric_families

from tests.fixtures.sdk import FakeConnection, FakeProxy, run

RULES = Path(__file__).parents[4] / "etc/prometheus/micronova.rules.yml"
METRICS: dict[str, Any] = {
    "servers": [{"vm_state": "active", "count": 7}],
    "held_servers": 1,
    "operations": [{"state": "running", "count": 2}],
    "oldest_operation_at": "2026-01-31T12:00:00Z",
    "findings": [{"kind": "vm_foreign", "severity": "notice", "count": 3}],
    "services": [{"binary": "nova-compute", "state": "down", "count": 1}],
    "vmids": [{"cluster": "c1", "state": "quarantined", "count": 4}],
    "audit": {"started_at": "2026-01-31T12:00:00Z", "finished_at": "2026-01-31T12:00:05Z"},
}


def a_cloud(metrics: dict[str, Any] = METRICS) -> FakeConnection:
    response = SimpleNamespace(status_code=200, json=lambda: {"metrics": metrics})
    return FakeConnection(FakeProxy(get=response))


def samples(text: str) -> dict[tuple[str, ...], float]:
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_what_prometheus_reads() -> None:
    ran = run(a_cloud(), "metrics")
    assert ran.code == 0, ran.err
    assert samples(ran.out) == {
        ("micronova_servers", "active"): 7,
        ("micronova_held_servers",): 1,
        ("micronova_open_operations", "running"): 2,
        ("micronova_oldest_operation_timestamp_seconds",): 1769860800,
        ("micronova_audit_findings", "vm_foreign", "notice"): 3,
        ("micronova_services", "nova-compute", "down"): 1,
        ("micronova_vmids", "c1", "quarantined"): 4,
        ("micronova_audit_started_timestamp_seconds",): 1769860800,
        ("micronova_audit_finished_timestamp_seconds",): 1769860805,
    }


def test_what_has_no_time_yet_is_left_out() -> None:
    never = {"started_at": None, "finished_at": None}
    ran = run(a_cloud({**METRICS, "oldest_operation_at": None, "audit": never}), "metrics")
    assert not [name for name, *_ in samples(ran.out) if name.endswith("_timestamp_seconds")]


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    target = tmp_path / "micronova.prom"
    target.write_text("old")
    ran = run(a_cloud(), "metrics", "--output", str(target))
    assert (ran.code, ran.out) == (0, "")
    assert samples(target.read_text())["micronova_held_servers",] == 1
    assert list(tmp_path.iterdir()) == [target]


def test_the_alerts_name_metrics_that_there_are() -> None:
    known = {name for name, *_ in samples(run(a_cloud(), "metrics").out)}
    [group] = yaml.safe_load(RULES.read_text())["groups"]
    exprs = " ".join(rule["expr"] for rule in group["rules"])
    asked = set(re.findall(r"\bmicronova_\w+", exprs))
    assert asked
    assert asked <= known
