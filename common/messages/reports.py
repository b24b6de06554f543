"""What agents report of the operations that they work on, and the categories of failures."""

from __future__ import annotations

import datetime
import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


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
    """For a build: the VMID was somebody else's before anything was made there."""


@dataclass(frozen=True)
class Copied:
    """The copy of a server's disk; sizes in bytes."""

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
class Outcome:
    """How a command ended."""

    ok: bool
    power_state: int = 0
    failure: Failure | None = None
    gone: bool = False
    """After a Destroy, or a failed Build: config and volumes were seen absent.

    After a failed Build whose failure quarantines the VMID it may also mean that only what the
    failure names in ``left`` is there, which no agent may or can remove.
    """
    node: str = ""
    """After a Move: the node that has the VM, by a look at both; empty: that is not known."""
    copied: Copied | None = None
    """What a Copy made."""
    mtu: int | None = None
    """After a MakeVnet: that of the zone."""
    volume: MadeVolume | None = None
    """After a MakeVolume or a GrowVolume; after a BackUpVolume the archive."""
    slot: int | None = None
    """After a PlugVolume: the slot that the volume has, where it isn't the one asked for."""


@dataclass(frozen=True)
class Report:
    """A report about one operation. Steps are cumulative per name, the outcome comes last."""

    operation_id: int
    attempt: int
    server_uuid: str
    host: str
    steps: tuple[Step, ...] = ()
    outcome: Outcome | None = None


@dataclass(frozen=True)
class Working:
    """A sign of life for a long operation: renews the lease."""

    operation_id: int
    attempt: int
    host: str
