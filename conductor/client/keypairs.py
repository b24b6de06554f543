"""Calls about key pairs."""

from __future__ import annotations

from common.context import RequestContext
from conductor.client.base import Base
from conductor.messages import NewKeyPair
from conductor.rpc_api import KeyPairRpc


class KeyPairCalls(Base):
    """See ``conductor.rpc_api.KeyPairRpc``."""

    def create_keypair(self, ctxt: RequestContext, keypair: NewKeyPair) -> None:
        """Store a public key. Raises Conflict (the name), QuotaExceeded over ``key_pairs``."""
        self._rpc.call(ctxt, KeyPairRpc.create_keypair, keypair=keypair)

    def delete_keypair(self, ctxt: RequestContext, user_id: str, name: str) -> None:
        """Delete a user's public key. Raises KeyPairNotFound."""
        self._rpc.call(ctxt, KeyPairRpc.delete_keypair, user_id=user_id, name=name)
