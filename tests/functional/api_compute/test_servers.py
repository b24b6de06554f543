"""Servers over HTTP: isolation, create, show, update, delete, actions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from common.errors import Unavailable
from tests.fixtures import auth
from tests.fixtures.compute import (
    IMAGE,
    NETWORK,
    ComputeApi,
    a_flavor,
    a_full_server,
    a_service,
    uuid_of,
)
from tests.functional.api_compute.conftest import MakeApi

MANAGER = auth.token("admin", "admin", "admin", "member", "reader")


def a_create(**changes: Any) -> dict[str, Any]:
    server = {"name": "web", "flavorRef": "m1.small", "imageRef": IMAGE, "networks": "auto"}
    return {"server": {key: v for key, v in (server | changes).items() if v is not None}}


def test_another_projects_server_is_not_there(make: MakeApi) -> None:
    api = make(a_full_server(1, "other"))
    for method, path, body in (
        ("GET", "", None),
        ("PUT", "", {"server": {"name": "x"}}),
        ("DELETE", "", None),
        ("POST", "/action", {"os-start": None}),
        ("GET", "/metadata", None),
        ("GET", "/ips", None),
        ("GET", "/tags", None),
        ("GET", "/os-instance-actions", None),
    ):
        answer = api.request(method, f"/servers/{uuid_of(1)}{path}", body, version="2.26")
        assert answer.status_code == 404, (method, path)
        assert answer.json["itemNotFound"]["message"].endswith("could not be found.")
    assert api.get(f"/servers/{uuid_of(1)}", token=auth.ADMIN).status_code == 200
    assert api.conductor.asked == []


def test_readers_only_read(make: MakeApi) -> None:
    api = make(a_full_server(1))
    assert api.get(f"/servers/{uuid_of(1)}", token=auth.READER).status_code == 200
    refused = api.request("DELETE", f"/servers/{uuid_of(1)}", token=auth.READER)
    assert refused.status_code == 403
    assert refused.json == {
        "forbidden": {
            "code": 403,
            "message": "Policy doesn't allow os_compute_api:servers:delete to be performed.",
        }
    }
    assert api.request("POST", "/servers", a_create(), token=auth.READER).status_code == 403


def test_a_system_token_has_no_servers(api: ComputeApi) -> None:
    assert api.get("/servers", token=auth.SYSTEM).status_code == 403


def test_the_policy_file_says_who_may_what(make: MakeApi, tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(
        '"context_is_admin": "role:chief"\n"os_compute_api:servers:stop": "user_id:%(user_id)s"\n'
    )
    api = make(a_full_server(1, user_id="somebody"), policy_file=file)
    stop = f"/servers/{uuid_of(1)}/action"
    assert api.request("POST", stop, {"os-stop": None}).status_code == 403
    mine = auth.token("somebody", "demo", "member")
    assert api.request("POST", stop, {"os-stop": None}, token=mine).status_code == 202
    assert api.conductor.ctxt is not None
    assert not api.conductor.ctxt.is_admin
    assert api.get(f"/servers/{uuid_of(1)}", token=auth.ADMIN).status_code == 404
    chief = auth.token("boss", "admin", "chief")
    assert api.request("DELETE", f"/servers/{uuid_of(1)}", token=chief).status_code == 204
    assert api.conductor.ctxt.is_admin


def test_no_token(api: ComputeApi) -> None:
    assert api.get("/servers", token=None).status_code == 401
    assert api.raw("GET", "/").status_code == 200


def test_create_says_what_was_accepted(api: ComputeApi) -> None:
    answer = api.request("POST", "/servers", a_create(key_name="laptop"), version="2.96")
    assert answer.status_code == 202
    server = answer.json["server"]
    assert set(server) == {"id", "links", "OS-DCF:diskConfig", "security_groups", "adminPass"}
    assert answer.headers["location"] == server["links"][0]["href"]
    (method, request), *_ = api.conductor.asked
    assert method == "create_servers"
    assert request.flavor.memory_mib == 2048
    assert request.public_key == "ssh-ed25519 AAAA"
    assert request.auto_network
    assert request.security_groups == ("default",)
    shown = api.get(f"/servers/{server['id']}", version="2.96").json["server"]
    assert shown["status"] == "BUILD"
    assert shown["addresses"] == {}


@pytest.mark.parametrize(
    ("asked", "shown"),
    [
        ({"OS-DCF:diskConfig": "AUTO"}, "AUTO"),
        ({"OS-DCF:diskConfig": "MANUAL"}, "MANUAL"),
        ({}, "MANUAL"),
    ],
)
def test_the_disk_configuration_is_shown_as_asked(
    api: ComputeApi, asked: dict[str, str], shown: str
) -> None:
    name = "OS-DCF:diskConfig"
    made = api.request("POST", "/servers", a_create(**asked), version="2.96").json["server"]
    assert made[name] == shown
    path = f"/servers/{made['id']}"
    assert api.get(path).json["server"][name] == shown
    (listed,) = api.get("/servers/detail?sort_key=auto_disk_config").json["servers"]
    assert listed[name] == shown
    for other in ("AUTO", "MANUAL"):
        answer = api.request("PUT", path, {"server": {name: other}}, version="2.96")
        assert answer.json["server"][name] == other
        assert api.get(path).json["server"][name] == other
    refused = api.request("PUT", path, {"server": {name: "auto"}}, version="2.96")
    assert refused.status_code == 400


def test_create_several_by_reservation(api: ComputeApi) -> None:
    body = a_create(min_count="2", max_count=3, return_reservation_id=True)
    answer = api.request("POST", "/servers", body, version="2.96")
    assert answer.json == {"reservation_id": "r-12345678"}
    assert len(api.get("/servers").json["servers"]) == 3


def test_the_password_may_be_kept_back(make: MakeApi) -> None:
    api = make(enable_instance_password=False)
    answer = api.request("POST", "/servers", a_create(), version="2.96")
    assert "adminPass" not in answer.json["server"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"flavorRef": "nope"}, "Flavor nope could not be found."),
        ({"imageRef": "5b0d2b6f-4a0b-4a57-9f0e-000000000000"}, "Can not find requested image"),
        ({"imageRef": None}, "Missing imageRef attribute"),
        ({"imageRef": ""}, "Missing imageRef attribute"),
        ({"key_name": "nope"}, "Invalid key_name provided."),
        ({"min_count": 3, "max_count": 2}, "min_count must be <= max_count"),
        ({"min_count": "9" * 5000}, "at the most"),
        ({"min_count": 10**30}, "min_count is too large"),
        (
            {"networks": [{"port": NETWORK, "fixed_ip": "10.0.0.9"}]},
            f"Specified Fixed IP '10.0.0.9' cannot be used with port '{NETWORK}'",
        ),
        (
            {"networks": [{"port": NETWORK}], "max_count": 2},
            "Unable to launch multiple instances with a single configured port ID",
        ),
        (
            {"networks": [{"port": NETWORK}, {"port": NETWORK.upper()}]},
            f"Port ID '{NETWORK}' was specified twice: you cannot attach a port multiple times.",
        ),
        ({"networks": [{}]}, "Bad network format: missing 'uuid'"),
        ({"networks": [{"uuid": IMAGE}]}, "Network could not be found."),
        ({"availability_zone": "mars"}, "The requested availability zone is not available"),
        ({"hostname": "web", "max_count": 2}, "Unable to allocate a single hostname"),
        ({"flavorRef": "tiny"}, "Flavor's disk is too small for requested image."),
        (
            {"security_groups": [{"name": "default"}, {"name": "web"}]},
            "Unable to find security_group with name or id 'web'",
        ),
    ],
)
def test_create_refuses(make: MakeApi, changes: dict[str, Any], message: str) -> None:
    api = make(a_flavor("tiny", disk_gib=1))
    answer = api.request("POST", "/servers", a_create(**changes), version="2.96")
    assert answer.status_code == 400
    assert message in answer.json["badRequest"]["message"]


def test_create_from_a_local_block_device(api: ComputeApi) -> None:
    device = {
        "uuid": IMAGE,
        "source_type": "image",
        "destination_type": "local",
        "boot_index": 0,
        "delete_on_termination": True,
    }
    body = a_create(block_device_mapping_v2=[device])
    assert api.request("POST", "/servers", body, version="2.96").status_code == 202
    assert api.conductor.asked[-1][1].image_id == IMAGE


def test_the_tag_of_the_root_disk(api: ComputeApi) -> None:
    device = {"uuid": IMAGE, "source_type": "image", "boot_index": 0, "tag": "système"}
    for version in ("2.32", "2.42", "2.96"):
        body = a_create(block_device_mapping_v2=[device], networks=[{"uuid": NETWORK}])
        answer = api.request("POST", "/servers", body, version=version)
        assert answer.status_code == 202, answer.text
        assert api.conductor.asked[-1][1].disk_tag == "système"
    for version, tag, why in (
        ("2.31", "a", "Additional properties are not allowed ('tag' was unexpected)"),
        ("2.33", "a", "Additional properties are not allowed ('tag' was unexpected)"),
        ("2.42", "a,b", "'a,b' does not match"),
        ("2.42", "a" * 61, "is too long"),
    ):
        body = a_create(block_device_mapping_v2=[{**device, "tag": tag}], networks=None)
        answer = api.request("POST", "/servers", body, version=version)
        assert answer.status_code == 400
        assert why in answer.json["badRequest"]["message"]
    assert len(api.conductor.asked) == 3


def test_networks_of_old_versions(api: ComputeApi) -> None:
    body = a_create(networks=None)
    assert api.request("POST", "/servers", body, version="2.36").status_code == 202
    assert api.conductor.asked[-1][1].auto_network
    refused = api.request("POST", "/servers", body, version="2.37")
    assert refused.json["badRequest"]["message"] == (
        "Invalid input for field/attribute server. 'networks' is a required property"
    )
    assert not api.conductor.asked[-1][1].needs_network
    auto = a_create(networks="auto")
    assert api.request("POST", "/servers", auto, version="2.36").status_code == 400
    assert api.request("POST", "/servers", auto, version="2.37").status_code == 202
    assert api.conductor.asked[-1][1].auto_network
    assert api.conductor.asked[-1][1].needs_network
    wish = a_create(networks=[{"uuid": NETWORK, "fixed_ip": "10.20.0.5"}])
    assert api.request("POST", "/servers", wish, version="2.37").status_code == 202
    assert api.conductor.asked[-1][1].networks[0].fixed_ip == "10.20.0.5"
    assert api.request("POST", "/servers", a_create(networks="none"), version="2.37").status
    assert not api.conductor.asked[-1][1].auto_network


def test_only_administrators_choose_hosts(api: ComputeApi) -> None:
    for changes in (
        {"availability_zone": "az1:pve1"},
        {"host": "pve1"},
        {"hypervisor_hostname": "pve1"},
        {"host": "pve1", "hypervisor_hostname": "pve1"},
    ):
        refused = api.request("POST", "/servers", a_create(**changes), version="2.74")
        assert refused.status_code == 403, changes
        taken = api.request("POST", "/servers", a_create(**changes), version="2.74", token=MANAGER)
        assert taken.status_code == 202, taken.text
        assert api.conductor.asked[-1][1].force_host == "pve1"
    wrong = a_create(host="mars")
    answer = api.request("POST", "/servers", wrong, version="2.74", token=MANAGER)
    assert answer.json["badRequest"]["message"] == "Compute host mars could not be found."


def test_a_disabled_host_may_be_named_and_its_zone_is_none_to_choose(make: MakeApi) -> None:
    api = make(a_service("pve9", availability_zone="az9", disabled=True))
    for changes, status in (
        ({"host": "pve9"}, 202),
        ({"availability_zone": "az9:pve9"}, 202),
        ({"availability_zone": "az9"}, 400),
        ({"availability_zone": "az1:pve9"}, 400),
    ):
        body = a_create(**changes)
        answer = api.request("POST", "/servers", body, version="2.74", token=MANAGER)
        assert answer.status_code == status, (changes, answer.text)


def test_hints_that_name_no_network_are_refused(api: ComputeApi) -> None:
    for cidr, status in (("/99", 400), ("/24", 202)):
        hints = {"build_near_host_ip": "10.99.0.1", "cidr": cidr}
        body = {**a_create(), "os:scheduler_hints": hints}
        answer = api.request("POST", "/servers", body, version="2.96", token=MANAGER)
        assert answer.status_code == status, answer.text
    assert api.conductor.asked[-1][1].scheduler_hints == hints


def test_only_administrators_ask_for_hosts_by_address(api: ComputeApi) -> None:
    """The answer would show which address a host has."""
    body = {**a_create(), "os:scheduler_hints": {"build_near_host_ip": "10.99.0.1"}}
    answer = api.request("POST", "/servers", body, version="2.96")
    assert answer.json["forbidden"]["message"] == (
        "Policy doesn't allow micronova:servers:create:near_host_ip to be performed."
    )
    assert api.conductor.asked == []


def test_the_policy_is_asked_before_anything_is_looked_up(api: ComputeApi) -> None:
    """So that nobody learns of what exists by asking for what is forbidden."""
    hints = {"os:scheduler_hints": {"build_near_host_ip": "10.99.0.1"}}
    body = {**a_create(imageRef=NETWORK, key_name="none"), **hints}
    answer = api.request("POST", "/servers", body, version="2.96")
    assert answer.status_code == 403, answer.text


def test_only_administrators_choose_addresses_outside_of_pools(api: ComputeApi) -> None:
    body = a_create(networks=[{"uuid": NETWORK, "fixed_ip": "10.20.0.5"}])
    for token, anywhere in ((auth.MEMBER, False), (MANAGER, True)):
        assert (
            api.request("POST", "/servers", body, version="2.96", token=token).status
            == "202 Accepted"
        )
        assert api.conductor.asked[-1][1].any_address is anywhere


@pytest.mark.parametrize("groups", [None, [], [{}], [{"name": "default"}]])
def test_the_default_security_group_is_always_there(api: ComputeApi, groups: Any) -> None:
    body = a_create(security_groups=groups)
    assert api.request("POST", "/servers", body, version="2.96").status_code == 202
    assert api.conductor.asked[-1][1].security_groups == ("default",)


def test_over_quota_is_forbidden(api: ComputeApi) -> None:
    answer = api.request("POST", "/servers", a_create(max_count=11), version="2.96")
    assert answer.status_code == 403
    assert answer.json["forbidden"]["message"].startswith("Quota exceeded for instances")


def test_update(make: MakeApi) -> None:
    api = make(a_full_server(1))
    path = f"/servers/{uuid_of(1)}"
    body = {"server": {"name": "new", "description": None, "hostname": "a.b"}}
    answer = api.request("PUT", path, body, version="2.94")
    assert answer.json["server"]["name"] == "new"
    assert answer.json["server"]["OS-EXT-SRV-ATTR:hostname"] == "a.b"
    assert "OS-EXT-STS:vm_state" in answer.json["server"]
    short = api.request("PUT", path, {"server": {"name": "old"}}, version="2.74")
    assert "OS-EXT-STS:vm_state" not in short.json["server"]
    refused = api.request("PUT", path, body, version="2.93")
    assert "does not match" in refused.json["badRequest"]["message"]


def test_delete_and_actions(make: MakeApi) -> None:
    api = make(a_full_server(1), a_full_server(2, vm_state="stopped"))
    stop = f"/servers/{uuid_of(1)}/action"
    assert api.request("POST", stop, {"os-stop": None}).status_code == 202
    conflict = api.request("POST", stop, {"os-start": None})
    assert conflict.status_code == 409
    assert conflict.json["conflictingRequest"]["message"] == (
        f"Cannot 'start' instance {uuid_of(1)} while it is in vm_state active"
    )
    assert api.request("POST", stop, {"reboot": {"type": "Hard"}}).status_code == 202
    assert api.request("POST", stop, {"reboot": {"type": "soft"}}).status_code == 202
    assert [what[:2] for _, what in api.conductor.asked] == [
        (uuid_of(1), "stop"),
        (uuid_of(1), "start"),
        (uuid_of(1), "reboot-hard"),
        (uuid_of(1), "reboot"),
    ]
    for action in ("pause", "unpause", "suspend", "resume"):
        answer = api.request("POST", stop, {action: None})
        assert answer.status_code == (202 if action in ("pause", "suspend") else 409), action
        assert api.conductor.asked[-1][1][:2] == (uuid_of(1), action)
    for body in ({"os-shelve": None}, {"os-stop": None, "reboot": {}}, [], None):
        assert api.request("POST", stop, body).status_code == 400, body
    assert api.request("DELETE", f"/servers/{uuid_of(1)}").status_code == 204
    assert api.get(f"/servers/{uuid_of(1)}").status_code == 404


def test_errors_of_the_conductor(make: MakeApi) -> None:
    api = make(a_full_server(1))
    api.conductor.fail = Unavailable("The service behind act did not answer.")
    answer = api.request("DELETE", f"/servers/{uuid_of(1)}")
    assert answer.status_code == 503
    assert "serviceUnavailable" in answer.json
    api.conductor.fail = RuntimeError("secret")
    answer = api.request("DELETE", f"/servers/{uuid_of(1)}")
    assert answer.status_code == 500
    assert answer.json["computeFault"]["message"].startswith("Unexpected API Error")
    assert "secret" not in answer.text
    assert answer.headers["x-compute-request-id"].startswith("req-")
