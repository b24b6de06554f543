"""Imports modules at their first use."""

from __future__ import annotations

import importlib.util
import sys


def import_at_use(*names: str) -> None:
    """Make ``from package import module`` load the module at its first use.

    ``import package.module`` still loads it at once. The packages must exist; a module that is
    missing or loaded already is not affected.
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
