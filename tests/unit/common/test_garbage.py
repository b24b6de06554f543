"""The garbage collector as the services use it."""

from __future__ import annotations

import gc

from common import garbage


def test_what_is_loaded_is_looked_at_no_more() -> None:
    before = gc.get_threshold()
    kept: list[list[int]] = [[]]
    try:
        garbage.settle()
        assert gc.get_freeze_count() > 0
        assert not any(one is kept for one in gc.get_objects())
        assert gc.get_threshold()[0] > 10_000
    finally:
        gc.unfreeze()
        gc.set_threshold(*before)
