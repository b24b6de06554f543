"""Create: a build, from the record to ACTIVE or ERROR, in reading order.

Each stage ends in one transaction that stores what it decided and moves the server on; a conductor
that takes over continues from the committed stage. No agent is called before node, VMID, names and
addresses are committed.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from common import clock
from common.errors import Conflict, Invalid, NetworkNotFound, StaleTransition
from common.log import logger
from common.messages.commands import Build, Image, StrictGroup, Template
from common.messages.facts import HostFacts
from common.messages.reports import Built, Category, Failure, Step
from common.resources.states import TaskState, VmState
from conductor.cloud import Cloud, placed
from conductor.engine import batch_close, overslept
from conductor.engine.batch_close import Ended, Ending
from conductor.engine.stages import Stage, Table, Task, answer
from conductor.engine.transition_draft import TransitionDraft, require_building
from conductor.images import image_source
from conductor.plans import CreatePlan, Interface
from conductor.servers import build_command, guest_data
from conductor.servers.create.batch import Together
from conductor.servers.create.commits import Moved
from conductor.servers.create.make_volumes import MakeVolumes
from conductor.servers.create.schedule import Placing
from conductor.servers.create.unwind import Unwinding
from conductor.store.hosts import registry
from conductor.store.images import templates
from conductor.store.ledger import batches, leases
from conductor.store.ledger import operations as ledger
from conductor.store.networks import networks
from conductor.store.networks.filtering import filters
from conductor.store.networks.networks import Port, RequestedPort, ServerPorts
from conductor.store.networks.pools import Unsettled
from conductor.store.records import Operation, Server
from conductor.store.servers import server_groups, servers
from conductor.store.transactions import Transaction
from conductor.store.volumes import attachments
from conductor.sync import claims

LOG = logger(__name__)

T = TypeVar("T")

#: how long a build waits until the VMs of its cluster were looked at, which follows a start
UNSETTLED_SECONDS = 1.0


class Create:
    """The flow of the action ``create``."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud
        self._unwinding = Unwinding(cloud, self.table)
        self._placing = Placing(cloud, self._unwinding, self._go_on)
        self._volumes = MakeVolumes(cloud, self._unwinding)
        # After a decision for a whole request each build is started by the runner.
        decide = functools.partial(self._decide, go_on=False)
        self._together = Together(cloud, decide)

    def table(self) -> Table[Task]:
        """Return the stages, from the record to the command."""
        vm, reserved, claim = self._unwinding.undos
        return Table(
            (
                Stage("place", self._place, shown=TaskState.SCHEDULING, undo=claim),
                Stage("network", self._network, shown=TaskState.NETWORKING, undo=reserved),
                Stage("map_disk", self._map_disk, shown=TaskState.BLOCK_DEVICE_MAPPING),
                Stage(
                    "spawn",
                    self._spawn,
                    answer(Build, self._on_outcome),
                    TaskState.SPAWNING,
                    undo=vm,
                ),
            ),
            on_superseded=self._unwinding.on_superseded,
            on_deadline=self._on_deadline,
            undone=self._unwinding.undone,
            has_finished=_is_over,
            # It may have made a VM for a server that was deleted before.
            on_late_outcome=self._unwinding.on_late_outcome,
        )

    def begin_many(self, operations: Sequence[Operation]) -> Iterator[tuple[Operation, bool]]:
        """Place the servers of one create by one decision.

        Yields the operations that have not ended, each with its new record and whether its build
        continues from here; the others begin by themselves.
        """
        moved = self._decide(operations)
        return (
            (operation, False) if went is None else (went[0], True)
            for operation, went in zip(operations, moved, strict=True)
        )

    def _decide(
        self, operations: Sequence[Operation], *, go_on: bool = True
    ) -> Iterator[Moved | None]:
        """Place them by one decision; see ``Placing.place_many``."""
        uuids = [operation.server_uuid for operation in operations]
        with self._cloud.store.read() as connection:
            found = servers.get_many(connection, uuids)
        mine = [(op, found[op.server_uuid]) for op in operations]
        for operation, server in mine:
            if server.operation_id != operation.id:
                raise StaleTransition(server_uuid=server.uuid, operation_id=operation.id)
            require_building(operation, server)
        return self._placing.place_many(mine, go_on=go_on)

    # --- the stages

    def _draft(self, operation: Operation, server: Server) -> TransitionDraft:
        return TransitionDraft(self._cloud.name, operation, server)

    def _place(self, task: Task) -> Task | None:
        """Run the stage ``scheduling``, unless it was decided for all of its create at once."""
        if self._decides_together(task):
            return None
        if not task.fresh and task.operation.plan.target.host is None:
            task = self._with_claim_passed_on(task)
        if task.operation.planned(CreatePlan).too_few:
            self._placing.give_up(task.operation, task.server)
            return None
        moved = self._placing.place(task.operation, task.server)
        return None if moved is None else dataclasses.replace(_task(moved), fresh=task.fresh)

    def _with_claim_passed_on(self, task: Task) -> Task:
        """Pass on the claim of the host that was left; else a claim may have been made that was
        never stored, and is released."""
        operation, placement = task.operation, self._cloud.placement
        plan = operation.planned(CreatePlan)
        if not plan.left:
            placement.release(task.server.uuid)
            return task
        claims.pass_on(placement, task.server, plan.left)
        plan = dataclasses.replace(plan, left="")
        # From now on the removal may begin, however long this build looks for a host.
        self._cloud.store.run(lambda c: ledger.save(c, operation.id, plan=plan))
        return dataclasses.replace(task, operation=dataclasses.replace(operation, plan=plan))

    def _go_on(
        self, connection: Transaction, placed: Sequence[tuple[TransitionDraft, HostFacts]]
    ) -> None:
        """Do the stages that follow in the transaction that commits the hosts, as far as they go.

        Raises what they raise; by themselves they say what is wrong.
        """
        self._connect(connection, [draft for draft, _ in placed])
        images = _once_per_host(functools.partial(image_source.image, connection))
        reserved = _once_per_host(functools.partial(_template, connection))
        for draft, facts in placed:
            if draft.operation.planned(CreatePlan).has_volumes:
                continue
            image = images(draft.server.root_image_id, facts)
            if image is not None:
                self._choose_disk(draft, facts, image, reserved)

    def _decides_together(self, task: Task) -> bool:
        """Return whether it is one of several bound by ``min_count``, to be decided first."""
        if task.fresh or not batches.is_undecided(task.operation):
            return False
        self._together.resume(task.operation)
        return True

    def _on_deadline(self, task: Task) -> None:
        if task.overslept and placed(task.operation) is not None:
            # A VM may have got the VMID and be in use: without it in the record, an audit would
            # take that for a leftover of this build.
            overslept.leave(self._cloud.store, self.table(), task, overslept.unseen(task))
            return
        failure = _timed_out(task.operation, task.server)
        self._unwinding.fail(task.operation, task.server, failure)

    def _network(self, task: Task) -> Task | None:
        """Run the stage ``networking``; ERROR if the addresses were taken since the request."""
        if task.shown != TaskState.NETWORKING:
            return task
        operation, server = task.operation, task.server

        def work(connection: Transaction) -> Task:
            draft = self._draft(operation, server)
            self._connect(connection, [draft])
            return Task(*draft.write(connection))

        try:
            return self._cloud.store.run(work)
        except StaleTransition:
            raise
        except Unsettled as error:
            LOG.info("The addresses of server %s wait: %s", server.uuid, error.message)
            self._cloud.wait(operation, UNSETTLED_SECONDS)
            return None
        except (Conflict, Invalid, NetworkNotFound) as error:
            failure = Failure(
                Category.NETWORK,
                error.message,
                "conductor_allocate_network",
                owner_message=error.message,
            )
            self._unwinding.fail(operation, server, failure, gone=True)
            return None

    def _connect(self, connection: Transaction, drafts: Sequence[TransitionDraft]) -> None:
        """Create the ports of servers in one cluster, or find those of earlier attempts."""
        started = clock.utcnow()
        there = [self._ports_of(connection, draft.operation) for draft in drafts]
        missing = [_missing(draft, ports) for draft, ports in zip(drafts, there, strict=True)]
        cluster = str(drafts[0].operation.plan.target.cluster)
        some = any(one for server in missing for one in server.requested)
        made = networks.create_ports(
            connection,
            missing,
            self._cloud.conf.networks.mac_prefix,
            filtered=some and self._cloud.filtering.on(connection),
            within=self._cloud.within(cluster),
        )
        for draft, old, new in zip(drafts, there, made, strict=True):
            asked = {one.id: one for one in build_command.interfaces(draft.operation)}
            ports = sorted([*old, *new], key=lambda port: port.position)
            nics = [build_command.nic(port, asked[port.network_id]) for port in ports]
            detail = {"addresses": [ip for nic in nics for ip in nic.ips]}
            draft.record(
                Step(
                    *("conductor_allocate_network", 1, started, clock.utcnow(), "Success"),
                    detail=detail,
                )
            )
            plan = dataclasses.replace(draft.operation.planned(CreatePlan), nics=tuple(nics))
            draft.advance_stage(plan, addresses=guest_data.addresses(nics))

    def _ports_of(self, connection: Transaction, operation: Operation) -> list[Port]:
        """Return the ports that a server may have from an earlier attempt, or from its user."""
        named = any(one.port_id for one in build_command.interfaces(operation))
        if operation.attempt == 1 and not named:
            return []
        return networks.ports_of(connection, operation.server_uuid)

    def _map_disk(self, task: Task) -> Task | None:
        """Run the stage ``block_device_mapping``: volumes are made, and the image is looked up.

        ERROR if the image has left the cluster.
        """
        if task.shown != TaskState.BLOCK_DEVICE_MAPPING:
            return task
        operation, server = task.operation, task.server
        if operation.planned(CreatePlan).has_volumes and not self._volumes.are_made(task):
            return None
        with self._cloud.store.read() as connection:
            facts, _ = registry.host(connection, str(operation.plan.target.host))
            image = image_source.image(connection, server.root_image_id, facts)
        if image is None and not server.volume_backed:
            text = f"Image {server.image_id} is no longer in cluster {facts.cluster}."
            self._unwinding.fail(
                operation, server, Failure(Category.IMAGE_NOT_FOUND, text), gone=True
            )
            return None

        def work(connection: Transaction) -> Task:
            draft = self._draft(operation, server)
            reserved = functools.partial(_template, connection)
            self._choose_disk(draft, facts, image, reserved)
            return _task(draft.write(connection))

        return self._cloud.store.run(work)

    def _choose_disk(
        self,
        draft: TransitionDraft,
        facts: HostFacts,
        image: Image | None,
        reserved: Callable[[str | None, HostFacts], Template | None],
    ) -> None:
        """Reserve the template to clone from, if the host can clone it; pass on the lease.

        A server that boots from a volume needs no image.
        """
        template = None
        clones = facts.capabilities.get("linked_clone") or facts.capabilities.get("full_clone")
        if image is not None and ((clones and not image.cd) or image.template_only):
            template = reserved(image.id, facts)
        plan = draft.operation.planned(CreatePlan)
        draft.advance_stage(dataclasses.replace(plan, image=image, template=template))
        draft.hand_over(str(plan.worker), self._cloud.lease_seconds)

    def _spawn(self, task: Task) -> None:
        """Send the command; it may be repeated."""
        operation, server = task.operation, task.server
        host = str(operation.plan.target.host)
        # The scheduler has just seen the agent alive; later it is checked again.
        planned = operation.planned(CreatePlan).worker
        begun = task.fresh and leases.worker_with(operation.lease_owner) == planned
        worker = planned if task.handed_over or begun else self._cloud.take_to(operation, host)
        if worker is None:
            self._unwinding.on_silence(operation, server)
            return
        vmid = operation.plan.target.vmid
        LOG.info("Sending the build of server %s to host %s, VMID %s.", server.uuid, host, vmid)
        group = self._group(server)
        attached = self._attached(task)
        command = build_command.build(operation, server, group, attached)
        if any(nic.filtered for nic in command.nics):
            with self._cloud.store.read() as connection:
                wanted = filters.wanted(connection, server.uuid)
            command = dataclasses.replace(command, filter=wanted)
        self._cloud.compute.execute(operation.ctxt, worker, command)

    def _attached(self, task: Task) -> list[Any]:
        """Return the server's volumes."""
        if not task.operation.planned(CreatePlan).has_volumes:
            return []
        with self._cloud.store.read() as connection:
            return attachments.of_server(connection, task.server.uuid)

    def _group(self, server: Server) -> StrictGroup | None:
        if server.server_group_uuid is None:
            return None
        with self._cloud.store.read() as connection:
            found = server_groups.strict(connection, [server.server_group_uuid])
        return found.get(server.server_group_uuid)

    def _on_outcome(self, task: Task, outcome: Built) -> None:
        """Take the agent's outcome: ACTIVE, another attempt, or ERROR."""
        if not outcome.ok:
            self._unwinding.failed(task.operation, task.server, outcome)
            return
        self._cloud.store.run(lambda connection: _write_active(connection, [Ended(task, outcome)]))
        LOG.info("Server %s is active on %s.", task.server.uuid, task.server.host)


