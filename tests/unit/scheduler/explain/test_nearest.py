"""What would have worked is computed: applied, it works."""

from __future__ import annotations

import dataclasses
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.messages.facts import StorageFacts
from common.messages.scheduling import Change, RequestSpec, Suggestion
from common.resources.server_groups import GroupFacts
from scheduler.decide.choose import Filter, choose
from scheduler.explain.nearest import LOOKED_AT, changed, nearest
from scheduler.explain.words import advice, not_offered, sentence
from scheduler.filters.guest import guest_hardware
from scheduler.filters.hints import same_host
from scheduler.filters.network import vlan_reach
from scheduler.filters.placement import availability_zone, forced_host, network_reach, retry
from scheduler.filters.resources import resources
from scheduler.filters.server_groups import server_group_affinity, server_group_anti_affinity
from scheduler.filters.service import node_healthy
from scheduler.filters.storage import storage_room
from scheduler.hosts.host import Host
from tests.unit.scheduler.decide.test_choose import a_host, a_request

FILTERS: dict[str, Filter] = {
    "node_healthy": node_healthy,
    "forced_host": forced_host,
    "retry": retry,
    "availability_zone": availability_zone,
    "resources": resources,
    "network_reach": network_reach,
    "storage_room": storage_room,
}


def advised(hosts: list[Any], **asked: Any) -> str | None:
    suggestion = nearest(hosts, a_request(**asked), FILTERS)
    return None if suggestion is None else advice(suggestion)


GROUPED: dict[str, Filter] = {
    **FILTERS,
    "affinity": server_group_affinity,
    "anti_affinity": server_group_anti_affinity,
}


@pytest.mark.parametrize(
    ("group", "text"),
    [
        (
            GroupFacts("g", "anti-affinity", 1, {"a": 1, "b": 1}),
            "It would fit in a group with max_server_per_host 2, in a group with policy "
            "soft-anti-affinity or without its server group.",
        ),
        (
            GroupFacts("g", "anti-affinity", 2, {"a": 5, "b": 3}),
            "It would fit in a group with max_server_per_host 4, in a group with policy "
            "soft-anti-affinity or without its server group.",
        ),
        (
            GroupFacts("g", "affinity", 1, {"gone": 1}),
            "It would fit in a group with policy soft-affinity or without its server group.",
        ),
    ],
)
def test_what_else_of_the_group_would_do(group: GroupFacts, text: str) -> None:
    hosts, request = [a_host("a"), a_host("b")], a_request(group=group)
    assert not choose(hosts, request, GROUPED, {}).ranked
    suggestion = nearest(hosts, request, GROUPED)
    assert suggestion is not None
    assert advice(suggestion) == text
    for way in (suggestion, *suggestion.others):
        choice = choose(hosts, changed(request, way), GROUPED, {})
        assert choice.passed == way.hosts > 0
        assert way.host in {item.host.name for item in choice.ranked}


def test_a_change_of_the_group_helps_only_where_there_is_room() -> None:
    """Two hosts are full of the group; one of them has no room either."""
    hosts = [a_host("a", free_mib=1024), a_host("b"), a_host("c", healthy=False)]
    group = GroupFacts("g", "anti-affinity", 1, {"a": 1, "b": 3})
    suggestion = nearest(hosts, a_request(group=group), GROUPED)
    assert suggestion is not None
    assert advice(suggestion) == (
        "It would fit in a group with max_server_per_host 4, in a group with policy "
        "soft-anti-affinity or without its server group."
    )
    assert suggestion.changes == (Change("max_server_per_host", 1, 4),)
    # Where it is not the group, nothing is said of the group.
    roomy = nearest(
        [a_host("b", free_mib=1024)], a_request(group=GroupFacts("g", "affinity")), GROUPED
    )
    assert roomy is not None
    assert (roomy.others, [change.field for change in roomy.changes]) == ((), ["memory_mib"])
    # A larger number would do nothing against affinity or a soft policy.
    for policy in ("soft-affinity", "soft-anti-affinity"):
        soft = GroupFacts("g", policy, 1, {"b": 1})
        assert nearest([a_host("b", healthy=False)], a_request(group=soft), GROUPED) is None


groups = st.builds(
    lambda policy, most, members: GroupFacts("g", policy, most, members),
    st.sampled_from(["affinity", "anti-affinity", "soft-affinity", "soft-anti-affinity"]),
    st.integers(1, 3),
    st.dictionaries(st.sampled_from([f"pve{n}" for n in range(6)]), st.integers(1, 6)),
)


