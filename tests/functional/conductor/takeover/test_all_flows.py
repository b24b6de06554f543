"""Every flow has its story, and those that undo something another story, which ends badly."""

from __future__ import annotations

from common.resources.states import ACTIONS
from conductor.servers.table import tables
from tests.functional.conductor.takeover.cloud import Cloud
from tests.functional.conductor.takeover.stories import STORIES


def test_every_flow_has_its_story(cloud: Cloud) -> None:
    known = tables(cloud.world.conductor.cloud)
    assert {action for action, _ in STORIES} == known.keys() >= ACTIONS.keys()
    undone = {action for action, how in STORIES if how == "badly"}
    assert undone == {action for action, table in known.items() if table.undos}
