"""Resource providers."""

from __future__ import annotations

import uuid as uuids
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from sqlalchemy.engine import Connection
from sqlalchemy.exc import IntegrityError

from common import ids
from common.errors import Invalid, MicronovaError
from placement import agents, matching, queries
from placement.db import moves, providers, removals
from placement.db.engine import Database
from placement.db.providers import ProviderRow
from placement.operation import DONE, Answer, Call, Services, operation
from placement.request import Query
from placement.schemas import providers as schemas

T = TypeVar("T")
_LINKS = (
    (0, "inventories"),
    (0, "usages"),
    (1, "aggregates"),
    (6, "traits"),
    (11, "allocations"),
)


def url(call: Call, uuid: str) -> str:
    """Return the path of a provider as the client sees it."""
    return f"{call.script_name}/resource_providers/{uuid}"


def view(call: Call, provider: ProviderRow) -> dict[str, Any]:
    """Return a provider as JSON."""
    here = url(call, provider.uuid)
    links = [{"rel": "self", "href": here}]
    links += [
        {"rel": rel, "href": f"{here}/{rel}"} for since, rel in _LINKS if call.version >= since
    ]
    shown: dict[str, Any] = {
        "uuid": provider.uuid,
        "name": provider.name,
        "generation": provider.generation,
        "links": links,
    }
    if call.version >= 14:
        shown["parent_provider_uuid"] = provider.parent_uuid
        shown["root_provider_uuid"] = provider.root_uuid
    return shown


def _renamed(
    connection: Connection, uuid: str, body: Mapping[str, Any]
) -> Iterator[tuple[str, str | None]]:
    """Yield the name and the parent that a provider is to have."""
    parent = providers.find(connection, uuid).parent_uuid
    yield body["name"], body.get("parent_provider_uuid", parent)


def require_provider_first(database: Database, uuid: str, read: Callable[[], T]) -> T:
    """Return what `read` returns; an invalid body is refused only where the provider exists.

    The provider is looked up only then: the change checks it too. Raises NotFound, Invalid.
    """
    try:
        return read()
    except MicronovaError:
        database.read(lambda connection: providers.find(connection, uuid))
        raise


class ResourceProviders:
    """`/resource_providers`."""

    def __init__(self, services: Services) -> None:
        self.services = services

    @operation("resource_providers:list", query=schemas.LIST, accept=True)
    def on_get(self, call: Call) -> Answer:
        """List the providers that meet the conditions of the query."""
        group = queries.provider_filter(call)
        chosen: list[int] | None = None
        if group is not None:
            snapshot = self.services.follower.current()
            matching.check_names(
                snapshot, Query((group,)), 'Invalid trait(s) in "required" parameter: '
            )
            chosen = [snapshot.at(slot).id for slot in matching.matching(snapshot, group)]
        # An empty value doesn't filter, as in OpenStack Placement.
        found = self.services.database.read(
            lambda connection: providers.listed(
                connection,
                name=call.last("name") or None,
                uuid=call.last("uuid") or None,
                ids=chosen,
            )
        )
        modified = max((one.updated_at for one in found), default=None)
        return Answer(
            {"resource_providers": [view(call, one) for one in found]}, modified=modified
        )

    @operation("resource_providers:create", body=schemas.CREATE)
    def on_post(self, call: Call) -> Answer:
        """Create a provider."""
        body = call.body()
        uuid = str(uuids.UUID(body["uuid"])) if body.get("uuid") else ids.new_uuid()
        name, parent = body["name"], body.get("parent_provider_uuid")
        try:
            if not name:
                raise Invalid("Object action create failed because: name is required")
            agents.check_names(call.context, self.services.database, lambda c: [(name, parent)])
            made = providers.add(self.services.database, uuid, name, parent)
        except IntegrityError as error:
            raise self.services.database.read(
                lambda connection: providers.duplicate(connection, uuid, name)
            ) from error
        except Invalid as error:
            raise Invalid(
                f'Unable to create resource provider "{name}", {uuid}: {error.message}'
            ) from error
        if call.version < 20:
            return Answer(status=201, location=url(call, uuid), dated=False)
        return Answer(view(call, made), location=url(call, uuid), modified=made.updated_at)


class ResourceProvider:
    """`/resource_providers/{uuid}`."""

    def __init__(self, services: Services) -> None:
        self.services = services

    @operation("resource_providers:show", accept=True)
    def on_get(self, call: Call, uuid: str) -> Answer:
        """Show a provider."""
        found = self.services.database.read(lambda c: providers.find(c, uuid))
        return Answer(view(call, found), modified=found.updated_at)

    @operation("resource_providers:update", body=schemas.UPDATE)
    def on_put(self, call: Call, uuid: str) -> Answer:
        """Rename a provider or change its parent."""
        self.services.database.read(lambda c: providers.find(c, uuid))
        body = call.body()
        agents.check_names(call.context, self.services.database, lambda c: _renamed(c, uuid, body))
        try:
            changed = self.services.database.write(
                lambda connection: moves.update(
                    connection,
                    uuid,
                    body["name"],
                    body.get("parent_provider_uuid"),
                    keep_parent="parent_provider_uuid" not in body,
                    may_move=call.version >= 37,
                )
            )
        except Invalid as error:
            raise Invalid(f"Unable to save resource provider {uuid}: {error.message}") from error
        return Answer(view(call, changed), modified=changed.updated_at)

    @operation("resource_providers:delete")
    def on_delete(self, call: Call, uuid: str) -> Answer:
        """Delete a provider without allocations."""
        self.services.database.write(lambda connection: removals.remove(connection, uuid))
        return DONE
