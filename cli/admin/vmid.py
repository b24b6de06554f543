"""``micronova vmid …``: which ids of the clusters' bands are taken, and which are in doubt."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from cli.audits import answer
from cli.command import Lister, argument
from common.story.text import duration

_HEADERS = ("Cluster", "VMID", "State", "Age", "Of", "Reason")


class ListVmids(Lister):
    """List VMIDs that are not free, quarantined ones first, with the reason and since when.

    A taken one has a VM that this cloud did not make, and is free again when that is gone. A
    quarantined one isn't given out: something of somebody else's, or left over, is or may be
    there. It is tried again after [conductor] vmid_quarantine_seconds.
    """

    in_all_regions = True

    arguments = (
        argument(
            "--state",
            metavar="<state>",
            choices=("reserved", "quarantined", "taken"),
            help="Only VMIDs in this state: reserved, quarantined or taken",
        ),
        argument("--cluster", metavar="<cluster>", help="Only VMIDs of this cluster"),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Return a row for each of them."""
        asked = {"state": parsed_args.state, "cluster": parsed_args.cluster}
        params = {name: value for name, value in asked.items() if value}
        found = answer(self.cloud.compute.get("/vmids", params=params))["vmids"]
        return _HEADERS, [row(one) for one in found]


def row(one: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return one VMID's row."""
    owner = f"server {one['server']}" if one["server"] else ""
    if one["image"]:
        owner = f"template of image {one['image']}"
    age = duration(float(one["age_seconds"]))
    return (one["cluster"], one["vmid"], one["state"], age, owner, one["reason"] or "")
