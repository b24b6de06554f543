"""What agents report of the operations that they work on, and the categories of failures."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from common.codec import Member, Tagged, named_by
from common.resources.states import ResourceType


class Category(enum.StrEnum):
    """The kinds of failures; ``common.failures`` says what each means."""

    API_NOT_SUPPORTED = "api_not_supported"
    CONFIGURATION = "configuration"
    AUTHORIZATION = "authorization"
    QUOTA_EXCEEDED = "quota_exceeded"
    NO_VALID_HOST = "no_valid_host"
    NODE_UNHEALTHY = "node_unhealthy"
    IMAGE_NOT_FOUND = "image_not_found"
    IMAGE_CORRUPT = "image_corrupt"
    TEMPLATE_LOCKED = "template_locked"
    LOCK = "lock"
    STORAGE_CONFLICT = "storage_conflict"
    STORAGE_FULL = "storage_full"
    NETWORK = "network"
    TASK_TIMEOUT = "task_timeout"
    UNKNOWN_OUTCOME = "unknown_outcome"
    CREATION_FAILED = "creation_failed"
    VANISHED = "vanished"
    PROTECTED = "protected"
    MARK_LOST = "mark_lost"
    FOREIGN = "foreign"
    DISK_LOST = "disk_lost"

    @classmethod
    def _missing_(cls, value: object) -> Category:
        """Return what is looked at: a newer release's category says no more to this one."""
        return cls.UNKNOWN_OUTCOME


@dataclass(frozen=True)
class Step:
    """A step of an operation, reported before and after; the later report replaces the earlier.

    A report may overtake another one on the bus, so each carries all that is known so far.
    """

    name: str
    """As ``os-instance-actions`` shows it, e.g. ``compute_create_vm``."""
    sequence: int
    """Order within the attempt, from 0."""
    started_at: datetime.datetime
    finished_at: datetime.datetime | None = None
    result: str | None = None
    """``Success`` or ``Error`` once finished (Nova's words)."""
    upid: str | None = None
    detail: Mapping[str, Any] = field(default_factory=dict)
    """Facts of the step: node, VMID, storage, bytes, findings."""


@dataclass(frozen=True)
class Failure:
    """Why an attempt failed, in the words of the service that saw it, and what was cleaned up."""

    category: Category
    message: str
    step: str | None = None
    host: str | None = None
    upid: str | None = None
    log_tail: tuple[str, ...] = ()
    cleaned: tuple[str, ...] = ()
    """What was removed again, e.g. ``VM 100123 on pve1``, ``volume local:100123/…``."""
    clean: bool = True
    """Whether nothing of this attempt is left: config and volumes seen absent."""
    left: tuple[str, ...] = ()
    """What could not be removed or may not be touched; the operator's list."""
    remedy: str | None = None
    """The one exact command or action for the operator, if there is one."""
    verdict: str | None = None
    """How to continue (``common.failures.Verdict``), if not as the category says."""
    owner_message: str | None = None
    """What the server's owner reads instead of the category's sentence: without hosts, their
    numbers and internals of the cloud."""
    refused: bool = False
    """For a build: the VMID was somebody else's before anything was made there. For a removal: the
    VM has all marks of another resource, and none of this one's."""


@dataclass(frozen=True)
class CopiedDisk:
    """The copy of a disk; sizes in bytes."""

    volid: str
    disk_format: str
    size_bytes: int
    """What it takes on its storage."""
    virtual_size_bytes: int


@dataclass(frozen=True)
class MadeVolume:
    """A volume as found in its holder."""

    volid: str
    size_bytes: int
    snapshots: str = ""
    """The ``SnapshotWay`` that Proxmox VE has for it; empty: it was not asked."""


@dataclass(frozen=True)
class Outcome(Tagged):
    """How a command ended; each command names the class of its own (``Command.outcome``)."""

    ok: bool
    failure: Failure | None = None


@dataclass(frozen=True)
class Removed(Outcome):
    """The outcome of what removes something."""

    gone: bool = False
    """Whether nothing of it is there any more, by a look."""


@dataclass(frozen=True)
class VmSeen(Outcome):
    """The outcome of what changes a server's VM."""

    power_state: int = 0
    """As it was seen last; 0: it was not seen."""


@dataclass(frozen=True)
class Built(VmSeen, Removed):
    """``gone``, after a failure: config and volumes were seen absent.

    If the failure quarantines the VMID it may also mean that only what the failure names in
    ``left`` is there, which no agent may or can remove.
    """


@dataclass(frozen=True)
class Marked(VmSeen, Removed):
    """``gone``: the VM was seen without the server's mark."""


@dataclass(frozen=True)
class Moved(VmSeen):
    """The outcome of a move."""

    node: str = ""
    """The node that has the VM, by a look at both; empty: that is not known."""


@dataclass(frozen=True)
class Plugged(VmSeen):
    """The outcome of plugging a volume."""

    slot: int | None = None
    """The slot that the volume has, where it isn't the one asked for."""


@dataclass(frozen=True)
class Copied(Removed):
    """The outcome of a copy; ``gone``, after a failure: nothing of it is left."""

    disk: CopiedDisk | None = None
    """What was made."""


@dataclass(frozen=True)
class VolumeSeen(Outcome):
    """The outcome of what changes a volume's disk."""

    volume: MadeVolume | None = None
    """As it was seen last."""


@dataclass(frozen=True)
class VolumeMade(VolumeSeen, Removed):
    """``gone``, after a failure: nothing of the volume, or of the archive, is left."""


@dataclass(frozen=True)
class VnetMade(Outcome):
    """The outcome of making a vnet."""

    mtu: int | None = None
    """That of the zone."""


@dataclass(frozen=True)
class NotUnderstood(Built, Moved, Plugged, Copied, VolumeMade, VnetMade):
    """The outcome of a command that the agent's release doesn't know, of whatever class.

    Nothing was done; what an agent of another release did before isn't known.
    """


@functools.cache
def outcome_named_by(cls: Any) -> Any:
    """Return the class of outcomes that a class names where it names its bases."""
    return named_by(cls, lambda named: isinstance(named, type) and issubclass(named, Outcome))


@dataclass(frozen=True)
class Report:
    """A report about one operation. Steps are cumulative per name, the outcome comes last."""

    operation_id: int
    attempt: int
    resource_type: ResourceType
    resource_id: str
    host: str
    steps: tuple[Step, ...] = ()
    outcome: Member[Outcome] | None = None
    worker: str = ""
    """The worker that reports, with the tenure in which it got the command."""


@dataclass(frozen=True)
class Working:
    """A sign of life for a long operation: renews the lease."""

    operation_id: int
    attempt: int
    host: str
    lost: bool = False
    """In an answer: the ledger has no such operation, since its last commits were lost."""

    def as_lost(self) -> Working:
        """Return the answer about a lost operation: without its host, as an agent of 1.0.0 starts
        each VM whose question comes back unchanged."""
        return dataclasses.replace(self, host="", lost=True)
