"""The root disk of a server that is rebuilt, where that is a volume.

It is left as it is, or gets new content in a holder of its own: the VM's configuration names the
new disk before the volume's record does.

The volume's status is ``downloading``, as with Cinder's ``os-reimage``, from the acceptance of the
rebuild until the VM's configuration and the record name the same disk.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from common.errors import Invalid, StaleTransition
from common.messages.commands import Placed, ServerVolume, VolumeUser
from common.messages.reports import Failure, MadeVolume
from common.messages.scheduling import VolumeNeed
from common.resources.states import OperationState
from common.resources.volumes import ROOT_SLOT, VolumeAction, VolumeStatus
from conductor.cloud import Cloud
from conductor.engine import close
from conductor.engine.stages import Task
from conductor.images import image_source
from conductor.plans import NewContent, Place, RebuildPlan
from conductor.servers import build_command
from conductor.store.ledger import leases
from conductor.store.ledger import operations as ledger
from conductor.store.records import Server
from conductor.store.servers import vmids
from conductor.store.transactions import Transaction
from conductor.store.volumes import attachments, snapshots, volumes
from conductor.volumes import reimage

#: the stages before and after which a volume's record takes its new holder
MAKE, SWAP, SETTLE = "make", "swap", "settle"


def begin(
    connection: Transaction,
    server: Server,
    attached: list[Any],
    image_id: str,
    *,
    reimages: bool,
) -> RebuildPlan:
    """Return what the plan says of the root volume, which shows from now on that it changes.

    ``attached``: the server's volumes; its row must be locked. ``reimages``: whether it gets the
    image. Raises NotFound, Invalid.
    """
    root = next(one for one in attached if one.slot == ROOT_SLOT)
    plan = RebuildPlan(root_volume_id=root.volume_id)
    if not reimages:
        return plan
    row = volumes.locked(connection, root.volume_id, None)
    content, found = reimage.content_of(connection, row, image_id, row.cluster)
    snapshots.require_alone(connection, row)
    problem = image_source.not_copied_on(found.home, image_id, server.node)
    if problem is not None:
        raise Invalid(problem)
    volumes.show_begun(connection, row, VolumeAction.REIMAGE)
    former = (row.image_metadata or {}).get("image_id")
    return dataclasses.replace(plan, content=content, other_image=former != image_id)


class RootVolume:
    """What the stages of a rebuild do about a root disk that is a volume."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    def needs(self, connection: Transaction, task: Task) -> tuple[VolumeNeed, ...]:
        """Return what new content needs of the server's host."""
        content = _content(task)
        if content is None:
            return ()
        home = image_source.home(connection, content.image_id, task.server.cluster)
        return (
            VolumeNeed(
                content.make.storage,
                gib=content.make.size_gib,
                image_id=content.image_id,
                home=home,
            ),
        )

    def mapped(self, connection: Transaction, task: Task) -> RebuildPlan:
        """Return the plan with the VMID of a new holder, and with the server's interfaces.

        Raises BandExhausted.
        """
        server, plan = task.server, task.operation.planned(RebuildPlan)
        plan = dataclasses.replace(plan, nics=build_command.nics_of(connection, server.uuid))
        if plan.content is None:
            return plan
        vmid = vmids.reserve(connection, str(server.cluster), None, None)
        place = Place(server.host, None, server.cluster, server.node, vmid)
        return dataclasses.replace(plan, content=dataclasses.replace(plan.content, place=place))

    def send(self, task: Task) -> bool:
        """Have an agent make the new holder; return whether there is one."""
        operation, content = task.operation, _content(task)
        return content is not None and self._cloud.send(
            operation, reimage.command(operation, content)
        )

    def made(self, task: Task, made: MadeVolume) -> Task:
        """Store what the new content is called, and that the VM is to name it."""
        operation, plan = task.operation, task.operation.planned(RebuildPlan)
        if plan.content is None:
            raise StaleTransition(operation_id=operation.id)
        content = dataclasses.replace(plan.content, volid=made.volid)
        plan = dataclasses.replace(plan, content=content)
        owner, seconds = self._cloud.name, self._cloud.lease_seconds
        self._cloud.store.run(
            lambda c: leases.reach_owned(c, operation, plan, SWAP, owner, seconds)
        )
        return dataclasses.replace(
            task, operation=dataclasses.replace(operation, plan=plan, stage=SWAP)
        )

    def named(self, task: Task) -> ServerVolume | None:
        """Return the volume as the VM is to name it; None: the server has a disk of its own."""
        volume_id, content = task.operation.planned(RebuildPlan).root_volume_id, _content(task)
        if not volume_id:
            return None
        with self._cloud.store.read() as connection:
            attached = attachments.of_server(connection, task.server.uuid)
        root = next((one for one in attached if one.volume_id == volume_id), None)
        if root is None:
            raise StaleTransition(operation_id=task.operation.id)
        named = build_command.volume(root)
        if content is None:
            return named
        place = content.place
        holder = Placed(str(place.host), str(place.cluster), str(place.node), int(place.vmid or 0))
        return dataclasses.replace(named, volid=str(content.volid), holder=holder)

    def take(self, connection: Transaction, task: Task) -> None:
        """Have the record take the new holder, whose disk the VM names. Raises StaleTransition."""
        content = _content(task)
        if content is None:
            return
        row = volumes.held(connection, content.volume_id)
        attached = attachments.of_volume(connection, content.volume_id)
        if row is None or attached is None or attached.server_uuid != task.server.uuid:
            raise StaleTransition(operation_id=task.operation.id)
        if row.vmid != content.place.vmid:
            reimage.take(connection, self._cloud, row, content, _users(task))
            volumes.end(connection, row, VolumeAction.REIMAGE, ok=True)

    # --- failure

    def drop(self, connection: Transaction, task: Task, _: Failure | None) -> Task:
        """Begin to remove the new holder, which no VM names; the undo of having it made."""
        content = _content(task)
        if content is not None:
            project = task.server.project_id
            reimage.drop(connection, self._cloud, project, content, _users(task))
        return task

    def end_failed(self, connection: Transaction, task: Task) -> None:
        """Set the volume to its previous status."""
        content = _content(task)
        row = None if content is None else volumes.held(connection, content.volume_id)
        if row is not None and row.status == VolumeStatus.DOWNLOADING:
            before = row.previous_status or VolumeStatus.IN_USE
            volumes.change(connection, row.id, status=before, previous_status=None)

    def on_superseded(self, task: Task) -> None:
        """End a rebuild whose server has another operation: the record's content counts."""

        def work(connection: Transaction) -> None:
            content = _content(task)
            row = None if content is None else volumes.held(connection, content.volume_id)
            now = ledger.get(connection, task.operation.id)
            if now is None or close.has_ended(connection, now):
                return
            ledger.close(connection, now.id, OperationState.FAILED, "Overtaken.")
            if content is None or now.stage == SETTLE:
                return
            current = dataclasses.replace(task, operation=now)
            self.drop(connection, current, None)
            if row is not None:
                self.end_failed(connection, current)

        self._cloud.store.run(work)
        self._cloud.wake()


def _content(task: Task) -> NewContent | None:
    return task.operation.planned(RebuildPlan).content


def _users(task: Task) -> tuple[VolumeUser, ...]:
    """Return the server's VM, which may name either holder's disk."""
    server = task.server
    if server.node is None or server.vmid is None:
        return ()
    return (VolumeUser(server.uuid, server.node, server.vmid),)
