"""The RPC endpoint of key pairs."""

from __future__ import annotations

from common.context import RequestContext
from conductor.cloud import Cloud
from conductor.rpc.servers.keypairs import NewKeyPair
from conductor.store.outbox import notification_payloads
from conductor.store.quotas import quotas
from conductor.store.servers import keypairs
from conductor.store.transactions import Transaction


class KeyPairEndpoint:
    """See ``conductor.rpc.KeyPairRpc``."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    def create_keypair(self, ctxt: RequestContext, keypair: NewKeyPair) -> None:
        def work(connection: Transaction) -> None:
            allowed = quotas.limits(connection, str(ctxt.project_id), self._cloud.quota)
            quotas.check_keypairs(connection, keypair.user_id, allowed)
            keypairs.create(connection, keypair)
            notification_payloads.keypair(
                connection, ctxt, keypair.user_id, keypair.name, "create"
            )

        self._cloud.store.run(work)

    def delete_keypair(self, ctxt: RequestContext, user_id: str, name: str) -> None:
        def work(connection: Transaction) -> None:
            notification_payloads.keypair(connection, ctxt, user_id, name, "delete")
            keypairs.delete(connection, user_id, name)

        self._cloud.store.run(work)
