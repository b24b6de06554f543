"""One look at the other nodes' storages serves all who asked before it began, and nobody else."""

from __future__ import annotations

import logging
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

from common.messages.reports import Category
from compute.hypervisor.port import Cancelled
from compute.hypervisor.proxmox.api.client import Client
from compute.hypervisor.proxmox.api.errors import ApiError
from compute.hypervisor.proxmox.cluster.stray_volumes import READERS, Place, StrayVolumes
from tests.unit.compute.fakes import FakeWork

PLACES = [("pve2", "local"), ("pve3", "local")]
SECONDS = 10


class Nodes(Client):
    """Their storages; a listing waits for its gate, and is counted when it begins."""

    def __init__(self) -> None:
        self.images: dict[Place, list[int]] = {}
        self.gates: dict[Place, threading.Event] = {}
        self.broken: set[Place] = set()
        self.began = threading.Semaphore(0)
        self.asked: list[tuple[Place, int | None]] = []
        self.at_once = self.most_at_once = 0
        self._lock = threading.Lock()

    def get(self, path: str, **params: Any) -> Any:
        vmid: int | None = params.get("vmid")
        _, node, _, storage, _ = path.split("/")
        place = (node, storage)
        with self._lock:
            self.asked.append((place, vmid))
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
            listed = [
                {"volid": f"{storage}:{one}/d", "vmid": one} for one in self._images_at(place)
            ]
        self.began.release()
        assert self.gates.get(place, _open()).wait(SECONDS)
        with self._lock:
            self.at_once -= 1
        if place in self.broken:
            raise ApiError(Category.NODE_UNHEALTHY, "no route to host")
        return [one for one in listed if vmid in (None, one["vmid"])]

    def _images_at(self, place: Place) -> list[int]:
        return self.images.get(place, [])


def _open() -> threading.Event:
    gate = threading.Event()
    gate.set()
    return gate


def looks(nodes: Nodes, patience_seconds: float = SECONDS) -> StrayVolumes:
    return StrayVolumes(nodes, patience_seconds)


def test_one_alone_asks_for_its_own_and_drops_those_of_others() -> None:
    nodes = Nodes()
    nodes.images = {PLACES[0]: [100, 101]}
    found = looks(nodes).listed(FakeWork(), 101, PLACES)
    assert found == {PLACES[0]: [{"volid": "local:101/d", "vmid": 101}], PLACES[1]: []}
    assert sorted(nodes.asked) == [(place, 101) for place in PLACES]


def test_nobody_is_asked_where_there_is_no_place() -> None:
    nodes = Nodes()
    assert looks(nodes).listed(FakeWork(), 101, []) == {}
    assert nodes.asked == []


def test_who_asks_during_a_look_is_served_by_the_next_one_with_all_others() -> None:
    nodes = Nodes()
    gate = nodes.gates[PLACES[0]] = threading.Event()
    strays = looks(nodes)
    with ThreadPoolExecutor(READERS) as pool:
        first = pool.submit(strays.listed, FakeWork(), 100, PLACES)
        assert nodes.began.acquire(timeout=SECONDS)
        assert nodes.began.acquire(timeout=SECONDS)
        # Begun before these ask: what it lists is too old for them.
        nodes.images = {place: [101, 102] for place in PLACES}
        waits = [Waiting() for _ in range(5)]
        others = [
            pool.submit(strays.listed, one, 101 + number, PLACES)
            for number, one in enumerate(waits)
        ]
        assert all(one.waits.wait(SECONDS) for one in waits)
        gate.set()
        assert first.result(SECONDS) == {place: [] for place in PLACES}
        found = [[len(one) for one in other.result(SECONDS).values()] for other in others]
    assert found == [[1, 1], [1, 1], [0, 0], [0, 0], [0, 0]]
    assert sorted(nodes.asked[2:], key=str) == [(place, None) for place in PLACES]


class Waiting(FakeWork):
    """Sets `waits` when it waits for others."""

    def __init__(self) -> None:
        super().__init__()
        self.waits = threading.Event()

    def check(self) -> None:
        self.waits.set()


class Overtaken(FakeWork):
    """Is cancelled while it waits."""

    def check(self) -> None:
        raise Cancelled


def test_who_gives_up_waiting_leaves_nobody_waiting() -> None:
    nodes = Nodes()
    gate = nodes.gates[PLACES[0]] = threading.Event()
    strays = looks(nodes)
    with ThreadPoolExecutor(READERS) as pool:
        first = pool.submit(strays.listed, FakeWork(), 100, PLACES)
        assert nodes.began.acquire(timeout=SECONDS)
        with pytest.raises(Cancelled):
            strays.listed(Overtaken(), 101, PLACES)
        gate.set()
        first.result(SECONDS)
    assert strays.listed(FakeWork(), 102, PLACES) == {place: [] for place in PLACES}


def test_few_are_listed_at_the_same_time() -> None:
    nodes = Nodes()
    places = [(f"pve{number}", "local") for number in range(4 * READERS)]
    gate = threading.Event()
    nodes.gates = dict.fromkeys(places, gate)
    with ThreadPoolExecutor(1) as pool:
        found: Future[Any] = pool.submit(looks(nodes).listed, FakeWork(), 100, places)
        for _ in range(READERS):
            assert nodes.began.acquire(timeout=SECONDS)
        assert len(nodes.asked) == READERS
        gate.set()
        assert len(found.result(SECONDS)) == len(places)
    assert nodes.most_at_once <= READERS


def test_what_can_t_be_listed_is_missing_and_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    nodes = Nodes()
    nodes.broken = {PLACES[1]}
    strays = looks(nodes)
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            assert strays.listed(FakeWork(), 100, PLACES) == {PLACES[0]: []}
    assert [one.getMessage() for one in caplog.records] == [
        "Storage local on pve3 can't be listed: no route to host"
    ]


def test_a_node_that_hangs_is_waited_for_once() -> None:
    nodes = Nodes()
    gate = nodes.gates[PLACES[1]] = threading.Event()
    strays = looks(nodes, 0.5)
    for _ in range(3):
        assert strays.listed(FakeWork(), 100, PLACES) == {PLACES[0]: []}
    assert [place for place, _ in nodes.asked].count(PLACES[1]) == 1
    late = strays._late[PLACES[1]]
    gate.set()
    late.result(SECONDS)
    assert strays.listed(FakeWork(), 100, PLACES) == {place: [] for place in PLACES}


def test_many_that_hang_keep_the_others_waiting_once() -> None:
    nodes = Nodes()
    gate = threading.Event()
    hung = [(f"pve{number:02}", "local") for number in range(READERS)]
    nodes.gates = dict.fromkeys(hung, gate)
    strays = looks(nodes, 0.5)
    places = [*hung, ("pve99", "local")]
    assert strays.listed(FakeWork(), 100, places) == {}
    assert strays.listed(FakeWork(), 100, places) == {places[-1]: []}
    gate.set()
