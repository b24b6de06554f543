"""A request's arrival and its quota check, as the first steps of its operations."""

from __future__ import annotations

import datetime
from collections.abc import Mapping

from common import clock
from common.context import RequestContext
from common.messages.reports import Step

#: steps before all others
API, QUOTA = "api_request", "conductor_take_quota"


def request(ctxt: RequestContext) -> Step | None:
    """Return the API's request, from its arrival to now; None without an HTTP request."""
    asked = ctxt.asked
    if asked is None:
        return None
    now = clock.utcnow()
    # Another machine's clock may be ahead of ours.
    began = min(datetime.datetime.fromisoformat(asked["at"]), now)
    detail = {
        "method": asked["method"],
        "path": asked["path"],
        "status": asked["status"],
        "user": ctxt.user_name or ctxt.user_id,
        "project": ctxt.project_name or ctxt.project_id,
    }
    return Step(API, 0, began, now, "Success", detail=detail)


def quota(
    began: datetime.datetime,
    limits: Mapping[str, int],
    used: Mapping[str, int],
    asked: Mapping[str, int],
) -> Step:
    """Return the quota check: of each resource the limit (-1: none), used and requested."""
    detail = {
        name: {"limit": limits[name], "used": used[name], "asked": amount}
        for name, amount in asked.items()
    }
    return Step(QUOTA, 1, began, clock.utcnow(), "Success", detail=detail)
