"""The reads that observe a cluster, and which of them fail.

A failed read is remembered until it succeeds or its object is gone: the doctor and the health of
hosts name it. So every call of an observation is sent through here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from common.messages.reports import Category
from compute.hypervisor.port import HypervisorError
from compute.hypervisor.proxmox.api.client import Client
from compute.hypervisor.proxmox.observe.snapshot import Unread


class NeededError(HypervisorError):
    """A read that the whole observation of a cluster depends on failed; names the call."""

    def __init__(self, path: str, error: HypervisorError) -> None:
        text = f"{path} can't be read: {error.message}"
        super().__init__(error.category, text, remedy=error.remedy, verdict=error.verdict)
        self.path = path


#: a path, and the parameters of the call
_Call = tuple[str, tuple[tuple[str, str], ...]]


class Reads:
    """The reads of one cluster; safe for any number of threads."""

    def __init__(self, client: Client) -> None:
        self.client, self.settings = client, client.settings
        self._failed: dict[_Call, Unread] = {}

    def get(self, path: str, **params: Any) -> Any:
        """Read. Raises HypervisorError, and remembers it."""
        call = (path, tuple(sorted((name, str(value)) for name, value in params.items())))
        try:
            answer = self.client.get(path, **params)
        except HypervisorError as error:
            # An older release lacks some paths.
            if error.category is not Category.API_NOT_SUPPORTED:
                self._failed[call] = Unread(error.message.rstrip(". \n"), error.remedy)
            raise
        self._failed.pop(call, None)
        return answer

    def needed(self, path: str) -> Any:
        """Read a path that the whole observation depends on. Raises NeededError."""
        try:
            return self.get(path)
        except HypervisorError as error:
            raise NeededError(path, error) from error

    def unread(self) -> Mapping[str, Unread]:
        """Return the paths whose last read failed, and why."""
        return {path: why for (path, _), why in sorted(self._failed.copy().items())}

    def forget(self, is_gone: Callable[[str], bool]) -> None:
        """Forget failures of paths whose object is gone."""
        for call in [call for call in self._failed.copy() if is_gone(call[0])]:
            self._failed.pop(call, None)
