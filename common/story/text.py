"""Lines of styled text, and how to say a time and a duration."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

#: text and its style in rich's words, "" for none
Segment: TypeAlias = tuple[str, str]
Line: TypeAlias = tuple[Segment, ...]


def plain(line: Line) -> str:
    """Return the line without styles and without trailing blanks."""
    return "".join(text for text, _ in line).rstrip()


def plain_text(lines: Iterable[Line]) -> str:
    """Return the lines as one text, each ended."""
    return "".join(plain(line) + "\n" for line in lines)


def one_line(text: Any) -> str:
    """Return text on one line, without what would control a terminal."""
    return "".join(c if c.isprintable() else " " for c in str(text)).strip()


def fact(value: Any) -> str:
    """Return a fact of a step: several things in a row, a quota as a sentence.

    >>> fact({"limit": 10, "used": 3, "asked": 1})
    '1 asked, 3 of 10 used'
    >>> fact(True), fact(False)
    ('yes', 'no')
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ",".join(map(one_line, value))
    if isinstance(value, Mapping) and "percent" in value:
        return how_far(value)
    if isinstance(value, Mapping) and value.keys() >= {"limit", "used", "asked"}:
        limit = f"of {value['limit']} used" if value["limit"] >= 0 else "used, no limit"
        return f"{value['asked']} asked, {value['used']} {limit}"
    return one_line(value)


def how_far(copied: Mapping[str, Any]) -> str:
    """Return how far a copy is: percent, bytes, the time left by the rate so far.

    >>> how_far({"percent": 25, "disk_bytes": 2**30, "disk_total_bytes": 2**32, "seconds_left": 9})
    '25 %, 1.0 of 4.0 GiB, 9 s left'
    """
    done, total = (
        sum(int(copied.get(f"{what}_{unit}") or 0) for what in ("disk", "memory"))
        for unit in ("bytes", "total_bytes")
    )
    exponent = 3 if total >= 1 << 30 else 2
    unit = 1 << 10 * exponent
    parts = [f"{int(copied['percent'])} %"]
    if total:
        name = {2: "MiB", 3: "GiB"}[exponent]
        parts.append(f"{done / unit:.1f} of {total / unit:.1f} {name}")
    left = copied.get("seconds_left")
    if left is not None:
        parts.append(f"{left} s left" if left < 60 else f"{duration(left)} left")
    return ", ".join(parts)


def facts_of(detail: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the facts of a step by name, without those that there are none of.

    >>> facts_of({"host": None, "left": [], "considered": 0})
    [('considered', '0')]
    """
    return [(one_line(k), fact(v)) for k, v in sorted(detail.items()) if v not in (None, "", [])]


def parse_time(text: Any) -> datetime.datetime | None:
    """Return an aware time of ISO 8601 text, None where there is none. No zone means UTC."""
    if not text:
        return None
    try:
        time = datetime.datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return time if time.tzinfo else time.replace(tzinfo=datetime.UTC)


def seconds_between(start: Any, end: Any) -> float | None:
    """Return the seconds from one time (ISO 8601 text) to another, None if one is missing."""
    first, last = parse_time(start), parse_time(end)
    return None if first is None or last is None else (last - first).total_seconds()


def duration(seconds: float | None) -> str:
    """Return a duration for people.

    >>> [duration(s) for s in (None, 0.0042, 1.5, 75, 7205)]
    ['', '4 ms', '1.50 s', '1 min 15 s', '2 h 00 min']
    """
    if seconds is None:
        return ""
    if seconds < 1:
        return f"{max(seconds, 0) * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.2f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"


def whole_seconds(seconds: float | None) -> str:
    """Return a duration without fractions of a second.

    >>> [whole_seconds(s) for s in (None, 0.4, 12.3, 75)]
    ['', '0 s', '12 s', '1 min 15 s']
    """
    if seconds is None:
        return ""
    whole = round(seconds)
    return f"{whole} s" if whole < 60 else duration(whole)
