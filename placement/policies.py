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
AGENTS = "rule:admin_or_service_or_agent_api"
SERVICE = "rule:service_api"
READER = "rule:admin_or_project_reader_or_service_api"

AGENT = "agent"
"""The role of compute agents' users: see `placement.agents`."""

_AGENT_READS = (
    *("resource_classes:list", "resource_classes:show", "traits:list", "traits:show"),
    *("resource_providers:list", "resource_providers:show"),
    *("resource_providers:inventories:list", "resource_providers:inventories:show"),
    "resource_providers:traits:list",
)
_AGENT_WRITES = (
    *("resource_providers:create", "resource_providers:create_many"),
    *("resource_providers:update", "resource_providers:inventories:update"),
    "resource_providers:traits:update",
)
#: names are everybody's: that of a class or trait is made where it is missing
_AGENT_NAMES = ("resource_classes:update", "traits:update")

_BASE: Mapping[str, str] = {
    "admin_api": "role:admin",
    "service_api": "role:service",
    "admin_or_service_api": "role:admin or role:service",
    "admin_or_service_or_agent_api": f"rule:admin_or_service_api or role:{AGENT}",
    "project_reader_api": "role:reader and project_id:%(project_id)s",
    "admin_or_project_reader_or_service_api": (
        "role:admin or rule:project_reader_api or role:service"
    ),
}
_NEW = frozenset({"admin_api", "admin_or_service_or_agent_api"})
#: the earlier checks; they count too with `[oslo_policy] enforce_new_defaults = false`
_BEFORE: Mapping[str, str] = {name: "role:admin" for name in _BASE if name not in _NEW}
#: rule → who may, where not every administrator and service
_OTHERS: Mapping[str, str] = {f"{PREFIX}usages": READER, f"{PREFIX}reshaper:reshape": SERVICE}


AGENT_WRITES = frozenset(f"{PREFIX}{name}" for name in _AGENT_WRITES)
"""Rules of what an agent may do to the providers of its hosts."""
AGENT_MAY = AGENT_WRITES | {f"{PREFIX}{name}" for name in (*_AGENT_READS, *_AGENT_NAMES)}
"""All that it may do."""


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
        default = AGENTS if name in AGENT_MAY else ADMIN_OR_SERVICE
        yield rule(name, _OTHERS.get(name, default), f"{method} {path}")


def _deprecated(name: str) -> policy.DeprecatedRule | None:
    if name not in _BEFORE:
        return None
    return policy.DeprecatedRule(
        "admin_api",
        _BEFORE[name],
        deprecated_reason="Services ask with the role service.",
        deprecated_since="Wallaby",
    )
