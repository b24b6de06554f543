"""The command that moves a server's VM to another node of its cluster, as plans have it."""

from __future__ import annotations

import dataclasses
import datetime

from common import clock
from common.messages.commands import Move, Placed
from conductor.cloud import Cloud
from conductor.engine.stages import Task
from conductor.plans import LiveMigrationPlan, Place
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


def begun(cloud: Cloud, task: Task, source: Place, command: Move, seconds: float) -> Move:
    """Return the command as this attempt sends it to the agent of its source.

    It has the content of the config drive, in case that has to be made again, but no password and
    files: those are for the first boot and not stored.
    """
    with cloud.store.read() as connection:
        nics = build_command.nics_of(connection, task.server.uuid)
    drive = guest_data.config_drive(task.server, nics, None)
    about = task.operation.about(placed(source), until(task, seconds))
    return dataclasses.replace(command, config_drive=drive).begun(*about)


def send(cloud: Cloud, task: Task, source: Place, command: Move) -> bool:
    """Have the stopped VM moved; return whether the source has an agent to do it."""
    seconds = cloud.conf.conductor.move_timeout_seconds
    return cloud.send(task.operation, begun(cloud, task, source, command, seconds))


def send_live(cloud: Cloud, task: Task, *, settle: bool = False) -> bool:
    """Have the running VM moved as planned; return whether there is an agent to do it: the
    source's.

    ``settle``: only look where the VM is, once no migration runs; if the source's agent is down
    the target's agent looks.
    """
    operation, plan = task.operation, task.operation.planned(LiveMigrationPlan)
    worker = cloud.take_to(operation, str(plan.source.host))
    if worker is None and settle:
        # The source may have died for good, and the VM be on the target.
        worker = cloud.take_to(operation, str(plan.target.host))
    if worker is None:
        return False
    command = dataclasses.replace(operation.ordered(Move), settle=settle)
    seconds = cloud.conf.conductor.live_migration_timeout_seconds
    sent = begun(cloud, task, plan.source, command, seconds)
    cloud.compute.execute(operation.ctxt, worker, sent)
    return True
