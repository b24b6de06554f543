"""Imports modules at their first use."""

from __future__ import annotations

import importlib.util
import sys


def import_at_use(*names: str) -> None:
    """Have ``from package import module`` give modules that are loaded when they are used.

    ``import package.module`` loads them at once, as ever. Their packages must be there; a module
    that is missing or loaded already stays as it is.
    """
    for name in names:
        spec = None if name in sys.modules else importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            continue
        spec.loader = importlib.util.LazyLoader(spec.loader)
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
        package, _, attribute = name.rpartition(".")
        setattr(sys.modules[package], attribute, module)
