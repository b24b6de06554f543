"""What is asked of the agents of a cluster and answered at once: nothing of it is an operation."""

from __future__ import annotations

import datetime
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, Protocol, cast

from typing_extensions import TypeVar

from common.codec import Tagged, named_by
from common.messages.commands import StrictGroup
from common.messages.consoles import ConsoleTarget
from common.messages.facts import HaService, Inspection, OtherVm, VmStates
from common.messages.filters import Filter, FilterCheck, Filtered
from common.messages.guests import Diagnostics, GuestTarget, PasswordProblem
from common.messages.inventory import ClusterInventory
from common.messages.measurements import Measured, Period
from common.messages.tasks import TaskFacts

A_co = TypeVar("A_co", covariant=True, default=Any)

#: of a question whose answer needs a look at a whole cluster: an inventory lists every storage
LONG_SECONDS = 300.0


class Reachable(Protocol):
    """Where a question is sent: an ``Agent``, or the target of a VM."""

    @property
    def worker(self) -> str:
        """The worker that carries an agent of the cluster."""

    @property
    def cluster(self) -> str:
        """Its name."""


@dataclass(frozen=True)
class Agent:
    """Any agent of a cluster."""

    worker: str
    cluster: str


@dataclass(frozen=True)
class Question(Tagged, Generic[A_co]):
    """Base of all questions. Its class names the class of the answer.

    The asker gets Unavailable when the worker doesn't answer, or has no agent of the cluster,
    and, unless the class says otherwise, when the cluster doesn't answer.
    """

    seconds: ClassVar[float | None] = 20.0
    """How long an answer is waited for: within the time that an API waits for its conductor.
    None: as long as for any call."""

    @classmethod
    def answer(cls) -> type[A_co]:
        """Return the type of its answer."""
        return cast("type[A_co]", named_by(cls))


@dataclass(frozen=True)
class ReadInventory(Question[ClusterInventory]):
    """Everything in the cluster that may be ours, as the worker sees it now."""

    seconds = LONG_SECONDS
    known: tuple[int, ...] = ()
    """VMIDs that the record explains: only those in ``read`` are looked at closely."""
    read: tuple[int, ...] = ()


@dataclass(frozen=True)
class Inspect(Question[Inspection]):
    """A close look at one VM; ``failure`` in the answer says why that was not possible."""

    vmid: int
    node: str | None = None
    """Where it should be."""
    server_uuid: str | None = None
    """Whose it should be."""


@dataclass(frozen=True)
class LookAtOthers(Question[list[OtherVm]]):
    """VMs and containers that the record doesn't know, with their interfaces.

    Without those that are absent, or can't be read.
    """

    seconds = 60.0
    wanted: tuple[OtherVm, ...]


@dataclass(frozen=True)
class LookAtAll(Question[VmStates]):
    """All VMs of the cluster by a refresh that begins after the question, and the operations that
    the worker carries out then: one report, with everything of the band."""

    seconds = 60.0


@dataclass(frozen=True)
class FindHaService(Question[HaService | None]):
    """The HA manager's state of a VM; None: the VM is no HA resource."""

    vmid: int


@dataclass(frozen=True)
class ConvergeAffinity(Question[None]):
    """Make a strict server group in the cluster have exactly these VMs; none: remove it."""

    seconds = LONG_SECONDS
    cloud: str
    group: StrictGroup
    members: tuple[tuple[int, str], ...] = ()
    """VMID and the server's UUID: a VM that isn't the server's is left out."""


@dataclass(frozen=True)
class SteerMigration(Question[str | None]):
    """Abort a live migration that runs, or have it end at once.

    The answer is why that can't be, which may be that the cluster doesn't answer.
    """

    vmid: int
    node: str
    server_uuid: str
    abort: bool


@dataclass(frozen=True)
class CheckConsole(Question[str | None]):
    """Why the VM can have no such console, or None; it need not run."""

    target: ConsoleTarget


@dataclass(frozen=True)
class OpenConsole(Question[None]):
    """Open a console and connect it to the proxy that asks; answered when it is.

    Raises Conflict where too many are open, Unavailable where the VM doesn't run, or the cluster
    or, to the worker, the proxy doesn't answer.
    """

    seconds = None
    target: ConsoleTarget
    relay_url: str
    """Of the proxy, for agents."""
    grant: str = field(repr=False, default="")
    """Proves to the proxy that the connection is the one it waits for; good once."""


@dataclass(frozen=True)
class ReadConsoleLog(Question[str | None]):
    """The worker's log of a server's serial line; None: the worker has no logs."""

    server_uuid: str


@dataclass(frozen=True)
class Diagnose(Question[Diagnostics]):
    """How a server's VM does now."""

    target: GuestTarget


@dataclass(frozen=True)
class Measure(Question[Measured]):
    """What was measured of a node, one of its storages, or a VM.

    The hypervisor is asked once a minute at most; see ``compute.observed.measurements``.
    """

    node: str
    period: Period
    vmid: int | None = None
    since: datetime.datetime | None = None
    """When the VMID became the server's: what is older is somebody else's, and left out."""
    storage: str | None = None


@dataclass(frozen=True)
class ListTasks(Question[list[TaskFacts]]):
    """The newest tasks of a node, those that run first, those of all users."""

    node: str
    limit: int


@dataclass(frozen=True)
class ConvergeFilter(Question[Filtered]):
    """Write a VM's firewall as its security groups want it; it never opens in between.

    Raises Unavailable also where the VM isn't the server's.
    """

    target: GuestTarget
    wanted: Filter


@dataclass(frozen=True)
class CheckFilter(Question[FilterCheck]):
    """Compare a VM's firewall with what its security groups want.

    Raises Unavailable as ``ConvergeFilter`` does.
    """

    target: GuestTarget
    wanted: Filter


@dataclass(frozen=True)
class SetPassword(Question[PasswordProblem | None]):
    """Set a user's password in the guest. Sent once; it is stored nowhere.

    The answer is why it was not set, or None.
    """

    target: GuestTarget
    user: str
    password: str = field(repr=False, default="")
