"""All hosts at once is what each host alone is: every filter, every weigher, every column."""

from __future__ import annotations

import dataclasses
import datetime
import itertools
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from common import codec, config
from common.messages.facts import HaRule, Heartbeat, StorageFacts
from common.messages.scheduling import Refused, RequestSpec, VolumeNeed
from common.resources.aggregates import AggregateFacts, AllAggregates
from common.resources.server_groups import GroupFacts, Policy
from placement.messages import Candidates, Usage
from scheduler import config as scheduler_config
from scheduler.columnar.forms import ColumnarFilter, ColumnarWeigher, absolute
from scheduler.decide.choose import Weigher, choose
from scheduler.decide.refusals import Refusals
from scheduler.filters.placement import availability_zone
from scheduler.hosts.columns import HostColumns
from scheduler.hosts.host import Host
from scheduler.hosts.host_states import Kinds
from scheduler.hosts.memberships import Memberships
from scheduler.hosts.reported import HostTable
from scheduler.service import load_filters, load_weighers
from tests.unit.scheduler.decide.test_choose import NOW, a_host, a_request

CONF = config.load([scheduler_config.register])
FILTERS = load_filters(CONF)
WEIGHERS = load_weighers(CONF)
NAMES = ("a", "b", "c", "d")

memberships = st.sampled_from(
    [
        Memberships(tuple(AggregateFacts("u", "n", metadata) for metadata in many))
        for many in (
            [],
            [{"availability_zone": "az1"}],
            [{"filter_tenant_id": "q"}, {"ssd": "true"}],
            [{"filter_tenant_id": "p,q", "os_distro": "debian"}],
            [{"ram_weight_multiplier": "-1"}],
            [{"ram_weight_multiplier": "nan", "ssd": "true", "hw_machine_type": "pc"}],
        )
    ]
)
storages = st.builds(
    lambda active, free: (StorageFacts("local", "dir", False, active, 100, free, ("images",)),),
    st.booleans(),
    st.integers(0, 100),
)
changes: dict[str, st.SearchStrategy[Any]] = {
    "free_mib": st.integers(-100, 8192),
    "vcpus": st.integers(1, 16),
    "healthy": st.booleans(),
    "health": st.sampled_from(["no quorum", "offline"]),
    "availability_zone": st.sampled_from(["nova", "az1", "az2"]),
    "architecture": st.sampled_from(["x86_64", "aarch64"]),
    "bridges": st.sampled_from([(), ("vmbr0",), ("vmbr0", "vmbr1")]),
    "images": st.sampled_from([(), ("image",)]),
    "cached_images": st.sampled_from([(), ("image",), ("image", "other")]),
    "capabilities": st.sampled_from(
        [{}, {"import_from": False}, {"import_from": False, "full_clone": True}, {"upload": False}]
    ),
    "storages": st.just(()) | storages,
    "disk_allocation_ratio": st.sampled_from([1.0, 2.0]),
    "cpu_load": st.floats(0, 1),
    "bridge_vlans": st.sampled_from([{}, {"vmbr0": ""}, {"vmbr0": "2-5,7"}, {"vmbr0": "x-y,7-"}]),
    "unready_bridges": st.sampled_from([{}, {"vmbr1": "zone z1: pending"}]),
    "ha_rules": st.sampled_from(
        [(), (HaRule("gold", True, 1, None, (7,)),), (HaRule("gold", False, 1, 3),)]
    ),
    "host_ip": st.sampled_from(["", "pve1.lan", "10.0.0.9", "192.0.2.1", "fd00::1"]),
    "devices": st.sampled_from([{}, {"gpu": 1}]),
    "machine_version": st.sampled_from(["", "9.2", "10.0"]),
    "cpu_flags": st.sampled_from([("avx",), ()]),
    "silent_seconds": st.sampled_from([0.0, 61.0, float("inf")]),
    "failures": st.sampled_from([0.0, 0.0, 1.5]),
    "traits": st.sampled_from(
        [frozenset(), frozenset({"HW_A"}), frozenset({"HW_A", "COMPUTE_STATUS_DISABLED"})]
    ),
}
asked: dict[str, st.SearchStrategy[Any]] = {
    "vcpus": st.integers(1, 16),
    "memory_mib": st.integers(1, 8192),
    "disk_gib": st.integers(0, 100),
    "image_id": st.sampled_from([None, "image"]),
    "image_properties": st.sampled_from(
        [{}, {"architecture": "arm64"}, {"hw_machine_type": "pc-q35-10.0"}]
    ),
    "extra_specs": st.sampled_from(
        [
            {},
            {"trait:HW_A": "required"},
            {"trait:HW_A": "forbidden"},
            {"capabilities:cpu_info:features": "<in> avx", "vcpus_total": ">= 8"},
            {"capabilities:colour": "red"},
            {"aggregate_instance_extra_specs:ssd": "true"},
            {"aggregate_instance_extra_specs:ssd": "<or> no <or> true"},
            {"resources:CUSTOM_GPU": "1"},
            {"resources:": "1"},
            {"hw:cpu_policy": "dedicated"},
            {"pci_passthrough:alias": "gpu:1"},
            {"ha:rule": "gold"},
        ]
    ),
    "availability_zone": st.sampled_from([None, "az1"]),
    "vm": st.sampled_from([None, ("sim1", 7), ("sim2", 7)]),
    "vlans": st.sampled_from([(), (("vmbr0", 7),)]),
    "volume_backed": st.booleans(),
    "volumes": st.sampled_from(
        [
            (),
            (VolumeNeed("local", "sim1"),),
            (VolumeNeed("local", "sim1", "a"),),
            (VolumeNeed(gib=50, image_id="image"), VolumeNeed("ceph", gib=1)),
        ]
    ),
    "networks": st.sampled_from([(), ("vmbr1",)]),
    "hints": st.sampled_from(
        [
            {},
            {"same_host": "s1"},
            {"different_host": ["s1"]},
            {"build_near_host_ip": "10.0.0.1"},
            {"build_near_host_ip": "10.0.0.1", "cidr": "/99"},
            {"build_near_host_ip": "fd00::9", "cidr": "/64"},
        ]
    ),
    "server_hosts": st.sampled_from([{}, {"s1": "a"}]),
    "ignore_hosts": st.sampled_from([(), ("a", "gone")]),
    "kept_hosts": st.sampled_from([(), ("b", "gone")]),
    "force_host": st.sampled_from([None, None, "b", "gone"]),
    "group": st.none()
    | st.builds(
        GroupFacts,
        st.just("g"),
        st.sampled_from(list(Policy)),
        st.integers(1, 2),
        st.dictionaries(st.sampled_from([*NAMES, "gone"]), st.integers(1, 2)),
    ),
}


