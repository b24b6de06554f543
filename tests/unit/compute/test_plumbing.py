"""Pool, outbox, cache and publisher."""

from __future__ import annotations

import contextlib
import dataclasses
import threading
from typing import Any

import pytest

from common import clock, codec
from common.context import internal
from common.errors import Conflict, Unavailable
from common.messages.commands import Destroy
from common.messages.facts import ClusterFacts
from common.messages.reports import Category, Failure, Outcome, Report, Step
from common.resources.aggregates import Ratios
from common.resources.states import ResourceType
from compute.commands.job import Job
from compute.hypervisor.port import Abandoned
from compute.observed.facts import HostFactsCache, is_news
from compute.worker.publisher import MANY, Publisher
from compute.worker.reporter import merged, sendable
from compute.worker.workpool import WorkPool
from placement.messages import Provider
from tests.unit.compute.fakes import FakeLedger, a_build, some_facts

NOW = clock.utcnow()
CLUSTER = ClusterFacts("c1", "9.2", True)


def job_of(command: Any) -> Job:
    return Job(command, internal(), lambda report: None, FakeLedger())


def a_destroy(operation_id: int) -> Destroy:
    build = a_build()
    return Destroy(
        operation_id, 1, ResourceType.SERVER, build.resource_id, build.placed, build.deadline
    )


def test_jobs_of_one_vmid_run_one_after_the_other() -> None:
    order: list[int] = []
    begun, go, done = threading.Event(), threading.Event(), threading.Event()

    def run(job: Job) -> None:
        begun.set()
        assert go.wait(60)
        order.append(job.command.operation_id)
        if len(order) == 3:
            done.set()

    pool = WorkPool(4, run)
    builds = [job_of(a_build(operation_id=number)) for number in (1, 2)]
    assert all(pool.submit(job) for job in builds)
    assert not pool.submit(job_of(a_build(operation_id=1, attempt=2)))
    assert builds[0].working().attempt == 2
    # A destroy may bear the operation of the build that it overtakes.
    assert pool.submit(job_of(a_destroy(1)))
    assert all(job.cancelled for job in builds)
    assert len(pool.working()) == 3
    assert begun.wait(60)
    (queue,) = pool.queues().values()
    assert (queue.running, queue.waiting) == (1, 2)
    assert queue.oldest_waiting_seconds is not None
    go.set()
    assert done.wait(60)
    assert order == [1, 2, 1]
    assert pool.stop(5)
    assert pool.queues() == {}


def test_a_stopped_pool_abandons_what_waits() -> None:
    started, seen = threading.Event(), threading.Event()

    def run(job: Job) -> None:
        started.set()
        with contextlib.suppress(Abandoned):
            job.pause(30)
        seen.set()

    pool = WorkPool(1, run)
    pool.submit(job_of(a_build()))
    assert started.wait(60)
    assert pool.stop(5)
    assert seen.is_set()


def a_report(sequence: int, outcome: Outcome | None = None, **more: Any) -> Report:
    step = Step(f"s{sequence}", sequence, NOW, **more)
    return Report(1, 1, ResourceType.SERVER, "uuid", "pve1", (step,), outcome)


def test_reports_that_gathered_become_one() -> None:
    reports = merged(
        [
            a_report(0),
            a_report(0, result="Success"),
            dataclasses.replace(a_report(5), operation_id=2),
            a_report(1, Outcome(True)),
            a_report(0),
        ]
    )
    assert [(one.operation_id, len(one.steps)) for one in reports] == [(1, 2), (2, 1), (1, 1)]
    assert reports[0].steps[0].result == "Success"
    assert reports[0].outcome == Outcome(True)
    assert reports[2].outcome is None


