"""Asks a guest over the network whether it works: one connection to one address, and no further.

Nothing is followed: no redirect, no proxy, no name. Each probe ends within its time, however
slowly the guest answers.
"""

from __future__ import annotations

import contextlib
import re
import socket
import ssl
import time

from common import digits
from common.resources.health_checks import Location

#: for a whole probe, connection included
SECONDS = 5.0
#: the longest part of an answer that is read
_BYTES_MOST = 65_536
_CHUNK, _STATUS_MOST = 4096, 999
_NOT_OF_HOSTS = re.compile(r"[^A-Za-z0-9.-]")


class Refused(Exception):
    """A guest takes no connection; the text is a sentence."""


def tcp(address: str, port: int, seconds: float = SECONDS) -> None:
    """Connect to a port. Raises Refused."""
    _connected(address, port, time.monotonic() + seconds).close()


def http(
    address: str,
    where: Location,
    name: str,
    *,
    verify: bool = True,
    contains: str = "",
    seconds: float = SECONDS,
) -> str:
    """Return why an answer is not that of a guest that is well; empty: it is. Raises Refused."""
    until = time.monotonic() + seconds
    with contextlib.ExitStack() as stack:
        connection = stack.enter_context(_connected(address, where.port, until))
        try:
            if where.secure:
                connection = stack.enter_context(_secured(connection, address, verify=verify))
            answer = _answer(connection, where, name, until)
        except ssl.SSLCertVerificationError as error:
            raise Refused(
                f"The certificate at port {where.port} is not valid: {error.verify_message}."
            ) from error
        except OSError as error:
            raise Refused(f"Port {where.port} does not answer: {_said(error)}.") from error
    return _judged(answer, where.port, contains)


def _connected(address: str, port: int, until: float) -> socket.socket:
    try:
        return socket.create_connection((address, port), _left(until))
    except OSError as error:
        raise Refused(f"Port {port} takes no connection: {_said(error)}.") from error


def _secured(connection: socket.socket, address: str, *, verify: bool) -> ssl.SSLSocket:
    context = ssl.create_default_context()
    if not verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context.wrap_socket(connection, server_hostname=address)


def _answer(connection: socket.socket, where: Location, name: str, until: float) -> bytes:
    """Return the beginning of the answer to a request."""
    # A name may have anything in it, and must not become another header.
    host = _NOT_OF_HOSTS.sub("-", name)
    lines = (f"GET {where.target} HTTP/1.0", f"Host: {host}", "Connection: close", "", "")
    connection.settimeout(_left(until))
    connection.sendall("\r\n".join(lines).encode("ascii"))
    found = bytearray()
    while len(found) < _BYTES_MOST:
        connection.settimeout(_left(until))
        part = connection.recv(_CHUNK)
        if not part:
            break
        found += part
    return bytes(found)


def _judged(answer: bytes, port: int, contains: str) -> str:
    first = answer.partition(b"\r\n")[0].split(b" ", 2)
    known = len(first) > 1 and first[0].startswith(b"HTTP/")
    status = digits.number(first[1].decode("latin-1"), _STATUS_MOST) if known else None
    if status is None:
        return f"Port {port} does not answer as an HTTP server does."
    if not 200 <= status < 300:
        return f"Port {port} answers with status {status}."
    body = answer.partition(b"\r\n\r\n")[2]
    if contains and contains.encode() not in body:
        return f"Port {port} answers without '{contains}'."
    return ""


def _left(until: float) -> float:
    """Return the seconds that are left. Raises TimeoutError."""
    left = until - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def _said(error: OSError) -> str:
    return "no answer in time" if isinstance(error, TimeoutError) else error.strerror or "it fails"
