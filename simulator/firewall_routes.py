"""Routes of the firewall: the same for the cluster, nodes and VMs."""

from __future__ import annotations

from simulator import checks, firewall_api, firewall_rules, firewall_sets
from simulator.checks import integer, one_of
from simulator.params import Param
from simulator.route_params import BOOL, NUMBER, TEXT
from simulator.rows import AUTHENTICATED, Row

_VM = "/nodes/{node}/qemu/{vmid}"
_DIGEST = {"digest": Param(checks.text(64))}
_DELETE = {**_DIGEST, "delete": TEXT}
_NAME = Param(checks.firewall_name(64, 2), True)
_GROUP = Param(checks.firewall_name(18, 2), True)
_POLICY = Param(one_of("ACCEPT", "REJECT", "DROP"))
_LEVEL = Param(
    one_of("emerg", "alert", "crit", "err", "warning", "notice", "info", "debug", "nolog")
)
_TYPES = one_of("in", "out", "forward", "group")
_ACTION = checks.firewall_name(20, 2)
_RULE = {
    "action": Param(_ACTION),
    "comment": TEXT,
    "dest": Param(checks.text(512)),
    "dport": TEXT,
    "enable": NUMBER,
    "icmp-type": TEXT,
    "iface": Param(checks.text(20, 2)),
    "log": _LEVEL,
    "macro": Param(checks.text(128)),
    "proto": TEXT,
    "source": Param(checks.text(512)),
    "sport": TEXT,
    "type": Param(_TYPES),
}
_ADD_RULE = {
    **_RULE,
    **_DIGEST,
    "action": Param(_ACTION, True),
    "pos": NUMBER,
    "type": Param(_TYPES, True),
}
_CHANGE_RULE = {**_RULE, **_DELETE, "moveto": NUMBER}
_CLUSTER_OPTIONS = {
    **_DELETE,
    "ebtables": BOOL,
    "enable": NUMBER,
    "log_ratelimit": TEXT,
    "policy_forward": Param(one_of("ACCEPT", "DROP")),
    "policy_in": _POLICY,
    "policy_out": _POLICY,
}
_NODE_OPTIONS = {
    **_DELETE,
    "enable": BOOL,
    "log_level_in": _LEVEL,
    "log_level_out": _LEVEL,
    "ndp": BOOL,
    "nf_conntrack_max": Param(integer(32768), kind="integer"),
    "nftables": BOOL,
    "nosmurfs": BOOL,
}
_VM_OPTIONS = {
    **_DELETE,
    "dhcp": BOOL,
    "enable": BOOL,
    "ipfilter": BOOL,
    "log_level_in": _LEVEL,
    "log_level_out": _LEVEL,
    "macfilter": BOOL,
    "ndp": BOOL,
    "policy_in": _POLICY,
    "policy_out": _POLICY,
    "radv": BOOL,
}
_ADD_SET = {**_DIGEST, "comment": TEXT}
_CIDR = Param(checks.address_or_network, True)
_ENTRY = {"comment": TEXT, "nomatch": BOOL}
_REF_TYPE = {"type": Param(one_of("alias", "ipset"))}

Permission = tuple[str, ...]
_ROOT = ("/", "Sys.Audit"), ("/", "Sys.Modify")
_NODE = ("/nodes/{node}", "Sys.Audit"), ("/nodes/{node}", "Sys.Modify")
_GUEST = ("/vms/{vmid}", "VM.Audit"), ("/vms/{vmid}", "VM.Config.Network")


def _rules(path: str, near: str, may: tuple[Permission, Permission]) -> tuple[Row, ...]:
    """Return the routes of a list of rules; `near` is the flag of those that the node answers."""
    see, change = may
    one = f"{path}/{{pos}}"
    return (
        ("GET", path, near, firewall_rules.rules, see, {}),
        ("POST", path, f"p{near}", firewall_rules.add, change, _ADD_RULE),
        ("GET", one, near, firewall_rules.rule, see, {}),
        ("PUT", one, f"p{near}", firewall_rules.change, change, _CHANGE_RULE),
        ("DELETE", one, f"p{near}", firewall_rules.delete, change, _DIGEST),
    )


