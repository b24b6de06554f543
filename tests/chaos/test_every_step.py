"""Every step of a build and of a destroy, in turn: failed, hung, its answer lost, and everybody
killed at it. The steps come from a recorded run, so a new one is a case as soon as it is there.

Without ``MICRONOVA_TEST_CHAOS`` a fixed sample runs; ``tox -e chaos-all`` runs everything.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chaos.cases import cases_of, chosen
from tests.chaos.director import MESSAGE, PLACEMENT, PROXMOX, TRANSACTION
from tests.chaos.enumeration import SCENARIOS, Theatre, problems, table

pytestmark = [pytest.mark.distributed, pytest.mark.timeout(6 * 3600)]

SAMPLE = 18
IMAGES = 60


def test_every_step(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Theatre(tmp_path, IMAGES) as theatre:
        cases = []
        for scenario in SCENARIOS:
            steps = theatre.record(scenario)
            assert {step.kind for step in steps} == {MESSAGE, PLACEMENT, PROXMOX, TRANSACTION}
            cases += cases_of(scenario, steps)
        wanted = chosen(cases, SAMPLE)
        results = []
        with capsys.disabled():
            print(f"\n{len(wanted)} of {len(cases)} cases")
            for case in wanted:
                result = theatre.run(case)
                results.append(result)
                if result.problem:
                    print(f"FAILED {case}: {result.problem}", flush=True)
            theatre.audit()
            print(table(results))
    assert list(problems(results)) == []
    assert theatre.audited == []
