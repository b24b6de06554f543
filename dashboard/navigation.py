"""The navigation: the subjects, and those that belong to the present one. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dashboard.page import Section


@dataclass(frozen=True)
class Entry:
    """A link of the navigation."""

    title: str
    path: str
    current: str
    """The value of `aria-current`: page, true for a subject that the page belongs to, or empty."""


@dataclass(frozen=True)
class Navigation:
    """The links of a page."""

    subjects: Sequence[Entry]
    related: Sequence[Entry]
    """Of the present subject; empty where it is alone."""


def navigation(sections: Sequence[Section], path: str) -> Navigation:
    """Return the links of the page at a path."""
    here = _section(sections, path)
    title = (here.within or here.title) if here else ""
    family = [one for one in sections if title and title in (one.title, one.within)]
    return Navigation(
        [_entry(one, here, title) for one in sections if not one.within],
        [_entry(one, here, "") for one in family] if len(family) > 1 else (),
    )


def _entry(section: Section, here: Section | None, subject: str) -> Entry:
    current = "page" if section is here else "true" if section.title == subject else ""
    return Entry(section.title, section.path, current)


def _section(sections: Sequence[Section], path: str) -> Section | None:
    """Return the section that a page is in; None: in none."""
    for one in sections:
        if path == one.path or (one.path != "/" and path.startswith(f"{one.path}/")):
            return one
    return None
