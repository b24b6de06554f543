"""W3C's traceparent: what is one, by the recommendation's own examples."""

from __future__ import annotations

import pytest

from common import traceparent
from common.traceparent import TraceParent

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
KNOWN = TraceParent(int(TRACE, 16), int(SPAN, 16), True)


def test_it_names_a_trace_and_a_span() -> None:
    assert traceparent.parse(f"00-{TRACE}-{SPAN}-01") == KNOWN
    unsampled = traceparent.parse(f"00-{TRACE}-{SPAN}-00")
    assert unsampled is not None
    assert not unsampled.sampled


def test_of_a_later_version_what_is_known_is_taken() -> None:
    text = f"cc-{TRACE}-{SPAN}-01-what-the-future-will-be-like"
    assert traceparent.parse(text) == KNOWN
    assert traceparent.accepted(text) == f"cc-{TRACE}-{SPAN}-01"


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        f"ff-{TRACE}-{SPAN}-01",
        f"00-{TRACE}-{SPAN}-01-more",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE.upper()}-{SPAN}-01",
        f"00-{TRACE}-{SPAN}",
        f"00-{TRACE}-{SPAN}-01\n",
        "x" * 10_000,
    ],
)
def test_anything_else_is_none(text: str | None) -> None:
    assert traceparent.parse(text) is None
    assert traceparent.accepted(text) is None
