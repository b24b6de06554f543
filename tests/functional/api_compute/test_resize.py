"""Resize, confirm and revert: who may, with which bodies, and what is refused in which words."""

from __future__ import annotations

from typing import Any

import pytest

from db import schema
from tests.fixtures import auth
from tests.fixtures.compute import ComputeApi, a_flavor, a_full_server, uuid_of
from tests.functional.api_compute.conftest import MakeApi

pytestmark = pytest.mark.database

SERVER = f"/servers/{uuid_of(1)}"
RESIZE = {"resize": {"flavorRef": "m1.large"}}


@pytest.fixture
def make_resizable(make: MakeApi) -> Any:
    def made(**changes: Any) -> ComputeApi:
        return make(
            a_full_server(1, **changes),
            a_flavor("m1.large", vcpus=4, memory_mib=8192, disk_gib=40),
            a_flavor("m1.tiny", memory_mib=512, disk_gib=10),
            a_flavor("m1.zero", disk_gib=0),
            a_flavor("m1.secret", is_public=False),
            a_flavor("m1.off", disabled=True),
            a_flavor("m1.huge", vcpus=100),
        )

    return made


@pytest.fixture
def api(make_resizable: Any) -> ComputeApi:
    made: ComputeApi = make_resizable()
    return made


def act(api: ComputeApi, body: Any, token: str = auth.MEMBER, version: str = "2.104") -> Any:
    return api.request("POST", f"{SERVER}/action", body, token=token, version=version)


def text(answer: Any) -> str:
    [fault] = answer.json.values()
    return str(fault["message"])


def test_a_resize_is_accepted(api: ComputeApi) -> None:
    assert act(api, RESIZE).status_code == 202
    server = api.get(SERVER, version="2.104").json["server"]
    assert (server["status"], server["OS-EXT-STS:task_state"]) == ("RESIZE", "resize_prep")
    assert server["flavor"]["original_name"] == "m1.small"
    answer = api.get("/os-migrations", token=auth.ADMIN, version="2.104")
    [shown] = answer.json["migrations"]
    assert (shown["migration_type"], shown["status"]) == ("resize", "pre-migrating")
    assert (shown["source_compute"], shown["dest_compute"]) == ("pve1", "pve1")
    assert shown["old_instance_type_id"] != shown["new_instance_type_id"]
    again = act(api, RESIZE)
    assert again.status_code == 409
    assert "while it is in task_state resize_prep" in text(again)


def test_who_may(api: ComputeApi) -> None:
    for body in (RESIZE, {"confirmResize": None}, {"revertResize": None}):
        assert act(api, body, auth.READER).status_code == 403
        assert act(api, body, auth.OTHER).status_code == 404


@pytest.mark.parametrize(
    ("flavor", "words"),
    [
        ("m1.small", "When resizing, instances must change flavor!"),
        ("m1.none", "Flavor m1.none could not be found."),
        ("m1.secret", "Flavor m1.secret could not be found."),
        ("m1.off", "Flavor m1.off could not be found."),
        ("m1.zero", "Resize to zero disk flavor is not allowed."),
        ("m1.tiny", "disks can't shrink"),
    ],
)
def test_flavors_that_are_refused(api: ComputeApi, flavor: str, words: str) -> None:
    refused = act(api, {"resize": {"flavorRef": flavor}})
    assert refused.status_code == 400
    assert words in text(refused)


def test_the_quota(api: ComputeApi) -> None:
    refused = act(api, {"resize": {"flavorRef": "m1.huge"}})
    assert refused.status_code == 403
    assert "Quota exceeded for cores: Requested 99, but already used 1 of" in text(refused)


@pytest.mark.parametrize(
    "body",
    [
        {"resize": {}},
        {"resize": None},
        {"resize": {"flavorRef": ""}},
        {"resize": {"flavorRef": "m1.large", "host": "pve2"}},
        {"resize": {"flavorRef": "m1.large", "OS-DCF:diskConfig": "auto"}},
        {"confirmResize": None, "revertResize": None},
    ],
)
def test_malformed_bodies(api: ComputeApi, body: Any) -> None:
    assert act(api, body).status_code == 400


