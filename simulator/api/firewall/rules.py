"""The firewall's rules: of the cluster, a node, a VM, or a security group."""

from __future__ import annotations

import ipaddress
import re
from typing import Any

from simulator.api.firewall import files
from simulator.api.firewall.macros import MACROS
from simulator.errors import PveError, parameter_errors
from simulator.request.call import Call
from simulator.state.firewall_config import Rule

_ACTIONS = ("ACCEPT", "DROP", "REJECT")
_PATH = frozenset({"node", "vmid", "pos", "group", "moveto", "delete", "digest"})
_PORTS = ("dport", "sport")
_FAMILIES = {"icmp": 4, "icmpv6": 6, "ipv6-icmp": 6}


def _list(call: Call, *, change: bool = False) -> list[Rule]:
    found = files.write(call) if change else files.read(call)
    if "group" not in call.params:
        return found.rules
    group = found.groups.get(call.get("group"))
    if group is None:
        raise PveError(f"security group '{call.get('group')}' does not exist")
    return group.rules


def _at(call: Call, rules: list[Rule]) -> int:
    position = int(call.get("pos"))
    if position >= len(rules):
        raise PveError(f"no rule at position {position}")
    return position


def _shown(call: Call, rule: Rule) -> dict[str, Any]:
    shown: dict[str, Any] = {**rule, "enable": int(rule["enable"])}
    family = _family(rule)
    return shown | ({"ipversion": family} if family else {}) | {"digest": _digest(call)}


def _digest(call: Call) -> str:
    return files.read(call).digest()


def _family(rule: Rule) -> int | None:
    for name in ("source", "dest"):
        first = rule.get(name, "").split(",")[0].split("-")[0]
        try:
            return ipaddress.ip_network(first, strict=False).version
        except ValueError:
            continue
    return _FAMILIES.get(rule.get("proto", ""))


def rules(call: Call) -> list[dict[str, Any]]:
    """`GET …/rules`: in order."""
    return [_shown(call, one) | {"pos": number} for number, one in enumerate(_list(call))]


def rule(call: Call) -> dict[str, Any]:
    """`GET …/rules/{pos}`."""
    found = _list(call)
    return _shown(call, found[_at(call, found)]) | {"pos": call.get("pos")}


def add(call: Call) -> None:
    """`POST …/rules`: insert at the top. Accepts a group that doesn't exist."""
    made = {"enable": "0", **_given(call)}
    _verify(call, made)
    _list(call, change=True).insert(0, made)


def change(call: Call) -> None:
    """`PUT …/rules/{pos}`: change a rule, or move it before the one at `moveto`."""
    found = _list(call, change=True)
    position = _at(call, found)
    if "moveto" in call.params:
        target = int(call.get("moveto"))
        moved = found.pop(position)
        found.insert(target - 1 if target > position else target, moved)
        return
    changed = found[position] | _given(call)
    for name in call.get("delete").split(","):
        changed.pop(name, None)
    changed.setdefault("enable", "0")
    _verify(call, changed)
    found[position] = changed


def delete(call: Call) -> None:
    """`DELETE …/rules/{pos}`."""
    found = _list(call, change=True)
    del found[_at(call, found)]


def _given(call: Call) -> Rule:
    given = {name: text for name, text in call.params.items() if name not in _PATH}
    if "enable" in given:
        given["enable"] = str(int(given["enable"] != "0"))
    return given


def _verify(call: Call, made: Rule) -> None:
    """Raise 400 with what is wrong with a rule."""
    errors: dict[str, str] = {}
    action = made.get("action", "")
    if made.get("type") != "group" and action not in _ACTIONS:
        errors["action"] = f"unknown action '{action}'"
    if "vmid" in call.params and not re.fullmatch(r"net[0-9]+", made.get("iface", "net0")):
        errors["iface"] = "value does not match the regex pattern 'net\\d+'"
    if "macro" in made and made["macro"] not in MACROS:
        errors["macro"] = f"unknown macro '{made['macro']}'"
    for name in _PORTS:
        if name in made and "proto" not in made:
            errors["proto"] = f"missing property - '{name}' requires this property"
    if errors:
        raise parameter_errors(errors)
