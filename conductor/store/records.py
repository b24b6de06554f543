"""The two rows that most of the store passes on: a server's and an operation's. No SQL."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from common.context import RequestContext
from common.messages.commands import Command, Placed
from common.resources.states import ResourceType
from conductor.plans import CommandPlan, Params, Plan
from db.records import OperationRecord, ServerRecord, record

P = TypeVar("P", bound=Plan)
A = TypeVar("A", bound=Params)
C = TypeVar("C", bound=Command)


@record
class Server(ServerRecord):
    """One server's record, without the data for its guest."""

    operation_id: int | None
    cluster: str | None
    vmid: int | None
    vcpus: int
    memory_mib: int
    disk_gib: int
    public_key: str | None
    server_group_uuid: str | None = None
    locked_by: str | None = None
    disk_tag: str | None = None
    security_groups: Sequence[str] = ()
    """Those of the create: ids, or ``default``."""
    member_of: str | None = None
    """The scaling group that counts it."""

    @property
    def root_image_id(self) -> str | None:
        """Return the image that its root disk is made of; None: its root disk is a volume."""
        return None if self.volume_backed else self.image_id

    def replace(self, **values: Any) -> Server:
        """Return a copy with some columns changed; unknown columns are ignored."""
        return dataclasses.replace(
            self, **{key: value for key, value in values.items() if key in _SERVER_COLUMNS}
        )


_SERVER_COLUMNS = {item.name for item in dataclasses.fields(Server)}


#: type and ID of what is worked on
Resource = tuple[ResourceType, str]
#: operation, attempt, resource, place and deadline: what every command begins with
About = tuple[int, int, ResourceType, str, Placed, datetime.datetime]


@dataclass(frozen=True)
class Operation(OperationRecord):
    """One row of the ledger."""

    context: Mapping[str, Any]
    params: Params
    plan: Plan
    stage: str | None = None
    """The stage, or the undo, that is committed as reached; see ``engine.stages``."""
    deadline: datetime.datetime | None = None
    lease_owner: str | None = None
    lease_expires_at: datetime.datetime | None = None
    message: str | None = None
    overslept: bool = False
    """Its deadline passed while no conductor ran: its commands only look."""
    may_run: int = 0
    """The attempt whose agent was allowed to start the VM, which may run since; 0: none was."""
    begun_on: Server | None = field(default=None, compare=False, repr=False)
    """Its new server, as the transaction that began it wrote both; not of the row."""
    handed_to: tuple[str, str] | None = field(default=None, compare=False, repr=False)
    """Host, and the worker that has the lease for it since the transaction that began the
    operation; not of the row."""

    @property
    def title(self) -> str:
        """How logs name it, such as ``extend_volume of volume 3f…``."""
        return f"{self.action} of {self.resource_type} {self.resource_id}"

    def about(
        self, where: Placed, deadline: datetime.datetime, resource: Resource | None = None
    ) -> About:
        """Return how a command of this attempt begins; ``resource``: not the operation's, but this
        one."""
        kind, named = resource or (ResourceType(self.resource_type), self.resource_id)
        return self.id, self.attempt, kind, named, where, deadline

    def planned(self, kind: type[P]) -> P:
        """Return the plan, which must be of this kind: that of the action."""
        if not isinstance(self.plan, kind):
            raise TypeError(f"operation {self.id}, {self.action}, has no {kind.__name__}")
        return self.plan

    def ordered(self, kind: type[C]) -> C:
        """Return the plan's command, which must be of this kind."""
        command = self.planned(CommandPlan).command
        if not isinstance(command, kind):
            raise TypeError(f"operation {self.id}, {self.action}, has no {kind.__name__}")
        return command

    def asked(self, kind: type[A]) -> A:
        """Return what was asked, which must be of this kind: that of the action."""
        if not isinstance(self.params, kind):
            raise TypeError(f"operation {self.id}, {self.action}, has no {kind.__name__}")
        return self.params

    @property
    def ctxt(self) -> RequestContext:
        """The context of the request that began it."""
        return RequestContext.from_message(
            {
                **self.context,
                "resource_type": self.resource_type,
                "resource_id": self.resource_id,
                "only_look": self.overslept,
            }
        )