def _sets(base: str, may: tuple[Permission, Permission]) -> tuple[Row, ...]:
    """Return the routes of aliases and IP sets."""
    see, change = may
    alias, ipset = f"{base}/aliases", f"{base}/ipset"
    one, entry = f"{ipset}/{{name}}", f"{ipset}/{{name}}/{{cidr}}"
    new = {"cidr": _CIDR, "comment": TEXT}
    changed = {**new, **_DIGEST, "rename": Param(checks.firewall_name(64, 2))}
    rename = Param(checks.firewall_name(64, 2))
    make = {**_ADD_SET, "name": _NAME, "rename": rename}
    return (
        ("GET", alias, "", firewall_sets.aliases, see, {}),
        ("POST", alias, "p", firewall_sets.add_alias, change, {**new, "name": _NAME}),
        ("GET", f"{alias}/{{name}}", "", firewall_sets.alias, see, {}),
        ("PUT", f"{alias}/{{name}}", "p", firewall_sets.change_alias, change, changed),
        ("DELETE", f"{alias}/{{name}}", "p", firewall_sets.delete_alias, change, _DIGEST),
        ("GET", ipset, "", firewall_sets.ipsets, see, {}),
        ("POST", ipset, "p", firewall_sets.add_ipset, change, make),
        ("GET", one, "", firewall_sets.entries, see, {}),
        ("POST", one, "p", firewall_sets.add_entry, change, {**_ENTRY, "cidr": _CIDR}),
        ("DELETE", one, "p", firewall_sets.delete_ipset, change, {"force": BOOL}),
        ("GET", entry, "p", firewall_sets.entry, see, {}),
        ("PUT", entry, "p", firewall_sets.change_entry, change, {**_ENTRY, **_DIGEST}),
        ("DELETE", entry, "p", firewall_sets.delete_entry, change, _DIGEST),
        ("GET", f"{base}/refs", "", firewall_api.references, see, _REF_TYPE),
    )


def _options(
    base: str, near: str, may: tuple[Permission, Permission], known: dict[str, Param]
) -> tuple[Row, ...]:
    """Return the routes of the index and the options."""
    see, change = may
    path = f"{base}/options"
    return (
        ("GET", base, "", firewall_api.index, AUTHENTICATED, {}),
        ("GET", path, near, firewall_api.options, see, {}),
        ("PUT", path, f"p{near}", firewall_api.set_options, change, known),
    )


_FW, _OF_NODE, _OF_VM = "/cluster/firewall", "/nodes/{node}/firewall", f"{_VM}/firewall"
_GROUPS = f"{_FW}/groups"
_SEE, _CHANGE = _ROOT

ROWS: tuple[Row, ...] = (
    *_options(_FW, "", _ROOT, _CLUSTER_OPTIONS),
    *_rules(f"{_FW}/rules", "", _ROOT),
    *_sets(_FW, _ROOT),
    ("GET", f"{_FW}/macros", "", firewall_api.macros, AUTHENTICATED, {}),
    ("GET", _GROUPS, "", firewall_sets.groups, AUTHENTICATED, {}),
    (
        "POST",
        _GROUPS,
        "p",
        firewall_sets.add_group,
        _CHANGE,
        {**_ADD_SET, "group": _GROUP, "rename": Param(checks.firewall_name(18, 2))},
    ),
    *_rules(f"{_GROUPS}/{{group}}", "", _ROOT),
    ("DELETE", f"{_GROUPS}/{{group}}", "p", firewall_sets.delete_group, _CHANGE, {}),
    *_options(_OF_NODE, "n", _NODE, _NODE_OPTIONS),
    *_rules(f"{_OF_NODE}/rules", "n", _NODE),
    *_options(_OF_VM, "n", _GUEST, _VM_OPTIONS),
    *_rules(f"{_OF_VM}/rules", "", _GUEST),
    *_sets(_OF_VM, _GUEST),
)
