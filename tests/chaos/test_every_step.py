"""Every step of a build, of each action and of a destroy, in turn: failed, hung, its answer lost,
and everybody killed at it. The steps come from a recorded run, so a new one is a case as soon as
it is there.

Without ``MICRONOVA_TEST_CHAOS`` a sample runs that rotates with the commit: every fault at a step
of its kind, of builds, groups, a destroy and one scenario of all others (``make test``: four
cases). ``tox -e chaos`` runs everything, a scenario at a time in each of its processes. The table
at the end of the run counts them all. Cases whose results an earlier run wrote to the folder
``MICRONOVA_TEST_CHAOS_RESULTS`` are counted and not run again.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence, Set

import pytest

from tests import sampling
from tests.chaos import protocol
from tests.chaos.actions import ACTIONS as LIFE
from tests.chaos.cases import ACTIONS, NODES_DOWN, SAMPLE, WHICH, Case, cases_of, chosen
from tests.chaos.director import MESSAGE, PLACEMENT, PROXMOX, TRANSACTION, Step
from tests.chaos.enumeration import (
    BESIDE,
    FEW,
    SCENARIOS,
    Theatre,
    line_of,
    options_of,
    parties_of,
    writes,
)
from tests.chaos.play import DRAIN, GROUP, SCALE, TENDED, WAITING
from tests.chaos.resource_play import STORIES
from tests.chaos.summary import PROPERTY, Results

pytestmark = [pytest.mark.distributed, pytest.mark.timeout(6 * 3600)]

#: cases of the sample of ``make test``; that of all tests has each fault of each kind of step
BUDGET = 4
IMAGES = 60
EVERY_KIND = {MESSAGE, PLACEMENT, PROXMOX, TRANSACTION}
WANTED = os.environ.get(WHICH, "") or SAMPLE
RESULTS = "MICRONOVA_TEST_CHAOS_RESULTS"
#: what only beside all others is a scenario; those of the same options come one after the other
UNITS = (
    {SAMPLE: FEW}
    if WANTED == SAMPLE
    else {
        " and ".join(BESIDE): SCENARIOS,
        **{
            name: (name,)
            for name in sorted(SCENARIOS, key=lambda name: str(options_of(name)))
            if name not in BESIDE
        },
    }
)


@pytest.fixture(scope="module")
def theatre(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Theatre]:
    """One for all scenarios that a process runs."""
    with Theatre(tmp_path_factory.mktemp("theatre"), IMAGES) as made:
        yield made


@pytest.mark.parametrize("unit", UNITS)
def test_every_step(
    unit: str,
    theatre: Theatre,
    record_property: Callable[[str, object], None],
    pytestconfig: pytest.Config,
) -> None:
    part = pytestconfig.getoption("--part")
    audited = len(theatre.audited)
    recordings = theatre.recordings((*UNITS[unit], *in_turn(part)))
    cases = cases_in(recordings)
    if set(BESIDE) & recordings.keys():
        require_everything(recordings, theatre.steps, cases)
    if WANTED != SAMPLE:
        own = BESIDE if len(recordings) > 1 else recordings.keys()
        cases = [case for case in cases if case.scenario in own]
    faults = {(case.step.kind, case.action) for case in cases}
    picked = chosen(cases, WANTED, len(faults) if part == sampling.ALL else BUDGET)
    if not picked:
        pytest.skip(f"{WHICH}: none of {len(cases)} cases is {WANTED!r}")
    results = Results(os.environ.get(RESULTS), unit)
    known = results.cases()
    for line in results.lines:
        record_property(PROPERTY, line)
    for case in picked:
        if case.name not in known:
            line = line_of(theatre.run(case))
            record_property(PROPERTY, line)
            results.add(line)
    theatre.audit()
    assert [
        f"{line['case']}: {line['problem']}" for line in results.lines if line["problem"]
    ] == []
    assert theatre.audited[audited:] == []


def in_turn(part: str) -> Sequence[str]:
    """Return the scenario that the sample of a commit has beside those of each sample."""
    if WANTED != SAMPLE or part != sampling.ALL:
        return ()
    others = [name for name in SCENARIOS if name not in {*FEW, *BESIDE}]
    return tuple(sampling.sample(others, len(others), sampling.commit()))


def cases_in(recordings: Mapping[str, Sequence[Step]]) -> list[Case]:
    """All cases of recorded runs; each run has met what it must."""
    cases = []
    for scenario, steps in recordings.items():
        kinds = {step.kind for step in steps} | ({PLACEMENT} if scenario == GROUP else set())
        assert kinds >= _kinds_of(scenario)
        cases += cases_of(scenario, steps, parties_of(scenario))
    return cases


def _kinds_of(scenario: str) -> set[str]:
    """What steps a scenario has at least: an action may need neither Proxmox VE nor placement."""
    if writes(scenario):
        return {PROXMOX}
    if scenario == WAITING:
        return {TRANSACTION}
    free = scenario in LIFE or scenario in STORIES or scenario in (DRAIN, SCALE, TENDED)
    return {MESSAGE, TRANSACTION} if free else EVERY_KIND


def require_everything(
    recordings: Mapping[str, Sequence[Step]], taken: Set[str], cases: Sequence[Case]
) -> None:
    """Whatever there is of a build, an action and a destroy has been in a run, and is a case."""
    few = WANTED == SAMPLE
    recorded = [step for steps in recordings.values() for step in steps]
    said = {step.name.partition(" of ")[0] for step in recorded if step.kind == MESSAGE}
    assert said >= (protocol.RECORDED if few else protocol.RECORDED | protocol.ACTED)
    assert taken >= protocol.steps()
    met = {(case.step.kind, case.action) for case in cases}
    due = {(kind, action) for kind in ACTIONS for action in ACTIONS[kind]}
    assert due - met <= {(PROXMOX, action) for action in NODES_DOWN if few}
