from __future__ import annotations

import dataclasses
import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common import config
from common.messages.facts import HostFacts, StorageFacts
from common.messages.scheduling import ImageHome, RequestSpec
from common.resources.aggregates import AggregateFacts
from scheduler import config as scheduler_config
from scheduler.decide.choose import choose
from scheduler.filters.image import image_properties, image_reach
from scheduler.filters.placement import availability_zone, forced_host, network_reach, retry
from scheduler.filters.resources import resources
from scheduler.filters.service import node_healthy, service_enabled, service_up
from scheduler.filters.storage import disk_way, storage_room
from scheduler.filters.traits import capabilities, traits
from scheduler.hosts.columns import HostColumns
from scheduler.hosts.host import Host
from scheduler.hosts.memberships import Memberships
from scheduler.service import load_weighers
from scheduler.weighers.capacity import cpu, disk, ram, storage
from scheduler.weighers.history import build_failure, image_cached
from scheduler.weighers.load import load

NOW = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)


def a_host(name: str = "pve1", *, free_mib: int = 4096, **changes: Any) -> Host:
    facts: dict[str, Any] = {
        "host": name,
        "cluster": "sim1",
        "node": name,
        "uuid": f"uuid-{name}",
        "worker": "w",
        "availability_zone": "nova",
        "observed_at": NOW,
        "vm_storage": "local",
        "storages": (StorageFacts("local", "dir", False, True, 100, 50),),
        "bridges": ("vmbr0",),
        "images": ("image",),
        "vcpus": 16,
        "memory_mib": 8192,
        "disk_gib": 100,
    }
    outside = {
        key: changes.pop(key) for key in ("silent_seconds", "traits", "failures") if key in changes
    }
    return Host(
        HostFacts(**{**facts, **changes}),
        capacity={"VCPU": 16, "MEMORY_MB": 8192, "DISK_GB": 100},
        used={"VCPU": 4, "MEMORY_MB": 8192 - free_mib, "DISK_GB": 10},
        **outside,
    )


def a_request(**changes: Any) -> RequestSpec:
    values: dict[str, Any] = {
        "server_uuid": "s",
        "project_id": "p",
        "user_id": "u",
        "vcpus": 1,
        "memory_mib": 2048,
        "disk_gib": 20,
        "image_id": "image",
    }
    return RequestSpec(**{**values, **changes})


def test_a_full_host_keeps_what_it_has_claimed() -> None:
    """A server that is rebuilt has its resources: only what else its image needs is checked."""
    full, asked = a_host(free_mib=0), a_request(claimed=True)
    assert resources(full, a_request()) is not None
    assert resources(full, asked) is None
    hosts = HostColumns.of([full])
    assert len(choose(hosts, asked, {"resources": resources}, {}).ranked) == 1
    other = dataclasses.replace(asked, image_properties={"hw_architecture": "aarch64"})
    checks = {"resources": resources, "image_properties": image_properties}
    assert not choose(hosts, other, checks, {}).ranked


def test_each_filter_accepts_a_host_that_fits() -> None:
    for accept in (
        service_up,
        service_enabled,
        node_healthy,
        forced_host,
        retry,
        availability_zone,
        resources,
        image_properties,
        image_reach,
        network_reach,
        disk_way,
        storage_room,
        traits,
        capabilities,
    ):
        assert accept(a_host(), a_request()) is None, accept.__name__


def test_reasons_carry_the_numbers() -> None:
    request = a_request()
    assert resources(a_host(free_mib=1024), request) == "1024 of 8192 MiB RAM free, 2048 asked"
    assert service_up(a_host(silent_seconds=90.4), request) == (
        "its agent is silent for 90 s, 60 s allowed"
    )
    assert service_up(a_host(silent_seconds=float("inf")), request) == (
        "its agent has not reported since the scheduler started"
    )
    disabled = frozenset({"COMPUTE_STATUS_DISABLED"})
    assert service_enabled(a_host(traits=disabled), request) == "disabled by an administrator"
    assert node_healthy(a_host(healthy=False, health="node is offline"), request) == (
        "node is offline"
    )
    assert availability_zone(a_host(), a_request(availability_zone="b")) == "in zone nova, b asked"
    assert forced_host(a_host(), a_request(force_host="pve2")) == "host pve2 was asked for"
    assert forced_host(a_host(), a_request(cluster="sim1")) is None
    assert forced_host(a_host(), a_request(cluster="sim2")) == (
        "in cluster sim1, the server can't leave sim2"
    )
    asked = a_request(cluster="sim2", hints={"micronova:cluster": "sim2"})
    assert forced_host(a_host(), asked) == "in cluster sim1, sim2 asked"
    assert retry(a_host(), a_request(cluster="sim1", ignore_hosts=("pve1",))) == (
        "the server's own host, or a host that can't take it"
    )
    assert retry(a_host(), a_request(ignore_hosts=("pve1",))) == "an earlier attempt failed here"
    assert network_reach(a_host(), a_request(networks=("vmbr0", "vmbr9"))) == (
        "no bridge vmbr9 on the node"
    )
    assert image_reach(a_host(images=()), request) == "image image is on none of its storages"
    assert image_properties(a_host(), a_request(image_properties={"architecture": "arm64"})) == (
        "x86_64, the image needs arm64"
    )
    assert (
        image_properties(a_host(), a_request(image_properties={"hw_architecture": "amd64"}))
        is None
    )


