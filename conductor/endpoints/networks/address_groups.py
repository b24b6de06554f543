"""The RPC endpoint of address groups. The API has asked its policy."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from common.context import RequestContext
from conductor.cloud import Cloud
from conductor.engine.access import scope
from conductor.rpc.networks.address_groups import NewAddressGroup
from conductor.store.networks import revisions
from conductor.store.networks.filtering import address_groups
from conductor.store.transactions import Transaction


class AddressGroupEndpoint:
    """See ``conductor.rpc.AddressGroupRpc``."""

    def __init__(self, cloud: Cloud, wake: Callable[[], None]) -> None:
        """``wake``: have what passes servers' interfaces written soon."""
        self._cloud, self._wake = cloud, wake

    def create_address_groups(
        self, ctxt: RequestContext, groups: list[NewAddressGroup]
    ) -> list[str]:
        return self._cloud.store.run(lambda c: address_groups.create(c, groups))

    def update_address_group(
        self, ctxt: RequestContext, group_id: str, asked: dict[str, str]
    ) -> None:
        def work(connection: Transaction) -> None:
            row = address_groups.locked(connection, group_id, scope(ctxt))
            revisions.require_address_group(connection, ctxt, group_id)
            address_groups.change(connection, row, asked)

        self._cloud.store.run(work)

    def change_addresses(
        self,
        ctxt: RequestContext,
        group_id: str,
        *,
        add: Sequence[str],
        remove: Sequence[str],
    ) -> None:
        def work(connection: Transaction) -> None:
            row = address_groups.locked(connection, group_id, scope(ctxt))
            if add:
                address_groups.add(connection, row, add)
            if remove:
                address_groups.remove(connection, row, remove)

        self._cloud.store.run(work)
        self._wake()

    def delete_address_group(self, ctxt: RequestContext, group_id: str) -> None:
        def work(connection: Transaction) -> None:
            row = address_groups.locked(connection, group_id, scope(ctxt))
            revisions.require_address_group(connection, ctxt, group_id)
            address_groups.delete(connection, row)

        self._cloud.store.run(work)
