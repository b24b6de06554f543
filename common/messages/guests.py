"""What agents answer about a VM that runs: see ``common.messages.questions``."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from common.resources.states import PowerState


@dataclass(frozen=True)
class GuestTarget:
    """A server's VM, and who can reach it."""

    server_uuid: str
    worker: str
    """Carries the agent of the VM's host."""
    cluster: str
    node: str
    vmid: int


@dataclass(frozen=True)
class GuestOwner:
    """Whose a VM is."""

    cluster: str
    vmid: int
    server_uuid: str
    project_id: str


@dataclass(frozen=True)
class DiskUse:
    """What a disk has transferred since its VM started; None: not known."""

    name: str
    read_bytes: int | None = None
    read_requests: int | None = None
    write_bytes: int | None = None
    write_requests: int | None = None
    errors: int | None = None


@dataclass(frozen=True)
class NicUse:
    """What an interface has transferred since its VM started, as the guest sees it."""

    name: str
    """On the host."""
    mac: str | None = None
    rx_bytes: int | None = None
    tx_bytes: int | None = None


@dataclass(frozen=True)
class Diagnostics:
    """How a VM does now; None: not known."""

    power_state: PowerState
    uptime_seconds: int | None = None
    vcpus: int = 0
    cpu_percent: int | None = None
    """Of all its processors together."""
    memory_mib: int = 0
    memory_used_mib: int | None = None
    config_drive: bool = False
    disks: tuple[DiskUse, ...] = ()
    nics: tuple[NicUse, ...] = ()


class PasswordProblem(enum.StrEnum):
    """Why a password was not set."""

    NO_AGENT = "no_agent"  #: the VM has no channel to a guest agent
    SILENT = "silent"  #: the guest agent doesn't answer
    STOPPED = "stopped"
    TOO_SHORT = "too_short"
    """Or too long for the hypervisor."""
    REFUSED = "refused"  #: by the guest
    NOT_SUPPORTED = "not_supported"  #: the hypervisor can't, or doesn't allow it to the agent
    UNKNOWN = "unknown"  #: the answer was lost
