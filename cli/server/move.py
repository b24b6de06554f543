"""Whether a shown server can be moved to another host, for those who may know its host."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cli.cloud import Cloud

#: shown by nobody else's cloud
COLUMN = "micronova:move"
#: shown to administrators only, by the default policies
_HOST = "OS-EXT-SRV-ATTR:host"


def with_move(
    cloud: Cloud, names: Sequence[str], values: Iterable[Any]
) -> tuple[tuple[str, ...], tuple[Any, ...]]:
    """Return a shown server with how it can be moved now, or why it can't: ``live``, ``cold``, or
    ``no: …``. One request, only where the server's host is shown; another cloud has no answer."""
    shown = dict(zip(names, values, strict=True))
    if "id" in shown and shown.get(_HOST):
        found = cloud.compute.get(f"/explanations/{shown['id']}")
        move = found.json()["explanation"].get("move") if found.status_code == 200 else None
        if move:
            obstacle = move.get("obstacle")
            shown[COLUMN] = f"no: {obstacle}" if obstacle else str(move.get("way"))
    ordered = sorted(shown.items())
    return tuple(name for name, _ in ordered), tuple(value for _, value in ordered)
