"""The ledger over HTTP: instance actions, and the whole story."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

from cli.render.page import page
from common import ids
from common.story.explanation import explanation_lines
from common.story.text import plain_text
from db import schema
from tests.fixtures import auth
from tests.fixtures.compute import ComputeApi, a_full_server, a_host, uuid_of
from tests.fixtures.listings import NOW, Row, a_network, a_port, an_image
from tests.functional.api_compute.conftest import MakeApi

pytestmark = pytest.mark.database

CREATE, REBOOT = f"req-{uuid_of(91)}", f"req-{uuid_of(92)}"
GLOBAL = f"req-{uuid_of(93)}"
ACTIONS = f"/servers/{uuid_of(1)}/os-instance-actions"
MINUTE = datetime.timedelta(minutes=1)


def an_operation(number: int, request_id: str, **changes: Any) -> Row:
    values: dict[str, Any] = {
        "id": number,
        "resource_type": "server",
        "resource_id": uuid_of(1),
        "project_id": "demo",
        "user_id": "demo",
        "request_id": request_id,
        "action": "create",
        "state": "done",
        "context": {},
        "params": {},
        "plan": {},
        "started_at": NOW + number * MINUTE,
        "updated_at": NOW + number * MINUTE,
        "finished_at": NOW + number * MINUTE,
    }
    return schema.operations, values | changes


def an_event(name: str, sequence: int, **changes: Any) -> Row:
    values: dict[str, Any] = {
        "operation_id": 1,
        "attempt": 1,
        "name": name,
        "sequence": sequence,
        "host": "pve1",
        "started_at": NOW,
        "finished_at": NOW,
        "result": "Success",
        "upid": None,
        "detail": {"node": "pve1"},
    }
    return schema.operation_events, values | changes


ROWS: tuple[Row, ...] = (
    a_full_server(1),
    an_operation(1, CREATE, global_request_id=GLOBAL, attempt=2),
    an_event("conductor_scheduling", 0, host=None),
    an_event("compute_create_vm", 1, result="Error", upid="UPID:pve1:1"),
    (
        schema.faults,
        {
            "server_uuid": uuid_of(1),
            "operation_id": 1,
            "request_id": CREATE,
            "attempt": 1,
            "code": 500,
            "category": "storage_full",
            "message": "storage of pve1 is full",
            "host": "pve1",
            "upid": "UPID:pve1:1",
            "log_tail": ["no space left on pve1"],
            "cleaned": ["VM 1 on pve1"],
            "left": [],
            "remedy": "free some space on pve1",
            "created_at": NOW,
        },
    ),
    (
        schema.transitions,
        {
            "server_uuid": uuid_of(1),
            "operation_id": 1,
            "from_vm_state": "building",
            "from_task_state": "scheduling",
            "to_vm_state": "building",
            "to_task_state": "networking",
            "at": NOW,
        },
    ),
    (
        schema.decisions,
        {
            "operation_id": 1,
            "attempt": 1,
            "server_uuid": uuid_of(1),
            "request_id": CREATE,
            "body": {
                "server_uuid": uuid_of(1),
                "host": "pve1",
                "considered": 3,
                "counts": {"memory": 2},
                "refused": {"memory": {"1 MiB free": ["pve2"], "2 MiB free": ["pve3"]}},
                "scores": {"pve1": {"ram": 1.0}},
                "reason": None,
            },
            "created_at": NOW,
        },
    ),
    an_operation(
        2, REBOOT, action="reboot-hard", state="failed", message="pve1 said no", user_id="admin"
    ),
)


@pytest.fixture
def api(make: MakeApi) -> ComputeApi:
    return make(*ROWS)


def test_actions_newest_first(api: ComputeApi) -> None:
    listed = api.get(ACTIONS).json["instanceActions"]
    assert [action["action"] for action in listed] == ["reboot", "create"]
    assert listed[0] == {
        "action": "reboot",
        "instance_uuid": uuid_of(1),
        "request_id": REBOOT,
        "user_id": "admin",
        "project_id": "demo",
        "start_time": "2026-01-31T12:02:00.123456",
        "message": "Error",
    }
    theirs = api.get(ACTIONS, version="2.58", token=auth.ADMIN).json["instanceActions"][0]
    assert theirs["message"] == "pve1 said no"
    assert theirs["updated_at"] == "2026-01-31T12:02:00.123456"


def test_pages_and_times(api: ComputeApi) -> None:
    first = api.get(f"{ACTIONS}?limit=1", version="2.58").json
    assert [action["request_id"] for action in first["instanceActions"]] == [REBOOT]
    assert f"marker={REBOOT}" in first["links"][0]["href"]
    second = api.get(f"{ACTIONS}?limit=1&marker={REBOOT}", version="2.58").json
    assert [action["request_id"] for action in second["instanceActions"]] == [CREATE]
    assert api.get(f"{ACTIONS}?marker=nope", version="2.58").status_code == 400
    since = api.get(f"{ACTIONS}?changes-since=2026-01-31T12:01:30Z", version="2.58").json
    assert [action["request_id"] for action in since["instanceActions"]] == [REBOOT]
    before = api.get(f"{ACTIONS}?changes-before=2026-01-31T12:01:30Z", version="2.66").json
    assert [action["request_id"] for action in before["instanceActions"]] == [CREATE]
    assert api.get(f"{ACTIONS}?nonsense=1", version="2.58").status_code == 400


def test_the_second_before_which_a_change_was_is_included(api: ComputeApi) -> None:
    """What is shown, with its microseconds or without, finds what shows it."""
    shown = api.get(f"{ACTIONS}/{CREATE}", version="2.66").json["instanceAction"]["updated_at"]
    assert shown.partition(".")[2] != "000000"
    for moment in (shown, shown.partition(".")[0], f"{shown.partition('.')[0]}Z"):
        found = api.get(f"{ACTIONS}?changes-before={moment}", version="2.66").json
        assert [action["request_id"] for action in found["instanceActions"]] == [CREATE]
        both = f"changes-before={moment}&changes-since={moment}"
        found = api.get(f"{ACTIONS}?{both}", version="2.66").json
        assert [action["request_id"] for action in found["instanceActions"]] == [CREATE]
    earlier = api.get(f"{ACTIONS}?changes-before=2026-01-31T12:00:59Z", version="2.66").json
    assert earlier["instanceActions"] == []


@pytest.mark.parametrize("parameter", ["changes-since", "changes-before"])
@pytest.mark.parametrize("moment", ["9999-12-31T23:59:59-23:59", "0001-01-01T00:00:00%2B23:59"])
def test_times_outside_of_the_calendar(api: ComputeApi, parameter: str, moment: str) -> None:
    for path in (ACTIONS, "/servers", "/servers/detail"):
        answer = api.get(f"{path}?{parameter}={moment}", version="2.96")
        assert answer.status_code == 400
        message = answer.json["badRequest"]["message"]
        assert message.startswith(f"Invalid input for query parameters {parameter}.")


def test_events(api: ComputeApi) -> None:
    path = f"{ACTIONS}/{CREATE}"
    assert "events" not in api.get(path, version="2.50").json["instanceAction"]
    mine = api.get(path, version="2.84").json["instanceAction"]["events"]
    assert [event["event"] for event in mine] == ["compute_create_vm", "conductor_scheduling"]
    assert set(mine[0]) == {"event", "start_time", "finish_time", "result", "hostId"}
    assert mine[0]["result"] == "Error"
    assert "pve1" not in str(mine)
    theirs = api.get(path, version="2.84", token=auth.ADMIN).json["instanceAction"]["events"]
    assert theirs[0]["host"] == "pve1"
    assert theirs[0]["details"] == "storage of pve1 is full"
    assert "no space left" in theirs[0]["traceback"]
    assert theirs[1]["traceback"] is None
    assert api.get(f"{ACTIONS}/req-nope").status_code == 404


def test_events_newest_first_whichever_service_numbered_them(make: MakeApi) -> None:
    second = datetime.timedelta(seconds=1)
    api = make(
        a_full_server(1),
        an_operation(1, CREATE),
        an_event("conductor_schedule", 0, started_at=NOW),
        an_event("conductor_allocate_network", 2, started_at=NOW + second),
        an_event("compute_check_host", 1, started_at=NOW + 2 * second),
        an_event("compute_ensure_image", 2, started_at=NOW + 3 * second),
    )
    found = api.get(f"{ACTIONS}/{CREATE}", version="2.51").json["instanceAction"]["events"]
    assert [event["event"] for event in found] == [
        "compute_ensure_image",
        "compute_check_host",
        "conductor_allocate_network",
        "conductor_schedule",
    ]


def test_actions_of_the_deleted(make: MakeApi) -> None:
    api = make(a_full_server(1, deleted_at=NOW, vm_state="deleted"), *ROWS[1:])
    assert api.get(ACTIONS, version="2.20").status_code == 404
    assert api.get(ACTIONS, version="2.21").status_code == 200


@pytest.mark.parametrize("subject", [CREATE, GLOBAL, uuid_of(1)])
def test_the_story_for_operators(api: ComputeApi, subject: str) -> None:
    answer = api.get(f"/explanations/{subject}", token=auth.ADMIN).json["explanation"]
    story = answer["operations"][0]
    assert story["action"] == "create"
    assert story["attempts"] == 2
    assert [event["name"] for event in story["events"]] == [
        "conductor_scheduling",
        "compute_create_vm",
    ]
    assert story["transitions"][0]["to"]["task_state"] == "networking"
    assert story["decisions"][0]["refused"]["memory"]["pve2"] == "1 MiB free"
    assert story["faults"][0]["remedy"] == "free some space on pve1"


def test_what_stops_a_move_is_for_operators(make: MakeApi) -> None:
    why = "its disk is a linked clone on the node's own storage local"
    values = {"host": "pve1", "vmid": 100, "vm_state": "active"}
    api = make(a_full_server(1, **values), *ROWS[1:])
    path = f"/explanations/{uuid_of(1)}"
    shown = api.get(path, token=auth.ADMIN).json["explanation"]
    assert shown["move"] == {"way": "live", "obstacle": None}
    assert "move" not in api.get(path).json["explanation"]
    assert "move" not in api.get(f"/explanations/{CREATE}", token=auth.ADMIN).json["explanation"]
    pinned = schema.hosts.update().values(facts=a_host(facts={"pinned": {"100": why}})[1]["facts"])
    with api.writer.begin() as connection:
        connection.execute(pinned)
    shown = api.get(path, token=auth.ADMIN).json["explanation"]
    assert shown["move"] == {"way": None, "obstacle": why}


def test_the_story_for_owners_names_no_host(api: ComputeApi) -> None:
    answer = api.get(f"/explanations/{uuid_of(1)}")
    story, reboot = answer.json["explanation"]["operations"]
    assert "pve" not in answer.text
    assert "UPID" not in answer.text
    assert story["decisions"][0]["refused_by"] == ["memory"]
    assert "considered" not in story["decisions"][0]
    assert story["decisions"][0]["placed"] is True
    assert story["faults"][0]["message"] == "The host's storage is full."
    assert reboot["message"] == "The operation failed."


def marked(row: Row) -> Row:
    """The row with a secret in every text that isn't a key, and in what JSON holds."""
    table, values = row
    free = set(values) - _OPEN_FIELDS
    return table, {name: secret(v) if name in free else v for name, v in values.items()}


