"""``/network-ip-availabilities``: how many addresses of networks there are, and are in use."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from api.plain import Call, operation
from common.errors import Invalid, NetworkNotFound
from db.reading import reading
from db.reads.networks import ip_availability
from db.reads.networks.ip_availability import NetworkUse

#: filter → the column, and its value from a text
_FILTERS: Mapping[str, tuple[str, Callable[[str], Any]]] = {
    "network_id": ("network_id", str),
    "network_name": ("network_name", str),
    "tenant_id": ("project_id", str),
    "project_id": ("project_id", str),
    "ip_version": ("ip_version", lambda text: int(text) if text in ("4", "6") else 0),
}
_OTHERS = frozenset({"fields", "sort_key", "sort_dir", "limit", "marker", "page_reverse"})
_RULE = "get_network_ip_availability"


class Availabilities:
    """All networks."""

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine

    @operation(_RULE)
    def on_get(self, call: Call) -> Any:
        """List networks with their subnets' addresses."""
        where = _where(call.pairs)
        fields = {value for name, value in call.pairs if name == "fields" and value}
        with reading(self._engine) as connection:
            found = ip_availability.of_networks(connection, where)
        return {"network_ip_availabilities": [_shown(one, fields) for one in found]}


class Availability:
    """One network."""

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine

    @operation(_RULE)
    def on_get(self, call: Call, network_id: str) -> Any:
        """Show a network with its subnets' addresses."""
        with reading(self._engine) as connection:
            found = ip_availability.of_networks(connection, {"network_id": [network_id]})
        if not found:
            raise NetworkNotFound(f"Network {network_id} could not be found.")
        return {"network_ip_availability": _shown(found[0], set())}


def _where(pairs: Sequence[tuple[str, str]]) -> dict[str, list[Any]]:
    where: dict[str, list[Any]] = {}
    unknown = [name for name, _ in pairs if name not in {*_FILTERS, *_OTHERS}]
    if unknown:
        raise Invalid(f"{unknown} is invalid attribute for filtering")
    for name, value in pairs:
        if name in _FILTERS:
            column, convert = _FILTERS[name]
            where.setdefault(column, []).append(convert(value))
    return where


def _shown(one: NetworkUse, fields: set[str]) -> dict[str, Any]:
    whole = {
        "network_id": one.id,
        "network_name": one.name,
        "tenant_id": one.project_id,
        "project_id": one.project_id,
        "total_ips": one.total,
        "used_ips": one.used,
        "subnet_ip_availability": [
            {
                "subnet_id": subnet.id,
                "subnet_name": subnet.name,
                "cidr": subnet.cidr,
                "ip_version": subnet.ip_version,
                "total_ips": subnet.total,
                "used_ips": subnet.used,
            }
            for subnet in one.subnets
        ],
    }
    return {name: value for name, value in whole.items() if not fields or name in fields}
