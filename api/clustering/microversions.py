"""The versions of the clustering API: the list is its history, and what each changed here.

Facts from senlin/api/openstack/history.rst.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from web.microversions import Microversions

#: version → what it changed in the routes that are served here ("-": in others only)
HISTORY: Mapping[int, str] = {
    0: "The beginning.",
    1: "-",
    2: "-",
    3: "Nodes are replaced by others.",
    4: "Operations of profile types: none.",
    5: "Support statuses of types.",
    6: "The check of a recover.",
    7: "The update of a receiver; adoptions: not supported.",
    8: "A delete may be forced.",
    9: "Services.",
    10: "Webhooks take the body of any alert.",
    11: "-",
    12: "The status of an action may be changed: not supported.",
    13: "Nodes and clusters may be tainted: never.",
    14: "Actions name their cluster.",
}

VERSIONS = Microversions(
    service="clustering",
    major=1,
    history=HISTORY,
    entry=re.compile(r"clustering\s+(.+)", re.IGNORECASE | re.DOTALL),
)
