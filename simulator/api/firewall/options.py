"""The firewall's options, macros, and references for rules."""

from __future__ import annotations

from typing import Any

from simulator.api.firewall import files
from simulator.api.firewall.macros import MACROS
from simulator.digits import is_digits
from simulator.request.call import Call
from simulator.state.firewall_config import Firewall

_PATH = frozenset({"node", "vmid", "delete", "digest"})
_PARTS = {
    "cluster": ("rules", "options", "macros", "groups", "aliases", "ipset", "refs"),
    "node": ("rules", "options", "log"),
    "vm": ("rules", "aliases", "ipset", "refs", "options"),
}


def index(call: Call) -> list[dict[str, str]]:
    """`GET …/firewall`."""
    return [{"name": name} for name in _PARTS[files.key_of(call).partition("/")[0]]]


def options(call: Call) -> dict[str, Any]:
    """`GET …/firewall/options`: the options that were set, without defaults."""
    found = files.read(call)
    shown: dict[str, Any] = {
        name: int(text) if is_digits(text) else text for name, text in found.options.items()
    }
    return shown | {"digest": found.digest()}


def set_options(call: Call) -> None:
    """`PUT …/firewall/options`."""
    kept = files.write(call).options
    for name in call.get("delete").split(","):
        kept.pop(name, None)
    kept.update({name: text for name, text in call.params.items() if name not in _PATH})


def macros(_call: Call) -> list[dict[str, str]]:
    """`GET /cluster/firewall/macros`."""
    return [{"macro": name, "descr": f"{name} traffic"} for name in sorted(MACROS)]


def references(call: Call) -> list[dict[str, Any]]:
    """`GET …/firewall/refs`: aliases and IP sets for rules; a VM's list has the cluster's too."""
    whole, own = call.cluster.firewalls.get("cluster"), files.read(call)
    found = _references(own, "dc" if own.key == "cluster" else "guest")
    if whole is not None and whole is not own:
        found += _references(whole, "dc")
    return [one for one in found if call.get("type") in ("", one["type"])]


def _references(found: Firewall, scope: str) -> list[dict[str, Any]]:
    kinds = (("alias", "", found.aliases), ("ipset", "+", found.ipsets))
    return [
        {"type": kind, "name": name, "ref": f"{mark}{scope}/{name}", "scope": scope}
        | ({"comment": one.comment} if one.comment else {})
        for kind, mark, kept in kinds
        for name, one in kept.items()
    ]
