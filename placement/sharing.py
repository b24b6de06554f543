"""Sharing providers (trait MISC_SHARES_VIA_AGGREGATE) and the anchors they may serve."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from placement.matching import Mask
from placement.snapshot import Slots, Snapshot


def anchors_of(snapshot: Snapshot, mask: Mask) -> Mask:
    """Return the anchors that providers may serve."""
    anchors = np.zeros(len(mask), np.bool_)
    anchors[snapshot.root_of[mask]] = True
    for slot in snapshot.sharing.tolist():
        if mask[slot]:
            anchors[_shared_with(snapshot)[slot]] = True
    return anchors


def _shared_with(snapshot: Snapshot) -> Mapping[int, Slots]:
    """Return the anchors that each sharing provider may serve."""
    known: dict[int, Slots] | None = snapshot.memo.get("shared with")
    if known is None:
        known = {}
        for slot in snapshot.sharing.tolist():
            groups = [snapshot.by_aggregate[one] for one in sorted(snapshot.at(slot).aggregates)]
            members = np.unique(np.concatenate(groups)) if groups else snapshot.sharing[:0]
            known[slot] = np.unique(snapshot.root_of[members])
        snapshot.memo["shared with"] = known
    return known


def sharers(snapshot: Snapshot) -> Mapping[int, Sequence[int]]:
    """Return the sharing providers that may serve an anchor, those in its tree aside."""
    known: dict[int, list[int]] | None = snapshot.memo.get("sharers")
    if known is None:
        known = {}
        for slot, anchors in _shared_with(snapshot).items():
            for anchor in anchors.tolist():
                if anchor != snapshot.root_of[slot]:
                    known.setdefault(anchor, []).append(slot)
        snapshot.memo["sharers"] = known
    return known
