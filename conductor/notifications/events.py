"""Which notifications an operation gives, under Nova's names: tables, and what reads them.

Pure.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from common.resources.states import InternalAction, TaskState, VmState


class Payload(enum.StrEnum):
    """What a notification of a server carries, by Nova's names."""

    ACTION = "InstanceActionPayload"
    CREATE = "InstanceCreatePayload"
    EXISTS = "InstanceExistsPayload"
    REBUILD = "InstanceActionRebuildPayload"
    RESCUE = "InstanceActionRescuePayload"
    RESIZE_PREP = "InstanceActionResizePrepPayload"
    SNAPSHOT = "InstanceActionSnapshotPayload"
    UPDATE = "InstanceUpdatePayload"
    VOLUME = "InstanceActionVolumePayload"


@dataclass(frozen=True)
class Sent:
    """The notifications of an action."""

    parts: tuple[str, ...]
    """Each has a start and an end; the first one begins with the operation."""
    error: str | None = None
    """The part whose error is sent when the operation failed; None: Nova has none."""
    first: tuple[str, ...] = ()
    """What is sent once when it begins, before its parts."""
    within: str | None = None
    """The part that begins after the first one and ends before it, where the server has a VM."""
    undone: str | None = None
    """The part that is sent, whole, when it failed."""
    once: str | None = None
    """What is sent when it ended well, without parts."""
    up_to: Mapping[VmState, int] = field(default_factory=dict)
    """The number of parts that are over where it ends in this state; otherwise all."""


def _one(name: str, *, error: bool = False) -> Sent:
    return Sent((name,), error=name if error else None)


#: what a server was until then: usage that is another afterwards
_EXISTS = "exists"
_RESIZE = Sent(("resize_prep", "resize", "resize_finish"), error="resize", first=(_EXISTS,))

#: {action of an operation: its notifications}
OF_ACTION: Mapping[str, Sent] = {
    # Its error is sent once the server is in ERROR, before the cleanup.
    "create": _one("create"),
    "adopt": _one("create", error=True),
    "delete": Sent(("delete",), within="shutdown"),
    "release": _one("delete"),
    InternalAction.FORGET: _one("delete"),
    "soft-delete": _one("soft_delete"),
    "restore": _one("restore"),
    "stop": _one("power_off"),
    "start": _one("power_on"),
    "reboot": _one("reboot", error=True),
    "reboot-hard": _one("reboot", error=True),
    "pause": _one("pause"),
    "unpause": _one("unpause"),
    "suspend": _one("suspend"),
    "resume": _one("resume"),
    "resize": _RESIZE,
    "migrate": _RESIZE,
    "confirmResize": _one("resize_confirm"),
    "revertResize": Sent(("resize_revert",), first=(_EXISTS,)),
    "rebuild": Sent(("rebuild",), error="rebuild", first=("rebuild_scheduled", _EXISTS)),
    # The HA manager chooses the host: nothing is scheduled.
    "evacuate": Sent(("rebuild",), error="rebuild", first=("evacuate", _EXISTS)),
    "live-migration": Sent(
        ("live_migration_pre", "live_migration_post", "live_migration_post_dest"),
        undone="live_migration_rollback",
    ),
    "shelve": Sent(("shelve", "shelve_offload"), first=(_EXISTS,), up_to={VmState.SHELVED: 1}),
    "shelveOffload": _one("shelve_offload"),
    "unshelve": _one("unshelve"),
    "createImage": _one("snapshot"),
    "createBackup": _one("snapshot"),
    "rescue": Sent(("rescue",), first=(_EXISTS,)),
    "unrescue": _one("unrescue"),
    "attach_interface": _one("interface_attach", error=True),
    "detach_interface": _one("interface_detach"),
    "attach_volume": _one("volume_attach", error=True),
    "detach_volume": _one("volume_detach"),
    InternalAction.LOCK: Sent((), once="lock"),
    InternalAction.UNLOCK: Sent((), once="unlock"),
}

#: notifications of requests about a running operation: part and phase
ASKED: tuple[tuple[str, str], ...] = (
    ("live_migration_abort", "start"),
    ("live_migration_abort", "end"),
    ("live_migration_force_complete", "start"),
    ("live_migration_force_complete", "end"),
)

