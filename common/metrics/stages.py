"""Measures stages and undos, where the engine carries them out."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass

from common.metrics import table


@dataclass
class Result:
    """How a stage ended, as its runner finds out."""

    went_on: bool = False
    """Whether the next one follows at once."""


@contextlib.contextmanager
def stage(action: str, name: str) -> Iterator[Result]:
    """Record the block as a stage of an action."""
    began, result, word = time.perf_counter(), Result(), "error"
    try:
        yield result
        word = "ok" if result.went_on else "paused"
    finally:
        table.STAGE_SECONDS.observe(time.perf_counter() - began, action, name)
        table.STAGES.count(action, name, word)
