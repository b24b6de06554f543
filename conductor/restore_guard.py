"""Holds what destroys while the database may be older than the clusters; see ``store.restored``.

After a start, if no other conductor ran, and after a fail-over of the database, the VMs of all
clusters that answer are compared with the record first. Until then operations that were open, and
all that destroy, wait. If a mark proves that the database was restored, or a replica that was
behind took over, whatever destroys waits until an operator releases it.
"""

from __future__ import annotations

import datetime
import threading
import time
from collections.abc import Callable, Collection, Sequence
from typing import Protocol

from common.errors import Unavailable
from common.resources.groups import GroupAction
from common.resources.states import InternalAction, OperationState
from common.resources.volumes import VolumeAction
from conductor.plans import CreatePlan
from conductor.store import restored
from conductor.store.networks import unknown_vms
from conductor.store.records import Operation
from conductor.store.restored import Record
from conductor.store.transactions import Store, Transaction, after_commit
from db.reads.cloud import sentence

#: how long what was read is used again, for what destroys, and for all else
SECONDS, SELDOM_SECONDS = 3.0, 60.0
#: pauses of an operation that waits
COMPARING_SECONDS, HELD_SECONDS = 1.0, 15.0

#: actions that remove, or overwrite, what may be a user's
DESTROYING = frozenset(
    {"delete", "rebuild", "confirmResize", "revertResize", "evacuate", "shelve", "shelveOffload"}
    | {InternalAction.REAP, InternalAction.FORGET, InternalAction.REMOVE_TEMPLATE}
    | {InternalAction.REMOVE_IMAGE, InternalAction.REMOVE_VNET, InternalAction.REMOVE_LEFT}
    | {VolumeAction.DELETE, VolumeAction.DELETE_SNAPSHOT, VolumeAction.DELETE_BACKUP}
    # the volume may have got another server since
    | {"attach_volume"}
    | {VolumeAction.REVERT, VolumeAction.REIMAGE, VolumeAction.RESTORE, VolumeAction.RETYPE}
    # members that the record doesn't know may be there
    | {*GroupAction}
)

#: clusters that are named
NAMED = 10
COMPARED = "The record is being compared with the clusters, as it may have been restored."


def comparing(clusters: Sequence[str]) -> str:
    """Return that the record is being compared, and which clusters are to be looked at yet."""
    named = ", ".join(clusters[:NAMED]) + (", …" if len(clusters) > NAMED else "")
    return f"{COMPARED} It waits for {named}."


class Held(Unavailable):
    """The operation waits, because the database was, or may have been, restored."""

    def __init__(self, message: str, seconds: float) -> None:
        super().__init__(message)
        self.seconds = seconds


class RestoreGuard:
    """Decides for one conductor what waits."""

    def __init__(self, store: Store, answering: Callable[[Transaction], Collection[str]]) -> None:
        """``answering`` returns the clusters that answer."""
        self._store, self._answering = store, answering
        self._lock = threading.Lock()
        self._record = Record()
        self._read_at = float("-inf")
        self._compared: tuple[datetime.datetime | None, frozenset[str] | None] = (None, None)
        """The ``compare_since`` at which the clusters were seen, and those that were down then
        and have still to be compared; None: it isn't known."""
        self._compared_with = COMPARED
        """What is said then, with the clusters that are waited for."""
        self._on_hold: Callable[[], object] = lambda: None

    def epoch(self, operation_id: int) -> int:
        """Return the epoch of an operation by its ID; 0 of none."""
        return self._now(SELDOM_SECONDS).epoch_base + operation_id if operation_id else 0

    @property
    def held(self) -> str | None:
        """Why nothing is destroyed now, in a sentence; None: nothing is held."""
        return self._why(self._now())

    @property
    def restored(self) -> str | None:
        """What proves that the database was restored, in a sentence; None: it is not held."""
        record = self._now()
        return None if record.held_at is None else sentence(record.held_because or {})

    @property
    def comparing(self) -> bool:
        """Whether a cluster that answers has still to be compared with the record."""
        return self._comparing(self._now(SELDOM_SECONDS))

    @property
    def since(self) -> datetime.datetime | None:
        """Since when the clusters are to be compared with the record."""
        return self._now().compare_since

    def require(self, operation: Operation) -> None:
        """Raise Held if the operation has to wait."""
        takes, removes = _takes_volumes(operation), destroys(operation)
        record = self._now(SECONDS if takes or removes else SELDOM_SECONDS)
        if record.held_at is not None and takes:
            raise Held(sentence(record.held_because or {}), HELD_SECONDS)
        if not (takes or removes) and operation.id > record.compare_operation:
            return
        if record.held_at is None and self._comparing(record):
            raise Held(self._compared_with, COMPARING_SECONDS)
        held = self._record.held_at is not None
        if held and not operation.overslept:
            raise Held(sentence(self._record.held_because or {}), HELD_SECONDS)

    def settle(self) -> None:
        """See whether the clusters are compared by now, ahead of what would wait for it."""
        self._comparing(self._now(SELDOM_SECONDS))

    def listen(self, on_hold: Callable[[], object]) -> None:
        """Have ``on_hold`` called when this conductor has found that the record was restored, or
        may have been."""
        self._on_hold = on_hold

    def was_held(self) -> None:
        """Note that the record is held, or compared, since now: what has to be read for it is read
        at once."""
        self.expire()
        self._on_hold()

    def follow(self, connection: Transaction, timeline: str) -> None:
        """Compare the record again if it was written on another timeline of the database."""
        begins = restored.follow(connection, timeline)
        # Also where another conductor stored it: what was read before is of another server.
        after_commit(connection, self.was_held if begins else self.expire)

    def expire(self) -> None:
        """Read the record again at the next question."""
        self._read_at = float("-inf")

    def _why(self, record: Record) -> str | None:
        if record.held_at is None and self._comparing(record):
            return self._compared_with
        return self.restored

    def _now(self, seconds: float = SECONDS) -> Record:
        with self._lock:
            if time.monotonic() - self._read_at > seconds:
                with self._store.read() as connection:
                    self._record = restored.read(connection)
                self._read_at = time.monotonic()
            return self._record

    def _comparing(self, record: Record) -> bool:
        """Return whether a cluster that answers has still to be compared."""
        since = record.compare_since
        seen, left = self._compared
        if since is None or (since == seen and not left):
            return False
        with self._store.read() as connection:
            now = unknown_vms.open_clusters(connection, since)
            if since == seen:
                # Those that were compared once may have new VMs that are still to be read.
                now &= left or frozenset()
            awaited = sorted(now.intersection(self._answering(connection)))
            if awaited:
                self._compared_with = comparing(awaited)
                return True
            # What was found was stored before the last of them was compared.
            self._record = restored.read(connection)
        self._compared = since, frozenset(now)
        return False


class Works(Protocol):
    """An operation, as far as is asked whether it waits."""

    @property
    def action(self) -> str:
        """What it does."""

    @property
    def state(self) -> str:
        """How far it is."""


def destroys(operation: Works) -> bool:
    """Return whether an operation removes, or overwrites, what may be a user's."""
    return operation.action in DESTROYING or operation.state == OperationState.UNWINDING


def _takes_volumes(operation: Operation) -> bool:
    """Return whether a server is made with volumes, which may have got another server since."""
    is_build = operation.action == "create" and not operation.overslept
    return is_build and operation.planned(CreatePlan).has_volumes
