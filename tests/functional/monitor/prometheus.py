"""A real Prometheus, Debian's, that scrapes services on this machine with the alerts' rules."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import requests
import yaml

from common.process.child import ROOT, Child
from tests.functional import backends
from tests.functional.waiting import eventually

PROGRAM = shutil.which("prometheus")


class Prometheus:
    """A Prometheus that runs."""

    def __init__(self, port: int) -> None:
        self._url = f"http://127.0.0.1:{port}"

    def ready(self) -> bool:
        """Return whether it answers."""
        with contextlib.suppress(requests.RequestException):
            return requests.get(f"{self._url}/-/ready", timeout=60).ok
        return False

    def by(self, label: str, expression: str) -> dict[str, float]:
        """Return {value of a label: value now}."""
        return {one["metric"][label]: float(one["value"][1]) for one in self._query(expression)}

    def one(self, expression: str) -> float:
        """Return the one value now; 0 if there is none."""
        found = self._query(expression)
        assert len(found) <= 1, found
        return float(found[0]["value"][1]) if found else 0.0

    def rules(self) -> int:
        """Return how many rules it evaluates; none may fail."""
        groups = self._get("rules")["groups"]
        rules = [rule for group in groups for rule in group["rules"]]
        assert {rule["health"] for rule in rules} <= {"ok", "unknown"}
        return len(rules)

    def _query(self, expression: str) -> Any:
        return self._get("query", query=expression)["result"]

    def _get(self, path: str, **params: str) -> Any:
        answer = requests.get(f"{self._url}/api/v1/{path}", params=params, timeout=60)
        assert answer.ok, answer.text
        return answer.json()["data"]


@contextlib.contextmanager
def running(folder: Path, targets: Mapping[str, int]) -> Iterator[Prometheus]:
    """Run it; `targets` are the ports of services by name."""
    backends.require(PROGRAM)
    port = backends.free_port()
    jobs = [
        {
            "job_name": f"micronova-{name}",
            "static_configs": [
                {"targets": [f"127.0.0.1:{number}"], "labels": {"instance_name": name}}
            ],
        }
        for name, number in targets.items()
    ]
    config = folder / "prometheus.yml"
    config.write_text(
        yaml.safe_dump(
            {
                "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
                "rule_files": [str(ROOT / "etc/prometheus/alerts.yaml")],
                "scrape_configs": jobs,
            }
        )
    )
    command = [
        str(PROGRAM),
        f"--config.file={config}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
    ]
    child = Child("Prometheus", command, folder / "prometheus.log")
    child.start()
    try:
        found = Prometheus(port)
        eventually(lambda: child.pid is None or found.ready(), 30)
        if child.pid is None:
            pytest.fail(child.log_path.read_text()[-2000:])
        yield found
    finally:
        child.stop()
