"""Usages: sums of allocations."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from placement.db import providers, usages
from placement.operation import Answer, Call, Services, operation
from placement.policies import full
from placement.schemas import allocations as schemas

_ALL, _UNKNOWN = "all", "unknown"


class ProviderUsages:
    """`/resource_providers/{uuid}/usages`."""

    def __init__(self, services: Services) -> None:
        self.services = services

    @operation("resource_providers:usages", accept=True)
    def on_get(self, call: Call, uuid: str) -> Answer:
        """Show how much of each inventory is allocated."""
        row = self.services.database.read(lambda c: providers.find(c, uuid))
        used = self.services.database.read(lambda c: usages.used(c, row.id))
        return Answer({"resource_provider_generation": row.generation, "usages": used})


class Usages:
    """`/usages`: a project's total usage."""

    def __init__(self, services: Services) -> None:
        self.services = services

    @operation(asks=("usages",), since="1.9", query=schemas.USAGES, accept=True)
    def on_get(self, call: Call) -> Answer:
        """Sum a project's allocations, from 1.38 on by consumer type."""
        project_id, user_id = call.last("project_id"), call.last("user_id")
        self.services.policy.check(call.context, full("usages"), {"project_id": project_id})
        sums, counts = self.services.database.read(
            lambda c: usages.by_type(c, project_id or "", user_id)
        )
        if call.version >= 38:
            return Answer({"usages": _by_type(sums, counts, call.last("consumer_type"))})
        return Answer({"usages": _together(sums)})


def _together(sums: list[usages.TypeUsage]) -> dict[str, int]:
    body: dict[str, int] = defaultdict(int)
    for one in sums:
        body[one.resource_class] += one.used
    return body


def _by_type(
    sums: list[usages.TypeUsage], counts: dict[str | None, int], wanted: str | None
) -> dict[str, dict[str, Any]]:
    if wanted == _ALL:
        if not sums:
            return {}
        return {_ALL: {**_together(sums), "consumer_count": sum(counts.values())}}
    body: dict[str, dict[str, Any]] = {}
    for one in sums:
        name = one.consumer_type or _UNKNOWN
        if wanted is not None and wanted != name:
            continue
        of = body.setdefault(name, {"consumer_count": counts[one.consumer_type]})
        of[one.resource_class] = one.used
    return body