def test_less_of_what_is_short_and_no_less_of_the_rest() -> None:
    hosts = [a_host("a", free_mib=1024), a_host("b", free_mib=1536), a_host("c", free_mib=512)]
    suggestion = nearest(hosts, a_request(memory_mib=2048), FILTERS)
    assert suggestion == Suggestion((Change("memory_mib", 2048, 1536),), 1, "b")
    assert advice(suggestion) == "It would fit with 1536 MiB or less."


def test_several_sizes_are_cut_together() -> None:
    text = advised([a_host()], memory_mib=5000, vcpus=14, disk_gib=70)
    assert text == ("It would fit with 12 VCPU, 4096 MiB RAM and 50 GiB disk or less.")


def test_one_server_gets_no_more_than_a_node_has() -> None:
    host = a_host(vcpus=8)
    assert resources(host, a_request(vcpus=10)) == ("one server may have 8 VCPU at most, 10 asked")
    assert advised([host], vcpus=10) == "It would fit with 8 VCPU or less."


def test_the_disk_must_fit_the_storage_too() -> None:
    small = (StorageFacts("local", "dir", False, True, 100, 15),)
    assert advised([a_host(storages=small)]) == "It would fit with 15 GiB disk or less."
    assert advised([a_host(storages=small)], least_disk_gib=16) is None


def test_another_zone_host_or_network() -> None:
    hosts = [a_host("a", availability_zone="a"), a_host("b", availability_zone="b")]
    assert advised(hosts, availability_zone="c", force_host=None) == "It would fit in zone a."
    assert advised(hosts, force_host="x") == "It would fit without a forced host."
    assert advised(hosts, networks=("vmbr0", "vmbr7")) == "It would fit without network vmbr7."
    full = [a_host("a", availability_zone="a", free_mib=1024), *hosts[1:]]
    assert advised(full, availability_zone="a") == "It would fit with 1024 MiB or less."
    assert advised([hosts[0]], availability_zone="b", vcpus=13) == (
        "It would fit in zone a with 12 VCPU or less."
    )


def test_without_a_hint_or_what_flavor_and_image_ask() -> None:
    hosts = [a_host("a"), a_host("b", free_mib=1024)]
    more = {"same_host": same_host, "guest_hardware": guest_hardware, "vlan_reach": vlan_reach}

    def advised(**asked: Any) -> str | None:
        suggestion = nearest(hosts, a_request(**asked), FILTERS | more)
        if suggestion is None:
            return None
        works = changed(a_request(**asked), suggestion)
        assert choose(hosts, works, FILTERS | more, {}).passed == suggestion.hosts
        return advice(suggestion)

    assert advised(hints={"same_host": "s", "group": "g"}) == (
        "It would fit without the hint same_host."
    )
    assert advised(extra_specs={"hw:cpu_policy": "dedicated", "hw:cpu_cores": "1"}) == (
        "It would fit with a flavor without hw:cpu_policy."
    )
    assert advised(image_properties={"hw_machine_type": "virt"}, memory_mib=9000) == (
        "It would fit with an image without hw_machine_type with 4096 MiB or less."
    )
    hosts = [a_host("a", bridge_vlans={"vmbr0": ""})]
    assert advised(networks=("vmbr0",), vlans=(("vmbr0", 7),)) == (
        "It would fit without network vmbr0."
    )
    hosts = [a_host("a", free_mib=1024)]
    assert advised(extra_specs={"hw:numa_nodes": "2"}, vcpus=2) == (
        "It would fit with 1024 MiB or less."
    )


def test_what_nobody_can_change_is_not_suggested() -> None:
    assert nearest([], a_request(), FILTERS) is None
    assert nearest([a_host(healthy=False)], a_request(memory_mib=9000), FILTERS) is None
    assert nearest([a_host(free_mib=63)], a_request(), FILTERS) is None
    assert nearest([a_host()], a_request(ignore_hosts=("pve1",)), FILTERS) is None


def test_the_sentence_names_the_nearest_host_and_what_would_do() -> None:
    hosts = [a_host("a", free_mib=512), a_host("b", free_mib=1536)]
    request = a_request()
    refused = choose(hosts, request, FILTERS, {}).refused
    assert sentence(2, refused, nearest(hosts, request, FILTERS)) == (
        "None of 2 hosts has room for all of it (b: 1536 of 8192 MiB RAM free, 2048 asked). "
        "It would fit with 1536 MiB or less."
    )


