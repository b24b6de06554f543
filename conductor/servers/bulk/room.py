"""Wakes the moves of drains that wait for room, once a host has more of it."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence

from common.errors import MicronovaError
from common.log import logger
from conductor.cloud import Cloud
from conductor.servers.waiting import free_room
from conductor.servers.waiting.free_room import Room
from conductor.store.ledger import bulk_migrations as store
from conductor.store.ledger.bulk_migrations import MoveWaits
from conductor.store.servers.waiting import Amounts
from conductor.sync import allocations

LOG = logger(__name__)

#: the periodic task, which news of room run at once
NAME = "wake_moves"
_Try = tuple[str, datetime.datetime | None]


class MoveRoom:
    """What hosts had for each move when that was refused, as far as this conductor saw."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud
        self._refused: Mapping[_Try, Room] = {}

    def look(self) -> None:
        """Have those tried that may fit now; the periodic task. A query while none wait."""
        with self._cloud.store.read() as connection:
            waits = store.waiting_for_room(connection)
        self._cloud.news.moves = bool(waits)
        if not waits:
            self._refused = {}
            return
        try:
            due = self._due(waits)
        except MicronovaError as error:
            LOG.warning("No move that waits for room is woken: %s", error.message)
            return
        if due:
            LOG.info("%d moves that wait for room are tried.", len(due))
            self._cloud.store.run(lambda c: store.try_now(c, due))
            self._cloud.wake()

    def _due(self, waits: Sequence[MoveWaits]) -> list[MoveWaits]:
        refused: dict[_Try, Room] = {}
        due = []
        rooms: dict[tuple[tuple[str, int], ...], Room] = {}
        for one in waits:
            needs = allocations.wanted(one.server)
            key = tuple(sorted(needs.items()))
            if key not in rooms:
                rooms[key] = free_room.now(self._cloud, needs)
            its = one.move.server_uuid, one.move.not_before
            before = refused[its] = self._refused.get(its, rooms[key])
            if may_fit(rooms[key], before):
                due.append(one)
        self._refused = refused
        return due


def may_fit(room: Room, refused: Mapping[str, Amounts]) -> bool:
    """Return whether a host has room now that had less when it refused, or none. Pure."""
    return any(free_room.has_more(free, refused.get(host)) for host, free in room.items())
