"""`/os-hypervisors`: the compute hosts, for operators."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from api.compute.call import Call
from api.compute.operation import operation
from api.compute.schemas import operators as schemas
from api.compute.views import hypervisors as views
from common import digits, ids
from common.errors import Invalid, NotFound
from db.reads.hosts import hosts
from db.reads.hosts.hosts import Host
from db.reads.servers import servers

PATH = "os-hypervisors"
_ANY: dict[str, dict[str, Any]] = {"2.1": {}}

Servers = Mapping[str, Sequence[tuple[str, str]]]


class Hypervisors:
    """Hypervisors; each is a compute host of the same name."""

    @operation("os-hypervisors:list", query=schemas.LIST_HYPERVISORS)
    def index(self, call: Call) -> Any:
        """List hypervisors."""
        return _list(call, PATH, views.basic)

    @operation("os-hypervisors:list-detail", query=schemas.LIST_HYPERVISORS)
    def detail(self, call: Call) -> Any:
        """List hypervisors with details."""
        return _list(call, f"{PATH}/detail", views.detailed)

    @operation("os-hypervisors:show", query=schemas.SHOW_HYPERVISOR)
    def show(self, call: Call, hypervisor_id: str) -> Any:
        """Show a hypervisor."""
        host = _find(call, hypervisor_id)
        view = views.detailed(call, host)
        return {"hypervisor": view | _servers(call, [host]).get(host.host, {})}

    @operation("os-hypervisors:statistics", until="2.87", query=_ANY)
    def statistics(self, call: Call) -> Any:
        """Show the sums over all enabled hosts."""
        return {"hypervisor_statistics": views.statistics(call.read(hosts.list_hosts))}

    @operation("os-hypervisors:uptime", until="2.87", query=_ANY)
    def uptime(self, call: Call, hypervisor_id: str) -> Any:
        """Show a hypervisor's uptime."""
        host = _find(call, hypervisor_id)
        return {"hypervisor": views.basic(call, host) | {"uptime": views.uptime(host)}}

    @operation("os-hypervisors:search", until="2.52", query=_ANY)
    def search(self, call: Call, hypervisor_id: str) -> Any:
        """List hypervisors whose name contains a text."""
        found = _matching(call, hypervisor_id)
        return {"hypervisors": [views.basic(call, host) for host in found]}

    @operation("os-hypervisors:servers", until="2.52", query=_ANY)
    def servers(self, call: Call, hypervisor_id: str) -> Any:
        """List them with their servers."""
        found = _matching(call, hypervisor_id)
        on = call.read(servers.on_hosts, [host.host for host in found])
        return {
            "hypervisors": [
                views.basic(call, host) | views.servers(on[host.host], always=False)
                for host in found
            ]
        }


def _list(call: Call, path: str, view: views.View) -> dict[str, Any]:
    pattern = call.query.last("hypervisor_hostname_pattern") if call.version >= 53 else None
    if pattern is not None:
        if "limit" in call.query or "marker" in call.query:
            raise Invalid(
                "Paging over hypervisors with the hypervisor_hostname_pattern query parameter "
                "is not supported."
            )
        found, links = _matching(call, pattern), False
    else:
        found, links = _page(call), call.version >= 33
    on = _servers(call, found)
    answer: dict[str, Any] = {
        "hypervisors": [view(call, host) | on.get(host.host, {}) for host in found]
    }
    limit, _ = call.query.page(call.max_limit) if links else (None, None)
    if found and len(found) == limit:
        marker = str(views.identity(call, found[-1]))
        answer["hypervisors_links"] = call.links.after(path, call.query, marker)
    return answer


def _page(call: Call) -> list[Host]:
    limit, named_marker = call.query.page(call.max_limit) if call.version >= 33 else (None, None)
    marker: str | int | None = named_marker
    if named_marker is not None and call.version < 53:
        marker = digits.number(named_marker, 2**31 - 1)
        if marker is None:
            raise Invalid(f"marker [{named_marker}] not found")
    found: list[Host] = call.read(hosts.list_hosts, limit=limit, marker=marker)
    return found


def _matching(call: Call, part: str) -> list[Host]:
    found: list[Host] = call.read(hosts.list_hosts, name_part=part)
    if not found:
        raise NotFound(f"No hypervisor matching '{part}' could be found.")
    return found


def _find(call: Call, named_id: str) -> Host:
    key: str | int | None = None
    if call.version >= 53:
        if not ids.is_uuid(named_id):
            raise Invalid(f"Invalid uuid {named_id}")
        key = str(uuid.UUID(named_id))
    else:
        key = digits.number(named_id, 2**31 - 1)
    found: Host | None = None if key is None else call.read(hosts.find, key)
    if found is None:
        raise NotFound(f"Hypervisor with ID '{named_id}' could not be found.")
    return found


def _servers(call: Call, found: Sequence[Host]) -> dict[str, dict[str, Any]]:
    """{host: its `servers` field}, if the request wants it."""
    if call.version < 53 or not call.query.boolean("with_servers"):
        return {}
    on = call.read(servers.on_hosts, [host.host for host in found])
    return {host: views.servers(here, always=call.version >= 75) for host, here in on.items()}
