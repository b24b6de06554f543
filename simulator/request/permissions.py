"""The checks of permissions that the API schema has for each call, carried out as it writes them.

`["perm", path, privileges]` wants all of them, with `any` one; `and` and `or` combine checks. What
depends on a user's groups, or on the path of the access list, is left to the handlers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from simulator.errors import PveError, forbidden
from simulator.state.access import Access, Identity

# A check as the schema writes it, or `("all",)` and `("world",)`.
Check = tuple[Any, ...]

_REFUSED = "Permission check failed"


def require(access: Access, who: Identity, check: Check, given: Mapping[str, Any]) -> None:
    """Raise 403 unless the caller passes a check."""
    kind, *rest = check
    if kind == "and":
        for part in rest:
            require(access, who, tuple(part), given)
    elif kind == "or":
        if not any(_passes(access, who, tuple(part), given) for part in rest):
            raise PveError(_REFUSED, 403)
    elif kind == "perm":
        _privileges(access, who, rest, given)
    elif kind == "userid-param" and rest != ["self"]:
        access.require(who, "/access/groups", "User.Modify")


def _passes(access: Access, who: Identity, check: Check, given: Mapping[str, Any]) -> bool:
    try:
        require(access, who, check, given)
    except PveError:
        return False
    return True


def _privileges(access: Access, who: Identity, rest: list[Any], given: Mapping[str, Any]) -> None:
    template, listed, *options = rest
    flags = dict(zip(options[::2], options[1::2], strict=True))
    wanted = flags.get("require_param")
    if wanted is not None and wanted not in given:
        raise PveError(_REFUSED, 403)
    path = re.sub(r"{(\w+)}", lambda found: str(given.get(found[1], "")), template)
    names = _of_version(access, template, listed)
    if flags.get("any"):
        access.require(who, path, *names)
        return
    for name in names:
        if not access.has(who, path, name):
            raise forbidden(path, name)


def _of_version(access: Access, path: str, listed: list[str]) -> list[str]:
    """Return privileges by the names that the cluster's version has."""
    known = access.roles["Administrator"]
    # Until version 9 one privilege covered what the guest agent does, and QEMU's monitor.
    guest = any(one.startswith("VM.GuestAgent.") for one in listed)
    monitor = path == "/vms/{vmid}" and "Sys.Audit" in listed
    if (guest or monitor) and "VM.Monitor" in known:
        return ["VM.Monitor"]
    return [one for one in listed if one in known]
