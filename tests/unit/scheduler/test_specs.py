"""The operators of extra specs' values, beside oslo's and as Nova has them."""

from __future__ import annotations

import warnings

import pytest

from common.guest.spec_operators import compiled
from scheduler.filters.specs import compiled_version

CASES = [
    (spec, value)
    for spec in (
        *("= 8", "== 8", "!= 8", ">= 8", "<= 8", "> 8", "< 8", "8", "== x"),
        *("s== 8", "s!= 8", "s>= 8", "s<= 8", "s> 8", "s< 8"),
        *("<in> av", "<all-in> avx sse", "<or> 8 <or> avx", "QEMU"),
    )
    for value in ("7", "8", "9.5", "avx", "['avx', 'sse']", "QEMU", "")
]


@pytest.mark.parametrize(("spec", "value"), CASES)
def test_as_oslo_has_it(spec: str, value: str) -> None:
    from oslo_utils import specs_matcher

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            expected = bool(specs_matcher.match(value, spec))
        except Exception:  # noqa: BLE001  (it fails where a number is compared with a word)
            expected = False
    assert compiled(spec)(value) == expected, (spec, value)


@pytest.mark.parametrize(
    ("spec", "fits", "not_"),
    [
        # Of several words the first counts.
        ("<in> aes avx", ("aes", "['aes', 'avx']"), ("avx",)),
        ("s== aes avx", ("aes",), ("aes avx", "s== aes avx")),
        (">= 5 <or> 10", ("5", "7"), ("4",)),
        ("<all-in> aes avx", ("['aes', 'avx']",), ("aes",)),
        ("<or> a <or> b", ("a", "b"), ("<or>", "a <or> b")),
        # What is no number is no match, and neither is an operator alone.
        (">= 8", (), ("new", "")),
        ("!= 8", ("9",), ("new",)),
        ("== new", (), ("8", "new")),
        *((operator, (), (operator, "")) for operator in ("<=", "<or>", "<in>", "s==")),
    ],
)
def test_as_nova_has_it(spec: str, fits: tuple[str, ...], not_: tuple[str, ...]) -> None:
    matches = compiled(spec)
    assert [value for value in (*fits, *not_) if matches(value)] == list(fits)


@pytest.mark.parametrize(
    ("spec", "fits", "not_"),
    [
        (">= 8.4", ("8.4", "8.4.14", "8.10.1", "9.0.11"), ("8.3.5", "7", "", "new")),
        (">= 9", ("9.2.11", "10.0"), ("8.4.14",)),
        ("= 9.2", ("9.2.11", "9.10"), ("9.1",)),
        ("== 9.2", ("9.2", "9.2.11"), ("9.20", "9.1")),
        ("> 9.2", ("9.3",), ("9.2.11",)),
        ("< 9.2.11", ("9.2.2",), ("9.2.11", "9.10")),
        ("!= 9.2", ("9.3",), ("9.2.1",)),
        (">= 8004014", ("8.4.14", "9.0"), ("8.4.13",)),
        ("<or> 9.2.11 <or> 9.2.12", ("9.2.11",), ("9.2",)),
        ("s== 9.2", ("9.2",), ("9.2.1",)),
        ("9.2.11", ("9.2.11",), ("9.2",)),
        (">= new", (), ("9.2",)),
    ],
)
def test_versions(spec: str, fits: tuple[str, ...], not_: tuple[str, ...]) -> None:
    matches = compiled_version(spec)
    assert [value for value in (*fits, *not_) if matches(value)] == list(fits)
