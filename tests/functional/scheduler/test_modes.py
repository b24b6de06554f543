"""What room is good for, with real services: where servers go, one after the other."""

from __future__ import annotations

import collections
import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from db import schema
from tests.chaos.world import World, world

NODES = 3
SERVERS = 6


@contextlib.contextmanager
def cloud(folder: Path, mode: str) -> Iterator[World]:
    # Where the image lies already is another matter.
    weighers = "ram:1.0,cpu:1.0,disk:0.5,storage:0.5,load:0.01,build_failure:10.0"
    options = {"scheduler": {"mode": mode, "weighers": weighers}}
    with world(folder, options, nodes=NODES) as running:
        yield running


def placed(running: World) -> dict[str, int]:
    """How many servers each host has, of those built one after the other."""
    hosts = []
    for number in range(SERVERS):
        row = running.built(f"server-{number}")
        assert row.vm_state == "active"
        hosts.append(row.host)
    return collections.Counter(hosts)


def weighers(running: World) -> set[str]:
    """Those whose scores were kept with decisions."""
    kept: list[Any] = [row.body["scores"] for row in running.rows(schema.decisions.select())]
    return {name for scores in kept for one in scores.values() for name in one}


def moves(running: World) -> int:
    """How many servers the rebalancer would move."""
    return len(running.client.rebalance(running.context(), 10).moves)


@pytest.mark.parametrize("mode", ["spread", "cluster-score"])
def test_modes_that_spread(tmp_path: Path, mode: str) -> None:
    with cloud(tmp_path, mode) as running:
        assert sorted(placed(running).values()) == [2, 2, 2]
        assert ("cluster_score" in weighers(running)) == (mode == "cluster-score")
        assert ("ram" in weighers(running)) == (mode == "spread")
        # It is the score that the rebalancer uses: it finds nothing to improve.
        assert moves(running) == 0


def test_packing_leaves_whole_hosts_empty(tmp_path: Path) -> None:
    with cloud(tmp_path, "pack") as running:
        assert list(placed(running).values()) == [SERVERS]
        assert moves(running) > 0
