"""The progress of an operation: from the ledger, or from its events on other clouds.

micronova's ledger has the time when each state began; any other compute API has the events of the
action alone, and the states are those that happen to be seen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from common.story.summary import host_line, retry_line, why_of


@dataclass(frozen=True)
class Wait:
    """A pause between two attempts."""

    until: str
    """When it is tried again, in words."""
    why: str
    since: str | None
    """ISO 8601."""


@dataclass(frozen=True)
class Look:
    """The state of an operation at one poll."""

    began: str | None = None
    """ISO 8601."""
    message: str | None = None
    """Why it failed, if it did."""
    events: Sequence[Mapping[str, Any]] = ()
    """event, start_time, finish_time, result, host and progress of each."""
    states: Sequence[tuple[str, str]] | None = None
    """When each task_state began (ISO 8601), and which; None: not found."""
    wait: Wait | None = None
    """It waits for its next attempt."""


class Operation:
    """The newest operation of one kind on a server, as ``os-instance-actions`` calls it."""

    def __init__(self, compute: Any, server_id: str, action: str) -> None:
        self._compute = compute
        self._server_id = server_id
        self._action = action
        self._explained = True
        self.request_id: str | None = None

    def look(self) -> Look:
        """Return the progress; nothing where it may not be read."""
        if self._explained:
            found = self._ledger()
            if found is not None:
                return found
            self._explained = False
        return self._events()

    def _ledger(self) -> Look | None:
        """Ask for the explanation; None where there is none."""
        response = self._compute.get(f"/explanations/{self.request_id or self._server_id}")
        if response.status_code != 200:
            return None
        explanation = response.json()["explanation"]
        found = [
            operation
            for operation in explanation["operations"]
            if operation["server"] == self._server_id and operation["action"] == self._action
        ]
        if not found:
            return None
        newest = max(found, key=lambda operation: str(operation["started_at"]))
        self.request_id = newest["request_id"]
        return Look(
            newest["started_at"],
            newest["message"],
            [event_of(event) for event in newest["events"]],
            [
                (move["at"], move["to"]["task_state"])
                for move in newest["transitions"]
                if move["to"]["task_state"]
            ],
            wait_of(newest, explanation),
        )

    def _events(self) -> Look:
        """Ask for the action and its events."""
        from openstack import exceptions

        compute = self._compute
        try:
            if self.request_id is None:
                for known in compute.server_actions(self._server_id):
                    if known.action == self._action:
                        self.request_id = known.request_id
                        break
                else:
                    return Look()
            found = compute.get_server_action(self.request_id, self._server_id)
        except exceptions.HttpException:
            return Look()  # policy, or a deleted server: the states alone are shown
        events = [event.to_dict() for event in found.events or ()]
        return Look(found.start_time, found.message, events)


def wait_of(operation: Mapping[str, Any], explanation: Mapping[str, Any]) -> Wait | None:
    """Return why an operation of the ledger waits, and until when; None: it doesn't."""
    until = retry_line(operation)
    if not until:
        return None
    faults = operation.get("faults") or ()
    since = faults[-1].get("at") if faults else None
    return Wait(until, host_line(explanation) or why_of(operation), since)


def event_of(event: Mapping[str, Any]) -> dict[str, Any]:
    """Return a step of the ledger in the form of an instance action's event."""
    return {
        "event": event["name"],
        "start_time": event["started_at"],
        "finish_time": event["finished_at"],
        "result": event["result"],
        "host": event.get("host"),
        "progress": (event.get("detail") or {}).get("progress"),
    }
