"""Waiting for a server's operation to end, showing its steps as they happen.

Steps are written to standard error, so that standard output has only the command's data.
"""

from __future__ import annotations

import time
from typing import Any, TextIO

from cli.cloud import Cloud
from cli.errors import CommandFailed
from cli.render.progress import Progress, after
from cli.server.operation import Operation
from cli.terminal import progress_view

_FIRST_PAUSE_SECONDS = 0.1
_LAST_PAUSE_SECONDS = 2.0


class Waiting:
    """One wait for one server."""

    def __init__(self, cloud: Cloud, stream: TextIO) -> None:
        self._cloud = cloud
        self._stream = stream
        self._request_id: str | None = None
        self._message: str | None = None

    def until_idle(self, server_id: str, name: str, action: str) -> None:
        """Return when nothing is being done to the server and the action succeeded.

        :raises CommandFailed: it failed (with the fault's sentence), or the server is gone.
        """
        server = self._watch(server_id, action)
        label = f"Server {name} ({server_id})"
        if server is None:
            raise CommandFailed(f"{label} was deleted before the {action} finished")
        if server.status == "ERROR" or self._message:
            raise CommandFailed(f"{label}: {action} failed: {self._why(server)}")

    def until_still(self, server_id: str) -> None:
        """Return when an adoption is at its end, whichever: the server is there, or gone."""
        self._watch(server_id, "adopt")

    def until_gone(self, server_id: str, name: str, action: str = "delete") -> None:
        """Return when the server no longer exists.

        :raises CommandFailed: it was not deleted (with the fault's message).
        """
        server = self._watch(server_id, action)
        if server is not None and server.status not in ("DELETED", "SOFT_DELETED"):
            label = f"Server {name} ({server_id})"
            raise CommandFailed(f"{label}: {action} failed: {self._why(server)}")

    def _watch(self, server_id: str, action: str) -> Any | None:
        """Look until nothing is being done; return the server, None once it is gone."""
        started = time.monotonic()
        operation = Operation(self._cloud.compute, server_id, action)
        progress, pause = Progress(), _FIRST_PAUSE_SECONDS
        with progress_view(self._stream) as view:
            while True:
                server = self._server(server_id)
                task_state = server.task_state if server is not None else None
                elapsed = time.monotonic() - started
                seen = operation.look()
                self._request_id, self._message = operation.request_id, seen.message
                progress = after(progress, elapsed, task_state, seen)
                view.show(progress)
                if task_state is None and (server is None or server.status != "BUILD"):
                    return server
                self._cloud.pause(pause)
                pause = min(pause * 1.2, _LAST_PAUSE_SECONDS)

    def _server(self, server_id: str) -> Any | None:
        from openstack import exceptions

        try:
            return self._cloud.compute.get_server(server_id)
        except exceptions.NotFoundException:
            return None

    def _why(self, server: Any) -> str:
        fault = server.fault or {}
        text = fault.get("message") or self._message or "no reason was given"
        hint = f" (micronova explain {self._request_id})" if self._request_id else ""
        return f"{' '.join(str(text).split())}{hint}"
