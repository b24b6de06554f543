"""The versions of the compute API: the list is its history, and what each changed here.

A request names one in `OpenStack-API-Version: compute 2.N` (or the older
`X-OpenStack-Nova-API-Version: 2.N`); without a name it is the oldest. Inside, a version is the
int after the dot.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Generic, TypeVar

from common import digits
from common.errors import Invalid, MicronovaError

T = TypeVar("T")

HEADER = "OpenStack-API-Version"
LEGACY_HEADER = "X-OpenStack-Nova-API-Version"
SERVICE = "compute"

#: version → what it changed in the routes that are served here ("-": in others only)
HISTORY: Mapping[int, str] = {
    1: "The beginning: strict validation of bodies.",
    2: "Key pairs have a type; create answers 201 and delete 204.",
    3: "Extended server attributes: hostname, reservation_id, launch_index, user_data …",
    4: "-",
    5: "Users may filter servers by ip6.",
    6: "-",
    7: "Giving a project access to a public flavor is a conflict.",
    8: "-",
    9: "Servers show `locked`.",
    10: "Administrators work on the key pairs of others with `user_id`.",
    11: "Services have `forced_down`.",
    12: "-",
    13: "Server groups show project_id and user_id.",
    14: "-",
    15: "Server groups have soft policies.",
    16: "Servers show `host_status` to whom the policy allows.",
    17: "-",
    18: "The project ID is no part of paths (never is here).",
    19: "Servers have a description.",
    20: "-",
    21: "Actions of deleted servers are shown.",
    22: "-",
    23: "-",
    24: "-",
    25: "-",
    26: "Servers have tags.",
    27: "The header OpenStack-API-Version (taken at every version here).",
    28: "A hypervisor's cpu_info is an object.",
    29: "-",
    30: "-",
    31: "-",
    32: "Networks and block devices of a create may have a tag.",
    33: "Hypervisors come in pages; block devices lose the tag again.",
    34: "-",
    35: "Key pairs come in pages.",
    36: "Quotas and limits lose what belongs to networks.",
    37: "A create must name networks: a list, `auto` or `none`.",
    38: "An unknown status in a list's filter is refused.",
    39: "Limits lose maxImageMeta.",
    40: "-",
    41: "Aggregates show their uuid.",
    42: "Block devices get the tag back.",
    43: "-",
    44: "-",
    45: "-",
    46: "Answers tell X-OpenStack-Request-ID (always do here).",
    47: "Servers embed their flavor.",
    48: "-",
    49: "-",
    50: "-",
    51: "Users see the events of their servers' actions.",
    52: "A create may give tags.",
    53: "Services and hypervisors are named by UUID; searching is a filter of the list.",
    54: "-",
    55: "Flavors have a description, which may be changed.",
    56: "-",
    57: "Files are no longer injected; limits and quotas lose them.",
    58: "Actions come in pages and may be filtered by time; they show updated_at.",
    59: "-",
    60: "-",
    61: "Flavors show their extra specs.",
    62: "Events of actions show host (to administrators) and hostId.",
    63: "Servers show trusted_image_certificates (always null here).",
    64: "Server groups have one policy, and rules.",
    65: "-",
    66: "The filter `changes-before`.",
    67: "Block devices may name a volume type (volumes are refused here).",
    68: "-",
    69: "Partial answers while a cell is down (there are no cells here).",
    70: "-",
    71: "A server shows its server_groups.",
    72: "-",
    73: "Servers show locked_reason; `locked` filters and sorts.",
    74: "Administrators choose the host of a create with host and hypervisor_hostname.",
    75: "Unknown query parameters are refused; PUT answers all of a server; swap 0 is a number.",
    76: "-",
    77: "-",
    78: "-",
    79: "-",
    80: "-",
    81: "Images are made ready on the hosts of an aggregate.",
    82: "-",
    83: "Users get more filters for servers.",
    84: "Events of actions show details (to administrators).",
    85: "-",
    86: "Known extra specs are validated.",
    87: "-",
    88: "Hypervisors lose their numbers and show uptime; statistics and uptime routes go.",
    89: "-",
    90: "Users may choose and see the hostname.",
    91: "-",
    92: "Key pairs are no longer generated; their names may hold @ and dots.",
    93: "-",
    94: "The hostname may be a full domain name.",
    95: "-",
    96: "Servers show pinned_availability_zone.",
    97: "-",
    98: "Servers show their image's properties.",
    99: "-",
    100: "Servers show their scheduler_hints.",
    101: "-",
    102: "Flavors lose rxtx_factor and disabled, and may be filtered by name; "
    "unknown query parameters are refused everywhere.",
    103: "-",
}

MIN = min(HISTORY)
MAX = max(HISTORY)

_FORM = re.compile(r"([1-9]\d*)\.([1-9]\d*|0)", re.ASCII)


class NotAcceptable(MicronovaError):
    """A version that isn't served; details: min and max."""

    code = "micronova.microversion"
    sentence = "The version is not supported by the API."


def text(version: int) -> str:
    """`2.N`, as headers and documents have it."""
    return f"2.{version}"


def parse(named: str) -> int:
    """The version of its text, such as `2.90`; only for the texts in our own tables."""
    return int(named.removeprefix("2."))


def negotiate(header: str | None, legacy_header: str | None) -> int:
    """The version that a request's headers name; the oldest where they name none.

    Raises Invalid for what is no version, NotAcceptable for one that isn't served.
    """
    wanted = _ours(header) or (legacy_header or "").strip()
    if not wanted:
        return MIN
    if wanted == "latest":
        return MAX
    form = _FORM.fullmatch(wanted)
    if form is None:
        raise Invalid(
            f"API Version String {wanted} is of invalid format. "
            "Must be of format MajorNum.MinorNum."
        )
    minor = digits.number(form[2], MAX + 1)
    if minor is None or form[1] != "2" or not MIN <= minor <= MAX:
        raise NotAcceptable(
            f"Version {wanted} is not supported by the API. "
            f"Minimum is {text(MIN)} and maximum is {text(MAX)}.",
            min=text(MIN),
            max=text(MAX),
        )
    return minor


def _ours(header: str | None) -> str | None:
    """What a header that may speak to several services says to this one; the last word counts."""
    found = None
    for part in (header or "").split(","):
        service, _, version = part.strip().partition(" ")
        if service.lower() == SERVICE and version:
            found = version.strip()
    return found


class Versioned(Generic[T]):
    """Something that changes with the version: `Versioned({"2.1": a, "2.19": b})`."""

    def __init__(self, changes: Mapping[str, T]) -> None:
        self._changes = sorted(
            ((parse(named), value) for named, value in changes.items()), key=lambda item: item[0]
        )

    def at(self, version: int) -> T | None:
        """What holds at a version; None before the first one."""
        found = None
        for since, value in self._changes:
            if since > version:
                break
            found = value
        return found

    def items(self) -> list[tuple[int, T]]:
        """(since, value), oldest first."""
        return list(self._changes)
