"""Numbers of any length."""

from __future__ import annotations

import pytest

from common.digits import number


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("0", 0),
        ("007", 7),
        ("99", 99),
        ("100", 99),
        ("9" * 5000, 99),
        ("0" * 5000 + "5", 5),
        ("", None),
        ("-1", None),
        ("1.0", None),
        ("²", None),
        ("\u0661", None),
        (" 1", None),
    ],
)
def test_a_number_is_cut_at_the_most(text: str, found: int | None) -> None:
    assert number(text, 99) == found
