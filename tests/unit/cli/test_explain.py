"""``micronova explain``, here and as a plugin of ``openstack``."""

from __future__ import annotations

import argparse
import json
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from openstack import exceptions

from cli.commands import COMMANDS
from micronova import osc
from tests.fixtures.sdk import FakeConnection, FakeProxy, run

REQUEST = "req-00000000-0000-0000-0000-000000000001"
UUID = "11111111-1111-1111-1111-111111111111"
EXPLANATION = {"subject": UUID, "operations": [{"server": UUID, "action": "create"}]}


def a_cloud(find_server: Any = None, **block_storage: Any) -> FakeConnection:
    """A cloud that explains everything alike."""
    none = exceptions.NotFoundException("none")
    kinds = ("find_volume", "find_snapshot", "find_transfer")
    stored = FakeProxy(**{name: block_storage.get(name, none) for name in kinds})

    def find(name: str, **_: Any) -> Any:
        if find_server is None:
            raise exceptions.NotFoundException(f"No Server found for {name}")
        return find_server

    response = SimpleNamespace(status_code=200, json=lambda: {"explanation": EXPLANATION})
    server = SimpleNamespace(name="web", status="ACTIVE", hypervisor_hostname="pve1")
    compute = FakeProxy(get=response, find_server=find, get_server=server)
    return FakeConnection(compute, block_storage=stored)


@pytest.mark.parametrize(
    ("what", "found", "asked"),
    [
        (REQUEST, None, REQUEST),
        ("web", SimpleNamespace(id=UUID), UUID),
        (UUID, None, UUID),
    ],
)
def test_a_request_a_name_and_a_deleted_server(what: str, found: Any, asked: str) -> None:
    connection = a_cloud(found)
    ran = run(connection, "explain", what)
    assert ran.code == 0
    assert ran.out.startswith(f"Create of server web.\n\nweb {UUID}  ACTIVE on pve1\n\ncreate")
    assert connection.compute.called("get") == [((f"/explanations/{asked}",), {})]


def test_what_stops_a_move_is_named() -> None:
    move = {"way": None, "obstacle": "it is suspended: resume it"}
    response = SimpleNamespace(
        status_code=200, json=lambda: {"explanation": {**EXPLANATION, "move": move}}
    )
    connection = a_cloud(SimpleNamespace(id=UUID))
    connection.compute.answers["get"] = response
    assert "can't be moved now: it is suspended: resume it" in run(connection, "explain", "w").out


def test_an_unknown_name() -> None:
    ran = run(a_cloud(), "explain", "nix")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("No server, volume, snapshot or transfer named 'nix'.")


@pytest.mark.parametrize("kind", ["volume", "snapshot", "transfer"])
def test_what_block_storage_has_of_the_name(kind: str) -> None:
    found = SimpleNamespace(id=UUID)
    connection = a_cloud(**{f"find_{kind}": found})
    facts = {"id": UUID, "name": "data", "status": "error", "size_gib": 1}
    operation = {"resource": {"type": kind, "id": UUID}, "action": "create-volume"}
    explanation = {"subject": UUID, kind: facts, "operations": [operation]}
    connection.compute.answers["get"] = SimpleNamespace(
        status_code=200, json=lambda: {"explanation": explanation}
    )
    ran = run(connection, "explain", "data")
    assert ran.code == 0, ran.err
    assert f"\n\n{kind} data  error  id={UUID}" in ran.out
    assert "create-volume" in ran.out
    assert connection.compute.called("get") == [((f"/explanations/{UUID}",), {})]


def test_a_server_that_is_gone_has_no_name() -> None:
    connection = a_cloud()
    connection.compute.answers["get_server"] = exceptions.NotFoundException("gone")
    assert f"\n\nserver {UUID}\n" in run(connection, "explain", UUID).out


def test_as_data() -> None:
    assert json.loads(run(a_cloud(), "explain", REQUEST, "-f", "json").out) == EXPLANATION
    assert yaml.safe_load(run(a_cloud(), "explain", REQUEST, "-f", "yaml").out) == EXPLANATION


def test_an_api_without_explanations_is_an_error() -> None:
    connection = a_cloud()
    connection.compute.answers["get"] = exceptions.NotFoundException("No such route")
    assert run(connection, "explain", REQUEST).code == 1


def test_the_door_of_openstack_has_our_own_commands() -> None:
    alone = ("capacity", "explain", "schedule")
    own = {name for name in COMMANDS if name in alone or name.startswith("node ")}
    assert {name.replace("micronova_", "").replace("_", " ") for name in osc.COMMANDS} == own
    for name, path in osc.COMMANDS.items():
        assert COMMANDS[name.replace("micronova_", "").replace("_", " ")] == path
        assert getattr(osc, path.partition(":")[2]).arguments is not None
    with pytest.raises(AttributeError):
        osc.Nothing  # noqa: B018


def test_the_door_uses_the_connection_of_openstack() -> None:
    connection = a_cloud()
    assert osc.make_client(SimpleNamespace(sdk_connection=connection)).connection is connection
    options = osc.build_option_parser(argparse.ArgumentParser()).parse_args([])
    assert getattr(options, osc.API_VERSION_OPTION) in osc.API_VERSIONS
