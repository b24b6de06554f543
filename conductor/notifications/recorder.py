"""Writes a transaction's notifications into the outbox, as the last part of that transaction.

A row has the values that may change before it is sent: the server as the transaction leaves it.
The rest is read when it is sent.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from common import clock, ids
from common.context import RequestContext
from common.log import logger
from common.metrics import table
from common.resources.states import OperationState, ResourceType
from conductor.notifications import events
from conductor.store.change_events import (
    Announced,
    Asked,
    Begun,
    Changed,
    Ended,
    Made,
    Moved,
    Notice,
)
from conductor.store.outbox import notification_outbox
from conductor.store.records import Server
from conductor.store.transactions import Transaction, after_commit

LOG = logger(__name__)

_VM_STATE, _VM_AND_TASK_STATE = "vm_state", "vm_and_task_state"
#: the message of an operation that another operation ended
OVERTAKEN = "Overtaken."
#: changes of these columns are notified whatever is configured, as in Nova
_ALWAYS = frozenset({"tags"})
#: changes of these columns are never notified
_NEVER = frozenset({"held", "addresses", "locked_by", "locked_reason", "power_state"})


@dataclass(frozen=True)
class Event:
    """A notification of a transaction."""

    name: str
    server_uuid: str | None = None
    operation_id: int | None = None
    more: Mapping[str, Any] = field(default_factory=dict)
    """Its body, without the server."""
    columns: Mapping[str, Any] | None = None
    """The server's columns; None: as the transaction leaves them."""


class Outbox:
    """The recorder of a conductor's transactions; see ``store.change_events.Recorder``."""

    def __init__(self, on_state_change: str | None, wake: Callable[[], None]) -> None:
        """``wake`` is called after a commit that wrote something."""
        self._on_state_change, self._wake = on_state_change, wake

    def write(self, connection: Transaction, noted: Sequence[Notice]) -> None:
        """Write it: one statement, or none."""
        try:
            rows = rows_of(noted, self._on_state_change, clock.utcnow())
        except Exception as error:  # noqa: BLE001 - it must not fail the operation
            # Nothing was asked of the database: the transaction is as good as before.
            self.lost(error)
            return
        if rows:
            notification_outbox.add(connection, rows)
            after_commit(connection, self._wake)

    def lost(self, error: Exception) -> None:
        """Count lost notifications: an operation doesn't fail because of them."""
        table.NOTIFICATIONS_LOST.count()
        LOG.error("The notifications of a transaction are lost: %s", error, exc_info=error)


def rows_of(
    noted: Sequence[Notice], on_state_change: str | None, now: datetime.datetime
) -> list[dict[str, Any]]:
    """Return the outbox rows of a transaction. Pure, except for their new ids."""
    found = list(events_of(noted, on_state_change))
    if not found:
        return []
    left = _left(noted)
    whole = [_with_server(one, left) for one in found]
    return [row(one, now) for one in whole if _happens(one)]


def _with_server(one: Event, left: Mapping[str, Mapping[str, Any]]) -> Event:
    if one.columns is not None or one.server_uuid is None:
        return one
    return replace(one, columns=left.get(one.server_uuid))


def _happens(one: Event) -> bool:
    """Return whether the server has what the event is about."""
    columns = one.columns or {}
    return columns.get("host") is not None or not events.of_vm(one.name)


def row(one: Event, now: datetime.datetime) -> dict[str, Any]:
    """Return the row of an event. Pure, but for its new id."""
    body, columns = dict(one.more), one.columns
    if columns is not None:
        body["server"] = {name: columns[name] for name in _SHOWN if name in columns}
        body["server"].setdefault("updated_at", now)
    return {
        "message_id": ids.new_uuid(),
        "event": one.name,
        "operation_id": one.operation_id,
        "server_uuid": one.server_uuid,
        "body": body,
        "at": now,
    }


_SHOWN = frozenset(notification_outbox.SERVER_COLUMNS) - {"public_key"}


