"""What the configuration says of images by their names: properties, and what they need.

Proxmox VE keeps nothing of a file but its name; an image's properties must come from elsewhere.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from common import clock
from common.errors import ConfigurationError
from db.schema import images

_NEEDS = ("min_disk", "min_ram")
_GIB = 2**30


@dataclass(frozen=True)
class Rule:
    """Of the images whose names match the pattern."""

    pattern: str
    values: Mapping[str, str]


def parse(texts: Iterable[str]) -> tuple[Rule, ...]:
    """``PATTERN; KEY=VALUE; KEY=VALUE`` each. Raises ConfigurationError."""
    return tuple(map(_rule, texts))


def _rule(text: str) -> Rule:
    pattern, *parts = (part.strip() for part in text.split(";"))
    pairs = [part.partition("=") for part in parts if part]
    values = {key.strip(): value.strip() for key, _, value in pairs}
    if not pattern or not values or not all(key and equals for key, equals, _ in pairs):
        raise ConfigurationError(f"[images] properties: {text}: not PATTERN; KEY=VALUE; …")
    if not all(values[name].isdecimal() for name in _NEEDS if name in values):
        raise ConfigurationError(f"[images] properties: {text}: min_disk and min_ram are numbers")
    return Rule(pattern, values)


def of(rules: Sequence[Rule], name: str) -> dict[str, str]:
    """Return all that is said of an image; what is said later counts."""
    found: dict[str, str] = {}
    for rule in rules:
        if fnmatch.fnmatchcase(name, rule.pattern):
            found.update(rule.values)
    return found


def describe(connection: sa.Connection, rules: Sequence[Rule]) -> None:
    """Have every image as it is described. Mostly only looks."""
    columns = images.c
    for row in connection.execute(sa.select(images).order_by(columns.id)).all():
        said = of(rules, row.name)
        own = -(-(row.virtual_size_bytes or 0) // _GIB)
        wanted = {
            "min_disk_gib": max(own, int(said.pop("min_disk", 0))),
            "min_ram_mib": int(said.pop("min_ram", 0)),
            "properties": said,
        }
        if any(row._mapping[name] != value for name, value in wanted.items()):
            connection.execute(
                images.update()
                .where(columns.id == row.id)
                .values(updated_at=clock.utcnow(), **wanted)
            )
