"""A server's screen."""

from __future__ import annotations

from urllib.parse import urlsplit

from dashboard.answer import Answer
from dashboard.cloud import COMPUTE, Call, segment
from dashboard.pages.server.frame import framed
from dashboard.visit import Visit


def show(visit: Visit) -> Answer:
    """Show the way to the screen: nothing is opened yet."""
    return framed(visit).view("console", url="")


def open_screen(visit: Visit) -> Answer:
    """Show the server's screen: a console of its own, which ends with the page."""
    body = {"remote_console": {"protocol": "vnc", "type": "novnc"}}
    path = f"/servers/{segment(visit.params['server_id'])}/remote-consoles"
    found = framed(visit, Call(COMPUTE, path, body=body, method="POST"))
    url = found.answers[0]["remote_console"]["url"]
    return found.view("console", url=url, frames=(_origin(url),))


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"
