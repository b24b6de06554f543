"""Which tests are named as flaky."""

from __future__ import annotations

import re

from common.process.child import ROOT
from tests.flaky import KNOWN, NEW, flaky

FIRST = """
FAILED tests/functional/test_a.py::test_one - AssertionError: 1 - 2
FAILED tests/functional/test_a.py::test_two[docs/doctor.md-qm config 100] - KeyError
FAILED tests/functional/test_a.py::test_two[docs/doctor.md-qm list]
ERROR tests/functional/test_b.py::test_three
"""
SECOND = "FAILED tests/functional/test_a.py::test_one - AssertionError: 3\n"


def test_what_passes_when_it_runs_again_is_named() -> None:
    known = "| `tests/functional/test_a.py::test_two[x]` | it was late |"
    assert list(flaky(FIRST, SECOND, known)) == [
        "tests/functional/test_a.py::test_two[docs/doctor.md-qm config 100]",
        "tests/functional/test_a.py::test_two[docs/doctor.md-qm list]",
        f"tests/functional/test_b.py::test_three{NEW}",
    ]
    known += "\n| `tests/functional/test_b.py` | so was this |"
    assert f"tests/functional/test_b.py::test_three{NEW}" not in list(flaky(FIRST, SECOND, known))


def test_what_is_listed_is_a_test() -> None:
    rows = re.findall(
        r"^\| `(tests/.+?)(?:::(\w+)(\[.+\])?)?` \|", KNOWN.read_text(), re.MULTILINE
    )
    assert len(rows) == KNOWN.read_text().count("\n| `")
    for file, name, _ in rows:
        assert f"def {name}" in (ROOT / file).read_text()
