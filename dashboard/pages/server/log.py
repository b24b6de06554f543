"""What a server's serial line said last."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from dashboard.answer import Answer
from dashboard.cloud import COMPUTE, Call, segment
from dashboard.pages.server.frame import framed
from dashboard.visit import Visit

#: lines to show; None: all that are stored
_LENGTHS: Mapping[str, int | None] = {"100": 100, "1000": 1000, "all": None}
_FIRST = "100"
#: what cloud-init says on the serial line: single lines, and host keys of any form
_CLOUD_INIT = re.compile(
    r"^-+BEGIN SSH HOST KEY KEYS-+$.*?(?:^-+END SSH HOST KEY KEYS-+$|\Z)"
    r"|^[^\n]*(?:cloud-init|ci-info|<14>|SSH HOST KEY)[^\n]*$",
    re.MULTILINE | re.DOTALL,
)
#: colours and moves of a terminal's cursor
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|[\x00-\x08\x0b-\x1f\x7f]")


def show(visit: Visit) -> Answer:
    """Show the log of a server's console, or only cloud-init's lines of it."""
    asked = visit.query.get("lines", "")
    lines = asked if asked in _LENGTHS else _FIRST
    only = bool(visit.query.get("cloud_init"))
    # cloud-init speaks once, at the first start
    length = None if only else _LENGTHS[lines]
    body: dict[str, Any] = {"os-getConsoleOutput": {} if length is None else {"length": length}}
    path = f"/servers/{segment(visit.params['server_id'])}/action"
    found = framed(visit, Call(COMPUTE, path, body=body, method="POST", optional=True))
    [answer] = found.answers
    text = _CONTROL.sub("", str(answer["output"] or "")) if answer else ""
    if only:
        text = of_cloud_init(text)
    return found.view(
        "log",
        text=text,
        missing="" if answer else answer.message,
        lines=lines,
        lengths=_LENGTHS,
        only=only,
    )


def of_cloud_init(text: str) -> str:
    """Return the lines of a log that cloud-init wrote, with the host keys between its marks."""
    return "\n".join(_CLOUD_INIT.findall("\n".join(text.splitlines())))
