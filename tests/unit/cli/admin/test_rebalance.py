"""``micronova rebalance --plan``; what is applied is in ``test_drain``."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests.fixtures.sdk import FakeConnection, FakeProxy, run

PLAN: dict[str, Any] = {
    "score_before": 0.02,
    "score_after": 0.015,
    "considered": 7,
    "pinned": [],
    "moves": [
        {
            "server": "uuid-1",
            "name": "web",
            "source": "pve1",
            "target": "pve2",
            "memory_mib": 2048,
            "disk_gib": 20,
            "gain": 0.005,
        }
    ],
}


def a_cloud(plan: dict[str, Any]) -> FakeConnection:
    response = SimpleNamespace(status_code=200, json=lambda: {"rebalance": plan})
    return FakeConnection(FakeProxy(get=response))


def test_a_plan_with_cost_and_gain() -> None:
    connection = a_cloud(PLAN)
    ran = run(connection, "rebalance", "--plan", "--limit", "3", "-f", "value")
    assert ran.code == 0
    assert ran.out == "uuid-1 web pve1 pve2 2.0 20 25.0 %\n"
    assert "nothing was moved" in ran.err
    assert connection.compute.called("get") == [(("/rebalance",), {"params": {"limit": 3}})]


def test_what_cannot_move_is_said_once_for_each_reason() -> None:
    why = "its disk is a linked clone on the node's own storage local"
    pinned = [{"server": uuid, "name": uuid, "host": "pve1", "reason": why} for uuid in "ab"]
    ran = run(a_cloud({**PLAN, "pinned": pinned}), "rebalance", "--plan", "-f", "value")
    assert f"2 servers can't be migrated: {why}." in ran.err


def test_nothing_to_gain() -> None:
    ran = run(a_cloud({**PLAN, "moves": []}), "rebalance", "--plan", "-f", "value")
    assert (ran.code, ran.out.strip()) == (0, "")


@pytest.mark.parametrize("flags", [(), ("--plan", "--apply"), ("--pause", "--cancel")])
def test_one_thing_is_to_be_said(flags: tuple[str, ...]) -> None:
    connection = a_cloud(PLAN)
    ran = run(connection, "rebalance", *flags)
    assert ran.code != 0
    assert connection.compute.calls == []
