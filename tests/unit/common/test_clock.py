"""Times from text, and what shown ones stand for."""

from __future__ import annotations

import datetime

import pytest

from common import clock


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-01-31T12:00:00Z", (12, 0, 0, 0)),
        ("2026-01-31T13:00:00+01:00", (12, 0, 0, 0)),
        ("2026-01-31T12:00:00.5", (12, 0, 0, 500_000)),
    ],
)
def test_parsed(text: str, moment: tuple[int, int, int, int]) -> None:
    parsed = clock.parse(text)
    assert parsed == datetime.datetime(2026, 1, 31, *moment, tzinfo=datetime.UTC)
    assert parsed.tzinfo is datetime.UTC


@pytest.mark.parametrize(
    "text", ["", "yesterday", "9999-12-31T23:59:59-23:59", "0001-01-01T00:00:00+23:59"]
)
def test_refused(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the kind is all that counts
        clock.parse(text)


def test_a_whole_second_stands_for_all_of_it() -> None:
    last = datetime.datetime.max.replace(tzinfo=datetime.UTC)
    assert clock.end_of(last.replace(microsecond=0)) == last
    assert clock.end_of(last.replace(microsecond=7)) == last.replace(microsecond=7)
