"""Measured amounts for people, and small graphs of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_BARS = "▁▂▃▄▅▆▇█"


def amount(value: float | None, unit: str) -> str:
    """Return a value with its unit; a dash for what isn't known.

    >>> amount(12.345, "percent"), amount(1536, "bytes"), amount(2.0, "count"), amount(None, "x")
    ('12.3 %', '1.5 KiB', '2', '-')
    """
    if value is None:
        return "-"
    if unit == "percent":
        return f"{value:.1f} %"
    if unit == "bytes":
        return size(value)
    if unit == "bytes_per_second":
        return f"{size(value)}/s"
    return f"{value:.2f}".rstrip("0").rstrip(".")


def size(count: float) -> str:
    """Return bytes in a unit that leaves a number below 1024.

    >>> size(0), size(1023), size(3 << 40)
    ('0 B', '1023 B', '3.0 TiB')
    """
    step = 0
    while count >= 1024 and step < len(_UNITS) - 1:
        count, step = count / 1024, step + 1
    return f"{count:.0f} B" if step == 0 else f"{count:.1f} {_UNITS[step]}"


def mib(count: int) -> str:
    """Return MiB, as GiB where they are a whole number of them.

    >>> mib(512), mib(4 << 20)
    ('512 MiB', '4,096 GiB')
    """
    return f"{count:,} MiB" if count % 1024 or not count else f"{count // 1024:,} GiB"


def by_class(of: Mapping[str, int]) -> str:
    """Return amounts by resource class in one line.

    >>> by_class({"VCPU": 2, "DISK_GB": 10})
    '10 DISK_GB, 2 VCPU'
    """
    return ", ".join(f"{count} {name}" for name, count in sorted(of.items()))


def mean(values: Sequence[float | None]) -> float | None:
    """Return the mean of what is known."""
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def last(values: Sequence[float | None]) -> float | None:
    """Return the newest value that is known."""
    return next((value for value in reversed(values) if value is not None), None)


def peak(values: Sequence[float | None]) -> float | None:
    """Return the largest value."""
    return max((value for value in values if value is not None), default=None)


def sparkline(values: Sequence[float | None], width: int, top: float | None = None) -> str:
    """Return a graph of one line, a blank where nothing is known.

    :param width: characters at most; neighbours are drawn as their mean.
    :param top: what the highest bar stands for; None: the largest value.

    >>> sparkline([0, 1, None, 4], 4)
    '▁▃ █'
    """
    count = min(width, len(values))
    columns = [
        mean(values[number * len(values) // count : (number + 1) * len(values) // count])
        for number in range(count)
    ]
    highest = top or peak(columns) or 1.0
    return "".join(
        " "
        if value is None
        else _BARS[min(len(_BARS) - 1, max(0, round(value / highest * (len(_BARS) - 1))))]
        for value in columns
    )
