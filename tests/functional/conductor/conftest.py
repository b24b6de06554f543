"""The world of most files; the others have one of their own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.functional.conductor.harness import World
from tests.functional.db.conftest import postgres_server, postgres_url

__all__ = ["postgres_server", "postgres_url"]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """Two hosts, an image and a conductor that works."""
    made = World(tmp_path)
    made.conductor.runner.start()
    yield made
    made.close()
