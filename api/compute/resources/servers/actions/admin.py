"""Actions of administrators on a server, and those that Nova knows and nothing here can do."""

from __future__ import annotations

from api.compute.call import Call
from api.compute.operation import operation
from api.compute.resources.found import the_server
from api.compute.schemas import servers as schemas
from common.errors import Conflict, Gone, NotSupported, ServerStateConflict
from common.resources import locks
from common.resources.states import VmState
from db.reads.servers.servers import Server

#: the vm_states that Nova dumps from, as far as they are known here
_DUMPED = frozenset(
    {VmState.ACTIVE, VmState.PAUSED, VmState.RESCUED, VmState.RESIZED, VmState.ERROR}
)


class AdminActions:
    """Reset of the state, and what is refused."""

    @operation(
        "os-admin-actions:reset_state",
        body=schemas.RESET_STATE,
        status=202,
        on=the_server,
    )
    def reset_state(self, call: Call) -> None:
        """Say that a server is active, or in ERROR; nothing is done to its VM."""
        state = VmState(call.body["os-resetState"]["state"])
        call.conductor.reset_server_state(call.ctxt, call.server.uuid, state)

    @operation(None)
    def reset_network(self, call: Call, server_id: str) -> None:
        """Answer that the action is gone."""
        raise Gone

    @operation(
        "os-admin-actions:inject_network_info",
        body=schemas.INJECT_NETWORK_INFO,
        status=202,
        on=the_server,
    )
    def inject_network_info(self, call: Call) -> None:
        """Do nothing: the guest finds its network on the config drive."""
        _unlocked(call)

    @operation(
        "servers:trigger_crash_dump",
        since="2.17",
        body=schemas.CRASH_DUMP,
        status=202,
        on=the_server,
    )
    def trigger_crash_dump(self, call: Call) -> None:
        """Refuse: Proxmox VE lets no token interrupt a guest so."""
        _unlocked(call)
        _check_dumped(call.server)
        raise NotSupported("Triggering crash dump is not supported")


def _unlocked(call: Call) -> None:
    locks.check(call.server.uuid, call.server.locked_by, is_admin=call.is_admin)


def _check_dumped(server: Server) -> None:
    """Raise what Nova refuses before it asks the driver."""
    if server.host is None:
        raise Conflict(f"Instance {server.uuid} is not ready")
    wrong = (
        ("vm_state", server.vm_state) if server.vm_state not in _DUMPED else None,
        ("task_state", server.task_state) if server.task_state is not None else None,
        ("launched_at", "None") if server.launched_at is None else None,
    )
    for attribute, state in filter(None, wrong):
        raise ServerStateConflict(
            action="trigger_crash_dump",
            server_uuid=server.uuid,
            attribute=attribute,
            state=state,
        )
