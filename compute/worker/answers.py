"""What an agent can be asked: each question, and what answers it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from common.errors import Unavailable
from common.messages.facts import Inspection, VmStates
from common.messages.questions import (
    CheckConsole,
    CheckFilter,
    ConvergeAffinity,
    ConvergeFilter,
    Diagnose,
    FindHaService,
    Inspect,
    ListTasks,
    LookAtAll,
    LookAtOthers,
    Measure,
    OpenConsole,
    Question,
    ReadConsoleLog,
    ReadInventory,
    SetPassword,
    SteerMigration,
)
from common.messages.reports import Failure
from compute.hypervisor.port import Hypervisor, HypervisorError
from compute.observed.console_logs import ConsoleLogs
from compute.observed.consoles import Consoles
from compute.observed.measurements import Measurements

Q_co = TypeVar("Q_co", covariant=True)
A_co = TypeVar("A_co", covariant=True)


@dataclass(frozen=True)
class Asked:
    """What can answer: the driver of a cluster, and what the worker has of all clusters."""

    hypervisor: Hypervisor
    consoles: Consoles
    logs: ConsoleLogs
    measurements: Measurements
    look: Callable[[str], VmStates]
    """Refreshes a cluster, and returns all its VMs."""


class _Kind(Protocol[Q_co, A_co]):
    """The class of a question, which names the class of its answer."""

    def __call__(self, *args: Any, **values: Any) -> Q_co: ...

    def answer(self) -> type[A_co]: ...


_Failed = Callable[[Asked, Any, HypervisorError], Any]
_Row = tuple[Callable[[Asked, Any], Any], _Failed]


def _by(
    kind: _Kind[Q_co, A_co],
    answer: Callable[[Asked, Q_co], A_co],
    failed: Callable[[Asked, Q_co, HypervisorError], A_co],
) -> tuple[Any, _Row]:
    """Return a row of the table, whose answer is that of its question."""
    return kind, (answer, failed)


def _unavailable(text: str) -> _Failed:
    """Return what raises Unavailable; ``text`` may name ``{cluster}``, and ``{one}``: what was
    asked."""

    def refuse(at: Asked, question: Any, error: HypervisorError) -> Any:
        begin = text.format(cluster=at.hypervisor.cluster, one=question)
        raise Unavailable(f"{begin}: {error.message}") from error

    return refuse


def _not_inspected(at: Asked, one: Inspect, error: HypervisorError) -> Inspection:
    return Inspection(one.vmid, failure=Failure(error.category, error.message))


_UNSEEN = _unavailable("VM {one.target.vmid} can't be looked at")
_CLUSTER_UNSEEN = _unavailable("Cluster {cluster} can't be looked at")

#: question → the function that answers it, and the one for a cluster that doesn't answer
ANSWERS: Mapping[type[Question], _Row] = dict(
    (
        _by(CheckConsole, lambda at, one: at.consoles.problem(at.hypervisor, one.target), _UNSEEN),
        _by(
            CheckFilter,
            lambda at, one: at.hypervisor.check_filter(one.target, one.wanted),
            _unavailable("The firewall of VM {one.target.vmid} can't be read"),
        ),
        _by(
            ConvergeAffinity,
            lambda at, one: at.hypervisor.converge_affinity(
                one.cloud, one.group, dict(one.members)
            ),
            _unavailable("Cluster {cluster} takes no rule"),
        ),
        _by(
            ConvergeFilter,
            lambda at, one: at.hypervisor.converge_filter(one.target, one.wanted),
            _unavailable("VM {one.target.vmid} can't be filtered"),
        ),
        _by(Diagnose, lambda at, one: at.hypervisor.diagnose(one.target), _UNSEEN),
        _by(
            FindHaService,
            lambda at, one: at.hypervisor.ha_service(one.vmid),
            _unavailable("High availability can't be asked"),
        ),
        _by(
            Inspect,
            lambda at, one: at.hypervisor.inspect(one.vmid, one.node, one.server_uuid),
            _not_inspected,
        ),
        _by(
            ListTasks,
            lambda at, one: at.hypervisor.list_tasks(one.node, one.limit),
            _unavailable("Tasks of {one.node} can't be read"),
        ),
        _by(LookAtAll, lambda at, _: at.look(at.hypervisor.cluster), _CLUSTER_UNSEEN),
        _by(
            LookAtOthers,
            lambda at, one: at.hypervisor.look_at_others(one.wanted),
            _CLUSTER_UNSEEN,
        ),
        _by(
            Measure,
            lambda at, one: at.measurements.read(at.hypervisor, one),
            _unavailable("Measurements of {one.node} can't be read"),
        ),
        _by(OpenConsole, lambda at, one: at.consoles.open(at.hypervisor, one), _UNSEEN),
        _by(ReadConsoleLog, lambda at, one: at.logs.text(one.server_uuid), _UNSEEN),
        _by(
            ReadInventory,
            lambda at, one: at.hypervisor.inventory(one.known, one.read),
            _CLUSTER_UNSEEN,
        ),
        _by(
            SetPassword,
            lambda at, one: at.hypervisor.set_password(one),
            _unavailable("VM {one.target.vmid} can't be reached"),
        ),
        _by(
            SteerMigration,
            lambda at, one: at.hypervisor.steer_migration(
                one.vmid, one.node, one.server_uuid, one.abort
            ),
            lambda at, one, error: error.message,
        ),
    )
)


def answer(at: Asked, question: Question) -> Any:
    """Return the answer, of the class that the question names. Raises as the question says."""
    answered, failed = ANSWERS[type(question)]
    try:
        return answered(at, question)
    except HypervisorError as error:
        return failed(at, question, error)
