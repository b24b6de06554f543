"""The part of the protocol between the flows and a driver that is about swapping disks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from common.messages.commands import Swap
from compute.hypervisor.results import Detail, Removal


class Disks(Protocol):
    """The disks of one VM, to be swapped for others. Every method raises HypervisorError if it
    can't continue."""

    def check(self, swap: Swap) -> Detail:
        """Refuse what the VM can't be given; nothing is touched."""

    def swapped(self, swap: Swap) -> bool:
        """Return whether the VM has what this operation gives it."""

    def has_former(self, *, rescued: bool = False) -> bool:
        """Return whether there is something to give back; see ``give_back``."""

    def upload(self, swap: Swap, image: Callable[[], bytes]) -> Detail:
        """Upload the config drive, which `image` makes, beside the VM's present one."""

    def swap(self, swap: Swap) -> Detail:
        """Give the stopped VM the disk and the config drive; the old ones remain beside them."""

    def give_back(self, *, rescued: bool = False) -> Removal:
        """Give the stopped VM back what it had before this operation's swap, and remove the new
        disks; ``rescued``: what it had before its rescue, by any operation."""

    def let_go(self) -> Removal:
        """Remove what the VM had before this operation's swap."""
