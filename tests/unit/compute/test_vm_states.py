"""Which VMs that a worker saw are published, and when."""

from __future__ import annotations

import datetime
from dataclasses import replace

from common.messages.facts import ClusterFacts, VmFacts, VmStates
from compute.hypervisor.port import Observation
from compute.observed.vm_states import REPEAT_SECONDS, VmChanges

START = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)


def a_look(*vms: VmFacts, whole: bool = True, nodes: tuple[str, ...] = ("a", "b")) -> Observation:
    return Observation(ClusterFacts("c1", "9", True), (), vms, nodes, whole)


def vm(vmid: int, node: str = "a", power: int = 1) -> VmFacts:
    return VmFacts(vmid, node, power)


class Worker:
    """A vm_changes and its clock."""

    def __init__(self, **options: int) -> None:
        self.vm_changes, self.seconds = VmChanges("w1", **options), 0.0

    def look(self, *vms: VmFacts, whole: bool = True) -> bool:
        began = START + datetime.timedelta(seconds=self.seconds)
        return self.vm_changes.update(a_look(*vms, whole=whole), began)

    def reported(self, seconds: float = 0.0) -> list[VmStates]:
        self.seconds += seconds
        return self.vm_changes.take(self.seconds)

    def settle(self, *vms: VmFacts) -> None:
        """Look and publish until there is nothing more to publish."""
        for _ in range(3):
            self.look(*vms)
            self.reported(REPEAT_SECONDS)
        assert self.reported(REPEAT_SECONDS) == []


def test_all_is_published_after_the_first_look_and_absence_only_after_the_second() -> None:
    worker = Worker()
    assert worker.look(vm(1), vm(2))
    (first,) = worker.reported()
    assert (first.vms, first.whole, first.low) == ((vm(1), vm(2)), False, 0)
    assert first.high is not None
    assert first.high > 999_999_999
    assert worker.look(vm(1), vm(2))
    (second,) = worker.reported()
    assert (second.whole, second.vms) == (True, (vm(1), vm(2)))
    assert not worker.look(vm(1), vm(2))


def test_only_changes_are_reported_and_once_more_later() -> None:
    worker = Worker()
    worker.settle(vm(1), vm(2))
    assert worker.look(vm(1), vm(2, power=4))
    (news,) = worker.reported()
    assert (news.vms, news.gone, news.low) == ((vm(2, power=4),), (), None)
    worker.look(vm(1), vm(2, power=4))
    assert worker.reported() == []
    (again,) = worker.reported(REPEAT_SECONDS)
    assert again.vms == (vm(2, power=4),)
    assert worker.reported(REPEAT_SECONDS) == []


def test_a_vm_is_gone_after_two_looks_at_the_whole_cluster() -> None:
    worker = Worker()
    worker.settle(vm(1), vm(2))
    worker.look(vm(1))
    assert all(not one.gone for one in worker.reported())
    worker.look(vm(1))
    (news,) = worker.reported()
    assert (news.gone, news.whole) == ((2,), True)
    (again,) = worker.reported(REPEAT_SECONDS)
    assert again.gone == (2,)
    assert worker.reported(REPEAT_SECONDS) == []


def test_nothing_is_gone_while_part_of_the_cluster_is_away() -> None:
    worker = Worker()
    worker.settle(vm(1), vm(2))
    for _ in range(4):
        worker.look(vm(1), whole=False)
        assert all(not one.gone and not one.whole for one in worker.reported(REPEAT_SECONDS))
    worker.look(vm(1))
    assert all(not one.gone for one in worker.reported())
    worker.look(vm(1))
    everything = worker.reported()
    assert [one.whole for one in everything] == [True]
    assert 2 not in {one.vmid for one in everything[0].vms}


def test_publishing_everything_in_between_hides_no_vm_that_is_gone() -> None:
    worker = Worker()
    worker.settle(vm(1), vm(2))
    worker.look(vm(1))
    worker.vm_changes.publish_all()
    worker.reported()
    worker.look(vm(1))
    (news,) = worker.reported()
    assert news.gone == (2,)
    # Nor does it count as the second report of its absence.
    worker.vm_changes.publish_all()
    (everything,) = worker.reported()
    assert everything.whole
    (again,) = worker.reported(REPEAT_SECONDS)
    assert again.gone == (2,)
    assert worker.reported(REPEAT_SECONDS) == []


def test_everything_leaves_no_gap_and_is_split() -> None:
    worker = Worker(vms_per_message=2)
    worker.look(*(vm(number) for number in (5, 9, 12)))
    parts = worker.reported()
    assert [tuple(one.vmid for one in part.vms) for part in parts] == [(5, 9), (12,)]
    assert (parts[0].low, parts[0].high, parts[1].low) == (0, 9, 10)
    worker.settle(vm(5))
    worker.look(vm(5), vm(6), vm(7), vm(8))
    assert [len(part.vms) for part in worker.reported()] == [2, 1]


def test_a_new_listener_hears_everything() -> None:
    worker = Worker()
    worker.settle(vm(1))
    worker.vm_changes.publish_all()
    (everything,) = worker.reported()
    assert (everything.vms, everything.low) == ((vm(1),), 0)


def test_a_vm_that_is_missed_once_is_in_doubt_not_gone() -> None:
    worker = Worker()
    worker.settle(vm(1), vm(2))
    worker.look(vm(1))
    worker.vm_changes.publish_all()
    (everything,) = worker.reported()
    assert everything.vms == (vm(1), VmFacts(2, "", 0))


def test_everything_is_one_report_that_can_be_divided() -> None:
    worker = Worker(vms_per_message=2)
    vms = tuple(vm(number) for number in (3, 1, 2))
    worker.look(*vms)
    everything = worker.vm_changes.everything("c1")
    assert everything is not None
    assert (everything.vms, everything.low) == (tuple(vm(number) for number in (1, 2, 3)), 0)
    parts = list(replace(everything, operations=(7,)).parts(2))
    assert [(one.low, one.vms, one.operations) for one in parts] == [
        (0, (vm(1), vm(2)), ()),
        (3, (vm(3),), (7,)),
    ]
    assert parts[-1].high == everything.high


def test_of_a_cluster_that_another_worker_carries_by_now_there_is_nothing() -> None:
    worker = Worker()
    worker.look(vm(1))
    worker.vm_changes.forget("c1")
    assert worker.vm_changes.everything("c1") is None
