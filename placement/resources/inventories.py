"""Inventories of a provider."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from common.errors import Invalid, NotFound
from placement.db import inventories, providers
from placement.errors import UnknownName
from placement.operation import DONE, Answer, Call, Services, operation
from placement.resources.providers import require_provider_first, url
from placement.schemas import inventories as schemas
from placement.schemas.common import LARGEST
from web.errors import MethodNotAllowed

_DEFAULTS: Mapping[str, Any] = {
    "reserved": 0,
    "min_unit": 1,
    "max_unit": LARGEST,
    "step_size": 1,
    "allocation_ratio": 1.0,
}


def complete(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return an inventory with the defaults for what a body leaves out."""
    values = {**_DEFAULTS, **given}
    return {name: values[name] for name in inventories.FIELDS}


def require_capacity(
    call: Call, uuid: str, name: str, values: Mapping[str, Any], verb: str = "update"
) -> None:
    """Raise Invalid when `reserved` leaves nothing; from 1.26 on it may be all there is."""
    capacity = int((values["total"] - values["reserved"]) * values["allocation_ratio"])
    if capacity < 0 or (capacity == 0 and call.version < 26):
        equal = "" if call.version >= 26 else " or equal to"
        raise Invalid(
            f"Unable to {verb} inventory for resource provider {uuid}: Invalid inventory for "
            f"'{name}' on resource provider '{uuid}'. "
            f"The reserved value is greater than{equal} total."
        )


def _one(values: Mapping[str, Any], generation: int) -> dict[str, Any]:
    # OpenStack Placement leaves generation 0 out.
    more = {"resource_provider_generation": generation} if generation else {}
    return {**values, **more}


class Inventories:
    """`/resource_providers/{uuid}/inventories`."""

    def __init__(self, services: Services) -> None:
        self.services = services

    @operation("resource_providers:inventories:list", accept=True)
    def on_get(self, call: Call, uuid: str) -> Answer:
        """List the inventories."""
        row = self.services.database.read(lambda c: providers.find(c, uuid))
        found, modified = self.services.database.read(lambda c: inventories.of(c, row.id))
        return Answer(
            {"resource_provider_generation": row.generation, "inventories": found},
            modified=modified,
        )

    @operation("resource_providers:inventories:create", body=schemas.CREATE)
    def on_post(self, call: Call, uuid: str) -> Answer:
        """Create an inventory."""
        self.services.database.read(lambda c: providers.find(c, uuid))
        body = call.body()
        name, values = body["resource_class"], complete(body)
        require_capacity(call, uuid, name, values, "create")
        try:
            generation = self.services.database.write(
                lambda c: inventories.add(c, uuid, name, values)
            )
        except UnknownName as error:
            raise Invalid(
                f"Unable to create inventory for resource provider {uuid}: {error.message}"
            ) from error
        where = f"{url(call, uuid)}/inventories/{name}"
        return Answer(_one(values, generation), status=201, location=where)

    @operation("resource_providers:inventories:update", body=schemas.REPLACE)
    def on_put(self, call: Call, uuid: str) -> Answer:
        """Replace all inventories."""

        def read() -> tuple[dict[str, dict[str, Any]], int]:
            body = call.body()
            wanted = {name: complete(values) for name, values in body["inventories"].items()}
            for name, values in wanted.items():
                require_capacity(call, uuid, name, values)
            return wanted, body["resource_provider_generation"]

        wanted, generation = require_provider_first(self.services.database, uuid, read)
        try:
            now = inventories.put(self.services.database, uuid, wanted, generation)
        except UnknownName as error:
            raise Invalid(
                f"Unknown resource class in inventory for resource provider {uuid}: "
                f"{error.message}"
            ) from error
        return Answer({"resource_provider_generation": now, "inventories": wanted})

    @operation("resource_providers:inventories:delete", since="1.5", absent=MethodNotAllowed)
    def on_delete(self, call: Call, uuid: str) -> Answer:
        """Delete all inventories."""
        self.services.database.write(lambda c: inventories.replace(c, uuid, {}, None))
        return DONE


class Inventory:
    """`/resource_providers/{uuid}/inventories/{resource_class}`."""

    def __init__(self, services: Services) -> None:
        self.services = services

    @operation("resource_providers:inventories:show", accept=True)
    def on_get(self, call: Call, uuid: str, resource_class: str) -> Answer:
        """Show an inventory."""
        row = self.services.database.read(lambda c: providers.find(c, uuid))
        found, modified = self.services.database.read(lambda c: inventories.of(c, row.id))
        if resource_class not in found:
            raise NotFound(f"No inventory of class {resource_class} for {uuid}")
        return Answer(_one(found[resource_class], row.generation), modified=modified)

    @operation("resource_providers:inventories:update", body=schemas.CHANGE)
    def on_put(self, call: Call, uuid: str, resource_class: str) -> Answer:
        """Change an inventory."""
        self.services.database.read(lambda c: providers.find(c, uuid))
        body = call.body()
        values = complete(body)
        require_capacity(call, uuid, resource_class, values)
        try:
            generation = self.services.database.write(
                lambda c: inventories.change(
                    c, uuid, resource_class, values, body["resource_provider_generation"]
                )
            )
        except UnknownName as error:
            raise Invalid(
                f"No inventory record with resource class for resource provider {uuid}: "
                f"{error.message}"
            ) from error
        return Answer(_one(values, generation))

    @operation("resource_providers:inventories:delete")
    def on_delete(self, call: Call, uuid: str, resource_class: str) -> Answer:
        """Delete an inventory without allocations."""
        self.services.database.write(lambda c: inventories.remove(c, uuid, resource_class))
        return DONE
