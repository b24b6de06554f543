"""The RPC doors of one worker: take a command, answer at once, let the pool work."""

from __future__ import annotations

import collections
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from oslo_context import context as oslo_context

from common import clock, codec
from common.aggregates import Ratios
from common.context import RequestContext
from common.errors import Unavailable
from common.log import logger
from common.messages.commands import (
    Build,
    CacheImage,
    Command,
    Destroy,
    Mark,
    Power,
    RetireTemplate,
    StrictGroup,
)
from common.messages.facts import Inspection
from common.messages.reports import Category, Failure, Outcome, Report
from compute import build, cache, destroy, mark, power, retire
from compute.heartbeat import Heart
from compute.hypervisor.port import Abandoned, Hypervisor, HypervisorError
from compute.job import Job
from compute.messages import ClusterInventory
from compute.workpool import WorkPool

LOG = logger(__name__)

K = TypeVar("K")
V = TypeVar("V")

#: servers whose destroy is remembered, so that a build that comes late makes nothing, and
#: outcomes that are told again, so that a command that comes twice does nothing
REMEMBERED = 10_000


class Manager:
    """Endpoint of the ``compute`` topic; its public methods are the protocol."""

    def __init__(
        self,
        hypervisors: Mapping[str, Hypervisor],
        report: Callable[[Report], None],
        threads: int,
        graceful_seconds: int,
    ) -> None:
        self._hypervisors = hypervisors
        self._report = report
        self._graceful_seconds = graceful_seconds
        self._destroyed: collections.OrderedDict[str, int] = collections.OrderedDict()
        self._answers: collections.OrderedDict[tuple[int, int], Outcome] = (
            collections.OrderedDict()
        )
        self._began_at = clock.utcnow()
        self._lock = threading.Lock()
        self._pool = WorkPool(threads, self._run)
        self._heart: Heart | None = None

    def set_heart(self, heart: Heart) -> None:
        """Give the manager its heart, which needs to know what the manager works on."""
        self._heart = heart

    @property
    def pool(self) -> WorkPool:
        """Where the jobs run."""
        return self._pool

    def build(self, ctxt: RequestContext, command: Mapping[str, Any]) -> None:
        """Take a Build."""
        self._take(ctxt, codec.load(Build, command))

    def destroy(self, ctxt: RequestContext, command: Mapping[str, Any]) -> None:
        """Take a Destroy; a build of the same server is cancelled."""
        self._take(ctxt, codec.load(Destroy, command))

    def power(self, ctxt: RequestContext, command: Mapping[str, Any]) -> None:
        """Take a Power."""
        self._take(ctxt, codec.load(Power, command))

    def cache_image(self, ctxt: RequestContext, command: Mapping[str, Any]) -> None:
        """Take a CacheImage."""
        self._take(ctxt, codec.load(CacheImage, command))

    def retire_template(self, ctxt: RequestContext, command: Mapping[str, Any]) -> None:
        """Take a RetireTemplate."""
        self._take(ctxt, codec.load(RetireTemplate, command))

    def inventory(
        self, ctxt: RequestContext, cluster: str, known: list[int], read: Sequence[int] = ()
    ) -> ClusterInventory:
        """See ``ComputeClient.inventory``."""
        hypervisor = self._carried(cluster)
        try:
            return hypervisor.inventory(known, read)
        except HypervisorError as error:
            raise Unavailable(f"Cluster {cluster} can't be looked at: {error.message}") from error

    def converge_affinity(
        self,
        ctxt: RequestContext,
        cluster: str,
        cloud: str,
        group: Mapping[str, Any],
        members: list[tuple[int, str]],
    ) -> None:
        """See ``ComputeClient.converge_affinity``."""
        wanted = codec.load(StrictGroup, group)
        try:
            self._carried(cluster).converge_affinity(cloud, wanted, dict(members))
        except HypervisorError as error:
            raise Unavailable(f"Cluster {cluster} takes no rule: {error.message}") from error

    def forget_group(self, ctxt: RequestContext, cluster: str, cloud: str, group: str) -> None:
        """See ``ComputeClient.forget_group``."""
        try:
            nobody = StrictGroup(group, apart=False)
            self._carried(cluster).converge_affinity(cloud, nobody, {})
        except (HypervisorError, Unavailable) as error:
            LOG.warning("Cluster %s still knows of group %s: %s", cluster, group, error.message)

    def mark(self, ctxt: RequestContext, command: Mapping[str, Any]) -> None:
        """Take a Mark."""
        self._take(ctxt, codec.load(Mark, command))

    def inspect(
        self,
        ctxt: RequestContext,
        cluster: str,
        vmid: int,
        node: str | None,
        server_uuid: str | None,
    ) -> Inspection:
        """See ``ComputeClient.inspect``."""
        hypervisor = self._carried(cluster)
        try:
            return hypervisor.inspect(vmid, node, server_uuid)
        except HypervisorError as error:
            return Inspection(vmid, failure=Failure(error.category, error.message))

    def _carried(self, cluster: str) -> Hypervisor:
        """Raises Unavailable when this worker carries no agent of the cluster."""
        hypervisor = self._hypervisors.get(cluster)
        if hypervisor is None:
            raise Unavailable(f"This worker carries no agent of cluster {cluster}.")
        return hypervisor

    def tick(self, ctxt: RequestContext) -> None:
        """The worker's own tick was consumed: that is the heartbeat."""
        if self._heart is not None:
            self._heart.beat()

    def _take(self, ctxt: RequestContext, command: Command) -> None:
        ctxt.server_uuid = command.server_uuid
        if self._is_old(command):
            LOG.info("Operation %d was sent to a process that is no more.", command.operation_id)
            return
        job = Job(command, ctxt, self._report)
        if command.placed.cluster not in self._hypervisors:
            problem = f"This worker carries no agent of cluster {command.placed.cluster}."
            job.journal.close(_refusal(job, Category.CONFIGURATION, problem))
        elif self._overtaken(command):
            problem = "The server was destroyed meanwhile."
            job.journal.close(_refusal(job, Category.CREATION_FAILED, problem))
        elif (answer := self._answered(command)) is not None:
            job.journal.close(answer)
        elif not self._pool.submit(job):
            # It is being worked on: saying so renews its lease.
            self.tick(ctxt)

    def _is_old(self, command: Command) -> bool:
        """Whether it may be a copy of what was done, and undone since, before this process began.

        It is not answered: the first heartbeat ends what leases an earlier process had, and what
        is still to be done is sent again. A Destroy does no harm, nor does what has no lease.
        """
        if command.sent_at is None or not isinstance(command, Build | Power | Mark):
            return False
        return command.sent_at < self._began_at

    def _overtaken(self, command: Command) -> bool:
        """Whether a Destroy of the server was taken that a late command must not undo.

        That is one of a later operation, or of the command's own, which has been given up then.
        Remembers the command if it is a Destroy.
        """
        server, operation_id = command.server_uuid, command.operation_id
        with self._lock:
            last = self._destroyed.get(server, -1)
            if isinstance(command, Destroy):
                _remember(self._destroyed, server, max(last, operation_id))
                return False
            return last >= operation_id

    def _answered(self, command: Command) -> Outcome | None:
        """What the command ended with when it came before."""
        if isinstance(command, Destroy):
            return None
        with self._lock:
            return self._answers.get((command.operation_id, command.attempt))

    def _keep(self, command: Command, outcome: Outcome) -> None:
        """Keep what must not be done again when the command is sent again.

        A build that left nothing may have been given up, its VMID too, by the time that it would
        run again; a reboot would be a second one.
        """
        given_up = isinstance(command, Build) and not outcome.ok and outcome.gone
        if given_up or isinstance(command, Power):
            with self._lock:
                _remember(self._answers, (command.operation_id, command.attempt), outcome)

    def _run(self, job: Job) -> Outcome | None:
        oslo_context.RequestContext.update_store(job.ctxt)
        command = job.command
        try:
            outcome = self._carry_out(job, command)
            # While the job is still in its line, where it is found when it comes again.
            self._keep(job.command, outcome)
            _tell(command, outcome)
            return outcome
        except Abandoned:
            LOG.info("Operation %d is left to whoever gets its lease.", command.operation_id)
            return None
        except Exception:
            LOG.exception("Operation %d broke.", command.operation_id)
            return _refusal(job, Category.UNKNOWN_OUTCOME, "The agent broke; see its log.")

    def _carry_out(self, job: Job, command: Command) -> Outcome:
        hypervisor = self._hypervisors[command.placed.cluster]
        if isinstance(command, RetireTemplate):
            return retire.retire(job, hypervisor, command)
        if isinstance(command, Mark):
            return mark.mark(job, hypervisor.custody(job), command)
        machine = hypervisor.machine(job)
        if isinstance(command, CacheImage):
            return cache.cache(job, machine, command)
        if isinstance(command, Build):
            return build.build(job, machine, command, hypervisor.group_writer(command))
        if isinstance(command, Destroy):
            return destroy.destroy(job, machine, command, self._graceful_seconds)
        if isinstance(command, Power):
            return power.power(job, machine, command, self._graceful_seconds)
        raise TypeError(type(command).__name__)


