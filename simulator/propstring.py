"""Property strings (`virtio=AA:…,bridge=vmbr0`): parsing, printing, checking against a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

Check = Callable[[str], str | None]


@dataclass(frozen=True)
class Property:
    """One property and the check of its value (None: any value)."""

    check: Check | None = None
    required: bool = False


@dataclass(frozen=True)
class Format:
    """The schema of a property string; `default` is the property whose key may be omitted."""

    properties: Mapping[str, Property]
    default: str = ""
    aliases: Mapping[str, tuple[str, str]] | None = None


def split(text: str, default: str) -> dict[str, str]:
    """Return a string's properties in order; a part without a key has the default key."""
    found: dict[str, str] = {}
    for part in text.split(","):
        key, equals, value = part.partition("=")
        if equals:
            found[key.strip()] = value
        elif part.strip():
            found[default] = part
    return found


def join(first: str, rest: Mapping[str, str]) -> str:
    """Return a property string: the leading part, then the others by name."""
    return ",".join([first, *(f"{key}={rest[key]}" for key in sorted(rest))])


def problem(name: str, text: str, table: Format) -> str | None:
    """Return why a string doesn't match its schema, in Proxmox VE's words, or None."""
    complaints: list[str] = []
    found: dict[str, str] = {}
    for part in text.split(","):
        if not part.strip():
            continue
        key, equals, value = part.partition("=")
        key = key.strip()
        if not equals:
            if not table.default or table.default in found:
                complaints.append(
                    "invalid format - value without key, but schema does not "
                    "define a default key\n"
                )
                continue
            key, value = table.default, part
        elif table.aliases and key in table.aliases:
            alias, other = table.aliases[key]
            found[other] = value
            key, value = alias, key
        found[key] = value
    for key, value in found.items():
        known = table.properties.get(key)
        if known is None:
            complaints.append(
                f"{name}.{key}: property is not defined in schema and the schema does not "
                "allow additional properties\n"
            )
        elif known.check is not None and (reason := known.check(value)):
            complaints.append(f"{name}.{key}: {reason}\n")
    complaints += [
        f"{name}.{key}: property is missing and it is not optional\n"
        for key, known in table.properties.items()
        if known.required and key not in found
    ]
    return "invalid format - format error\n" + "".join(complaints) if complaints else None
