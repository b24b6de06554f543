"""The metrics port of a process."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

from common.metrics import config
from common.process.health import Health
from web.operators import Listener

if TYPE_CHECKING:
    from oslo_config import cfg

#: WSGI applications that have a port of their own kind; all others are APIs of the cloud
_OWN = frozenset({"placement", "dashboard"})


def listen(
    conf: cfg.ConfigOpts, service: str, health: Health, taken: socket.socket | None = None
) -> Listener | None:
    """Answer metrics and health of a service until the process ends; None: it has no port.

    `taken`: a socket that listens already, in place of the configured address.
    """
    port = config.port(conf, service)
    if taken is None and not port:
        return None
    listener = Listener(taken or (conf.metrics.host, port), health)
    listener.start()
    return listener


def of_application(name: str) -> str:
    """Return as which service a WSGI application answers."""
    return name if name in _OWN else "api"