def secret(value: Any) -> Any:
    if isinstance(value, str):
        return f"secret {value}"
    if isinstance(value, dict):
        # what the owner reads of a decision: the names of filters, and a sentence made for owners
        return {
            ("reason" if k == "reason" else k if k in _OPEN_WORDS else f"secret {k}"): (
                v if k in _OPEN_WORDS else secret(v)
            )
            for k, v in value.items()
        }
    return [secret(item) for item in value] if isinstance(value, list) else value


#: keys, states and names that the owner may read
_OPEN_FIELDS = {
    *(
        "id",
        "operation_id",
        "server_uuid",
        "resource_type",
        "resource_id",
        "project_id",
        "user_id",
        "request_id",
    ),
    *("global_request_id", "action", "state", "category", "name", "result"),
    *("from_vm_state", "from_task_state", "to_vm_state", "to_task_state"),
}
_OPEN_WORDS = {"counts", "owner_reason"}


#: how a request came, and the quota: owners read the part of the detail that is theirs
ARRIVED: tuple[Row, ...] = (
    an_event(
        "api_request",
        0,
        started_at=NOW - MINUTE,
        detail={"method": "POST", "path": "/v2.1/servers", "status": 202, "user": "root"},
    ),
    an_event(
        "conductor_take_quota", 1, detail={"ram": {"limit": 9, "used": 1, "asked": 2}, "by": "c1"}
    ),
)


