"""States as data: server states, task states, and every action between them.

``vm_state`` (what it is), ``task_state`` (what is being done) and ``power_state`` (what the
hypervisor sees) use Nova's names and numbers. ``ACTIONS`` is the one table from which come the
API's 409s, the conductor's transitions and the documentation's table.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass


class VmState(enum.StrEnum):
    """What a server is."""

    BUILDING = "building"  #: accepted, not yet there
    ACTIVE = "active"  #: running
    STOPPED = "stopped"  #: there, powered off
    PAUSED = "paused"  #: its processors stand still; memory and claim are kept
    SUSPENDED = "suspended"  #: its memory is on disk, and no process runs
    RESIZED = "resized"  #: of its new size, to be confirmed or reverted
    SHELVED = "shelved"  #: switched off; what it claims is kept
    SHELVED_OFFLOADED = "shelved_offloaded"  #: parked: it claims its disk only
    SOFT_DELETED = "soft-delete"  #: stopped, to be deleted for good unless it is restored
    RESCUED = "rescued"  #: runs from another disk, with its own beside it
    ERROR = "error"  #: an operation failed; the fault says how
    DELETED = "deleted"  #: the VM's absence is confirmed


class TaskState(enum.StrEnum):
    """What is being done to a server; None: nothing."""

    SCHEDULING = "scheduling"  #: a host is being chosen and claimed
    NETWORKING = "networking"  #: ports and addresses are being reserved
    BLOCK_DEVICE_MAPPING = "block_device_mapping"  #: the way to the disk is being chosen
    SPAWNING = "spawning"  #: the agent builds the VM
    POWERING_OFF = "powering-off"
    POWERING_ON = "powering-on"
    REBOOTING = "rebooting"  #: a soft reboot
    REBOOTING_HARD = "rebooting_hard"
    PAUSING = "pausing"
    UNPAUSING = "unpausing"
    SUSPENDING = "suspending"  #: its memory is being written to disk
    RESUMING = "resuming"  #: its memory is being read from disk
    IMAGE_SNAPSHOT_PENDING = "image_snapshot_pending"  #: the image is being registered
    IMAGE_SNAPSHOT = "image_snapshot"  #: its root disk is being copied into an image
    IMAGE_BACKUP = "image_backup"  #: the same, for a backup
    RESIZE_PREP = "resize_prep"  #: room for the new size is being claimed
    RESIZE_MIGRATING = "resize_migrating"  #: the VM is stopped and gets its new size
    RESIZE_FINISH = "resize_finish"  #: it is on its new host, and gets its new size
    RESIZE_REVERTING = "resize_reverting"  #: it gets its old size back
    UPDATING_PASSWORD = "updating_password"  # noqa: S105 - the guest gets another one
    REBUILDING = "rebuilding"  #: its host is asked about the image
    REBUILD_BLOCK_DEVICE_MAPPING = "rebuild_block_device_mapping"  #: the image is being located
    REBUILD_SPAWNING = "rebuild_spawning"  #: the VM gets a new disk
    SHELVING = "shelving"  #: the VM is stopped
    SHELVING_OFFLOADING = "shelving_offloading"  #: all but the disk is given back
    UNSHELVING = "unshelving"  #: it is claimed again and started
    SOFT_DELETING = "soft-deleting"  #: the VM is stopped; it can be restored
    RESTORING = "restoring"  #: a soft-deleted server is started again
    MIGRATING = "migrating"  #: it is moved to another host while it runs
    RESCUING = "rescuing"  #: the VM gets another disk to run from
    UNRESCUING = "unrescuing"  #: it runs from its own disk again
    DELETING = "deleting"
    ADOPTING = "adopting"  #: an existing VM is being taken under management
    RELEASING = "releasing"  #: a VM is being released from management; it is not removed


class PowerState(enum.IntEnum):
    """What the hypervisor sees; the numbers are Nova's."""

    NOSTATE = 0
    RUNNING = 1
    PAUSED = 3
    SHUTDOWN = 4
    CRASHED = 6
    SUSPENDED = 7


class ResourceType(enum.StrEnum):
    """What an operation may be about."""

    SERVER = "server"  #: its id is the server's UUID
    TEMPLATE = "template"  #: a cached template; its id is CLUSTER/VMID
    IMAGE = "image"  #: made ready on a host; its id is the image's
    VOLUME = "volume"  #: its id is the volume's
    SNAPSHOT = "snapshot"  #: of a volume; its id is the snapshot's
    BACKUP = "backup"  #: of a volume; its id is the backup's
    NETWORK = "network"  #: a network with vnets in clusters; its id is the network's
    HOST = "host"  #: a compute host; its id is its name
    CLOUD = "cloud"  #: all hosts; its id is the cloud's
    GROUP = "group"  #: servers whose number is kept; its id is the group's


