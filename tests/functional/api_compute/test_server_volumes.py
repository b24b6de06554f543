"""os-volume_attachments: versions, refusals in Nova's words, whose volumes may be attached."""

from __future__ import annotations

from typing import Any

import pytest
import sqlalchemy as sa

from common import ids
from common.resources.states import PowerState
from db import schema
from tests.fixtures import auth
from tests.fixtures.compute import ComputeApi, a_full_server, a_host, uuid_of
from tests.fixtures.listings import Row
from tests.fixtures.volumes import SHARED_STORAGE, a_volume, an_attachment, volume_id
from tests.functional.api_compute.conftest import MakeApi

pytestmark = pytest.mark.database

PATH = f"/servers/{uuid_of(1)}/os-volume_attachments"
FREE, HAD, ROOT, THEIRS, BROKEN, OF_TWO = range(20, 26)
NEWEST = "2.104"


def a_reaching_host(name: str = "pve2", **facts: Any) -> Row:
    return a_host(name, facts={"storages": [SHARED_STORAGE], **facts})


@pytest.fixture
def api(make: MakeApi) -> ComputeApi:
    made = make(
        a_full_server(1, host="pve2", node="pve2"),
        a_full_server(2, host="pve2", node="pve2", vm_state="suspended"),
        a_full_server(3, "other", host="pve2", node="pve2"),
        a_reaching_host(),
        a_volume(FREE),
        a_volume(HAD, status="in-use"),
        a_volume(ROOT, status="in-use"),
        a_volume(THEIRS, "other"),
        a_volume(BROKEN, status="error"),
        a_volume(OF_TWO, status="in-use"),
        an_attachment(HAD, slot=1, tag="data"),
        an_attachment(ROOT, slot=0),
        an_attachment(OF_TWO, 2, slot=1),
    )
    add_service(made, "pve2")
    return made


def add_service(api: ComputeApi, host: str) -> None:
    """Have a worker look after a host."""
    with api.writer.begin() as connection:
        first = connection.execute(
            sa.select(schema.services).where(schema.services.c.host == "pve1")
        ).one()
        row = {**first._mapping, "host": host, "uuid": ids.named("service", host)}
        row.pop("id", None)
        connection.execute(schema.services.insert().values(**row))


def change(api: ComputeApi, **values: Any) -> None:
    table = schema.servers
    with api.writer.begin() as connection:
        connection.execute(table.update().where(table.c.uuid == uuid_of(1)).values(**values))


def status_of(api: ComputeApi, number: int) -> str:
    table = schema.volumes
    with api.reader.connect() as connection:
        query = sa.select(table.c.status).where(table.c.id == volume_id(number))
        return str(connection.execute(query).scalar_one())


def attach(api: ComputeApi, number: int = FREE, version: str = "2.100", **asked: Any) -> Any:
    body = {"volumeAttachment": {"volumeId": volume_id(number), **asked}}
    return api.request("POST", PATH, body, version=version)


def put(
    api: ComputeApi, number: int, body: dict[str, Any], version: str, token: str = auth.MEMBER
) -> Any:
    sent = {"volumeAttachment": body}
    path = f"{PATH}/{volume_id(number)}"
    return api.request("PUT", path, sent, version=version, token=token)


def refused(answer: Any) -> tuple[int, str]:
    [fault] = answer.json.values()
    assert fault["code"] == answer.status_code
    return answer.status_code, fault["message"]


@pytest.mark.parametrize(
    ("version", "more"),
    [
        ("2.1", {"id"}),
        ("2.69", {"id"}),
        ("2.70", {"id", "tag"}),
        ("2.79", {"id", "tag", "delete_on_termination"}),
        ("2.88", {"id", "tag", "delete_on_termination"}),
        ("2.89", {"tag", "delete_on_termination", "attachment_id", "bdm_uuid"}),
        (NEWEST, {"tag", "delete_on_termination", "attachment_id", "bdm_uuid"}),
    ],
)
def test_what_is_shown(api: ComputeApi, version: str, more: set[str]) -> None:
    everything = {
        "id": volume_id(HAD),
        "volumeId": volume_id(HAD),
        "serverId": uuid_of(1),
        "device": "/dev/sdb",
        "tag": "data",
        "delete_on_termination": False,
        "attachment_id": ids.named("attachment", str(HAD)),
        "bdm_uuid": ids.named("attachment", str(HAD)),
    }
    shown = {key: everything[key] for key in {"volumeId", "serverId", "device"} | more}
    one = api.get(f"{PATH}/{volume_id(HAD)}", version=version)
    assert one.json == {"volumeAttachment": shown}
    found = api.get(PATH, version=version).json["volumeAttachments"]
    assert {each["volumeId"] for each in found} == {volume_id(HAD), volume_id(ROOT)}
    assert shown in found


