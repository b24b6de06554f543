"""What of an enumeration runs with every change."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from common.process.child import ROOT
from tests import sampling
from tests.sampling import MOST_TOUCHED, Parts, few, mark_the_rest, sample, touched_by

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
        add_marker=lambda name: found.setdefault(name, pytest.Mark(name, (), {}, _ispytest=True)),
    )


def run_of(items: list[Any], parts: Parts | None = None) -> list[str]:
    mark_the_rest(items, parts or Parts({"tests/none": 2}, {}))
    return [one.nodeid for one in items if one.get_closest_marker("long") is None]


def test_the_cases_of_a_marked_test() -> None:
    marked = pytest.mark.sampled(2).mark
    items = [an_item(f"test_a.py::test_0[{n}]", marked) for n in range(4)]
    items += [an_item("test_a.py::test_0[long]", marked, pytest.mark.long.mark)]
    items += [an_item("test_a.py::test_1", marked), an_item("test_a.py::test_2")]
    run = run_of(items)
    assert len([one for one in run if "test_0" in one]) == 2
    assert run[-2:] == ["test_a.py::test_1", "test_a.py::test_2"]


def test_the_tests_of_a_file() -> None:
    items = [an_item(f"tests/x/test_{f}.py::test_{n}") for f in "ab" for n in range(4)]
    run = run_of(items, Parts(tests={"tests/x": 2}))
    assert [len([one for one in run if f"test_{f}.py" in one]) for f in "ab"] == [2, 2]


def test_the_files_of_a_folder() -> None:
    items = [an_item(f"tests/x/test_{f}.py::test_{n}") for f in "abcde" for n in range(3)]
    run = run_of(items, Parts(files={"tests/x": 2}, always={"tests/x/test_e.py"}))
    files = [one.partition("::")[0] for one in run if "test_e.py" not in one]
    assert (len(run), len(files), len(set(files))) == (9, 6, 2)


def test_an_enumeration_is_whole_where_all_runs_but_for_the_chaos_tier() -> None:
    marked = pytest.mark.sampled(2).mark
    files = ("tests/functional/test_a.py", "tests/chaos/test_every_step.py")
    items = [an_item(f"{file}::test_0[{n}]", marked) for file in files for n in range(4)]
    items += [an_item(f"tests/chaos/test_b.py::test_{n}") for n in range(4)]
    run = run_of(items, sampling.parts_of(sampling.ALL))
    counts = [len([one for one in run if file in one]) for file in (*files, "test_b.py")]
    assert counts == [4, 2, 4]


def test_a_sample_rotates_with_the_commit() -> None:
    assert len({sample(CASES, 4, seed) for seed in "abcd"}) == 4


def test_what_a_change_touches_runs_whole() -> None:
    found = touched_by(["conductor/volumes/snapshots/revert.py", "tests/unit/test_digits.py"])
    assert "tests/functional/conductor/test_volume_snapshots.py" in found
    assert "tests/unit/test_digits.py" in found
    assert "tests/functional/conductor/test_power.py" not in found
    items = [an_item(f"tests/x/test_a.py::test_{n}") for n in range(4)]
    assert len(run_of(items, Parts({"tests/x": 4}, {}, touched={"tests/x/test_a.py"}))) == 4


def test_of_many_touched_files_few_run_whole() -> None:
    many = {f"tests/x/test_{number}.py" for number in range(50)}
    found = few(many, "a")
    assert found < many
    assert len(found) == MOST_TOUCHED
    assert found != few(many, "b")
    assert few({"tests/x/test_0.py"}, "a") == {"tests/x/test_0.py"}


def test_an_enumeration_of_hours_is_sampled_even_where_it_was_touched() -> None:
    file = "tests/chaos/test_holders.py"
    items = [an_item(f"{file}::test_it[{n}]", pytest.mark.sampled(4).mark) for n in range(8)]
    assert len(run_of(items, Parts({}, {}, seed="a", touched={file}))) == 2


def test_folders_that_exist() -> None:
    known = {*sampling.TESTS, *sampling.FILES, *sampling.ALWAYS}
    assert [one for one in sorted(known) if not (ROOT / one).exists()] == []
