"""All allocations in pages, which the Placement API doesn't offer: for audits."""

from __future__ import annotations

from typing import Any

from placement.db import usages
from placement.operation import Answer, Call, Services, operation
from placement.schemas import allocations as schemas

PAGE = 5_000
"""Consumers of one answer."""


class AllAllocations:
    """`/micronova/allocations`."""

    def __init__(self, services: Services) -> None:
        self.services = services

    @operation("allocations:list_all", query=schemas.LIST_ALL, accept=True)
    def on_get(self, call: Call) -> Answer:
        """List what consumers have, ordered by their UUIDs, from after `marker` on.

        `next` is the marker of the next page, null after the last one.
        """
        marker = call.last("marker") or ""
        rows = self.services.database.read(lambda c: usages.of_consumers(c, marker, PAGE))
        held: dict[str, dict[str, dict[str, Any]]] = {}
        for consumer, provider, resource_class, used in rows:
            held.setdefault(consumer, {}).setdefault(provider, {})[resource_class] = used
        following = next(reversed(held)) if len(held) == PAGE else None
        return Answer({"allocations": held, "next": following})