def test_whatever_a_hypervisor_says_can_be_sent() -> None:
    failure = Failure(Category.CREATION_FAILED, "nul \0", log_tail=("lone \ud83d", "ß"))
    odd = dataclasses.replace(a_report(1), outcome=Outcome(False, failure=failure))
    for reports in ([odd], [a_report(0), dataclasses.replace(odd, outcome=Outcome(True))]):
        sent = codec.loads(codec.dumps(sendable(reports)))
        assert [codec.load(Report, one).steps for one in sent] == [one.steps for one in reports]
    (found,) = [codec.load(Report, one).outcome for one in sendable([odd])]
    assert found is not None
    assert found.failure is not None
    assert (found.failure.message, found.failure.log_tail) == ("nul \ufffd", ("lone \ufffd", "ß"))
    assert found.failure.category is Category.CREATION_FAILED
    nul = dataclasses.replace(a_report(0), resource_id="a\0b")
    assert codec.load(Report, sendable([nul])[0]).resource_id == "a\ufffdb"


def test_noise_is_no_news() -> None:
    facts = some_facts(cpu_load=0.1, memory_used_mib=1000)
    assert is_news(None, facts)
    assert not is_news(facts, dataclasses.replace(facts, observed_at=NOW, cpu_load=0.15))
    assert is_news(facts, dataclasses.replace(facts, cpu_load=0.5))
    assert is_news(facts, dataclasses.replace(facts, memory_used_mib=9000))
    assert is_news(facts, dataclasses.replace(facts, healthy=False))
    assert is_news(facts, dataclasses.replace(facts, images=("x",)))


def test_the_board_gives_each_fact_out_once() -> None:
    cache = HostFactsCache()
    facts = some_facts()
    assert cache.update([facts], CLUSTER) == [facts]
    assert cache.take() == ((facts,), (CLUSTER,))
    assert cache.take() == ((), ())
    assert cache.update([facts], CLUSTER) == []
    cache.publish_all()
    assert cache.take() == ((facts,), (CLUSTER,))
    [down] = cache.unreachable("c1", "No endpoint answers.")
    assert (down.healthy, down.health) == (False, "No endpoint answers.")
    assert cache.unreachable("c1", "No endpoint answers.") == []
    assert cache.names() == ("pve1",)


def test_a_node_that_left_is_unhealthy() -> None:
    cache = HostFactsCache()
    cache.update([some_facts()], CLUSTER)
    cache.take()
    [gone] = cache.update([], CLUSTER)
    assert not gone.healthy


class FakePlacement:
    def __init__(self) -> None:
        self.failures = 1
        self.updated = threading.Event()
        self.present = frozenset({"COMPUTE_STATUS_DISABLED", "HW_CPU_X86_AVX"})
        self.kept: Any = None
        self.classes: list[str] = []
        self.promised: set[str] = set()
        self.listed: list[Provider] = []
        self.added: dict[str, frozenset[str]] = {}
        self.taken: set[str] = set()
        self.bulk: int | None = None

    def providers(self) -> list[Provider]:
        return self.listed

    def add_provider(self, uuid: str, name: str, inventories: Any, traits: Any) -> None:
        if uuid in self.taken:
            raise Conflict("there is one")
        self.added[uuid] = frozenset(traits)

    def add_providers(self, providers: Any) -> frozenset[str] | None:
        if self.bulk is None:
            return None
        self.added.update({one.uuid: frozenset(one.traits) for one in providers[self.bulk :]})
        return frozenset(self.added)

    def ensure_provider(self, uuid: str, name: str) -> None:
        if self.failures:
            self.failures -= 1
            raise Unavailable

    def ensure_resource_class(self, name: str) -> None:
        self.classes.append(name)

    def set_inventory(self, uuid: str, inventories: Any) -> None:
        if self.promised - set(inventories):
            raise Conflict("in use")
        self.kept = inventories

    def inventories(self, uuid: str) -> Any:
        return self.kept

    def change_traits(self, uuid: str, change: Any) -> None:
        self.present = frozenset(change(self.present))
        self.updated.set()


