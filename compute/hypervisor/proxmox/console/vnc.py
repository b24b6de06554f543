"""The client's half of VNC's beginning (RFB 3.8), with VNC authentication."""

from __future__ import annotations

import hmac

from cryptography.hazmat.decrepit.ciphers.algorithms import TripleDES
from cryptography.hazmat.primitives.ciphers import Cipher, modes

from common.streams import Exactly, Stream

VERSION = b"RFB 003.008\n"
NONE, VNC_AUTHENTICATION = 1, 2
_LONGEST_REASON = 1024


class VncRefusedError(Exception):
    """The VNC server refused, or speaks something else."""


def authenticate(stream: Stream, password: str) -> Stream:
    """Return the stream once the server has let us in: the client's initialization is next.

    Raises VncRefusedError, OSError at the end.
    """
    server = Exactly(stream)
    if not hmac.compare_digest(server.exactly(len(VERSION)), VERSION):
        raise VncRefusedError("The VNC server doesn't speak RFB 3.8.")
    server.send(VERSION)
    types = server.exactly(server.exactly(1)[0])
    if not types:
        raise VncRefusedError(_reason(server))
    if VNC_AUTHENTICATION in types:
        server.send(bytes([VNC_AUTHENTICATION]))
        server.send(response(password, server.exactly(16)))
    elif NONE in types:
        server.send(bytes([NONE]))
    else:
        raise VncRefusedError("The VNC server offers no authentication that is known here.")
    if int.from_bytes(server.exactly(4), "big"):
        raise VncRefusedError(_reason(server))
    return server


def response(password: str, challenge: bytes) -> bytes:
    """Return the answer to a challenge, by the first eight bytes of the password."""
    return des(password.encode()[:8].ljust(8, b"\0"), challenge)


def des(password: bytes, plain: bytes) -> bytes:
    """Return what DES makes of it, the bits of each byte of the key reversed, as in VNC."""
    key = bytes(_REVERSED[byte] for byte in password)
    # Three times the same key is plain DES, which VNC prescribes.
    cipher = Cipher(TripleDES(key * 3), modes.ECB())  # noqa: S305
    return cipher.encryptor().update(plain)


_REVERSED = [int(f"{byte:08b}"[::-1], 2) for byte in range(256)]


def _reason(server: Exactly) -> str:
    count = int.from_bytes(server.exactly(4), "big")
    return server.exactly(min(count, _LONGEST_REASON)).decode("utf-8", "replace")
