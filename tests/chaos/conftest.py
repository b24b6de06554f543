"""One stage for all files that need an ordinary one: starting it takes longer than most stories.

Such a file is in the group ``stage`` of ``tests/distribution.py``, and leaves the stage as it was:
whole, and without servers.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.chaos.stage import Stage, stage
from tests.shared import Shared

_STAGE: Shared[Stage] = Shared("shared_stage")


@pytest.fixture(scope="module")
def shared_stage(tmp_path_factory: pytest.TempPathFactory) -> Stage:
    """Two conductors, a scheduler and an agent."""
    return _STAGE.get(lambda: stage(tmp_path_factory.mktemp("stages") / "stage", audited=False))


@pytest.fixture(scope="module")
def cloud(shared_stage: Stage) -> Iterator[Stage]:
    """The shared stage, which must be clean after each file."""
    yield shared_stage
    shared_stage.require_clean()