def _remember(memory: collections.OrderedDict[K, V], key: K, value: V) -> None:
    """Keep it, the oldest ones make room."""
    memory[key] = value
    memory.move_to_end(key)
    if len(memory) > REMEMBERED:
        memory.popitem(last=False)


def _tell(command: Command, outcome: Outcome) -> None:
    """One line about the end of a command."""
    name, where = type(command).__name__, command.placed
    if outcome.failure is None:
        LOG.info("%s of VM %d on %s is done.", name, where.vmid, where.node)
    else:
        LOG.error(
            "%s of VM %d on %s failed (%s): %s",
            *(name, where.vmid, where.node, outcome.failure.category, outcome.failure.message),
        )


def _refusal(job: Job, category: Category, message: str) -> Outcome:
    host = job.command.placed.host
    return Outcome(False, failure=Failure(category, message, host=host, clean=False))


class Introducer:
    """Endpoint of the worker's own topic."""

    def __init__(self, introduce: Callable[[], None]) -> None:
        self._introduce = introduce

    def introduce(self, ctxt: RequestContext) -> None:
        """See ``ComputeClient.introduce``."""
        self._introduce()


class Announcer:
    """Endpoint of the announce topic."""

    def __init__(self, heart: Heart, ratios: Callable[[Ratios], None]) -> None:
        """``ratios`` takes over what hosts may promise."""
        self._heart, self._ratios = heart, ratios

    def announce(self, ctxt: RequestContext) -> None:
        """Say everything: somebody just started and knows nothing."""
        self._heart.announce()

    def update_ratios(self, ctxt: RequestContext, told: dict[str, Any]) -> None:
        """Take over what aggregates say of overcommitting."""
        self._ratios(codec.load(Ratios, told))
