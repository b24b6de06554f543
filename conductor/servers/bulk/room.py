"""Wakes the moves of drains that wait for room, once a host has more of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from common.errors import MicronovaError
from common.log import logger
from conductor.cloud import Cloud
from conductor.servers.waiting import free_room
from conductor.servers.waiting.free_room import Room
from conductor.store.ledger import bulk_migrations as store
from conductor.store.ledger.bulk_migrations import Mover
from conductor.store.servers.waiting import Amounts
from conductor.sync import allocations

LOG = logger(__name__)

#: the periodic task, which news of room run at once
NAME = "wake_moves"


class MoveRoom:
    """What hosts had before each move was tried last, as far as this conductor saw.

    Room that came after the decision, and before its refusal is seen here, is more than that.
    """

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud
        self._before: dict[str, Room] = {}

    def look(self) -> None:
        """Have those tried that may fit now; the periodic task. A query while none may wait."""
        with self._cloud.store.read() as connection:
            movers = store.movers(connection)
        self._cloud.news.moves = any(one.move.waits_for_room for one in movers)
        try:
            due = self._due(movers)
        except MicronovaError as error:
            bulks = ", ".join(str(one) for one in sorted({one.operation_id for one in movers}))
            LOG.warning("Bulk migrations %s: no move is woken: %s", bulks, error.message)
            return
        if due:
            LOG.info("%d moves that wait for room are tried.", len(due))
            self._cloud.store.run(lambda c: store.try_now(c, due))
            self._cloud.wake()

    def _due(self, movers: Sequence[Mover]) -> list[Mover]:
        before, self._before = self._before, {}
        rooms: dict[tuple[tuple[str, int], ...], Room] = {}
        due = []
        for one in movers:
            uuid, needs = one.move.server_uuid, allocations.wanted(one.server)
            key = tuple(sorted(needs.items()))
            if key not in rooms:
                rooms[key] = free_room.now(self._cloud, needs)
            known = self._before[uuid] = before.get(uuid, rooms[key])
            if one.move.waits_for_room and may_fit(rooms[key], known):
                self._before[uuid] = rooms[key]
                due.append(one)
        return due


def may_fit(room: Room, refused: Mapping[str, Amounts]) -> bool:
    """Return whether a host has room now that had less when it refused, or none. Pure."""
    return any(free_room.has_more(free, refused.get(host)) for host, free in room.items())
