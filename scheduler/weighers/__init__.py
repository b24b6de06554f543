"""Weighers: plain functions ``(host, request) → float``; more is better.

A weigher is one function in a columnar form, in a module of this room; its multiplier is in the
option. Weighers of other people are entry points; see ``scheduler.service``.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Mapping

from scheduler.columnar.forms import ColumnarWeigher


@functools.cache
def found() -> Mapping[str, ColumnarWeigher]:
    """Return all weighers of this room."""
    modules = [
        importlib.import_module(f"{__name__}.{info.name}")
        for info in pkgutil.iter_modules(__path__)
    ]
    return {
        name: one
        for module in modules
        for name, one in vars(module).items()
        if isinstance(one, ColumnarWeigher) and not name.startswith("_")
    }
