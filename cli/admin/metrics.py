"""``micronova metrics``: metrics for Prometheus, in the text format of its node exporter."""

from __future__ import annotations

import argparse
import datetime
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from cli.command import Command, argument

#: list in the answer → (metric, what it counts, labels)
_COUNTED = (
    ("servers", "micronova_servers", "Servers by vm_state", ("vm_state",)),
    (
        "operations",
        "micronova_open_operations",
        "Operations under way",
        ("state",),
    ),
    ("findings", "micronova_audit_findings", "Open findings", ("kind", "severity")),
    ("services", "micronova_services", "Services that are up or down", ("binary", "state")),
    ("vmids", "micronova_vmids", "VMIDs that are not free", ("cluster", "state")),
)


class ShowMetrics(Command):
    """Print metrics in Prometheus' text format.

    Servers by state, operations under way, open findings of the audit, VMIDs in quarantine, when
    the last audit ended. With ``--output`` a file is replaced at once, as the textfile collector
    of Prometheus' node exporter wants it.
    """

    arguments = (
        argument("--output", metavar="<file>", type=Path, help="Write there, ending in .prom"),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Ask the API, and print or write."""
        from openstack.exceptions import raise_from_response

        response = self.cloud.compute.get("/metrics")
        raise_from_response(response)
        text = exposition(response.json()["metrics"])
        if parsed_args.output is None:
            self.app.stdout.write(text)
            return
        # The collector reads whatever ends in .prom, whole or not.
        draft = parsed_args.output.with_suffix(".new")
        draft.write_text(text)
        os.replace(draft, parsed_args.output)


def exposition(metrics: Mapping[str, Any]) -> str:
    """Return the numbers in Prometheus' text format."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Collector(metrics))
    return generate_latest(registry).decode()


class _Collector(Collector):
    def __init__(self, metrics: Mapping[str, Any]) -> None:
        self._metrics = metrics

    def collect(self) -> Iterator[Metric]:
        """Return one family for each kind of number."""
        for key, name, text, labels in _COUNTED:
            family = GaugeMetricFamily(name, text, labels=labels)
            for row in self._metrics[key]:
                family.add_metric([row[label] for label in labels], row["count"])
            yield family
        held = self._metrics["held_servers"]
        yield GaugeMetricFamily("micronova_held_servers", "Servers that are held", value=held)
        for name, text, at in (
            ("oldest_operation", "Begin of the oldest open operation", "oldest_operation_at"),
            ("audit_started", "Begin of the last audit that ended well", "started_at"),
            ("audit_finished", "End of the last audit that ended well", "finished_at"),
        ):
            value = (self._metrics["audit"] if at in self._metrics["audit"] else self._metrics)[at]
            if value is not None:
                seconds = datetime.datetime.fromisoformat(value).timestamp()
                yield GaugeMetricFamily(f"micronova_{name}_timestamp_seconds", text, value=seconds)
