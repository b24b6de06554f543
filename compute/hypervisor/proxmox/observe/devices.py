"""Mapped PCI devices: which are available to guests on which node. Pure.

A token may use a mapping (``hostpciN: mapping=…``) with Mapping.Use on it; devices
themselves (``host=…``) are for root@pam only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from compute.hypervisor.proxmox.api.privileges import Need, lacking

USE = "Mapping.Use"


def by_node(
    mappings: Iterable[Mapping[str, Any]], granted: Mapping[str, Mapping[str, int]]
) -> dict[str, dict[str, int]]:
    """Return {node: {mapping: devices there}} of the mappings that the token may use.

    Those of mediated devices are left out: how many guests share one isn't known.
    """
    found: dict[str, Counter[str]] = {}
    for one in mappings:
        name = str(one["id"])
        need = Need(f"/mapping/pci/{name}", (USE,), "mapped devices")
        if one.get("mdev") or lacking(granted, [need]):
            continue
        for text in one.get("map") or ():
            entry = dict(part.split("=", 1) for part in str(text).split(",") if "=" in part)
            paths = [path for path in entry.get("path", "").split(";") if path]
            found.setdefault(entry.get("node", ""), Counter())[name] += len(paths)
    return {node: dict(counts) for node, counts in found.items()}
