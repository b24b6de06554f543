"""Calls about key pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from common.context import RequestContext


@dataclass(frozen=True)
class NewKeyPair:
    """A public key to be stored for a user."""

    user_id: str
    name: str
    type: str
    fingerprint: str
    public_key: str


class KeyPairRpc(Protocol):
    """Key pairs."""

    def create_keypair(self, ctxt: RequestContext, keypair: NewKeyPair) -> None:
        """Store a public key. Raises Conflict (the name), QuotaExceeded over ``key_pairs``."""

    def delete_keypair(self, ctxt: RequestContext, user_id: str, name: str) -> None:
        """Delete a user's public key. Raises KeyPairNotFound."""
