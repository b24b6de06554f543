"""The command of a live migration to the agent of the source."""

from __future__ import annotations

from common.messages.commands import Move
from conductor.cloud import Cloud
from conductor.engine.stages import Task
from conductor.plans import LiveMigrationPlan
from conductor.servers import build_command, guest_data
from conductor.servers.move.move_command import placed, until


def send(cloud: Cloud, task: Task, *, settle: bool = False) -> bool:
    """Have the VM moved; return whether there is an agent to do it: the source's.

    ``settle``: only look where the VM is, once no migration runs; if the source's agent is down
    the target's agent looks. The command has the content of the config drive, without what is for
    the first boot only, in case the drive has to be made again.
    """
    operation, server = task.operation, task.server
    plan = operation.planned(LiveMigrationPlan)
    source = plan.source
    worker = cloud.take_to(operation, str(source.host))
    if worker is None and settle:
        # The source may have died for good, and the VM be on the target.
        worker = cloud.take_to(operation, str(plan.target.host))
    if worker is None:
        return False
    with cloud.store.read() as connection:
        nics = build_command.nics_of(connection, server.uuid)
    command = Move(
        *operation.about(
            placed(source), until(task, cloud.conf.conductor.live_migration_timeout_seconds)
        ),
        target_node=plan.target.node or "",
        live=True,
        target_storage=plan.storage,
        copy_disks=plan.copy_disks,
        config_drive=guest_data.config_drive(server, nics, None),
        settle=settle,
    )
    cloud.compute.execute(operation.ctxt, worker, command)
    return True
