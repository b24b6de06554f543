"""Which cases of the chaos tests a run chooses."""

from __future__ import annotations

import pytest

from tests.chaos.cases import Case, chosen
from tests.chaos.director import MESSAGE, Step

CASES = [Case("build", Step(MESSAGE, f"message {n}"), "fail") for n in range(40)]


def test_all_shares_together_are_all_cases_once() -> None:
    shares = [chosen(CASES, f"{number}/3", 0) for number in (1, 2, 3)]
    assert all(shares)
    assert sorted(str(case) for share in shares for case in share) == sorted(map(str, CASES))


@pytest.mark.parametrize("wanted", ["message 1.*fail", "1/1 message 1.*fail"])
def test_an_expression_chooses_by_name(wanted: str) -> None:
    assert [one.step.name for one in chosen(CASES, wanted, 0)] == [
        f"message {n}" for n in (1, *range(10, 20))
    ]
