"""Which microversion a header asks for."""

from __future__ import annotations

import pytest

from common.errors import Invalid
from placement.microversions import HISTORY, VERSIONS
from web.errors import NotAcceptable


@pytest.mark.parametrize(
    ("header", "version"),
    [
        (None, VERSIONS.oldest),
        ("", VERSIONS.oldest),
        ("compute 2.90", VERSIONS.oldest),
        ("placement latest", VERSIONS.newest),
        ("placement 1.28", 28),
        ("Placement 1.28", 28),
        ("compute 2.90, placement 1.10", 10),
        ("placement 1.10,placement 1.12", 12),
    ],
)
def test_versions(header: str | None, version: int) -> None:
    assert VERSIONS.asked(header) == version


@pytest.mark.parametrize("number", ["0.5", "1.40", "2.0", "1.999"])
def test_versions_outside_are_not_acceptable(number: str) -> None:
    with pytest.raises(NotAcceptable, match=f"Unacceptable version header: {number}"):
        VERSIONS.asked(f"placement {number}")


@pytest.mark.parametrize("number", ["pony.horse", "1.2.3", "1", "1.x"])
def test_what_is_no_version_is_invalid(number: str) -> None:
    with pytest.raises(Invalid, match=f"invalid version string: {number}") as caught:
        VERSIONS.asked(f"placement {number}")
    assert not isinstance(caught.value, NotAcceptable)


def test_the_history_has_no_gaps() -> None:
    assert list(HISTORY) == list(range(len(HISTORY)))
    assert VERSIONS.text(VERSIONS.newest) == "1.39"
