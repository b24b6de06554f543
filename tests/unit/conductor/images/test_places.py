"""Where uploads go."""

from __future__ import annotations

from common.messages.facts import StorageFacts
from conductor.images.places import ImagePlace, choose, of_volume
from conductor.store.hosts.host_storages import HostStorages

GIB = 2**30
NFS = StorageFacts("nfs1", "nfs", True, True, 100, 50, ("import", "images"))
CEPH = StorageFacts("ceph", "cephfs", True, True, 100, 70, ("import", "iso"))
LOCAL = StorageFacts("local", "dir", False, True, 100, 90, ("import", "iso"))
RARE = StorageFacts("a-rare", "dir", False, True, 100, 99, ("import",))
OFF = StorageFacts("off", "nfs", True, False, 100, 99, ("import",))


def a_host(node: str, *storages: StorageFacts, cluster: str = "c1") -> HostStorages:
    return HostStorages(f"{cluster}-{node}", cluster, node, storages)


def at(node: str, storage: str, cluster: str = "c1") -> ImagePlace:
    return ImagePlace(f"{cluster}-{node}", cluster, node, storage)


def test_the_shared_storage_with_most_room_gets_one_file() -> None:
    hosts = [a_host("b", LOCAL, NFS), a_host("a", LOCAL, NFS, CEPH, OFF)]
    assert choose(hosts, "import", GIB) == [at("a", "ceph")]
    assert choose(hosts, "import", 60 * GIB) == [at("a", "ceph")]
    assert choose(hosts, "import", 80 * GIB) == [at("a", "local"), at("b", "local")]
    assert choose(hosts, "import", 100 * GIB) == []
    assert choose(hosts, "snippets", 1) == []


def test_without_one_each_node_with_the_most_common_gets_one() -> None:
    hosts = [a_host("a", RARE, LOCAL), a_host("b", LOCAL), a_host("c", NFS, cluster="c2")]
    found = choose(hosts, "import", GIB)
    assert found == [at("a", "local"), at("b", "local"), at("c", "nfs1", "c2")]
    assert choose([a_host("a", RARE, LOCAL)], "import", 1) == [at("a", "a-rare")]


def test_a_file_is_looked_for_where_it_may_be() -> None:
    hosts = [a_host("b", LOCAL, NFS), a_host("a", LOCAL, NFS), a_host("c")]
    assert of_volume(hosts, "nfs1") == [at("a", "nfs1")]
    assert of_volume(hosts, "local") == [at("a", "local"), at("b", "local")]
    assert of_volume(hosts, "gone") == []
