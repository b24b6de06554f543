"""Objects that firewall rules refer to: aliases, IP sets, security groups."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from simulator.api.firewall import files
from simulator.errors import PveError, bad_parameters
from simulator.request.call import Call
from simulator.state.firewall_config import Firewall, Named


def _shown(found: Firewall, one: Named, key: str = "name") -> dict[str, Any]:
    shown = {key: one.name, "digest": found.digest()}
    shown |= {"comment": one.comment} if one.comment else {}
    return shown | ({"cidr": one.cidr} if one.cidr else {})


def aliases(call: Call) -> list[dict[str, Any]]:
    """`GET …/aliases`."""
    found = files.read(call)
    return [_shown(found, one) for one in found.aliases.values()]


def _alias(call: Call) -> Named:
    found = files.read(call).aliases.get(call.get("name"))
    if found is None:
        raise bad_parameters(name="no such alias")
    return found


def alias(call: Call) -> dict[str, Any]:
    """`GET …/aliases/{name}`."""
    return _shown(files.read(call), _alias(call))


def add_alias(call: Call) -> None:
    """`POST …/aliases`."""
    kept, name = files.write(call).aliases, call.get("name")
    if name in kept:
        raise bad_parameters(name=f"alias '{name}' already exists")
    kept[name] = Named(name, call.get("comment"), call.get("cidr"))


def change_alias(call: Call) -> None:
    """`PUT …/aliases/{name}`."""
    old, kept = _alias(call), files.write(call).aliases
    name = call.get("rename", old.name)
    if name != old.name and name in kept:
        raise bad_parameters(name=f"alias '{name}' already exists")
    del kept[old.name]
    kept[name] = Named(name, call.get("comment", old.comment), call.get("cidr"))


def delete_alias(call: Call) -> None:
    """`DELETE …/aliases/{name}`: succeeds also if there is none."""
    files.write(call).aliases.pop(call.get("name"), None)


def ipsets(call: Call) -> list[dict[str, Any]]:
    """`GET …/ipset`."""
    found = files.read(call)
    return [_shown(found, one) for one in found.ipsets.values()]


def _ipset(found: Firewall, name: str) -> Named:
    if name not in found.ipsets:
        raise PveError(f"IPSet '{name}' does not exist")
    return found.ipsets[name]


def _add(kept: dict[str, Named], call: Call, key: str, what: str) -> None:
    """Create a set or group, or rename one and set its comment."""
    name, old = call.get(key), kept.get(call.get("rename"))
    if name in kept and name != call.get("rename"):
        raise bad_parameters(**{key: f"{what} '{name}' already exists"})
    if "rename" not in call.params:
        kept[name] = Named(name, call.get("comment"))
        return
    if old is None:
        raise bad_parameters(**{key: f"{what} '{call.get('rename')}' does not exist"})
    del kept[old.name]
    old.name, old.comment = name, call.get("comment", old.comment)
    kept[name] = old


def add_ipset(call: Call) -> None:
    """`POST …/ipset`."""
    _add(files.write(call).ipsets, call, "name", "IPSet")


def delete_ipset(call: Call) -> None:
    """`DELETE …/ipset/{name}`: with `force` also a set that isn't empty."""
    found = files.write(call)
    one = found.ipsets.get(call.get("name"))
    if one is not None and one.entries and not call.flag("force"):
        raise PveError(f"IPSet '{one.name}' is not empty")
    found.ipsets.pop(call.get("name"), None)


def _entry(found: Firewall, cidr: str, options: Mapping[str, str]) -> dict[str, Any]:
    shown: dict[str, Any] = {"cidr": cidr, "digest": found.digest(), **options}
    return shown | ({"nomatch": 1} if options.get("nomatch") == "1" else {})


def _options(call: Call) -> dict[str, str]:
    return {name: call.get(name) for name in ("comment", "nomatch") if name in call.params}


def entries(call: Call) -> list[dict[str, Any]]:
    """`GET …/ipset/{name}`."""
    found = files.read(call)
    kept = _ipset(found, call.get("name")).entries
    return [_entry(found, cidr, options) for cidr, options in kept.items()]


def add_entry(call: Call) -> None:
    """`POST …/ipset/{name}`."""
    kept, cidr = _ipset(files.write(call), call.get("name")).entries, call.get("cidr")
    if cidr in kept:
        raise bad_parameters(cidr=f"address '{cidr}' already exists")
    kept[cidr] = _options(call)


def _known(call: Call, found: Firewall) -> dict[str, str]:
    kept = _ipset(found, call.get("name")).entries
    if call.get("cidr") not in kept:
        raise bad_parameters(cidr="no such IP/Network")
    return kept[call.get("cidr")]


def entry(call: Call) -> dict[str, Any]:
    """`GET …/ipset/{name}/{cidr}`."""
    found = files.read(call)
    return _entry(found, call.get("cidr"), _known(call, found))


def change_entry(call: Call) -> None:
    """`PUT …/ipset/{name}/{cidr}`."""
    _known(call, files.write(call)).update(_options(call))


def delete_entry(call: Call) -> None:
    """`DELETE …/ipset/{name}/{cidr}`: succeeds also if there is none."""
    _ipset(files.write(call), call.get("name")).entries.pop(call.get("cidr"), None)


def groups(call: Call) -> list[dict[str, Any]]:
    """`GET /cluster/firewall/groups`."""
    found = files.read(call)
    return [_shown(found, one, "group") for one in found.groups.values()]


def add_group(call: Call) -> None:
    """`POST /cluster/firewall/groups`."""
    _add(files.write(call).groups, call, "group", "Security group")


def delete_group(call: Call) -> None:
    """`DELETE /cluster/firewall/groups/{group}`: an empty one, whether or not rules name it."""
    found = files.write(call)
    group = found.groups.get(call.get("group"))
    if group is not None and group.rules:
        raise PveError(f"Security group '{group.name}' is not empty")
    found.groups.pop(call.get("group"), None)
