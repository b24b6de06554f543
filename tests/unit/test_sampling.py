"""What of an enumeration runs with every change."""

from __future__ import annotations

from tests.sampling import sample

CASES = [f"test_it[{number}]" for number in range(41)]


def test_a_fixed_part_of_the_cases() -> None:
    kept = sample(CASES, 4)
    assert (len(kept), kept) == (10, sample(CASES[::-1], 4))


def test_one_case_at_least() -> None:
    assert sample(CASES[:2], 4) <= set(CASES[:2])
    assert len(sample(CASES[:2], 4)) == 1


def test_a_case_more_moves_few() -> None:
    assert len(sample(CASES, 4) & sample([*CASES, "test_it[new]"], 4)) >= 9
