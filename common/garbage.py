"""Settings of the garbage collector for long-running services."""

from __future__ import annotations

import gc

#: new containers before the youngest are collected: an answer about a thousand hosts has some ten
#: thousand, and they are free before the next one comes
_YOUNGEST = 50_000


def settle() -> None:
    """Exclude what is loaded by now from garbage collection.

    Called once it serves. Otherwise every few large answers make the collector walk all modules,
    some 70 ms in which a request waits.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(_YOUNGEST, *gc.get_threshold()[1:])