def test_lists_come_in_parts(api: ComputeApi) -> None:
    def listed(query: str, version: str = NEWEST, **more: Any) -> Any:
        answer = api.get(f"{PATH}{query}", version=version, **more)
        return len(answer.json["volumeAttachments"]) if answer.status_code == 200 else None

    assert listed("") == listed("?limit=0") == listed("?limit=5&offset=0") == 2
    assert (listed("?limit=1"), listed("?offset=1"), listed("?offset=2")) == (1, 1, 0)
    assert listed("?limit=1&limit=2") == 2
    for query in ("?limit=-1", "?offset=x", "?limit="):
        assert listed(query) is None, query
    assert listed("?x=1", version="2.74") == 2
    assert listed("?x=1", version="2.75") is None
    assert listed("", token=auth.READER) == 2
    assert api.get(PATH, token=auth.OTHER).status_code == 404


def test_a_volume_is_attached(api: ComputeApi) -> None:
    answer = attach(api, version="2.1", device="/dev/vdz")
    assert answer.status_code == 200
    # It is where there is room, as with Nova's libvirt driver, whatever was asked for.
    assert answer.json["volumeAttachment"] == {
        "id": volume_id(FREE),
        "volumeId": volume_id(FREE),
        "serverId": uuid_of(1),
        "device": "/dev/sdc",
    }
    assert status_of(api, FREE) == "attaching"
    assert attach(api).status_code == 400
    actions = api.get(f"/servers/{uuid_of(1)}/os-instance-actions").json["instanceActions"]
    assert {one["action"] for one in actions} == {"attach_volume"}


@pytest.mark.parametrize("version", ["2.70", "2.79", "2.89", "2.100", "2.101"])
def test_what_an_attachment_answers(api: ComputeApi, version: str) -> None:
    minor = int(version.partition(".")[2])
    asked: dict[str, Any] = {"tag": "logs"} | (
        {"delete_on_termination": "yes"} if minor >= 79 else {}
    )
    answer = attach(api, version=version, **asked)
    if minor >= 101:
        assert (answer.status_code, answer.content) == (202, b"")
        return
    shown = {"id", "volumeId", "serverId", "device", "tag"}
    shown |= {"delete_on_termination"} if minor >= 79 else set()
    assert answer.json["volumeAttachment"].keys() == shown
    assert answer.json["volumeAttachment"]["tag"] == "logs"
    assert answer.json["volumeAttachment"].get("delete_on_termination", True) is True


@pytest.mark.parametrize(
    ("number", "status", "words"),
    [
        (HAD, 400, f"Invalid volume: volume {volume_id(HAD)} is already attached to instances: "),
        (OF_TWO, 400, f"is already attached to instances: {uuid_of(2)}"),
        (THEIRS, 404, f"Volume {volume_id(THEIRS)} could not be found."),
        (99, 404, f"Volume {volume_id(99)} could not be found."),
        (
            BROKEN,
            400,
            f"Volume {volume_id(BROKEN)} status must be available or downloading to reserve, but "
            "the current status is error.",
        ),
    ],
)
def test_volumes_that_cannot_be_attached(
    api: ComputeApi, number: int, status: int, words: str
) -> None:
    code, message = refused(attach(api, number))
    assert code == status
    assert words in message


@pytest.mark.parametrize(
    ("version", "asked"),
    [
        ("2.1", {"volumeId": "x"}),
        ("2.1", {"device": "sdb"}),
        ("2.1", {"device": ""}),
        ("2.1", {"device": "/dev/SDB"}),
        ("2.1", {"device": "/dev/"}),
        ("2.1", {"device": 1}),
        ("2.1", {"x": 1}),
        ("2.48", {"tag": "a"}),
        ("2.49", {"tag": "a,b"}),
        ("2.49", {"tag": ""}),
        ("2.49", {"tag": None}),
        ("2.78", {"delete_on_termination": True}),
        ("2.79", {"delete_on_termination": "perhaps"}),
    ],
)
def test_malformed_bodies(api: ComputeApi, version: str, asked: dict[str, Any]) -> None:
    code, message = refused(attach(api, version=version, **asked))
    assert code == 400
    assert "Invalid input" in message or "Additional properties" in message
    assert status_of(api, FREE) == "available"


