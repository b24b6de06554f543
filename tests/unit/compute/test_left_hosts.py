"""A node that left its cluster: its agent remains, and its host is never registered again."""

from __future__ import annotations

from common import clock
from common.messages.facts import ClusterFacts, HostFacts
from compute.observed.facts import LEFT, HostFactsCache

CLUSTER = ClusterFacts("c1", "9.0", quorate=True)


def host(name: str) -> HostFacts:
    return HostFacts(name, "c1", name, f"uuid-{name}", "w1", "nova", clock.utcnow(), vcpus=4)


def test_a_host_whose_node_is_not_listed_any_more() -> None:
    cache = HostFactsCache()
    cache.update([host("pve1"), host("pve2")], CLUSTER)
    cache.take()
    offline = HostFacts(**{**vars(host("pve2")), "healthy": False, "health": "off"})
    cache.update([host("pve1"), offline], CLUSTER)
    assert cache.left() == frozenset()
    [gone] = cache.update([host("pve1")], CLUSTER)
    assert (gone.host, gone.health, gone.online) == ("pve2", LEFT, False)
    assert (cache.names(), cache.left()) == (("pve1", "pve2"), {"pve2"})
    # It is reported once, and is well again when it is listed again.
    cache.take()
    assert cache.update([host("pve1")], CLUSTER) == []
    cache.update([host("pve1"), host("pve2")], CLUSTER)
    assert cache.left() == frozenset()
