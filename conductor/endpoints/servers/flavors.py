"""The RPC endpoint of flavors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from common.context import RequestContext
from conductor.cloud import Cloud
from conductor.rpc.servers.flavors import NewFlavor
from conductor.store import call_answers
from conductor.store.outbox import notification_payloads
from conductor.store.servers import flavors
from conductor.store.transactions import Transaction


class FlavorEndpoint:
    """See ``conductor.rpc.FlavorRpc``."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    def create_flavor(self, ctxt: RequestContext, flavor: NewFlavor) -> str:
        def work(connection: Transaction) -> str:
            made = flavors.create(connection, flavor)
            notification_payloads.flavor(connection, ctxt, made, "create")
            call_answers.note(connection, made)
            return made

        return self._cloud.store.run(work)

    def update_flavor(self, ctxt: RequestContext, flavorid: str, description: str | None) -> None:
        self._update(ctxt, flavorid, lambda c: flavors.update(c, flavorid, description))

    def delete_flavor(self, ctxt: RequestContext, flavorid: str) -> None:
        def work(connection: Transaction) -> None:
            notification_payloads.flavor(connection, ctxt, flavorid, "delete")
            flavors.delete(connection, flavorid)

        self._cloud.store.run(work)

    def set_flavor_extra_specs(
        self,
        ctxt: RequestContext,
        flavorid: str,
        specs: Mapping[str, str],
        delete: Sequence[str] = (),
    ) -> None:
        self._update(ctxt, flavorid, lambda c: flavors.set_extra_specs(c, flavorid, specs, delete))

    def set_flavor_access(
        self, ctxt: RequestContext, flavorid: str, project_id: str, *, allowed: bool
    ) -> None:
        self._update(
            ctxt,
            flavorid,
            lambda c: flavors.set_access(c, flavorid, project_id, allowed=allowed),
        )

    def _update(
        self, ctxt: RequestContext, flavorid: str, change: Callable[[Transaction], None]
    ) -> None:
        def work(connection: Transaction) -> None:
            change(connection)
            notification_payloads.flavor(connection, ctxt, flavorid, "update")

        self._cloud.store.run(work)