def test_devices_that_are_gone_and_promised_are_nobody_elses() -> None:
    placement = FakePlacement()
    placement.failures = 0
    publisher = Publisher(placement, retry_seconds=0.01)
    publisher.start()
    publisher.publish([some_facts(devices={"gpu": 2})])
    assert placement.updated.wait(60)
    assert placement.classes == ["CUSTOM_PCI_GPU"]
    placement.updated.clear()
    placement.promised = {"CUSTOM_PCI_GPU"}
    publisher.publish([some_facts(memory_mib=1024, traits=("CUSTOM_NEW",))])
    assert placement.updated.wait(60)
    assert placement.kept["MEMORY_MB"]["total"] == 1024
    record = placement.kept["CUSTOM_PCI_GPU"]
    assert (record["total"], record["reserved"]) == (2, 2)
    placement.updated.clear()
    publisher.publish([some_facts(devices={"gpu": 2})])  # it is back
    assert placement.updated.wait(60)
    publisher.stop()
    record = placement.kept["CUSTOM_PCI_GPU"]
    assert (record["total"], record["reserved"]) == (2, 0)


def test_what_placement_did_not_take_is_reported_again() -> None:
    placement = FakePlacement()
    publisher = Publisher(placement, retry_seconds=0.01)
    publisher.start()
    publisher.publish([some_facts()])
    assert placement.updated.wait(60)
    publisher.stop()
    assert placement.kept["VCPU"]["total"] == 8
    assert "COMPUTE_STATUS_DISABLED" in placement.present
    assert "HW_CPU_X86_AVX" not in placement.present


@pytest.mark.parametrize("bulk", [None, 1])
def test_many_hosts_are_created_without_a_look_at_each(bulk: int | None) -> None:
    placement = FakePlacement()
    placement.failures, placement.bulk = 0, bulk
    hosts = [some_facts(host=f"n{number}", uuid=f"u{number}") for number in range(MANY + 2)]
    placement.listed, placement.taken = [Provider("u0", "n0", 3)], {"u1"}
    publisher = Publisher(placement, retry_seconds=0.01)
    publisher.publish(hosts)
    assert publisher._publish_all() == []
    assert placement.added.keys() == {host.uuid for host in hosts} - {"u0", "u1"}
    assert all("COMPUTE_STATUS_DISABLED" not in traits for traits in placement.added.values())
    assert placement.kept["VCPU"]["total"] == 8  # of those that were there


def test_of_many_doubted_hosts_those_are_published_again_that_placement_lacks() -> None:
    placement = FakePlacement()
    placement.failures, placement.bulk = 0, 0
    hosts = [some_facts(host=f"n{number}", uuid=f"u{number}") for number in range(MANY)]
    publisher = Publisher(placement, retry_seconds=0.01)
    publisher.publish(hosts)
    assert publisher._publish_all() == []
    assert placement.added.keys() == {host.uuid for host in hosts}
    placement.added.clear()
    placement.listed = [Provider(host.uuid, host.host, 1) for host in hosts[1:]]
    publisher.publish_again(hosts)
    assert publisher._publish_all() == []
    assert placement.added.keys() == {"u0"}
    assert not placement.updated.is_set(), "those that are there were not touched"


def test_a_provider_that_is_gone_is_made_again_when_somebody_asks() -> None:
    placement = FakePlacement()
    publisher = Publisher(placement, retry_seconds=0.01)
    publisher.start()
    publisher.publish([some_facts()])
    assert placement.updated.wait(60)
    placement.updated.clear()
    placement.kept, placement.present = {}, frozenset()
    publisher.publish_again([some_facts()])
    assert placement.updated.wait(60)
    publisher.stop()
    assert placement.kept["VCPU"]["total"] == 8


def test_aggregates_say_how_much_may_be_promised() -> None:
    cache = HostFactsCache()
    facts = some_facts()
    cache.update([facts], CLUSTER)
    ours, more = facts.cpu_allocation_ratio, {"cpu_allocation_ratio": 16.0}
    [news] = cache.update_ratios(Ratios(3, {facts.host: more, "another": more}))
    assert (news.cpu_allocation_ratio, news.vcpus) == (16.0, facts.vcpus)
    assert cache.update_ratios(Ratios(3, {})) == cache.update_ratios(Ratios(2, {})) == []
    cache.update([dataclasses.replace(facts, cpu_load=1.0)], CLUSTER)
    assert [one.cpu_allocation_ratio for one in cache.all()] == [16.0]
    [news] = cache.update_ratios(Ratios(4, {}))
    assert (
        [one.cpu_allocation_ratio for one in cache.all()] == [ours] == [news.cpu_allocation_ratio]
    )
