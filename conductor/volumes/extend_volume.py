"""Extends volumes: at rest in their holder, or in the server that has them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from common.context import RequestContext
from common.errors import Invalid
from common.messages.commands import GrowVolume, VolumeUser
from common.messages.reports import VolumeSeen
from common.resources.states import InternalAction, PowerState, ResourceType
from common.resources.volumes import EXTENDABLE_IN_USE, VolumeAction, VolumeStatus
from conductor.cloud import Cloud
from conductor.engine import done, start
from conductor.engine.command_end import End
from conductor.engine.one_command import OneCommand
from conductor.plans import VolumePlan
from conductor.store.quotas import volume_quotas
from conductor.store.records import Operation
from conductor.store.servers import servers
from conductor.store.transactions import Transaction
from conductor.store.volumes import attachments, types, volumes
from conductor.volumes import remove_volume, status_rules
from conductor.volumes.snapshots import park_volume
from conductor.volumes.volume_command import VolumeWork


def begin(
    connection: Transaction,
    cloud: Cloud,
    ctxt: RequestContext,
    row: Any,
    size_gib: int,
    *,
    in_use: bool,
) -> Operation:
    """Write the operation that extends a volume that is locked, for ``cloud.start``.

    Its new size counts from now on. ``in_use``: also if it is attached. Raises Invalid,
    QuotaExceeded.
    """
    if size_gib <= row.size_gib:
        raise Invalid(
            "Invalid input received: New size for extend must be greater than current size. "
            f"(current: {row.size_gib}, extended: {size_gib})."
        )
    status_rules.begin(connection, row, VolumeAction.EXTEND, EXTENDABLE_IN_USE if in_use else ())
    _require_no_memory(connection, row)
    type_ = None if row.type_id is None else types.get(connection, row.type_id)
    name = None if type_ is None else str(type_.name)
    more = {"gigabytes": size_gib - row.size_gib}
    volume_quotas.take(connection, row.project_id, cloud.conf, more, name, size_gib)
    where = remove_volume.place_of(row)
    plan = VolumePlan(where, GrowVolume(volid=str(row.volid), size_gib=size_gib), row.size_gib)
    resource = (ResourceType.VOLUME, row.id)
    item = start.new(cloud, VolumeAction.EXTEND, resource, row.project_id, plan)
    operation = start.begin_now(connection, cloud, ctxt, item)
    volumes.change(connection, row.id, size_gib=size_gib)
    return operation


def _require_no_memory(connection: Transaction, row: Any) -> None:
    """Raise Invalid for a volume of a server that is suspended, also if it was shelved since.

    Proxmox VE locks a suspended VM; its disks can't be resized.
    """
    attached = attachments.of_volume(connection, row.id)
    if attached is None:
        return
    server = servers.get(connection, attached.server_uuid)
    if server.power_state == PowerState.SUSPENDED:
        raise Invalid(
            f"Invalid volume: Volume {row.id} can't be extended while the memory of server "
            f"{server.uuid} is saved on its node: resume or unshelve that."
        )


@dataclass(frozen=True)
class Extending(VolumeWork):
    """An operation of this flow, with the server that has the volume."""

    user: VolumeUser | None = None
    host: str | None = None
    """That server's."""


class ExtendVolumeFlow(OneCommand[Extending, VolumeSeen]):
    """The flow of ``VolumeAction.EXTEND``. It may run twice: sizes are absolute."""

    stage = "grow"
    unseen = "The volume was not seen grown."
    late = "The volume was not extended in time."

    def load(self, connection: Transaction, operation: Operation) -> Extending:
        """Read the volume, and the server that it is attached to."""
        row = volumes.get(connection, operation.resource_id)
        attached = attachments.of_volume(connection, operation.resource_id)
        server = None if attached is None else servers.get(connection, attached.server_uuid)
        if server is None or server.vmid is None or server.node is None:
            return Extending(operation, row)
        user = VolumeUser(server.uuid, server.node, server.vmid)
        return Extending(operation, row, user, server.host)

    def host(self, task: Extending) -> str:
        """Return the server's host, or the holder's."""
        return task.host or task.place.host

    def command(self, task: Extending) -> GrowVolume:
        """Return what grows it."""
        return self.planned(task, GrowVolume, user=task.user)

    def lock(self, connection: Transaction, task: Extending) -> Any:
        """Lock the volume."""
        return volumes.held(connection, task.operation.resource_id)

    def write_done(self, connection: Transaction, end: End[Extending, VolumeSeen]) -> None:
        """Show it on the server that has the volume, too, as Nova's does."""
        operation, row = end.operation, end.row
        attached = attachments.of_volume(connection, operation.resource_id)
        if attached is not None:
            server = servers.get(connection, attached.server_uuid)
            event = (InternalAction.EXTEND_VOLUME, "compute_extend_volume")
            done.record(connection, self._cloud, operation.ctxt, server, *event)
        if row is not None:
            # Its server was deleted while it grew, and the volume is with that.
            remove_volume.after_snapshots(connection, self._cloud, row)
            if row.status == VolumeStatus.EXTENDING:
                volumes.end(connection, row, VolumeAction.EXTEND, ok=True)

    def write_failed(self, connection: Transaction, end: End[Extending, VolumeSeen]) -> None:
        """Give it its former size, and have it seen parked."""
        row = end.row
        if row is None:
            return
        if row.volid is not None:
            park_volume.begin(connection, self._cloud, end.operation.ctxt, row)
        if row.status == VolumeStatus.EXTENDING:
            former = end.operation.planned(VolumePlan).former_gib
            values = {"size_gib": former, "fault": end.failure.message}
            volumes.end(connection, row, VolumeAction.EXTEND, ok=False, **values)
