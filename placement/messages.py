"""Values that the client of placement returns, and how they are read from answers."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

Resources = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Usage:
    """The providers' total of one resource class, and how much of it is allocated."""

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


class Memberships(NamedTuple):
    """What a resource provider belongs to."""

    traits: frozenset[str]
    aggregates: frozenset[str]


class NewProvider(NamedTuple):
    """A resource provider to be made, with all it has."""

    uuid: str
    name: str
    inventories: Mapping[str, Mapping[str, Any]]
    traits: Collection[str]


@dataclass(frozen=True, slots=True)
class Allocations:
    """A consumer's allocations: {provider UUID: {resource class: amount}}.

    A replacement must name `generation`; None: the consumer doesn't exist.
    """

    by_provider: Mapping[str, Resources] = field(default_factory=dict)
    project_id: str | None = None
    user_id: str | None = None
    generation: int | None = None


def provider(body: Mapping[str, Any]) -> Provider:
    """Return the provider of an answer."""
    return Provider(body["uuid"], body["name"], body["generation"])


def candidates(body: Mapping[str, Any]) -> Candidates:
    """Return the candidates of an answer (microversion 1.29 or newer)."""
    summaries: Mapping[str, Any] = body["provider_summaries"]
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


def candidate_columns(body: Mapping[str, Any]) -> Candidates:
    """Return the candidates of this project's answer in columns."""
    traits = [frozenset(names) for names in body["traits"]]
    return Candidates(
        body["providers"],
        {name: Usage(*counts) for name, counts in body["usages"].items()},
        [traits[number] for number in body["trait_of"]],
    )


@dataclass(frozen=True, slots=True)
class First:
    """The outcome of a claim on any of several providers, best first."""

    provider: str | None
    """The provider that was claimed; None: none had room."""
    conflicts: int = 0
    """How often a claim was retried because a generation had changed."""


@dataclass(frozen=True, slots=True)
class Claimed:
    """The outcome of a claim; true for success."""

    won: bool
    conflicts: int = 0
    """How often the claim was retried because a generation had changed."""

    def __bool__(self) -> bool:
        return self.won


@dataclass(frozen=True)
class Replacement:
    """What a consumer is to have, whatever it had when its generation was read."""

    consumer_uuid: str
    by_provider: Mapping[str, Resources]
    project_id: str
    user_id: str
    generation: int | None
    """None: the consumer doesn't exist."""


@dataclass(frozen=True)
class NewClaim:
    """A claim on one provider for a consumer without allocations."""

    consumer_uuid: str
    provider_uuid: str
    resources: Mapping[str, int]
    project_id: str
    user_id: str
