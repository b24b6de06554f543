"""Sends requests as bytes, whatever is in them, and reads answers."""

from __future__ import annotations

import contextlib
import http.client
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from benchmarks.fuzz.requests import Made

TIMEOUT_SECONDS = 45.0
NO_ANSWER = 0


@dataclass(frozen=True)
class Answer:
    """The status, 0 without an answer, and the beginning of the answer."""

    status: int
    text: str = ""


def encoded(made: Made, tokens: Mapping[str, str]) -> bytes:
    """Return the request as it is sent."""
    lines = [f"{made.method} {made.target} HTTP/1.1"]
    for name, value in made.headers:
        lines.append(f"{name}: {tokens.get(value, value)}")
    return "\r\n".join(lines).encode("latin-1", "replace") + b"\r\n\r\n" + made.body


class Sender:
    """One client's connections, each used until the server closes it."""

    def __init__(self, urls: Mapping[str, str]) -> None:
        self._addresses = {api: _address(url) for api, url in urls.items()}
        self._kept: dict[tuple[str, int], socket.socket] = {}

    def send(self, made: Made, tokens: Mapping[str, str]) -> Answer:
        """Return the answer; on a connection of its own where the request breaks the protocol."""
        where = self._addresses[made.api]
        data = encoded(made, tokens)
        kept = None if made.breaks_protocol else self._kept.pop(where, None)
        if kept is not None:
            answer = self._exchange(where, kept, data, made)
            if answer.status != NO_ANSWER:
                return answer
        fresh = socket.create_connection(where, timeout=TIMEOUT_SECONDS)
        return self._exchange(where, fresh, data, made)

    def close(self) -> None:
        """Close the open connections."""
        for each in self._kept.values():
            each.close()

    def _exchange(
        self, where: tuple[str, int], connection: socket.socket, data: bytes, made: Made
    ) -> Answer:
        keeps = False
        try:
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                connection.sendall(data)  # the answer may be there before all is sent
            if made.breaks_protocol:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_WR)
            response = http.client.HTTPResponse(connection, method=made.method)
            response.begin()
            body = response.read()
            keeps = not response.will_close and not made.breaks_protocol
            response.close()
            return Answer(response.status, body[:600].decode("utf-8", "replace"))
        except (OSError, http.client.HTTPException):
            return Answer(NO_ANSWER)
        finally:
            if keeps:
                self._kept[where] = connection
            else:
                connection.close()


def _address(url: str) -> tuple[str, int]:
    parts = urlsplit(url)
    return str(parts.hostname), int(parts.port or 80)
