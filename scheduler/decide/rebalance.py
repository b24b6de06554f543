"""Plan which servers would move to fill the hosts more evenly. Pure.

A server moves only within its cluster, to a host that passes every filter for its request and
suits its soft policies no worse than its own. Each move is the best by improvement of the score
of ``scheduler.weighers.balance`` per cost.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from common import moving
from scheduler.decide.choose import Evaluation, Filters
from scheduler.filters.resources import wanted
from scheduler.filters.storage import root_storage
from scheduler.hosts.columns import HostColumns
from scheduler.hosts.host import Host
from scheduler.hosts.usage import Rows
from scheduler.messages import Movable, Move, Pinned, Rebalancing
from scheduler.weighers import balance
from scheduler.weighers.ha import ha_priority
from scheduler.weighers.server_groups import soft_affinity, soft_anti_affinity

#: the least gain of a move, as a share of the average host's part of the score
LEAST_GAIN = 0.1
#: hosts are even below it: their allocated shares differ by half a percent (standard deviation)
EVEN = 0.005**2
#: cost of a GiB of disk that has to be copied, in GiB of memory: it is read and written
DISK_COST = 2.0
#: servers that are considered for a move: those that relieve the score most
LOOKED_AT = 20
#: soft policies of a server, which outweigh an even fill
SOFT_POLICIES = (soft_affinity, soft_anti_affinity, ha_priority)
#: servers for which the filters are evaluated in one plan
ASKED = 1000


@dataclasses.dataclass
class _Budget:
    """How many evaluations a plan has left, and which servers can't move."""

    left: int = ASKED
    stuck: set[str] = dataclasses.field(default_factory=set)


def plan(
    hosts: HostColumns, servers: Sequence[Movable], filters: Filters, limit: int
) -> Rebalancing:
    """Return at most ``limit`` moves, each planned on the hosts as those before it leave them."""
    draft = _whole(hosts, servers)
    waiting = {one.request.server_uuid: one for one in servers}
    before = now = balance.score(draft)
    moves: list[Move] = []
    pinned = tuple(_pinned(draft, servers))
    for one in pinned:
        del waiting[one.server_uuid]
    budget = _Budget()
    while waiting and now > EVEN and len(moves) < limit:
        best = _best(draft, waiting.values(), filters, budget)
        if best is None and budget.stuck and moves:
            # Earlier moves may have made room for them.
            budget.stuck.clear()
            best = _best(draft, waiting.values(), filters, budget)
        if best is None or best.gain < LEAST_GAIN * before / len(draft):
            break
        moved = waiting.pop(best.server_uuid)
        _shift(draft, moved, best.target)
        waiting = {uuid: _after(one, moved, best) for uuid, one in waiting.items()}
        now = balance.score(draft)
        moves.append(best)
    return Rebalancing(before, now, tuple(moves), len(servers), pinned)


def _whole(hosts: HostColumns, servers: Sequence[Movable]) -> HostColumns:
    """Return a draft with the usage of exhausted hosts too, which placement omits."""
    promised: dict[str, Counter[str]] = {}
    for one in servers:
        promised.setdefault(one.host, Counter()).update(wanted(one.request))
    classes = {name for amounts in promised.values() for name in amounts}
    draft = hosts.draft([*balance.CLASSES, *classes])
    for name, position in draft.positions(promised):
        for resource_class, amount in promised[name].items():
            draft.fill(position, resource_class, amount)
    return draft


def _pinned(draft: HostColumns, servers: Iterable[Movable]) -> Iterator[Pinned]:
    """Yield the servers that Proxmox VE can't migrate, and why."""
    pins = {name: draft.host(position).facts.pinned for name, position in _places(draft, servers)}
    for one in servers:
        vmid = None if one.request.vm is None else one.request.vm[1]
        reason = moving.pin(pins.get(one.host, {}), vmid)
        if reason is None and moving.bound(one.request.extra_specs):
            reason = moving.DEVICES
        if reason:
            yield Pinned(one.request.server_uuid, one.name, one.host, reason)


