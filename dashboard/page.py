"""What a page is: data for the table of all pages."""

from __future__ import annotations

import enum
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from dashboard.visit import Visit


class May(enum.Enum):
    """Who sees a page or a button: a hint for people; the API decides."""

    READ = frozenset({"reader", "member", "manager", "admin"})
    CHANGE = frozenset({"member", "manager", "admin"})
    MANAGE = frozenset({"manager", "admin"})
    OPERATE = frozenset({"admin"})

    def allows(self, roles: Collection[str]) -> bool:
        """Return whether one of the roles does."""
        # Some clouds have other role names: any role may read.
        return bool(self.value & set(roles)) or (self is May.READ and bool(roles))


@dataclass(frozen=True)
class View:
    """A template and what it shows."""

    template: str
    values: Mapping[str, Any] = field(default_factory=dict)
    status: int = 200
    frames: tuple[str, ...] = ()
    """Origins whose pages it shows inside."""


@dataclass(frozen=True)
class Redirect:
    """Another page, after a change (303)."""

    path: str
    """Below the dashboard's root."""


Answer: TypeAlias = View | Redirect


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

    @property
    def path(self) -> str:
        """Where the navigation leads."""
        return self.pages[0].path


def view(template: str, **values: Any) -> View:
    """Return a page with a template."""
    return View(template, values)
