"""What a story of something that is no server has."""

from __future__ import annotations

import abc
import contextlib
from collections.abc import Callable
from typing import Any

import requests

from common.errors import MicronovaError
from tests.chaos.stage import Party, Stage


class Story(abc.ABC):
    """One run about one thing, found by its name."""

    good = ""
    """What it is in the end if nothing fails."""
    parties: tuple[Party, ...] = ()
    """The nodes that lose power in turn."""
    movable = False
    """Whether servers may move to other nodes; there are three nodes then."""
    writes = False
    """Whether only what it writes to Proxmox VE are cases: all else is as in another story."""

    def __init__(self, stage: Stage, name: str) -> None:
        self.stage, self.name = stage, name

    @abc.abstractmethod
    def prepare(self) -> None:
        """Make what must exist before."""

    @abc.abstractmethod
    def act(self) -> None:
        """Ask for what the run is about."""

    @abc.abstractmethod
    def state(self) -> str:
        """What it is; ``none`` where it isn't there."""

    @abc.abstractmethod
    def wrong(self) -> str:
        """What is not as it must be, or nothing."""

    @abc.abstractmethod
    def remove(self) -> str:
        """Have it gone; return what is left, or nothing."""

    def servers(self) -> list[Any]:
        """Rows of the story's servers."""
        return []

    def asked(self, method: str, call: Callable[[], Any]) -> None:
        """Ask a conductor as the API does; the request may be lost."""
        self.stage._ask(method, call)

    def until_gone(self, gone: Callable[[], bool], ask: Callable[[], Any]) -> None:
        """Ask for its removal until it is gone."""

        def removed() -> bool:
            if gone() and not self.stage.open_operations():
                return True
            if not self.stage.open_operations():
                with contextlib.suppress(MicronovaError, requests.RequestException):
                    ask()
            return False

        self.stage.helped(removed)
