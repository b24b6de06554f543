"""Abort of a running live migration, or its end at once: by QEMU's monitor.

Both need privileges (``privileges.steering``) that the token hasn't unless the operator wants it
so. A migration's task is never stopped: it would leave a lock that
only root can clear.
"""

from __future__ import annotations

import re

from common.messages.reports import Category
from compute.hypervisor.port import HypervisorError
from compute.hypervisor.proxmox.api import privileges
from compute.hypervisor.proxmox.cluster.shared import Shared
from compute.hypervisor.proxmox.vmconfig import marks
from compute.hypervisor.proxmox.vmconfig.marks import Owner

#: ``Status: active``, in older versions ``Migration status: active``
_STATUS = re.compile(r"[Ss]tatus:\s*(\S+)")


def steer(shared: Shared, vmid: int, node: str, server_uuid: str, *, abort: bool) -> str | None:
    """Return why it can't be, or None. Raises HypervisorError."""
    needed = privileges.steering(shared.snapshot.version, f"/vms/{vmid}")
    lacks = privileges.lacking(shared.client.get("access/permissions"), needed)
    if lacks:
        return f"The agent's token lacks {lacks[0].privileges[0]} on {lacks[0].path}."
    path = f"nodes/{node}/qemu/{vmid}"
    config = shared.client.get(f"{path}/config")
    mark = marks.server_mark(server_uuid, "")
    if marks.owner(config, mark) is not Owner.OURS:
        why = marks.why_not(config, mark)
        lost = marks.is_half_marked(config, mark)
        category = Category.MARK_LOST if lost else Category.FOREIGN
        raise HypervisorError(category, f"VM {vmid} on {node} is not ours: {why}.")
    locked = config.get("lock") == "migrate"
    if not locked or not _copies(shared.client.post(f"{path}/monitor", command="info migrate")):
        return "Its memory isn't being copied now."
    shared.client.post(f"{path}/monitor", command="migrate_cancel" if abort else "stop")
    return None


def _copies(shown: object) -> bool:
    """Return whether QEMU shows a migration that runs."""
    match = _STATUS.search(str(shown or ""))
    return match is not None and match[1] in ("setup", "active")
