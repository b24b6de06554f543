"""What is changed in py-amqp's sockets.

* A broker's certificate must have the name by which it is connected to, also where the URL names
  several hosts.
* What comes from the broker is read at once, instead of in nine parts a message.
"""

from __future__ import annotations

from typing import Any

#: as many are read at once, if there are
_AHEAD_BYTES = 8192


def change() -> None:
    """Change the library's classes; called once."""
    from kombu.transport import pyamqp

    library: Any = pyamqp
    with_tls = library.amqp.transport.SSLTransport
    with_tls._setup_transport = _verifying_name(with_tls._setup_transport)
    for transport in (with_tls, library.amqp.transport.TCPTransport):
        transport._setup_transport = reading_ahead(transport._setup_transport)


def _verifying_name(original: Any) -> Any:
    """Return ``SSLTransport._setup_transport``, which then verifies the host's name.

    The driver verifies names only where the URL has a single host.
    """

    def setup(self: Any) -> None:
        if self.sslopts.get("ca_certs"):
            self.sslopts = {**self.sslopts, "server_hostname": self.host}
        original(self)

    return setup


def reading_ahead(original: Any) -> Any:
    """Return a transport's ``_setup_transport``, after which it reads what has come.

    It would read each frame in three parts, and a message has three frames. What is too much is in
    its buffer, where the next frame is looked for first, with TLS too.
    """

    def setup(self: Any) -> None:
        original(self)
        receive = self._quick_recv
        self._quick_recv = lambda count: receive(max(count, _AHEAD_BYTES))

    return setup
