"""The files that `tests/distribution.py` names exist, and it splits no other file."""

from __future__ import annotations

from pathlib import Path

from tests import distribution

ROOT = Path(__file__).resolve().parents[2]


def test_every_file_exists() -> None:
    named = {*distribution.GROUPS, *distribution.APART, *distribution.LONGEST}
    assert [file for file in sorted(named) if not (ROOT / file).is_file()] == []


def test_a_unit_is_a_group_a_file_or_one_test() -> None:
    cli, groups = "tests/compat/test_openstack_cli.py", "tests/compat/test_openstack_groups.py"
    assert distribution.unit_of(f"{cli}::test_a") == distribution.unit_of(f"{groups}::test_b")
    assert distribution.unit_of("tests/x.py::Class::test_a[1::2]") == "tests/x.py"
    for apart in distribution.APART:
        assert distribution.unit_of(f"{apart}::test_a[1/6]") == f"{apart}::test_a[1/6]"
