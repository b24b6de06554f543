"""Values that change with the version."""

from __future__ import annotations

from web.microversions import Versioned


def test_versioned() -> None:
    things = Versioned({"2.10": "b", "2.2": "a"})
    assert [things.at(version) for version in (1, 2, 9, 10, 99)] == [None, "a", "a", "b", "b"]
