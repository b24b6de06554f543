"""What was in use at each time, of servers that begin and end at all sorts of times."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dashboard.drawing.series import PERIODS, Amounts, Ran, Window, series

#: four whole steps of ten seconds, and half of one
WINDOW = Window(100, 145.0, 10)
ONE, TWO = Amounts(1, 2, 512), Amounts(1, 4, 1024)
NOTHING = Amounts()


@pytest.mark.parametrize(
    ("servers", "most", "at_end"),
    [
        ([], [0, 0, 0, 0, 0], 0),
        ([(50, None)], [1, 1, 1, 1, 1], 1),
        ([(50, 100)], [0, 0, 0, 0, 0], 0),
        ([(50, 101)], [1, 0, 0, 0, 0], 0),
        ([(50, 110)], [1, 0, 0, 0, 0], 0),
        ([(110, None)], [0, 1, 1, 1, 1], 1),
        ([(112, 113)], [0, 1, 0, 0, 0], 0),
        ([(144, None)], [0, 0, 0, 0, 1], 1),
        ([(145, None)], [0, 0, 0, 0, 0], 0),
        ([(112, 112)], [0, 0, 0, 0, 0], 0),
        ([(100, 146), (120, 145)], [1, 1, 2, 2, 2], 2),
        # one after the other, and both at once
        ([(111, 115), (115, 118)], [0, 1, 0, 0, 0], 0),
        ([(111, 116), (115, 118)], [0, 2, 0, 0, 0], 0),
    ],
    ids=str,
)
def test_the_most_at_once_of_each_step(
    servers: list[tuple[float, float | None]], most: list[int], at_end: int
) -> None:
    found = series([Ran(began, ended, ONE) for began, ended in servers], WINDOW)
    assert [one.servers for one in found.most] == most
    assert [one.memory_mib for one in found.most] == [512 * one for one in most]
    assert found.at_end.vcpus == 2 * at_end
    assert found.peak.servers == max(most)


def test_each_amount_has_a_peak_of_its_own() -> None:
    small = [Ran(101, 104, Amounts(1, 1, 1)) for _ in range(3)]
    found = series([*small, Ran(105, 106, Amounts(1, 8, 1))], WINDOW)
    assert found.most[0] == Amounts(3, 8, 3)
    assert found.at_end == NOTHING


def test_neighbouring_steps_with_the_same_amounts_are_one_stretch() -> None:
    found = series([Ran(0, None, ONE), Ran(125, 139, TWO)], WINDOW)
    both = ONE.plus(TWO)
    assert found.stretches() == [(100, 120, ONE), (120, 140, both), (140, 145.0, ONE)]
    assert series([], WINDOW).stretches() == [(100, 145.0, NOTHING)]


@pytest.mark.parametrize("name", PERIODS)
@pytest.mark.parametrize("now", [1_800_000_000.0, 1_800_000_000.25, 1_800_000_123.5])
def test_a_period_has_few_steps_at_round_times(name: str, now: float) -> None:
    period = PERIODS[name]
    window = period.until(now)
    assert all(begin % period.step_seconds == 0 for begin in window.steps)
    assert 100 < len(window.steps) <= 200
    assert window.steps[-1] < now <= window.steps[-1] + period.step_seconds
    assert window.hours == pytest.approx(period.seconds / 3600, abs=period.step_seconds / 3600)


TIMES = st.integers(90, 150)


@given(st.lists(st.tuples(TIMES, st.none() | TIMES), max_size=12))
def test_a_step_has_what_a_look_at_every_second_finds(
    spans: list[tuple[int, int | None]],
) -> None:
    found = series([Ran(began, ended, ONE) for began, ended in spans], WINDOW)
    seconds = [
        sum(began <= now and (ended is None or now < ended) for began, ended in spans)
        for now in range(100, 145)
    ]
    looks = [max(seconds[at : at + 10]) for at in range(0, 45, 10)]
    assert [one.servers for one in found.most] == looks
    assert found.at_end.servers == seconds[-1]
    stretched = itertools.chain.from_iterable(
        [most.servers] * round((until - since + 5) // 10)
        for since, until, most in found.stretches()
    )
    assert list(stretched) == looks
