"""Waiting for what is done to a volume, a snapshot or a backup, showing its steps as they happen.

The ledger has the steps, with how far a copy is; on other clouds the status alone is shown.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TextIO

from cli.cloud import Cloud
from cli.errors import CommandFailed
from cli.render.progress import Progress, after
from cli.server.operation import Look, event_of, wait_of
from cli.terminal import progress_view

_FIRST_PAUSE_SECONDS = 0.1
_LAST_PAUSE_SECONDS = 2.0
#: statuses of something that is being done
_BUSY = frozenset(
    {
        *("creating", "downloading", "deleting", "extending", "retyping", "uploading"),
        *("reverting", "attaching", "detaching", "backing-up", "restoring-backup", "restoring"),
        *("unmanaging", "managing"),
    }
)


@dataclass(frozen=True)
class Awaited:
    """What is waited for."""

    kind: str
    """``volume``, ``snapshot`` or ``backup``, as the SDK calls it."""
    id: str
    name: str

    def __str__(self) -> str:
        """Return how it is named in a sentence."""
        return f"{self.kind.capitalize()} {self.name or self.id} ({self.id})"


class VolumeWaiting:
    """One wait for one resource. Made before it is asked for, it shows what begins afterwards."""

    def __init__(self, cloud: Cloud, stream: TextIO, awaited: Awaited, *, new: bool) -> None:
        """``new``: it is made by what is waited for."""
        self._cloud, self._stream, self._awaited = cloud, stream, awaited
        self._before: str | None = None
        self._operation: Mapping[str, Any] | None = None
        self._explanation: Mapping[str, Any] = {}
        if not new:
            self._before = (self._newest() or {}).get("request_id")

    def until_done(self) -> None:
        """Return when nothing is being done to it and the operation succeeded.

        :raises CommandFailed: it failed (with the reason), or it is gone.
        """
        found = self._watch()
        if found is None:
            raise CommandFailed(f"{self._awaited} was deleted before its operation finished")
        if self._failed(found):
            raise CommandFailed(f"{self._awaited} is {found.status}: {self._why()}")

    def until_gone(self) -> None:
        """Return when the resource no longer exists.

        :raises CommandFailed: it was not deleted; with the reason.
        """
        found = self._watch()
        if found is not None:
            raise CommandFailed(f"{self._awaited} is {found.status}: {self._why()}")

    def _watch(self) -> Any | None:
        """Look until nothing is being done to it; return it, None once it is gone."""
        started = time.monotonic()
        progress, pause = Progress(), _FIRST_PAUSE_SECONDS
        with progress_view(self._stream) as view:
            while True:
                # What ends its operation changes it in the same transaction.
                found = self._found()
                self._operation = self._newest() or self._operation
                status = None if found is None else str(found.status)
                progress = after(progress, time.monotonic() - started, status, self._look())
                view.show(progress)
                if status not in _BUSY:
                    return found
                self._cloud.pause(pause)
                pause = min(pause * 1.2, _LAST_PAUSE_SECONDS)

    def _found(self) -> Any | None:
        from openstack import exceptions

        storage = self._cloud.connection.block_storage
        try:
            return getattr(storage, f"get_{self._awaited.kind}")(self._awaited.id)
        except exceptions.NotFoundException:
            return None

    def _newest(self) -> Mapping[str, Any] | None:
        """Return the newest operation about it that began after the wait did; None: none yet."""
        response = self._cloud.compute.get(f"/explanations/{self._awaited.id}")
        if response.status_code != 200:
            return None
        self._explanation = response.json()["explanation"]
        mine = [
            operation
            for operation in self._explanation["operations"]
            if (operation.get("resource") or {}).get("id") == self._awaited.id
        ]
        newest: Mapping[str, Any] | None = max(
            mine, key=lambda operation: str(operation["started_at"]), default=None
        )
        if newest is None or newest["request_id"] == self._before:
            return None
        return newest

    def _look(self) -> Look:
        if self._operation is None:
            return Look()
        events = [event_of(event) for event in self._operation["events"]]
        wait = wait_of(self._operation, self._explanation)
        return Look(self._operation["started_at"], None, events, wait=wait)

    def _failed(self, found: Any) -> bool:
        ended = (self._operation or {}).get("state")
        return str(found.status).startswith("error") or ended == "failed"

    def _why(self) -> str:
        operation = self._operation or {}
        text = " ".join(str(operation.get("message") or "no reason was given").split())
        request_id = operation.get("request_id")
        return f"{text} (micronova explain {request_id})" if request_id else text
