"""What a page answers: a view, another page, or that the shown one is up to date."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias


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


@dataclass(frozen=True)
class Same:
    """What the browser shows is up to date (204): its script changes nothing."""


Answer: TypeAlias = View | Redirect | Same


def view(template: str, **values: Any) -> View:
    """Return a page with a template."""
    return View(template, values)


def confirm(
    title: str, said: str, path: str, back: str, button: str = "Delete", **fields: str
) -> View:
    """Return the page that asks before something is done that can't be undone.

    `path`: where the answer is sent, with `fields`; `back`: the page to go to instead. An empty
    `button`: it can't be done now, as `said` says.
    """
    values = {"title": title, "said": said, "action": path, "back": back}
    return view("confirm.html", **values, button=button, fields=fields)
