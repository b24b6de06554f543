"""What servers take of placement, and how an allocation follows its server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from common.errors import GenerationConflict
from common.requirements import requirements
from conductor.store.servers import Server
from placement.client import PlacementClient

#: how often a consumer that somebody else writes to at the same time is looked at again
_TRIES = 5


class Sized(Protocol):
    """A server's record, as far as it says what the server takes."""

    @property
    def vcpus(self) -> int: ...
    @property
    def memory_mib(self) -> int: ...
    @property
    def disk_gib(self) -> int: ...
    @property
    def flavor(self) -> Mapping[str, Any]: ...
    @property
    def image_properties(self) -> Mapping[str, str]: ...


def wanted(server: Sized) -> dict[str, int]:
    """Return the amounts of each resource class, as the scheduler claims them."""
    needed = requirements(
        server.vcpus,
        server.memory_mib,
        server.disk_gib,
        server.flavor.get("extra_specs") or {},
        server.image_properties,
    )
    return dict(needed.resources)


def follow(placement: PlacementClient, server: Server, provider_uuid: str) -> bool:
    """Have all that the server takes on this provider, in one step; whether there was room.

    What it took elsewhere moves along unchanged. Nothing is done when it is there already.
    Raises Unavailable, and GenerationConflict when others keep writing.
    """
    for _ in range(_TRIES):
        there = placement.allocations_of(server.uuid)
        if set(there.by_provider) == {provider_uuid}:
            return True
        amounts = dict(next(iter(there.by_provider.values()), {}))
        if len(there.by_provider) != 1 or not amounts:
            amounts = wanted(server)
        try:
            return placement.replace(
                server.uuid,
                {provider_uuid: amounts},
                there.project_id or server.project_id,
                there.user_id or server.user_id,
                there.generation,
            )
        except GenerationConflict:
            continue
    raise GenerationConflict("The server's allocation is written to by too many at a time.")
