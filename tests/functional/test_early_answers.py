"""Answers to requests whose body nobody reads: whole, and the connection's end is announced."""

from __future__ import annotations

import contextlib
import socket
from urllib.parse import urlsplit

import pytest

from tests.functional.cloud import EmbeddedCloud

SIZE = 3_000_000
NOBODY = "00000000-0000-4000-8000-000000000000"
REQUESTS = [
    ("POST", "compute/v2.1/servers", "application/json", 413),
    ("POST", "compute/v2.1/servers", "text/html", 415),
    ("POST", "placement/resource_providers", "application/json", 403),
    ("POST", "placement/resource_providers", "text/plain", 415),
    ("POST", "image/v2/images", "application/json", 413),
    ("PUT", f"image/v2/images/{NOBODY}/file", "text/plain", 404),
    ("PUT", f"image/v2/images/{NOBODY}/file", "application/octet-stream", 404),
    ("POST", "network/v2.0/ports", "application/json", 413),
    ("POST", "network/v2.0/ports", "text/plain", 413),
    ("POST", "volume/v3/volumes", "application/json", 413),
    ("POST", "volume/v3/volumes", "text/plain", 413),
    ("POST", "dashboard/login", "application/x-www-form-urlencoded", 413),
    ("POST", "identity", "application/json", 413),
    ("POST", "nowhere", "application/json", 404),
]


def asked(cloud: EmbeddedCloud, head: str, path: str) -> tuple[socket.socket, bytes]:
    """Return a connection to the API that a path names, with this head sent on it."""
    base = cloud.auth_url if path == "identity" else cloud.base_url
    where = urlsplit(base)
    assert where.hostname
    connection = socket.create_connection((where.hostname, where.port or 80), timeout=30)
    token = cloud.connection().session.get_token()
    lines = [head, f"Host: {where.netloc}", f"X-Auth-Token: {token}", f"Content-Length: {SIZE}"]
    return connection, "\r\n".join([*lines, "", ""]).encode()


def answer_of(connection: socket.socket) -> bytes:
    """Return all that comes until the server closes the connection, without a reset."""
    received = bytearray()
    while data := connection.recv(65536):
        received += data
    return bytes(received)


@pytest.mark.parametrize(("method", "path", "kind", "status"), REQUESTS)
def test_the_answer_arrives_and_says_that_the_connection_closes(
    three_nodes: EmbeddedCloud, method: str, path: str, kind: str, status: int
) -> None:
    target = "/v3/auth/tokens" if path == "identity" else f"/{path}"
    head = f"{method} {target} HTTP/1.1\r\nContent-Type: {kind}"
    connection, sent = asked(three_nodes, head, path)
    with contextlib.closing(connection):
        connection.sendall(sent + b"x" * SIZE)  # all of it before the answer is looked at
        answer = answer_of(connection)
    assert answer.startswith(b"HTTP/1.1 %d " % status), answer[:500]
    assert answer.count(b"HTTP/1.1") == 1
    assert b"\r\nconnection: close\r\n" in answer.lower()
