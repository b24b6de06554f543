"""The command of a live migration to the agent of the source."""

from __future__ import annotations

import datetime

from common import clock
from common.messages.commands import Move, Nic, Placed
from conductor.cloud import Cloud
from conductor.engine.stages import Task
from conductor.flows import guest_data
from conductor.plans import LiveMigrationPlan
from conductor.store import networks
from conductor.store.servers import Server
from conductor.store.transactions import Transaction


def send(cloud: Cloud, task: Task, *, settle: bool = False) -> bool:
    """Have the VM moved; return whether the source has an agent to do it.

    ``settle``: only look where it is, once no migration runs. The config drive's content goes
    along, in case that it has to be made anew: without what is for the first boot only.
    """
    operation, server = task.operation, task.server
    plan = operation.planned(LiveMigrationPlan)
    source = plan.source
    worker = cloud.take_to(operation, str(source.host))
    if worker is None:
        return False
    with cloud.store.read() as connection:
        nics = _nics(connection, server)
    command = Move(
        operation.id,
        operation.attempt,
        server.uuid,
        Placed(str(source.host), source.cluster or "", source.node or "", source.vmid or 0),
        _until(cloud, task),
        target_node=plan.target.node or "",
        live=True,
        target_storage=plan.storage,
        copy_disks=plan.copy_disks,
        config_drive=guest_data.config_drive(server, nics, None),
        settle=settle,
    )
    cloud.compute.move(operation.ctxt, worker, command)
    return True


def _until(cloud: Cloud, task: Task) -> datetime.datetime:
    deadline = task.operation.deadline
    if task.unwinding or deadline is None:
        return clock.after(cloud.conf.conductor.live_migration_timeout_seconds)
    return deadline


def _nics(connection: Transaction, server: Server) -> tuple[Nic, ...]:
    """Return a server's interfaces by the record."""
    known = {network.id: network for network in networks.known(connection)}
    found = []
    for port in networks.ports_of(connection, server.uuid):
        network = known[port.network_id]
        found.append(
            Nic(
                port_id=port.id,
                network_id=port.network_id,
                network_name=network.name,
                bridge=network.bridge,
                mac=port.mac,
                mtu=network.mtu,
                vlan=network.vlan,
                ip=port.ip,
                cidr=port.cidr,
                gateway=port.gateway,
                dns=port.dns,
            )
        )
    return tuple(found)
