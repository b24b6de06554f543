"""Sets what a server holds of its host in placement, whatever it held before."""

from __future__ import annotations

from collections.abc import Mapping

from common.errors import GenerationConflict
from conductor.store.servers import Server
from placement.client import PlacementClient

#: tries for a consumer that others write to at the same time
_TRIES = 5


def hold(
    placement: PlacementClient, server: Server, provider: str, amounts: Mapping[str, int]
) -> bool:
    """Have the server hold exactly this of its host; return whether there is room.

    Does nothing if it holds that already. Raises Unavailable, and GenerationConflict when others
    keep writing.
    """
    wanted = {provider: dict(amounts)}
    for _ in range(_TRIES):
        there = placement.allocations_of(server.uuid)
        if {uuid: dict(some) for uuid, some in there.by_provider.items()} == wanted:
            return True
        try:
            return placement.replace(
                server.uuid,
                wanted,
                there.project_id or server.project_id,
                there.user_id or server.user_id,
                there.generation,
            )
        except GenerationConflict:
            continue
    raise GenerationConflict("The server's allocation is written to by too many at a time.")
