"""The stories of all resources: {(action, how it ends): what begins it}."""

from __future__ import annotations

from collections.abc import Mapping

from tests.functional.conductor.takeover import (
    test_disks,
    test_groups,
    test_images,
    test_moves,
    test_networks,
    test_plugs,
    test_servers,
    test_snapshots,
    test_volumes,
)
from tests.functional.conductor.takeover.begin import Story

STORIES: Mapping[tuple[str, str], Story] = {
    **test_servers.STORIES,
    **test_disks.STORIES,
    **test_moves.STORIES,
    **test_plugs.STORIES,
    **test_volumes.STORIES,
    **test_snapshots.STORIES,
    **test_images.STORIES,
    **test_networks.STORIES,
    **test_groups.STORIES,
}
