"""Begins deletes: those that come at once share a transaction."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

from common.context import RequestContext
from common.resources.states import SOFT_DELETABLE, VmState
from common.rpc.gathering import Apart, Combining
from conductor.cloud import Cloud
from conductor.engine import start
from conductor.engine.access import scope
from conductor.engine.start import Taken
from conductor.plans import DeletePlan
from conductor.servers.accept import Accept
from conductor.store.records import Operation, Server
from conductor.store.servers import servers
from conductor.store.transactions import Transaction

ACTION = "delete"
#: deletes that share a transaction: its locks must not keep other writers waiting
_MOST_TOGETHER = 32


@dataclass(frozen=True)
class _Asked:
    """A request to delete a server."""

    ctxt: RequestContext
    server_uuid: str


class DeleteAcceptance:
    """Begins the action ``delete``."""

    def __init__(self, cloud: Cloud, accept: Accept) -> None:
        self._cloud, self._accept = cloud, accept
        self._combining = Combining[_Asked, Operation | None](self._begin, _MOST_TOGETHER)

    def delete(self, ctxt: RequestContext, server_uuid: str) -> Operation | None:
        """Begin a delete; None if one is in progress. Raises as ``Accept.act``."""
        return self._combining.do(_Asked(ctxt, server_uuid))

    def _begin(self, asked: Sequence[_Asked]) -> Sequence[Operation | Exception | None]:
        if len(asked) == 1:
            return [self._accept.act(asked[0].ctxt, asked[0].server_uuid, ACTION)]
        return self._cloud.store.run(lambda connection: self._begin_all(connection, asked))

    def _begin_all(
        self, connection: Transaction, asked: Sequence[_Asked]
    ) -> Sequence[Operation | Exception | None]:
        """Begin those that are in no way special; the others begin by themselves."""
        times = collections.Counter(one.server_uuid for one in asked)
        found = servers.locked(connection, list(times))
        plain = {
            one.server_uuid: one.ctxt
            for one in asked
            if times[one.server_uuid] == 1 and _is_plain(one.ctxt, found.get(one.server_uuid))
        }
        taken = [self._taken(connection, ctxt, found[uuid]) for uuid, ctxt in plain.items()]
        begun = {
            server.uuid: dataclasses.replace(operation, begun_on=server)
            for operation, server in start.take_all(connection, self._cloud, taken)
        }
        return [begun.get(one.server_uuid) or Apart() for one in asked]

    def _taken(self, connection: Transaction, ctxt: RequestContext, server: Server) -> Taken:
        handed_over = self._accept.hand_over(connection, server)
        return Taken(ctxt, server, ACTION, DeletePlan(), handed_over=handed_over)


def _is_plain(ctxt: RequestContext, server: Server | None) -> bool:
    """Return whether a delete of the server is accepted, and has to end nothing else first."""
    if server is None or server.deleted_at is not None or server.locked_by is not None:
        return False
    mine = scope(ctxt) in (None, server.project_id)
    at_rest = server.task_state is None and server.vm_state in SOFT_DELETABLE - {VmState.ERROR}
    return mine and at_rest
