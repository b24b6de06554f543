"""What the client of placement gives: plain values, and how they are read from the wire."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

Resources = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Usage:
    """What providers have of one resource class in all, and what of it is allocated."""

    capacity: Sequence[int]
    used: Sequence[int]


@dataclass(frozen=True, slots=True)
class Candidates:
    """The providers that could serve a request, as columns in one order."""

    uuids: Sequence[str]
    usages: Mapping[str, Usage]
    """By resource class; 0 where a provider has none of it."""
    traits: Sequence[frozenset[str]]


@dataclass(frozen=True, slots=True)
class Provider:
    """A resource provider."""

    uuid: str
    name: str
    generation: int


class NewProvider(NamedTuple):
    """A resource provider to be made, with all it has."""

    uuid: str
    name: str
    inventories: Mapping[str, Mapping[str, Any]]
    traits: Collection[str]


@dataclass(frozen=True, slots=True)
class Allocations:
    """What a consumer has: {provider UUID: {resource class: amount}}.

    `generation` is what a replacement must name; None: the consumer doesn't exist.
    """

    by_provider: Mapping[str, Resources] = field(default_factory=dict)
    project_id: str | None = None
    user_id: str | None = None
    generation: int | None = None


def provider(told: Mapping[str, Any]) -> Provider:
    """Return the provider that placement tells."""
    return Provider(told["uuid"], told["name"], told["generation"])


def candidates(told: Mapping[str, Any]) -> Candidates:
    """Return the candidates that placement tells (microversion 1.29 or newer)."""
    summaries: Mapping[str, Any] = told["provider_summaries"]
    resources = [summary["resources"] for summary in summaries.values()]
    classes = {name for one in resources for name in one}
    shared: dict[tuple[str, ...], frozenset[str]] = {}
    traits = []
    for summary in summaries.values():
        names = tuple(summary["traits"])
        if names not in shared:
            shared[names] = frozenset(names)
        traits.append(shared[names])
    return Candidates(
        list(summaries),
        {
            name: Usage(
                [one[name]["capacity"] if name in one else 0 for one in resources],
                [one[name]["used"] if name in one else 0 for one in resources],
            )
            for name in sorted(classes)
        },
        traits,
    )


@dataclass(frozen=True, slots=True)
class Claimed:
    """How a claim ended; true where it was had."""

    won: bool
    conflicts: int = 0
    """How often a generation had changed meanwhile, and it was tried again."""

    def __bool__(self) -> bool:
        return self.won


@dataclass(frozen=True)
class NewClaim:
    """What a consumer that has nothing shall have of one provider."""

    consumer_uuid: str
    provider_uuid: str
    resources: Mapping[str, int]
    project_id: str
    user_id: str
