"""Which microversion a header asks for."""

from __future__ import annotations

import pytest

from common.errors import Invalid
from placement.errors import NotAcceptable
from placement.microversions import HISTORY, MAXIMUM, MINIMUM, Version, negotiate, text


@pytest.mark.parametrize(
    ("header", "version"),
    [
        (None, MINIMUM),
        ("", MINIMUM),
        ("compute 2.90", MINIMUM),
        ("placement latest", MAXIMUM),
        ("placement 1.28", (1, 28)),
        ("Placement 1.28", (1, 28)),
        ("compute 2.90, placement 1.10", (1, 10)),
        ("placement 1.10,placement 1.12", (1, 12)),
    ],
)
def test_versions(header: str | None, version: Version) -> None:
    assert negotiate(header) == version


@pytest.mark.parametrize("number", ["0.5", "1.40", "2.0", "1.999"])
def test_versions_outside_are_not_acceptable(number: str) -> None:
    with pytest.raises(NotAcceptable, match=f"Unacceptable version header: {number}"):
        negotiate(f"placement {number}")


@pytest.mark.parametrize("number", ["pony.horse", "1.2.3", "1", "1.x"])
def test_what_is_no_version_is_invalid(number: str) -> None:
    with pytest.raises(Invalid, match=f"invalid version string: {number}") as caught:
        negotiate(f"placement {number}")
    assert not isinstance(caught.value, NotAcceptable)


def test_the_history_has_no_gaps() -> None:
    assert list(HISTORY) == [(1, minor) for minor in range(len(HISTORY))]
    assert (text(MINIMUM), text(MAXIMUM)) == ("1.0", "1.39")
