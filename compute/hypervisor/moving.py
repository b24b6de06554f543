"""The part of the protocol between the flows and a driver that is about moves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from compute.hypervisor.results import Detail, Removal


class Moving(Protocol):
    """The move of one VM between two nodes. Every method raises HypervisorError if it can't
    continue."""

    @property
    def node(self) -> str:
        """The node that had the VM at the last look; empty: none was seen to have it."""

    def find(self) -> Detail:
        """See on which node the VM is, once no migration of it runs any more."""

    def check(self) -> Detail:
        """Refuse what can't be moved, before anything is touched; a VM that moved already is
        no error."""

    def take_drive_out(self) -> Detail:
        """Take out the config drive, and other CDs, where they can't move along."""

    def put_drive_in(self, image: Callable[[], bytes] | None) -> Detail:
        """Put the config drive in, wherever the VM is, and the CDs that were taken out; ``image``
        makes the drive. None: it has none."""

    def carry_out(self) -> Detail:
        """Move the VM and see it on the target.

        It is never retried nor stopped: if its outcome is unknown, a look at both nodes decides.
        """

    def clean_up(self) -> Removal:
        """Remove copies of disks and drive from the node where the VM isn't, if provably ours."""
