"""What conductors show of the record: counted in a few statements, whatever there is."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

from common import clock
from conductor.record_metrics import SHOWN, samples
from conductor.store.monitoring import Record
from db import schema
from db.reads import metrics, monitoring
from db.reads.ledger import waiting
from tests.fixtures.compute import NOW, ComputeApi, a_full_server, a_host, a_service, uuid_of
from tests.fixtures.listings import Row, counted
from tests.functional.api_compute.conftest import MakeApi
from tests.functional.api_compute.test_metrics import an_operation

pytestmark = pytest.mark.database

DOWN_SECONDS = 60.0


def read(api: ComputeApi) -> Record:
    since = clock.after(-DOWN_SECONDS)
    with api.reader.connect() as connection:
        return Record(
            NOW,
            metrics.read(connection, since),
            monitoring.operations(connection),
            monitoring.Clusters().read(connection, since),
            monitoring.waiting(connection),
            monitoring.waiting_scopes(connection),
            waiting.more_hosts_for(connection, waiting.wanted(connection)),
        )


def an_open(number: int, **changes: Any) -> Row:
    table, values = an_operation(number, "running", 0)
    now = clock.utcnow()
    steady = {"deadline": clock.after(3600), "updated_at": now, "started_at": now}
    return table, values | steady | changes


def leased(owner: str, seconds: float) -> dict[str, Any]:
    return {"lease_owner": owner, "lease_expires_at": clock.after(seconds)}


def test_operations_are_counted_by_action_lease_and_whether_they_go_on(make: MakeApi) -> None:
    long_ago = clock.after(-3600)
    api = make(
        an_open(1, **leased("c1", 60)),
        an_open(2, **leased("compute:w1", 60)),
        # its lease has just run out: somebody will look soon
        an_open(3, action="delete", **leased("compute:w1", -5)),
        # nobody took it over
        an_open(4, action="delete", **leased("c2", -3600)),
        # past its deadline, and somebody still works on it
        an_open(5, action="resize", deadline=long_ago, **leased("c1", 60)),
        # it waits for its time
        an_open(6, state="queued", not_before=clock.after(300), updated_at=long_ago),
        # it is due
        an_open(7, state="queued", not_before=long_ago, updated_at=long_ago),
        # that of a held server waits for a person
        an_open(8, state="queued", not_before=long_ago, deadline=long_ago),
        a_full_server(1, operation_id=8, held=True),
        an_open(9, state="done", deadline=long_ago),
    )
    found = read(api).operations
    assert found.by_action == {
        ("create", "running"): 2,
        ("create", "queued"): 3,
        ("delete", "queued"): 2,
        ("resize", "running"): 1,
    }
    assert found.stuck == {"delete": 1, "resize": 1, "create": 1}
    assert found.leases == {
        ("conductor", "held"): 2,
        ("agent", "held"): 1,
        ("agent", "expired"): 1,
        ("conductor", "expired"): 1,
    }


def test_hosts_and_what_they_have_are_summed_by_cluster(make: MakeApi) -> None:
    facts = {"cpu_load": 0.5, "cpu_allocation_ratio": 2.0, "reserved_memory_mib": 1024}
    api = make(
        a_host("a", facts=facts),
        a_service("a"),
        a_host("b", facts={"vcpus": 16}),
        a_service("b"),
        a_host("c", facts={"healthy": False}),
        a_service("c"),
        a_host("d"),
        a_service("d", disabled=True),
        a_host("e"),
        a_service("e", last_seen_at=clock.after(-3600)),
        a_host("f"),
        a_service("f", forced_down=True),
        a_full_server(1, host="a", vcpus=2, memory_mib=512, disk_gib=3),
        a_full_server(2, host="b", vcpus=1, memory_mib=256, disk_gib=1),
        a_full_server(3, host="a", deleted_at=NOW),
        a_full_server(4, host=None, cluster=None),
    )
    cluster = read(api).clusters["c1"]
    # with the host of every test of the API
    assert cluster.hosts == {"up": 3, "disabled": 1, "unhealthy": 1, "down": 2}
    assert cluster.capacity["vcpus"] == 8 * 2 + 16 + 8
    assert cluster.largest["vcpus"] == 16
    assert cluster.capacity["memory_mib"] == 3 * 16_384 - 1024
    assert cluster.claimed == {"vcpus": 3, "memory_mib": 768, "disk_gib": 4}
    assert cluster.used["vcpus"] == 4
    assert cluster.used["memory_mib"] == 5 * 4096


def test_facts_are_read_again_when_they_changed(make: MakeApi) -> None:
    long_ago = clock.after(-3600)
    api = make(a_host("a", updated_at=long_ago), a_service("a"))
    clusters, since = monitoring.Clusters(), clock.after(-DOWN_SECONDS)

    def vcpus() -> float:
        with api.reader.connect() as connection:
            return clusters.read(connection, since)["c1"].capacity["vcpus"]

    def store(vcpus: int, **values: Any) -> None:
        facts = a_host("a", facts={"vcpus": vcpus})[1]["facts"]
        mine = schema.hosts.update().where(schema.hosts.c.host == "a")
        with api.writer.begin() as connection:
            connection.execute(mine.values(facts=facts, **values))

    assert vcpus() == 16
    store(100)
    assert vcpus() == 16, "nobody has said that it changed"
    store(100, updated_at=clock.utcnow())
    assert vcpus() == 108
    with api.writer.begin() as connection:
        connection.execute(schema.hosts.delete().where(schema.hosts.c.host == "a"))
    assert vcpus() == 8


def a_waiting(number: int, zone: str | None = None) -> Row:
    return (
        schema.waiting_builds,
        {
            "operation_id": number,
            "server_uuid": uuid_of(number),
            "project_id": "demo",
            "needs": {"VCPU": 1},
            "zone": zone,
            "since": NOW,
            "until": NOW,
            "refused": {},
            "tried_at": NOW,
            "overtaken": 0,
        },
    )


def test_servers_that_wait_for_room_are_summed_by_zone(make: MakeApi) -> None:
    size = {"vcpus": 2, "memory_mib": 512, "disk_gib": 3, "vm_state": "building"}
    api = make(
        a_full_server(1, host=None, operation_id=1, **size),
        a_full_server(2, host=None, operation_id=2, **size),
        a_full_server(3, host=None, operation_id=3, **size),
        a_full_server(4, host="a", operation_id=4, **size),
        a_full_server(5, host=None, operation_id=9, **size),
        a_full_server(6, host=None, operation_id=6, deleted_at=NOW, **size),
        *(a_waiting(number) for number in (1, 4, 5, 6)),
        *(a_waiting(number, "z1") for number in (2, 3)),
    )
    found = samples(read(api))
    assert found["micronova_waiting_servers"] == {("",): 1, ("z1",): 2}
    needs = found["micronova_waiting_resources"]
    assert needs["z1", "vcpus"] == 4
    assert needs["z1", "memory_bytes"] == 1024 * 2**20
    assert needs["", "disk_bytes"] == 3 * 2**30
    since = found["micronova_waiting_oldest_timestamp_seconds"]
    assert since == {("",): NOW.timestamp(), ("z1",): NOW.timestamp()}


def test_those_that_wait_are_counted_by_flavor_and_traits(make: MakeApi) -> None:
    """For a program that adds hosts."""
    specs = {"trait:CUSTOM_FAST": "required", "trait:CUSTOM_SLOW": "forbidden"}
    fast = {"name": "fast", "extra_specs": specs}
    waits = {"host": None, "vm_state": "building"}
    api = make(
        a_full_server(1, operation_id=1, flavor={"name": "plain"}, **waits),
        a_full_server(2, operation_id=2, flavor=fast, **waits),
        a_full_server(3, operation_id=3, flavor=fast, **waits),
        *(an_open(number, state="queued") for number in (1, 2, 3)),
        a_waiting(1),
        *(a_waiting(number, "az1") for number in (2, 3)),
        *(a_service(name) for name in "ab"),
        a_host("a", facts={"traits": ["CUSTOM_FAST"]}),
        a_host("b"),
    )
    found = samples(read(api))
    assert found["micronova_waiting_servers_by_scope"] == {
        ("", "plain", ""): 1,
        ("az1", "fast", "CUSTOM_FAST,!CUSTOM_SLOW"): 2,
    }
    fast_kind, plain_kind = ("az1", "a", "CUSTOM_FAST"), ("az1", "b", "")
    assert found["micronova_waiting_more_hosts_take"] == {fast_kind: 3, plain_kind: 1}
    assert found["micronova_waiting_more_hosts"] == {fast_kind: 1, plain_kind: 1}


def test_every_metric_of_the_record_has_its_labels(make: MakeApi) -> None:
    api = make(a_full_server(1), an_open(1, **leased("c1", 60)))
    found = samples(read(api))
    labels = {one.name: one.labels for one in SHOWN}
    assert found.keys() == labels.keys()
    for name, values in found.items():
        assert all(len(key) == len(labels[name]) for key in values), name
    assert found["micronova_servers"] == {("active",): 1}
    memory = found["micronova_cluster_capacity"]["c1", "memory_bytes"]
    assert memory == 16_384 * 2**20
    read_at = found["micronova_record_read_timestamp_seconds"][()]
    assert datetime.datetime.fromtimestamp(read_at, datetime.UTC) == NOW


def test_the_statements_are_few_whatever_there_is(make: MakeApi) -> None:
    api = make(*(a_full_server(number) for number in range(1, 30)))
    with counted(api.reader) as statements:
        read(api)
        assert statements() == 16
