"""What servers take of placement, and how an allocation follows its server."""

from __future__ import annotations

from common.errors import GenerationConflict
from conductor.store.servers import Server
from placement.client import PlacementClient

#: how often a consumer that somebody else writes to at the same time is looked at again
_TRIES = 5


def wanted(vcpus: int, memory_mib: int, disk_gib: int) -> dict[str, int]:
    """The amounts of each resource class; zero amounts are left out, as the scheduler does."""
    amounts = {"VCPU": vcpus, "MEMORY_MB": memory_mib, "DISK_GB": disk_gib}
    return {name: amount for name, amount in amounts.items() if amount}


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
            amounts = wanted(server.vcpus, server.memory_mib, server.disk_gib)
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
