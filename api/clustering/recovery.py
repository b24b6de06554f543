"""How a client asks that nodes be recovered: Senlin's parameters, of nodes and of clusters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from oslo_utils import strutils

from common.errors import Invalid, Unimplemented
from common.resources.groups import Repair

_TYPES = ("HARD", "SOFT")


@dataclass(frozen=True)
class Recovery:
    """What is asked."""

    repair: Repair | None
    """None: as the cluster's health policy says; of a node: it is replaced."""
    soft: bool
    """Whether a reboot is soft."""
    check: bool
    """Whether a node that is well is left alone."""


def asked(body: Mapping[str, Any] | None) -> Recovery:
    """Return what is asked. Raises Invalid, Unimplemented."""
    given = body or {}
    named = given.get("operation")
    if named and named.upper() not in [*Repair]:
        raise Invalid(f"The operation '{named}' is none of {', '.join(Repair)}.")
    repair = Repair(named.upper()) if named else None
    for name in ("delete_timeout", "force_recreate"):
        if given.get(name):
            raise Unimplemented(
                f"{name} is not supported: a node gets another server once its former one is "
                "seen gone."
            )
    soft = _is_soft(repair, given.get("operation_params") or {})
    return Recovery(repair, soft, bool(strutils.bool_from_string(given.get("check"))))


def _is_soft(repair: Repair | None, params: Mapping[str, Any]) -> bool:
    unknown = sorted(set(params) - ({"type"} if repair == Repair.REBOOT else set()))
    if unknown:
        of = "a recovery without an operation" if repair is None else repair
        raise Unimplemented(f"The parameter '{unknown[0]}' of {of} is not supported.")
    kind = str(params.get("type") or "HARD").upper()
    if kind not in _TYPES:
        raise Invalid(f"The type of a reboot must be one of {' and '.join(_TYPES)}.")
    return kind == "SOFT"
