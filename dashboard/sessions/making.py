"""The sessions that the configuration asks for, and the key that encrypts them."""

from __future__ import annotations

import contextlib
import os
import secrets
import time
from pathlib import Path

from oslo_config import cfg

from common.errors import ConfigurationError
from dashboard.sessions import Sessions, Store
from dashboard.sessions.memcached import MemcachedStore
from dashboard.sessions.sqlite import SqliteStore

_KEY_BYTES = 32


def sessions(options: cfg.ConfigOpts.GroupAttr) -> Sessions:
    """Return them. Raises ConfigurationError where the state directory can't be used."""
    folder = Path(options.state_dir)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        key = _key(folder / "session.key")
        store: Store = (
            MemcachedStore(options.memcached_servers, options.memcached_ca_file)
            if options.memcached_servers
            else SqliteStore(folder / "sessions.sqlite")
        )
    except OSError as error:
        raise ConfigurationError(
            f"[dashboard] state_dir {folder} can't be used: {error.strerror or error}."
        ) from error
    return Sessions(store, key, options.idle_minutes * 60, time.time)


def _key(path: Path) -> bytes:
    """Return the key, made at the first start; of several processes one makes it."""
    if not path.exists():
        made = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
        with os.fdopen(os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(secrets.token_bytes(_KEY_BYTES))
            os.fsync(file.fileno())
        with contextlib.suppress(FileExistsError):
            os.link(made, path)
        made.unlink()
    key = path.read_bytes()
    if len(key) < _KEY_BYTES:
        raise ConfigurationError(f"{path} is too short: {_KEY_BYTES} random bytes are needed.")
    return key
