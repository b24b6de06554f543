"""Every benchmark runs, as briefly as it can; what it measures then means nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import all as benchmarks_of_all
from benchmarks.all import BENCHMARKS, Benchmark, run

#: not called by it: parts of others, and those with commands of their own
_APART = {"all", "asking", "serving", "sites"} | {
    "placement_vs_original",
    "soak",
    "stories",
}


def test_the_table_has_every_benchmark() -> None:
    folder = Path(benchmarks_of_all.__file__).parent
    there = {path.stem for path in folder.glob("*.py")} - {"__init__"}
    assert {one.module for one in BENCHMARKS} == there - _APART


#: each way in which one is called briefly
BRIEFLY = {(one.module, one.short): one for one in BENCHMARKS}


@pytest.mark.distributed
@pytest.mark.parametrize("one", BRIEFLY.values(), ids=lambda one: one.name)
def test_a_benchmark_runs(one: Benchmark) -> None:
    found = run(one, short=True)
    # 1: a bound is passed, which says nothing where so little is measured on a busy machine.
    assert found["exit_code"] in (0, 1), found
    assert found.get("figures"), found


def test_what_else_ran_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert benchmarks_of_all.main(["scheduler", "--short", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert set(shown["machine"]) >= {"cpu", "cores", "load", "python"}
    (one,) = shown["benchmarks"].values()
    assert one["figures"]["hosts"] == 50
    assert one["command"].startswith("python -m benchmarks.scheduler --hosts 50")
    assert 0 <= one["cores_of_others"] <= shown["machine"]["cores"]
    with pytest.raises(SystemExit):
        benchmarks_of_all.main(["no-such"])
    assert "there is no benchmark no-such" in capsys.readouterr().err
