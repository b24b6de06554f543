"""Commands over all regions: one table of several answers, and what a missing one means."""

from __future__ import annotations

import json
import threading
from io import StringIO
from types import SimpleNamespace
from typing import Any

import pytest

from cli.cloud import Cloud, Region
from cli.commands import COMMANDS, CommandTable
from cli.main import Program
from cli.osc.names import entry_points
from tests.fixtures.sdk import FakeConnection, FakeProxy, Ran


def connected(**regions: FakeConnection) -> Cloud:
    """Return a cloud whose catalog has these regions."""
    ends = [{"region": name, "region_id": name} for name in regions]
    catalog = SimpleNamespace(get_endpoints=lambda **_: {"compute": ends})
    main = FakeConnection(access=SimpleNamespace(service_catalog=catalog))
    main.config = SimpleNamespace(get_interface=lambda _: "public")  # type: ignore[attr-defined]

    def of(region: Region) -> Any:
        assert region.auth is main.session.auth
        return regions[region.name]

    return Cloud(lambda: main, pause=lambda _: None, connect_region=of)


def run(cloud: Cloud, *argv: str) -> Ran:
    out, err = StringIO(), StringIO()
    try:
        code = Program(stdout=out, stderr=err, cloud=cloud).run(["--all-regions", *argv])
    except SystemExit as end:
        code = int(end.code or 0)
    return Ran(code, out.getvalue(), err.getvalue())


def with_room(total: int) -> FakeConnection:
    host = {"host": "pve1", "availability_zone": "z", "count": total, "limit": "VCPU"}
    body = {"capacity": {"total": total, "hosts": [host]}}
    answer = SimpleNamespace(status_code=200, json=lambda: body)
    flavor = SimpleNamespace(id="f1")
    return FakeConnection(FakeProxy(get=lambda *a, **k: answer, find_flavor=flavor))


def failing(error: Exception) -> FakeConnection:
    return FakeConnection(FakeProxy(find_flavor=error))


CAPACITY = ("capacity", "--flavor", "f", "-f", "json")


def test_regions_answer_as_one_table() -> None:
    ran = run(connected(south=with_room(2), north=with_room(5)), *CAPACITY)
    assert ran.code == 0
    assert [(row["Region"], row["Fit"]) for row in json.loads(ran.out)] == [
        ("north", 5),
        ("south", 2),
    ]
    assert ran.err == "north: 5 more would fit.\nsouth: 2 more would fit.\n"


def test_a_region_that_fails_costs_its_own_rows() -> None:
    ran = run(connected(north=failing(OSError("no route")), south=with_room(2)), *CAPACITY)
    assert (ran.code, len(json.loads(ran.out))) == (3, 1)
    assert "north: no route\n" in ran.err


def test_a_region_that_hangs_is_not_waited_for() -> None:
    def hang(*_: Any, **__: Any) -> Any:
        never.wait()

    never = threading.Event()
    late = FakeConnection(FakeProxy(find_flavor=hang))
    try:
        cloud = connected(north=late, south=with_room(2))
        ran = run(cloud, "--region-seconds", "0.5", *CAPACITY)
    finally:
        never.set()
    assert (ran.code, len(json.loads(ran.out))) == (3, 1)
    assert "north: no answer within 0.5 s\n" in ran.err


def test_no_region_answers() -> None:
    ran = run(connected(north=failing(OSError("no route"))), *CAPACITY)
    assert (ran.code, ran.out) == (1, "")


def test_a_catalog_without_compute() -> None:
    ran = run(connected(), *CAPACITY)
    assert (ran.code, ran.out) == (1, "")


@pytest.mark.parametrize("seconds", ["0", "-1", "nan", "3601", "x"])
def test_a_limit_that_is_none(seconds: str) -> None:
    assert run(connected(), "--region-seconds", seconds, *CAPACITY).code == 2


def test_a_page_of_one_region() -> None:
    ran = run(connected(north=with_room(1)), "server", "list", "--marker", "x")
    assert (ran.code, ran.out) == (1, "")


@pytest.mark.filterwarnings("ignore")  # of python-openstackclient's modules, all imported
def test_only_what_reads_runs_in_all_regions() -> None:
    table = CommandTable()
    table.all_regions = True
    allowed = set()
    for name in [*COMMANDS, *entry_points()]:
        try:
            table.find_command(name.split())
        except ValueError:
            continue
        allowed.add(name)
    ours = {"capacity", "explain", "schedule"}
    assert ours < allowed
    assert {name.rsplit(maxsplit=1)[-1] for name in allowed - ours} == {"list", "show"}
    assert not {"project list", "user show", "module list", "service list"} & allowed
    assert {"server list", "node list", "queue list", "image show", "volume list"} < allowed
