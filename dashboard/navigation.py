"""The navigation: the subjects, and those that belong to the present one. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dashboard.page import Section
from dashboard.rights import May


@dataclass(frozen=True)
class Entry:
    """A link of the navigation."""

    title: str
    path: str
    current: str
    """The value of `aria-current`: page, true for a subject that the page belongs to, or empty."""
    is_folded: bool = False
    """Whether a phone shows it in a menu, with the others that only some users have."""


@dataclass(frozen=True)
class Navigation:
    """The links of a page."""

    subjects: Sequence[Entry]
    related: Sequence[Entry]
    """Of the present subject; empty where it is alone."""

    @property
    def folded(self) -> Sequence[Entry]:
        """The subjects that a phone shows in a menu."""
        return [one for one in self.subjects if one.is_folded]


def navigation(sections: Sequence[Section], path: str) -> Navigation:
    """Return the links of the page at a path."""
    here = _section(sections, path)
    title = (here.within or here.title) if here else ""
    family = [one for one in sections if title and title in (one.title, one.within)]
    subjects = [one for one in sections if not one.within]
    special = [one for one in subjects if one.may is not May.READ]
    # one alone needs no menu
    folded = special if len(special) > 1 else []
    return Navigation(
        [_entry(one, here, title, is_folded=one in folded) for one in subjects],
        [_entry(one, here, "") for one in family] if len(family) > 1 else (),
    )


def _entry(
    section: Section, here: Section | None, subject: str, *, is_folded: bool = False
) -> Entry:
    current = "page" if section is here else "true" if section.title == subject else ""
    return Entry(section.title, section.path, current, is_folded)


def _section(sections: Sequence[Section], path: str) -> Section | None:
    """Return the section that a page is in; None: in none."""
    for one in sections:
        if path == one.path or (one.path != "/" and path.startswith(f"{one.path}/")):
            return one
    return None
