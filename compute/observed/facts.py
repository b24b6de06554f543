"""The facts of this worker's hosts, and which of them must be published."""

from __future__ import annotations

import dataclasses
import operator
import threading
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from common.messages.facts import ClusterFacts, HostFacts, StorageFacts
from common.resources.aggregates import RATIOS, Ratios

#: relative changes of at least this share are published; smaller ones wait until they add up
LOAD_STEP = 0.10
USED_STEP = 0.05

#: values that always change
_RESTLESS = {
    "observed_at",
    "cpu_load",
    "memory_used_mib",
    "disk_used_gib",
    "uptime_seconds",
    "available_gib",
    "storages",  # looked at one by one
}


def _others(kind: type[HostFacts] | type[StorageFacts]) -> operator.attrgetter[tuple[Any, ...]]:
    """Return what reads all other fields: each look at a cluster compares those of every host."""
    names = [field.name for field in dataclasses.fields(kind)]
    return operator.attrgetter(*(name for name in names if name not in _RESTLESS))


_steady, _steady_storage = _others(HostFacts), _others(StorageFacts)


def is_news(old: HostFacts | None, new: HostFacts) -> bool:
    """Return whether the facts differ by more than noise."""
    if old is None:
        return True
    if abs(old.cpu_load - new.cpu_load) >= LOAD_STEP:
        return True
    pairs = [
        (old.memory_used_mib, new.memory_used_mib, new.memory_mib),
        (old.disk_used_gib, new.disk_used_gib, new.disk_gib),
    ]
    pairs += [
        (before.available_gib, now.available_gib, now.total_gib)
        for before, now in zip(old.storages, new.storages, strict=False)
    ]
    if any(abs(before - now) >= max(1.0, USED_STEP * whole) for before, now, whole in pairs):
        return True
    return (
        _steady(old) != _steady(new)
        or len(old.storages) != len(new.storages)
        or any(
            _steady_storage(before) != _steady_storage(now)
            for before, now in zip(old.storages, new.storages, strict=True)
        )
    )


#: the health of a host whose node is not listed any more
LEFT = "The node is no member of its cluster any more."


class HostFactsCache:
    """Facts by host and cluster, and which of them are published already."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._hosts: dict[str, HostFacts] = {}
        self._clusters: dict[str, ClusterFacts] = {}
        self._published: dict[str, HostFacts] = {}
        self._published_clusters: dict[str, ClusterFacts] = {}
        self._seen: dict[str, HostFacts] = {}
        self._ratios = Ratios(-1)

    def update(self, hosts: Iterable[HostFacts], cluster: ClusterFacts) -> list[HostFacts]:
        """Take over a refresh; return the hosts whose facts changed."""
        with self._lock:
            self._clusters[cluster.cluster] = cluster
            seen = []
            for facts in hosts:
                self._seen[facts.host] = facts
                seen.append(self._with_ratios(facts))
            for facts in seen:
                self._hosts[facts.host] = facts
            news = [facts for facts in seen if is_news(self._published.get(facts.host), facts)]
            gone = self._gone(cluster.cluster, {facts.host for facts in seen})
            return news + gone

    def update_ratios(self, ratios: Ratios) -> list[HostFacts]:
        """Take over the allocation ratios; return the hosts that they change."""
        with self._lock:
            if ratios.version <= self._ratios.version:
                return []
            self._ratios = ratios
            changed = []
            for host, facts in self._hosts.items():
                own = self._with_ratios(self._seen[host])
                now: Any = {name: getattr(own, name) for name in RATIOS}
                if now != {name: getattr(facts, name) for name in RATIOS}:
                    changed.append(replace(facts, **now))
            self._hosts.update({facts.host: facts for facts in changed})
            return changed

    def _with_ratios(self, facts: HostFacts) -> HostFacts:
        said: Any = self._ratios.hosts.get(facts.host, {})
        return replace(facts, **said) if said else facts

    def unreachable(self, cluster: str, why: str) -> list[HostFacts]:
        """Mark the hosts of a cluster that doesn't answer unhealthy; return them."""
        with self._lock:
            mine = [facts for facts in self._hosts.values() if facts.cluster == cluster]
            for facts in mine:
                self._hosts[facts.host] = replace(facts, online=False, healthy=False, health=why)
            return [self._hosts[facts.host] for facts in mine if facts.healthy]

    def forget(self, cluster: str) -> None:
        """Drop what is known of a cluster: another worker carries its agents."""
        with self._lock:
            for host in [one.host for one in self._hosts.values() if one.cluster == cluster]:
                for known in (self._hosts, self._published, self._seen):
                    known.pop(host, None)
            self._clusters.pop(cluster, None)
            self._published_clusters.pop(cluster, None)

    def _gone(self, cluster: str, seen: set[str]) -> list[HostFacts]:
        gone = [
            replace(facts, online=False, healthy=False, health=LEFT)
            for facts in self._hosts.values()
            if facts.cluster == cluster and facts.host not in seen and facts.health != LEFT
        ]
        self._hosts.update({facts.host: facts for facts in gone})
        return gone

    def names(self) -> tuple[str, ...]:
        """Return all hosts, sorted."""
        with self._lock:
            return tuple(sorted(self._hosts))

    def left(self) -> frozenset[str]:
        """Return the hosts whose nodes have left their cluster.

        Their agents remain, as what they had is still to be released.
        """
        with self._lock:
            return frozenset(one.host for one in self._hosts.values() if one.health == LEFT)

    def all(self) -> list[HostFacts]:
        """Return the facts of all hosts."""
        with self._lock:
            return list(self._hosts.values())

    def take(self) -> tuple[tuple[HostFacts, ...], tuple[ClusterFacts, ...]]:
        """Return what changed since the last call."""
        with self._lock:
            hosts = [
                one for one in self._hosts.values() if is_news(self._published.get(one.host), one)
            ]
            clusters = [
                one
                for one in self._clusters.values()
                if self._published_clusters.get(one.cluster) != one
            ]
            self._published.update({one.host: one for one in hosts})
            self._published_clusters.update({one.cluster: one for one in clusters})
            return tuple(hosts), tuple(clusters)

    def publish_all(self) -> None:
        """Publish everything with the next heartbeat, for a service that has just started."""
        with self._lock:
            self._published.clear()
            self._published_clusters.clear()
