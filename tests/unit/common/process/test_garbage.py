"""The garbage collector as the services use it."""

from __future__ import annotations

import gc

from common.process import garbage


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


def test_few_collections_while_modules_are_loaded() -> None:
    before = gc.get_threshold()
    try:
        gc.set_threshold(700, *before[1:])
        garbage.load()
        assert gc.isenabled()
        assert gc.get_threshold() == (50_000, *before[1:])
    finally:
        gc.set_threshold(*before)
