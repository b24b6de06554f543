"""Proofs that a heal repeats in the transaction that changes something."""

from __future__ import annotations

from common.errors import Conflict, ServerNotFound
from conductor.store.audits import audit_record
from conductor.store.audits.findings import Kept
from conductor.store.ledger import operations as ledger
from conductor.store.records import Server
from conductor.store.servers import migrations, servers, vm_states, vmids
from conductor.store.transactions import Transaction


class RefusedError(Conflict):
    """The subject has changed since the audit, or the proof doesn't hold."""

    sentence = "The difference can't be healed."


def idle(connection: Transaction, finding: Kept, *, lock: bool = False) -> Server:
    """Return the finding's server. Raises RefusedError while it is worked on, ServerNotFound."""
    uuid = str(finding.server_uuid or finding.subject)
    server = servers.get(connection, uuid, lock=lock)
    if ledger.open_of(connection, server.uuid):
        raise RefusedError("An operation works on the server.")
    return server


def has_ended(connection: Transaction, finding: Kept) -> bool:
    """Return whether the finding is about a migration of its server that has ended."""
    found = migrations.holders(connection, [finding.subject])
    return any(not one.open and one.server_uuid == finding.server_uuid for one in found)


def has_vm(server: Server) -> bool:
    """Return whether the record says that the server has a VM."""
    return server.deleted_at is None and server.vmid is not None


def journalled(
    connection: Transaction, cluster: str, vmid: int, server_uuid: str, *, refused: bool = False
) -> bool:
    """Return whether the journal gave the VMID to the server; ``refused``: even if refused."""
    return vmids.was_of(connection, cluster, vmid, server_uuid, refused=refused)


def host(connection: Transaction, cluster: str, node: str | None) -> tuple[str, str]:
    """Return the host, and its node, through which something in the cluster is reached.

    Raises RefusedError if the cluster has no known host.
    """
    rows = vm_states.nearest(connection, cluster, node)
    if not rows:
        raise RefusedError(f"No host of cluster {cluster} is known.")
    return rows[0]


def provider(connection: Transaction, server: Server) -> str:
    """Return the resource provider of the server's host. Raises RefusedError if unknown."""
    found = audit_record.provider(connection, server.host)
    if found is None:
        raise RefusedError(f"Host {server.host} is not known.")
    return found


def has_it(connection: Transaction, finding: Kept, cluster: str, vmid: int) -> bool:
    """Return whether a VMID is that of its server's VM. Raises RefusedError as ``idle``."""
    try:
        server = idle(connection, finding, lock=True)
    except ServerNotFound:
        return False
    return has_vm(server) and (server.cluster, server.vmid) == (cluster, vmid)
