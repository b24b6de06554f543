"""Secrets of webhooks: in their URLs, hashed in the database, and shown to their maker.

A secret has 256 random bits, so its hash needs neither salt nor slowness. What is stored beside
it is sealed with the token of the request that made it: a client that makes a webhook and then
shows it, as python-senlinclient does, sees its URL; nobody else does, and nobody does later.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets

_BYTES = 32


def new() -> str:
    """Return a new secret: 64 hexadecimal digits."""
    return secrets.token_hex(_BYTES)


def hashed(receiver_id: str, secret: str) -> str:
    """Return what is stored of a secret."""
    return hashlib.sha256(f"{receiver_id}:{secret}".encode()).hexdigest()


def is_of(key_hash: str, receiver_id: str, secret: str) -> bool:
    """Return whether a secret is the stored one, in the same time whatever it is."""
    return hmac.compare_digest(key_hash.encode(), hashed(receiver_id, secret).encode())


def sealed(receiver_id: str, secret: str, token: str) -> str:
    """Return a secret that only this token opens."""
    return _xor(secret, _pad(receiver_id, token))


def opened(receiver_id: str, seal: str, token: str, key_hash: str) -> str | None:
    """Return a sealed secret; None: it was sealed with another token."""
    secret = _xor(seal, _pad(receiver_id, token))
    return secret if is_of(key_hash, receiver_id, secret) else None


def _pad(receiver_id: str, token: str) -> bytes:
    return hmac.digest(token.encode(), f"webhook {receiver_id}".encode(), "sha256")


def _xor(digits: str, pad: bytes) -> str:
    return bytes(one ^ other for one, other in zip(bytes.fromhex(digits), pad, strict=True)).hex()
