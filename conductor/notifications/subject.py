"""The data of a notification: the server as it was, the request's context, and the outcome."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from common import clock
from common.resources.audit_periods import Window
from common.resources.states import PowerState
from conductor.notifications import events
from conductor.store.outbox.notification_outbox import Fault


@dataclass(frozen=True)
class Subject:
    """One notification, before it has a format."""

    event: str
    at: datetime.datetime
    context: Mapping[str, Any]
    """Of the request, as plain values."""
    body: Mapping[str, Any]
    """The entry's body in the outbox."""
    audit_period: Window
    """The period that it reports: the last one, or the elapsed part of the current one."""
    server: Mapping[str, Any] | None = None
    """The server's columns; None: the notification is about something else."""
    plan: Mapping[str, Any] | None = None
    """Of the operation."""
    failed: str | None = None
    """The operation's message where it ended badly."""
    fault: Fault | None = None
    volumes: Sequence[Mapping[str, Any]] | None = None
    """The attached volumes; None: they are not reported."""
    publisher: tuple[str, str] = ("api", "")
    """The service that publishes it (compute, conductor or api), and its host."""

    @property
    def of(self) -> Mapping[str, Any]:
        """The server. Raises ValueError if it no longer exists."""
        if self.server is None:
            raise ValueError("its server is not in the database")
        return self.server

    @property
    def planned(self) -> Mapping[str, Any]:
        """What the operation plans, with the fields of the command that it contains."""
        plan = self.plan or {}
        return {**(plan.get("command") or {}), **plan}

    @property
    def priority(self) -> str:
        """Return under which priority it is sent."""
        return "ERROR" if events.parted(self.event)[1] == events.ERROR else "INFO"


#: Nova's words for power states
POWER: Mapping[int, str] = {
    PowerState.NOSTATE: "pending",
    PowerState.RUNNING: "running",
    PowerState.PAUSED: "paused",
    PowerState.SHUTDOWN: "shutdown",
    PowerState.CRASHED: "crashed",
    PowerState.SUSPENDED: "suspended",
}


def moment(value: datetime.datetime | str | None) -> datetime.datetime | None:
    """Return a time that was read from a column or from JSON."""
    return clock.parse(value) if isinstance(value, str) else value


def exception_name(fault: Fault | None) -> str:
    """Return a name for the kind of failure, as those of exceptions are."""
    if fault is None:
        return "OperationFailed"
    return "".join(word.capitalize() for word in fault.category.split("_"))


def property_of(server: Mapping[str, Any], *names: str) -> str | None:
    """Return the first of these properties that the server's image had."""
    properties = server["image_properties"] or {}
    return next((str(properties[name]) for name in names if properties.get(name)), None)
