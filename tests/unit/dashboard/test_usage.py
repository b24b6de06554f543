"""What the usage API's pages add up to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from dashboard.cloud import COMPUTE, Call
from dashboard.pages.usage import MEASURES, MOST_PAGES, read

EVERY = "tenant_usages"


def a_usage(project: str, ended: str | None = None) -> dict[str, Any]:
    server = {
        "started_at": "2026-01-01T00:00:00.000000",
        "ended_at": ended,
        "vcpus": 2,
        "memory_mb": 512,
    }
    sums = {"total_hours": 1.5, "total_vcpus_usage": 3.0, "total_memory_mb_usage": 768.0}
    return {"tenant_id": project, **sums, "server_usages": [server]}


class Pages:
    """A usage API with some pages of one server each."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.markers: list[str] = []

    def send(self, call: Call) -> dict[str, Any]:
        """Return the next page."""
        self.markers.append(call.query["marker"])
        number = len(self.markers)
        answer: dict[str, Any] = {EVERY: [a_usage(f"p{number // 3}")]}
        if number < self.count:
            link = {"rel": "next", "href": f"http://x/usage?detailed=1&marker=m{number}"}
            answer[f"{EVERY}_links"] = [link]
        return answer


def read_from(pages: Pages) -> Any:
    """Read them."""
    return read(pages, Call(COMPUTE, "/usage", {"detailed": 1}), EVERY)  # type: ignore[arg-type]


def test_a_project_s_parts_on_several_pages_are_one() -> None:
    pages = Pages(4)
    found = read_from(pages)
    assert pages.markers == ["", "m1", "m2", "m3"]
    assert not found.is_cut
    assert [(one.project_id, one.now, one.hours[0]) for one in found.projects] == [
        ("p0", 2, 3.0),
        ("p1", 2, 3.0),
    ]
    assert found.hours(2) == 4 * 768.0


@pytest.mark.parametrize(("more", "is_cut"), [(0, False), (1, True), (100, True)])
def test_what_is_more_than_the_pages_is_cut(more: int, is_cut: bool) -> None:
    pages = Pages(MOST_PAGES + more)
    found = read_from(pages)
    assert (len(pages.markers), found.is_cut) == (MOST_PAGES, is_cut)
    assert len(list(found.servers)) == MOST_PAGES


def rough() -> Iterator[tuple[int, float, str, str]]:
    """Yield (measure, amount, in full, rough)."""
    yield from ((0, 0, "0", "0"), (0, 12, "12", "12"), (1, 100, "100", "100"))
    yield from ((0, 9.876, "9.88", "9.88"), (0, 12.34, "12.34", "12.3"))
    yield from ((0, 12_345.6, "12345.6", "12346"), (2, 128, "0.12", "0.12"))
    yield 2, 1536, "1.5", "1.5"


@pytest.mark.parametrize(("measure", "amount", "text", "rounded"), list(rough()))
def test_amounts_as_text(measure: int, amount: float, text: str, rounded: str) -> None:
    assert (MEASURES[measure].text(amount), MEASURES[measure].rough(amount)) == (text, rounded)
