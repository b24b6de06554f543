"""W3C trace context: which trace, and which span of it, a request belongs to. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

# A later version may have more at the end; ff is none.
_FORM = re.compile(
    r"(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-.*)?"
)
_SAMPLED = 1


@dataclass(frozen=True)
class TraceParent:
    """The caller's span."""

    trace_id: int
    span_id: int
    sampled: bool


def parse(text: str | None) -> TraceParent | None:
    """Return what a ``traceparent`` header says; None where it isn't one."""
    match = _FORM.fullmatch(text or "")
    if match is None or (match[1] == "00" and match[5]):
        return None
    sampled = bool(int(match[4], 16) & _SAMPLED)
    return TraceParent(int(match[2], 16), int(match[3], 16), sampled)


def accepted(text: str | None) -> str | None:
    """Return the header as it is kept with a request, without what later versions add."""
    return None if parse(text) is None else str(text)[:55]
