"""What of an enumeration runs with every change."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests.sampling import mark_the_rest, sample

CASES = [f"test_it[{number}]" for number in range(41)]


def test_a_fixed_part_of_the_cases() -> None:
    kept = sample(CASES, 4)
    assert (len(kept), kept) == (10, sample(CASES[::-1], 4))


def test_one_case_at_least() -> None:
    assert sample(CASES[:2], 4) <= set(CASES[:2])
    assert len(sample(CASES[:2], 4)) == 1


def test_a_case_more_moves_few() -> None:
    assert len(sample(CASES, 4) & sample([*CASES, "test_it[new]"], 4)) >= 9


def an_item(nodeid: str, *marks: pytest.Mark) -> Any:
    found = {one.name: one for one in marks}
    return SimpleNamespace(
        nodeid=nodeid,
        get_closest_marker=found.get,
        add_marker=lambda made: found.setdefault(made.name, made.mark),
    )


def test_tests_of_a_file_are_counted_together() -> None:
    together = pytest.mark.sampled(2, of="file").mark
    items = [an_item(f"test_a.py::test_{n}", together) for n in range(4)]
    items += [an_item("test_a.py::test_long", together, pytest.mark.long.mark)]
    items += [an_item("test_b.py::test_0", together), an_item("test_c.py::test_0")]
    mark_the_rest(items)
    run = [one.nodeid for one in items if one.get_closest_marker("long") is None]
    assert len([one for one in run if one.startswith("test_a")]) == 2
    assert run[-2:] == ["test_b.py::test_0", "test_c.py::test_0"]
