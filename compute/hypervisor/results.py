"""What the methods of a driver return."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

#: facts to report about a finished step
Detail = Mapping[str, Any]


@dataclass(frozen=True)
class Removal:
    """The result of a removal."""

    gone: bool
    """Seen absent."""
    cleaned: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    remedy: str | None = None
    detail: Mapping[str, Any] = field(default_factory=dict)
