"""changePassword: who may, in which states, what is refused in which words, and what is left."""

from __future__ import annotations

from typing import Any

import pytest
import sqlalchemy as sa

from common.errors import Unavailable
from common.messages.guests import GuestTarget, PasswordProblem
from common.messages.questions import SetPassword
from db import schema
from tests.fixtures import auth
from tests.fixtures.compute import ComputeApi, a_full_server, uuid_of
from tests.functional.api_compute.conftest import MakeApi

pytestmark = pytest.mark.database

SECRET = "Tr0ub4dor&3"


@pytest.fixture
def api(make: MakeApi) -> ComputeApi:
    made = make(
        a_full_server(1),
        a_full_server(2, vm_state="stopped"),
        a_full_server(3, task_state="rebooting"),
        a_full_server(4, locked_by="owner"),
        a_full_server(5, image_properties={"os_type": "windows"}),
        a_full_server(6, image_properties={"os_admin_user": "debian"}),
    )
    made.conductor.agents.set_password.return_value = None
    return made


def act(api: ComputeApi, number: int = 1, token: str = auth.MEMBER, **inside: Any) -> Any:
    body = {"changePassword": inside or {"adminPass": SECRET}}
    return api.request("POST", f"/servers/{uuid_of(number)}/action", body, token=token)


def text(answer: Any) -> str:
    [fault] = answer.json.values()
    return str(fault["message"])


def sent(api: ComputeApi) -> SetPassword:
    [call] = api.conductor.agents.set_password.mock_calls
    order: SetPassword = call.args[0]
    return order


def actions(api: ComputeApi, number: int = 1) -> Any:
    path = f"/servers/{uuid_of(number)}/os-instance-actions"
    return api.get(path, token=auth.ADMIN, version="2.84").json["instanceActions"]


def test_it_is_set_when_it_is_answered_and_kept_nowhere(api: ComputeApi) -> None:
    answer = act(api)
    assert (answer.status_code, answer.text) == (202, "")
    where = GuestTarget(uuid_of(1), "w1", "c1", "pve1", 100_001)
    assert sent(api) == SetPassword(where, "root", SECRET)
    assert SECRET not in repr(sent(api))
    [action] = actions(api)
    assert (action["action"], action["message"]) == ("changePassword", None)
    path = f"/servers/{uuid_of(1)}/os-instance-actions/{action['request_id']}"
    events = api.get(path, token=auth.ADMIN, version="2.84").json["instanceAction"]["events"]
    assert {"compute_set_admin_password"} <= {event["event"] for event in events}
    server = api.get(f"/servers/{uuid_of(1)}").json["server"]
    assert (server["status"], server["OS-EXT-STS:task_state"]) == ("ACTIVE", None)
    with api.reader.connect() as connection:
        for table in schema.metadata.sorted_tables:
            assert SECRET not in str(connection.execute(sa.select(table)).all())


@pytest.mark.parametrize(("number", "user"), [(5, "Administrator"), (6, "debian")])
def test_whose_it_is(api: ComputeApi, number: int, user: str) -> None:
    assert act(api, number).status_code == 202
    assert sent(api).user == user


def test_who_may_and_in_which_states(api: ComputeApi) -> None:
    assert act(api, token=auth.READER).status_code == 403
    assert act(api, token=auth.OTHER).status_code == 404
    assert act(api, adminPass=1).status_code == 400
    assert act(api, adminPass="x", more=1).status_code == 400
    stopped = act(api, 2)
    assert (stopped.status_code, text(stopped)) == (
        409,
        f"Cannot 'changePassword' instance {uuid_of(2)} while it is in vm_state stopped",
    )
    assert "task_state rebooting" in text(act(api, 3))
    assert text(act(api, 4)) == f"Instance {uuid_of(4)} is locked"
    assert api.conductor.agents.set_password.mock_calls == []
    assert actions(api) == []


@pytest.mark.parametrize(
    ("problem", "words"),
    [
        (PasswordProblem.NO_AGENT, "Guest agent is not enabled for the instance"),
        (PasswordProblem.NOT_SUPPORTED, "Set admin password is not supported"),
        (PasswordProblem.STOPPED, f"because instance {uuid_of(1)} is not running"),
        (PasswordProblem.SILENT, f"Failed to set admin password on {uuid_of(1)} because its"),
        (PasswordProblem.REFUSED, "because error setting admin password"),
    ],
)
def test_why_not(api: ComputeApi, problem: PasswordProblem, words: str) -> None:
    api.conductor.agents.set_password.return_value = problem
    answer = act(api)
    assert answer.status_code == 409
    assert words in text(answer)
    [action] = actions(api)
    assert words in action["message"]
    server = api.get(f"/servers/{uuid_of(1)}").json["server"]
    assert (server["status"], server["OS-EXT-STS:task_state"]) == ("ACTIVE", None)


def test_an_agent_that_does_not_answer(api: ComputeApi) -> None:
    api.conductor.agents.set_password.side_effect = Unavailable("No answer.")
    assert act(api).status_code == 503
    server = api.get(f"/servers/{uuid_of(1)}").json["server"]
    assert (server["status"], server["OS-EXT-STS:task_state"]) == ("ACTIVE", None)
