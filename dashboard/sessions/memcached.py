"""Sessions in memcached, for several hosts."""

from __future__ import annotations

import ssl
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from common.errors import ConfigurationError

if TYPE_CHECKING:
    from pymemcache.client.hash import HashClient

_PREFIX = "micronova-dashboard-"
_COUNTER = f"{_PREFIX}count-"
_SECONDS = 3.0


def _trusting(ca_file: str) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=ca_file)
    except OSError as error:
        raise ConfigurationError(f"[dashboard] memcached_ca_file {ca_file}: {error}") from error


class MemcachedStore:
    """One or several memcached servers."""

    def __init__(self, servers: Sequence[str], ca_file: str | None = None) -> None:
        """With ``ca_file`` by TLS, with certificates of that authority.

        Raises ConfigurationError where the client's package is missing, or that file.
        """
        try:
            from pymemcache.client.hash import HashClient
        except ImportError as error:
            raise ConfigurationError(
                "[dashboard] memcached_servers needs the package pymemcache "
                "(micronova[memcached])."
            ) from error
        self._client: HashClient = HashClient(
            list(servers),
            connect_timeout=_SECONDS,
            timeout=_SECONDS,
            use_pooling=True,
            tls_context=None if ca_file is None else _trusting(ca_file),
        )

    def get(self, key: str, now: float) -> bytes | None:
        """Return what is kept."""
        found: bytes | None = self._client.get(_PREFIX + key)
        return found

    def put(self, key: str, value: bytes, until: float) -> None:
        """Store a value."""
        self._client.set(_PREFIX + key, value, expire=_seconds(until))

    def replace(self, key: str, value: bytes, until: float) -> None:
        """Overwrite the value of a key; do nothing if the key does not exist."""
        self._client.replace(_PREFIX + key, value, expire=_seconds(until))

    def delete(self, key: str) -> None:
        """Forget it."""
        self._client.delete(_PREFIX + key)

    def count(self, key: str, now: float, seconds: int, *, more: int) -> int:
        """Add to a counter, which begins again after some seconds; return it."""
        name = _COUNTER + key
        self._client.add(name, b"0", expire=seconds)
        change = self._client.decr if more < 0 else self._client.incr
        return int(change(name, abs(more)) or 0)

    def forget(self, key: str) -> None:
        """Reset a counter."""
        self._client.delete(_COUNTER + key)


def _seconds(until: float) -> int:
    return max(1, int(until - time.time()))