def test_a_servers_image_is_reached_where_it_is_alone() -> None:
    here = a_request(image_home=ImageHome("sim1", "local", "pve1"))
    assert image_reach(a_host(images=()), here) is None
    assert image_reach(a_host("pve2"), here) == (
        "image image, made of a server, is only on storage local of node pve1 in cluster sim1"
    )
    shared = a_request(image_home=ImageHome("sim1", "ceph", "pve1", True))
    assert image_reach(a_host("pve2", vm_storage="ceph"), shared) is None
    assert image_reach(a_host("pve2", vm_storage="ceph", cluster="sim2"), shared) == (
        "image image, made of a server, is only on storage ceph of cluster sim1"
    )
    assert image_reach(a_host("pve2"), shared) is not None
    columns = HostColumns.of([a_host(), a_host("pve2"), a_host("pve3", cluster="sim2")])
    refused = image_reach.refused(columns, here)
    assert refused is not None
    assert refused.tolist() == [False, True, True]
    importing = a_host(capabilities={"import_from": False, "full_clone": True})
    assert disk_way(importing, here) is None
    assert disk_way(importing, a_request()) is not None


def test_traits_and_capabilities() -> None:
    host = a_host(
        traits=frozenset({"HW_A"}),
        cpu_flags=("avx", "sse"),
        cpu_cores=8,
        hypervisor_version="9.2.11",
    )
    assert traits(host, a_request(extra_specs={"trait:HW_A": "required"})) is None
    assert traits(host, a_request(extra_specs={"trait:HW_B": "required"})) == "without HW_B"
    assert traits(host, a_request(extra_specs={"trait:HW_A": "forbidden"})) == "with HW_A"
    fitting = {
        "capabilities:hypervisor_type": "QEMU",
        "capabilities:cpu_info:features": "<in> avx",
        "capabilities:cpu_info:topology:cores": ">= 8",
        "capabilities:hypervisor_version": ">= 9.2",
        "capabilities:storage:shared": "false",
        "hw:cpu_policy": "shared",
        "quota": "x",
    }
    assert capabilities(host, a_request(extra_specs=fitting)) is None
    for key, value, reason in (
        ("hypervisor_type", "Xen", "hypervisor_type is QEMU, 'Xen' asked"),
        ("capabilities:vcpus_total", ">= 17", "vcpus_total is 16, '>= 17' asked"),
        (
            "capabilities:hypervisor_version",
            ">= 9.3",
            "hypervisor_version is 9.2.11, '>= 9.3' asked",
        ),
        ("capabilities:storage:type", "rbd", "storage:type is dir, 'rbd' asked"),
        ("capabilities:storage:shared", "true", "storage:shared is false, 'true' asked"),
        ("capabilities:storage:snapshots", "true", "storage:snapshots is false, 'true' asked"),
        ("capabilities:colour", "red", "colour is not known of any host"),
    ):
        assert capabilities(host, a_request(extra_specs={key: value})) == reason


def test_a_class_of_ones_own_is_counted() -> None:
    assert resources(a_host(), a_request(extra_specs={"resources:CUSTOM_GPU": "1"})) == (
        "0 of 0 CUSTOM_GPU free, 1 asked"
    )


def test_storage_is_looked_at_as_it_is() -> None:
    small = (StorageFacts("local", "dir", False, True, 100, 19),)
    assert storage_room(a_host(storages=small), a_request()) == (
        "19 GiB free on local, 20 GiB asked"
    )
    assert storage_room(a_host(storages=small, disk_allocation_ratio=2.0), a_request()) is None
    off = (StorageFacts("local", "dir", False, False, 100, 50),)
    assert storage_room(a_host(storages=off), a_request()) == "storage local is not active"
    assert storage_room(a_host(storages=()), a_request()) == "storage local is not on the node"


@pytest.mark.parametrize(
    ("shared", "active", "cluster", "words"),
    [
        (True, True, "sim1", None),
        (False, True, "sim1", "19 GiB free on local, 20 GiB asked"),
        (True, True, "other", "19 GiB free on local, 20 GiB asked"),
        (True, False, "sim1", "storage local is not active"),
    ],
)
def test_a_move_needs_no_room_where_the_disk_is(
    shared: bool, active: bool, cluster: str, words: str | None
) -> None:
    small = (StorageFacts("local", "dir", shared, active, 100, 19),)
    host, request = a_host(storages=small), a_request(vm=(cluster, 100_001))
    assert storage_room(host, request) == words
    found = choose([host], request, {"storage_room": storage_room}, {})
    assert dict(found.refused.get("storage_room", {})) == (
        {} if words is None else {host.name: words}
    )


