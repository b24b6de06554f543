"""``micronova server …``, on a fake connection."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from openstack import exceptions
from openstack.compute.v2.server import Server
from openstack.compute.v2.server_action import ServerAction

from cli.server.create import parse_nic
from cli.server.list import wanted_columns
from tests.fixtures.sdk import FakeConnection, FakeProxy, Ran, run

# the SDK warns of its own future whenever it makes a resource
pytestmark = pytest.mark.filterwarnings("ignore:The _compute_attributes method is deprecated")

REQUEST = "req-00000000-0000-0000-0000-000000000001"


def a_server(**changes: Any) -> Server:
    """A server as the API shows it."""
    body = {
        "id": "11111111-1111-1111-1111-111111111111",
        "name": "web",
        "status": "ACTIVE",
        "image": {"id": "i1"},
        "flavor": {"original_name": "m1.small", "vcpus": 1, "ram": 512, "disk": 4},
        "addresses": {"vmbr0": [{"addr": "10.0.0.5", "version": 4}]},
        "metadata": {"a": "1"},
        "OS-EXT-STS:vm_state": "active",
        "OS-EXT-STS:task_state": None,
        "OS-EXT-STS:power_state": 1,
        "tenant_id": "p1",
        "tags": ["b", "a"],
    }
    return Server(**{**body, **changes})


def an_action(**changes: Any) -> ServerAction:
    """A create with its events."""
    body = {
        "action": "create",
        "request_id": REQUEST,
        "start_time": "2026-01-01T00:00:00.000000",
        "message": None,
        "events": [
            {
                "event": "compute_create_vm",
                "start_time": "2026-01-01T00:00:00.500000",
                "finish_time": "2026-01-01T00:00:02.000000",
                "result": "Success",
                "host": "pve1",
            }
        ],
    }
    return ServerAction(**{**body, **changes})


def named(**names: str) -> Any:
    """An answer to find_…: a thing by its name."""

    def find(name: str, ignore_missing: bool = True, **_: Any) -> Any:
        if name in names:
            return SimpleNamespace(id=names[name], name=name)
        if ignore_missing:
            return None
        raise exceptions.NotFoundException(f"No thing found for {name}")

    return find


def test_list_as_a_table_and_as_json() -> None:
    images = [SimpleNamespace(id="i1", name="debian")]
    connection = FakeConnection(FakeProxy(servers=[a_server()]), FakeProxy(images=images))
    assert "vmbr0=10.0.0.5 | debian | m1.small |" in run(connection, "server", "list").out
    [row] = json.loads(run(connection, "server", "list", "-f", "json").out)
    assert row == {
        "ID": "11111111-1111-1111-1111-111111111111",
        "Name": "web",
        "Status": "ACTIVE",
        "Networks": {"vmbr0": ["10.0.0.5"]},
        "Image": "debian",
        "Flavor": "m1.small",
    }


def test_list_without_names_of_images_asks_for_none() -> None:
    connection = FakeConnection(FakeProxy(servers=[a_server()]))
    ran = run(connection, "server", "list", "-n", "-f", "value", "-c", "Image")
    assert ran.out == "i1\n"
    assert connection.image.calls == []


def test_list_before_servers_carried_their_flavor() -> None:
    old = a_server(flavor={"id": "2"})
    flavors = [SimpleNamespace(id="2", name="m1.small")]
    compute = FakeProxy("2.46", servers=[old], flavors=flavors)
    connection = FakeConnection(compute, FakeProxy(images=[]))
    for options, shown in (
        ([], {"Flavor": "m1.small"}),
        (["-n"], {"Flavor": "2"}),
        (["--long"], {"Flavor Name": "m1.small", "Flavor ID": "2"}),
    ):
        [row] = json.loads(run(connection, "server", "list", *options, "-f", "json").out)
        assert shown.items() <= row.items()


def test_show_before_servers_carried_their_flavor() -> None:
    old = a_server(flavor={"id": "2"}, image=None)
    compute = FakeProxy(
        "2.46", find_server=old, find_flavor=SimpleNamespace(id="2", name="m1.small")
    )
    shown = json.loads(run(FakeConnection(compute), "server", "show", "web", "-f", "json").out)
    assert shown["flavor"] == "m1.small (2)"
    assert shown["image"] == "N/A (booted from volume)"


def test_list_shows_ids_where_images_cannot_be_read() -> None:
    refused = FakeProxy(images=exceptions.SDKException("no image API"))
    ran = run(FakeConnection(FakeProxy(servers=[a_server()]), refused), "server", "list")
    assert ran.code == 0


def test_list_filters() -> None:
    compute = FakeProxy(servers=[], find_flavor=named(small="f1"))
    identity = FakeProxy(find_project=named(demo="p9"))
    argv = ["--flavor", "small", "--project", "demo", "--status", "active", "--tags", "x"]
    argv += ["--host", "pve1", "--limit", "5", "--changes-since", "2026-01-01"]
    run(FakeConnection(compute, identity=identity), "server", "list", *argv)
    [(_, query)] = compute.called("servers")
    assert query == {
        "status": "ACTIVE",
        "flavor": "f1",
        "project_id": "p9",
        "all_projects": True,
        "tags": "x",
        "compute_host": "pve1",
        "limit": 5,
        "paginated": False,
        "changes-since": "2026-01-01",
    }


def test_long_and_further_columns() -> None:
    headers = [c.header for c in wanted_columns(True, True, True, ["created_at", "Task State"])]
    assert headers == [
        *("ID", "Name", "Status", "Task State", "Power State", "Networks", "Image Name"),
        *("Image ID", "Flavor", "Availability Zone", "Host", "Properties", "Project ID"),
        "Created At",
    ]


def test_show_has_the_names_of_openstackclient() -> None:
    compute = FakeProxy(find_server=lambda *_, **__: a_server())
    image = FakeProxy(get_image=SimpleNamespace(name="debian"))
    shown = json.loads(run(FakeConnection(compute, image), "server", "show", "web", "-fjson").out)
    assert shown["image"] == "debian (i1)"
    assert shown["addresses"] == {"vmbr0": ["10.0.0.5"]}
    assert shown["OS-EXT-STS:vm_state"] == "active"
    assert shown["properties"] == {"a": "1"}
    assert shown["project_id"] == "p1"
    assert shown["flavor"]["original_name"] == "m1.small"
    assert not shown.keys() & {"metadata", "tenant_id", "location", "fault", "networks", "links"}


def test_show_of_an_unknown_server_fails() -> None:
    ran = run(FakeConnection(FakeProxy(find_server=named())), "server", "show", "nix")
    assert (ran.code, ran.err) == (1, "No server named 'nix'.\n")


def creating(*states: Server, actions: Any = None, **more: Any) -> FakeConnection:
    """A cloud that walks a new server through these states; the last one remains."""
    looks = iter(states)
    seen: list[Server] = []

    def get_server(_: str) -> Server:
        seen.append(next(looks, seen[-1] if seen else states[-1]))
        return seen[-1]

    compute = FakeProxy(
        find_flavor=named(small="f1"),
        create_server=lambda **_: a_server(status="BUILD"),
        get_server=get_server,
        server_actions=[an_action(events=None)],
        get_server_action=actions or an_action(),
        **more,
    )
    image = FakeProxy(find_image=named(debian="i1"), get_image=SimpleNamespace(name="debian"))
    return FakeConnection(compute, image, FakeProxy(find_network=named(vmbr0="n1")))


CREATE = ("server", "create", "--flavor", "small", "--image", "debian")


def test_create_resolves_names_and_files(tmp_path: Path) -> None:
    (tmp_path / "ud").write_bytes(b"#cloud-config\n")
    connection = creating(a_server())
    options = ["--network", "vmbr0", "--nic", "net-id=vmbr0,v4-fixed-ip=10.0.0.9", "web"]
    options += ["--user-data", str(tmp_path / "ud"), "--property", "a=1", "--property", "b=x=y"]
    options += ["--tag", "t", "--hint", "g=1", "--hint", "g=2", "--hint", "h=3", "--max", "2"]
    ran = run(connection, *CREATE, *options, "--key-name", "k", "--hostname", "h", "-fjson")
    assert ran.code == 0, ran.err
    [(_, sent)] = connection.compute.called("create_server")
    assert sent == {
        "name": "web",
        "flavor_id": "f1",
        "image_id": "i1",
        "networks": [{"uuid": "n1"}, {"uuid": "n1", "fixed_ip": "10.0.0.9"}],
        "user_data": base64.b64encode(b"#cloud-config\n").decode(),
        "metadata": {"a": "1", "b": "x=y"},
        "tags": ["t"],
        "scheduler_hints": {"g": ["1", "2"], "h": "3"},
        "key_name": "k",
        "hostname": "h",
        "min_count": 1,
        "max_count": 2,
    }


def test_create_leaves_the_network_to_the_cloud_unless_one_is_named() -> None:
    connection = creating(a_server())
    run(connection, *CREATE, "web")
    run(connection, *CREATE, "web", "--no-network")
    networks = [sent["networks"] for _, sent in connection.compute.called("create_server")]
    assert networks == ["auto", "none"]


def test_create_refuses_none_with_a_network() -> None:
    ran = run(creating(a_server()), *CREATE, "web", "--nic", "none", "--network", "vmbr0")
    assert ran.code == 1
    assert "none can't be combined with another" in ran.err


@pytest.mark.parametrize("text", ["", "net-id=", "x=1", "net-id=a,port-id=b", "tag=x"])
def test_bad_nics(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_nic(text)


def test_create_with_wait_shows_each_step_once() -> None:
    building = {"status": "BUILD", "OS-EXT-STS:vm_state": "building"}
    walk = [
        a_server(**building, **{"OS-EXT-STS:task_state": task})
        for task in ("scheduling", "spawning", "spawning")
    ]
    ran = run(creating(*walk, a_server()), *CREATE, "web", "--wait", "-f", "json")
    assert ran.code == 0
    assert json.loads(ran.out)["status"] == "ACTIVE"
    assert steps(ran) == ["scheduling", "create VM", "spawning"]
    assert ran.err.splitlines()[1].split()[-4:] == ["Success", "1.50", "s", "pve1"]


def steps(ran: Ran) -> list[str]:
    """The states and steps that a wait has shown."""
    parts = [re.split(r"  +", line.strip()) for line in ran.err.splitlines()]
    return [part[1] if len(part) > 1 else part[0] for part in parts]


def a_story(*states: str, **changes: Any) -> Any:
    """The explanation of an operation that walks through these states, a second each."""
    moves = [
        {"at": f"2026-01-01T00:00:0{i}+00:00", "from": {}, "to": {"task_state": state}}
        for i, state in enumerate(states)
    ]
    events = [
        {
            "name": f"do_{state}",
            "started_at": f"2026-01-01T00:00:0{i}.100000+00:00",
            "finished_at": f"2026-01-01T00:00:0{i}.900000+00:00",
            "result": "Success",
        }
        for i, state in enumerate(states)
    ]
    operation = {
        "action": "create",
        "server": "11111111-1111-1111-1111-111111111111",
        "request_id": REQUEST,
        "started_at": "2026-01-01T00:00:00+00:00",
        "message": None,
        "events": events,
        "transitions": [*moves, {"at": moves[-1]["at"], "from": {}, "to": {"task_state": None}}],
        **changes,
    }
    explanation = {"subject": REQUEST, "operations": [operation]}
    return SimpleNamespace(status_code=200, json=lambda: {"explanation": explanation})


def test_create_with_wait_shows_states_that_no_look_has_seen() -> None:
    connection = creating(a_server(), get=a_story("scheduling", "networking", "spawning"))
    ran = run(connection, *CREATE, "web", "--wait", "-f", "json")
    assert ran.code == 0, ran.err
    assert steps(ran) == [
        *("scheduling", "do scheduling", "networking", "do networking", "spawning"),
        "do spawning",
    ]


def test_create_with_wait_fails_with_the_message_of_the_story() -> None:
    story = a_story("scheduling", message="No host has room.")
    ran = run(creating(a_server(status="ERROR"), get=story), *CREATE, "web", "--wait")
    assert ran.code == 1
    assert f"create failed: No host has room. (micronova explain {REQUEST})" in ran.err


def test_create_with_wait_fails_with_the_fault() -> None:
    fault = {"code": 500, "message": "No host has 2048 MiB free."}
    ran = run(creating(a_server(status="ERROR", fault=fault)), *CREATE, "web", "--wait")
    assert ran.code == 1
    assert ran.out == ""
    last = ran.err.splitlines()[-1]
    assert "create failed: No host has 2048 MiB free." in last
    assert f"micronova explain {REQUEST}" in last


def test_create_with_wait_waits_for_all_of_the_request() -> None:
    group = {"OS-EXT-SRV-ATTR:reservation_id": "r-1"}
    both = [a_server(**group), a_server(id="2", **group)]
    connection = creating(a_server(**group), servers=both)
    assert run(connection, *CREATE, "web", "--wait", "--max", "2").code == 0
    assert [args[0] for args, _ in connection.compute.called("get_server")][1:3] == [
        both[0].id,
        "2",
    ]


def test_create_waits_though_events_may_not_be_read() -> None:
    connection = creating(a_server())
    connection.compute.answers["server_actions"] = exceptions.ForbiddenException("no")
    assert run(connection, *CREATE, "web", "--wait").code == 0


def test_delete_with_wait_sees_it_gone() -> None:
    looks = iter([a_server(**{"OS-EXT-STS:task_state": "deleting"})])

    def get_server(_: str) -> Server:
        for server in looks:
            return server
        raise exceptions.NotFoundException("gone")

    compute = FakeProxy(
        find_server=lambda *_, **__: a_server(),
        delete_server=None,
        get_server=get_server,
        server_actions=[an_action(action="delete")],
        get_server_action=an_action(action="delete"),
    )
    ran = run(FakeConnection(compute), "server", "delete", "web", "--wait")
    assert ran.code == 0
    assert "deleting" in ran.err


def test_delete_goes_on_after_a_failure_and_fails() -> None:
    compute = FakeProxy(find_server=named(a="1"), delete_server=None)
    ran = run(FakeConnection(compute), "server", "delete", "nix", "a")
    assert ran.code == 1
    assert ran.err.splitlines() == [
        "Failed to delete server 'nix': No server named 'nix'.",
        "1 of 2 failed: delete server",
    ]
    assert len(compute.called("delete_server")) == 1


def test_delete_that_fails_says_why() -> None:
    compute = FakeProxy(
        find_server=lambda *_, **__: a_server(),
        delete_server=None,
        get_server=a_server(status="ERROR", fault={"message": "VM 100 isn't ours."}),
        server_actions=[],
    )
    ran = run(FakeConnection(compute), "server", "delete", "web", "--wait")
    assert ran.code == 1
    assert "VM 100 isn't ours." in ran.err


def test_power() -> None:
    compute = FakeProxy(
        find_server=named(a="1", b="2"), start_server=None, stop_server=None, reboot_server=None
    )
    connection = FakeConnection(compute)
    assert run(connection, "server", "start", "a", "b").code == 0
    assert run(connection, "server", "stop", "a").code == 0
    assert run(connection, "server", "reboot", "a", "--hard").code == 0
    assert [args for args, _ in compute.called("start_server")] == [("1",), ("2",)]
    assert [args for args, _ in compute.called("stop_server")] == [("1",)]
    assert [args for args, _ in compute.called("reboot_server")] == [("1", "HARD")]


def test_a_wait_says_that_the_host_does_not_answer_and_when_it_is_tried_again() -> None:
    uuid = "11111111-1111-1111-1111-111111111111"
    fault = {"message": "No route to host", "at": "2026-01-01T00:00:02+00:00"}
    waiting = a_story(
        "powering-off", action="stop", waits_until="2099-01-01T03:36:31Z", faults=[fault]
    )
    waiting.json()["explanation"]["host"] = {"name": "pve2", "health": "The node is offline."}
    working = a_server(**{"OS-EXT-STS:task_state": "powering-off"})
    looks = [working, working, a_server()]
    compute = FakeProxy(
        find_server=named(a=uuid),
        get_server=lambda _: looks.pop(0),
        server_actions=[],
        get=waiting,
        stop_server=None,
    )
    ran = run(FakeConnection(compute), "server", "stop", "a", "--wait")
    why = "Host pve2: The node is offline. (tried again at 03:36:31 UTC)"
    assert steps(ran) == ["powering-off", "do powering-off", why]
    assert f"+2.00 s  {why}" in ran.err


@pytest.mark.parametrize("verb", ["start", "stop"])
def test_power_with_wait_shows_the_steps(verb: str) -> None:
    uuid = "11111111-1111-1111-1111-111111111111"
    compute = FakeProxy(
        find_server=named(a=uuid, b="2"),
        get_server=a_server(),
        server_actions=[],
        get=a_story(f"powering-{verb}", action=verb),
        **{f"{verb}_server": None},
    )
    ran = run(FakeConnection(compute), "server", verb, "a", "b", "--wait")
    assert ran.code == 0, ran.err
    assert [args for args, _ in compute.called(f"{verb}_server")] == [(uuid,), ("2",)]
    assert steps(ran) == [*("a:", f"powering-{verb}", f"do powering-{verb}", "b:")]


def test_reboot_with_wait_fails_with_the_message_of_the_action() -> None:
    failed = an_action(action="reboot", message="The guest didn't answer.")
    compute = FakeProxy(
        find_server=named(a="1"),
        reboot_server=None,
        get_server=a_server(),
        server_actions=[failed],
        get_server_action=failed,
    )
    ran = run(FakeConnection(compute), "server", "reboot", "a", "--wait")
    assert ran.code == 1
    assert "reboot failed: The guest didn't answer." in ran.err


def test_events_of_a_deleted_server() -> None:
    uuid = "22222222-2222-2222-2222-222222222222"
    compute = FakeProxy(
        find_server=named(), server_actions=[an_action()], get_server_action=an_action()
    )
    connection = FakeConnection(compute)
    listed = run(connection, "server", "event", "list", uuid, "-f", "value", "-c", "Request ID")
    assert listed.out == f"{REQUEST}\n"
    shown = json.loads(run(connection, "server", "event", "show", uuid, REQUEST, "-fjson").out)
    assert shown["events"][0]["event"] == "compute_create_vm"
    assert run(connection, "server", "event", "list", "nix").code == 1
