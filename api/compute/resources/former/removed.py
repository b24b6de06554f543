"""APIs that Nova once had: they answer 410, whatever is asked of them."""

from __future__ import annotations

from collections.abc import Mapping

from api.compute.call import Call
from api.compute.operation import operation
from common.errors import Gone

#: path → the HTTP methods that are gone
REMOVED: Mapping[str, tuple[str, ...]] = {
    "/os-agents": ("GET", "POST"),
    "/os-agents/{key}": ("PUT", "DELETE"),
    "/os-cells": ("GET", "POST"),
    "/os-cells/capacities": ("GET",),
    "/os-cells/detail": ("GET",),
    "/os-cells/info": ("GET",),
    "/os-cells/sync_instances": ("POST",),
    "/os-cells/{key}": ("GET", "PUT", "DELETE"),
    "/os-cells/{key}/capacities": ("GET",),
    "/os-certificates": ("POST",),
    "/os-certificates/{key}": ("GET",),
    "/os-cloudpipe": ("GET", "POST"),
    "/os-cloudpipe/{key}": ("PUT",),
    "/os-fixed-ips/{key}": ("GET",),
    "/os-floating-ip-dns": ("GET",),
    "/os-floating-ip-dns/{key}": ("PUT", "DELETE"),
    "/os-floating-ip-dns/{key}/entries/{entry}": ("GET", "PUT", "DELETE"),
    "/os-floating-ips-bulk": ("GET", "POST"),
    "/os-floating-ips-bulk/{key}": ("GET", "PUT"),
    "/os-fping": ("GET",),
    "/os-fping/{key}": ("GET",),
    "/os-networks/add": ("POST",),
    "/os-security-group-default-rules": ("GET", "POST"),
    "/os-security-group-default-rules/{key}": ("GET", "DELETE"),
    "/servers/{server_id}/consoles": ("GET", "POST"),
    "/servers/{server_id}/consoles/{console}": ("GET", "DELETE"),
    "/servers/{server_id}/os-virtual-interfaces": ("GET",),
}
#: path → actions in the body of a POST that are gone
REMOVED_ACTIONS: Mapping[str, tuple[str, ...]] = {
    "/os-fixed-ips/{key}/action": ("reserve", "unreserve"),
    "/os-networks/{key}/action": (
        *("disassociate", "disassociate_host", "disassociate_project"),
        "associate_host",
    ),
}


class Removed:
    """What is gone for good, at every version."""

    @operation(None)
    def gone(self, call: Call, **named: str) -> None:
        """Answer that it is gone."""
        raise Gone
