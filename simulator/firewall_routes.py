"""Routes of the firewall: the same for the cluster, nodes and VMs."""

from __future__ import annotations

from simulator import firewall_api, firewall_rules, firewall_sets
from simulator.call import Calls

_CLUSTER = "/cluster/firewall"
_NODE = "/nodes/{node}/firewall"
_VM = "/nodes/{node}/qemu/{vmid}/firewall"
_GROUPS = f"{_CLUSTER}/groups"


def _rules(path: str) -> Calls:
    """Return the routes of a list of rules."""
    return {
        f"GET {path}": firewall_rules.rules,
        f"POST {path}": firewall_rules.add,
        f"GET {path}/{{pos}}": firewall_rules.rule,
        f"PUT {path}/{{pos}}": firewall_rules.change,
        f"DELETE {path}/{{pos}}": firewall_rules.delete,
    }


def _sets(base: str) -> Calls:
    """Return the routes of aliases and IP sets."""
    alias, ipset = f"{base}/aliases", f"{base}/ipset"
    return {
        f"GET {alias}": firewall_sets.aliases,
        f"POST {alias}": firewall_sets.add_alias,
        f"GET {alias}/{{name}}": firewall_sets.alias,
        f"PUT {alias}/{{name}}": firewall_sets.change_alias,
        f"DELETE {alias}/{{name}}": firewall_sets.delete_alias,
        f"GET {ipset}": firewall_sets.ipsets,
        f"POST {ipset}": firewall_sets.add_ipset,
        f"GET {ipset}/{{name}}": firewall_sets.entries,
        f"POST {ipset}/{{name}}": firewall_sets.add_entry,
        f"DELETE {ipset}/{{name}}": firewall_sets.delete_ipset,
        f"GET {ipset}/{{name}}/{{cidr}}": firewall_sets.entry,
        f"PUT {ipset}/{{name}}/{{cidr}}": firewall_sets.change_entry,
        f"DELETE {ipset}/{{name}}/{{cidr}}": firewall_sets.delete_entry,
        f"GET {base}/refs": firewall_api.references,
    }


def _options(base: str) -> Calls:
    """Return the routes of the index and the options."""
    return {
        f"GET {base}": firewall_api.index,
        f"GET {base}/options": firewall_api.options,
        f"PUT {base}/options": firewall_api.set_options,
    }


CALLS: Calls = {
    **_options(_CLUSTER),
    **_rules(f"{_CLUSTER}/rules"),
    **_sets(_CLUSTER),
    f"GET {_CLUSTER}/macros": firewall_api.macros,
    f"GET {_GROUPS}": firewall_sets.groups,
    f"POST {_GROUPS}": firewall_sets.add_group,
    **_rules(f"{_GROUPS}/{{group}}"),
    f"DELETE {_GROUPS}/{{group}}": firewall_sets.delete_group,
    **_options(_NODE),
    **_rules(f"{_NODE}/rules"),
    **_options(_VM),
    **_rules(f"{_VM}/rules"),
    **_sets(_VM),
}
