"""Sets what a server, and a migration of it, hold in placement, whatever they held before."""

from __future__ import annotations

from collections.abc import Mapping

from common.errors import GenerationConflict
from conductor.store.records import Server
from placement.client import PlacementClient
from placement.messages import Allocations, Replacement

#: tries for a consumer that others write to at the same time
_TRIES = 5
#: what a migration has that was claimed for and not written to since: something, at the first
#: generation
_CLAIMED = Allocations({"": {}}, generation=1)


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


def pass_on(placement: PlacementClient, server: Server, holder: str) -> None:
    """Have ``holder`` hold what the server holds, in one step, and the server nothing.

    If the holder has something already, the server's is released. Raises as ``hold``.
    """
    for _ in range(_TRIES):
        there, its = placement.allocations_of(server.uuid), placement.allocations_of(holder)
        if its.by_provider or not there.by_provider:
            placement.release(server.uuid)
            return
        try:
            placement.replace_together(
                [
                    _replacement(server, server.uuid, {}, there),
                    _replacement(server, holder, _plain(there.by_provider), its),
                ]
            )
        except GenerationConflict:
            continue
        return
    raise GenerationConflict("The server's allocation is written to by too many at a time.")


def hold_both(
    placement: PlacementClient,
    server: Server,
    mine: Mapping[str, Mapping[str, int]],
    holder: str,
    held: Mapping[str, Mapping[str, int]],
    *,
    claimed: bool = False,
) -> bool:
    """Have the server hold exactly ``mine`` and its migration ``held``, {provider: amounts}, in
    one step; return whether there is room.

    ``held`` may be empty. ``claimed``: nothing was written for the migration since it was claimed
    for; then it is read only if that turns out to be wrong. Does nothing if it is so already.
    Raises Unavailable, and GenerationConflict when others keep writing.
    """
    wanted = {server.uuid: _plain(mine)} | ({holder: _plain(held)} if holder else {})
    for _ in range(_TRIES):
        there = {server.uuid: placement.allocations_of(server.uuid)}
        if holder:
            # If the server has what is wanted, the migration mostly has, too: it is read.
            known = claimed and _plain(there[server.uuid].by_provider) != wanted[server.uuid]
            there[holder] = _CLAIMED if known else placement.allocations_of(holder)
        changes = [
            _replacement(server, consumer, amounts, there[consumer])
            for consumer, amounts in wanted.items()
            if _plain(there[consumer].by_provider) != amounts
        ]
        if not changes:
            return True
        try:
            return placement.replace_together(changes)
        except GenerationConflict:
            claimed = False
    raise GenerationConflict("The server's allocation is written to by too many at a time.")


def _plain(by_provider: Mapping[str, Mapping[str, int]]) -> dict[str, dict[str, int]]:
    return {provider: dict(amounts) for provider, amounts in by_provider.items()}


def _replacement(
    server: Server, consumer: str, amounts: Mapping[str, Mapping[str, int]], there: Allocations
) -> Replacement:
    return Replacement(
        consumer,
        amounts,
        there.project_id or server.project_id,
        there.user_id or server.user_id,
        there.generation,
    )