def _places(draft: HostColumns, servers: Iterable[Movable]) -> Iterable[tuple[str, int]]:
    return draft.positions({one.host for one in servers})


def _best(
    draft: HostColumns, servers: Iterable[Movable], filters: Filters, budget: _Budget
) -> Move | None:
    """Return the move with the best gain for its cost, if any gains anything."""
    found: list[Move] = []
    free = [one for one in servers if one.request.server_uuid not in budget.stuck]
    for server, relief in _promising(draft, free):
        if len(found) == LOOKED_AT or not budget.left:
            break
        budget.left -= 1
        move = _gaining(draft, server, relief, filters)
        if move is None:
            budget.stuck.add(server.request.server_uuid)
        else:
            found.append(move)
    # Ties are broken by UUID.
    return min(found, key=lambda one: (-one.gain / _cost(one), one.server_uuid), default=None)


def _gaining(draft: HostColumns, server: Movable, relief: float, filters: Filters) -> Move | None:
    """Return the best move of a server, if any gains anything."""
    [(_, source)] = draft.positions([server.host])
    targets = _targets(draft, server, source, filters)
    if not len(targets):
        return None
    costs = balance.cost_of(draft, server.request)[targets]
    target = int(targets[int(np.argmin(costs))])
    gain = relief - float(costs.min())
    return _move(draft, server, source, target, gain) if gain > 0 else None


def _promising(draft: HostColumns, servers: Sequence[Movable]) -> list[tuple[Movable, float]]:
    """Return the servers that relieve the score most by leaving their host, and by how much."""
    reliefs = [
        (server, relief) for server in servers if (relief := _relief(draft, server)) is not None
    ]
    reliefs.sort(key=lambda one: (-one[1], one[0].request.server_uuid))
    return reliefs


def _relief(draft: HostColumns, server: Movable) -> float | None:
    position = next((found for _, found in draft.positions([server.host])), None)
    return None if position is None else balance.relief(draft, server.request, position)


def _targets(draft: HostColumns, server: Movable, source: int, filters: Filters) -> Rows:
    """Return where a server may go: hosts of its cluster that pass every filter and suit its soft
    policies no worse than its own."""
    passed = Evaluation(draft, server.request, filters, {}).passed
    cluster = draft.host(source).facts.cluster
    suits = draft.where(_cluster, lambda name: name == cluster)
    for policy in SOFT_POLICIES:
        held = policy.weighed(draft, server.request)
        if held is not None:
            suits &= held >= held[source]
    targets: Rows = passed[suits[passed] & (passed != source)]
    return targets


def _cluster(host: Host) -> str:
    return host.facts.cluster


def _cost(move: Move) -> float:
    return 1.0 + move.memory_mib / 1024 + DISK_COST * move.disk_gib


def _move(draft: HostColumns, server: Movable, source: int, target: int, gain: float) -> Move:
    here, there = root_storage(draft.host(source)), root_storage(draft.host(target))
    shares_disk = (
        here is not None and here.shared and there is not None and here.name == there.name
    )
    return Move(
        server.request.server_uuid,
        server.name,
        server.host,
        draft.name(target),
        server.request.memory_mib,
        0 if shares_disk else server.request.disk_gib,
        gain,
    )


def _shift(draft: HostColumns, server: Movable, target: str) -> None:
    amounts = wanted(server.request)
    for _, position in draft.positions([server.host]):
        draft.take(position, {name: -amount for name, amount in amounts.items()})
    for _, position in draft.positions([target]):
        draft.take(position, amounts)


def _after(one: Movable, moved: Movable, move: Move) -> Movable:
    """Return a server after a move: members of its group, or of its hints, may have moved."""
    request = one.request
    group, uuid = request.group, move.server_uuid
    of_moved = moved.request.group
    if group is not None and of_moved is not None and group.uuid == of_moved.uuid:
        group = group.less_one(move.source).with_members({move.target: 1})
    where = request.server_hosts
    if uuid in where:
        where = {**where, uuid: move.target}
    return dataclasses.replace(
        one, request=dataclasses.replace(request, group=group, server_hosts=where)
    )
