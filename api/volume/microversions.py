"""The versions of the Block Storage API: the list is its history, and what each changed here.

Facts from cinder/api/openstack/rest_api_version_history.rst.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from web.microversions import Microversions

#: version → what it changed in the routes that are served here ("-": in others only)
HISTORY: Mapping[int, str] = {
    **dict.fromkeys(range(72), "-"),
    0: "The beginning.",
    1: "An image that is made of a volume may be visible to others, and protected.",
    3: "Messages.",
    5: "Filters and pages of messages.",
    7: "Services show their cluster: none. Lists of clusters.",
    8: "Lists of what could be managed.",
    11: "Lists of group types.",
    12: "The summary of volumes.",
    13: "Volumes show group_id. Lists of groups.",
    14: "Lists of snapshots of groups.",
    15: "Metadata of volumes have an ETag.",
    21: "Volumes show provider_id to administrators.",
    23: "The parameter `force` of a delete.",
    24: "Clean-up after services that died.",
    27: "Attachments.",
    28: "Pools may be filtered.",
    31: "Lists refuse filters that they haven't.",
    33: "Resource filters.",
    34: "The filter `name~`.",
    35: "Pools may be filtered by a volume type.",
    36: "The metadata of the summary.",
    39: "Administrators see the limits of other projects.",
    42: "Volumes that servers have can be extended.",
    44: "Attachments are completed by an action.",
    45: "Lists may have a count.",
    48: "Volumes show shared_targets and service_uuid.",
    49: "Services show the state of their backend.",
    52: "Volume types can be filtered by extra specs.",
    53: "Properties of volumes that there are not are refused.",
    54: "Attachments have a mode.",
    55: "Transfers may leave snapshots behind; they are at /volume-transfers, too.",
    57: "Transfers show their projects, and whether they were accepted.",
    59: "Pages of transfers.",
    60: "The filters created_at and updated_at.",
    61: "Volumes show cluster_name to administrators.",
    62: "Default types of projects.",
    63: "Volumes show volume_type_id.",
    65: "Volumes show consumes_quota.",
    67: "The project ID is no longer needed in paths (never is here).",
    69: "shared_targets may be null.",
}

VERSIONS = Microversions(
    service="volume",
    major=3,
    history=HISTORY,
    # Cinder looks for "volume" in the name: Terraform's library sends "volumev3 3.42".
    entry=re.compile(r"(?:\S*volume\S*|block-storage)\s+(.+)", re.IGNORECASE | re.DOTALL),
)