@pytest.mark.parametrize("device", [None, "/dev/sdb", "/dev/xvdb1", "/dev/vdaa"])
def test_devices_that_nova_knows(api: ComputeApi, device: str | None) -> None:
    assert attach(api, device=device).status_code == 200


def test_too_many(api: ComputeApi) -> None:
    taken = (*range(2, 14), *range(16, 31))
    api.add(*(a_volume(100 + slot, status="in-use") for slot in taken))
    api.add(*(an_attachment(100 + slot, slot=slot) for slot in taken))
    code, message = refused(attach(api))
    assert (code, message) == (
        403,
        "The maximum allowed number of disk devices (24) to attach to a single instance has been "
        "exceeded.",
    )
    assert status_of(api, FREE) == "available"


STATES = (
    *("active", "paused", "stopped", "resized", "soft-delete", "shelved", "shelved_offloaded"),
    *("suspended", "rescued", "error", "building"),
)


@pytest.mark.parametrize("state", STATES)
def test_the_state_decides(api: ComputeApi, state: str) -> None:
    change(api, vm_state=state)
    path = f"{PATH}/{volume_id(HAD)}"
    attached, detached = attach(api), api.request("DELETE", path, version="2.20")
    if state in STATES[:7]:
        assert (attached.status_code, detached.status_code) == (200, 202)
        assert (status_of(api, FREE), status_of(api, HAD)) == ("attaching", "detaching")
        return
    for answer, action in ((attached, "attach_volume"), (detached, "detach_volume")):
        assert refused(answer) == (
            409,
            f"Cannot '{action}' instance {uuid_of(1)} while it is in vm_state {state}",
        )


@pytest.mark.parametrize("state", ["shelved", "shelved_offloaded"])
def test_shelved_servers_before_2_20(api: ComputeApi, state: str) -> None:
    change(api, vm_state=state)
    path = f"{PATH}/{volume_id(HAD)}"
    for answer, action in (
        (attach(api, version="2.19"), "attach_volume"),
        (api.request("DELETE", path, version="2.19"), "detach_volume"),
    ):
        assert refused(answer) == (
            409,
            f"Cannot '{action}' instance {uuid_of(1)} while it is in vm_state {state}",
        )
    tagged = attach(api, tag="a")
    if state == "shelved_offloaded":
        assert refused(tagged) == (
            400,
            "Tagged volume attachment is not supported for shelved-offloaded instances.",
        )
    else:
        assert tagged.status_code == 200


def test_one_whose_memory_is_saved(api: ComputeApi) -> None:
    change(api, vm_state="shelved_offloaded", power_state=int(PowerState.SUSPENDED))
    assert "its memory is saved on its node" in refused(attach(api))[1]
    path = f"{PATH}/{volume_id(HAD)}"
    assert refused(api.request("DELETE", path, version="2.20"))[0] == 409


def test_a_lock_and_another_task_stop_it(api: ComputeApi) -> None:
    path = f"{PATH}/{volume_id(HAD)}"
    change(api, locked_by="admin")
    for answer in (attach(api), api.request("DELETE", path)):
        assert refused(answer) == (409, f"Instance {uuid_of(1)} is locked")
    change(api, locked_by=None, task_state="rebooting")
    for answer in (attach(api), api.request("DELETE", path)):
        code, message = refused(answer)
        assert code == 409
        assert message.endswith("while it is in task_state rebooting")


def test_a_volume_is_detached(api: ComputeApi) -> None:
    path = f"{PATH}/{volume_id(HAD)}"
    assert api.request("DELETE", path).status_code == 202
    assert status_of(api, HAD) == "detaching"
    code, message = refused(api.request("DELETE", path))
    assert code == 400
    assert "Volume status must be 'in-use' and attach_status must be 'attached'" in message


@pytest.mark.parametrize(
    ("number", "status", "message"),
    [
        (FREE, 404, f"Instance {uuid_of(1)} is not attached to volume {volume_id(FREE)}"),
        (OF_TWO, 404, f"Instance {uuid_of(1)} is not attached to volume {volume_id(OF_TWO)}"),
        (THEIRS, 404, f"Volume {volume_id(THEIRS)} could not be found."),
        (99, 404, f"Volume {volume_id(99)} could not be found."),
        (ROOT, 400, "Cannot detach a root device volume"),
    ],
)
@pytest.mark.parametrize("state", ["active", "suspended"])
def test_what_is_not_detached(
    api: ComputeApi, number: int, status: int, message: str, state: str
) -> None:
    change(api, vm_state=state)
    answer = api.request("DELETE", f"{PATH}/{volume_id(number)}")
    assert refused(answer) == (status, message)


