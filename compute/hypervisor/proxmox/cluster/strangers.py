"""Our VLAN tags and disks that VMs of others use. No list of Proxmox VE shows them, so a few VMs
are read each time.

A VM's result is held until the VM is deleted or read again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from common.messages.inventory import SeenReference, SeenTag

#: VMs that are read in one inventory
MOST = 50


@dataclass(frozen=True)
class Used:
    """What VMs of others use."""

    tags: tuple[SeenTag, ...] = ()
    references: tuple[SeenReference, ...] = ()
    complete: bool = False
    """Whether each of them was read once."""


Reader = Callable[[int, str], Used | None]
"""Returns what (VMID, node) uses; None: it can't be read now."""


class Strangers:
    """What one cluster's other VMs use; threads may share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[int, Used] = {}
        self._last = -1

    def look(self, nodes: Mapping[int, str], read: Reader) -> Used:
        """Read the next few of these VMs (VMID → node); return what is known of all of them."""
        with self._lock:
            turn = self._turn(sorted(nodes))
            for vmid in turn:
                seen = read(vmid, nodes[vmid])
                if seen is not None:
                    self._known[vmid] = seen
            self._last = turn[-1] if turn else -1
            self._known = {vmid: one for vmid, one in self._known.items() if vmid in nodes}
            known = [one for _, one in sorted(self._known.items())]
            return Used(
                tuple(tag for one in known for tag in one.tags),
                tuple(reference for one in known for reference in one.references),
                complete=self._known.keys() == nodes.keys(),
            )

    def _turn(self, vmids: list[int]) -> list[int]:
        """Return the VMIDs after the last read one, then the first ones."""
        later = [vmid for vmid in vmids if vmid > self._last]
        earlier = [vmid for vmid in vmids if vmid <= self._last]
        return (later + earlier)[:MOST]
