"""`/storages`: the storages of all hosts, each once, for administrators; micronova's own."""

from __future__ import annotations

from typing import Any

from api.compute import policies
from api.compute.call import Call
from api.compute.operation import operation
from api.compute.schemas import operators as schemas
from common.errors import Invalid
from db.reads.hosts import storages

PATH = "storages"


class Storages:
    """The storages, as the agents of hosts last reported them."""

    @operation(policies.STORAGES, query=schemas.LIST_STORAGES)
    def index(self, call: Call) -> Any:
        """List storages by cluster, name and node; filter: `host` (those that it sees)."""
        limit, marker = call.query.page(call.max_limit)
        found = call.read(storages.read, call.query.last("host"))
        after = _place(found, marker)
        page = found[after : after + limit]
        answer: dict[str, Any] = {"storages": [_view(one) for one in page]}
        if after + limit < len(found) and page:
            answer["storages_links"] = call.links.after(PATH, call.query, page[-1].id)
        return answer


def _place(found: list[storages.Storage], marker: str | None) -> int:
    if marker is None:
        return 0
    for number, one in enumerate(found):
        if one.id == marker:
            return number + 1
    raise Invalid(f"Marker {marker} could not be found.")


def _view(one: storages.Storage) -> dict[str, Any]:
    facts = one.facts
    return {
        "id": one.id,
        "cluster": one.cluster,
        "name": facts.name,
        "type": facts.type,
        "shared": facts.shared,
        "active": facts.active,
        "content": list(facts.content),
        "total_gib": facts.total_gib,
        "available_gib": facts.available_gib,
        "host": one.host,
        "hosts": one.hosts,
    }
