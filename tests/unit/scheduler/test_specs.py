"""The operators of extra specs' values, beside oslo's."""

from __future__ import annotations

import warnings

import pytest

from scheduler.filters.specs import compiled

CASES = [
    (spec, value)
    for spec in (
        *("= 8", "== 8", "!= 8", ">= 8", "<= 8", "> 8", "< 8", "8", "== x", "<= "),
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