def some(strategies: dict[str, st.SearchStrategy[Any]]) -> st.SearchStrategy[dict[str, Any]]:
    """Values for some of the names: most things are ordinary."""
    return st.fixed_dictionaries({}, optional=strategies)


@st.composite
def worlds(draw: st.DrawFn) -> list[Host]:
    return [
        dataclasses.replace(a_host(name, **draw(some(changes))), memberships=draw(memberships))
        for name in draw(st.lists(st.sampled_from(NAMES), unique=True))
    ]


requests = some(asked).map(lambda values: a_request(**values))


@given(worlds(), requests)
def test_every_filter_refuses_the_same(hosts: list[Host], request: RequestSpec) -> None:
    columns = HostColumns.of(hosts)
    for name, accept in FILTERS.items():
        if isinstance(accept, ColumnarFilter):
            refused = accept.refused(columns, request)
            alone = [accept(host, request) is not None for host in hosts]
            assert ([False] * len(hosts) if refused is None else refused.tolist()) == alone, name


@given(worlds(), requests)
def test_every_weigher_weighs_the_same(hosts: list[Host], request: RequestSpec) -> None:
    columns = HostColumns.of(hosts)
    for name, (weigh, _) in WEIGHERS.items():
        if isinstance(weigh, ColumnarWeigher):
            weighed = weigh.weighed(columns, request)
            alone = [weigh(host, request) for host in hosts]
            if weighed is None:
                assert len(set(alone)) <= 1, name
            else:
                assert weighed.tolist() == alone, name


