"""How `micronova up` shows its steps: a spinner on a terminal, a line for each elsewhere."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from launcher.embedded.progress import Progress


class PlainProgress:
    """Prints one line for each step, with the seconds since the start."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stdout
        self._began = time.monotonic()

    def step(self, text: str) -> None:
        """Print it."""
        self._stream.write(f"{time.monotonic() - self._began:6.1f} s  {text}\n")
        self._stream.flush()

    def detail(self, text: str) -> None:
        """Print it."""
        self.step(text)

    def note(self, text: str) -> None:
        """Print it."""
        self.step(text)

    def end(self) -> None:
        """Do nothing: each line is complete."""

    def abort(self) -> None:
        """Do nothing: each line is complete."""


class RichProgress:
    """Shows a spinner for the current step, and a line for each that is done."""

    def __init__(self) -> None:
        from rich.console import Console

        self._console = Console()
        self._status = self._console.status("")
        self._text: str | None = None
        self._began = 0.0

    def step(self, text: str) -> None:
        """Close the last step and begin this one."""
        self._close()
        self._text, self._began = text, time.monotonic()
        self._status.update(text)
        self._status.start()

    def detail(self, text: str) -> None:
        """Show a text after the step."""
        self._status.update(f"{self._text}: {text}")

    def note(self, text: str) -> None:
        """Print it with the time."""
        self._console.print(f"{time.strftime('%H:%M:%S')}  {text}", highlight=False, markup=False)

    def end(self) -> None:
        """Close the last step."""
        self._close()
        self._status.stop()

    def abort(self) -> None:
        """Remove the spinner."""
        self._text = None
        self._status.stop()

    def _close(self) -> None:
        if self._text is not None:
            seconds = time.monotonic() - self._began
            self._console.print(
                f"[green]✓[/] {self._text} [dim]{seconds:.1f} s[/]", highlight=False
            )
            self._text = None


def for_terminal(stream: TextIO | None = None) -> Progress:
    """Return the form that suits the output stream."""
    return RichProgress() if (stream or sys.stdout).isatty() else PlainProgress(stream)