def test_a_show_of_what_is_not_attached(api: ComputeApi) -> None:
    for number in (FREE, THEIRS, 99):
        assert refused(api.get(f"{PATH}/{volume_id(number)}")) == (
            404,
            f"Instance {uuid_of(1)} is not attached to volume {volume_id(number)}",
        )


def test_nobody_swaps_volumes(api: ComputeApi) -> None:
    for version, body in (
        ("2.84", {"volumeId": volume_id(HAD)}),
        ("2.84", {"volumeId": volume_id(FREE)}),
        ("2.85", {"volumeId": volume_id(FREE)}),
    ):
        for token in (auth.MEMBER, auth.ADMIN, auth.READER):
            assert put(api, HAD, body, version, token).status_code == 403
        assert refused(put(api, HAD, body, version, auth.SERVICE)) == (
            409,
            f"volume {volume_id(HAD)} is not migrating; this API should only be called by Cinder",
        )
    answer = put(api, 99, {"volumeId": volume_id(FREE)}, "2.84", auth.SERVICE)
    assert refused(answer) == (404, f"Volume {volume_id(99)} could not be found.")


def test_only_what_becomes_of_it_is_changed(api: ComputeApi) -> None:
    mine = {"volumeId": volume_id(HAD)}
    bodies: tuple[dict[str, Any], ...] = (
        {},
        {"delete_on_termination": True},
        {"delete_on_termination": "0", "device": "/dev/sdb", "tag": "data"},
        {"delete_on_termination": "TRUE", "serverId": uuid_of(1), "id": volume_id(HAD)},
    )
    for body in bodies:
        answer = put(api, HAD, mine | body, "2.85")
        assert (answer.status_code, answer.content) == (202, b"")
    shown = api.get(f"{PATH}/{volume_id(HAD)}", version="2.85").json["volumeAttachment"]
    assert shown["delete_on_termination"] is True
    for name, value in (
        ("device", "/dev/sdc"),
        ("device", None),
        ("tag", "other"),
        ("serverId", uuid_of(2)),
        ("id", volume_id(FREE)),
    ):
        answer = put(api, HAD, mine | {name: value}, "2.85")
        assert refused(answer) == (400, f"The {name} property is not mutable")
    gone = put(api, FREE, {"volumeId": volume_id(FREE)}, "2.85")
    assert refused(gone) == (
        404,
        f"No volume Block Device Mapping with id {volume_id(FREE)}.",
    )
    assert put(api, HAD, mine, "2.85", auth.READER).status_code == 403
    bodies = ({"device": "sdb"}, {"delete_on_termination": "x"}, {"x": 1}, {"tag": None})
    for body in bodies:
        assert put(api, HAD, mine | body, "2.85").status_code == 400
    assert put(api, HAD, {**mine, "device": "/dev/sdb"}, "2.84", auth.SERVICE).status_code == 400


def test_whose_it_is_counts(api: ComputeApi) -> None:
    path = f"{PATH}/{volume_id(HAD)}"
    for answer in (
        api.get(path, token=auth.OTHER),
        api.request("DELETE", path, token=auth.OTHER),
        put(api, HAD, {"volumeId": volume_id(HAD)}, "2.85", auth.OTHER),
        api.request(
            "POST", PATH, {"volumeAttachment": {"volumeId": volume_id(THEIRS)}}, token=auth.OTHER
        ),
    ):
        assert refused(answer) == (404, f"Instance {uuid_of(1)} could not be found.")
    for token in (auth.READER,):
        assert api.request("DELETE", path, token=token).status_code == 403
        assert api.get(path, token=token).status_code == 200


def test_a_volume_out_of_reach(api: ComputeApi) -> None:
    api.add(
        a_volume(40, storage="own", shared=False, node="pve1", host="pve1"),
        a_volume(41, storage="elsewhere"),
        a_volume(42, cluster="c2"),
    )
    for number, words in (
        (40, "it is on storage own, which only node pve1 has"),
        (41, "it is on storage elsewhere, which node pve2 doesn't reach"),
        (42, "it is in cluster c2, host pve2 in c1"),
    ):
        code, message = refused(attach(api, number))
        assert (code, words in message) == (400, True), message
        assert status_of(api, number) == "available"