def _task(moved: Moved) -> Task:
    """Return the task of a build that has just moved on, maybe to its agent."""
    return Task(*moved, handed_over=moved[1].task_state == TaskState.SPAWNING)


def ending() -> Ending[Built]:
    """Return how builds end that their agents have carried out."""
    return Ending(Build, _is_built, _write_active)


def _is_built(ended: Ended[Built]) -> bool:
    task, outcome = ended.task, ended.outcome
    return outcome.ok and not task.unwinding and task.server.task_state == TaskState.SPAWNING


def _write_active(connection: Transaction, built: Sequence[Ended[Built]]) -> None:
    now = clock.utcnow()
    batch_close.done(
        connection,
        [
            batch_close.move(
                one, VmState.ACTIVE, power_state=one.outcome.power_state, launched_at=now
            )
            for one in built
        ],
    )
    with_volumes = [
        one.task.server.uuid for one in built if one.task.operation.planned(CreatePlan).has_volumes
    ]
    if with_volumes:
        attachments.built(connection, with_volumes)


def _is_over(task: Task) -> bool:
    return task.server.vm_state != VmState.BUILDING


def _require_ports(interfaces: Sequence[Interface], there: set[int]) -> None:
    """Raise Conflict where the server has lost a port that its user named: another one would have
    another MAC address."""
    for number, interface in enumerate(interfaces):
        if interface.port_id and number not in there:
            raise Conflict(f"Port {interface.port_id} could not be found.")


