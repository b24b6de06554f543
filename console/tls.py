"""TLS of the console proxy's port."""

from __future__ import annotations

import contextlib
import select
import socket
import ssl
import time

from oslo_config import cfg

from common.errors import ConfigurationError


def context(options: cfg.ConfigOpts.GroupAttr) -> ssl.SSLContext | None:
    """Return what `[console]` configures; None: no TLS. Raises ConfigurationError."""
    if not options.cert_file:
        return None
    made = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        made.load_cert_chain(options.cert_file, options.key_file or None)
    except OSError as error:
        raise ConfigurationError(f"[console] cert_file can't be used: {error}.") from error
    return made


def encrypted(connection: socket.socket, made: ssl.SSLContext, seconds: float) -> socket.socket:
    """Return a connection with TLS, begun within so many seconds in all.

    Raises OSError, and closes the connection.
    """
    with contextlib.ExitStack() as stack:
        stack.callback(connection.close)
        connection.setblocking(False)
        wrapped = made.wrap_socket(connection, server_side=True, do_handshake_on_connect=False)
        stack.callback(wrapped.close)
        until = time.monotonic() + seconds
        while (event := _begin(wrapped)) is not None:
            poll = select.poll()
            poll.register(wrapped, event)
            left = until - time.monotonic()
            if left <= 0 or not poll.poll(left * 1000):
                raise TimeoutError("no handshake in time")
        wrapped.setblocking(True)
        stack.pop_all()
    return wrapped


def _begin(wrapped: ssl.SSLSocket) -> int | None:
    """Continue the handshake; return the event that it waits for, None at its end."""
    try:
        wrapped.do_handshake()
    except ssl.SSLWantReadError:
        return select.POLLIN
    except ssl.SSLWantWriteError:
        return select.POLLOUT
    return None
