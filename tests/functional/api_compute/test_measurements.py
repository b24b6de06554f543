"""Measurements of servers and hosts: who may see those of each, in which form."""

from __future__ import annotations

import dataclasses
import datetime
from typing import Any

import pytest

from common.errors import Unavailable
from common.messages.facts import StorageFacts
from common.messages.measurements import Measured, Period
from common.messages.questions import Measure
from tests.fixtures import auth
from tests.fixtures.compute import (
    ComputeApi,
    a_full_server,
    a_host,
    a_reservation,
    a_service,
    uuid_of,
)
from tests.fixtures.listings import NOW
from tests.functional.api_compute.conftest import MakeApi

pytestmark = pytest.mark.database

READ_AT = datetime.datetime(2026, 11, 29, 0, 30, 1, tzinfo=datetime.UTC)
END = int(datetime.datetime(2026, 11, 29, 0, 30, tzinfo=datetime.UTC).timestamp())
FOUND = Measured(
    Period.HOUR,
    60,
    READ_AT,
    (END - 60, END),
    {"cpu": (None, 12.5), "memory_used": (None, 1024.0), "network_in": (None, 7.25)},
)
_LOCAL = StorageFacts(
    "local", "dir", shared=False, active=True, total_gib=9, available_gib=5, content=()
)
STORAGES = {"storages": [dataclasses.asdict(_LOCAL)]}


@pytest.fixture
def api(make: MakeApi) -> ComputeApi:
    made = make(
        a_full_server(1),
        a_full_server(2, host=None),
        a_full_server(3),
        a_reservation(1, reserved_at=NOW - datetime.timedelta(days=2)),
        a_reservation(1),
    )
    made.conductor.agents.measure.return_value = FOUND
    return made


def ask(api: ComputeApi, path: str, token: str = auth.ADMIN, version: str = "2.1") -> Any:
    return api.get(path, version=version, token=token)


def of(number: int = 1, query: str = "") -> str:
    return f"/servers/{uuid_of(number)}/metrics{query}"


def asked(api: ComputeApi) -> list[Measure]:
    return [call.args[0] for call in api.conductor.agents.measure.mock_calls]


def test_a_servers_measurements_have_units_and_times(api: ComputeApi) -> None:
    answer = ask(api, of(query="?period=hour"), token=auth.MEMBER)
    assert answer.json == {
        "metrics": {
            "server_id": uuid_of(1),
            "period": "hour",
            "resolution_seconds": 60,
            "read_at": "2026-11-29T00:30:01Z",
            "times": ["2026-11-29T00:29:00Z", "2026-11-29T00:30:00Z"],
            "series": [
                {
                    "name": "cpu",
                    "unit": "percent",
                    "description": "Use of all its processors together",
                    "values": [None, 12.5],
                },
                {
                    "name": "memory_used",
                    "unit": "bytes",
                    "description": "Memory that the guest uses",
                    "values": [None, 1024.0],
                },
                {
                    "name": "network_in",
                    "unit": "bytes_per_second",
                    "description": "Received from the network",
                    "values": [None, 7.25],
                },
            ],
        }
    }
    # What is older than the last reservation of the VMID is another server's.
    assert asked(api) == [Measure("pve1", Period.HOUR, vmid=100_001, since=NOW)]


def test_a_period_is_one_of_five(api: ComputeApi) -> None:
    for period in ("day", "week", "month", "year"):
        assert ask(api, of(query=f"?period={period}")).status_code == 200
    assert ask(api, of()).status_code == 200
    assert [one.period.value for one in asked(api)] == ["day", "week", "month", "year", "hour"]
    for query in ("?period=decade", "?period=", "?period=hour&period=day", "?x=1", "?storage=a"):
        assert ask(api, of(query=query)).status_code == 400, query
    assert len(asked(api)) == 5


def test_whose_measurements_are_shown(api: ComputeApi) -> None:
    assert ask(api, of(), token=auth.READER).status_code == 200
    assert ask(api, of(), token=auth.OTHER).status_code == 404
    assert ask(api, of(9)).status_code == 404
    assert ask(api, "/servers/x/metrics").status_code == 404
    assert len(asked(api)) == 1


def test_what_can_not_be_measured(api: ComputeApi) -> None:
    fault = ask(api, of(2))
    assert fault.status_code == 409
    assert fault.json["conflictingRequest"]["message"] == f"Instance {uuid_of(2)} is not ready"
    # Whose VMID was never the server's may be another's.
    assert ask(api, of(3)).status_code == 409
    assert asked(api) == []
    api.conductor.agents.measure.side_effect = Unavailable("No answer.")
    assert ask(api, of()).status_code == 503
    api.add(a_service("pve8", forced_down=True), a_host("pve8"), a_full_server(8, host="pve8"))
    assert ask(api, of(8)).status_code == 503
    assert ask(api, "/hosts/pve8/metrics").status_code == 503


def test_a_hosts_measurements_are_an_administrators(api: ComputeApi) -> None:
    answer = ask(api, "/hosts/pve1/metrics?period=week")
    assert answer.status_code == 200
    shown = answer.json["metrics"]
    assert (shown["host"], shown["storage"]) == ("pve1", None)
    assert [one["name"] for one in shown["series"]] == ["cpu", "memory_used", "network_in"]
    assert asked(api) == [Measure("pve1", Period.WEEK)]
    for token in (auth.MEMBER, auth.READER, auth.OTHER):
        assert ask(api, "/hosts/pve1/metrics", token=token).status_code == 403
    assert ask(api, "/hosts/nowhere/metrics").status_code == 404


def test_a_storage_of_a_host(api: ComputeApi, make: MakeApi) -> None:
    api.add(a_service("pve7"), a_host("pve7", facts=STORAGES))
    assert ask(api, "/hosts/pve7/metrics?storage=local").json["metrics"]["storage"] == "local"
    assert asked(api) == [Measure("pve7", Period.HOUR, storage="local")]
    assert ask(api, "/hosts/pve7/metrics?storage=other").status_code == 404
    for bad in ("..", "a/b", "a%2F..%2Fb", "", "a&storage=b"):
        assert ask(api, f"/hosts/pve7/metrics?storage={bad}").status_code == 400, bad
    assert len(asked(api)) == 1
