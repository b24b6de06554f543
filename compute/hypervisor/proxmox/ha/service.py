"""What the HA manager does with one VM, and whether it would bring it back from a lost node."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from common.messages.facts import HaService


def service(
    current: Iterable[Mapping[str, Any]], status: Iterable[Mapping[str, Any]], vmid: int
) -> HaService | None:
    """Return the HA manager's state of a VM, from ``GET /cluster/ha/status/current`` and
    ``GET /cluster/status``; None: it is no resource, or ignored. Pure."""
    sid = f"vm:{vmid}"
    one = next((row for row in current if row.get("sid") == sid), None)
    if one is None or one.get("request_state") == "ignored":
        return None
    node = str(one.get("node", ""))
    members = {str(row["name"]): row for row in status if row.get("type") == "node"}
    return HaService(
        vmid,
        node,
        state=str(one.get("state", "")),
        wanted=str(one.get("request_state") or "started"),
        online=bool(members.get(node, {}).get("online")),
    )
