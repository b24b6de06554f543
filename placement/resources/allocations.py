"""Allocations of consumers."""

from __future__ import annotations

import uuid as uuids
from collections.abc import Iterable, Mapping
from typing import Any

from common.errors import Invalid, NotFound
from common.ids import is_uuid
from placement.claim import Claim
from placement.db import providers, usages
from placement.operation import DONE, Answer, Call, Services, operation
from placement.schemas import allocations as schemas


def _newest(rows: Iterable[Any]) -> int | None:
    return max((row.created_at for row in rows), default=None)


class Allocations:
    """`/allocations`."""

    def __init__(self, services: Services) -> None:
        self.services = services

    @operation("allocations:manage", since="1.13", body=schemas.POST)
    def on_post(self, call: Call) -> Answer:
        """Set the allocations of several consumers, all or none."""
        claims = [claim(call, uuid, given) for uuid, given in call.body().items()]
        self.services.ledger.write(claims)
        return DONE


class ConsumerAllocations:
    """`/allocations/{consumer_uuid}`."""

    def __init__(self, services: Services) -> None:
        self.services = services

    @operation("allocations:list", accept=True)
    def on_get(self, call: Call, consumer_uuid: str) -> Answer:
        """Show a consumer's allocations; none for an unknown one."""
        rows = self.services.database.read(lambda c: usages.of_consumer(c, consumer_uuid))
        held: dict[str, dict[str, Any]] = {}
        for row in rows:
            one = held.setdefault(row.uuid, {"resources": {}, "generation": row.generation})
            one["resources"][row.resource_class] = row.used
        body: dict[str, Any] = {"allocations": held}
        if rows and call.version >= 12:
            body |= {"project_id": rows[0].project_id, "user_id": rows[0].user_id}
        if rows and call.version >= 28:
            body["consumer_generation"] = rows[0].consumer_generation
        if rows and call.version >= 38:
            body["consumer_type"] = rows[0].consumer_type or "unknown"
        return Answer(body, modified=_newest(rows))

    @operation("allocations:update", body=schemas.PUT)
    def on_put(self, call: Call, consumer_uuid: str) -> Answer:
        """Replace a consumer's allocations."""
        if not is_uuid(consumer_uuid):
            raise Invalid(f"Malformed consumer_uuid: {consumer_uuid}")
        given = call.body()
        if call.version < 8:
            placement = self.services.conf.placement
            given |= {
                "project_id": placement.incomplete_consumer_project_id,
                "user_id": placement.incomplete_consumer_user_id,
            }
        self.services.ledger.write([claim(call, str(uuids.UUID(consumer_uuid)), given)])
        return DONE

    @operation("allocations:delete")
    def on_delete(self, call: Call, consumer_uuid: str) -> Answer:
        """Delete a consumer's allocations."""
        self.services.ledger.release(consumer_uuid)
        return DONE


def claim(call: Call, consumer_uuid: str, given: Mapping[str, Any]) -> Claim:
    """Return the claim that a consumer's part of a body makes."""
    asked = given["allocations"]
    if isinstance(asked, list):
        asked = {one["resource_provider"]["uuid"]: one for one in asked}
    return Claim(
        consumer_uuid=consumer_uuid,
        allocations={uuid: one["resources"] for uuid, one in asked.items()},
        project_id=given["project_id"],
        user_id=given["user_id"],
        consumer_type=given.get("consumer_type"),
        generation=given.get("consumer_generation"),
        checked=call.version >= 28,
    )


class ProviderAllocations:
    """`/resource_providers/{uuid}/allocations`."""

    def __init__(self, services: Services) -> None:
        self.services = services

    @operation("resource_providers:allocations:list", accept=True)
    def on_get(self, call: Call, uuid: str) -> Answer:
        """List the allocations of a provider."""
        try:
            provider = self.services.database.read(lambda c: providers.find(c, uuid))
        except NotFound as error:
            raise NotFound(f"Resource provider '{uuid}' not found: {error.message}") from error
        rows = self.services.database.read(lambda c: usages.of_provider(c, provider.id))
        held: dict[str, dict[str, Any]] = {}
        for row in rows:
            one = held.setdefault(row.consumer_uuid, {"resources": {}})
            one["resources"][row.resource_class] = row.used
            if call.version >= 28:
                one["consumer_generation"] = row.consumer_generation
        return Answer(
            {"allocations": held, "resource_provider_generation": provider.generation},
            modified=_newest(rows),
        )
