"""``micronova server metrics`` and ``micronova host metrics``."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from tests.fixtures.sdk import FakeConnection, FakeProxy, Ran, run
from tests.unit.cli.test_servers import a_server

pytestmark = pytest.mark.filterwarnings("ignore:The _compute_attributes method is deprecated")

TIMES = ["2026-11-29T00:29:00Z", "2026-11-29T00:30:00Z"]
ANSWER = {
    "metrics": {
        "times": TIMES,
        "series": [
            {"name": "cpu", "unit": "percent", "description": "x", "values": [25.0, 50.0]},
            {"name": "memory", "unit": "bytes", "description": "x", "values": [None, 1 << 30]},
            {
                "name": "network_in",
                "unit": "bytes_per_second",
                "description": "x",
                "values": [None, None],
            },
        ],
    }
}


def metrics(*words: str, answer: Any = ANSWER, status: int = 200) -> tuple[Ran, FakeProxy]:
    response = SimpleNamespace(status_code=status, json=lambda: answer, headers={}, ok=True)
    proxy = FakeProxy(get=response, find_server=a_server())
    return run(FakeConnection(proxy), *words), proxy


def test_a_table_with_graphs() -> None:
    ran, proxy = metrics("server", "metrics", "web", "--period", "week")
    assert proxy.called("get") == [
        (
            ("/servers/11111111-1111-1111-1111-111111111111/metrics",),
            {"params": {"period": "week"}},
        )
    ]
    lines = ran.out.splitlines()
    assert lines[1].split("|")[1:-1] == [
        " Metric     ",
        " Last    ",
        " Mean    ",
        " Peak    ",
        " Graph ",
    ]
    assert lines[3].split() == [
        "|",
        "cpu",
        "|",
        "50.0",
        "%",
        "|",
        "37.5",
        "%",
        "|",
        "50.0",
        "%",
        "|",
        "▅█",
        "|",
    ]
    assert "1.0 GiB |  █    |" in lines[4]
    assert "| network_in | -       | -       | -       |       |" in lines[5]


def test_json_has_all_values() -> None:
    ran, _ = metrics("server", "metrics", "web", "-f", "json")
    rows = json.loads(ran.out)
    assert rows[0] == {
        "Metric": "cpu",
        "Last": 50.0,
        "Mean": 37.5,
        "Peak": 50.0,
        "Graph": {"unit": "percent", "times": TIMES, "values": [25.0, 50.0]},
    }


def test_a_host_and_one_of_its_storages() -> None:
    _, proxy = metrics("host", "metrics", "pve1")
    assert proxy.called("get") == [(("/hosts/pve1/metrics",), {"params": {"period": "hour"}})]
    _, proxy = metrics("host", "metrics", "a/b", "--storage", "local", "--period", "year")
    asked = {"params": {"period": "year", "storage": "local"}}
    assert proxy.called("get") == [(("/hosts/a%2Fb/metrics",), asked)]


def test_a_period_is_one_of_five() -> None:
    assert metrics("server", "metrics", "web", "--period", "decade")[0].code == 2
