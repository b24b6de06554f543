"""Microversions: this list is the history of the API.

What each version adds is the OpenStack Placement API's own list; the numbers mean the same here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from common import digits
from common.errors import Invalid
from placement.errors import NotAcceptable

Version = tuple[int, int]

HISTORY: Mapping[Version, str] = {
    (1, 0): "resource providers, inventories, usages, allocations",
    (1, 1): "aggregates of a provider",
    (1, 2): "resource classes",
    (1, 3): "member_of on GET /resource_providers",
    (1, 4): "resources on GET /resource_providers",
    (1, 5): "DELETE of all inventories of a provider",
    (1, 6): "traits",
    (1, 7): "PUT /resource_classes/{name} creates, without a body",
    (1, 8): "project_id and user_id are required in PUT /allocations/{consumer}",
    (1, 9): "GET /usages of a project",
    (1, 10): "GET /allocation_candidates",
    (1, 11): "link from a provider to its allocations",
    (1, 12): "PUT /allocations takes what GET gives",
    (1, 13): "POST /allocations for several consumers",
    (1, 14): "trees: parent and root of a provider, in_tree on GET /resource_providers",
    (1, 15): "last-modified and cache-control",
    (1, 16): "limit on candidates",
    (1, 17): "required traits on candidates, traits in summaries",
    (1, 18): "required on GET /resource_providers",
    (1, 19): "generation with aggregates",
    (1, 20): "POST /resource_providers answers with the provider",
    (1, 21): "member_of on candidates",
    (1, 22): "forbidden traits",
    (1, 23): "codes in errors",
    (1, 24): "member_of may be repeated",
    (1, 25): "numbered request groups on candidates",
    (1, 26): "reserved may equal total",
    (1, 27): "summaries tell all resource classes",
    (1, 28): "generation of consumers",
    (1, 29): "candidates from trees",
    (1, 30): "POST /reshaper",
    (1, 31): "in_tree on candidates",
    (1, 32): "forbidden aggregates",
    (1, 33): "request groups have names",
    (1, 34): "mappings tell which provider serves which group",
    (1, 35): "root_required on candidates",
    (1, 36): "same_subtree on candidates, groups without resources",
    (1, 37): "a provider may get another parent, or none",
    (1, 38): "type of consumers",
    (1, 39): "any of several traits: required=in:A,B; required may be repeated",
}

MINIMUM: Version = min(HISTORY)
MAXIMUM: Version = max(HISTORY)
HEADER = "openstack-api-version"
SERVICE = "placement"

_VERSION = re.compile(r"(\d+)\.(\d+)", re.ASCII)
_NONE = 1_000_000


def text(version: Version) -> str:
    """Return "1.39" for (1, 39)."""
    return f"{version[0]}.{version[1]}"


def negotiate(header: str | None) -> Version:
    """Return the version that the header's value asks for; without one, the oldest.

    Several services may be named, comma-separated; the last entry for placement counts.
    Raises Invalid for what isn't a version, NotAcceptable for one that isn't served.
    """
    asked = None
    for entry in (header or "").split(","):
        words = entry.split()
        if len(words) == 2 and words[0].lower() == SERVICE:
            asked = words[1]
    if asked is None:
        return MINIMUM
    if asked == "latest":
        return MAXIMUM
    match = _VERSION.fullmatch(asked)
    if match is None:
        raise Invalid(f"Invalid microversion: invalid version string: {asked}")
    version = (digits.number(match[1], _NONE) or 0, digits.number(match[2], _NONE) or 0)
    if version not in HISTORY:
        raise NotAcceptable(f"Invalid microversion: Unacceptable version header: {asked}")
    return version