def refused_by(user: str, request_id: str, **changes: Any) -> Row:
    values: dict[str, Any] = {
        "project_id": "demo",
        "user_id": user,
        "request_id": request_id,
        "global_request_id": GLOBAL,
        "method": "POST",
        "path": "/v2.1/servers",
        "status": 403,
        "message": "Quota exceeded for ram",
        "details": {"resource": ["ram"], "limit": [9], "used": [8], "requested": [2]},
        "of_admin": False,
        "received_at": NOW,
        "answered_at": NOW,
    }
    return schema.refusals, values | changes


REFUSALS: tuple[Row, ...] = (
    refused_by("demo", f"req-{uuid_of(94)}", details={"resource": ["ram"], "host": "secret"}),
    refused_by("admin", f"req-{uuid_of(95)}", of_admin=True, message="secret"),
    refused_by("other", f"req-{uuid_of(96)}", project_id="other", message="secret"),
)


def shown(answer: Any) -> dict[str, str]:
    """An explanation as JSON, as text and as a page."""
    explanation = answer.json["explanation"]
    return {
        "json": answer.text,
        "text": plain_text(explanation_lines(explanation)),
        "html": page(explanation),
    }


_STEPS = ("api_request", "conductor_take_quota")
_STEPS_AS_WORDS = ("request received", "take quota")


