"""`/servers/{id}/ips`: a server's addresses by network."""

from __future__ import annotations

from typing import Any

from api.compute.call import Call
from api.compute.operation import operation
from api.compute.resources.found import the_server
from api.compute.views.servers import addresses
from common.errors import NotFound


class ServerIps:
    """The addresses of a server."""

    @operation("ips:index", on=the_server)
    def index(self, call: Call) -> Any:
        """List addresses by network."""
        return {"addresses": addresses(call.server, extended=False)}

    @operation("ips:show", on=the_server)
    def show(self, call: Call, network: str) -> Any:
        """Show the addresses of a network."""
        found = addresses(call.server, extended=False)
        if network not in found:
            raise NotFound("Instance is not a member of specified network")
        return {network: found[network]}
