"""Templates: Jinja2 with the words and numbers that pages share."""

from __future__ import annotations

import datetime
import html
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import jinja2

from common import clock
from common.counting import counted
from common.story import amounts, room
from common.story.amounts import mib
from common.story.labels import label
from common.story.text import duration, one_line, parse_time, seconds_between, whole_seconds
from dashboard.rights import May

TEMPLATES = Path(__file__).parent / "templates"

_GOOD = ("ACTIVE", "active", "up", "available", "done", "UP", "enabled")
_NOTICE = ("in-use", "VERIFY_RESIZE", "RESCUE", "queued", "deactivated", "awaiting-transfer")
_BAD = ("ERROR", "error", "failed", "refused", "killed", "down", "DOWN")
#: status of a resource → (kind of chip, sign); colour alone says nothing
_CHIPS: Mapping[str, tuple[str, str]] = {
    **dict.fromkeys(_GOOD, ("good", "●")),
    **dict.fromkeys(_NOTICE, ("notice", "◆")),
    **dict.fromkeys(("completed", "confirmed", "finished", "moved", "SUCCEEDED"), ("good", "●")),
    **dict.fromkeys(("waiting", "paused", "disabled", "damage", "WARNING"), ("notice", "◆")),
    **dict.fromkeys(("blocked", "forced down", "leak", "FAILED"), ("bad", "✕")),
    **dict.fromkeys(("BUILD", "running", "unwinding", "creating", "saving"), ("busy", "◌")),
    **dict.fromkeys(_BAD, ("bad", "✕")),
}
#: how far clocks may differ: what is that near has been
_SKEW_SECONDS = 10
_BUSY = ("REBOOT", "HARD_REBOOT", "RESIZE", "MIGRATING", "REBUILD", "PASSWORD", "REVERT_RESIZE")


def environment(static: Callable[[str], str], folder: Path = TEMPLATES) -> jinja2.Environment:
    """Return the templates; `static` gives a file's address.

    They are read now: the package may be upgraded under the process, and a page that is shown
    for the first time then is still of this release.
    """
    made = jinja2.Environment(
        loader=jinja2.DictLoader(_sources(folder)),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.filters.update(
        age=age,
        ago=ago,
        amounts=amounts.by_class,
        nearest_room=room.nearest,
        would_make_room=room.would_do,
        chip=chip,
        counted=counted,
        duration=duration,
        label=label,
        mib=mib,
        moment=moment,
        exact=exact,
        one_line=one_line,
        size=size,
        tick=tick,
        sizes=sizes,
        took=took,
        # Jinja's own leaves a slash, which ends a part of a path
        urlencode=lambda value: quote(str(value), safe=""),
        whole_seconds=whole_seconds,
    )
    made.globals.update(static=static, may=May)
    return made


def _sources(folder: Path) -> dict[str, str]:
    paths = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_text("utf-8") for path in paths}


def chip(status: Any) -> tuple[str, str]:
    """Return the kind and the sign of a status."""
    text = str(status or "")
    if text in _BUSY or text.lower().endswith("ing"):
        return _CHIPS.get(text, ("busy", "◌"))
    if text.startswith("error"):
        return ("bad", "✕")
    return _CHIPS.get(text, ("plain", "○"))


def size(size_bytes: Any) -> str:
    """Return a number of bytes in words.

    >>> size(3 << 20), size(None)
    ('3.0 MiB', '')
    """
    if size_bytes is None:
        return ""
    return amounts.size(float(size_bytes))


def sizes(flavor: Mapping[str, Any]) -> str:
    """Return what a server of a flavor has.

    >>> sizes({"vcpus": 2, "ram": 4096, "disk": 20})
    '2 VCPUs, 4 GiB, 20 GiB'
    """
    cores, disk = counted(flavor["vcpus"], "VCPU"), flavor["disk"]
    return f"{cores}, {mib(flavor['ram'])}, {disk:,} GiB"


def moment(text: Any) -> str:
    """Return a time in full, in UTC."""
    at = parse_time(text)
    return f"{at.astimezone(datetime.UTC):%Y-%m-%d %H:%M:%S} UTC" if at else ""


class _Html(str):
    """Text that templates don't escape."""

    __slots__ = ()

    def __html__(self) -> str:
        return str(self)


def exact(text: Any) -> str:
    """Return a time in full as HTML: a script shows it in the reader's zone.

    >>> exact("2026-11-29T18:00:57Z"), exact(None)
    ('<time class="exact" datetime="2026-11-29T18:00:57Z">2026-11-29 18:00:57 UTC</time>', '')
    """
    shown = moment(text)
    tag = f'<time class="exact" datetime="{html.escape(str(text))}">{shown}</time>'
    return _Html(tag) if shown else ""


def took(task: Mapping[str, Any]) -> str:
    """Return how long something took that has ended."""
    seconds = seconds_between(task["started_at"], task["finished_at"])
    return "" if seconds is None else whole_seconds(seconds)


def age(text: Any) -> str:
    """Return how long ago something was as HTML: its time in full shows when pointed at.

    >>> age(None)
    ''
    """
    return _relative(text, _length(_seconds_since(text)))


def ago(text: Any) -> str:
    """Return when something was, from now, as `age`."""
    seconds = _seconds_since(text)
    is_ahead = seconds < -_SKEW_SECONDS
    said = f"in {_length(-seconds)}" if is_ahead else f"{_length(seconds)} ago"
    return _relative(text, said)


def _relative(text: Any, said: str) -> str:
    full = moment(text)
    tag = f'<time datetime="{html.escape(str(text))}" title="{full}">{said}</time>'
    return _Html(tag) if full else ""


def _seconds_since(text: Any) -> float:
    return seconds_between(text, clock.utcnow().isoformat()) or 0.0


def _length(seconds: float) -> str:
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= size:
            return f"{int(seconds // size)} {unit}"
    return f"{max(0, int(seconds))} s"


def tick(text: str, at: str, *, is_day: bool) -> str:
    """Return a label of an axis as HTML: a script shows it in the reader's zone."""
    kind = "day" if is_day else "clock"
    return _Html(f'<time class="{kind}" datetime="{html.escape(at)}">{text}</time>')