def test_hosts_that_placement_does_not_offer_are_no_refusal() -> None:
    assert not_offered(1).startswith("1 host would do, but placement")


some_hosts = st.lists(
    st.builds(
        lambda name, free, zone, vcpus, bridges, healthy, gib: a_host(
            name,
            free_mib=free,
            availability_zone=zone,
            vcpus=vcpus,
            bridges=tuple(bridges),
            healthy=healthy,
            storages=(StorageFacts("local", "dir", False, True, 100, gib),),
        ),
        st.sampled_from([f"pve{n}" for n in range(6)]),
        st.integers(-100, 8192),
        st.sampled_from(["a", "b"]),
        st.integers(1, 16),
        st.lists(st.sampled_from(["vmbr0", "vmbr1"]), unique=True),
        st.booleans(),
        st.integers(0, 100),
    ),
    max_size=5,
    unique_by=lambda host: host.name,
)
requests = st.builds(
    a_request,
    vcpus=st.integers(1, 20),
    memory_mib=st.integers(64, 9000),
    disk_gib=st.integers(0, 100),
    availability_zone=st.sampled_from([None, "a", "b", "c"]),
    force_host=st.sampled_from([None, "pve1", "gone"]),
    networks=st.sampled_from([(), ("vmbr0",), ("vmbr0", "vmbr1")]),
    least_disk_gib=st.integers(0, 20),
)


@given(some_hosts, requests)
def test_a_suggestion_applied_finds_as_many_hosts_as_it_says(hosts: Any, request: Any) -> None:
    suggestion = nearest(hosts, request, FILTERS)
    if suggestion is None:
        return
    works = changed(request, suggestion)
    ranked = choose(hosts, works, FILTERS, {}).ranked
    assert len(ranked) == suggestion.hosts > 0
    assert suggestion.host in {item.host.name for item in ranked}
    assert works.disk_gib >= min(request.least_disk_gib, request.disk_gib)


@given(some_hosts, requests, groups)
def test_each_way_around_a_group_applied_finds_as_many_hosts_as_it_says(
    hosts: Any, request: Any, group: GroupFacts
) -> None:
    asked = dataclasses.replace(request, group=group)
    suggestion = nearest(hosts, asked, GROUPED)
    for way in () if suggestion is None else (suggestion, *suggestion.others):
        choice = choose(hosts, changed(asked, way), GROUPED, {})
        assert choice.passed == way.hosts > 0
        assert way.host in {item.host.name for item in choice.ranked}


@given(some_hosts, requests, st.integers(1, 9000))
def test_no_smaller_cut_of_the_memory_alone_would_do(hosts: Any, request: Any, mib: int) -> None:
    suggestion = nearest(hosts, request, FILTERS)
    if suggestion is None or [c.field for c in suggestion.changes] != ["memory_mib"]:
        return
    if suggestion.changes[0].works < mib < request.memory_mib:
        other = changed(request, Suggestion((Change("memory_mib", 0, mib),), 1, ""))
        assert choose(hosts, other, FILTERS, {}).ranked == ()


def test_what_is_asked_host_by_host_is_asked_of_some_hosts_only() -> None:
    asked: Counter[str] = Counter()

    def licence(host: Host, request: RequestSpec) -> str | None:
        asked[request.availability_zone or ""] += 1
        return "no licence"

    hosts = [a_host(f"h{number:03d}") for number in range(3 * LOOKED_AT)]
    filters = {**FILTERS, "licence": licence}
    specs = {f"x{number}": "1" for number in range(5)}
    request = a_request(availability_zone="nova", extra_specs=specs)
    assert nearest(hosts, request, filters) is None
    # As it is, without one of the five, and in the only zone there is.
    assert 0 < sum(asked.values()) <= 7 * LOOKED_AT


def test_a_plain_filter_is_asked_first_where_least_is_given_up() -> None:
    def licence(host: Host, request: RequestSpec) -> str | None:
        return None if host.name == "h299" else "no licence"

    hosts = [a_host(f"h{number:03d}", free_mib=1000) for number in range(299)]
    hosts.append(a_host("h299", free_mib=1024))
    found = nearest(hosts, a_request(), {**FILTERS, "licence": licence})
    assert found is not None
    assert found.host == "h299"
