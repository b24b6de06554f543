"""Facts of a server's guest that Nova's driver has and Proxmox VE's doesn't."""

from __future__ import annotations

from typing import Any

from api.compute.call import Call
from api.compute.operation import operation
from api.compute.policies import TOPOLOGY, TOPOLOGY_OF_HOST
from api.compute.resources.found import the_server
from api.compute.views import diagnostics
from common.guest import topology
from common.guest.asked import Asked, CannotError


class ServerTopology:
    """The NUMA topology of a server."""

    @operation(TOPOLOGY, asks=(TOPOLOGY_OF_HOST,), since="2.78", on=the_server)
    def index(self, call: Call) -> Any:
        """Show the NUMA nodes that the guest sees; none without a topology."""
        server = call.server
        target = {"project_id": server.project_id}
        of_host = call.allows(TOPOLOGY_OF_HOST, target)
        flavor = server.flavor
        asked = Asked(flavor.get("extra_specs", {}), server.image_properties)
        try:
            nodes = topology.numa_nodes(flavor["vcpus"], flavor["memory_mib"], asked)
        except CannotError:
            nodes = ()  # it was never built
        return {
            "nodes": [_node(number, node, of_host) for number, node in enumerate(nodes)],
            "pagesize_kb": None,
        }


def _node(number: int, node: topology.NumaNode, of_host: bool) -> dict[str, Any]:
    """Return a node; nothing binds it to one of the host's."""
    view: dict[str, Any] = {
        "vcpu_set": list(node.cpus),
        "siblings": [],
        "memory_mb": node.memory_mib,
    }
    return view | ({"host_node": number, "cpu_pinning": {}} if of_host else {})


class ServerDiagnostics:
    """How a server that runs does."""

    @operation("os-server-diagnostics", on=the_server)
    def index(self, call: Call) -> Any:
        """Show what a running server uses now; since 2.48 under names that never change."""
        found = call.conductor.diagnose_server(call.ctxt, call.server.uuid)
        return (
            diagnostics.standardized(found) if call.version >= 48 else diagnostics.free_form(found)
        )


class ServerPassword:
    """The password that a guest encrypts and posts to a metadata service, which is not here."""

    @operation("os-server-password:show", on=the_server)
    def index(self, call: Call) -> Any:
        """Show the encrypted password: empty."""
        return {"password": ""}

    @operation("os-server-password:clear", status=204, on=the_server)
    def clear(self, call: Call) -> None:
        """Clear the encrypted password, which is empty."""
