"""One stage for all files that need an ordinary one: starting it takes longer than most stories.

A file of its group (``xdist_group("stage")``) leaves it as it was: whole, and without servers.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.chaos.stage import Stage, stage


@pytest.fixture(scope="session")
def shared_stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """Two conductors, a scheduler and an agent, for as long as tests run."""
    with stage(tmp_path_factory.mktemp("stages") / "stage", audited=False) as running:
        yield running


@pytest.fixture(scope="module")
def cloud(shared_stage: Stage) -> Iterator[Stage]:
    """The shared stage, which must be clean after each file."""
    yield shared_stage
    shared_stage.require_clean()
