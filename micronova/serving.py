"""The APIs under gunicorn: its worker class, and what its master does before it has workers."""

from __future__ import annotations

import gc
from typing import Any

import micronova  # noqa: F401  (puts the packages on the import path)
from common.metrics import sharing
from web.serving import Worker

__all__ = ["Worker", "end", "preload"]

#: workers from which on it takes less memory, with the pages that each of them copies by use
_SHARING = 2


def preload(server: Any) -> None:
    """Make what the workers serve, so that they share its memory, and where they share metrics.

    gunicorn's `on_starting`, and its `on_reload`, as the configuration is read here. A single
    worker would share with nobody: it makes its own.
    """
    sharing.begin()
    if server.cfg.workers >= _SHARING:
        _prepare(server)
    # A collection in a worker writes to all that it looks at: the worker would copy that memory.
    gc.freeze()


def _prepare(server: Any) -> None:
    module, _, name = getattr(server.app, "app_uri", "").partition(":")
    if module != "micronova.wsgi":
        return
    from launcher import web

    if name in web.NAMES:
        web.preload(name)


def end(_server: Any) -> None:
    """Remove what the workers shared; gunicorn's `on_exit`."""
    sharing.end()
