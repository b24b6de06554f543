"""The server's half of VNC's beginning (RFB 3.8), without a password.

Who opens the websocket has proven by its token that it may.
"""

from __future__ import annotations

from common.streams import Exactly, Stream

VERSION = b"RFB 003.008\n"
_NONE = 1
_OLD = b"RFB 003.003\n"


def greet(browser: Stream) -> Stream:
    """Return the stream when the client's initialization is next. Raises OSError otherwise."""
    client = Exactly(browser)
    client.send(VERSION)
    version = client.exactly(len(VERSION))
    if not version.startswith(b"RFB 003.") or version <= _OLD:
        raise OSError("the client speaks another version of RFB")
    client.send(bytes([1, _NONE]))
    if client.exactly(1) != bytes([_NONE]):
        raise OSError("the client chose an authentication that was not offered")
    # Before 3.8 no result follows where there is no authentication.
    if version >= VERSION:
        client.send(bytes(4))
    return client
