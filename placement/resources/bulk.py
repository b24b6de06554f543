"""What the Placement API does not offer: many providers or consumers at once, and all of them;
a claim on any of several providers."""

from __future__ import annotations

import uuid as uuids
from typing import Any

from sqlalchemy.exc import IntegrityError

from common.errors import Invalid
from common.ids import is_uuid
from placement import agents
from placement.claim import RankedClaim
from placement.db import bulk, memberships, usages
from placement.errors import ConcurrentUpdate
from placement.operation import DONE, Answer, Call, Services, operation
from placement.resources.inventories import complete, require_capacity
from placement.schemas import allocations as allocation_schemas
from placement.schemas import memberships as membership_schemas
from placement.schemas import providers as provider_schemas


class NewProviders:
    """`/micronova/resource_providers`."""

    def __init__(self, services: Services) -> None:
        self.services = services

    @operation("resource_providers:create_many", body=provider_schemas.CREATE_MANY)
    def on_post(self, call: Call) -> Answer:
        """Create providers with inventories and traits; `created` are their UUIDs.

        Those whose UUID or name is taken are left as they are.
        """
        asked = call.body()["resource_providers"]
        agents.check_names(
            call.context, self.services.database, lambda c: [(one["name"], None) for one in asked]
        )
        given = [_provider(call, one) for one in asked]
        try:
            created = self.services.database.write(lambda c: bulk.create(c, given))
        except IntegrityError as error:
            raise ConcurrentUpdate from error
        return Answer({"created": created})


def _provider(call: Call, given: dict[str, Any]) -> bulk.NewProvider:
    uuid = str(uuids.UUID(given["uuid"]))
    inventories = {name: complete(values) for name, values in given["inventories"].items()}
    for name, values in inventories.items():
        require_capacity(call, uuid, name, values)
    return bulk.NewProvider(uuid, given["name"], inventories, frozenset(given["traits"]))


class Memberships:
    """`/micronova/resource_providers/memberships`."""

    def __init__(self, services: Services) -> None:
        self.services = services

    @operation("resource_providers:list_memberships", body=membership_schemas.MANY)
    def on_post(self, call: Call) -> Answer:
        """Show traits and aggregates of `resource_providers`, of those that exist."""
        given = [str(uuids.UUID(one)) for one in call.body()["resource_providers"]]
        found = self.services.database.read(lambda c: memberships.of_many(c, given))
        return Answer(
            {
                "resource_providers": {
                    uuid: {"traits": traits, "aggregates": aggregates}
                    for uuid, (traits, aggregates) in found.items()
                }
            },
            dated=False,
        )


class AllAllocations:
    """`/micronova/allocations`."""

    def __init__(self, services: Services) -> None:
        self.services = services

    @operation("allocations:list_all", query=allocation_schemas.LIST_ALL, accept=True)
    def on_get(self, call: Call) -> Answer:
        """List what consumers have, ordered by their UUIDs, from after `marker` on.

        `next` is the marker of the next page, null after the last one.
        """
        marker = call.last("marker") or ""
        page = self.services.page
        rows = self.services.database.read(lambda c: usages.of_consumers(c, marker, page))
        held: dict[str, dict[str, dict[str, Any]]] = {}
        for consumer, provider, resource_class, used in rows:
            held.setdefault(consumer, {}).setdefault(provider, {})[resource_class] = used
        following = next(reversed(held)) if len(held) == page else None
        return Answer({"allocations": held, "next": following})

    @operation("allocations:delete_many", body=allocation_schemas.RELEASE)
    def on_post(self, call: Call) -> Answer:
        """Delete the allocations of the consumers in `release`, of those that have any."""
        self.services.ledger.release_all(call.body()["release"])
        return DONE


class RankedClaims:
    """`/micronova/allocations/{consumer_uuid}`."""

    def __init__(self, services: Services) -> None:
        self.services = services

    @operation("allocations:claim_first", body=allocation_schemas.RANKED)
    def on_put(self, call: Call, consumer_uuid: str) -> Answer:
        """Claim `resources` of the first of `providers` that has room, for a new consumer.

        `provider` is that one, null where none of them has room.
        """
        if not is_uuid(consumer_uuid):
            raise Invalid(f"Malformed consumer_uuid: {consumer_uuid}")
        given = call.body()
        claim = RankedClaim(
            str(uuids.UUID(consumer_uuid)),
            [str(uuids.UUID(one)) for one in given["providers"]],
            given["resources"],
            given["project_id"],
            given["user_id"],
        )
        return Answer({"provider": self.services.ledger.take_first(claim)}, dated=False)
