"""A server's screen and its serial line."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from dashboard.answer import Answer
from dashboard.cloud import COMPUTE, Call, Missing, segment
from dashboard.pages.server.frame import framed
from dashboard.visit import Visit

#: states in which there is a VM that runs
STATES = ("ACTIVE", "RESCUE", "PAUSED")


def terminal_page(url: str) -> str:
    """Return the page with a terminal, which is beside the websocket of a serial console.

    The token is in the part that browsers send to nobody.

    >>> terminal_page("wss://cloud.example.org/consoles/?token=T")
    'https://cloud.example.org/consoles/serial_auto.html#token=T'
    """
    parts = urlsplit(url)
    return parts._replace(
        scheme=parts.scheme.replace("ws", "http", 1),
        path=f"{parts.path.rpartition('/')[0]}/serial_auto.html",
        query="",
        fragment=parts.query,
    ).geturl()


@dataclass(frozen=True)
class Kind:
    """One way to see a server."""

    name: str
    """In the form."""
    title: str
    protocol: str
    console_type: str
    says: str
    """What it is for."""
    page: Callable[[str], str] = str
    """From the API's URL to that of a page."""


KINDS = (
    Kind(
        "screen",
        "Screen",
        "vnc",
        "novnc",
        "It has Ctrl-Alt-Del, full screen, and types text into the guest, also on a keyboard of "
        "another country. It ends with the page.",
    ),
    Kind(
        "serial",
        "Serial line",
        "serial",
        "serial",
        "A terminal, whose text can be selected, copied and pasted. It shows what the guest sends "
        "from now on; the log has what it sent before. It ends with the page.",
        terminal_page,
    ),
)
_BY_NAME: Mapping[str, Kind] = {one.name: one for one in KINDS}


def show(visit: Visit) -> Answer:
    """Show the ways to the server: nothing is opened yet."""
    return framed(visit).view("console", url="", kinds=KINDS, states=STATES)


def open_console(visit: Visit) -> Answer:
    """Show the server's screen or serial line: a console of its own, which ends with the page."""
    kind = _BY_NAME.get(visit.field("kind"), KINDS[0])
    body = {"remote_console": {"protocol": kind.protocol, "type": kind.console_type}}
    path = f"/servers/{segment(visit.params['server_id'])}/remote-consoles"
    found = framed(visit, Call(COMPUTE, path, body=body, method="POST", optional=True))
    [answer] = found.answers
    shown: dict[str, Any] = {"kind": kind, "kinds": KINDS, "states": STATES}
    if isinstance(answer, Missing):
        view = found.view("console", url="", refused=answer.message, **shown)
        return dataclasses.replace(view, status=answer.status)
    url = kind.page(answer["remote_console"]["url"])
    return found.view("console", url=url, frames=(_origin(url),), **shown)


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"
