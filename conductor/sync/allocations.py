"""The allocations of servers, and moving one when its server has moved."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from common.errors import GenerationConflict
from common.guest.requirements import requirements
from common.resources.states import VmState
from conductor.rpc.servers.flavors import claimed_gib
from conductor.store.records import Server
from placement.client import PlacementClient

#: tries for a consumer that others write to at the same time
_TRIES = 5
_DISK = "DISK_GB"


class Sized(Protocol):
    """The columns of a server that decide what it uses."""

    @property
    def vm_state(self) -> str: ...
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
    """Return the amounts of each resource class, as the scheduler claims them; for a parked server
    only those that it retains."""
    return parked(server) if server.vm_state == VmState.SHELVED_OFFLOADED else whole(server)


def parked(server: Sized) -> dict[str, int]:
    """Return the amounts that a parked server retains: its disk."""
    return {name: amount for name, amount in whole(server).items() if name == _DISK}


def whole(server: Sized) -> dict[str, int]:
    """Return the amounts of a server that is not parked."""
    needed = requirements(
        server.vcpus,
        server.memory_mib,
        server.disk_gib,
        server.flavor.get("extra_specs") or {},
        server.image_properties,
    )
    return dict(needed.resources)


def of_flavor(flavor: Mapping[str, Any], image_properties: Mapping[str, str]) -> dict[str, int]:
    """Return what a server of this flavor claims of its host."""
    needed = requirements(
        flavor["vcpus"],
        flavor["memory_mib"],
        claimed_gib(flavor),
        flavor.get("extra_specs") or {},
        image_properties,
    )
    return dict(needed.resources)


def follow(placement: PlacementClient, server: Server, provider_uuid: str) -> bool:
    """Move all of the server's allocation to this provider in one step; return whether it fits.

    What it uses of other providers moves unchanged. Does nothing if it is there already.
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
