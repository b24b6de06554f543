"""Which VMs the manager of high availability has."""

from __future__ import annotations

from simulator.state.cluster import Cluster
from simulator.state.ha_config import HaResource


def manage(cluster: Cluster, vmid: int, **options: str) -> None:
    """Make a VM an HA resource."""
    made = HaResource(f"vm:{vmid}", "vm", options)
    cluster.ha.resources[made.sid] = made
    cluster.save("ha-resource", made.sid, made)


def forget(cluster: Cluster, sid: str, *, purge: bool) -> bool:
    """Remove a resource; with `purge` also from the rules. Return whether it existed."""
    if cluster.ha.resources.pop(sid, None) is None:
        return False
    cluster.drop("ha-resource", sid)
    for rule in [one for one in cluster.ha.rules.values() if purge and sid in one.resources]:
        rule.resources.remove(sid)
        if rule.resources:
            cluster.save("ha-rule", rule.rule, rule)
        else:
            del cluster.ha.rules[rule.rule]
            cluster.drop("ha-rule", rule.rule)
    return True
