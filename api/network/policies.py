"""The Network API's rules, under Neutron's names and with its defaults.

Neutron's `field:networks:shared=True` is written here as a comparison of the target's field. Its
rules of attributes that can't be chosen here are left out. `get_quota` alone is wider than
Neutron's (a manager's): `openstack quota show` needs it, and Nova's limits are a reader's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from oslo_policy import policy

from web.policy import rule

_ADMIN = "rule:admin_only"
_SERVICE = "rule:service_api"
_READER = "(role:reader and project_id:%(project_id)s)"
_NETWORK_READER = "(role:reader and rule:network_owner)"
_ADMIN_OR_READER = f"{_ADMIN} or {_READER}"
_ADMIN_OR_SERVICE = f"{_ADMIN} or {_SERVICE}"
_MEMBER = "(role:member and project_id:%(project_id)s)"
_ANY_MEMBER = f"{_ADMIN_OR_SERVICE} or {_MEMBER}"
_OWNER = f"{_ADMIN} or {_MEMBER}"
_NETWORK_OWNER = f"{_ADMIN} or (role:member and rule:network_owner)"
_ANY_NETWORK_OWNER = f"{_ADMIN_OR_SERVICE} or (role:member and rule:network_owner)"
_SUBNETS_OWNER = f"{_NETWORK_OWNER} or {_MEMBER}"
#: those that the compute API's old `/os-security-groups` asks, too, and what they refer to
PROXIED = frozenset(
    {"admin_only", "service_api", "create_security_group", "update_security_group"}
    | {"delete_security_group", "create_security_group_rule", "delete_security_group_rule"}
)
#: what only administrators choose of a network
ADMINS_OWN = ("shared", "router:external", "is_default")
PROVIDER = ("network_type", "physical_network", "segmentation_id")
_GROUPS, _RULES = "/v2.0/security-groups", "/v2.0/security-group-rules"
_NETWORK_MEMBER = "(role:member and rule:network_owner)"
_PORTS, _PORT = "/v2.0/ports", "/v2.0/ports/{id}"


def _path(noun: str) -> str:
    return f"/v2.0/{noun.replace('_', '-')}s"


def _get(noun: str, check: str, description: str) -> policy.DocumentedRuleDefault:
    path = _path(noun)
    return rule(f"get_{noun}", check, description, ("GET", path), ("GET", f"{path}/{{id}}"))


def _attribute(noun: str, name: str, check: str) -> policy.DocumentedRuleDefault:
    path = f"/v2.0/{noun}s"
    return rule(
        f"get_{noun}:{name}",
        check,
        f"See the attribute {name} of a {noun}.",
        ("GET", path),
        ("GET", f"{path}/{{id}}"),
    )


def _writing(noun: str, create: str, change: str) -> Iterator[policy.DocumentedRuleDefault]:
    path = f"/v2.0/{noun}s"
    yield rule(f"create_{noun}", create, f"Make a {noun}.", ("POST", path))
    yield rule(f"update_{noun}", change, f"Change a {noun}.", ("PUT", f"{path}/{{id}}"))
    yield rule(f"delete_{noun}", change, f"Delete a {noun}.", ("DELETE", f"{path}/{{id}}"))


def _choosing(verb: str, name: str) -> policy.DocumentedRuleDefault:
    path = ("POST", "/v2.0/networks") if verb == "create" else ("PUT", "/v2.0/networks/{id}")
    return rule(f"{verb}_network:{name}", _ADMIN, f"Choose a network's {name}.", path)


def _shares() -> Iterator[policy.DocumentedRuleDefault]:
    path = "/v2.0/rbac-policies"
    one = f"{path}/{{id}}"
    yield rule(
        "get_rbac_policy", _ADMIN_OR_READER, "See an RBAC policy.", ("GET", path), ("GET", one)
    )
    yield rule("create_rbac_policy", _OWNER, "Share a network.", ("POST", path))
    yield rule("update_rbac_policy", _OWNER, "Change an RBAC policy.", ("PUT", one))
    yield rule("delete_rbac_policy", _OWNER, "Share a network no longer.", ("DELETE", one))
    for verb, operation in (("create", ("POST", path)), ("update", ("PUT", one))):
        yield rule(
            f"{verb}_rbac_policy:target_tenant",
            "rule:restrict_wildcard",
            "Choose with whom a network is shared.",
            operation,
        )


def _tags(noun: str, check: str) -> Iterator[policy.DocumentedRuleDefault]:
    path = f"{_path(noun)}/{{id}}/tags"
    for verb, method in (("update", "PUT"), ("delete", "DELETE")):
        yield rule(
            f"{verb}_{noun}:tags",
            check,
            f"{verb.capitalize()} the tags of a {noun}.",
            (method, path),
            (method, f"{path}/{{tag}}"),
        )


def _default_rules() -> Iterator[policy.DocumentedRuleDefault]:
    path = "/v2.0/default-security-group-rules"
    one = f"{path}/{{id}}"
    noun, what = "default_security_group_rule", "a rule that new security groups begin with"
    yield rule(f"get_{noun}", "role:reader", f"See {what}.", ("GET", path), ("GET", one))
    yield rule(f"create_{noun}", _ADMIN, f"Add {what}.", ("POST", path))
    yield rule(f"delete_{noun}", _ADMIN, f"Remove {what}.", ("DELETE", one))


def _address_groups() -> Iterator[policy.DocumentedRuleDefault]:
    path = "/v2.0/address-groups"
    one = f"{path}/{{id}}"
    check = f"{_ADMIN} or {_MEMBER}"
    yield rule("create_address_group", check, "Make an address group.", ("POST", path))
    yield rule(
        "update_address_group",
        check,
        "Change an address group, or its addresses.",
        *(("PUT", door) for door in (one, f"{one}/add_addresses", f"{one}/remove_addresses")),
    )
    yield rule("delete_address_group", check, "Delete an address group.", ("DELETE", one))


RULES: Sequence[policy.RuleDefault] = (
    policy.RuleDefault("admin_only", "rule:context_is_admin", "An administrator."),
    policy.RuleDefault("service_api", "role:service", "Another service."),
    policy.RuleDefault("shared", "True:%(shared)s", "A network that all projects share."),
    policy.RuleDefault("external", "True:%(router:external)s", "A network outside the cloud."),
    policy.RuleDefault(
        "external_network", "True:%(router:external)s", "A subnet outside the cloud."
    ),
    policy.RuleDefault(
        "network_owner", "project_id:%(network:project_id)s", "The network's project."
    ),
    _get(
        "network",
        f"{_ADMIN_OR_READER} or {_SERVICE} or rule:shared or rule:external",
        "See a network.",
    ),
    _attribute("network", "provider:network_type", _ADMIN),
    _attribute("network", "provider:physical_network", _ADMIN),
    _attribute("network", "provider:segmentation_id", _ADMIN),
    _get(
        "subnet",
        f"{_READER} or rule:shared or rule:external_network or {_ADMIN} or {_NETWORK_READER} "
        f"or {_SERVICE}",
        "See a subnet.",
    ),
    _get("port", f"{_ADMIN_OR_SERVICE} or {_NETWORK_READER} or {_READER}", "See a port."),
    _attribute("port", "binding:vif_type", _ADMIN_OR_SERVICE),
    _attribute("port", "binding:vif_details", _ADMIN_OR_SERVICE),
    _attribute("port", "binding:host_id", _ADMIN_OR_SERVICE),
    _attribute("port", "binding:profile", _ADMIN_OR_SERVICE),
    *_tags("network", _OWNER),
    *_tags("subnet", _SUBNETS_OWNER),
    *_tags("port", _ANY_MEMBER),
    *_writing("network", _OWNER, _OWNER),
    *(_choosing("create", name) for name in ADMINS_OWN),
    *(_choosing("create", f"provider:{name}") for name in PROVIDER),
    *(_choosing("update", name) for name in ADMINS_OWN),
    policy.RuleDefault(
        "restrict_wildcard",
        f"{_ADMIN} or not '*':%(target_tenant)s",
        "Sharing with all projects is an administrator's.",
    ),
    *_shares(),
    *_writing("subnet", _NETWORK_OWNER, _SUBNETS_OWNER),
    rule("create_port", _ANY_MEMBER, "Make a port.", ("POST", _PORTS)),
    rule(
        "create_port:mac_address",
        _ANY_NETWORK_OWNER,
        "Choose a port's MAC address.",
        ("POST", _PORTS),
    ),
    rule(
        "create_port:fixed_ips:ip_address",
        _ANY_NETWORK_OWNER,
        "Choose a port's address outside of the subnet's pool too.",
        ("POST", _PORTS),
        ("PUT", _PORT),
    ),
    rule("update_port", _ANY_MEMBER, "Change a port.", ("PUT", _PORT)),
    rule(
        "update_port:mac_address",
        _ADMIN_OR_SERVICE,
        "Change a port's MAC address.",
        ("PUT", _PORT),
    ),
    rule(
        "create_port:port_security_enabled",
        f"{_ADMIN_OR_SERVICE} or {_NETWORK_MEMBER}",
        "Choose whether a port is filtered, where ports are.",
        ("POST", _PORTS),
    ),
    rule(
        "update_port:port_security_enabled",
        f"{_ADMIN_OR_SERVICE} or {_NETWORK_MEMBER}",
        "Change whether a port is filtered, where ports are.",
        ("PUT", _PORT),
    ),
    rule(
        "create_port:allowed_address_pairs",
        f"{_ADMIN_OR_SERVICE} or {_NETWORK_MEMBER}",
        "Choose more addresses that a port may use.",
        ("POST", _PORTS),
    ),
    rule(
        "update_port:allowed_address_pairs",
        f"{_ADMIN_OR_SERVICE} or {_NETWORK_MEMBER}",
        "Change the other addresses that a port may use.",
        ("PUT", _PORT),
    ),
    rule(
        "create_port:binding:host_id",
        _ADMIN_OR_SERVICE,
        "Choose the host of the server that a port is for.",
        ("POST", _PORTS),
    ),
    rule(
        "update_port:binding:host_id",
        _ADMIN_OR_SERVICE,
        "Change the host of the server that a port is for.",
        ("PUT", _PORT),
    ),
    rule(
        "delete_port",
        f"{_ANY_MEMBER} or {_NETWORK_MEMBER}",
        "Delete a port.",
        ("DELETE", _PORT),
    ),
    rule(
        "create_default_security_group",
        f"{_ADMIN_OR_SERVICE} or {_READER}",
        "Have the default group of a project made, by looking at its groups.",
        ("GET", _GROUPS),
        ("GET", _RULES),
    ),
    policy.RuleDefault(
        "shared_security_group", "True:%(shared)s", "A security group that others share."
    ),
    policy.RuleDefault(
        "shared_address_group", "True:%(shared)s", "An address group that others share."
    ),
    _get(
        "security_group",
        f"{_ADMIN_OR_READER} or rule:shared_security_group",
        "See a security group.",
    ),
    rule(
        "create_security_group",
        f"{_ADMIN} or {_MEMBER}",
        "Make a security group.",
        ("POST", _GROUPS),
    ),
    rule(
        "update_security_group",
        f"{_ADMIN} or {_MEMBER}",
        "Change a security group.",
        ("PUT", f"{_GROUPS}/{{id}}"),
    ),
    rule(
        "delete_security_group",
        f"{_ADMIN} or {_MEMBER}",
        "Delete a security group.",
        ("DELETE", f"{_GROUPS}/{{id}}"),
    ),
    *_tags("security_group", f"{_ADMIN} or {_MEMBER}"),
    _get(
        "address_group",
        f"{_ADMIN_OR_READER} or rule:shared_address_group",
        "See an address group.",
    ),
    *_address_groups(),
    *_default_rules(),
    _get("security_group_rule", _ADMIN_OR_READER, "See a rule of a security group."),
    rule(
        "create_security_group_rule",
        f"{_ADMIN} or {_MEMBER}",
        "Add a rule to a security group.",
        ("POST", _RULES),
    ),
    rule(
        "delete_security_group_rule",
        f"{_ADMIN} or {_MEMBER}",
        "Remove a rule from a security group.",
        ("DELETE", f"{_RULES}/{{id}}"),
    ),
    rule(
        "get_auto_allocated_topology",
        _ADMIN_OR_READER,
        "See the network that a project gets without naming one; it is made if need be.",
        ("GET", "/v2.0/auto-allocated-topology/{project_id}"),
    ),
    rule(
        "delete_auto_allocated_topology",
        _OWNER,
        "Delete the network that was made for a project whose users name none.",
        ("DELETE", "/v2.0/auto-allocated-topology/{project_id}"),
    ),
    rule(
        "get_network_ip_availability",
        _ADMIN,
        "See how many addresses of networks are in use.",
        ("GET", "/v2.0/network-ip-availabilities"),
        ("GET", "/v2.0/network-ip-availabilities/{network_id}"),
    ),
    rule("update_quota", _ADMIN, "Set limits of a project.", ("PUT", "/v2.0/quotas/{project_id}")),
    rule(
        "delete_quota",
        _ADMIN,
        "Reset the limits of a project to the default ones.",
        ("DELETE", "/v2.0/quotas/{project_id}"),
    ),
    rule(
        "get_quota",
        _ADMIN_OR_READER,
        "See the limits of a project.",
        ("GET", "/v2.0/quotas"),
        ("GET", "/v2.0/quotas/{project_id}"),
        ("GET", "/v2.0/quotas/{project_id}/default"),
        ("GET", "/v2.0/quotas/{project_id}/details"),
    ),
)
