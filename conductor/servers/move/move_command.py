"""The command that moves a server's VM to another node of its cluster."""

from __future__ import annotations

import datetime

from common import clock
from common.messages.commands import Move, Placed
from conductor.cloud import Cloud
from conductor.engine.stages import Task
from conductor.plans import Place
from conductor.servers import build_command, guest_data


def placed(place: Place) -> Placed:
    """Return a place of a plan as commands name it."""
    return Placed(str(place.host), place.cluster or "", place.node or "", place.vmid or 0)


def until(task: Task, seconds: float) -> datetime.datetime:
    """Return when a command of a move must have ended: an undo has as long again."""
    deadline = task.operation.deadline
    if task.unwinding or deadline is None:
        return clock.after(seconds)
    return deadline


def send(cloud: Cloud, task: Task, source: Place, target: Place, storage: str | None) -> bool:
    """Have the stopped VM moved; return whether the source has an agent to do it.

    ``storage`` is the target's storage for disks that are copied; None: the storage of the same
    name. The command has the content of the config drive, in case that has to be made again, but
    no password and files: those are for the first boot and not stored.
    """
    operation, server = task.operation, task.server
    with cloud.store.read() as connection:
        nics = build_command.nics_of(connection, server.uuid)
    command = Move(
        *operation.about(placed(source), until(task, cloud.conf.conductor.move_timeout_seconds)),
        target_node=target.node or "",
        target_storage=storage,
        config_drive=guest_data.config_drive(server, nics, None),
    )
    return cloud.send(operation, command)
