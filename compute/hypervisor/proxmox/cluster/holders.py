"""Tasks that hold a lock of a VM's configuration, or left one behind."""

from __future__ import annotations

from compute.hypervisor.proxmox.api.upid import Upid
from compute.hypervisor.proxmox.cluster.shared import Shared

#: lock of a half-created VM → the kind of task that creates it
MAKERS = {"create": "qmcreate", "clone": "qmclone"}
#: the kind of the tasks that restore a VM from a backup
RESTORE = "qmrestore"
#: kinds of tasks that make a VM under its own id
CREATING = ("qmcreate", RESTORE)
#: kinds of tasks that run as long as somebody looks at a VM, and lock nothing
_CONSOLES = frozenset({"vncproxy", "spiceproxy"})


def live(shared: Shared, node: str, vmid: int, lock: str) -> list[Upid]:
    """Return the running tasks that may hold this lock of a VM."""
    return [task for task in shared.tasks.active(node) if may_hold(shared, vmid, lock, task)]


def may_hold(shared: Shared, vmid: int, lock: str, task: Upid) -> bool:
    """Return whether a running task may hold this lock of a VM."""
    if task.concerns(vmid):
        return task.kind not in _CONSOLES
    # A clone's task is filed under its source; its log names the target.
    if lock == "clone" and clones_to(shared, vmid, task):
        return True
    # One on several VMs is filed under none.
    return lock == "backup" and task.kind == "vzdump" and not task.subject


def maker(shared: Shared, node: str, vmid: int, lock: str) -> Upid | None:
    """Return the task of our token that left a half-created VM with this lock, or None."""
    kind = MAKERS.get(lock)
    if kind is None:
        return None
    me = shared.settings.token.id
    if kind in CREATING:
        made = creator(shared, node, vmid)
        return made if made is not None and made.who == me else None
    clones = [one for one in shared.tasks.recent(node, "qmclone") if one.who == me]
    return next((one for one in clones if clones_to(shared, vmid, one)), None)


def creator(shared: Shared, node: str, vmid: int) -> Upid | None:
    """Return the last task of any user that created or restored a VM of this id."""
    made = [task for kind in CREATING for task in shared.tasks.of_vm(node, vmid, kind)]
    return max(made, key=lambda task: task.start, default=None)


def clones_to(shared: Shared, vmid: int, task: Upid) -> bool:
    """Return whether a clone's task, which is filed under its source, creates this VM."""
    if task.kind != "qmclone":
        return False
    head = shared.tasks.log_head(task)
    return any(line.rstrip().endswith(f"with ID {vmid}") for line in head)
