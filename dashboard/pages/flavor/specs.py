"""What extra specs mean here. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from common.guest import limits, settings
from common.guest.asked import Asked, CannotError


@dataclass(frozen=True)
class Spec:
    """An extra spec of a flavor."""

    name: str
    value: str
    title: str
    """Empty: this cloud gives it no meaning."""
    does: str
    refused: str
    """Why no host takes such a server; empty: nothing is known against it."""


def explained(extra_specs: Mapping[str, str]) -> list[Spec]:
    """Return extra specs with what each does, by name."""
    return [_explained(name, value) for name, value in sorted(extra_specs.items())]


def _explained(name: str, value: str) -> Spec:
    found = settings.of_spec(name)
    title, does = (found.title, found.does) if found else ("", "")
    return Spec(name, value, title, does, _refused(name, value))


def _refused(name: str, value: str) -> str:
    try:
        limits.check(Asked({name: value}, {}))
    except CannotError as error:
        return str(error)
    return ""


def known() -> list[settings.Setting]:
    """Return the extra specs that this cloud understands, by name."""
    every = (*settings.SETTINGS, *settings.OPEN)
    return sorted((one for one in every if one.spec), key=lambda one: one.spec)
