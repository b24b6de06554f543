"""Accepts volumes that servers are to have, or to have no more: one transaction each.

The server's row is locked before the volume's; the volume's status decides which of several
attachments begins. The server isn't taken, as with interfaces.
"""

from __future__ import annotations

from collections.abc import Iterable

from common.context import RequestContext
from common.errors import Conflict, Forbidden, Invalid, NotFound
from common.messages.commands import Placed, PlugVolume
from common.resources.states import PowerState, VmState
from common.resources.volumes import ATTACH, DETACH, ROOT_SLOT, RULES, SLOTS, AttachStatus, serial
from conductor.cloud import Cloud
from conductor.engine import access
from conductor.engine.access import scope
from conductor.plans import CommandPlan
from conductor.rpc.servers.server_volumes import AttachedVolume, AttachRequest
from conductor.servers.guest import plugging
from conductor.store import call_answers
from conductor.store.records import Operation, Server
from conductor.store.servers import servers
from conductor.store.transactions import Transaction
from conductor.store.volumes import attachments, volumes
from conductor.volumes import status_rules, storage_reachability

#: the stages of their flows
PLUG, UNPLUG = "plug_volume", "unplug_volume"


class VolumeAcceptance:
    """Begins attachments and detachments of volumes."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    def attach(
        self, ctxt: RequestContext, server_uuid: str, asked: AttachRequest
    ) -> tuple[Operation, AttachedVolume]:
        """Return the operation and the attachment. See ``ConductorRpc.attach_volume``."""
        return self._cloud.store.run(lambda c: self._attach(c, ctxt, server_uuid, asked))

    def detach(self, ctxt: RequestContext, server_uuid: str, volume_id: str) -> Operation:
        """Return the operation. See ``ConductorRpc.detach_volume``."""
        return self._cloud.store.run(lambda c: self._detach(c, ctxt, server_uuid, volume_id))

    def _attach(
        self, connection: Transaction, ctxt: RequestContext, uuid: str, asked: AttachRequest
    ) -> tuple[Operation, AttachedVolume]:
        server = access.free(connection, ctxt, uuid, ATTACH)
        row = volumes.locked(connection, asked.volume_id, scope(ctxt))
        had = attachments.of_volume(connection, row.id)
        if had is not None:
            raise Invalid(
                f"Invalid volume: volume {row.id} is already attached to instances: "
                f"{had.server_uuid}"
            )
        if asked.tag and server.vm_state == VmState.SHELVED_OFFLOADED:
            raise Invalid(
                "Tagged volume attachment is not supported for shelved-offloaded instances."
            )
        _require_no_memory(server, ATTACH)
        if row.status not in RULES[ATTACH].begins:
            raise Invalid(
                f"Invalid input received: Invalid volume: Volume {row.id} status must be "
                f"available or downloading to reserve, but the current status is {row.status}."
            )
        status_rules.begin(connection, row, ATTACH)
        if row.volid is None or row.vmid is None:
            raise Invalid(f"Invalid volume: Volume {row.id} was never made.")
        storage_reachability.require(connection, row, server)
        slot = _slot(one.slot for one in attachments.of_server(connection, uuid))
        attachment_id = attachments.insert(
            connection,
            row.id,
            uuid,
            row.project_id,
            slot,
            mode="ro" if row.readonly else asked.mode,
            tag=asked.tag,
            delete_on_termination=asked.delete_on_termination,
        )
        holder = Placed(row.host, row.cluster, row.node, row.vmid)
        command = PlugVolume(
            volume_id=row.id,
            volid=row.volid,
            holder=holder,
            slot=slot,
            serial=serial(row.id),
            readonly=row.readonly or asked.mode == "ro",
        )
        plan = CommandPlan(plugging.place(server), command)
        operation = plugging.begin(connection, self._cloud, ctxt, server, ATTACH, PLUG, plan)
        attached = AttachedVolume(attachment_id, slot)
        call_answers.note(connection, attached)
        return operation, attached

    def _detach(
        self, connection: Transaction, ctxt: RequestContext, uuid: str, volume_id: str
    ) -> Operation:
        # As in Nova what isn't there comes before what may not be.
        server = servers.alive(connection, uuid, scope(ctxt))
        row = volumes.locked(connection, volume_id, scope(ctxt))
        had = attachments.of_volume(connection, volume_id)
        if had is None or had.server_uuid != uuid:
            raise NotFound(f"Instance {uuid} is not attached to volume {volume_id}")
        if had.slot == ROOT_SLOT:
            raise Invalid("Cannot detach a root device volume")
        access.require_free(ctxt, server, DETACH)
        _require_no_memory(server, DETACH)
        if row.status not in RULES[DETACH].begins:
            raise Invalid(
                "Invalid volume: Invalid input received: Invalid volume: Unable to detach volume. "
                "Volume status must be 'in-use' and attach_status must be 'attached' to detach."
            )
        status_rules.begin(connection, row, DETACH)
        attachments.set_status(connection, volume_id, uuid, AttachStatus.DETACHING)
        command = PlugVolume(
            volume_id=row.id, volid=str(row.volid), slot=had.slot, serial=serial(row.id)
        )
        plan = CommandPlan(plugging.place(server), command)
        return plugging.begin(connection, self._cloud, ctxt, server, DETACH, UNPLUG, plan)

    def set_delete_on_termination(
        self, ctxt: RequestContext, server_uuid: str, volume_id: str, *, delete: bool
    ) -> None:
        """See ``ConductorRpc.set_delete_on_termination``."""

        def work(connection: Transaction) -> None:
            server = servers.alive(connection, server_uuid, scope(ctxt))
            if not attachments.set_delete_on_termination(
                connection, volume_id, server.uuid, delete=delete
            ):
                raise NotFound(f"No volume Block Device Mapping with id {volume_id}.")

        self._cloud.store.run(work)


def _slot(taken: Iterable[int]) -> int:
    """Return the first slot that no volume of the server has. Raises Forbidden."""
    used = set(taken)
    free: int | None = next((slot for slot in SLOTS if slot not in used), None)
    if free is None:
        raise Forbidden(
            f"The maximum allowed number of disk devices ({len(SLOTS)}) to attach to a single "
            "instance has been exceeded."
        )
    return free


def _require_no_memory(server: Server, action: str) -> None:
    """Raise Conflict for a server that was suspended before it was shelved or deleted.

    Proxmox VE locks a suspended VM; its hardware can't be changed.
    """
    if server.power_state == PowerState.SUSPENDED:
        raise Conflict(
            f"Cannot '{action}' instance {server.uuid} while its memory is saved on its node."
        )
