"""Calls about address groups, which rules of security groups name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from common.context import RequestContext


@dataclass(frozen=True)
class NewAddressGroup:
    """An address group that a user makes; addresses are prefixes."""

    project_id: str
    name: str = ""
    description: str = ""
    addresses: tuple[str, ...] = ()


class AddressGroupRpc(Protocol):
    """Address groups, which rules of security groups name."""

    def create_address_groups(
        self, ctxt: RequestContext, groups: list[NewAddressGroup]
    ) -> list[str]:
        """Make all of these groups or none; return their ids."""

    def update_address_group(
        self, ctxt: RequestContext, group_id: str, asked: dict[str, str]
    ) -> None:
        """Change name and description of a group. Raises NotFound, PreconditionFailed."""

    def change_addresses(
        self,
        ctxt: RequestContext,
        group_id: str,
        *,
        add: Sequence[str],
        remove: Sequence[str],
    ) -> None:
        """Add addresses to a group, or remove some, and have interfaces filtered so.

        Raises NotFound (the group, or an address to remove), Conflict (an address to add exists).
        """

    def delete_address_group(self, ctxt: RequestContext, group_id: str) -> None:
        """Delete a group. Raises NotFound, Conflict while a rule names it."""
