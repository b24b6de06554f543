"""Activity: who did what, when and from where, in all projects."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dashboard.answer import Answer, view
from dashboard.cloud import COMPUTE, IDENTITY, Call, Missing, following, rows
from dashboard.page import Page
from dashboard.pages.ledger.operations import ACTIVITY, entries
from dashboard.rights import May
from dashboard.visit import Visit

#: state that the API is asked for → what the form calls it
STATES: Mapping[str, str] = {
    "open": "not ended",
    "queued": "queued",
    "running": "running",
    "unwinding": "unwinding",
    "failed": "failed",
    "done": "done",
}
ORDERS: Mapping[str, str] = {"newest": "newest first", "oldest": "oldest first"}
#: Keystone's IDs, its own and those of LDAP and federated users; `default` is a domain's
_ID = re.compile(r"[0-9a-f]{32}|[0-9a-f]{64}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_LONGEST = 255


@dataclass(frozen=True)
class Whose:
    """A project or a user that is asked for."""

    asked: str
    id: str = ""
    """Empty: none was found, or several were."""
    said: str = ""
    """Why there is none."""
    several: Sequence[Mapping[str, Any]] = ()
    """Those of the name, if there are several."""


def index(visit: Visit) -> Answer:
    """List a page of operations, the newest first; by project, user and state."""
    project, user = _whose(visit)
    state, order = visit.query.get("state", ""), visit.query.get("order", "")
    query = {
        "project_id": project.id,
        "user_id": user.id,
        "state": state if state in STATES else "",
        "order": order if order in ORDERS else "",
        "limit": visit.limit,
        "marker": visit.query.get("marker"),
    }
    unknown = [one for one in (project, user) if one.said or one.several]
    found = None if unknown else visit.cloud.get(COMPUTE, "/operations", **query)
    return view(
        "activity.html",
        entries=entries(found),
        project=project,
        user=user,
        unknown=unknown,
        state=query["state"],
        states=STATES,
        order=query["order"],
        orders=ORDERS,
        here=visit.here,
        following=visit.next_page(ACTIVITY, following(found, "operations")),
    )


def _whose(visit: Visit) -> tuple[Whose, Whose]:
    """Return the project and the user that are asked for, by ID or by name."""
    asked = {name: visit.query.get(name, "").strip()[:_LONGEST] for name in ("project", "user")}
    named = [name for name, text in asked.items() if text and not _ID.fullmatch(text)]
    calls = [Call(IDENTITY, f"/{name}s", {"name": asked[name]}, optional=True) for name in named]
    answers = dict(zip(named, visit.cloud.together(*calls), strict=True)) if calls else {}
    project, user = (_one(name, asked[name], answers.get(name)) for name in asked)
    return project, user


def _one(kind: str, asked: str, answer: Any) -> Whose:
    if answer is None:
        return Whose(asked, asked)
    found = rows(answer, f"{kind}s")
    if len(found) == 1:
        return Whose(asked, str(found[0]["id"]))
    if found:
        return Whose(asked, several=found, said=f"Several {kind}s are named {asked}.")
    nobody = f"No {kind} is named {asked}."
    return Whose(asked, said=answer.message if isinstance(answer, Missing) else nobody)


PAGES = (Page(ACTIVITY, index, May.OPERATE, calls=3),)
