"""Microversions: this list is the history of the API.

What each version adds is the OpenStack Placement API's own list; the numbers mean the same here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from web.microversions import Microversions

#: minor version → what it added
HISTORY: Mapping[int, str] = {
    0: "resource providers, inventories, usages, allocations",
    1: "aggregates of a provider",
    2: "resource classes",
    3: "member_of on GET /resource_providers",
    4: "resources on GET /resource_providers",
    5: "DELETE of all inventories of a provider",
    6: "traits",
    7: "PUT /resource_classes/{name} creates, without a body",
    8: "project_id and user_id are required in PUT /allocations/{consumer}",
    9: "GET /usages of a project",
    10: "GET /allocation_candidates",
    11: "link from a provider to its allocations",
    12: "PUT /allocations takes what GET gives",
    13: "POST /allocations for several consumers",
    14: "trees: parent and root of a provider, in_tree on GET /resource_providers",
    15: "last-modified and cache-control",
    16: "limit on candidates",
    17: "required traits on candidates, traits in summaries",
    18: "required on GET /resource_providers",
    19: "generation with aggregates",
    20: "POST /resource_providers answers with the provider",
    21: "member_of on candidates",
    22: "forbidden traits",
    23: "codes in errors",
    24: "member_of may be repeated",
    25: "numbered request groups on candidates",
    26: "reserved may equal total",
    27: "summaries report all resource classes",
    28: "generation of consumers",
    29: "candidates from trees",
    30: "POST /reshaper",
    31: "in_tree on candidates",
    32: "forbidden aggregates",
    33: "request groups have names",
    34: "mappings report which provider serves which group",
    35: "root_required on candidates",
    36: "same_subtree on candidates, groups without resources",
    37: "a provider may get another parent, or none",
    38: "type of consumers",
    39: "any of several traits: required=in:A,B; required may be repeated",
}

VERSIONS = Microversions(
    service="placement",
    major=1,
    history=HISTORY,
    header="openstack-api-version",
    entry=re.compile(r"placement\s+(\S+)", re.IGNORECASE),
    number=re.compile(r"([0-9]+)\.([0-9]+)", re.ASCII),
    malformed="Invalid microversion: invalid version string: {asked}",
    not_served="Invalid microversion: Unacceptable version header: {asked}",
)