class OperationState(enum.StrEnum):
    """The state of an operation, a row of the ledger."""

    QUEUED = "queued"  #: nobody works on it: it waits for its time, or for somebody
    RUNNING = "running"  #: somebody holds its lease
    UNWINDING = "unwinding"  #: it failed or was overtaken; what it made is to be removed
    DONE = "done"
    FAILED = "failed"


OPEN_STATES = (OperationState.QUEUED, OperationState.RUNNING, OperationState.UNWINDING)


@dataclass(frozen=True)
class Action:
    """One action on a server."""

    name: str
    """The name in ``os-instance-actions``."""
    label: str
    """Its name in Nova's 409: "Cannot '<label>' instance …"."""
    vm_states: frozenset[VmState] | None
    """May start from these; None: from any."""
    task_states: frozenset[TaskState | None] | None
    """May interrupt these; None: any."""
    walk: tuple[TaskState, ...]
    """The task_states that it passes, in order."""
    done: VmState | None
    """The vm_state when it succeeded; None: as before."""
    failed: VmState | None
    """The vm_state when it failed; None: as the VM is seen then, else as before."""
    must_have_launched: bool = True
    """Whether the server must once have been active (a half-built one can only be deleted)."""


_IDLE: frozenset[TaskState | None] = frozenset({None})
#: what a soft delete interrupts: tasks that only change power
_OF_POWER: frozenset[TaskState] = frozenset(
    {
        TaskState.POWERING_OFF,
        TaskState.POWERING_ON,
        TaskState.REBOOTING,
        TaskState.REBOOTING_HARD,
        TaskState.PAUSING,
        TaskState.UNPAUSING,
        TaskState.SUSPENDING,
        TaskState.RESUMING,
        TaskState.UPDATING_PASSWORD,
    }
)
#: what can be restored as it was: a VM of its own, and nothing half done
SOFT_DELETABLE: frozenset[VmState] = frozenset(
    {VmState.ACTIVE, VmState.STOPPED, VmState.PAUSED, VmState.SUSPENDED, VmState.ERROR}
)
#: parked, or about to be
SHELVED: frozenset[VmState] = frozenset({VmState.SHELVED, VmState.SHELVED_OFFLOADED})
#: of these an image can be made
_IMAGED = frozenset({VmState.ACTIVE, VmState.STOPPED, VmState.PAUSED, VmState.SUSPENDED})
#: these get and lose volumes
_WITH_VOLUMES = frozenset(
    {
        *(VmState.ACTIVE, VmState.PAUSED, VmState.STOPPED),
        *(VmState.RESIZED, VmState.SOFT_DELETED, *SHELVED),
    }
)
#: RESIZE_FINISH only if the server moves to another host
_RESIZING = (TaskState.RESIZE_PREP, TaskState.RESIZE_MIGRATING, TaskState.RESIZE_FINISH)

