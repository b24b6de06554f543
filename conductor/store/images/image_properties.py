"""Properties and minimum sizes of images, from the configuration, by name.

Proxmox VE has only a file's name, so an image's properties must come from elsewhere.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from common import clock
from common.digits import is_digits
from common.errors import ConfigurationError
from db.schema import images

_NEEDS = ("min_disk", "min_ram")
_GIB = 2**30


@dataclass(frozen=True)
class Rule:
    """The properties of images whose names match the pattern."""

    pattern: str
    values: Mapping[str, str]


def parse(texts: Iterable[str]) -> tuple[Rule, ...]:
    """Parse ``PATTERN; KEY=VALUE; KEY=VALUE`` texts. Raises ConfigurationError."""
    return tuple(map(_rule, texts))


def _rule(text: str) -> Rule:
    pattern, *parts = (part.strip() for part in text.split(";"))
    pairs = [part.partition("=") for part in parts if part]
    values = {key.strip(): value.strip() for key, _, value in pairs}
    if not pattern or not values or not all(key and equals for key, equals, _ in pairs):
        raise ConfigurationError(f"[images] properties: {text}: not PATTERN; KEY=VALUE; …")
    if not all(is_digits(values[name]) for name in _NEEDS if name in values):
        raise ConfigurationError(f"[images] properties: {text}: min_disk and min_ram are numbers")
    return Rule(pattern, values)


def of(rules: Sequence[Rule], name: str) -> dict[str, str]:
    """Return all properties of an image; later rules win."""
    found: dict[str, str] = {}
    for rule in rules:
        if fnmatch.fnmatchcase(name, rule.pattern):
            found.update(rule.values)
    return found


def describe(connection: sa.Connection, rules: Sequence[Rule]) -> None:
    """Store the properties of all images without an owner. Mostly only reads."""
    columns = images.c
    query = sa.select(images).where(columns.project_id.is_(None)).order_by(columns.id)
    for row in connection.execute(query).all():
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