@pytest.mark.parametrize("action", ["confirmResize", "revertResize"])
def test_only_a_resized_server_is_confirmed_or_reverted(make_resizable: Any, action: str) -> None:
    api = make_resizable()
    refused = act(api, {action: None})
    words = f"Cannot '{action}' instance {uuid_of(1)} while it is in vm_state active"
    assert (refused.status_code, text(refused)) == (409, words)


@pytest.mark.parametrize("action", ["confirmResize", "revertResize"])
def test_a_resize_that_is_not_on_record(make_resizable: Any, action: str) -> None:
    api = make_resizable(vm_state="resized")
    assert api.get(SERVER).json["server"]["status"] == "VERIFY_RESIZE"
    refused = act(api, {action: None})
    assert (refused.status_code, text(refused)) == (400, "Instance has not been resized.")


def test_locks_and_silent_agents(make_resizable: Any) -> None:
    api = make_resizable(locked_by="admin")
    assert text(act(api, RESIZE)) == f"Instance {uuid_of(1)} is locked"
    with api.writer.begin() as connection:
        connection.execute(schema.servers.update().values(locked_by=None))
        connection.execute(schema.services.update().values(forced_down=True))
    refused = act(api, RESIZE)
    assert refused.status_code == 409
    assert text(refused) == "Service is unavailable at this time."


def migrations_of(api: ComputeApi) -> Any:
    return api.get("/os-migrations", token=auth.ADMIN, version="2.104").json["migrations"]


@pytest.mark.parametrize(
    ("body", "version"),
    [
        ({"migrate": None}, "2.1"),
        ({"migrate": {}}, "2.1"),
        ({"migrate": None}, "2.56"),
        ({"migrate": {}}, "2.56"),
    ],
)
def test_a_migration_is_accepted(api: ComputeApi, body: Any, version: str) -> None:
    assert act(api, body, auth.ADMIN, version).status_code == 202
    server = api.get(SERVER, version="2.104").json["server"]
    assert (server["status"], server["OS-EXT-STS:task_state"]) == ("RESIZE", "resize_prep")
    [shown] = migrations_of(api)
    assert (shown["migration_type"], shown["status"]) == ("migration", "pre-migrating")
    assert (shown["source_compute"], shown["dest_compute"]) == ("pve1", None)
    assert shown["old_instance_type_id"] == shown["new_instance_type_id"]
    [action, *_] = api.get(f"{SERVER}/os-instance-actions").json["instanceActions"]
    assert action["action"] == "migrate"


def test_who_may_migrate(api: ComputeApi) -> None:
    for token in (auth.MEMBER, auth.READER):
        assert act(api, {"migrate": None}, token).status_code == 403
    assert act(api, {"migrate": {"host": "pve2"}}, auth.MANAGER).status_code == 403
    assert not migrations_of(api)
    assert act(api, {"migrate": None}, auth.MANAGER).status_code == 202


@pytest.mark.parametrize(
    ("host", "words"),
    [
        ("pve1", "Cannot migrate to the host where the server exists."),
        ("pve9", "Compute host pve9 could not be found."),
    ],
)
def test_hosts_that_are_refused(api: ComputeApi, host: str, words: str) -> None:
    refused = act(api, {"migrate": {"host": host}}, auth.ADMIN)
    assert (refused.status_code, text(refused)) == (400, words)


@pytest.mark.parametrize(
    ("body", "version"),
    [
        ({"migrate": {"hosts": "pve2"}}, "2.56"),
        ({"migrate": {"host": ""}}, "2.56"),
        ({"migrate": {"host": 3}}, "2.104"),
        ({"migrate": "pve2"}, "2.56"),
        ({"migrate": None, "resize": None}, "2.1"),
    ],
)
def test_malformed_migrations(api: ComputeApi, body: Any, version: str) -> None:
    assert act(api, body, auth.ADMIN, version).status_code == 400