def a_plain_one(weigh: Any) -> Weigher:
    def plain(host: Host, asked: RequestSpec) -> float:
        return float(weigh(host, asked))

    return absolute(plain) if weigh.absolute else plain


@given(worlds(), requests, st.integers(0, 5))
def test_plain_functions_choose_the_same(
    hosts: list[Host], request: RequestSpec, keep: int
) -> None:
    plain = {
        name: lambda host, asked, accept=accept: accept(host, asked)
        for name, accept in FILTERS.items()
    }
    weighers = {
        name: (a_plain_one(weigh), multiplier) for name, (weigh, multiplier) in WEIGHERS.items()
    }
    one = choose(hosts, request, FILTERS, WEIGHERS, keep)
    other = choose(hosts, request, plain, weighers, keep)
    assert (one.ranked, one.passed) == (other.ranked, other.passed)
    assert one.refused == other.refused
    assert {name: len(reasons) for name, reasons in one.refused.items()} == {
        name: len(list(reasons)) for name, reasons in other.refused.items()
    }


@given(worlds(), requests)
def test_every_filter_says_by_group_what_it_says_of_each_host(
    hosts: list[Host], request: RequestSpec
) -> None:
    columns = HostColumns.of(hosts)
    for name, accept in FILTERS.items():
        (refused,) = choose(columns, request, {name: accept}, {}, keep=0).refused.values() or [{}]
        said = {host.name: accept(host, request) for host in hosts}
        said = {host: reason for host, reason in said.items() if reason is not None}
        if not isinstance(refused, Refusals):
            assert said == {}, name
            continue
        stored = codec.loads(codec.dumps(refused.all()))
        groups = [codec.load(Refused, one) for one in stored]
        assert dict(pair for one in groups for pair in one.reasons()) == said, name
        assert dict(refused.pairs()) == dict(refused) == said, name
        for most in (1, 2):
            first = [refused.of(one, most) for one in refused.groups(most, first=True)]
            shown = dict(pair for one in first for pair in one.reasons())
            assert shown.items() <= said.items(), name
            assert len(shown) == min(most, len(said)), name


def test_all_that_ships_refuses_by_group() -> None:
    """Plain functions from outside work too, but cost a call for each of thousands of hosts."""
    plain = [name for name, accept in FILTERS.items() if getattr(accept, "by_group", None) is None]
    assert plain == [], "see scheduler/columnar/forms.py"


def test_all_that_ships_is_columnar() -> None:
    """Plain functions from outside work too, but cost a call for each of thousands of hosts."""
    plain = [name for name, one in WEIGHERS.items() if not isinstance(one[0], ColumnarWeigher)]
    plain += [name for name, one in FILTERS.items() if not isinstance(one, ColumnarFilter)]
    assert plain == [], "see scheduler/columnar/forms.py"


def test_reasons_are_read_when_they_are_wanted() -> None:
    read: list[str] = []

    def accept(host: Host, request: RequestSpec) -> str | None:
        read.append(host.name)
        return availability_zone(host, request)

    lazy = ColumnarFilter(accept, availability_zone.refused)
    hosts = [a_host(name) for name in NAMES]
    refused = choose(hosts, a_request(availability_zone="x"), {"zone": lazy}, {}).refused["zone"]
    assert (len(refused), read) == (4, [])
    two = dict(itertools.islice(refused.pairs(), 2))
    assert two == dict.fromkeys(("a", "b"), "in zone nova, x asked")
    assert refused["c"] == "in zone nova, x asked"
    assert "gone" not in refused
    assert read == ["a", "b", "c"]


# --- what agents report


