"""Numbers of any length."""

from __future__ import annotations

import pytest

from common.digits import integer, is_digits, number


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


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("0", 0),
        ("-7", -7),
        ("+7", 7),
        (" 12 ", 12),
        ("-0", 0),
        ("9" * 5000, 99),
        ("-" + "9" * 5000, -99),
        ("", None),
        ("-", None),
        ("1_0", None),
        ("1.0", None),
        ("\u0661", None),
        ("\u00b2", None),
    ],
)
def test_a_whole_number_is_cut_at_the_most(text: str, found: int | None) -> None:
    assert integer(text, 99) == found


@pytest.mark.parametrize("text", ["", "-1", " 1", "\u0661", "\u00b2", "\uff11", "1_0"])
def test_other_texts_are_no_digits(text: str) -> None:
    assert not is_digits(text)
    assert is_digits("0123456789")
