"""The servers of all regions: a part of each list, and why a region has none."""

from __future__ import annotations

from dashboard.answer import Answer, view
from dashboard.cloud import COMPUTE, Call, Missing
from dashboard.page import Page
from dashboard.visit import Visit

_EVERY = "all_tenants"


def index(visit: Visit) -> Answer:
    """List the newest servers of each region; a region that doesn't answer says why."""
    asked = visit.query
    query = {
        "limit": visit.limit,
        "name": asked.get("name"),
        "sort_key": "created_at",
        "sort_dir": "desc",
    }
    if visit.operates and asked.get(_EVERY):
        query[_EVERY] = "1"
    names = visit.cloud.regions()
    calls = [Call(COMPUTE, "/servers/detail", query, optional=True, region=name) for name in names]
    answers = dict(zip(names, visit.cloud.together(*calls), strict=True)) if calls else {}
    return view(
        "all_regions.html",
        servers={n: one["servers"] for n, one in answers.items() if not isinstance(one, Missing)},
        missing={n: one.message for n, one in answers.items() if isinstance(one, Missing)},
        here=[name for name in names if visit.cloud.is_here(name)],
        limit=visit.limit,
        asked=asked,
    )


PAGES = (Page("/servers/regions", index),)
