"""Whether the VM of a deleted server is there again. Pure.

A delete ends once the VM and its disks were seen gone. What is at its VMID afterwards was made by
a call that was late, soon after the delete, and is removed; or somebody has restored it, from a
backup or with the whole cluster, and then it is not ours any more to remove.
"""

from __future__ import annotations

import datetime

from conductor.audit.facts import Facts, Place, ServerFacts

#: a VM that was first seen so long after the delete was not made by a late call: commands,
#: Proxmox VE's tasks and its waits for locks have ended by then
LATE = datetime.timedelta(hours=1)


def came_back(facts: Facts, place: Place, server: ServerFacts) -> bool:
    """Return whether a VM, which is there, was restored after the delete of its server.

    It counts when it was first seen: an audit that is held up takes no leftover for restored.
    """
    if server.deleted_at is None:
        return False
    reserved = facts.reservations.get(place)
    first = facts.now if reserved is None else reserved.since
    return first - server.deleted_at > LATE
