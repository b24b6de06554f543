"""VLAN tags that VMs of others use. No list of Proxmox VE has them: a few VMs are read each time.

What was read is kept until the VM goes, or its turn comes again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence

from common.messages.facts import NicFacts
from compute.messages import SeenTag

#: VMs that are read in one inventory
MOST = 50

Reader = Callable[[int, str], Sequence[NicFacts] | None]
"""Returns the interfaces of (VMID, node); None: they can't be read now."""


class Strangers:
    """The tags of one cluster's other VMs; threads may share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tags: dict[int, tuple[SeenTag, ...]] = {}
        self._last = -1

    def look(self, nodes: Mapping[int, str], read: Reader) -> tuple[tuple[SeenTag, ...], bool]:
        """Read the next few of these VMs (VMID → node).

        Return what is known of all of them, and whether each of them was read once.
        """
        with self._lock:
            turn = self._turn(sorted(nodes))
            for vmid in turn:
                seen = read(vmid, nodes[vmid])
                if seen is not None:
                    self._tags[vmid] = tuple(
                        SeenTag(vmid, nodes[vmid], nic.bridge, nic.vlan)
                        for nic in seen
                        if nic.vlan is not None
                    )
            self._last = turn[-1] if turn else -1
            self._tags = {vmid: tags for vmid, tags in self._tags.items() if vmid in nodes}
            known = tuple(tag for _, tags in sorted(self._tags.items()) for tag in tags)
            return known, self._tags.keys() == nodes.keys()

    def _turn(self, vmids: list[int]) -> list[int]:
        """Return those after the last one that was read, then the first ones."""
        later = [vmid for vmid in vmids if vmid > self._last]
        earlier = [vmid for vmid in vmids if vmid <= self._last]
        return (later + earlier)[:MOST]
