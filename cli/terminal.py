"""Where lines go: a terminal, with colours and redrawn in place, or a file or pipe, plain."""

from __future__ import annotations

from collections.abc import Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, TextIO

from cli.render.progress import Progress, all_lines, news
from common.story.text import Line, plain, plain_text

if TYPE_CHECKING:
    from rich.text import Text


class ProgressView(Protocol):
    """Something that shows progress while a ``with`` block lasts."""

    def __enter__(self) -> ProgressView: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...

    def show(self, progress: Progress) -> None:
        """Show where it stands now."""


def progress_view(stream: TextIO) -> ProgressView:
    """Return the view that suits the stream."""
    return LiveProgress(stream) if stream.isatty() else PlainProgress(stream)


def write(stream: TextIO, lines: Iterable[Line]) -> None:
    """Write lines, styled if the stream is a terminal."""
    if not stream.isatty():
        stream.write(plain_text(lines))
        return
    from rich.console import Console

    console = Console(file=stream, highlight=False)
    for line in lines:
        console.print(_text(line), soft_wrap=True)


class PlainProgress:
    """A line for each new step."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._shown = Progress()

    def __enter__(self) -> PlainProgress:
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.flush()

    def show(self, progress: Progress) -> None:
        """Write the new lines."""
        for line in news(self._shown, progress):
            self._stream.write(plain(line) + "\n")
        self._stream.flush()
        self._shown = progress


class LiveProgress:
    """All steps, redrawn in place."""

    def __init__(self, stream: TextIO) -> None:
        from rich.console import Console
        from rich.live import Live

        console = Console(file=stream, highlight=False)
        self._live = Live(console=console, auto_refresh=False, vertical_overflow="visible")

    def __enter__(self) -> LiveProgress:
        self._live.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._live.__exit__(kind, error, trace)

    def show(self, progress: Progress) -> None:
        """Redraw."""
        from rich.console import Group

        self._live.update(Group(*map(_text, all_lines(progress))), refresh=True)


def _text(line: Line) -> Text:
    from rich.text import Text

    return Text.assemble(*line)
