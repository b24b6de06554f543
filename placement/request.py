"""The query of a request for candidates, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

_NONE: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Group:
    """Resources and conditions that belong together.

    The group without a suffix may be served by several providers of a tree (and by sharing
    ones); a group with a suffix by one provider. `required` and `member_of` are lists of sets:
    every set must be met, any member of a set meets it.
    """

    suffix: str = ""
    resources: Mapping[str, int] = field(default_factory=dict)
    required: tuple[frozenset[str], ...] = ()
    forbidden: frozenset[str] = _NONE
    member_of: tuple[frozenset[str], ...] = ()
    forbidden_aggregates: frozenset[str] = _NONE
    in_tree: str | None = None


@dataclass(frozen=True, slots=True)
class Query:
    """A whole request for candidates.

    `nested`: the client knows trees (microversion 1.29); `limit` truncates the list.
    """

    groups: tuple[Group, ...]
    limit: int | None = None
    isolate: bool = False
    root_required: frozenset[str] = _NONE
    root_forbidden: frozenset[str] = _NONE
    same_subtrees: tuple[frozenset[str], ...] = ()
    nested: bool = True
