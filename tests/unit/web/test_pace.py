"""The least rate of a client, which grows."""

from __future__ import annotations

import pytest

from web.pace import MOST_BYTES_PER_SECOND, Pace

KIB = 1 << 10


def ends_after(bytes_per_second: float, *, step: float = 0.25, most: float = 7200) -> float | None:
    """When a client of this rate is too slow, seconds; None: it never is."""
    pace, now = Pace(60, 64 * KIB, 0), 0.0
    while now < most:
        now += step
        if now >= pace.deadline:
            return now
        pace.progressed(int(bytes_per_second * step), now)
    return None


def test_a_client_that_sends_nothing_is_late_after_the_first_time() -> None:
    assert ends_after(0) == 60
    assert ends_after(1000) == 60


@pytest.mark.parametrize("rate", [2_000, 17_000, 30_000])
def test_a_trickle_ends_in_minutes(rate: int) -> None:
    found = ends_after(rate)
    assert found is not None
    assert 60 < found < 600


@pytest.mark.parametrize("rate", [MOST_BYTES_PER_SECOND * 1.1, 10**6, 10**9])
def test_a_line_that_is_only_slow_gets_through(rate: float) -> None:
    assert ends_after(rate) is None


def test_a_pause_of_ours_takes_no_time_of_the_client() -> None:
    pace = Pace(60, 64 * KIB, 0)
    pace.progressed(64 * KIB, 10)
    pace.pause(20)
    pace.resume(500)
    assert pace.deadline == 550
    pace.progressed(128 * KIB, 505)
    assert pace.deadline == 565
    # Half a minute of the client's own has passed.
    assert pace.needed_bytes == int(64 * KIB * 2 ** (25 / 60))
