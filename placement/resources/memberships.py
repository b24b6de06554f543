"""Traits and aggregates of a provider."""

from __future__ import annotations

from placement.db import memberships, providers
from placement.operation import DONE, Answer, Call, Services, operation
from placement.resources.providers import require_provider_first
from placement.schemas import memberships as schemas


class ProviderTraits:
    """`/resource_providers/{uuid}/traits`."""

    def __init__(self, services: Services) -> None:
        self.services = services

    @operation("resource_providers:traits:list", since="1.6", accept=True)
    def on_get(self, call: Call, uuid: str) -> Answer:
        """List a provider's traits."""
        return self._traits(uuid)

    @operation("resource_providers:traits:update", since="1.6", body=schemas.TRAITS)
    def on_put(self, call: Call, uuid: str) -> Answer:
        """Replace a provider's traits."""
        body = call.body()
        generation, names, modified = memberships.put_traits(
            self.services.database, uuid, body["traits"], body["resource_provider_generation"]
        )
        return Answer(
            {"traits": names, "resource_provider_generation": generation}, modified=modified
        )

    @operation("resource_providers:traits:delete", since="1.6")
    def on_delete(self, call: Call, uuid: str) -> Answer:
        """Remove a provider's traits."""
        self.services.database.write(lambda c: memberships.set_traits(c, uuid, (), None))
        return DONE

    def _traits(self, uuid: str) -> Answer:
        row = self.services.database.read(lambda c: providers.find(c, uuid))
        names, modified = self.services.database.read(lambda c: memberships.traits(c, row.id))
        return Answer(
            {"traits": names, "resource_provider_generation": row.generation}, modified=modified
        )


class ProviderAggregates:
    """`/resource_providers/{uuid}/aggregates`."""

    def __init__(self, services: Services) -> None:
        self.services = services

    @operation("resource_providers:aggregates:list", since="1.1", accept=True)
    def on_get(self, call: Call, uuid: str) -> Answer:
        """List the aggregates a provider is in."""
        row = self.services.database.read(lambda c: providers.find(c, uuid))
        found = self.services.database.read(lambda c: memberships.aggregates(c, row.id))
        return _aggregates(call, found, row.generation)

    @operation("resource_providers:aggregates:update", since="1.1", body=schemas.AGGREGATES)
    def on_put(self, call: Call, uuid: str) -> Answer:
        """Replace the aggregates a provider is in."""
        body = require_provider_first(self.services.database, uuid, call.body)
        generation = None
        if call.version >= 19:
            generation, body = body["resource_provider_generation"], body["aggregates"]
        now = memberships.put_aggregates(self.services.database, uuid, body, generation)
        return _aggregates(call, body, now)


def _aggregates(call: Call, uuids: list[str], generation: int) -> Answer:
    more = {"resource_provider_generation": generation} if call.version >= 19 else {}
    return Answer({"aggregates": uuids, **more})
