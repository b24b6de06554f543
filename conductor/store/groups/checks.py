"""Which members an agent checks, and what it reports of them."""

from __future__ import annotations

import collections
import datetime
import ipaddress
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from common.messages.health import CheckResult, GuestCheck, GuestHealth
from common.resources import groups
from common.resources.groups import HEALTH_TYPE, MemberState
from common.resources.health_checks import Checks
from common.resources.states import VmState
from conductor.store.groups import groups as store
from conductor.store.ledger import group_news
from db.schema import (
    hosts,
    networks,
    scaling_bindings,
    scaling_groups,
    scaling_members,
    scaling_policies,
    servers,
)

_G, _M, _S = scaling_groups.c, scaling_members.c, servers.c


def of_worker(connection: sa.Connection, worker: str) -> list[GuestCheck]:
    """Return the members on a worker's hosts that are to be checked. Two queries; four if any
    group has checks."""
    checks = _checks(connection)
    if not checks:
        return []
    query = (
        sa.select(
            *(_M.group_id, _M.name, _M.health, _M.repaired_at, _S.uuid, _S.cluster, _S.node),
            *(_S.vmid, _S.addresses, _S.launched_at),
        )
        .join(servers, _S.uuid == _M.server_uuid)
        .join(hosts, hosts.c.host == _S.host)
        .where(
            _M.group_id.in_(sorted(checks)),
            _M.state == MemberState.KEPT,
            hosts.c.worker == worker,
            _S.vm_state == VmState.ACTIVE,
            _S.task_state.is_(None),
            _S.deleted_at.is_(None),
            _S.vmid.is_not(None),
            ~_S.held,
        )
    )
    rows = connection.execute(query).all()
    reached = _operators(connection, {id_ for row in rows for id_ in _networks(row)})
    return [_check(row, checks[row.group_id], reached) for row in rows]


def _checks(connection: sa.Connection) -> dict[str, Checks]:
    """Return the groups whose members are checked, and how."""
    policies, found = _health_policies(connection), {}
    for row in connection.execute(sa.select(_G.id, _G.config).where(~_G.deleting)):
        one = groups.checks(groups.options(row.config), policies.get(row.id))
        if one.is_any:
            found[row.id] = one
    return found


def _health_policies(connection: sa.Connection) -> dict[str, Mapping[str, Any]]:
    binding, policy = scaling_bindings.c, scaling_policies.c
    query = (
        sa.select(binding.group_id, policy.spec)
        .join(scaling_policies, policy.id == binding.policy_id)
        .where(binding.enabled)
    )
    rows = connection.execute(query)
    return {row.group_id: row.spec for row in rows if row.spec["type"] == HEALTH_TYPE}


def _networks(row: Any) -> list[str]:
    return [str(one["network_id"]) for one in row.addresses if one.get("network_id")]


def _operators(connection: sa.Connection, names: Collection[str]) -> frozenset[str]:
    """Return those of these networks that are the operator's: of a project's own network the
    addresses may be anybody's where the agent is."""
    if not names:
        return frozenset()
    query = sa.select(networks.c.id).where(
        networks.c.id.in_(sorted(names)), networks.c.project_id == "", networks.c.vni.is_(None)
    )
    return frozenset(connection.scalars(query))


def _check(row: Any, checks: Checks, reached: Collection[str]) -> GuestCheck:
    return GuestCheck(
        *(row.uuid, row.name, row.cluster, row.node, row.vmid),
        address_of(row.addresses, reached) if checks.needs_address else "",
        checks,
        begins_at(row.launched_at, row.repaired_at, checks),
        None if row.health is None else CheckResult(row.health),
    )


def address_of(addresses: Sequence[Mapping[str, Any]], reached: Collection[str]) -> str:
    """Return where a member is asked: its first address on these networks; empty: it has none."""
    for one in addresses:
        text = str(one.get("ip") or "")
        if one.get("network_id") in reached and text and _is_a_guest_s(text):
            return text
    return ""


def _is_a_guest_s(text: str) -> bool:
    """Return whether an address may be a VM's, and not that of the machine that asks."""
    address = ipaddress.ip_address(text)
    return not (
        address.is_loopback
        or address.is_link_local
        or address.is_multicast
        or address.is_unspecified
        or address.is_reserved
    )


def begins_at(
    launched_at: datetime.datetime | None, repaired_at: datetime.datetime | None, checks: Checks
) -> datetime.datetime:
    """Return from when on failures of a member's checks count."""
    times = [one for one in (launched_at, repaired_at) if one is not None]
    since = max(times, default=datetime.datetime.fromtimestamp(0, datetime.UTC))
    return since + datetime.timedelta(seconds=checks.grace_seconds)


def take(connection: sa.Connection, worker: str, found: Sequence[GuestHealth]) -> None:
    """Write what a worker's checks say, and have the groups looked at for which it is news.

    What is said of others' servers, or of what was asked before a repair, is ignored.
    """
    asked = {one.server_uuid: one for one in of_worker(connection, worker)}
    news = {
        one.server_uuid: one
        for one in found
        if one.server_uuid in asked and asked[one.server_uuid].begins_at == one.begins_at
    }
    rows = connection.execute(
        sa.select(_M.group_id, _M.id, _M.server_uuid).where(_M.server_uuid.in_(sorted(news)))
    )
    by_group: dict[str, list[Any]] = collections.defaultdict(list)
    for row in rows:
        by_group[row.group_id].append(row)
    for group_id, members in sorted(by_group.items()):
        # In the order in which all lock them.
        store.open_operations(connection, group_id)
        store.note_health(connection, {str(row.id): news[row.server_uuid] for row in members})
        group_news.wake(connection, group_id)
