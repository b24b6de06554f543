"""Items of a form, one a line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from common.errors import Invalid


def pairs(text: str, noun: str) -> dict[str, str]:
    """Return the items of lines of NAME=VALUE; `noun` names one of them. Raises Invalid.

    >>> pairs("tier=front", "An item")
    {'tier': 'front'}
    """
    found = {}
    for line in filter(None, map(str.strip, text.splitlines())):
        name, is_one, value = line.partition("=")
        if not is_one or not name.strip():
            raise Invalid(f"{noun} is written NAME=VALUE, not {line[:80]!r}.")
        found[name.strip()] = value.strip()
    return found


def fits(name: str, value: object) -> bool:
    """Return whether a line can show an item, and give the same item back."""
    if not isinstance(value, str):
        return False
    try:
        return pairs(f"{name}={value}", "") == {name: value}
    except Invalid:
        return False


def as_lines(items: Mapping[str, str]) -> str:
    """Return items as lines, sorted; those that no line can show are left out."""
    return "\n".join(
        f"{name}={value}" for name, value in sorted(items.items()) if fits(name, value)
    )


def words(text: str) -> list[str]:
    """Return what is separated by commas or lines, each once.

    >>> words("front, web,,front")
    ['front', 'web']
    """
    given: Iterable[str] = text.replace(",", "\n").splitlines()
    return list(dict.fromkeys(filter(None, map(str.strip, given))))
