"""Repairs servers of members, by the actions that a user would ask for."""

from __future__ import annotations

from collections.abc import Mapping

from common import clock
from common.context import RequestContext
from common.errors import Conflict, Unimplemented
from common.resources.groups import Repair
from common.resources.states import VmState
from conductor.cloud import Cloud
from conductor.rpc.servers.servers import RebuildServer
from conductor.servers.accept import Accept
from conductor.servers.disks.begin_rebuild import RebuildAcceptance
from conductor.store.groups import groups as store
from conductor.store.groups.groups import Member
from conductor.store.ledger import group_news
from conductor.store.records import Operation, Server
from conductor.store.servers import servers
from conductor.store.transactions import Transaction

_STARTS: Mapping[str, str] = {
    VmState.STOPPED: "start",
    VmState.PAUSED: "unpause",
    VmState.SUSPENDED: "resume",
}


class Repairs:
    """Begins them; None: the same is in progress already."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud
        self._accept = Accept(cloud)
        self._rebuilds = RebuildAcceptance(cloud)

    def by_policy(self, ctxt: RequestContext, member: Member, repair: Repair) -> Operation | None:
        """Repair a member; what can't be rebuilt is restarted."""
        server = self._server(member)
        if repair == Repair.REBUILD and server.root_image_id is not None:
            return self._rebuild(ctxt, server)
        return self._restart(ctxt, server)

    def asked(
        self, ctxt: RequestContext, member: Member, repair: Repair, *, soft: bool
    ) -> Operation | None:
        """Repair a member as its user asks. Raises Conflict, Unimplemented.

        Its checks begin again afterwards, as after every repair.
        """
        if member.server_uuid is None or member.deleted_at is not None:
            raise Conflict(f"The node '{member.name}' has no server.")
        server = self._server(member)
        if repair == Repair.REBUILD:
            if server.root_image_id is None:
                raise Unimplemented(
                    f"The server of the node '{member.name}' was made of no image, so it is not "
                    "rebuilt: RECREATE replaces it."
                )
            operation: Operation | None = self._rebuild(ctxt, server)
        elif soft:
            operation = self._accept.act(ctxt, server.uuid, "reboot")
        else:
            operation = self._restart(ctxt, server)
        if member.group_id is not None:
            self._cloud.store.run(lambda c: _note_repaired(c, member))
        return operation

    def _server(self, member: Member) -> Server:
        with self._cloud.store.read() as connection:
            return servers.get(connection, str(member.server_uuid))

    def _rebuild(self, ctxt: RequestContext, server: Server) -> Operation:
        request = RebuildServer(str(server.root_image_id), server.image_properties)
        return self._rebuilds.rebuild(ctxt, server.uuid, request)

    def _restart(self, ctxt: RequestContext, server: Server) -> Operation | None:
        return self._accept.act(ctxt, server.uuid, _STARTS.get(server.vm_state, "reboot-hard"))


def _note_repaired(connection: Transaction, member: Member) -> None:
    store.open_operations(connection, str(member.group_id))
    again = {"ready_at": None, "health": None, "repaired_at": clock.utcnow()}
    store.change_member(connection, member.id, **again)
    group_news.wake(connection, str(member.group_id))
