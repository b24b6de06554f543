"""The simulator against the second series of captures: same situation, same call, same answer.

Each call is made in a situation of its own. ``pve/not_followed.tsv`` names the calls whose answer
the simulator does not give, with the reason; the first row that matches counts, and one without a
reason says that the call is followed.
"""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase

import pytest

from simulator.server import Simulator
from simulator.state.cluster import Cluster
from tests.fixtures import pve_captures as pve
from tests.fixtures import pve_compare as compare
from tests.fixtures import pve_records as records
from tests.fixtures.pve_records import Capture
from tests.fixtures.pve_situations_2 import (
    LOGS_NOT_COMPARED,
    PAIR,
    SITUATIONS,
    lay_out,
)
from tests.fixtures.pve_situations_guests import GUESTS
from tests.fixtures.pve_situations_services import SERVICES

SERIES = 2
NOT_FOLLOWED = records.not_followed()


@pytest.fixture(scope="module")
def simulators(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[int, Simulator]]:
    with pve.simulators(tmp_path_factory) as made:
        yield made


def _reason(name: str) -> str:
    return next((why for glob, why in NOT_FOLLOWED if fnmatchcase(name, glob)), "")


COMPARED = [name for name in records.names(SERIES) if not _reason(name)]


@pytest.mark.parametrize("name", COMPARED)
def test_answers_like_the_real_server(name: str, simulators: dict[int, Simulator]) -> None:
    capture = records.load(name, SERIES)
    assert capture is not None
    pair = any(fnmatchcase(name, glob) for glob in PAIR)
    simulator = simulators[2 if pair else 1]
    cluster = simulator.clusters[0]
    with cluster.turn():
        pve.clear(cluster)
        lay_out(cluster)
        situations = (*GUESTS, *SERVICES, *SITUATIONS)
        next(make for glob, make in situations if fnmatchcase(name, glob))(cluster)
        pve.keep_snapshots(cluster)
    answer = pve.send(
        simulator.endpoints[0]["url"],
        capture.method,
        capture.url,
        pve.headers_for(simulator, capture),
        capture.body.encode(),
    )
    compare.answers(answer, capture)
    if capture.exitstatus is not None:
        _same_task(cluster, str(answer.body["data"]), capture)


def _same_task(cluster: Cluster, upid: str, capture: Capture) -> None:
    task = compare.finish(cluster, upid)
    assert task.upid.split(":")[5:7] == capture.answer["data"].split(":")[5:7]
    assert pve.steady(task.exitstatus) == pve.steady(capture.exitstatus or "").strip()
    if not any(fnmatchcase(capture.name, glob) for glob in LOGS_NOT_COMPARED):
        assert compare.comparable(task.log) == compare.comparable(capture.log)


def test_what_is_not_followed_is_there() -> None:
    known = records.names(SERIES)
    unknown = [glob for glob, _ in NOT_FOLLOWED if not any(fnmatchcase(n, glob) for n in known)]
    assert unknown == []
    assert len(COMPARED) > 360
