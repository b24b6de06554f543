"""The begin of an adoption: look at the VM, refuse what must be refused, write the record."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any

from common import clock, codec, ids
from common.context import RequestContext
from common.errors import Conflict, NotFound, Unavailable
from common.messages.commands import Nic
from common.messages.facts import HostFacts, Inspection
from common.messages.questions import Agent, Inspect
from common.messages.reports import Step
from common.resources.states import PowerState, ResourceType, TaskState, VmState
from conductor.cloud import Cloud
from conductor.engine import start
from conductor.plans import AdoptParams, Place, Plan
from conductor.rpc.servers.flavors import FlavorSnapshot
from conductor.rpc.servers.manage import Adopted, Adoption
from conductor.servers import guest_data
from conductor.servers.create.begin_create import hostname_of
from conductor.servers.manage import candidate
from conductor.store import call_answers
from conductor.store.hosts import registry
from conductor.store.ledger import operations as ledger
from conductor.store.networks import adopted_ports, networks, unknown_vms
from conductor.store.quotas import quotas
from conductor.store.records import Operation
from conductor.store.servers import servers, vmids
from conductor.store.servers import vm_states as store
from conductor.store.transactions import Transaction


class Acceptance:
    """Looks at the VM, and writes the record."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    def adopt(self, ctxt: RequestContext, asked: Adoption) -> tuple[Adopted, Operation]:
        """See ``ConductorRpc.adopt``."""
        found = self._inspect(ctxt, asked)
        refused = candidate.refusal(found, asked.cluster, self._cloud.id)
        if refused is None and asked.flavor is not None:
            refused = candidate.too_small(asked.flavor, found)
        if refused is not None:
            raise refused
        operation = self._cloud.store.run(lambda c: self._write(c, ctxt, asked, found))
        return Adopted(operation.server_uuid, operation.id), operation

    def _inspect(self, ctxt: RequestContext, asked: Adoption) -> Inspection:
        with self._cloud.store.read() as connection:
            if not store.hosts_of(connection, asked.cluster):
                raise NotFound(f"There is no cluster {asked.cluster}.")
            worker = store.worker_in(connection, asked.cluster, None, self._cloud.down(connection))
        if worker is None:
            raise Unavailable(f"No agent of cluster {asked.cluster} answers.")
        return self._cloud.compute.ask(ctxt, Agent(worker, asked.cluster), Inspect(asked.vmid))

    def _write(
        self, connection: Transaction, ctxt: RequestContext, asked: Adoption, found: Inspection
    ) -> Operation:
        """Write the record, its VMID, ports and quota. Raises Conflict, QuotaExceeded."""
        facts = _host(connection, asked.cluster, found.node)
        uuid = self._uuid(connection, found)
        flavor = asked.flavor or candidate.flavor(found, uuid)
        each = {"instances": 1, "cores": flavor.vcpus, "ram": flavor.memory_mib}
        quota = quotas.take(connection, asked.project_id, self._cloud.quota, each)
        target = Place(facts.host, facts.uuid, asked.cluster, found.node, asked.vmid)
        plan = Plan(target)
        resource = (ResourceType.SERVER, uuid)
        new = start.new(
            self._cloud,
            "adopt",
            resource,
            asked.project_id,
            plan,
            params=AdoptParams(
                found.smbios_uuid,
                start=found.unstarted,
                again=candidate.is_marked_ours(found, self._cloud.id),
            ),
            quota=quota,
        )
        operation = ledger.insert(connection, ctxt, [new])[0]
        vmids.claim(connection, asked.cluster, asked.vmid, uuid, operation.id)
        unknown_vms.forget(connection, asked.cluster, [asked.vmid])
        nics = _ports(connection, asked, found, uuid)
        row = _record(asked, found, flavor, operation, facts, nics)
        servers.insert(connection, [row])
        _record_step(connection, operation, found, nics)
        call_answers.note(connection, Adopted(uuid, operation.id))
        return operation

    def _uuid(self, connection: Transaction, found: Inspection) -> str:
        """Return the server's UUID: the one in the VM's mark, if this cloud lost its record."""
        if not candidate.is_marked_ours(found, self._cloud.id):
            return _free_uuid(connection, found)
        uuid = str(found.marked_by)
        if servers.exists(connection, uuid):
            raise Conflict(f"VM {found.vmid} carries the mark of server {uuid}, which exists.")
        return uuid


def _host(connection: Transaction, cluster: str, node: str) -> HostFacts:
    there = store.hosts_of(connection, cluster).get(node)
    if there is None:
        raise Conflict(f"The VM is on node {node}, which no agent has reported.")
    return registry.host(connection, there.host, lock=True)[0]


def _free_uuid(connection: Transaction, found: Inspection) -> str:
    """Return the VM's own UUID, unless a server has, or had, it; else a new one."""
    own = candidate.own_uuid(found)
    if own is None:
        return ids.new_uuid()
    return ids.new_uuid() if servers.exists(connection, own) else own


def _ports(connection: Transaction, asked: Adoption, found: Inspection, uuid: str) -> list[Nic]:
    known = candidate.known_nics(found.nics, networks.usable(connection, asked.project_id))
    return [
        adopted_ports.port(connection, uuid, asked.project_id, position, nic, network)
        for position, (nic, network) in enumerate(known)
    ]


def _record_step(
    connection: Transaction, operation: Operation, found: Inspection, nics: list[Nic]
) -> None:
    """Write what was seen and recorded, as the adoption's first step."""
    recorded = {nic.mac for nic in nics}
    detail: Mapping[str, Any] = {
        "node": found.node,
        "vcpus": found.vcpus,
        "memory_mib": found.memory_mib,
        "disk_gib": found.disk_gib,
        "power_state": PowerState(found.power_state).name,
        "ports": sorted(recorded),
        "unknown_networks": [nic.bridge for nic in found.nics if nic.mac not in recorded],
    }
    now = clock.utcnow()
    step = Step("conductor_inspect_vm", 0, operation.started_at, now, "Success", detail=detail)
    ledger.upsert_events(connection, [ledger.conductor_event(operation, step)])


def _record(
    asked: Adoption,
    found: Inspection,
    flavor: FlavorSnapshot,
    operation: Operation,
    facts: HostFacts,
    nics: list[Nic],
) -> dict[str, Any]:
    """Return the row of the server; what only a build needs is empty."""
    name = candidate.name(asked, found)
    return {
        "uuid": operation.server_uuid,
        "project_id": asked.project_id,
        "user_id": asked.user_id,
        "name": name,
        "hostname": hostname_of(name, operation.server_uuid),
        "vm_state": VmState.BUILDING,
        "task_state": TaskState.ADOPTING,
        "power_state": found.power_state,
        "operation_id": operation.id,
        "reservation_id": f"r-{secrets.token_hex(4)}",
        "flavor": codec.loads(codec.dumps(flavor)),
        "vcpus": flavor.vcpus,
        "memory_mib": flavor.memory_mib,
        "disk_gib": flavor.disk_gib,
        "image_properties": {},
        "config_drive": False,
        "availability_zone": facts.availability_zone,
        "host": facts.host,
        "node": found.node,
        "cluster": asked.cluster,
        "vmid": asked.vmid,
        "meta": {},
        "tags": [],
        "addresses": guest_data.addresses(nics),
        "scheduler_hints": {},
        "security_groups": [],
        "held": False,
        "created_at": clock.utcnow(),
    }
