"""Who may do what: the Placement API's rules, their names and defaults.

Operators override them in the policy file, as with OpenStack Placement.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from oslo_policy import policy

from web.policy import rule
from web.protected import Protected

PREFIX = "placement:"
REFUSAL = "Policy does not allow {} to be performed."

ADMIN_OR_SERVICE = "rule:admin_or_service_api"
SERVICE = "rule:service_api"
READER = "rule:admin_or_project_reader_or_service_api"

_BASE: Mapping[str, str] = {
    "admin_api": "role:admin",
    "service_api": "role:service",
    "admin_or_service_api": "role:admin or role:service",
    "project_reader_api": "role:reader and project_id:%(project_id)s",
    "admin_or_project_reader_or_service_api": (
        "role:admin or rule:project_reader_api or role:service"
    ),
}
#: the earlier checks; they count too with `[oslo_policy] enforce_new_defaults = false`
_BEFORE: Mapping[str, str] = {name: "role:admin" for name in _BASE if name != "admin_api"}
#: rule → who may, where not every administrator and service
_OTHERS: Mapping[str, str] = {f"{PREFIX}usages": READER, f"{PREFIX}reshaper:reshape": SERVICE}


def full(name: str) -> str:
    """Return the full name of a rule."""
    return PREFIX + name


def list_rules(protected: Mapping[str, Sequence[Protected]]) -> Iterator[policy.RuleDefault]:
    """Yield the rules with their defaults; `protected`: what each protects."""
    for name, check in _BASE.items():
        yield policy.RuleDefault(
            name,
            check,
            description="A rule that the others name.",
            deprecated_rule=_deprecated(name),
        )
    for name, ((method, path), *_) in protected.items():
        yield rule(name, _OTHERS.get(name, ADMIN_OR_SERVICE), f"{method} {path}")


def _deprecated(name: str) -> policy.DeprecatedRule | None:
    if name not in _BEFORE:
        return None
    return policy.DeprecatedRule(
        "admin_api",
        _BEFORE[name],
        deprecated_reason="Services ask with the role service.",
        deprecated_since="Wallaby",
    )
