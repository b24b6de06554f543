"""What happens to a cloud's processes: no answer is wrong, nothing is stuck, left or double."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.functional.stories import STORIES, Stage, Story, play, whole_cloud

pytestmark = [pytest.mark.distributed, pytest.mark.long, pytest.mark.timeout(2400)]


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with whole_cloud(tmp_path_factory.mktemp("whole")) as running:
        yield running


@pytest.mark.parametrize("story", STORIES, ids=lambda one: one.name)
def test_a_story(stage: Stage, story: Story) -> None:
    result = play(stage, story)
    print(json.dumps(result.as_json()))
    outcome = result.outcome
    assert not outcome.wrong, outcome.wrong[:5]
    assert outcome.made + outcome.lost == outcome.accepted >= story.least
    assert story.refuses or not outcome.errors
