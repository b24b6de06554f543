"""Two conductors for each story."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from pathlib import Path

import pytest

from conductor.engine import stage_runner
from tests.functional.conductor.harness import Mortal, World
from tests.functional.conductor.takeover.cloud import Cloud


@pytest.fixture
def cloud(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cloud]:
    # Every run begins with what was read at the request, however long the ones before it took.
    monkeypatch.setattr(stage_runner, "JUST_BEGUN", datetime.timedelta(hours=1))
    world = World(tmp_path)
    yield Cloud(world, Mortal(world.conductor.store), world.add_conductor("c2"))
    world.close()