ACTIONS: Mapping[str, Action] = {
    action.name: action
    for action in (
        Action(
            "create",
            "create",
            frozenset(),
            _IDLE,
            (
                TaskState.SCHEDULING,
                TaskState.NETWORKING,
                TaskState.BLOCK_DEVICE_MAPPING,
                TaskState.SPAWNING,
            ),
            VmState.ACTIVE,
            VmState.ERROR,
            must_have_launched=False,
        ),
        Action(
            "stop",
            "stop",
            frozenset({VmState.ACTIVE, VmState.ERROR}),
            _IDLE,
            (TaskState.POWERING_OFF,),
            VmState.STOPPED,
            None,
        ),
        Action(
            "start",
            "start",
            frozenset({VmState.STOPPED}),
            _IDLE,
            (TaskState.POWERING_ON,),
            VmState.ACTIVE,
            None,
        ),
        Action(
            "reboot",
            "reboot",
            frozenset({VmState.ACTIVE}),
            _IDLE,
            (TaskState.REBOOTING,),
            VmState.ACTIVE,
            None,
        ),
        Action(
            "reboot-hard",
            "reboot",
            frozenset(
                {
                    VmState.ACTIVE,
                    VmState.STOPPED,
                    VmState.PAUSED,
                    VmState.SUSPENDED,
                    VmState.ERROR,
                }
            ),
            frozenset(
                {
                    None,
                    TaskState.REBOOTING,
                    TaskState.REBOOTING_HARD,
                    TaskState.PAUSING,
                    TaskState.UNPAUSING,
                    TaskState.SUSPENDING,
                    TaskState.RESUMING,
                }
            ),
            (TaskState.REBOOTING_HARD,),
            VmState.ACTIVE,
            None,
        ),
        Action(
            "pause",
            "pause",
            frozenset({VmState.ACTIVE}),
            _IDLE,
            (TaskState.PAUSING,),
            VmState.PAUSED,
            None,
        ),
        Action(
            "unpause",
            "unpause",
            frozenset({VmState.PAUSED}),
            _IDLE,
            (TaskState.UNPAUSING,),
            VmState.ACTIVE,
            None,
        ),
        Action(
            "suspend",
            "suspend",
            frozenset({VmState.ACTIVE}),
            _IDLE,
            (TaskState.SUSPENDING,),
            VmState.SUSPENDED,
            None,
        ),
        Action(
            "resume",
            "resume",
            frozenset({VmState.SUSPENDED}),
            _IDLE,
            (TaskState.RESUMING,),
            VmState.ACTIVE,
            None,
        ),
        Action(
            "changePassword",
            "changePassword",
            frozenset({VmState.ACTIVE}),
            _IDLE,
            (TaskState.UPDATING_PASSWORD,),
            VmState.ACTIVE,
            None,
        ),
        Action(
            "resize",
            "resize",
            frozenset({VmState.ACTIVE, VmState.STOPPED}),
            _IDLE,
            _RESIZING,
            VmState.RESIZED,
            None,
        ),
        Action(
            "migrate",
            "migrate",
            frozenset({VmState.ACTIVE, VmState.STOPPED}),
            _IDLE,
            _RESIZING,
            VmState.RESIZED,
            None,
        ),
        Action(
            "confirmResize",
            "confirmResize",
            frozenset({VmState.RESIZED}),
            _IDLE,
            (),
            VmState.ACTIVE,
            VmState.RESIZED,
        ),
        Action(
            "revertResize",
            "revertResize",
            frozenset({VmState.RESIZED}),
            _IDLE,
            (TaskState.RESIZE_REVERTING,),
            VmState.ACTIVE,
            VmState.RESIZED,
        ),
        Action(
            "attach_interface",
            "attach_interface",
            frozenset({VmState.ACTIVE, VmState.PAUSED, VmState.STOPPED}),
            _IDLE,
            (),
            None,
            None,
        ),
        Action(
            "attach_volume",
            "attach_volume",
            _WITH_VOLUMES,
            _IDLE,
            (),
            None,
            None,
        ),
        Action(
            "detach_volume",
            "detach_volume",
            _WITH_VOLUMES,
            _IDLE,
            (),
            None,
            None,
        ),
        Action(
            "shelve",
            "shelve",
            _IMAGED,
            _IDLE,
            (TaskState.SHELVING, TaskState.SHELVING_OFFLOADING),
            VmState.SHELVED_OFFLOADED,
            None,
        ),
        Action(
            "shelveOffload",
            "shelveOffload",
            frozenset({VmState.SHELVED}),
            _IDLE,
            (TaskState.SHELVING_OFFLOADING,),
            VmState.SHELVED_OFFLOADED,
            None,
        ),
        Action(
            "unshelve",
            "unshelve",
            frozenset({VmState.SHELVED, VmState.SHELVED_OFFLOADED}),
            _IDLE,
            (TaskState.UNSHELVING,),
            VmState.ACTIVE,
            None,
        ),
        Action(
            "createImage",
            "createImage",
            _IMAGED,
            _IDLE,
            (TaskState.IMAGE_SNAPSHOT_PENDING, TaskState.IMAGE_SNAPSHOT),
            None,
            None,
        ),
        Action(
            "detach_interface",
            "detach_interface",
            frozenset({VmState.ACTIVE, VmState.PAUSED, VmState.STOPPED}),
            _IDLE,
            (),
            None,
            None,
        ),
        Action(
            "rebuild",
            "rebuild",
            frozenset({VmState.ACTIVE, VmState.STOPPED, VmState.ERROR}),
            _IDLE,
            (
                TaskState.REBUILDING,
                TaskState.REBUILD_BLOCK_DEVICE_MAPPING,
                TaskState.REBUILD_SPAWNING,
            ),
            VmState.ACTIVE,
            VmState.ERROR,
        ),
        Action(
            "soft-delete",
            "delete",
            SOFT_DELETABLE,
            frozenset({None, *_OF_POWER}),
            (TaskState.SOFT_DELETING,),
            VmState.SOFT_DELETED,
            None,
        ),
        Action(
            "restore",
            "restore",
            frozenset({VmState.SOFT_DELETED}),
            _IDLE,
            (TaskState.RESTORING,),
            VmState.ACTIVE,
            None,
        ),
        Action(
            "createBackup",
            "createBackup",
            _IMAGED,
            _IDLE,
            (TaskState.IMAGE_BACKUP,),
            None,
            None,
        ),
        Action(
            "live-migration",
            "os-migrateLive",
            frozenset({VmState.ACTIVE, VmState.PAUSED}),
            _IDLE,
            (TaskState.MIGRATING,),
            VmState.ACTIVE,
            None,
        ),
        Action(
            "evacuate",
            "evacuate",
            frozenset({VmState.ACTIVE, VmState.STOPPED, VmState.ERROR}),
            None,
            (TaskState.REBUILDING,),
            VmState.ACTIVE,
            VmState.ERROR,
        ),
        Action(
            "rescue",
            "rescue",
            frozenset({VmState.ACTIVE, VmState.STOPPED, VmState.ERROR}),
            _IDLE,
            (TaskState.RESCUING,),
            VmState.RESCUED,
            VmState.ERROR,
        ),
        Action(
            "unrescue",
            "unrescue",
            frozenset({VmState.RESCUED}),
            _IDLE,
            (TaskState.UNRESCUING,),
            VmState.ACTIVE,
            VmState.RESCUED,
        ),
        Action(
            "delete",
            "delete",
            None,
            None,
            (TaskState.DELETING,),
            VmState.DELETED,
            VmState.ERROR,
            must_have_launched=False,
        ),
        Action(
            "adopt",
            "adopt",
            frozenset(),
            _IDLE,
            (TaskState.ADOPTING,),
            VmState.ACTIVE,
            VmState.DELETED,
            must_have_launched=False,
        ),
        Action(
            "release",
            "release",
            frozenset({VmState.ACTIVE, VmState.STOPPED, VmState.ERROR}),
            _IDLE,
            (TaskState.RELEASING,),
            VmState.DELETED,
            None,
        ),
    )
}


