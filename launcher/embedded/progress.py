"""The interface by which a start and a stop report their progress."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Steps, in order; implemented by the command line."""

    def step(self, text: str) -> None:
        """Begin a step; the one before is done."""

    def detail(self, text: str) -> None:
        """Show how far the current step is."""

    def note(self, text: str) -> None:
        """Show an event that is not a step."""

    def end(self) -> None:
        """Mark the last step done."""

    def abort(self) -> None:
        """Mark the last step as not done."""
