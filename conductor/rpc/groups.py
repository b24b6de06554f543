"""Calls about scaling groups: servers whose number is kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from common.context import RequestContext
from conductor.rpc.servers.servers import CreateServers


@dataclass(frozen=True)
class NewProfile:
    """What servers of groups are to be made of."""

    name: str
    spec: Mapping[str, Any]
    """As the user gave it, to be shown."""
    request: CreateServers
    """The create of one server: what its maker may ask for, checked."""
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class NewGroup:
    """A group to be created; its options are those of ``common.resources.groups.options``."""

    name: str
    profile_id: str
    desired: int
    min_size: int
    max_size: int
    timeout_seconds: int
    metadata: Mapping[str, Any] = field(default_factory=dict)
    config: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class GroupChanges:
    """What a group is changed to; None: it remains as it is."""

    name: str | None = None
    profile_id: str | None = None
    profile_only: bool = False
    """Whether members that exist are not replaced by such of the new profile."""
    timeout_seconds: int | None = None
    metadata: Mapping[str, Any] | None = None
    config: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Resize:
    """A new size: ``number`` is the size itself, or added to it, or a percentage of it."""

    action: str
    """``common.resources.groups.GroupAction``."""
    kind: str | None = None
    """Senlin's ``adjustment_type``; None: limits alone change."""
    number: float = 0
    min_step: int = 1
    """Of a percentage: by how much it changes at least."""
    strict: bool = True
    """Whether a size outside of the limits is refused; else the limit is taken."""
    min_size: int | None = None
    max_size: int | None = None


@dataclass(frozen=True)
class NewReceiver:
    """A webhook to be made."""

    id: str
    name: str
    group_id: str
    action: str
    params: Mapping[str, Any]
    key_hash: str
    """What is stored of its secret; see ``common.resources.webhooks``."""
    sealed: str


class GroupRpc(Protocol):
    """Scaling groups. Calls that begin an operation return its number.

    All of them raise NotFound, also for another project's record.
    """

    def create_profile(self, ctxt: RequestContext, profile: NewProfile) -> str:
        """Return the ID of a new profile. Raises QuotaExceeded."""

    def change_profile(
        self, ctxt: RequestContext, profile_id: str, values: Mapping[str, Any]
    ) -> None:
        """Change its ``name`` or ``meta``; what servers are made of never changes."""

    def delete_profile(self, ctxt: RequestContext, profile_id: str) -> None:
        """Delete a profile. Raises Conflict while a group or a member uses it."""

    def create_group(self, ctxt: RequestContext, group: NewGroup) -> tuple[str, int]:
        """Begin to create a group with its members; return its ID and the operation's number.

        Raises QuotaExceeded, and Invalid for sizes or options that can't be.
        """

    def change_group(self, ctxt: RequestContext, group_id: str, changes: GroupChanges) -> int:
        """Change a group; with another profile its members are replaced. Raises Invalid,
        Conflict while it is deleted."""

    def resize_group(self, ctxt: RequestContext, group_id: str, resize: Resize) -> int:
        """Change the size of a group, or its limits. Raises Invalid, Conflict."""

    def tend_group(self, ctxt: RequestContext, group_id: str, action: str) -> int:
        """Look at all members (``group-check``), or repair them (``group-recover``).

        A repair has creations go on that failures had stopped. Raises Conflict.
        """

    def repair_group(self, ctxt: RequestContext, group_id: str, repair: str) -> int:
        """Repair members in this way (``common.resources.groups.Repair``), whatever the health
        policy says. Raises Conflict.
        """

    def steer_group(self, ctxt: RequestContext, group_id: str, verb: str) -> int:
        """``pause``, ``resume`` or ``roll_back`` a rolling update. Raises Conflict."""

    def delete_group(self, ctxt: RequestContext, group_id: str, *, keep: bool) -> int:
        """Delete a group, and its servers unless they are to be kept."""

    def add_members(self, ctxt: RequestContext, group_id: str, members: Sequence[str]) -> int:
        """Have a group take members that are in none. Raises Invalid, Conflict."""

    def take_members_out(
        self, ctxt: RequestContext, group_id: str, members: Sequence[str], *, destroy: bool
    ) -> int:
        """Have members leave a group, which is smaller then. Raises Invalid, Conflict."""

    def replace_members(
        self, ctxt: RequestContext, group_id: str, members: Mapping[str, str]
    ) -> int:
        """Have members (old → new, which are in no group) replaced. Raises Invalid, Conflict."""

    def create_member(
        self, ctxt: RequestContext, name: str, profile_id: str, metadata: Mapping[str, Any]
    ) -> str:
        """Create a server that is in no group; return the member's ID. Raises as creates do."""

    def change_member(
        self, ctxt: RequestContext, member_id: str, values: Mapping[str, Any]
    ) -> None:
        """Change its ``name``, ``role`` or ``meta``."""

    def delete_member(self, ctxt: RequestContext, member_id: str) -> int:
        """Delete a member and its server; its group is smaller then."""

    def recover_member(self, ctxt: RequestContext, member_id: str) -> int:
        """Have a member's server replaced. Raises Conflict where it is in no group."""

    def repair_member(
        self,
        ctxt: RequestContext,
        member_id: str,
        repair: str,
        *,
        soft: bool = False,
        check: bool = False,
    ) -> int:
        """Have a member's server repaired in this way (``common.resources.groups.Repair``).

        ``soft``: of a reboot; ``check``: a server that is well is left alone. Return 0 if
        nothing was begun. Raises Conflict, as the action on the server does; Unimplemented.
        """

    def create_policy(self, ctxt: RequestContext, name: str, spec: Mapping[str, Any]) -> str:
        """Return the ID of a new policy, whose spec was checked."""

    def change_policy(self, ctxt: RequestContext, policy_id: str, name: str) -> None:
        """Rename a policy."""

    def delete_policy(self, ctxt: RequestContext, policy_id: str) -> None:
        """Delete a policy. Raises Conflict while it is attached."""

    def bind_policy(
        self, ctxt: RequestContext, group_id: str, policy_id: str, *, enabled: bool, new: bool
    ) -> int:
        """Attach a policy to a group, or change whether it is enabled.

        Raises Conflict for a second one of its type, NotFound if it is to be changed and isn't
        attached.
        """

    def unbind_policy(self, ctxt: RequestContext, group_id: str, policy_id: str) -> int:
        """Detach a policy from a group."""

    def create_receiver(self, ctxt: RequestContext, receiver: NewReceiver) -> None:
        """Make a webhook. Raises QuotaExceeded."""

    def change_receiver(
        self, ctxt: RequestContext, receiver_id: str, values: Mapping[str, Any]
    ) -> None:
        """Change its ``name``, ``action`` or ``params``."""

    def delete_receiver(self, ctxt: RequestContext, receiver_id: str) -> None:
        """Delete a webhook: its URL means nothing any more."""

    def trigger_receiver(
        self, ctxt: RequestContext, receiver_id: str, key_hash: str, params: Mapping[str, Any]
    ) -> int:
        """Carry out what a webhook is for, as its maker; ``key_hash``: of the URL's secret.

        Return the operation's number; 0: it was called too often. Raises NotFound also for
        another secret; Conflict.
        """
