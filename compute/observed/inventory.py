"""What a host offers, as inventories of placement, and whose its traits are. Pure.

Resource classes are the standard ones (os-resource-classes).
"""

from __future__ import annotations

from typing import Any

import os_traits

from common import capacity
from common.messages.facts import HostFacts

#: set and cleared when a host is disabled and enabled; never touched here
KEPT_TRAITS = frozenset({os_traits.COMPUTE_STATUS_DISABLED})


def inventories(facts: HostFacts) -> dict[str, dict[str, Any]]:
    """Return {resource class: inventory}; zero amounts are left out."""
    return {
        name: {
            "total": offer.total,
            "reserved": offer.reserved,
            "min_unit": 1,
            "max_unit": max(1, offer.total),
            "step_size": 1,
            "allocation_ratio": offer.allocation_ratio,
        }
        for name, offer in capacity.offers(facts).items()
    }


def with_kept(wanted: frozenset[str], present: frozenset[str]) -> frozenset[str]:
    """Return the traits to set: ours, and those present that others set and clear."""
    return (wanted - KEPT_TRAITS) | (present & KEPT_TRAITS)
