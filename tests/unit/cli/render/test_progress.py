"""The steps of a wait, folded from looks."""

from __future__ import annotations

from io import StringIO
from typing import Any

from cli.render.progress import Progress, after, all_lines, news
from cli.server.operation import Look
from cli.terminal import LiveProgress, PlainProgress, progress_view, write
from common.story.text import plain


def an_event(**changes: Any) -> dict[str, Any]:
    """An event that still runs."""
    return {"event": "step", "start_time": "2026-01-01T00:00:00", "finish_time": None, **changes}


def texts(before: Progress, now: Progress) -> list[str]:
    """What is new, without the time in front."""
    return [plain(line)[12:].strip() for line in news(before, now)]


def test_a_state_is_repeated_once() -> None:
    first = after(Progress(), 0.1, "scheduling", Look())
    second = after(first, 0.2, "scheduling", Look())
    third = after(second, 0.3, None, Look())
    assert texts(Progress(), first) == ["scheduling"]
    assert texts(first, second) == []
    assert texts(second, third) == []


def test_a_state_that_returns_is_repeated_again() -> None:
    one = after(Progress(), 0.1, "scheduling", Look())
    two = after(one, 0.2, "spawning", Look())
    three = after(two, 0.3, "scheduling", Look())
    assert texts(two, three) == ["scheduling"]


def test_an_event_is_repeated_when_it_ends() -> None:
    running = after(Progress(), 0.1, None, Look(events=[an_event()]))
    ended = after(
        running,
        0.2,
        None,
        Look(events=[an_event(finish_time="2026-01-01T00:00:02", result="Error", host="h")]),
    )
    assert texts(Progress(), running) == []
    [line] = texts(running, ended)
    assert line.split() == ["step", "Error", "2.00", "s", "h"]
    assert "…" in plain(all_lines(running)[0])


def test_a_copy_is_repeated_when_it_goes_on_by_a_tenth() -> None:
    def at(percent: int, done: int) -> Progress:
        copied = {"percent": percent, "disk_bytes": done << 30, "disk_total_bytes": 100 << 30}
        seen = Look(events=[an_event(progress={**copied, "seconds_left": 75})])
        return after(Progress(), 0.1, None, seen)

    assert texts(Progress(), at(9, 9)) == []
    [line] = texts(at(9, 9), at(11, 11))
    assert line.split(maxsplit=2)[2] == "11 %, 11.0 of 100.0 GiB, 1 min 15 s left"
    assert texts(at(11, 11), at(19, 19)) == []
    assert len(texts(at(11, 11), at(47, 47))) == 1


def test_events_are_in_the_order_they_began() -> None:
    late = an_event(event="late", start_time="2026-01-01T00:00:09")
    progress = after(Progress(), 0.1, None, Look(events=[late, an_event(event="early")]))
    assert [step.text for step in progress.steps] == ["early", "late"]


def test_events_are_placed_by_their_own_time() -> None:
    event = an_event(start_time="2026-01-01T00:00:02", finish_time="2026-01-01T00:00:03")
    seen = Look("2026-01-01T00:00:00", None, [{**event, "result": "Success"}])
    now = after(Progress(), 9.0, "spawning", seen)
    for lines in (news(Progress(), now), all_lines(now)):
        assert [plain(line).split()[0] for line in lines] == ["+2.00", "+9.00"]


def test_states_that_are_reported_go_by_their_own_time() -> None:
    done = {"finish_time": "2026-01-01T00:00:02", "result": "Success"}
    first = an_event(event="schedule", **done)
    second = an_event(event="create", start_time="2026-01-01T00:00:02", **done)
    states = [("2026-01-01T00:00:00", "scheduling"), ("2026-01-01T00:00:02", "spawning")]
    early = after(Progress(), 0.5, "scheduling", Look("2026-01-01T00:00:00", None, (), states[:1]))
    late = after(
        early, 9.0, "spawning", Look("2026-01-01T00:00:00", None, [first, second], states)
    )
    lines = [*texts(Progress(), early), *texts(early, late)]
    assert [line.split()[0] for line in lines] == ["scheduling", "schedule", "spawning", "create"]


class Terminal(StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        """Say so."""
        return True


def test_a_terminal_gets_the_live_view() -> None:
    stream = Terminal()
    with progress_view(stream) as view:
        assert isinstance(view, LiveProgress)
        view.show(after(Progress(), 0.1, "spawning", Look(events=[an_event()])))
    assert "spawning" in stream.getvalue()


def test_a_pipe_gets_plain_lines() -> None:
    stream = StringIO()
    with progress_view(stream) as view:
        assert isinstance(view, PlainProgress)
        view.show(after(Progress(), 0.1, "spawning", Look()))
        view.show(after(Progress(), 0.2, "spawning", Look()))
    assert stream.getvalue() == "     +100 ms  spawning\n"


def test_lines_go_styled_to_a_terminal_and_plain_to_a_pipe() -> None:
    terminal, pipe = Terminal(), StringIO()
    line = (("[a] ", "bold red"), ("b", ""))
    write(terminal, [line])
    write(pipe, [line])
    assert pipe.getvalue() == "[a] b\n"
    assert "[a] " in terminal.getvalue()
