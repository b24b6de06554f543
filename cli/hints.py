"""The names there are, where an answer says that a name is wrong."""

from __future__ import annotations

import argparse
import difflib
import itertools
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

_MOST = 1000
_SHOWN = 20

#: kind → API of the connection, its list, and whether all names may be shown
_LISTS: Mapping[str, tuple[str, str, bool]] = {
    "aggregate": ("compute", "aggregates", True),
    "availabilityzone": ("compute", "availability_zones", True),
    "backup": ("block_storage", "backups", False),
    "flavor": ("compute", "flavors", True),
    "image": ("image", "images", True),
    "keypair": ("compute", "keypairs", True),
    "network": ("network", "networks", True),
    "port": ("network", "ports", False),
    "project": ("identity", "projects", False),
    "role": ("identity", "roles", True),
    "securitygroup": ("network", "security_groups", True),
    "server": ("compute", "servers", False),
    "servergroup": ("compute", "server_groups", True),
    "snapshot": ("block_storage", "snapshots", False),
    "subnet": ("network", "subnets", True),
    "type": ("block_storage", "types", True),
    "user": ("identity", "users", False),
    "volume": ("block_storage", "volumes", False),
}
#: messages about an unknown name: (pattern, kind, argument with the name); None: a group of the
#: pattern gives it
_SAID: tuple[tuple[str, str | None, str | None], ...] = (
    (r"Invalid key_name provided", "keypair", "key_name"),
    (
        r"The requested availability zone is not available",
        "availabilityzone",
        "availability_zone",
    ),
    (r"Unable to find security_group with name or id '(?P<name>[^']+)'", "securitygroup", None),
    (r"Security group (?P<name>\S+) (is not|not) found", "securitygroup", None),
    (r"No (?P<kind>\w+) found for (?P<name>\S+)", None, None),
    (r"No (?P<kind>\w+) named '(?P<name>[^']+)'\.$", None, None),
)


def hint(connection: Callable[[], Any], text: str, given: argparse.Namespace) -> str:
    """Return what may be meant and what there is, to follow ``text``; empty: nothing is known.

    :param connection: gives the SDK's connection; called only where a name is wrong.
    :param given: the command's arguments.
    """
    for pattern, kind, argument in _SAID:
        found = re.search(pattern, text)
        if found is None:
            continue
        about = (kind or found["kind"]).lower()
        name = getattr(given, argument, None) if argument else found["name"]
        if about in _LISTS and name:
            return _hint(connection(), about, str(name))
    return ""


def _hint(connection: Any, kind: str, name: str) -> str:
    api, listed, all_shown = _LISTS[kind]
    try:
        names = list(itertools.islice(_names(getattr(getattr(connection, api), listed)), _MOST))
    except Exception:  # noqa: BLE001  (the error itself is shown; this only adds to it)
        return ""
    close = difflib.get_close_matches(name, names, 1)
    said = f" Did you mean '{close[0]}'?" if close else ""
    if not all_shown:
        return said
    if not names:
        return f"{said} There is none at all."
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"{said} There are: {', '.join(sorted(names)[:_SHOWN])}{more}"


def _names(listed: Callable[[], Any]) -> Iterator[str]:
    seen: set[str] = set()
    for one in listed():
        if one.name and one.name not in seen:
            seen.add(one.name)
            yield str(one.name)
