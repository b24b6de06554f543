"""Memory of long-running services: the garbage collector's settings, and malloc's."""

from __future__ import annotations

import ctypes
import gc

#: new containers before the youngest are collected: an answer about a thousand hosts has some ten
#: thousand, and they are free before the next one comes
_YOUNGEST = 50_000

_M_ARENA_MAX = -8
#: of glibc, which by default gives nearly every thread one: each retains the memory once needed
_ARENAS = 2


def load() -> None:
    """Collect rarely while modules are imported, which leave next to no garbage.

    Called first in a process. Otherwise a third of the imports' time is the collector's.
    """
    gc.set_threshold(_YOUNGEST, *gc.get_threshold()[1:])


def limit_arenas() -> None:
    """Have all threads share malloc's arenas; called before threads start."""
    set_option = getattr(ctypes.CDLL(None), "mallopt", None)
    if set_option is not None:
        set_option(_M_ARENA_MAX, _ARENAS)


def settle() -> None:
    """Return free memory, and exclude what is loaded by now from garbage collection.

    Called once it serves. Otherwise every few large answers make the collector walk all modules,
    some 70 ms in which a request waits.
    """
    gc.collect()
    gc.freeze()
    load()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
