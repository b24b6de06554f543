"""What stops a server from being moved to another host, and how it is moved otherwise. Pure.

Everything that moves servers, or says whether they can be moved, asks here: migrations, drains,
plans to rebalance, and what administrators are shown of a server.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field

from common.guest.asked import CannotError
from common.guest.hardware import devices
from common.messages.facts import CONFIG_DRIVE
from common.resources.states import VmState

DEVICES = "it has devices of its node"
NO_VM = "it has no VM"


class Way(enum.StrEnum):
    """How a server is moved."""

    LIVE = "live"  #: while it runs
    COLD = "cold"  #: powered off; it is started again where it ran


@dataclass(frozen=True)
class Situation:
    """What is known of a server that may be moved."""

    vm_state: str
    vmid: int | None
    extra_specs: Mapping[str, str] = field(default_factory=dict)
    """Its flavor's."""
    pinned: Mapping[str, str] = field(default_factory=dict)
    """What its host reports; see ``HostFacts.pinned``."""
    held: bool = False


_RUNNING = frozenset({VmState.ACTIVE, VmState.PAUSED})
_STOPPABLE = frozenset({VmState.ACTIVE, VmState.STOPPED})
_STATES: Mapping[str, str] = {
    VmState.BUILDING: "it was never built: delete it",
    VmState.SUSPENDED: "it is suspended: resume it",
    VmState.RESCUED: "it is rescued: unrescue it",
    VmState.RESIZED: "its resize or migration waits: confirm or revert it",
    VmState.SHELVED: "it is shelved: unshelve it",
    VmState.SHELVED_OFFLOADED: "it is shelved, and its disk is parked there: unshelve it",
    VmState.SOFT_DELETED: "it is deleted and can be restored: delete it for good",
    VmState.ERROR: "it is in ERROR: see its fault, then reboot it hard or reset its state",
}


def pin(pinned: Mapping[str, str], vmid: int | None) -> str | None:
    """Return why a VM can't leave its node, however it is moved; None: nothing is known.

    Its config drive doesn't: agents take it out before, and make it again on the target.
    """
    why = pinned.get(str(vmid))
    return None if why is None or why.startswith(CONFIG_DRIVE) else why


def bound(extra_specs: Mapping[str, str]) -> bool:
    """Return whether a server has devices of its node, without which it can't run."""
    try:
        return bool(devices(extra_specs))
    except CannotError:
        return True


def way(now: Situation) -> Way | None:
    """Return how a server is moved, live where it runs and can be; None: see ``obstacle``."""
    if obstacle(now) is not None:
        return None
    live = now.vm_state in _RUNNING and not bound(now.extra_specs)
    return Way.LIVE if live else Way.COLD


def obstacle(now: Situation) -> str | None:
    """Return why a server can't be moved now, and what would help; None: it can."""
    fixed = NO_VM if now.vmid is None else pin(now.pinned, now.vmid)
    if fixed is not None:
        return fixed
    if now.vm_state in _STATES:
        return _STATES[now.vm_state]
    if now.vm_state not in _STOPPABLE and bound(now.extra_specs):
        return f"{DEVICES} and is {now.vm_state}: unpause it"
    return "it is held: release the hold" if now.held else None
