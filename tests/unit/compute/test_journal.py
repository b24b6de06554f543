"""The steps of a job as they are reported."""

from __future__ import annotations

import pytest

from compute.commands.journal import ERROR, SUCCESS
from tests.unit.compute.fakes import a_job


@pytest.mark.parametrize(("result", "kept"), [(SUCCESS, False), (ERROR, True)])
def test_how_far_a_step_was_stays_only_where_it_failed(result: str, kept: bool) -> None:
    job, reports = a_job()
    job.journal.begin("compute_create_vm")
    job.report(upid="UPID:1")
    job.progress(percent=20)
    job.progress(percent=40)
    assert [one.steps[-1].detail.get("progress") for one in reports[-2:]] == [
        {"percent": 20},
        {"percent": 40},
    ]
    job.journal.end(result, {"node": "pve1"})
    job.journal.begin("compute_start_vm")
    ended, _ = reports[-1].steps
    assert ended.result == result
    assert ended.detail == {
        "upids": ["UPID:1"],
        "node": "pve1",
        **({"progress": {"percent": 40}} if kept else {}),
    }
