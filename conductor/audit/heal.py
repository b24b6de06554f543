"""Heals a finding by the verb of its kind, after proving it once more.

Every verb reads its subject again in the transaction that changes it, and changes nothing if it
has changed since the audit; each may run twice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from common import context
from common.counting import counted
from common.errors import GenerationConflict, ServerNotFound
from common.log import logger
from common.messages.commands import Destroy, StrictGroup
from common.messages.questions import Agent, ConvergeAffinity
from common.messages.reports import Category, Failure
from common.resources.states import InternalAction, ResourceType, VmState
from conductor.audit import proof
from conductor.audit.kinds import Verb
from conductor.audit.proof import RefusedError
from conductor.audit.records import PRESENT
from conductor.cloud import Cloud, silence
from conductor.engine import start
from conductor.engine.runner import Runner
from conductor.images import remove_file, remove_template
from conductor.networks import make_vnet, remove_vnet
from conductor.plans import CommandPlan, Place
from conductor.store.audits import audit_record
from conductor.store.audits.findings import Kept
from conductor.store.images import uploads
from conductor.store.ledger import operations as ledger
from conductor.store.ledger import transitions
from conductor.store.networks import networks, project_networks, vnets
from conductor.store.networks.vnets import State, Vnet
from conductor.store.outbox import filter_outbox
from conductor.store.records import Operation, Server
from conductor.store.servers import migrations, server_groups, servers, vmids
from conductor.store.transactions import Transaction
from conductor.store.volumes import snapshots, volumes
from conductor.sync import allocations
from conductor.sync.filters import Filters
from conductor.volumes.snapshots import park_volume

LOG = logger(__name__)


#: what waits while the database may be older than the clusters
GIVES_UP = frozenset(
    {Verb.DESTROY, Verb.RELEASE, Verb.RETIRE, Verb.DELETE_PORTS, Verb.FREE_PLACE}
    | {Verb.FREE_VMID, Verb.REMOVE_FILE, Verb.REMOVE_VNET}
)


@dataclass(frozen=True)
class Answer:
    """The result of a try to heal."""

    text: str
    operation_id: int | None = None
    """The operation that does it."""


class Healer:
    """Has one method per verb."""

    def __init__(self, cloud: Cloud, runner: Runner) -> None:
        self._cloud, self._runner, self._filters = cloud, runner, Filters(cloud)
        self._ways: Mapping[str, Callable[[Kept], Answer]] = {
            Verb.DESTROY: self._destroy,
            Verb.RELEASE: self._release,
            Verb.ALLOCATE: self._allocate,
            Verb.RETIRE: self._retire,
            Verb.DELETE_PORTS: self._delete_ports,
            Verb.FREE_PLACE: self._free_place,
            Verb.AFFINITY: self._affinity,
            Verb.FREE_VMID: self._free_vmid,
            Verb.RESERVE_VMID: self._reserve_vmid,
            Verb.REMOVE_FILE: self._remove_file,
            Verb.FILTER: self._filter,
            Verb.MAKE_VNET: self._make_vnet,
            Verb.REMOVE_VNET: self._remove_vnet,
            Verb.PARK: self._park,
            Verb.FAIL: self._fail,
        }

    def heal(self, finding: Kept, *, asked: bool) -> Answer:
        """Heal, or begin to; ``asked``: as a person wants it, who has seen the finding.

        Raises RefusedError; Unavailable when a service doesn't answer.
        """
        way = self._ways.get(finding.heal or "")
        if way is None:
            raise RefusedError("Nothing proves that it is ours: it is only reported.")
        held = self._cloud.guard.held
        if held is not None and finding.heal in GIVES_UP:
            raise RefusedError(held)
        # Of all verbs, only this one removes what a person may have restored.
        leaves = finding.heal == Verb.DESTROY and not asked
        answer = self._destroy(finding, restored=False) if leaves else way(finding)
        LOG.info("%s %s: %s", finding.kind, finding.subject, answer.text)
        return answer

    # --- what is on a hypervisor

    def _destroy(self, finding: Kept, *, restored: bool = True) -> Answer:
        """Begin a reap: the journal gave the server this VMID, where the record has no VM of it.

        No operation of the server is open. ``restored``: also if somebody has restored the VM.
        """
        operation = self._cloud.store.run(
            lambda c: self._begin_reap(c, finding, restored=restored)
        )
        self._runner.submit(operation)
        return Answer(f"Operation {operation.id} removes it.", operation.id)

    def _begin_reap(self, connection: Transaction, finding: Kept, *, restored: bool) -> Operation:
        server = proof.idle(connection, finding, lock=True)
        cluster, vmid = str(finding.cluster), int(finding.vmid or 0)
        if finding.kind == "config_drive_left_behind":
            return self._begin_tidying(connection, finding, server)
        if proof.has_vm(server) and (server.cluster, server.vmid) == (cluster, vmid):
            raise RefusedError("The record says that the VM is the server's.")
        had = proof.journalled(connection, cluster, vmid, server.uuid)
        # Others had the VMID before the server: only volumes named after the server are its own.
        named = finding.kind == "config_drive_without_server" and proof.journalled(
            connection, cluster, vmid, server.uuid, refused=True
        )
        if not had and not named:
            raise RefusedError(f"The journal never gave VMID {vmid} to server {server.uuid}.")
        host, node = proof.host(connection, cluster, finding.node)
        # Only the VM as it was seen may be removed, not if it was started or moved since then.
        running = finding.evidence.get("status") not in (None, "stopped")
        stopped_on = None if running else finding.node or node
        target = Place(host=host, cluster=cluster, node=node, vmid=vmid)
        since = None if restored else server.launched_at
        what = Destroy(stopped_on=stopped_on, drive_only=not had, unrestored_since=since)
        plan = CommandPlan(target, what)
        action, ctxt = InternalAction.REAP, context.internal()
        operation = start.begin(connection, self._cloud, ctxt, server, action, plan)
        if had and not vmids.hold(connection, cluster, vmid, server.uuid, operation.id):
            raise RefusedError(f"VMID {vmid} is reserved for another server by now.")
        return operation

    def _begin_tidying(self, connection: Transaction, finding: Kept, server: Server) -> Operation:
        """Begin to remove the config drive that a move left; the server retains its VMID."""
        cluster, vmid = str(finding.cluster), int(finding.vmid or 0)
        if not proof.has_vm(server) or (server.cluster, server.vmid) != (cluster, vmid):
            raise RefusedError("The record says that the VM is not the server's.")
        if not proof.journalled(connection, cluster, vmid, server.uuid):
            raise RefusedError(f"The journal never gave VMID {vmid} to server {server.uuid}.")
        host, node = proof.host(connection, cluster, finding.node)
        if node != finding.node or server.node in (None, node):
            raise RefusedError(f"The VM may be on {finding.node}, or that node has no host.")
        plan = CommandPlan(
            Place(host=host, cluster=cluster, node=node, vmid=vmid),
            Destroy(drive_only=True, left_behind=str(finding.evidence["volid"])),
        )
        ctxt = context.internal()
        return start.begin(connection, self._cloud, ctxt, server, InternalAction.REAP, plan)

    def _retire(self, finding: Kept) -> Answer:
        """Begin to remove a template that the record doesn't have."""
        operation = self._cloud.store.run(lambda c: self._begin_removal(c, finding))
        self._cloud.wake()
        return Answer(f"The agent of {operation.plan.target.host} is asked to remove it.")

    def _begin_removal(self, connection: Transaction, finding: Kept) -> Operation:
        cluster, vmid = str(finding.cluster), int(finding.vmid or 0)
        if audit_record.is_template(connection, cluster, vmid) or audit_record.is_reserved(
            connection, cluster, vmid
        ):
            raise RefusedError(f"VMID {vmid} is somebody's by now.")
        host, node = proof.host(connection, cluster, finding.node)
        if self._cloud.worker_of(connection, host) is None:
            raise RefusedError(silence(host))
        where = Place(host, None, cluster, node, vmid)
        image_id = str(finding.evidence["description_names"])
        operation = remove_template.begin(connection, self._cloud, where, image_id)
        if operation is None:
            raise RefusedError("It is being removed already.")
        return operation

    def _remove_file(self, finding: Kept) -> Answer:
        """Begin to remove the file of an uploaded image that the record doesn't have."""
        operation = self._cloud.store.run(lambda c: self._begin_remove_file(c, finding))
        self._cloud.wake()
        return Answer(f"Operation {operation.id} removes it.", operation.id)

    def _begin_remove_file(self, connection: Transaction, finding: Kept) -> Operation:
        image_id, volid = str(finding.evidence["image"]), str(finding.evidence["volid"])
        cluster = str(finding.cluster)
        row = uploads.locked(connection, image_id)
        if row is not None and row.locations.get(cluster) == volid:
            raise RefusedError("It is the image's by now.")
        if ledger.open_of(connection, image_id, ResourceType.IMAGE):
            raise RefusedError("An operation works on the image.")
        made = (ResourceType.IMAGE, InternalAction.STORE_IMAGE)
        if not ledger.begun_about(connection, *made, [image_id]):
            raise RefusedError("The ledger has no upload of it.")
        host, node = proof.host(connection, cluster, finding.node)
        where = Place(host, None, cluster, node)
        return remove_file.begin(connection, self._cloud, image_id, where, volid)

    def _make_vnet(self, finding: Kept) -> Answer:
        """Begin to make the vnet that a cluster has lost."""

        def work(connection: Transaction) -> Operation:
            network_id, vnet = _vnet(connection, finding)
            was = State.ACTIVE
            if vnet is None or not vnets.set_state(
                connection, network_id, vnet.cluster, State.MAKING, was
            ):
                raise RefusedError("The record doesn't have it there any more.")
            if not vnets.has_zone(connection, vnet):
                raise RefusedError(f"Zone {vnet.zone} is gone, or the token does not see it.")
            vnets.settle(connection, network_id)
            return make_vnet.begin(connection, self._cloud, context.internal(), vnet)

        operation = self._cloud.store.run(work)
        self._cloud.wake()
        return Answer(f"Operation {operation.id} makes it.", operation.id)

    def _remove_vnet(self, finding: Kept) -> Answer:
        """Begin to remove the vnet of a network that the record doesn't have."""

        def work(connection: Transaction) -> Operation:
            network_id, vnet = _vnet(connection, finding)
            if vnet is not None and vnet.state is not State.REMOVING:
                raise RefusedError("It is the network's by now.")
            made = (ResourceType.NETWORK, InternalAction.MAKE_VNET)
            if not ledger.begun_about(connection, *made, [network_id]):
                raise RefusedError("The ledger never had it made.")
            name, zone = str(finding.evidence["vnet"]), str(finding.evidence["zone"])
            found = Vnet(str(finding.cluster), network_id, name, zone, 0, State.REMOVING)
            return remove_vnet.begin(connection, self._cloud, found)

        operation = self._cloud.store.run(work)
        self._cloud.wake()
        return Answer(f"Operation {operation.id} removes it.", operation.id)

    def _park(self, finding: Kept) -> Answer:
        """Begin to have a volume rest in its holder."""

        def work(connection: Transaction) -> Operation:
            volume_id = str(finding.evidence["volume"])
            row = volumes.held(connection, volume_id)
            if row is None or (row.cluster, row.vmid) != (finding.cluster, finding.vmid):
                raise RefusedError("It holds no volume of the record, or a snapshot's copy.")
            if ledger.open_of(connection, volume_id, ResourceType.VOLUME):
                raise RefusedError("An operation works on the volume.")
            snapshots.require_alone(connection, row)
            return park_volume.begin(connection, self._cloud, context.internal(), row)

        operation = self._cloud.store.run(work)
        self._cloud.wake()
        return Answer(f"Operation {operation.id} parks it.", operation.id)

    def _affinity(self, finding: Kept) -> Answer:
        """Write the recorded group to the cluster; remove a deleted group."""
        cluster, uuid = str(finding.cluster), finding.subject.partition("/")[2]
        with self._cloud.store.read() as connection:
            group = server_groups.strict(connection, [uuid]).get(uuid)
            there = server_groups.vms(connection, uuid, cluster) if group else []
            host, _ = proof.host(connection, cluster, finding.node)
            worker = self._cloud.worker_of(connection, host)
        if worker is None:
            raise RefusedError(silence(host))
        if any(row.task_state or row.vm_state == VmState.BUILDING for row in there):
            raise RefusedError("A server of the group is being worked on.")
        members = {row.vmid: row.uuid for row in there if row.vm_state in PRESENT}
        self._cloud.compute.ask(
            context.internal(),
            Agent(worker, cluster),
            ConvergeAffinity(
                self._cloud.id,
                group or StrictGroup(uuid, apart=False),
                tuple(sorted(members.items())),
            ),
        )
        return Answer(
            f"Cluster {cluster} knows of {counted(len(members), 'server')} of the group."
        )

    def _filter(self, finding: Kept) -> Answer:
        """Have the firewall of the server's VM written as its groups say."""

        def work(connection: Transaction) -> None:
            server = proof.idle(connection, finding)
            if not proof.has_vm(server):
                raise RefusedError("The server has no VM any more.")
            filter_outbox.add(connection, [server.uuid])

        self._cloud.store.run(work)
        self._filters.look()
        return Answer("It is written as the security groups say.")

    # --- placement

    def _release(self, finding: Kept) -> Answer:
        there = self._cloud.placement.allocations_of(finding.subject)
        if not there.by_provider:
            return Answer("It has none any more.")
        with self._cloud.store.read() as connection:
            server = proof.idle(connection, finding)
            ended = proof.has_ended(connection, finding)
        if proof.has_vm(server) and not ended:
            raise RefusedError("The server has a VM now.")
        self._put(server, {}, there.generation, finding.subject)
        return Answer("Its allocations are given back.")

    def _allocate(self, finding: Kept) -> Answer:
        there = self._cloud.placement.allocations_of(finding.subject)
        with self._cloud.store.read() as connection:
            server = proof.idle(connection, finding)
            provider = proof.provider(connection, server)
            held = migrations.claim_of(connection, server.uuid)
        if not proof.has_vm(server):
            raise RefusedError("The server has no VM any more.")
        amounts = held or allocations.wanted(server)
        self._put(server, {provider: amounts}, there.generation)
        with self._cloud.store.read() as connection:
            now = servers.get(connection, server.uuid)
        if not proof.has_vm(now):
            # The server was deleted, perhaps before this began.
            self._cloud.placement.release(server.uuid)
        return Answer(f"Its allocation is what the record says, on {server.host}.")

    def _put(
        self,
        server: Server,
        wanted: Mapping[str, Mapping[str, int]],
        generation: int | None,
        consumer: str | None = None,
    ) -> None:
        """Replace the allocations if they are still those that were read; ``consumer``: of a
        migration of the server."""
        try:
            fits = self._cloud.placement.replace(
                consumer or server.uuid, wanted, server.project_id, server.user_id, generation
            )
        except GenerationConflict as error:
            raise RefusedError("Its allocations were changed since they were read.") from error
        if not fits:
            raise RefusedError(f"Host {server.host} has no room left for what it takes.")

    # --- the record

    def _delete_ports(self, finding: Kept) -> Answer:
        def work(connection: Transaction) -> None:
            try:
                server = proof.idle(connection, finding, lock=True)
            except ServerNotFound:
                server = None
            if server is not None and proof.has_vm(server):
                raise RefusedError("The server has a VM now.")
            networks.delete_port(connection, finding.subject, finding.server_uuid)

        self._cloud.store.run(work)
        return Answer("The port and its address are given back.")

    def _free_place(self, finding: Kept) -> Answer:
        def work(connection: Transaction) -> None:
            server = proof.idle(connection, finding, lock=True)
            if proof.has_vm(server):
                raise RefusedError("The server has a VM now.")
            server_groups.give_back(connection, server)

        self._cloud.store.run(work)
        return Answer("The place in its group is given back.")

    def _free_vmid(self, finding: Kept) -> Answer:
        cluster, vmid = str(finding.cluster), int(finding.vmid or 0)

        def work(connection: Transaction) -> None:
            state, owner = audit_record.vmid_row(connection, cluster, vmid) or (None, None)
            if state != vmids.RESERVED:
                raise RefusedError("It is no longer reserved.")
            if owner != finding.server_uuid or audit_record.is_template(connection, cluster, vmid):
                raise RefusedError("It belongs to another server or an image now.")
            if audit_record.is_holder(connection, cluster, vmid):
                raise RefusedError("A volume uses it now.")
            if (cluster, vmid) in audit_record.busy_holders(connection):
                raise RefusedError("A volume is being created or removed there.")
            if owner is not None and proof.has_it(connection, finding, cluster, vmid):
                raise RefusedError("Its server uses it.")
            vmids.free(connection, cluster, vmid)

        self._cloud.store.run(work)
        return Answer("The VMID is free.")

    def _reserve_vmid(self, finding: Kept) -> Answer:
        def work(connection: Transaction) -> None:
            server = proof.idle(connection, finding, lock=True)
            if not proof.has_vm(server):
                raise RefusedError("The server has no VM any more.")
            cluster, vmid = str(server.cluster), int(server.vmid or 0)
            if not vmids.hold(connection, cluster, vmid, server.uuid, server.operation_id):
                raise RefusedError(f"VMID {vmid} is reserved for another server.")

        self._cloud.store.run(work)
        return Answer("The VMID is reserved for its server.")

    def _fail(self, finding: Kept) -> Answer:
        text = "Nobody worked on it any more; the audit found it."

        def work(connection: Transaction) -> None:
            server = proof.idle(connection, finding, lock=True)
            transient = server.task_state is not None or server.vm_state == VmState.BUILDING
            if server.operation_id is None or server.deleted_at is not None or not transient:
                raise RefusedError("It is in no transient state any more.")
            transitions.move(
                connection,
                server,
                operation_id=server.operation_id,
                vm_state=VmState.ERROR,
                task_state=None,
            )
            operation = ledger.get(connection, server.operation_id)
            if operation is not None:
                failure = Failure(Category.UNKNOWN_OUTCOME, text, host=server.host)
                ledger.record_failure(connection, operation, failure)

        self._cloud.store.run(work)
        return Answer("The server is in ERROR.")


def _vnet(connection: Transaction, finding: Kept) -> tuple[str, Vnet | None]:
    """Return the network of a finding, locked, and its vnet there. Raises RefusedError."""
    network_id = str(finding.evidence["network"])
    project_networks.is_there(connection, network_id)
    if ledger.open_of(connection, network_id, ResourceType.NETWORK):
        raise RefusedError("An operation works on the network.")
    return network_id, vnets.get(connection, network_id, str(finding.cluster))
