"""What a page is: data for the table of all pages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dashboard.answer import Answer
from dashboard.rights import May
from dashboard.visit import Visit


@dataclass(frozen=True)
class Page:
    """One path and method."""

    path: str
    """Below the dashboard's root, in Falcon's form."""
    show: Callable[[Visit], Answer]
    may: May = May.READ
    method: str = "GET"
    calls: int = 1
    """Calls of APIs that it makes at the most; tests compare."""


@dataclass(frozen=True)
class Section:
    """A subject: its place in the navigation and its pages."""

    title: str
    pages: Sequence[Page]
    may: May = May.READ
    within: str = ""
    """The title of the subject whose pages lead to it; empty: the navigation leads to it."""

    @property
    def path(self) -> str:
        """Where the navigation leads."""
        return self.pages[0].path
