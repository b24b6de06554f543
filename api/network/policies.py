"""The Network API's rules, under Neutron's names and with its defaults.

Neutron's `field:networks:shared=True` is written here as a comparison of the target's field. Its
rules of attributes that can't be chosen here are left out. `get_quota` alone is wider than
Neutron's (a manager's): `openstack quota show` needs it, and Nova's limits are a reader's.
"""

from __future__ import annotations

from oslo_policy import policy

from web.policy import ADMIN, rules

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
_NETWORK_MEMBER = "(role:member and rule:network_owner)"

_BINDING = ("vif_type", "vif_details", "host_id", "profile")


def _seeing(noun: str, *attributes: str) -> dict[str, str]:
    return {f"get_{noun}:{one}": f"See the attribute {one} of a {noun}." for one in attributes}


def _choosing(verb: str, *attributes: str) -> dict[str, str]:
    return {f"{verb}_network:{one}": f"Choose a network's {one}." for one in attributes}


def _tags(*nouns: str) -> dict[str, str]:
    return {
        f"{verb}_{noun}:tags": f"{verb.capitalize()} the tags of a {noun}."
        for noun in nouns
        for verb in ("update", "delete")
    }


#: what the rules of operations refer to
_BASE = (
    policy.RuleDefault("admin_only", ADMIN, "An administrator."),
    policy.RuleDefault("service_api", "role:service", "Another service."),
    policy.RuleDefault("shared", "True:%(shared)s", "A network that all projects share."),
    policy.RuleDefault("external", "True:%(router:external)s", "A network outside the cloud."),
    policy.RuleDefault(
        "external_network", "True:%(router:external)s", "A subnet outside the cloud."
    ),
    policy.RuleDefault(
        "network_owner", "project_id:%(network:project_id)s", "The network's project."
    ),
    policy.RuleDefault(
        "restrict_wildcard",
        f"{_ADMIN} or not '*':%(target_tenant)s",
        "Sharing with all projects is an administrator's.",
    ),
    policy.RuleDefault(
        "shared_security_group", "True:%(shared)s", "A security group that others share."
    ),
    policy.RuleDefault(
        "shared_address_group", "True:%(shared)s", "An address group that others share."
    ),
)

#: who may → {rule: what}; the resources name the rules
_ROWS = {
    f"{_ADMIN_OR_READER} or {_SERVICE} or rule:shared or rule:external": {
        "get_network": "See a network.",
    },
    _ADMIN: {
        **_seeing("network", *(f"provider:{name}" for name in PROVIDER)),
        **_choosing("create", *ADMINS_OWN, *(f"provider:{name}" for name in PROVIDER)),
        **_choosing("update", *ADMINS_OWN),
        "create_default_security_group_rule": "Add a rule that new security groups begin with.",
        "delete_default_security_group_rule": "Remove a rule that new security groups begin with.",
        "get_network_ip_availability": "See how many addresses of networks are in use.",
        "update_quota": "Set limits of a project.",
        "delete_quota": "Reset the limits of a project to the default ones.",
    },
    f"{_READER} or rule:shared or rule:external_network or {_ADMIN} or {_NETWORK_READER} "
    f"or {_SERVICE}": {
        "get_subnet": "See a subnet.",
    },
    f"{_ADMIN_OR_SERVICE} or {_NETWORK_READER} or {_READER}": {
        "get_port": "See a port.",
    },
    _ADMIN_OR_SERVICE: {
        **_seeing("port", *(f"binding:{name}" for name in _BINDING)),
        "update_port:mac_address": "Change a port's MAC address.",
        "create_port:binding:host_id": "Choose the host of the server that a port is for.",
        "update_port:binding:host_id": "Change the host of the server that a port is for.",
    },
    _OWNER: {
        "create_network": "Make a network.",
        "update_network": "Change a network.",
        "delete_network": "Delete a network.",
        "create_rbac_policy": "Share a network.",
        "update_rbac_policy": "Change an RBAC policy.",
        "delete_rbac_policy": "Share a network no longer.",
        "create_security_group": "Make a security group.",
        "update_security_group": "Change a security group.",
        "delete_security_group": "Delete a security group.",
        "create_address_group": "Make an address group.",
        "update_address_group": "Change an address group, or its addresses.",
        "delete_address_group": "Delete an address group.",
        "create_security_group_rule": "Add a rule to a security group.",
        "delete_security_group_rule": "Remove a rule from a security group.",
        "delete_auto_allocated_topology": (
            "Delete the network that was made for a project whose users name none."
        ),
        **_tags("network", "security_group"),
    },
    _SUBNETS_OWNER: {
        "update_subnet": "Change a subnet.",
        "delete_subnet": "Delete a subnet.",
        **_tags("subnet"),
    },
    _ANY_MEMBER: {
        "create_port": "Make a port.",
        "update_port": "Change a port.",
        **_tags("port"),
    },
    _ADMIN_OR_READER: {
        "get_rbac_policy": "See an RBAC policy.",
        "get_security_group_rule": "See a rule of a security group.",
        "get_auto_allocated_topology": (
            "See the network that a project gets without naming one; it is made if need be."
        ),
        "get_quota": "See the limits of a project.",
    },
    "rule:restrict_wildcard": {
        "create_rbac_policy:target_tenant": "Choose with whom a network is shared.",
        "update_rbac_policy:target_tenant": "Choose with whom a network is shared.",
    },
    _NETWORK_OWNER: {
        "create_subnet": "Make a subnet.",
    },
    _ANY_NETWORK_OWNER: {
        "create_port:mac_address": "Choose a port's MAC address.",
        "create_port:fixed_ips:ip_address": (
            "Choose a port's address outside of the subnet's pool too."
        ),
        "create_port:port_security_enabled": "Choose whether a port is filtered, where ports are.",
        "update_port:port_security_enabled": "Change whether a port is filtered, where ports are.",
        "create_port:allowed_address_pairs": "Choose more addresses that a port may use.",
        "update_port:allowed_address_pairs": "Change the other addresses that a port may use.",
    },
    f"{_ANY_MEMBER} or {_NETWORK_MEMBER}": {
        "delete_port": "Delete a port.",
    },
    f"{_ADMIN_OR_SERVICE} or {_READER}": {
        "create_default_security_group": (
            "Have the default group of a project made, by looking at its groups."
        ),
    },
    f"{_ADMIN_OR_READER} or rule:shared_security_group": {
        "get_security_group": "See a security group.",
    },
    f"{_ADMIN_OR_READER} or rule:shared_address_group": {
        "get_address_group": "See an address group.",
    },
    "role:reader": {
        "get_default_security_group_rule": "See a rule that new security groups begin with.",
    },
}

RULES = (*_BASE, *rules(_ROWS))
