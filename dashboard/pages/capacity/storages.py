"""Storages of all nodes, a shared one once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from common.counting import counted
from dashboard.answer import Answer, view
from dashboard.cloud import COMPUTE, Call, following, rows, segment
from dashboard.page import Page
from dashboard.pages.meters import Meter
from dashboard.pages.overview import TOTAL, of_storages
from dashboard.rights import May
from dashboard.visit import Visit

PATH = "/storages"


@dataclass(frozen=True)
class Storage:
    """One storage."""

    facts: Mapping[str, Any]
    """As the API shows it."""

    @property
    def meter(self) -> Meter:
        """How full it is."""
        total = int(self.facts["total_gib"])
        return Meter(self.facts["name"], total - int(self.facts["available_gib"]), total, "GiB")

    @property
    def where(self) -> str:
        """Which nodes see it."""
        if not self.facts["shared"]:
            return str(self.facts["host"])
        return f"{self.facts['cluster']}, {counted(self.facts['hosts'], 'node')}"

    @property
    def charts(self) -> str:
        """The page of its measurements, over a year."""
        name = segment(self.facts["name"])
        return f"/nodes/{segment(self.facts['host'])}/charts?storage={name}&period=year"


def listed_storages(answer: Any) -> Sequence[Storage]:
    """Return the storages of an answer; none where it is `Missing`."""
    return [Storage(one) for one in rows(answer, "storages")]


def index(visit: Visit) -> Answer:
    """List a page of storages, by cluster and name."""
    query = {"limit": visit.limit, "marker": visit.query.get("marker")}
    found, total = visit.cloud.together(Call(COMPUTE, PATH, query), TOTAL)
    return view(
        "storages.html",
        storages=listed_storages(found),
        whole=of_storages(total) if total else None,
        following=visit.next_page(PATH, following(found, "storages")),
    )


PAGES = (Page(PATH, index, May.OPERATE, calls=2),)