def _left(noted: Iterable[Notice]) -> dict[str, dict[str, Any]]:
    """Return the columns of servers, as far as they are known, as a transaction leaves them."""
    found: dict[str, dict[str, Any]] = {}
    for one in noted:
        if isinstance(one, Made):
            found[one.server.uuid] = {**_columns(one.server), **one.columns}
            found[one.server.uuid]["updated_at"] = None
        elif isinstance(one, Moved | Changed):
            before = found.get(one.before.uuid) or _columns(one.before)
            found[one.before.uuid] = {**before, **one.columns}
    return found


def _columns(server: Server) -> dict[str, Any]:
    return {name: getattr(server, name) for name in _SHOWN if hasattr(server, name)}


def events_of(noted: Iterable[Notice], on_state_change: str | None) -> Iterable[Event]:
    """Yield a transaction's notifications, in order: changes of state before what caused them.

    Pure.
    """
    noted = list(noted)
    moved: dict[int, list[Moved]] = {}
    for one in noted:
        if isinstance(one, Moved):
            moved.setdefault(one.operation_id, []).append(one)
            yield from _updates(one, on_state_change)
    for one in noted:
        if isinstance(one, Changed):
            yield from _changes(one, on_state_change)
        elif isinstance(one, Begun):
            operation = one.operation
            uuid, number = operation.server_uuid or None, operation.id
            for name in events.when_begun(operation.action) if uuid else ():
                yield Event(name, uuid, number)
        elif isinstance(one, Moved):
            uuid, number = one.before.uuid, one.operation_id
            before, after = one.before, one.columns
            was, becomes = (
                (before.vm_state, before.task_state),
                (after["vm_state"], after["task_state"]),
            )
            for name in events.on_the_way(was, becomes):
                yield Event(name, uuid, number)
        elif isinstance(one, Ended) and one.resource_type == ResourceType.SERVER:
            for name in _ends(one, moved.get(one.operation_id, ())):
                yield Event(name, one.resource_id, one.operation_id)
        elif isinstance(one, Asked):
            name = events.event(one.part, one.phase)
            yield Event(name, one.server.uuid, more=_asked(one.ctxt))
        elif isinstance(one, Announced):
            yield Event(one.event, more={"kind": one.kind, "data": one.data, **_asked(one.ctxt)})


def _ends(one: Ended, moves: Sequence[Moved]) -> list[str]:
    if one.state != OperationState.DONE:
        # The operation that overtook it is notified; this error might follow that one's end.
        return [] if one.message == OVERTAKEN else events.when_failed(one.action)
    if not moves:
        return events.when_done(one.action, None, None)
    last = moves[-1]
    return events.when_done(one.action, last.before.task_state, last.columns.get("vm_state"))


def _updates(one: Moved, on_state_change: str | None) -> Iterable[Event]:
    """Yield the notification of a change of state, if it is wanted."""
    before, after = one.before, {**_columns(one.before), **one.columns}
    changed = before.vm_state != after["vm_state"] or (
        on_state_change == _VM_AND_TASK_STATE and before.task_state != after["task_state"]
    )
    if on_state_change and changed:
        states = {
            "old_state": before.vm_state,
            "state": after["vm_state"],
            "old_task_state": before.task_state,
            "new_task_state": after["task_state"],
        }
        more = {"state_update": states}
        yield Event(events.UPDATE, before.uuid, one.operation_id, more, after)


def _changes(one: Changed, on_state_change: str | None) -> Iterable[Event]:
    """Yield the notification of a change that is none of state."""
    names = one.columns.keys() - _NEVER
    if not names or not (on_state_change or names & _ALWAYS):
        return
    was = one.before.name
    renamed = one.columns.get("name", was) != was
    more = {"old_display_name": was if renamed else None, **_asked(one.ctxt)}
    yield Event(events.UPDATE, one.before.uuid, None, more)


def _asked(ctxt: RequestContext | None) -> dict[str, Any]:
    return {} if ctxt is None else {"context": {**ctxt.to_message(), "asked": None}}
