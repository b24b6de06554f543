"""Every step of a build, of each action and of a destroy, in turn: failed, hung, its answer lost,
and everybody killed at it. The steps come from a recorded run, so a new one is a case as soon as
it is there.

Without ``MICRONOVA_TEST_CHAOS`` a fixed sample runs; ``tox -e chaos`` runs everything, in parts
that two processes share. The table at the end of the run counts them all.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence, Set
from pathlib import Path

import pytest

from tests.chaos import protocol
from tests.chaos.actions import ACTIONS as LIFE
from tests.chaos.cases import ACTIONS, NODES_DOWN, SAMPLE, WHICH, cases_of, chosen
from tests.chaos.director import MESSAGE, PLACEMENT, PROXMOX, TRANSACTION, Step
from tests.chaos.enumeration import FEW, SCENARIOS, Theatre, line_of, parties_of, problems, writes
from tests.chaos.play import DRAIN, GROUP
from tests.chaos.resource_play import STORIES
from tests.chaos.summary import PROPERTY

pytestmark = [pytest.mark.distributed, pytest.mark.timeout(6 * 3600)]

BUDGET = 10
IMAGES = 60
PARTS = 6
EVERY_KIND = {MESSAGE, PLACEMENT, PROXMOX, TRANSACTION}
WANTED = os.environ.get(WHICH, "")


@pytest.mark.parametrize(
    "wanted", [f"{n + 1}/{PARTS}" for n in range(PARTS)] if WANTED == "all" else [WANTED or SAMPLE]
)
def test_every_step(wanted: str, tmp_path: Path, record_property: pytest.RecordProperty) -> None:
    results = []
    with Theatre(tmp_path, IMAGES) as theatre:
        cases = []
        recordings = theatre.recordings(FEW if wanted == SAMPLE else SCENARIOS)
        require_everything(recordings, theatre.steps, few=wanted == SAMPLE)
        for scenario, steps in recordings.items():
            kinds = {step.kind for step in steps} | ({PLACEMENT} if scenario == GROUP else set())
            assert kinds >= _kinds_of(scenario)
            cases += cases_of(scenario, steps, parties_of(scenario))
        met = {(case.step.kind, case.action) for case in cases}
        due = {(kind, action) for kind in ACTIONS for action in ACTIONS[kind]}
        assert due - met <= {(PROXMOX, action) for action in NODES_DOWN if wanted == SAMPLE}
        picked = chosen(cases, wanted, BUDGET)
        assert picked, f"{WHICH}: none of {len(cases)} cases is {wanted!r}"
        for case in picked:
            result = theatre.run(case)
            results.append(result)
            record_property(PROPERTY, line_of(result))
            if result.problem:
                print(f"FAILED {case}: {result.problem}", flush=True)
        theatre.audit()
    assert list(problems(results)) == []
    assert theatre.audited == []


def _kinds_of(scenario: str) -> set[str]:
    """What steps a scenario has at least: an action may need neither Proxmox VE nor placement."""
    if writes(scenario):
        return {PROXMOX}
    free = scenario in LIFE or scenario in STORIES or scenario == DRAIN
    return {MESSAGE, TRANSACTION} if free else EVERY_KIND


def require_everything(
    recordings: Mapping[str, Sequence[Step]], taken: Set[str], *, few: bool
) -> None:
    """Whatever there is of a build, an action and a destroy has been in a run."""
    recorded = [step for steps in recordings.values() for step in steps]
    said = {step.name.partition(" of ")[0] for step in recorded if step.kind == MESSAGE}
    assert said >= (protocol.RECORDED if few else protocol.RECORDED | protocol.ACTED)
    assert taken >= protocol.steps()
