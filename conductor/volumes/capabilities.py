"""Whether a storage can do what a volume type's extra specs ask for. Pure.

The rules are those of Cinder's CapabilitiesFilter: names without a scope, and those of the scope
``capabilities``, are what drivers report; others are left alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from oslo_utils import strutils

from common.guest.spec_operators import compiled

_SCOPE, _IS = "capabilities", "<is>"


def unmet(capabilities: Mapping[str, Any], specs: Mapping[str, str]) -> Iterator[str]:
    """Return the extra specs, as ``name=value``, that the capabilities don't meet."""
    for key, wanted in specs.items():
        scope, _, name = key.rpartition(":")
        if scope not in ("", _SCOPE):
            continue
        value = capabilities.get(name)
        if value is None or not _meets(value, wanted):
            yield f"{key}={wanted}"


def _meets(value: Any, wanted: str) -> bool:
    """Return whether a capability is as a spec wants it; ``<is>`` is Cinder's alone."""
    head, *words = wanted.split() or [""]
    if head == _IS:
        return bool(words) and strutils.bool_from_string(value) is strutils.bool_from_string(
            words[0]
        )
    return compiled(wanted)(str(value))
