"""Locks in the configurations of VMs that no running task will release, and their remedies."""

from __future__ import annotations

from common.failures import Verdict
from common.messages.reports import Category
from compute.hypervisor.port import HypervisorError
from compute.hypervisor.proxmox.api.errors import ApiError
from compute.hypervisor.proxmox.cluster import holders
from compute.hypervisor.proxmox.cluster.shared import Shared

OWNERS_WORDS = (
    "The machine is locked ({}), and nothing is running that would unlock it. An administrator "
    "has to; then it can be tried again."
)


class StuckError(HypervisorError):
    """A half-created VM has the VMID, and only root can remove it."""


def stuck(
    shared: Shared, node: str, vmid: int, lock: str, *, half_made: bool = False
) -> HypervisorError:
    """Return the error about a lock that no running task explains: only root can clear it.

    ``half_made``: the VM was never finished, so that it may be removed with its lock. Any other
    one is only unlocked: it has its user's data.
    """
    made = ""
    if half_made and holders.maker(shared, node, vmid, lock) is None:
        made = " No task of this token is known to have made it."
    what, unlock = f"VM {vmid} on {node}", f"as root on {node}: qm unlock {vmid}"
    return (StuckError if half_made else HypervisorError)(
        Category.LOCK,
        f"{what} carries the lock '{lock}' and no task is running that could hold it.{made}",
        left=(f"{what}: locked ({lock})",),
        remedy=f"{unlock} && qm destroy {vmid} --purge" if half_made else unlock,
        # A half-created VM's lock never ends; another ends when somebody unlocks it.
        verdict=Verdict.QUARANTINE if half_made else Verdict.WAIT,
        owner_message=OWNERS_WORDS.format(lock),
    )


def explain(shared: Shared, node: str, vmid: int, error: ApiError) -> None:
    """Add to the refusal of a write because of a VM's lock how that ends, unless a task holds it.

    The repetition of an action waits for a task. The lock ``suspended`` refuses only some writes,
    and is no reason to wait before the others.
    """
    if not error.locked or error.remedy is not None:
        return
    try:
        lock = shared.client.get(f"nodes/{node}/qemu/{vmid}/config").get("lock")
        if lock is None or holders.live(shared, node, vmid, str(lock)):
            return
    except ApiError:
        return  # the refusal itself says more
    known = stuck(shared, node, vmid, str(lock))
    error.remedy, error.left, error.owner_message = known.remedy, known.left, known.owner_message
