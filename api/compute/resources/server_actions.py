"""`POST /servers/{id}/action`: the body names what shall be done."""

from __future__ import annotations

from api.compute.call import Call
from api.compute.operation import operation
from api.compute.policies import named
from api.compute.resources.custody import CustodyActions
from api.compute.resources.found import the_server
from api.compute.schemas import servers as schemas


class ServerActions(CustodyActions):
    """What can be done to a server; all is accepted (202) or refused with 409."""

    @operation(named("servers:start"), body=schemas.START, status=202, on=the_server)
    def start(self, call: Call) -> None:
        """Power on."""
        call.conductor.act(call.ctxt, call.server.uuid, "start")

    @operation(named("servers:stop"), body=schemas.STOP, status=202, on=the_server)
    def stop(self, call: Call) -> None:
        """Power off."""
        call.conductor.act(call.ctxt, call.server.uuid, "stop")

    @operation(named("servers:reboot"), body=schemas.REBOOT, status=202, on=the_server)
    def reboot(self, call: Call) -> None:
        """Ask the guest to restart (SOFT), or switch off and on (HARD)."""
        hard = call.body["reboot"]["type"].upper() == "HARD"
        call.conductor.act(call.ctxt, call.server.uuid, "reboot-hard" if hard else "reboot")
