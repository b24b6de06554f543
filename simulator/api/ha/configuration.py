"""High availability over the API: `/cluster/ha/resources`, `/rules` and `/groups`.

Groups, which only versions before 9 have, follow the API's schema and sources.
"""

from __future__ import annotations

import hashlib
import re
from typing import Any

from simulator.digits import is_digits
from simulator.errors import PveError
from simulator.request.call import Call
from simulator.state.cluster import Cluster
from simulator.state.ha_config import HaGroup, HaRule, infeasible, nodes_of
from simulator.state.ha_resources import forget, manage

MODIFIED = "detected modified configuration - file changed by other user? Try again."
_INNER = frozenset({"sid", "type", "rule", "resources", "group", "purge", "delete", "digest"})
_NUMBERS = frozenset({"disable", "strict", "restricted", "nofailback", "failback"})
_FOREIGN = {"node-affinity": ("affinity",), "resource-affinity": ("nodes", "strict")}
_NUMBERS_OF_TRIES = frozenset({"max_restart", "max_relocate"})


def _shown(options: dict[str, str]) -> dict[str, Any]:
    numbers = _NUMBERS | _NUMBERS_OF_TRIES
    return {name: int(text) if name in numbers else text for name, text in options.items()}


def _options(call: Call) -> dict[str, str]:
    """Return the options given; a rule that isn't disabled has no `disable`."""
    given = {name: text for name, text in call.params.items() if name not in _INNER}
    if given.get("disable") == "0":
        del given["disable"]
    return given


def _digest(*parts: object) -> str:
    return hashlib.sha1(repr(parts).encode(), usedforsecurity=False).hexdigest()


# --- resources


def resources(call: Call) -> list[dict[str, Any]]:
    """`GET /cluster/ha/resources`."""
    found = call.cluster.ha.resources
    digest = _digest(*found.values())
    return [
        {"sid": one.sid, "type": one.type, "digest": digest, **_shown(one.options)}
        for one in found.values()
        if call.get("type", one.type) == one.type
    ]


def resource(call: Call) -> dict[str, Any]:
    """`GET /cluster/ha/resources/{sid}`."""
    found = call.cluster.ha.resources
    one = found.get(_sid(call.cluster, call.get("sid")))
    if one is None:
        raise PveError(f"no such resource '{call.get('sid')}'")
    shown = _shown(one.options)
    return {"sid": one.sid, "type": one.type, "digest": _digest(*found.values()), **shown}


def add_resource(call: Call) -> None:
    """`POST /cluster/ha/resources`."""
    cluster = call.cluster
    cluster.check_quorum()
    sid = _sid(cluster, call.get("sid"))
    _, _, name = sid.partition(":")
    if call.get("group") and cluster.version.ha_rules:
        raise PveError("invalid parameter 'group': ha groups have been migrated to rules")
    if not is_digits(name) or int(name) not in cluster.vms:
        raise PveError(f"resource '{sid}' does not exist in cluster")
    if sid in cluster.ha.resources:
        raise PveError(f"create resource failed: resource ID '{sid}' already defined")
    options = {name: text for name, text in call.params.items() if name not in {"sid", "type"}}
    manage(cluster, int(name), **options)


def change_resource(call: Call) -> None:
    """`PUT /cluster/ha/resources/{sid}`."""
    cluster = call.cluster
    found = cluster.ha.resources.get(_sid(cluster, call.get("sid")))
    if found is None:
        raise PveError(f"no such resource '{call.get('sid')}'")
    if call.get("digest") not in ("", _digest(*cluster.ha.resources.values())):
        raise PveError(MODIFIED)
    for name in call.get("delete").split(","):
        found.options.pop(name, None)
    found.options.update(_options(call))
    cluster.save("ha-resource", found.sid, found)


def delete_resource(call: Call) -> None:
    """`DELETE /cluster/ha/resources/{sid}`; rules drop it too, unless `purge` is 0."""
    sid = _sid(call.cluster, call.get("sid"))
    if sid not in call.cluster.ha.resources:
        raise PveError(f"cannot delete service '{sid}', not HA managed!")
    forget(call.cluster, sid, purge=call.get("purge", "1") == "1")


def _sid(cluster: Cluster, text: str) -> str:
    if is_digits(text):
        if int(text) not in cluster.vms:
            raise PveError(f"unable to detect SID from VMID - VM/CT {text} does not exist")
        return f"vm:{text}"
    return text


# --- rules


def rules(call: Call) -> list[dict[str, Any]]:
    """`GET /cluster/ha/rules`: in order, optionally those of a type or of a resource."""
    kind, sid = call.get("type"), call.get("resource")
    return [
        _rule(call.cluster, one)
        for one in sorted(call.cluster.ha.rules.values(), key=lambda one: one.order)
        if kind in ("", one.type) and (not sid or sid in one.resources)
    ]


