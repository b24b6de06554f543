"""An explanation in one to three lines: what happened, why, and what to do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from common.messages.reports import Category
from common.resources.states import OPEN_STATES, OperationState
from common.story import room
from common.story.decision import changes_that_would_do
from common.story.labels import label
from common.story.text import one_line, parse_time

Facts: TypeAlias = Mapping[str, Any]

_REFUSED = "refused"
_ENDED = {"done": "is done", "failed": "failed", _REFUSED: "was refused"}


@dataclass(frozen=True)
class Summary:
    """The newest operation in short; each line is a sentence, or empty."""

    what: str
    why: str
    remedy: str
    is_bad: bool
    """Whether it failed, was refused or waits, or its host can't be used."""

    def lines(self) -> tuple[str, ...]:
        """Return the lines that aren't empty."""
        return tuple(filter(None, (self.what, self.why, self.remedy)))


def summary(explanation: Facts, servers: Mapping[str, Facts] | None = None) -> Summary | None:
    """Return the summary; None: nothing was done. Arguments as for ``explanation_lines``.

    A host that can't be used comes first, as nothing else explains what its servers do.
    """
    operations: Sequence[Facts] = explanation.get("operations") or ()
    if not operations:
        return None
    newest = max(operations, key=lambda one: str(one.get("started_at") or ""))
    what, host = _what(newest, explanation, servers or {}), host_line(explanation)
    is_done = newest.get("state") == OperationState.DONE
    why = "" if is_done else why_of(newest)
    remedy = "" if is_done else _remedy(newest)
    if host:
        return Summary(host, f"{what} {why}".strip() if _is_other(newest) else what, remedy, True)
    is_bad = not is_done and bool(why)
    return Summary(what, why, remedy, is_bad)


def host_line(explanation: Facts) -> str:
    """Return why the host of the server can't be used; empty: it can, or isn't known."""
    host = explanation.get("host") or {}
    health = one_line(host.get("health") or "")
    return f"Host {one_line(host['name'])}: {health}" if host.get("name") and health else health


def why_of(operation: Facts) -> str:
    """Return why an operation failed, waits or was refused; empty: nothing says so."""
    decision = _last(operation.get("decisions"))
    reason = decision.get("reason") if not decision.get("host") else None
    texts = operation.get("message"), _last(operation.get("faults")).get("message"), reason
    return next((one_line(one) for one in texts if one), "")


def retry_line(operation: Facts) -> str:
    """Return when an operation that waits is tried again; empty: it doesn't wait."""
    until = parse_time(operation.get("waits_until"))
    return f"tried again at {until:%H:%M:%S} UTC" if until else ""


def _is_other(operation: Facts) -> bool:
    """Return whether an operation has a reason that the state of its host doesn't give."""
    category = _last(operation.get("faults")).get("category")
    return category not in (None, Category.NODE_UNHEALTHY) and not _is_done(operation)


def _is_done(operation: Facts) -> bool:
    return operation.get("state") == OperationState.DONE


def _what(operation: Facts, explanation: Facts, servers: Mapping[str, Facts]) -> str:
    state = str(operation.get("state") or "")
    subject = " ".join(_subject(operation, explanation, servers))
    action = one_line(operation.get("action") or "operation")
    words = action if state == _REFUSED else label(action.replace("-", "_"))
    noun = subject.partition(" ")[0]
    if noun:
        words = f"{words.removesuffix(f' {noun}')} of {subject}"
    return f"{words[:1].upper()}{words[1:]} {_state(operation, state)}".rstrip() + "."


def _subject(operation: Facts, explanation: Facts, servers: Mapping[str, Facts]) -> Iterator[str]:
    """Yield the noun and the name of what an operation was about."""
    if uuid := operation.get("server"):
        yield from ("server", one_line((servers.get(str(uuid)) or {}).get("name") or uuid))
        return
    resource = operation.get("resource") or {}
    if resource.get("type") and resource.get("id"):
        kind = one_line(resource["type"])
        name = (explanation.get(kind) or {}).get("name") or resource["id"]
        yield from (kind, one_line(name))


def _state(operation: Facts, state: str) -> str:
    if state in _ENDED:
        return _ENDED[state]
    if operation.get("held"):
        return "is held: nothing is tried again until it is released"
    if waits := _room_line(operation):
        return waits
    if retry := retry_line(operation):
        return f"waits, and is {retry}"
    if state == OperationState.UNWINDING:
        return "failed, and is being undone"
    return "is under way" if state in OPEN_STATES else one_line(state)


def _room_line(operation: Facts) -> str:
    """Return since when, and as which of how many, it waits for room; empty: it doesn't."""
    waiting = operation.get("waiting") or {}
    since, until = parse_time(waiting.get("since")), parse_time(waiting.get("until"))
    if not since or not until:
        return ""
    place = f"number {waiting['place']} of {waiting['of']}"
    return (
        f"waits for room on a host since {since:%Y-%m-%d %H:%M:%S} UTC, as {place}, until "
        f"{until:%Y-%m-%d %H:%M:%S} UTC at most"
    )


_UNTIL_ROOM = "Nothing needs to be done: it is built as soon as a host has room."
_UNTIL_LARGER = (
    "No host that takes servers could take it, even if it were empty: it is built once a larger "
    "one is there."
)


def _remedy(operation: Facts) -> str:
    return next(_remedies(operation), "")


def _remedies(operation: Facts) -> Iterator[str]:
    """Yield what can be done, the most useful first."""
    fault, decision = _last(operation.get("faults")), _last(operation.get("decisions"))
    server = operation.get("server")
    if fault.get("remedy"):
        yield f"Do this: {one_line(fault['remedy'])}"
    if operation.get("held"):
        yield f"To go on: micronova server release-hold {server}"
    if waiting := operation.get("waiting"):
        text = _UNTIL_LARGER if room.is_too_large(waiting) else _UNTIL_ROOM
        near, ways = room.nearest(waiting), room.would_do(waiting)
        yield " ".join(
            (
                text,
                *([f"The nearest: {near}."] if near else []),
                *([f"{ways[:1].upper()}{ways[1:]} would make room."] if ways else []),
            )
        )
    if operation.get("retry"):
        yield f"To try it at once: {one_line(operation['retry'])}"
    # a reason says what would have worked
    found = decision.get("host") or decision.get("reason")
    for change in () if found else changes_that_would_do(decision):
        yield f"This would do: {change}"
    if operation.get("waits_until"):
        yield "Nothing needs to be done: it is tried again by itself."
    if operation.get("state") == OperationState.FAILED and operation.get("action") == "create":
        yield f"Then delete it, and create it again: micronova server delete {server}"


def _last(found: Sequence[Facts] | None) -> Facts:
    return found[-1] if found else {}