def test_owners_read_no_field_that_may_hold_a_name(make: MakeApi) -> None:
    rows = [row if row[0] is schema.servers else marked(row) for row in (*ROWS, *ARRIVED)]
    api = make(*rows, *REFUSALS)
    for path in (f"/explanations/{uuid_of(1)}", f"{ACTIONS}/{CREATE}", ACTIONS):
        seen = api.get(path, version="2.84")
        assert seen.status_code == 200
        assert "secret" not in seen.text, path
    for subject in (CREATE, GLOBAL):
        for form, text in shown(api.get(f"/explanations/{subject}")).items():
            assert "secret" not in text, form
            arrived, quota = _STEPS if form == "json" else _STEPS_AS_WORDS
            assert arrived in text, form
            assert quota in text or subject == GLOBAL, form
    whole = api.get(f"/explanations/{uuid_of(1)}", token=auth.ADMIN).text
    assert whole.count("secret") > 20


def test_what_owners_read_of_the_first_steps(make: MakeApi) -> None:
    api = make(*ROWS, *ARRIVED, refused_by("demo", f"req-{uuid_of(94)}"))
    first, second = api.get(f"/explanations/{CREATE}").json["explanation"]["operations"][0][
        "events"
    ][:2]
    assert first["detail"] == {"method": "POST", "path": "/v2.1/servers", "status": 202}
    texts = shown(api.get(f"/explanations/{CREATE}"))
    assert "2 asked, 1 of 9 used" not in texts["json"]
    assert "memory=2 asked, 1 of 9 used" in texts["text"]
    assert "memory: 2 asked, 1 of 9 used" in texts["html"]
    assert second["name"] == "conductor_scheduling"  # of one time the lower number is first
    refused = shown(api.get(f"/explanations/req-{uuid_of(94)}"))
    assert "memory=2 asked, 8 of 9 used" in refused["text"]
    assert "POST /v2.1/servers  refused" in refused["text"]
    for form, text in refused.items():
        assert "Quota exceeded for ram" in text, form


