"""Deletes a record, in the caller's transaction, with all that belongs to it."""

from __future__ import annotations

import datetime
from typing import Any

from common import clock
from common.messages.facts import NicFacts, OtherVm, VmFacts
from common.resources.states import VmState
from conductor.store.ledger import transitions
from conductor.store.networks import networks, unknown_vms
from conductor.store.networks.unknown_vms import Compared
from conductor.store.records import Server
from conductor.store.servers import server_groups, vmids
from conductor.store.transactions import Transaction
from conductor.volumes import release


def delete_record(
    connection: Transaction, server: Server, operation_id: int, **values: Any
) -> None:
    """Delete the record of a server whose VM may stay, with its ports.

    The caller decides about the VMID before.
    """
    networks.delete_ports(connection, server.uuid)
    transitions.move(
        connection,
        server,
        operation_id=operation_id,
        vm_state=VmState.DELETED,
        task_state=None,
        **deleted_columns(clock.utcnow()),
        **values,
    )
    release.set_error_of_abandoned(connection, server)


def deleted_columns(now: datetime.datetime) -> dict[str, Any]:
    """Return the further columns of a server that is deleted."""
    return {"power_state": 0, "addresses": [], "deleted_at": now, "terminated_at": now}


def delete_record_only(
    connection: Transaction, server: Server, operation_id: int, *holders: str
) -> None:
    """Delete a record but not its VM: the VMID is not ours any more."""
    server_groups.give_back(connection, server, *holders)
    if server.cluster is not None and server.vmid is not None:
        reason = f"The VM that was server {server.uuid} is somebody else's."
        place = server.cluster, server.vmid
        vmids.release_foreign(connection, *place, server.uuid, reason)
    delete_record(connection, server, operation_id)


def leave_vm(connection: Transaction, server: Server, operation_id: int) -> None:
    """Delete a record, and remember what its VM has, which remains: nobody gets it.

    That VM is reported as another one later; until then nothing else would say so.
    """
    nics = tuple(
        NicFacts(port.mac, network.bridge, network.vlan, port.ips)
        for port, network in networks.interfaces_of(connection, server.uuid)
    )
    delete_record_only(connection, server, operation_id)
    if server.cluster is not None and server.vmid is not None and server.node is not None:
        seen = VmFacts(server.vmid, server.node, server.power_state)
        unknown_vms.take(connection, server.cluster, Compared((seen,)))
        vm = OtherVm(server.vmid, server.node, nics=nics)
        unknown_vms.keep(connection, server.cluster, [vm])
