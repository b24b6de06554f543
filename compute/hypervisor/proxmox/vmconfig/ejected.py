"""Which CDs were ejected for a move: noted in the VM's description until they are back. Pure."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any

from compute.hypervisor.proxmox.vmconfig import marks

EMPTY = "none,media=cdrom"
_NOTE = "micronova: ejected="

Config = Mapping[str, Any]


def is_cd(listed: Mapping[str, Any]) -> bool:
    """Return whether a local disk, as ``GET …/migrate`` lists it, is a CD with a file."""
    return bool(listed.get("cdrom")) and not listed.get("is_cloudinit")


def noted(config: Config) -> dict[str, str]:
    """Return {drive: its value before it was ejected}; empty: no CD is noted.

    Others may write descriptions, too: what isn't the value of a CD is left out.
    """
    text = next((line for line in marks.lines(config) if line.startswith(_NOTE)), None)
    try:
        found = json.loads(text.removeprefix(_NOTE)) if text is not None else {}
        return {name: value for name, value in found.items() if _is_inserted(value)}
    except (ValueError, AttributeError):
        return {}


def taken_out(config: Config, volids: Collection[str]) -> dict[str, str]:
    """Return the parameters that eject these volumes and note them; empty: none is inserted."""
    there = {
        name: str(value)
        for name, value in config.items()
        if str(value).split(",", 1)[0] in volids and _is_inserted(value)
    }
    if not there:
        return {}
    note = json.dumps(noted(config) | there, separators=(",", ":"), sort_keys=True)
    return dict.fromkeys(there, EMPTY) | {"description": f"{_without_note(config)}\n{_NOTE}{note}"}


def put_in(config: Config, values: Mapping[str, str]) -> dict[str, str]:
    """Return the parameters that insert these in drives that are empty, and remove the note;
    empty: there is no note."""
    if all(not line.startswith(_NOTE) for line in marks.lines(config)):
        return {}
    empty = {
        name: value
        for name, value in values.items()
        if str(config.get(name, "")).split(",", 1)[0] == "none"
    }
    return empty | {"description": _without_note(config)}


def _is_inserted(value: object) -> bool:
    volid, *options = str(value).split(",")
    return volid != "none" and "media=cdrom" in options


def _without_note(config: Config) -> str:
    kept = str(config.get("description", "")).splitlines()
    return "\n".join(line for line in kept if not line.strip().startswith(_NOTE)).rstrip()