def test_owners_read_how_far_a_step_is(make: MakeApi) -> None:
    copied = {"percent": 25, "disk_bytes": 1 << 30, "disk_total_bytes": 1 << 32}
    detail = {"node": "pve1", "progress": {**copied, "seconds_left": 9}}
    step = an_event("compute_copy", 0, finished_at=None, result=None, detail=detail)
    api = make(a_full_server(1), an_operation(1, CREATE, state="running", finished_at=None), step)
    answer = api.get(f"/explanations/{CREATE}")
    [event] = answer.json["explanation"]["operations"][0]["events"]
    assert event["detail"] == {"progress": detail["progress"]}
    assert "25 %, 1.0 of 4.0 GiB, 9 s left" in shown(answer)["text"]


def test_the_story_of_what_is_forgotten_says_so(make: MakeApi) -> None:
    later = NOW + datetime.timedelta(days=91)
    there = an_operation(2, REBOOT)
    api = make(a_full_server(1), an_operation(1, CREATE, forgotten_at=later), there)
    [operation] = api.get(f"/explanations/{REBOOT}").json["explanation"]["operations"]
    assert operation["forgotten"] is None
    for token in (auth.MEMBER, auth.ADMIN):
        answer = api.get(f"/explanations/{CREATE}", token=token)
        [operation] = answer.json["explanation"]["operations"]
        assert operation["forgotten"]["after_days"] == 90
        sentence = "(steps, decisions, faults) were forgotten 90 days after its end"
        assert sentence in shown(answer)["text"]
        assert sentence in shown(answer)["html"]


def test_other_projects_read_nothing(api: ComputeApi) -> None:
    for subject in (CREATE, GLOBAL, uuid_of(1), "req-nope", "%00"):
        answer = api.get(f"/explanations/{subject}", token=auth.OTHER)
        assert answer.status_code == 404, subject


def test_ports_and_images_are_explained(make: MakeApi) -> None:
    port, spare, image = ids.named("port", "7"), ids.named("port", "8"), ids.named("image", "mine")
    gone = uuid_of(77)
    about = {"resource_type": "image", "action": "store_image"}
    api = make(
        *ROWS,
        a_network("vmbr0"),
        a_port(7, server_uuid=uuid_of(1), port_security=True),
        a_port(8, server_uuid=""),
        an_image("mine", project_id="demo", visibility="private"),
        an_operation(3, f"req-{uuid_of(93)}", resource_id=image, **about),
        an_operation(4, f"req-{uuid_of(94)}", resource_id=gone, **about),
    )

    def explain(subject: str, token: str = auth.MEMBER) -> dict[str, Any]:
        found: dict[str, Any] = api.get(f"/explanations/{subject}", token=token).json[
            "explanation"
        ]
        return found

    mine = explain(port)
    assert mine["port"]["server"] == uuid_of(1)
    assert (mine["port"]["filtered"], mine["port"]["addresses"]) == (True, ["10.20.0.7"])
    assert "pve1" not in str(mine)
    assert mine["operations"] == explain(uuid_of(1))["operations"]
    assert explain(port, auth.ADMIN)["port"]["bridge"] == "vmbr0"
    assert (explain(spare)["port"]["server"], explain(spare)["operations"]) == (None, [])
    assert [one["action"] for one in explain(image)["operations"]] == ["store_image"]
    assert explain(image)["image"]["status"] == "active"
    assert "image" not in explain(gone)
    assert [one["resource"]["id"] for one in explain(gone)["operations"]] == [gone]
    for subject in (port, image, gone):
        assert api.get(f"/explanations/{subject}", token=auth.OTHER).status_code == 404
    texts = {one: plain_text(explanation_lines(explain(one))) for one in (port, spare)}
    assert "\n\nport " in texts[port]
    assert "addresses=10.20.0.7" in texts[port]
    assert "nothing was done" in texts[spare]
    assert "<html" in page(explain(spare))