def _timed_out(operation: Operation, server: Server) -> Failure:
    text = f"The build did not end in time; it was {server.task_state} last."
    if operation.message:
        text += f" It waited: {operation.message}"
    return Failure(Category.TASK_TIMEOUT, text, host=operation.plan.target.host)


def _template(connection: Transaction, image_id: str | None, facts: HostFacts) -> Template | None:
    return templates.reserve(connection, facts, str(image_id))


def _once_per_host(
    read: Callable[[str | None, HostFacts], T],
) -> Callable[[str | None, HostFacts], T]:
    """Return ``read`` of an image and a host, which reads once for equal ones."""
    known: dict[tuple[str | None, str], T] = {}

    def found(image_id: str | None, facts: HostFacts) -> T:
        key = (image_id, facts.host)
        if key not in known:
            known[key] = read(image_id, facts)
        return known[key]

    return found


def _missing(draft: TransitionDraft, ports: Sequence[Port]) -> ServerPorts:
    """Return the ports that a server lacks. Raises Conflict if a port that its user named is
    gone."""
    interfaces = build_command.interfaces(draft.operation)
    there = {port.position for port in ports}
    _require_ports(interfaces, there)
    wanted = [
        None if number in there else _requested_port(one) for number, one in enumerate(interfaces)
    ]
    server = draft.server
    return ServerPorts(server.uuid, server.project_id, wanted, server.security_groups)


def _requested_port(asked: Interface) -> RequestedPort:
    return RequestedPort(asked.id, asked.fixed_ip, asked.tag, asked.port_security)
