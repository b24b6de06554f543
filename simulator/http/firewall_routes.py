"""Routes of the firewall: the same for the cluster, nodes and VMs."""

from __future__ import annotations

from simulator.api.firewall import options, rules, sets
from simulator.request.call import Calls

_CLUSTER = "/cluster/firewall"
_NODE = "/nodes/{node}/firewall"
_VM = "/nodes/{node}/qemu/{vmid}/firewall"
_GROUPS = f"{_CLUSTER}/groups"


def _rules(path: str) -> Calls:
    """Return the routes of a list of rules."""
    return {
        f"GET {path}": rules.rules,
        f"POST {path}": rules.add,
        f"GET {path}/{{pos}}": rules.rule,
        f"PUT {path}/{{pos}}": rules.change,
        f"DELETE {path}/{{pos}}": rules.delete,
    }


def _sets(base: str) -> Calls:
    """Return the routes of aliases and IP sets."""
    alias, ipset = f"{base}/aliases", f"{base}/ipset"
    return {
        f"GET {alias}": sets.aliases,
        f"POST {alias}": sets.add_alias,
        f"GET {alias}/{{name}}": sets.alias,
        f"PUT {alias}/{{name}}": sets.change_alias,
        f"DELETE {alias}/{{name}}": sets.delete_alias,
        f"GET {ipset}": sets.ipsets,
        f"POST {ipset}": sets.add_ipset,
        f"GET {ipset}/{{name}}": sets.entries,
        f"POST {ipset}/{{name}}": sets.add_entry,
        f"DELETE {ipset}/{{name}}": sets.delete_ipset,
        f"GET {ipset}/{{name}}/{{cidr}}": sets.entry,
        f"PUT {ipset}/{{name}}/{{cidr}}": sets.change_entry,
        f"DELETE {ipset}/{{name}}/{{cidr}}": sets.delete_entry,
        f"GET {base}/refs": options.references,
    }


def _options(base: str) -> Calls:
    """Return the routes of the index and the options."""
    return {
        f"GET {base}": options.index,
        f"GET {base}/options": options.options,
        f"PUT {base}/options": options.set_options,
    }


CALLS: Calls = {
    **_options(_CLUSTER),
    **_rules(f"{_CLUSTER}/rules"),
    **_sets(_CLUSTER),
    f"GET {_CLUSTER}/macros": options.macros,
    f"GET {_GROUPS}": sets.groups,
    f"POST {_GROUPS}": sets.add_group,
    **_rules(f"{_GROUPS}/{{group}}"),
    f"DELETE {_GROUPS}/{{group}}": sets.delete_group,
    **_options(_NODE),
    **_rules(f"{_NODE}/rules"),
    **_options(_VM),
    **_rules(f"{_VM}/rules"),
    **_sets(_VM),
}
