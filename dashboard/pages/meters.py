"""How much of a limit is used, as pages show it."""

from __future__ import annotations

from dataclasses import dataclass

_NEARLY_ALL = 90


@dataclass(frozen=True)
class Meter:
    """How much of something is used."""

    title: str
    used: int
    limit: int
    """Negative: none."""
    unit: str = ""
    warns_when_full: bool = True
    """Otherwise all of it is as it should be."""

    @property
    def warns(self) -> bool:
        """Whether to show it as a warning: little is left, or something is missing."""
        return self.percent >= _NEARLY_ALL if self.warns_when_full else self.used < self.limit

    @property
    def percent(self) -> float:
        """The used part."""
        return min(100.0, 100 * self.used / self.limit) if self.limit > 0 else 0.0
