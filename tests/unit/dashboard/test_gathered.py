from __future__ import annotations

from typing import Any

import pytest

from dashboard.cloud import Call, Missing
from dashboard.errors import SessionEnded
from dashboard.gathered import Days, Gathered, Source
from dashboard.pages.capacity import trend

DAY = "2026-11-30"


class Cloud:
    """An API with so many storages of a gigabyte each, and nodes."""

    def __init__(self, storages: int, nodes: int) -> None:
        self.storages, self.nodes = storages, nodes
        self.lost: set[str] = set()
        self.asked: list[str] = []
        self.has_session = True

    def send(self, call: Call) -> Any:
        """Return a list, in pages of 1,000."""
        if call.path == "/storages":
            return self._page(call, "storages", "images", self.storages)
        return self._page(call, "hypervisors", "", self.nodes)

    def _page(self, call: Call, key: str, content: str, count: int) -> Any:
        first = int(call.query.get("marker") or 0)
        until = min(first + call.query["limit"], count)
        rows = [
            {
                "host": f"n{one}",
                "name": "s",
                "content": [content],
                "hypervisor_hostname": f"n{one}",
            }
            for one in range(first, until)
        ]
        links = [{"rel": "next", "href": f"http://x?marker={until}"}] if until < count else []
        return {key: rows, f"{key}_links": links}

    def together(self, *calls: Call) -> list[Any]:
        """Return measurements."""
        if not self.has_session:
            raise SessionEnded
        return [self._metrics(call) for call in calls]

    def _metrics(self, call: Call) -> Any:
        host = call.path.split("/")[2]
        self.asked.append(f"{host} {call.query['storage']}")
        if host in self.lost:
            return Missing("The agent is down.", 503)
        names = ("used", "total") if call.query["storage"] else ("memory_used", "memory")
        series = [
            {"name": name, "unit": "bytes", "description": name, "values": [float(position + 1)]}
            for position, name in enumerate(names)
        ]
        times = ["2026-11-29T00:00:00Z"]
        return {"metrics": {"resolution_seconds": 86_400, "times": times, "series": series}}


class Visit:
    """What the page sees of a request."""

    def __init__(self, cloud: Cloud, days: Days) -> None:
        self.cloud, self.days = cloud, days


def look(cloud: Cloud, days: Days) -> Any:
    """Return what the page shows."""
    return trend.show(Visit(cloud, days)).values  # type: ignore[arg-type, union-attr]


def test_all_are_summed_up_a_few_a_page_and_once_a_day() -> None:
    cloud, days = Cloud(30, 3), Days()
    pages = [look(cloud, days) for _ in range(4)]
    assert [one["counts"][0] for one in pages] == [
        ("storages", 16, 30),
        ("storages", 30, 30),
        ("storages", 30, 30),
        ("storages", 30, 30),
    ]
    assert [one["is_open"] for one in pages] == [True, True, False, False]
    assert len(cloud.asked) == len(set(cloud.asked)) == 33
    [storages, memory] = pages[-1]["charts"]
    assert storages.lines[0].now == "30 B"
    assert storages.limit == "60 B"
    assert memory.limit == "6 B"


def test_the_limit_is_that_of_the_same_storages() -> None:
    cloud, days = Cloud(20, 0), Days()
    [partly] = look(cloud, days)["charts"]
    assert (partly.lines[0].now, partly.limit) == ("16 B", "32 B")


def test_what_is_missing_is_asked_again_last() -> None:
    cloud, days = Cloud(2, 2), Days()
    cloud.lost = {"n0"}
    shown = look(cloud, days)
    assert shown["counts"] == [("storages", 1, 2), ("nodes", 1, 2)]
    assert shown["missing"] == ["The agent is down."]
    assert not shown["is_open"]
    cloud.lost = set()
    assert look(cloud, days)["counts"] == [("storages", 2, 2), ("nodes", 2, 2)]
    assert look(cloud, days)["missing"] == []
    assert len(cloud.asked) == 6


def test_a_session_that_ends_loses_no_source() -> None:
    cloud, days = Cloud(1, 1), Days()
    cloud.has_session = False
    with pytest.raises(SessionEnded):
        look(cloud, days)
    cloud.has_session = True
    assert look(cloud, days)["counts"] == [("storages", 1, 1), ("nodes", 1, 1)]


def test_lists_are_read_in_pages_up_to_a_bound() -> None:
    assert look(Cloud(2500, 1), Days())["counts"] == [("storages", 16, 2500), ("nodes", 0, 1)]
    shown = look(Cloud(0, 10_001), Days())
    assert shown["counts"][1] == ("nodes", 16, 10_000)
    assert shown["is_cut"]


def test_another_day_begins_again() -> None:
    days = Days()
    first = days.of(DAY, lambda: Gathered([Source("nodes", "n1")], trend._add))
    assert days.of(DAY, lambda: Gathered([], trend._add)) is first
    assert days.of("2026-12-01", lambda: Gathered([], trend._add)) is not first
