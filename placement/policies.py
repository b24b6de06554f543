"""Who may do what: the Placement API's rules, their names and defaults.

Operators override them in the policy file, as with OpenStack Placement.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from oslo_config import cfg
from oslo_policy import policy

from web.policy import Enforcer, rule

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
_P = "/resource_providers/{uuid}"
#: rule (after PREFIX) → default, method and path
RULES: Mapping[str, tuple[str, str, str]] = {
    "resource_providers:list": (ADMIN_OR_SERVICE, "GET", "/resource_providers"),
    "resource_providers:create": (ADMIN_OR_SERVICE, "POST", "/resource_providers"),
    "resource_providers:create_many": (
        ADMIN_OR_SERVICE,
        "POST",
        "/micronova/resource_providers",
    ),
    "resource_providers:show": (ADMIN_OR_SERVICE, "GET", _P),
    "resource_providers:update": (ADMIN_OR_SERVICE, "PUT", _P),
    "resource_providers:delete": (ADMIN_OR_SERVICE, "DELETE", _P),
    "resource_classes:list": (ADMIN_OR_SERVICE, "GET", "/resource_classes"),
    "resource_classes:create": (ADMIN_OR_SERVICE, "POST", "/resource_classes"),
    "resource_classes:show": (ADMIN_OR_SERVICE, "GET", "/resource_classes/{name}"),
    "resource_classes:update": (ADMIN_OR_SERVICE, "PUT", "/resource_classes/{name}"),
    "resource_classes:delete": (ADMIN_OR_SERVICE, "DELETE", "/resource_classes/{name}"),
    "resource_providers:inventories:list": (ADMIN_OR_SERVICE, "GET", f"{_P}/inventories"),
    "resource_providers:inventories:create": (ADMIN_OR_SERVICE, "POST", f"{_P}/inventories"),
    "resource_providers:inventories:show": (
        ADMIN_OR_SERVICE,
        "GET",
        f"{_P}/inventories/{{resource_class}}",
    ),
    "resource_providers:inventories:update": (ADMIN_OR_SERVICE, "PUT", f"{_P}/inventories"),
    "resource_providers:inventories:delete": (ADMIN_OR_SERVICE, "DELETE", f"{_P}/inventories"),
    "resource_providers:aggregates:list": (ADMIN_OR_SERVICE, "GET", f"{_P}/aggregates"),
    "resource_providers:aggregates:update": (ADMIN_OR_SERVICE, "PUT", f"{_P}/aggregates"),
    "resource_providers:usages": (ADMIN_OR_SERVICE, "GET", f"{_P}/usages"),
    "usages": (READER, "GET", "/usages"),
    "traits:list": (ADMIN_OR_SERVICE, "GET", "/traits"),
    "traits:show": (ADMIN_OR_SERVICE, "GET", "/traits/{name}"),
    "traits:update": (ADMIN_OR_SERVICE, "PUT", "/traits/{name}"),
    "traits:delete": (ADMIN_OR_SERVICE, "DELETE", "/traits/{name}"),
    "resource_providers:traits:list": (ADMIN_OR_SERVICE, "GET", f"{_P}/traits"),
    "resource_providers:traits:update": (ADMIN_OR_SERVICE, "PUT", f"{_P}/traits"),
    "resource_providers:traits:delete": (ADMIN_OR_SERVICE, "DELETE", f"{_P}/traits"),
    "allocations:manage": (ADMIN_OR_SERVICE, "POST", "/allocations"),
    "allocations:list": (ADMIN_OR_SERVICE, "GET", "/allocations/{consumer_uuid}"),
    "allocations:list_all": (ADMIN_OR_SERVICE, "GET", "/micronova/allocations"),
    "allocations:delete_many": (ADMIN_OR_SERVICE, "POST", "/micronova/allocations"),
    "allocations:update": (ADMIN_OR_SERVICE, "PUT", "/allocations/{consumer_uuid}"),
    "allocations:delete": (ADMIN_OR_SERVICE, "DELETE", "/allocations/{consumer_uuid}"),
    "resource_providers:allocations:list": (ADMIN_OR_SERVICE, "GET", f"{_P}/allocations"),
    "allocation_candidates:list": (ADMIN_OR_SERVICE, "GET", "/allocation_candidates"),
    "reshaper:reshape": (SERVICE, "POST", "/reshaper"),
}


def list_rules() -> Iterator[policy.RuleDefault]:
    """Yield the rules with their defaults, for the enforcer and the sample policy file."""
    for name, check in _BASE.items():
        yield policy.RuleDefault(
            name,
            check,
            description="A rule that the others name.",
            deprecated_rule=_deprecated(name),
        )
    for name, (check, method, path) in RULES.items():
        yield rule(f"{PREFIX}{name}", check, f"{method} {path}", (method, path))


def _deprecated(name: str) -> policy.DeprecatedRule | None:
    if name not in _BEFORE:
        return None
    return policy.DeprecatedRule(
        "admin_api",
        _BEFORE[name],
        deprecated_reason="Services ask with the role service.",
        deprecated_since="Wallaby",
    )


def enforcer(conf: cfg.ConfigOpts) -> Enforcer:
    """Return what checks these rules."""
    return Enforcer(conf, list_rules(), base=(), refusal=REFUSAL)
