"""Agents examine their clusters beside their work, and say what they find."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from common.metrics import table
from compute import drivers
from compute.doctor import rounds as rounds_of
from compute.doctor.rounds import Rounds
from tests.functional.compute.conftest import Worker, configuration, granted, proxmox_text
from tests.functional.simulator_fixture import RunningSimulator
from tests.functional.waiting import eventually

#: for the cluster, for each node, and for each endpoint
MOST_CALLS = 27


@pytest.fixture(autouse=True)
def _fresh(simulator: RunningSimulator) -> None:
    simulator.control("POST", "reset")


class Made:
    """A worker with its rounds."""

    def __init__(self, folder: Path, simulator: RunningSimulator, **options: str) -> None:
        conf = configuration(folder, proxmox_text(simulator, **options))
        hypervisors = drivers.hypervisors(conf)
        made = drivers.rounds(conf, hypervisors)
        assert made is not None
        self.rounds: Rounds = made
        self.worker = Worker(conf, hypervisors, made)

    def codes(self) -> set[str]:
        return {one.code for one in self.rounds.findings.get("c1", ())}


@pytest.fixture
def made(simulator: RunningSimulator, tmp_path: Path) -> Iterator[Made]:
    made = Made(tmp_path, simulator)
    yield made
    made.worker.stop()


def _calls(simulator: RunningSimulator) -> list[Any]:
    found: list[Any] = simulator.control("GET", "calls")
    return found


def _counted() -> float:
    family = table.DOCTOR_FINDINGS.family()
    assert family is not None
    return sum(one.value for one in family.samples if one.labels["code"] == "privilege_optional")


def test_what_a_start_logs(
    made: Made, simulator: RunningSimulator, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    granted(simulator, "passwords")
    made.worker.start()
    eventually(lambda: "privilege_optional" in made.codes())
    [line] = [one for one in caplog.records if "(privilege_optional)" in one.getMessage()]
    assert "To change it: { pveum role add " in line.getMessage()
    assert line.levelno == logging.INFO
    assert _counted() >= 1
    assert made.worker.conductor.heartbeats


def test_a_round_reads_no_snapshot_and_not_much(
    simulator: RunningSimulator, tmp_path: Path
) -> None:
    conf = configuration(tmp_path, proxmox_text(simulator))
    [hypervisor] = drivers.hypervisors(conf)
    hypervisor.observe()
    made = drivers.rounds(conf, [hypervisor])
    assert made is not None
    before = len(_calls(simulator))
    made.start()
    made.seen("c1")
    eventually(lambda: "c1" in made.findings)
    made.stop()
    made.join(60)
    calls = _calls(simulator)[before:]
    hypervisor.close()
    assert len(calls) <= MOST_CALLS, [one["path"] for one in calls]
    assert not any(one["path"].endswith("cluster/resources") for one in calls)


def test_a_cluster_that_hangs_delays_neither_start_nor_stop(
    made: Made, simulator: RunningSimulator
) -> None:
    simulator.fault(action="hang", path="access/users", method="GET")
    made.worker.start()
    eventually(lambda: any(one["path"].endswith("access/users") for one in _calls(simulator)), 10)
    began = time.monotonic()
    made.worker.service.stop()
    assert time.monotonic() - began < 10
    assert made.codes() == set()


def test_what_is_broken_is_looked_at_again(
    simulator: RunningSimulator,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(rounds_of, "BROKEN_SECONDS", 0.2)
    caplog.set_level(logging.INFO)
    simulator.fault(action="token-revoked")
    made = Made(tmp_path, simulator)
    made.worker.conductor.server.start()
    made.worker.service.start()
    try:
        eventually(lambda: made.codes() == {"token_refused"})
        simulator.control("DELETE", "faults")
        eventually(lambda: "token_refused" not in made.codes() and made.codes())
        assert "Cluster c1: mended (token_refused)." in caplog.text
    finally:
        made.worker.service.stop()
        made.worker.conductor.server.stop()


def test_no_rounds_without_proxmox_or_with_0_seconds(
    simulator: RunningSimulator, tmp_path: Path
) -> None:
    conf = configuration(tmp_path, proxmox_text(simulator))
    hypervisors = drivers.hypervisors(conf)
    conf.set_override("doctor_seconds", 0, group="compute")
    assert drivers.rounds(conf, hypervisors) is None
    for one in hypervisors:
        one.close()