@pytest.mark.parametrize(
    ("ways", "cached", "words"),
    [
        ({}, (), None),
        ({"import_from": True, "upload": True}, (), None),
        ({"import_from": False, "linked_clone": True}, (), "no way to a disk"),
        ({"import_from": False, "linked_clone": True}, ("image",), None),
        ({"import_from": False, "linked_clone": False}, ("image",), "version 8.3.5, 8.4 needed"),
        ({"import_from": True, "upload": False}, (), "no storage for config drives"),
    ],
)
def test_a_missing_way_is_refused_before_anything_is_made(
    ways: dict[str, bool], cached: tuple[str, ...], words: str | None
) -> None:
    host = a_host(capabilities=ways, cached_images=cached, hypervisor_version="8.3.5")
    reason = disk_way(host, a_request())
    assert reason is None if words is None else words in str(reason)
    assert disk_way(host, a_request(image_id=None)) is None


def test_the_roomier_host_wins_and_scores_are_kept() -> None:
    choice = choose(
        [a_host("a", free_mib=2048), a_host("b", free_mib=6144)],
        a_request(),
        {"resources": resources},
        {"ram": (ram, 1.0), "cpu": (cpu, 1.0)},
    )
    assert [item.host.name for item in choice.ranked] == ["b", "a"]
    assert choice.ranked[0].scores == {"ram": 1.0, "cpu": 0.0}


def test_failures_weigh_against_and_a_cached_image_for() -> None:
    hosts = [a_host("a", failures=1.0), a_host("b"), a_host("c", cached_images=("image",))]
    weighers = {"build_failure": (build_failure, 10.0), "image_cached": (image_cached, 1.0)}
    choice = choose(hosts, a_request(), {}, weighers)
    assert [item.host.name for item in choice.ranked] == ["c", "b", "a"]


def test_disk_storage_and_load() -> None:
    request = a_request()
    assert disk(a_host(), request) == 0.9
    assert (storage(a_host(), request), storage(a_host(vm_storage="gone"), request)) == (0.5, 0)
    assert load(a_host(cpu_load=0.25), request) == -0.25


def test_load_separates_only_hosts_that_promised_as_much() -> None:
    weighers = load_weighers(config.load([scheduler_config.register]))
    busy, idle = a_host("busy", cpu_load=0.9), a_host("idle", cpu_load=0.1)
    assert choose([busy, idle], a_request(), {}, weighers).ranked[0].host.name == "idle"
    roomy = a_host("roomy", cpu_load=1.0, free_mib=4097)
    ranked = choose([idle, roomy], a_request(), {}, weighers).ranked
    assert [one.host.name for one in ranked] == ["roomy", "idle"]


def test_an_aggregate_has_multipliers_of_its_own() -> None:
    def aggregate(**metadata: str) -> AggregateFacts:
        return AggregateFacts("u", "n", metadata)

    def winner(*aggregates: AggregateFacts) -> str:
        roomy = dataclasses.replace(
            a_host("roomy", free_mib=8000), memberships=Memberships(aggregates)
        )
        hosts = [roomy, a_host("middling", free_mib=6000), a_host("full", free_mib=2048)]
        return choose(hosts, a_request(), {}, {"ram": (ram, 1.0)}).ranked[0].host.name

    assert winner() == winner(aggregate(colour="red")) == "roomy"
    assert winner(aggregate(ram_weight_multiplier="0.5")) == "middling"
    assert winner(aggregate(ram_weight_multiplier="2"), aggregate(colour="red")) == "roomy"
    two = (aggregate(ram_weight_multiplier="2"), aggregate(ram_weight_multiplier="-1"))
    assert winner(*two) == "middling"
    assert winner(aggregate(ram_weight_multiplier="much")) == "roomy"


def test_the_first_filter_that_refuses_gives_the_reason() -> None:
    filters = {"forced_host": forced_host, "resources": resources}
    choice = choose([a_host(free_mib=0)], a_request(force_host="x"), filters, {})
    assert choice.refused == {"forced_host": {"pve1": "host x was asked for"}}
    assert choice.ranked == ()


@given(st.lists(st.integers(0, 8192), min_size=1, max_size=8, unique=True), st.randoms())
def test_the_order_of_the_hosts_changes_nothing(free: list[int], random: Any) -> None:
    hosts = [a_host(f"h{mib}", free_mib=mib) for mib in free]
    shuffled = list(hosts)
    random.shuffle(shuffled)
    weighers = {"ram": (ram, 1.0)}
    first = choose(hosts, a_request(), {"resources": resources}, weighers)
    second = choose(shuffled, a_request(), {"resources": resources}, weighers)
    assert [item.host for item in first.ranked] == [item.host for item in second.ranked]
    assert first.refused == second.refused


def test_equal_hosts_share_many_requests_and_keep_one() -> None:
    hosts = [a_host(f"h{number}") for number in range(8)]
    winners = [
        choose(hosts, a_request(server_uuid=f"s{number}"), {}, {"ram": (ram, 1.0)})
        .ranked[0]
        .host.name
        for number in range(200)
    ]
    assert len(set(winners)) == 8
    again = choose(hosts, a_request(server_uuid="s0"), {}, {}).ranked[0].host.name
    assert again == winners[0]