class InternalAction(enum.StrEnum):
    """Operations that no user asked for, or that touch no VM."""

    SYNC_POWER = "sync-power"  #: somebody else switched the VM on or off
    FOLLOW = "follow"  #: the VM was not where the record says: looked after, and followed
    HOLD = "hold"
    RELEASE_HOLD = "release-hold"
    LOCK = "lock"  #: under Nova's names, as are the next three
    UNLOCK = "unlock"
    EXTEND_VOLUME = "extend_volume"  #: Nova's: a volume of the server was extended
    RESET_STATE = "resetState"  #: an administrator set the server's state
    RETRY = "retry"  #: what waited was tried again at once
    FORGET = "forget"  #: the record was deleted, regardless of the VM
    MARK = "mark"  #: the owner mark of a VM that was edited was written again
    REAP = "reap"  #: what the audit found left of a server was removed
    REMOVE_LEFT = "remove-left"  #: what a build left on a host that fell silent was removed
    REMOVE_TEMPLATE = "remove-template"  #: a cached template that nobody needs was removed
    CACHE_IMAGE = "cache-image"  #: an image was made ready on a host, ahead of any build
    STORE_IMAGE = "store-image"  #: what a user uploaded was given to a cluster
    REMOVE_IMAGE = "remove-image"  #: a deleted image's file was removed from a cluster
    MAKE_VNET = "make-vnet"  #: a cluster got the SDN vnet of a network
    REMOVE_VNET = "remove-vnet"  #: a deleted network's vnet was removed from a cluster
    DRAIN = "drain"  #: the servers of a host were moved to others
    REBALANCE = "rebalance"  #: servers were moved to fill the hosts more evenly


#: a server's new state, by its VM's state while it has no operation; others only change the
#: power_state. As in Nova's _sync_instance_power_state, except that a stopped server whose VM runs
#: becomes active: the VM is not stopped again. The state also follows a suspend or resume by
#: others. A server remains active while its VM is paused, as a migration or a snapshot pauses it
#: for a moment.
SEEN: Mapping[tuple[VmState, PowerState], VmState] = {
    (VmState.ACTIVE, PowerState.SHUTDOWN): VmState.STOPPED,
    (VmState.ACTIVE, PowerState.CRASHED): VmState.STOPPED,
    (VmState.ACTIVE, PowerState.SUSPENDED): VmState.SUSPENDED,
    (VmState.STOPPED, PowerState.RUNNING): VmState.ACTIVE,
    (VmState.STOPPED, PowerState.PAUSED): VmState.ACTIVE,
    (VmState.STOPPED, PowerState.SUSPENDED): VmState.SUSPENDED,
    (VmState.PAUSED, PowerState.RUNNING): VmState.ACTIVE,
    (VmState.PAUSED, PowerState.SHUTDOWN): VmState.STOPPED,
    (VmState.PAUSED, PowerState.CRASHED): VmState.STOPPED,
    (VmState.PAUSED, PowerState.SUSPENDED): VmState.SUSPENDED,
    (VmState.SUSPENDED, PowerState.RUNNING): VmState.ACTIVE,
    (VmState.SUSPENDED, PowerState.PAUSED): VmState.PAUSED,
    (VmState.SUSPENDED, PowerState.SHUTDOWN): VmState.STOPPED,
}

