"""Fetches a user's upload piece by piece from the API host that stores it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import requests

from common.clients import direct
from common.messages.commands import StoreImage
from common.messages.reports import Category
from compute.hypervisor.port import HypervisorError

#: maximum size of one answer
PIECE_BYTES = 1 << 22
TOKEN_HEADER = "X-Spool-Token"  # noqa: S105 - a name

_TIMEOUT_SECONDS = (10.0, 60.0)
#: seconds before each further request for a piece, if the answer to the last one was lost
_AGAIN_SECONDS = (0.2, 1.0, 3.0)


class ImageSource:
    """The data of one upload. May be read several times."""

    def __init__(
        self, command: StoreImage, check: Callable[[], None], pause: Callable[[float], None]
    ) -> None:
        """``check`` is called before each piece, ``pause`` waits the given seconds; an error of
        either ends the transfer."""
        self._command, self._check, self._pause = command, check, pause

    def pieces(self) -> Iterator[bytes]:
        """Yield all of it in order. Raises HypervisorError if it is missing or incomplete."""
        at, size = 0, self._command.size_bytes
        with contextlib.closing(direct.session()) as session:
            while at < size:
                self._check()
                data = self._piece(session, at, min(at + PIECE_BYTES, size) - 1)
                at += len(data)
                yield data

    def _piece(self, session: requests.Session, first: int, last: int) -> bytes:
        headers = {"Range": f"bytes={first}-{last}", TOKEN_HEADER: self._command.token}
        why = ""
        for pause in (0.0, *_AGAIN_SECONDS):
            if pause:
                self._pause(pause)
            try:
                answer = session.get(
                    self._command.url,
                    headers=headers,
                    timeout=_TIMEOUT_SECONDS,
                    allow_redirects=False,
                )
            except requests.RequestException as error:
                why = type(error).__name__
                continue
            if answer.status_code == 206 and 0 < len(answer.content) <= last - first + 1:
                return answer.content
            if answer.status_code == 404:
                raise HypervisorError(
                    Category.IMAGE_NOT_FOUND,
                    "The uploaded data are not there any more: the image can't be completed.",
                )
            why = f"status {answer.status_code}"
        raise HypervisorError(
            Category.NETWORK, f"The uploaded data can't be fetched from {self._command.url}: {why}"
        )
