"""Explain: what happened to a request, a server, a volume or another resource, by its ID."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from common.story.summary import summary
from dashboard.answer import Answer, view
from dashboard.cloud import COMPUTE, Call, Missing, segment
from dashboard.page import Page
from dashboard.story import operations_of
from dashboard.visit import Visit

_ID = re.compile(r"(req-)?[0-9a-f-]{32,36}", re.IGNORECASE)


def show(visit: Visit) -> Answer:
    """Show a form for an ID, and its explanation; a name is searched among servers."""
    asked = visit.query.get("what", "").strip()[:255]
    if not asked:
        return view("explain.html", asked="", operations=[], servers=[], missing="")
    if not _ID.fullmatch(asked):
        found = visit.cloud.get(COMPUTE, "/servers", name=asked, limit=20)["servers"]
        missing = "" if found else "No server has such a name."
        return view("explain.html", asked=asked, operations=[], servers=found, missing=missing)
    answer = visit.cloud.send(Call(COMPUTE, f"/explanations/{segment(asked)}", optional=True))
    if isinstance(answer, Missing):
        return view("explain.html", asked=asked, operations=[], servers=[], missing=answer.message)
    shown = operations_of(answer["explanation"])
    missing = "" if shown else "Nothing was done."
    server = _server(visit, answer["explanation"]["operations"])
    short = summary(answer["explanation"], server)
    return view(
        "explain.html",
        asked=asked,
        operations=shown,
        servers=list(server.values()),
        missing=missing,
        short=short,
    )


def _server(visit: Visit, operations: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Return the server of the newest operation by its ID; empty: it has none, or is gone."""
    newest = max(operations, key=lambda one: str(one.get("started_at") or ""), default={})
    if not (uuid := newest.get("server")):
        return {}
    path = f"/servers/{segment(uuid)}"
    answer = visit.cloud.send(Call(COMPUTE, path, optional=True))
    return {uuid: answer["server"]} if answer else {}


PAGES = (Page("/explain", show, calls=2),)