@given(st.lists(st.lists(st.tuples(st.sampled_from(NAMES), some(changes)), max_size=3)))
def test_the_table_is_as_if_it_were_made_again(
    heartbeats: list[list[tuple[str, dict[str, Any]]]],
) -> None:
    table = HostTable()
    latest: dict[str, Host] = {}
    request = a_request(availability_zone="az1", networks=("vmbr0",))
    for number, heartbeat in enumerate(heartbeats):
        hosts = {name: a_host(name, **values) for name, values in heartbeat}
        facts = tuple(host.facts for host in hosts.values())
        table.update(Heartbeat("w", NOW, tuple(hosts), facts))
        latest |= {name: Host(host.facts) for name, host in hosts.items()}
        if number % 3 == 2:
            zone = AggregateFacts("u", "n", {"availability_zone": "az1"}, ("a",))
            table.update_aggregates(AllAggregates(number, (zone,) if number % 2 else ()))
        columns = table.all(NOW)
        assert {host.name: host.facts for host in columns} == {
            name: host.facts for name, host in latest.items()
        }
        remade = HostColumns.of(list(columns))
        for accept in FILTERS.values():
            if isinstance(accept, ColumnarFilter):
                one, other = accept.refused(columns, request), accept.refused(remade, request)
                assert (one is None) == (other is None)
                assert one is None or other is None or one.tolist() == other.tolist()


def test_hosts_without_a_heartbeat_are_silent_for_ever() -> None:
    timer = [0.0]
    table = HostTable(lambda: timer[0])
    table.update(Heartbeat("w", NOW, ("a",), tuple(a_host(n).facts for n in "ab")))
    table.note_failure("b", NOW)
    later = NOW + datetime.timedelta(seconds=600)
    timer[0] = 600.0
    one, other = table.all(later)
    assert (one.silent_seconds, one.failures) == (600.0, 0.0)
    assert (other.silent_seconds, other.failures) == (float("inf"), 0.5)


def test_no_host_is_silent_for_longer_than_the_bus_was_up() -> None:
    up_seconds = [float("inf"), 600.0, 20.0, 0.0]
    timer = [0.0]
    table = HostTable(lambda: timer[0], bus_up_seconds=lambda: up_seconds.pop(0))
    table.update(Heartbeat("w", NOW, ("a",), tuple(a_host(n).facts for n in "ab")))
    timer[0] = 100.0
    found = [[host.silent_seconds for host in table.all(NOW)] for _ in range(4)]
    assert found == [[silent, float("inf")] for silent in (100.0, 100.0, 20.0, 0.0)]


def test_stale_values_do_not_pile_up() -> None:
    kinds: Kinds | None = Kinds.of(["ok"])
    rounds = 0
    while kinds is not None:
        rounds += 1
        kinds = kinds.with_rows(1, {0: f"silent for {rounds} s"})
    assert rounds < 100


# --- what placement counts


def test_what_placement_offers_gets_its_numbers() -> None:
    table = HostTable()
    table.update(Heartbeat("w", NOW, (), tuple(a_host(name).facts for name in NAMES)))
    offered = [
        Candidates(
            ["uuid-c", "unknown", "uuid-a"],
            {"VCPU": Usage([8, 9, 4], [1, 9, 2])},
            [frozenset({"HW_A"}), frozenset(), frozenset()],
        ),
        Candidates(["uuid-d"], {"MEMORY_MB": Usage([512], [0])}, [frozenset({"HW_B"})]),
    ]
    columns = table.all(NOW).counted(offered[:1], everything=False)
    assert {host.name: (host.free("VCPU"), host.traits) for host in columns} == {
        "a": (2, frozenset()),
        "c": (7, {"HW_A"}),
    }
    whole = table.all(NOW).counted(offered, everything=True)
    assert {host.name: (host.free("VCPU"), host.free("MEMORY_MB")) for host in whole} == {
        "a": (2, 0),
        "b": (0, 0),
        "c": (7, 0),
        "d": (0, 512),
    }
    assert [host.name for host in whole.without(["a", "gone", "d"])] == ["b", "c"]


def test_a_draft_leaves_the_fleet_as_it_is() -> None:
    columns = HostColumns.of([a_host("a", free_mib=1000)])
    draft = columns.draft(["CUSTOM_GPU"])
    draft.take(0, {"MEMORY_MB": 400, "CUSTOM_GPU": 1})
    assert (columns.host(0).free("MEMORY_MB"), draft.host(0).free("MEMORY_MB")) == (1000, 600)
    assert draft.host(0).free("CUSTOM_GPU") == -1
