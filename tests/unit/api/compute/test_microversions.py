"""Which version a request speaks."""

from __future__ import annotations

import pytest

from api.compute.microversions import HISTORY, VERSIONS
from common.errors import Invalid
from web.errors import NotAcceptable


def test_the_history_has_no_gap() -> None:
    assert list(HISTORY) == list(range(1, VERSIONS.newest + 1))


@pytest.mark.parametrize(
    ("header", "legacy", "version"),
    [
        (None, None, 1),
        ("", "", 1),
        ("compute 2.90", None, 90),
        ("Compute  2.90 ", None, 90),
        (None, "2.12", 12),
        ("compute 2.90", "2.12", 90),
        ("volume 3.1", "2.12", 12),
        ("volume 3.1, compute 2.3", None, 3),
        ("compute 2.3, compute 2.4", None, 4),
        ("compute latest", None, VERSIONS.newest),
    ],
)
def test_versions(header: str | None, legacy: str | None, version: int) -> None:
    assert VERSIONS.asked(header, legacy) == version


@pytest.mark.parametrize("wrong", ["2", "x.1", "2.01", "02.1", "2.1 ", "-2.1", "2.1.1", "LATEST"])
def test_malformed(wrong: str) -> None:
    if wrong.strip() != wrong:
        assert VERSIONS.asked(None, wrong) == 1
        return
    with pytest.raises(Invalid, match="is of invalid format"):
        VERSIONS.asked(f"compute {wrong}")


@pytest.mark.parametrize("other", ["2.0", "1.1", "3.5", f"2.{VERSIONS.newest + 1}"])
def test_not_served(other: str) -> None:
    with pytest.raises(NotAcceptable) as caught:
        VERSIONS.asked(f"compute {other}")
    assert caught.value.details == {"min": "2.1", "max": f"2.{VERSIONS.newest}"}