#: {(task_state before, task_state after): (the part that ends, the part that begins)}
ON_THE_WAY: Mapping[tuple[str | None, str | None], tuple[str, str]] = {
    (TaskState.RESIZE_PREP, TaskState.RESIZE_MIGRATING): ("resize_prep", "resize"),
    (TaskState.RESIZE_MIGRATING, TaskState.RESIZE_FINISH): ("resize", "resize_finish"),
    (TaskState.SHELVING, TaskState.SHELVING_OFFLOADING): ("shelve", "shelve_offload"),
}

#: {part: its payload, if not the one of most}
_PAYLOADS: Mapping[str, Payload] = {
    "create": Payload.CREATE,
    "exists": Payload.EXISTS,
    "rebuild": Payload.REBUILD,
    "rebuild_scheduled": Payload.REBUILD,
    "rescue": Payload.RESCUE,
    "resize_prep": Payload.RESIZE_PREP,
    "snapshot": Payload.SNAPSHOT,
    "update": Payload.UPDATE,
    "volume_attach": Payload.VOLUME,
    "volume_detach": Payload.VOLUME,
}

_PREFIX = "instance."
UPDATE = f"{_PREFIX}update"
EXISTS = f"{_PREFIX}{_EXISTS}"
ERROR = "error"


def event(part: str, phase: str | None = None) -> str:
    """Return the event type of a part: ``instance.create.end``."""
    return f"{_PREFIX}{part}.{phase}" if phase else f"{_PREFIX}{part}"


def parted(event_type: str) -> tuple[str, str | None]:
    """Return the part and the phase of an event type."""
    part, _, phase = event_type.removeprefix(_PREFIX).partition(".")
    return part, phase or None


def of_server(event_type: str) -> bool:
    """Return whether it is about a server."""
    return event_type.startswith(_PREFIX)


_OF_VM = frozenset({one.within for one in OF_ACTION.values()} - {None})


def of_vm(event_type: str) -> bool:
    """Return whether it is about the VM: there is none of a server that was never on a host."""
    return parted(event_type)[0] in _OF_VM


def payload_of(event_type: str) -> Payload:
    """Return the payload of an event about a server."""
    return _PAYLOADS.get(parted(event_type)[0], Payload.ACTION)


def when_begun(action: str) -> list[str]:
    """Return the events of an operation's begin."""
    sent = OF_ACTION.get(action)
    if sent is None:
        return []
    first = [event(one) for one in sent.first]
    within = [event(sent.within, "start")] if sent.within else []
    return first + [event(part, "start") for part in sent.parts[:1]] + within


#: (vm_state, task_state)
States = tuple[str, str | None]


def on_the_way(was: States, becomes: States) -> list[str]:
    """Return the events of a server's move between these states."""
    if (was[0], becomes[0]) == (VmState.BUILDING, VmState.ERROR):
        return [event("create", ERROR)]
    return _between(was[1], becomes[1])


def _between(before: str | None, after: str | None) -> list[str]:
    ended_begun = ON_THE_WAY.get((before, after))
    if ended_begun is None:
        return []
    return [event(ended_begun[0], "end"), event(ended_begun[1], "start")]


def when_done(action: str, task_state: str | None, vm_state: str | None) -> list[str]:
    """Return the events of an operation's good end.

    ``task_state`` is what the server showed before it, ``vm_state`` what it is then. Parts that
    the operation had no need to stop at are sent with it.
    """
    sent = OF_ACTION.get(action)
    if sent is None:
        return []
    if sent.once:
        return [event(sent.once)]
    begun = [after for (_, shown), (_, after) in ON_THE_WAY.items() if shown == task_state]
    at = next((sent.parts.index(one) for one in begun if one in sent.parts), 0)
    last = next((count for state, count in sent.up_to.items() if state == vm_state), None)
    parts = sent.parts[at:last]
    within = [event(sent.within, "end")] if sent.within else []
    return within + [event(part, phase) for part in parts for phase in ("start", "end")][1:]


def when_failed(action: str) -> list[str]:
    """Return the events of an operation's bad end."""
    sent = OF_ACTION.get(action)
    if sent is None:
        return []
    undone = [event(sent.undone, phase) for phase in ("start", "end")] if sent.undone else []
    return undone + ([event(sent.error, ERROR)] if sent.error else [])


def all_events() -> Iterable[str]:
    """Return every event type about servers, for the documentation and for tests."""
    found = dict.fromkeys((UPDATE, *(event(*one) for one in ASKED)))
    for action, sent in OF_ACTION.items():
        names = [*when_begun(action), *when_done(action, None, None), *when_failed(action)]
        names += [event(part, phase) for part in sent.parts for phase in ("start", "end")]
        found.update(dict.fromkeys(names))
    return sorted(found)
