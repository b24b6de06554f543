"""The steps of a wait, folded from looks."""

from __future__ import annotations

from io import StringIO
from typing import Any

from cli.render.progress import Progress, after, all_lines, news
from cli.render.text import plain
from cli.terminal import LiveProgress, PlainProgress, progress_view, write


def an_event(**changes: Any) -> dict[str, Any]:
    """An event that still runs."""
    return {"event": "step", "start_time": "2026-01-01T00:00:00", "finish_time": None, **changes}


def texts(before: Progress, now: Progress) -> list[str]:
    """What is new, without the time in front."""
    return [plain(line)[12:].strip() for line in news(before, now)]


def test_a_state_is_told_once() -> None:
    first = after(Progress(), 0.1, "scheduling", ())
    second = after(first, 0.2, "scheduling", ())
    third = after(second, 0.3, None, ())
    assert texts(Progress(), first) == ["scheduling"]
    assert texts(first, second) == []
    assert texts(second, third) == []


def test_a_state_that_returns_is_told_again() -> None:
    one = after(Progress(), 0.1, "scheduling", ())
    two = after(one, 0.2, "spawning", ())
    three = after(two, 0.3, "scheduling", ())
    assert texts(two, three) == ["scheduling"]


def test_an_event_is_told_when_it_ends() -> None:
    running = after(Progress(), 0.1, None, [an_event()])
    ended = after(
        running, 0.2, None, [an_event(finish_time="2026-01-01T00:00:02", result="Error", host="h")]
    )
    assert texts(Progress(), running) == []
    [line] = texts(running, ended)
    assert line.split() == ["step", "Error", "2.00", "s", "h"]
    assert "…" in plain(all_lines(running)[0])


def test_events_are_in_the_order_they_began() -> None:
    late = an_event(event="late", start_time="2026-01-01T00:00:09")
    progress = after(Progress(), 0.1, None, [late, an_event(event="early")])
    assert [step.text for step in progress.steps] == ["early", "late"]


def test_events_are_placed_by_their_own_time() -> None:
    event = an_event(start_time="2026-01-01T00:00:02", finish_time="2026-01-01T00:00:03")
    now = after(
        Progress(), 9.0, "spawning", [{**event, "result": "Success"}], began="2026-01-01T00:00:00"
    )
    for lines in (news(Progress(), now), all_lines(now)):
        assert [plain(line).split()[0] for line in lines] == ["+2.00", "+9.00"]


class Terminal(StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        """Say so."""
        return True


def test_a_terminal_gets_the_live_view() -> None:
    stream = Terminal()
    with progress_view(stream) as view:
        assert isinstance(view, LiveProgress)
        view.show(after(Progress(), 0.1, "spawning", [an_event()]))
    assert "spawning" in stream.getvalue()


def test_a_pipe_gets_plain_lines() -> None:
    stream = StringIO()
    with progress_view(stream) as view:
        assert isinstance(view, PlainProgress)
        view.show(after(Progress(), 0.1, "spawning", ()))
        view.show(after(Progress(), 0.2, "spawning", ()))
    assert stream.getvalue() == "     +100 ms  spawning\n"


def test_lines_go_styled_to_a_terminal_and_plain_to_a_pipe() -> None:
    terminal, pipe = Terminal(), StringIO()
    line = (("[a] ", "bold red"), ("b", ""))
    write(terminal, [line])
    write(pipe, [line])
    assert pipe.getvalue() == "[a] b\n"
    assert "[a] " in terminal.getvalue()
