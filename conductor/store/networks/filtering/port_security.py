"""What users say of a port's filter: security groups, address pairs, and whether it has one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from common.errors import Conflict, Invalid, NotFound
from conductor.rpc.networks.ports import AddressPair, NewPort, PortChange
from conductor.store.networks.filtering import security_groups
from conductor.store.outbox import filter_outbox
from db.schema import port_security_groups, ports


def bind_new(
    connection: sa.Connection,
    wanted: Sequence[NewPort],
    port_ids: Sequence[str],
    project_id: str | None,
) -> None:
    """Put new ports into their groups. ``project_id``: whose may be named; None: any.

    Raises NotFound; Invalid and Conflict for a port that is to have no port security.
    """
    for new in wanted:
        _require_security(new.port_security, bool(new.security_groups), bool(new.address_pairs))
    named = {group for new in wanted for group in new.security_groups or ()}
    security_groups.shared(connection, named, project_id)
    unsaid = [new for new in wanted if new.security_groups is None and _filtered(new)]
    defaults = {
        one: security_groups.default(connection, one)
        for one in sorted({new.project_id for new in unsaid})
    }
    security_groups.shared(connection, defaults.values(), None)
    bound = []
    for new, port_id in zip(wanted, port_ids, strict=True):
        groups: Sequence[str] = sorted(set(new.security_groups or ()))
        if new in unsaid:
            groups = [defaults[new.project_id]]
        bound += [(port_id, group) for group in groups]
    security_groups.bind(connection, bound)


def change(
    connection: sa.Connection,
    row: Any,
    asked: PortChange,
    project_id: str | None,
    unfiltered: str,
) -> dict[str, Any]:
    """Change the groups of a port that is locked; return its columns that change.

    ``unfiltered``: why ports can't be filtered; empty: they can.

    Raises as ``bind_new``; Conflict also where groups or pairs are in the way of less security.
    """
    values: dict[str, Any] = {}
    require_filtering(asked.port_security, unfiltered)
    if asked.port_security is not None:
        values["port_security"] = asked.port_security
    if asked.address_pairs is not None:
        mac, any_mac = asked.mac or row.mac, project_id is None
        values["address_pairs"] = pairs(asked.address_pairs, mac, any_mac=any_mac)
    security = values.get("port_security", row.port_security)
    if not unfiltered and security is None:
        # It was made where nothing was filtered, and shows that.
        security = False
    has_pairs = bool(values.get("address_pairs", row.address_pairs))
    _require_security(security, bool(asked.security_groups), has_pairs)
    if asked.security_groups is not None:
        security_groups.shared(connection, asked.security_groups, project_id)
        security_groups.unbind(connection, row.id)
        wanted = sorted(set(asked.security_groups))
        security_groups.bind(connection, [(row.id, group) for group in wanted])
    elif security is False and security_groups.of_port(connection, row.id):
        raise Conflict(
            "Port has security group associated. Cannot disable port security or IP address "
            "until security group is removed.",
            type="PortSecurityPortHasSecurityGroup",
        )
    if {"port_security", "address_pairs"} & values.keys() or asked.security_groups is not None:
        filter_outbox.add(connection, [row.server_uuid])
    if "address_pairs" in values:
        groups = security_groups.of_port(connection, row.id)
        filter_outbox.members_changed(connection, groups)
    return values


def require_filtering(security: bool | None, unfiltered: str) -> None:
    """Raise Invalid for a port that is to be filtered where none can be, which says why."""
    if security and unfiltered:
        raise Invalid(
            "Invalid input for port_security_enabled. Reason: no port can be filtered here: "
            f"{unfiltered}.",
        )


def add_to_server(
    connection: sa.Connection, server_uuid: str, group_id: str, project_id: str | None
) -> None:
    """Put all ports of a server, which is locked, into a group. Raises NotFound, and Invalid where
    a port is to have no port security."""
    security_groups.shared(connection, [group_id], project_id)
    rows = _ports_of(connection, server_uuid, group_id)
    if any(row.port_security is False for row in rows):
        raise Invalid(
            "Network requires port_security_enabled and subnet associated in order to apply "
            "security groups."
        )
    security_groups.bind(connection, [(row.id, group_id) for row in rows if not row.bound])
    filter_outbox.add(connection, [server_uuid] if any(row.port_security for row in rows) else [])


def remove_from_server(connection: sa.Connection, server_uuid: str, group_id: str) -> None:
    """Take all ports of a server, which is locked, from a group. Raises NotFound if none was."""
    rows = _ports_of(connection, server_uuid, group_id)
    if not any(row.bound for row in rows):
        raise NotFound(f"Security group {group_id} not associated with the instance {server_uuid}")
    security_groups.unbind_from(connection, group_id, [row.id for row in rows])
    filter_outbox.add(connection, [server_uuid] if any(row.port_security for row in rows) else [])


def _ports_of(connection: sa.Connection, server_uuid: str, group_id: str) -> Sequence[Any]:
    """Return a server's ports, locked, and whether each is in the group."""
    bound = sa.exists().where(
        port_security_groups.c.port_id == ports.c.id,
        port_security_groups.c.security_group_id == group_id,
    )
    query = sa.select(ports.c.id, ports.c.port_security, bound.label("bound"))
    mine = ports.c.server_uuid == server_uuid
    return connection.execute(query.where(mine).order_by(ports.c.id).with_for_update()).all()


def pairs(asked: Sequence[AddressPair], mac: str, *, any_mac: bool) -> list[str] | None:
    """Return pairs as they are stored: ``ADDRESS``, or ``ADDRESS MAC`` with another than the
    port's.

    ``any_mac``: there may be such: then none of the VM's interfaces is held to its own, as Proxmox
    VE has one switch for all of them. Raises Invalid.
    """
    found = []
    for one in asked:
        other = one.mac_address not in (None, mac)
        if other and not any_mac:
            raise Invalid(
                f"Invalid input for allowed_address_pairs. Reason: {one.mac_address} is not the "
                "port's MAC address: Proxmox VE would then hold no interface of the server to "
                "its own, which only administrators allow.",
            )
        found.append(f"{one.ip_address} {one.mac_address}" if other else one.ip_address)
    return list(dict.fromkeys(found)) or None


def _filtered(new: NewPort) -> bool:
    return new.port_security is not False


def _require_security(security: bool | None, groups: bool, address_pairs: bool) -> None:
    if security is not False:
        return
    if address_pairs:
        raise Conflict(
            "Port Security must be enabled in order to have allowed address pairs on a port.",
            type="AddressPairAndPortSecurityRequired",
        )
    if groups:
        raise Invalid(
            "Port security must be enabled and port must have an IP address in order to use "
            "security groups.",
            type="PortSecurityAndIPRequiredForSecurityGroups",
        )
