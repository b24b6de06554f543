"""Which databases a release can use, by their revisions."""

from __future__ import annotations

import pytest

from common.databases.revisions import (
    Chains,
    State,
    problem,
    refusal,
    to_contract,
    to_expand,
)
from common.release import is_older

KNOWN = Chains(("r0001_initial", "r0002_two", "r0004_four"), ("c0002_two",))
NEWEST = State("r0004_four", "c0002_two")


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (NEWEST, None),
        # what is to be contracted can be used
        (State("r0004_four"), None),
        # a newer release has added to it
        (State("r0005_five"), None),
        (State("r0010_ten", "c0002_two"), None),
        (State(None), "is empty"),
        (State("r0002_two"), "needs r0004_four: run 'micronova db expand'"),
        (State("r0005_five", "c0005_five"), "was contracted by a newer release, to c0005_five"),
        (State("0045_attributes"), "of before the first release"),
        (State("r0003_of_a_fork"), "is at revision r0003_of_a_fork, which this release doesn't"),
        (State("what"), "is at revision what, which this release doesn't know"),
    ],
)
def test_what_can_be_used(found: State, said: str | None) -> None:
    problem_ = problem(found, KNOWN)
    assert (problem_ is None) == (said is None)
    assert (said or "") in (problem_ or "")


@pytest.mark.parametrize("found", [State(None), State("r0001_initial"), State("r0009_nine")])
def test_what_is_behind_or_ahead_is_not_refused(found: State) -> None:
    assert refusal(found, KNOWN) is None


def test_what_is_left_to_do() -> None:
    assert to_expand(State(None), KNOWN) == KNOWN.expanding
    assert to_expand(State("r0001_initial"), KNOWN) == ("r0002_two", "r0004_four")
    assert to_contract(State("r0004_four"), KNOWN) == ("c0002_two",)
    assert (to_expand(NEWEST, KNOWN), to_contract(NEWEST, KNOWN)) == ((), ())
    newer = State("r0009_nine", "c0009_nine")
    assert (to_expand(newer, KNOWN), to_contract(newer, KNOWN)) == ((), ())


def test_releases_are_compared_by_their_numbers() -> None:
    assert is_older("1.9.0", "1.10.0")
    assert not is_older("1.10.0", "1.10.0")
    assert not is_older("2.0.0", "1.10.0")
    assert is_older("", "1.0.0")
