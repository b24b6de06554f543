"""Whether a database can be used, by the revisions of its schema. Pure.

A schema changes in two chains of revisions. What expands it is named ``r0002_…``: services of the
release before continue to work beside it. What contracts it is named ``c0002_…``, and takes from
them what only they need, once they are gone.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

EXPAND, CONTRACT = "run 'micronova db expand'", "run 'micronova db contract'"
_UPGRADE = "run 'micronova db upgrade'"
_NUMBERED = re.compile(r"[rc]([0-9]{4})(_\w+)?")
#: what the commits before the first release called their revisions
_BEFORE_THE_FIRST_RELEASE = re.compile(r"e?[0-9]{4}(_\w+)?")


@dataclass(frozen=True)
class State:
    """How far a database is in both chains; None: not begun."""

    expanded: str | None
    contracted: str | None = None


@dataclass(frozen=True)
class Chains:
    """The revisions that a release knows, in order."""

    expanding: tuple[str, ...]
    contracting: tuple[str, ...] = ()


def refusal(found: State, known: Chains) -> str | None:
    """Return why a release can't use or upgrade a database, or None; continues a sentence.

    A database that a newer release has expanded can be used: nothing was taken from it.
    """
    expanded, contracted = found.expanded, found.contracted
    if contracted is not None and contracted not in known.contracting:
        return (
            f"was contracted by a newer release, to {contracted}, and no longer has what this"
            " release needs"
        )
    if expanded is None or expanded in known.expanding:
        return None
    if _BEFORE_THE_FIRST_RELEASE.fullmatch(expanded):
        return (
            f"is at revision {expanded}, of before the first release, and can't be upgraded:"
            " begin with an empty one"
        )
    if _number(expanded) > _number(known.expanding[-1]):
        return None
    return f"is at revision {expanded}, which this release doesn't know"


def problem(found: State, known: Chains) -> str | None:
    """Return why a database can't be used, or None; continues a sentence."""
    if found.expanded is None:
        return f"is empty: {_UPGRADE}"
    refused = refusal(found, known)
    if refused is not None or not to_expand(found, known):
        return refused
    return f"is at revision {found.expanded}, this release needs {known.expanding[-1]}: {EXPAND}"


def to_expand(found: State, known: Chains) -> tuple[str, ...]:
    """Return the revisions that are still to expand it."""
    return _after(found.expanded, known.expanding)


def to_contract(found: State, known: Chains) -> tuple[str, ...]:
    """Return the revisions that are still to contract it."""
    return _after(found.contracted, known.contracting)


def _after(found: str | None, chain: tuple[str, ...]) -> tuple[str, ...]:
    if found is None:
        return chain
    # an unknown revision is a newer release's
    return chain[chain.index(found) + 1 :] if found in chain else ()


def _number(revision: str) -> int:
    numbered = _NUMBERED.fullmatch(revision)
    return int(numbered[1]) if numbered else 0