#: a server's new state, by its VM's state: if it had vanished and is there again, if it is in
#: ERROR and its VM works, or if an action on it failed
BACK: Mapping[PowerState, VmState] = {
    PowerState.RUNNING: VmState.ACTIVE,
    PowerState.PAUSED: VmState.PAUSED,
    PowerState.SHUTDOWN: VmState.STOPPED,
    PowerState.CRASHED: VmState.STOPPED,
    PowerState.SUSPENDED: VmState.SUSPENDED,
}


#: vm_states that don't depend on the VM's power state
_STAYS = frozenset(
    {
        *(VmState.RESIZED, VmState.RESCUED, VmState.SOFT_DELETED),
        *(VmState.SHELVED, VmState.SHELVED_OFFLOADED),
    }
)


def found_well(vm_state: str, power_state: int) -> VmState:
    """Return the vm_state of a server whose VM is proven and unlocked; unseen: the old one.

    A resized server's vm_state is not changed, as it is still to be confirmed or reverted; nor is
    a soft-deleted, rescued or shelved server's.
    """
    if vm_state in _STAYS:
        return VmState(vm_state)
    return BACK.get(PowerState(power_state), VmState(vm_state))


def as_seen(vm_state: str, power_state: int) -> VmState:
    """Return the vm_state of a server without an operation whose VM is in that power_state."""
    return SEEN.get((VmState(vm_state), PowerState(power_state)), VmState(vm_state))


#: the name under which Nova shows an action, where it differs from ours
SHOWN_ACTION: Mapping[str, str] = {"reboot-hard": "reboot", "soft-delete": "delete"}

_STATUS: Mapping[str, str] = {
    VmState.BUILDING: "BUILD",
    VmState.ACTIVE: "ACTIVE",
    VmState.STOPPED: "SHUTOFF",
    VmState.PAUSED: "PAUSED",
    VmState.SUSPENDED: "SUSPENDED",
    VmState.RESIZED: "VERIFY_RESIZE",
    VmState.SHELVED: "SHELVED",
    VmState.SHELVED_OFFLOADED: "SHELVED_OFFLOADED",
    VmState.SOFT_DELETED: "SOFT_DELETED",
    VmState.RESCUED: "RESCUE",
    VmState.ERROR: "ERROR",
    VmState.DELETED: "DELETED",
}

_STATUS_WHILE: Mapping[tuple[str, str | None], str] = {
    (VmState.ACTIVE, TaskState.REBOOTING): "REBOOT",
    (VmState.ACTIVE, TaskState.REBOOTING_HARD): "HARD_REBOOT",
    (VmState.ACTIVE, TaskState.UPDATING_PASSWORD): "PASSWORD",
    (VmState.ACTIVE, TaskState.MIGRATING): "MIGRATING",
    (VmState.PAUSED, TaskState.MIGRATING): "MIGRATING",
    (VmState.RESIZED, TaskState.RESIZE_REVERTING): "REVERT_RESIZE",
    **{(vm, task): "RESIZE" for vm in (VmState.ACTIVE, VmState.STOPPED) for task in _RESIZING},
    **{
        (vm, task): "REBUILD"
        for vm in (VmState.ACTIVE, VmState.STOPPED, VmState.ERROR)
        for task in ACTIONS["rebuild"].walk
    },
}


def status(vm_state: str, task_state: str | None) -> str:
    """Return the API's ``status`` of a server (Nova's ``_STATE_MAP``)."""
    return _STATUS_WHILE.get((vm_state, task_state)) or _STATUS[vm_state]


def refusal(
    action: str, vm_state: str, task_state: str | None, launched: bool
) -> tuple[str, str] | None:
    """Return why the action may not start, (attribute, value), or None; in Nova's order."""
    rule = ACTIONS[action]
    if rule.vm_states is not None and vm_state not in rule.vm_states:
        return ("vm_state", vm_state)
    if rule.task_states is not None and task_state not in rule.task_states:
        return ("task_state", str(task_state))
    if rule.must_have_launched and not launched:
        return ("launched_at", "None")
    return None
