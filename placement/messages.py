"""What the client of placement gives: plain values, and how they are read from the wire."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Resources = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Usage:
    """What a provider has of one resource class in all, and what of it is allocated."""

    capacity: int
    used: int


@dataclass(frozen=True, slots=True)
class Summary:
    """What candidates tell of one provider."""

    uuid: str
    resources: Mapping[str, Usage]
    traits: frozenset[str]
    parent_uuid: str | None = None
    root_uuid: str | None = None


@dataclass(frozen=True, slots=True)
class Candidates:
    """Ways to serve a request: {provider UUID: {resource class: amount}} each, and providers."""

    requests: tuple[Mapping[str, Resources], ...]
    providers: Mapping[str, Summary]


@dataclass(frozen=True, slots=True)
class Provider:
    """A resource provider."""

    uuid: str
    name: str
    generation: int


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
    requests = tuple(
        {uuid: one["resources"] for uuid, one in request["allocations"].items()}
        for request in told["allocation_requests"]
    )
    providers = {
        uuid: Summary(
            uuid=uuid,
            resources={
                name: Usage(one["capacity"], one["used"])
                for name, one in summary["resources"].items()
            },
            traits=frozenset(summary["traits"]),
            parent_uuid=summary["parent_provider_uuid"],
            root_uuid=summary["root_provider_uuid"],
        )
        for uuid, summary in told["provider_summaries"].items()
    }
    return Candidates(requests, providers)


@dataclass(frozen=True)
class NewClaim:
    """What a consumer that has nothing shall have of one provider."""

    consumer_uuid: str
    provider_uuid: str
    resources: Mapping[str, int]
    project_id: str
    user_id: str
