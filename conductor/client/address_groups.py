"""Calls about address groups."""

from __future__ import annotations

from collections.abc import Sequence

from common.context import RequestContext
from conductor.client.base import Base
from conductor.messages import NewAddressGroup
from conductor.rpc_api import AddressGroupRpc


class AddressGroupCalls(Base):
    """See ``conductor.rpc_api.AddressGroupRpc``. ``type`` in errors' details is Neutron's."""

    def create_address_groups(
        self, ctxt: RequestContext, groups: list[NewAddressGroup]
    ) -> list[str]:
        """Make all of these groups or none; return their ids."""
        return self._rpc.call(ctxt, AddressGroupRpc.create_address_groups, groups=groups)

    def update_address_group(
        self, ctxt: RequestContext, group_id: str, asked: dict[str, str]
    ) -> None:
        """Change name and description of a group. Raises NotFound, PreconditionFailed."""
        self._rpc.call(ctxt, AddressGroupRpc.update_address_group, group_id=group_id, asked=asked)

    def change_addresses(
        self,
        ctxt: RequestContext,
        group_id: str,
        *,
        add: Sequence[str],
        remove: Sequence[str],
    ) -> None:
        """Add addresses to a group, or remove some, and have interfaces filtered so.

        Raises NotFound (the group, or an address that is to be removed), Conflict (one is there).
        """
        self._rpc.call(
            ctxt,
            AddressGroupRpc.change_addresses,
            group_id=group_id,
            add=list(add),
            remove=list(remove),
        )

    def delete_address_group(self, ctxt: RequestContext, group_id: str) -> None:
        """Delete a group. Raises NotFound, Conflict while a rule names it."""
        self._rpc.call(ctxt, AddressGroupRpc.delete_address_group, group_id=group_id)
