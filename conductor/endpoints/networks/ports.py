"""The RPC endpoint of ports that users make."""

from __future__ import annotations

from common.context import RequestContext
from common.errors import PortNotFound, ServerNotFound
from common.resources import quotas as limits
from common.resources.states import ResourceType
from conductor.cloud import Cloud
from conductor.engine.access import scope
from conductor.engine.runner import Runner
from conductor.engine.settling import Settling
from conductor.rpc.networks.ports import NewPort, PortChange, TagChange
from conductor.servers.guest.begin_plug import PlugAcceptance
from conductor.store.networks import network_tags, revisions, user_ports
from conductor.store.networks.filtering import security_groups
from conductor.store.networks.pools import Within
from conductor.store.quotas import network_quotas
from conductor.store.records import Operation
from conductor.store.transactions import Transaction
from conductor.sync import filters


class PortEndpoint:
    """See ``conductor.rpc.PortRpc``."""

    def __init__(self, cloud: Cloud, runner: Runner) -> None:
        self._cloud, self._runner = cloud, runner
        self._accept = PlugAcceptance(cloud)
        self._settling = Settling(cloud)

    def create_ports(self, ctxt: RequestContext, ports: list[NewPort]) -> list[str]:
        conf = self._cloud.conf
        owners = [one.project_id for one in ports]

        def work(connection: Transaction, within: Within) -> list[str]:
            network_quotas.take(connection, "port", owners, limits.of_networks(conf))
            prefix = conf.networks.mac_prefix
            why_not = self._cloud.filtering.why_not(connection)
            return user_ports.create(connection, ports, prefix, scope(ctxt), why_not, within)

        return self._settling.run(work)

    def update_port(self, ctxt: RequestContext, port_id: str, asked: PortChange) -> None:
        def work(connection: Transaction, within: Within) -> None:
            _visible(connection, ctxt, port_id)
            revisions.require_port(connection, ctxt, port_id)
            why_not = self._cloud.filtering.why_not(connection)
            user_ports.change(connection, port_id, asked, scope(ctxt), why_not, within)

        self._settling.run(work)
        self._runner.periodic.wake(filters.NAME)

    def delete_port(self, ctxt: RequestContext, port_id: str) -> None:
        def work(connection: Transaction) -> Operation | None:
            server_uuid = _visible(connection, ctxt, port_id, also_network_owner=True)
            revisions.require_port(connection, ctxt, port_id)
            if server_uuid:
                user_ports.delete_with_server(connection, port_id)
                try:
                    return self._accept.detaching(connection, ctxt, server_uuid, port_id)
                except ServerNotFound:
                    # It is deleted; the audit would have taken the port from it.
                    user_ports.free(connection, port_id)
            user_ports.delete(connection, port_id)
            return None

        operation = self._cloud.store.run(work)
        self._runner.periodic.wake(filters.NAME)
        if operation is not None:
            ctxt.about(ResourceType.SERVER, operation.server_uuid)
            self._runner.submit(operation)

    def change_tags(
        self, ctxt: RequestContext, kind: str, record_id: str, change: TagChange
    ) -> list[str]:
        def work(connection: Transaction) -> list[str]:
            if kind == "port":
                _visible(connection, ctxt, record_id)
            elif kind == "security_group":
                security_groups.locked(connection, record_id, scope(ctxt))
            return network_tags.change(connection, kind, record_id, change)

        return self._cloud.store.run(work)


def _visible(
    connection: Transaction,
    ctxt: RequestContext,
    port_id: str,
    *,
    also_network_owner: bool = False,
) -> str:
    """Return the server of a port, empty if it has none; the port's row is locked.

    ``also_network_owner``: the owner of its network may do so too, with any project's server.
    Raises PortNotFound, also for another project's.
    """
    row = user_ports.locked(connection, port_id)
    if also_network_owner and scope(ctxt) not in (None, row.project_id):
        ctxt.is_admin = user_ports.is_on_network_of(connection, row.network_id, scope(ctxt))
    if scope(ctxt) not in (None, row.project_id):
        raise PortNotFound(f"Port {port_id} could not be found.")
    return str(row.server_uuid)