def rule(call: Call) -> dict[str, Any]:
    """`GET /cluster/ha/rules/{rule}`."""
    found = call.cluster.ha.rules.get(call.get("rule"))
    if found is None:
        raise PveError(f"no such ha rule '{call.get('rule')}'")
    return _rule(call.cluster, found)


def _rule(cluster: Cluster, one: HaRule) -> dict[str, Any]:
    known = cluster.ha.rules
    errors = infeasible(known.values(), len(cluster.nodes)).get(one.rule)
    shown = {
        "rule": one.rule,
        "type": one.type,
        "resources": ",".join(sorted(one.resources)),
        "order": one.order,
        "digest": _digest(*known.values()),
        **_shown(one.options),
    }
    return shown | ({"errors": {"resources": errors}} if errors else {})


def add_rule(call: Call) -> None:
    """`POST /cluster/ha/rules`."""
    cluster, name = call.cluster, call.get("rule")
    cluster.check_quorum()
    if name in cluster.ha.rules:
        raise PveError(f"create ha rule failed: HA rule '{name}' already defined")
    order = 1 + min((one.order for one in cluster.ha.rules.values()), default=0)
    made = HaRule(name, call.get("type"), _sids(call.get("resources")), order, _options(call))
    _keep(cluster, made, "create ha rule failed")


def change_rule(call: Call) -> None:
    """`PUT /cluster/ha/rules/{rule}`."""
    cluster, name = call.cluster, call.get("rule")
    old = cluster.ha.rules.get(name)
    if old is None:
        raise PveError(f"update HA rules failed: HA rule '{name}' does not exist")
    if call.get("digest") not in ("", _digest(*cluster.ha.rules.values())):
        raise PveError(f"update HA rules failed: {MODIFIED}")
    gone = set(call.get("delete").split(","))
    kept = {key: text for key, text in old.options.items() if key not in gone}
    _check_properties(call, old.type)
    members = _sids(call.get("resources")) or old.resources
    made = HaRule(name, old.type, members, old.order, kept | _options(call))
    _keep(cluster, made, "update HA rules failed")


def _check_properties(call: Call, kind: str) -> None:
    """Refuse another type for a rule, and options of the other type."""
    for name in _FOREIGN[kind]:
        if name in call.params:
            raise PveError(f"update HA rules failed: unexpected property '{name}'")


def _keep(cluster: Cluster, made: HaRule, what: str) -> None:
    missing = [sid for sid in sorted(made.resources) if sid not in cluster.ha.resources]
    if missing:
        raise PveError(f"{what}: cannot use unmanaged resource(s) {', '.join(missing)}.")
    unknown = sorted(nodes_of(made.options.get("nodes", "")).keys() - cluster.nodes.keys())
    if unknown:
        raise PveError(f"{what}: cannot use non-existent node(s) {', '.join(unknown)}.")
    all_rules = {**cluster.ha.rules, made.rule: made}
    errors = infeasible(all_rules.values(), len(cluster.nodes)).get(made.rule)
    if errors:
        raise PveError(
            f"{what}: 400 Rule '{made.rule}' is invalid.\nresources: {', '.join(errors)}"
        )
    cluster.ha.rules[made.rule] = made
    cluster.save("ha-rule", made.rule, made)


def delete_rule(call: Call) -> None:
    """`DELETE /cluster/ha/rules/{rule}`: succeeds also if there is none."""
    if call.cluster.ha.rules.pop(call.get("rule"), None) is not None:
        call.cluster.drop("ha-rule", call.get("rule"))


def _sids(text: str) -> list[str]:
    return list(dict.fromkeys(one for one in re.split(r"[,;\s\0]+", text) if one))


# --- groups, before version 9


def groups(call: Call) -> list[dict[str, Any]]:
    """`GET /cluster/ha/groups`, which rules replace in version 9."""
    _not_migrated(call.cluster, "index groups")
    found = call.cluster.ha.groups
    digest = _digest(*found.values())
    return [
        {"group": one.group, "type": "group", "nodes": one.nodes, "digest": digest}
        | _shown(one.options)
        for one in found.values()
    ]


def add_group(call: Call) -> None:
    """`POST /cluster/ha/groups`."""
    cluster, name = call.cluster, call.get("group")
    _not_migrated(cluster, "create group")
    if name in cluster.ha.groups:
        raise PveError(f"create ha group failed: ha group ID '{name}' already defined")
    options = {key: text for key, text in _options(call).items() if key != "nodes"}
    made = cluster.ha.groups[name] = HaGroup(name, call.get("nodes"), options)
    cluster.save("ha-group", name, made)


def delete_group(call: Call) -> None:
    """`DELETE /cluster/ha/groups/{group}`."""
    _not_migrated(call.cluster, "delete group")
    if call.cluster.ha.groups.pop(call.get("group"), None) is not None:
        call.cluster.drop("ha-group", call.get("group"))


def _not_migrated(cluster: Cluster, what: str) -> None:
    if cluster.version.ha_rules:
        raise PveError(f"cannot {what}: ha groups have been migrated to rules")
