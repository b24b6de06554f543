"""Consoles at the API: versions, refusals in Nova's words, tokens that open one thing once."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import sqlalchemy as sa

from common import clock
from common.context import internal
from common.errors import NotFound, Unavailable
from common.messages.consoles import ConsoleTarget, ConsoleType, token_hash
from db import schema
from tests.fixtures import auth
from tests.fixtures.compute import ComputeApi, a_full_server, uuid_of
from tests.functional.api_compute.conftest import MakeApi

pytestmark = pytest.mark.database

SERVER = f"/servers/{uuid_of(1)}"
MALFORMED = (
    "The server could not comply with the request since it is either malformed or otherwise "
    "incorrect."
)


@pytest.fixture
def api(make: MakeApi) -> ComputeApi:
    return make(
        a_full_server(1),
        a_full_server(2, host=None),
        a_full_server(3, task_state="deleting"),
    )


def create(
    api: ComputeApi, protocol: str, kind: str, version: str = "2.99", number: int = 1, **more: Any
) -> Any:
    body = {"remote_console": {"protocol": protocol, "type": kind}}
    path = f"/servers/{uuid_of(number)}/remote-consoles"
    return api.request("POST", path, body, version=version, **more)


def act(api: ComputeApi, action: str, kind: str, version: str = "2.1") -> Any:
    body = {action: {"type": kind}}
    return api.request("POST", f"{SERVER}/action", body, version=version)


def refused(answer: Any) -> tuple[int, str]:
    [fault] = answer.json.values()
    return answer.status_code, fault["message"]


def token_of(url: str) -> str:
    query = parse_qs(urlsplit(url).query)
    inner = query.get("path")
    return (parse_qs(urlsplit(inner[0]).query) if inner else query)["token"][0]


def test_the_screen_is_a_page_whose_websocket_has_the_token(api: ComputeApi) -> None:
    answer = create(api, "vnc", "novnc", "2.6")
    assert answer.status_code == 200
    shown = answer.json["remote_console"]
    assert (shown["protocol"], shown["type"]) == ("vnc", "novnc")
    assert shown["url"].startswith("http://127.0.0.1:6080/vnc_auto.html?path=%3Ftoken%3D")


def test_the_serial_line_is_a_websocket(api: ComputeApi) -> None:
    shown = create(api, "serial", "serial").json["remote_console"]
    assert shown["url"].startswith("ws://127.0.0.1:6080/?token=")


def test_it_was_actions_up_to_2_5(api: ComputeApi) -> None:
    answer = act(api, "os-getVNCConsole", "novnc", "2.5")
    assert answer.status_code == 200
    assert set(answer.json["console"]) == {"type", "url"}
    assert act(api, "os-getSerialConsole", "serial").json["console"]["type"] == "serial"
    assert act(api, "os-getVNCConsole", "novnc", "2.6").status_code == 404
    assert create(api, "vnc", "novnc", "2.5").status_code == 404


@pytest.mark.parametrize(
    ("protocol", "kind", "message"),
    [
        ("spice", "spice-html5", "Unavailable console type spice-html5."),
        ("spice", "spice-direct", "Unavailable console type spice-direct."),
        ("mks", "webmks", "Unavailable console type webmks."),
        ("rdp", "rdp-html5", "Unavailable console type rdp."),
        ("vnc", "xvpvnc", "Invalid console type xvpvnc"),
        ("serial", "novnc", "Invalid console type novnc"),
    ],
)
def test_other_consoles_are_refused_as_by_nova(
    api: ComputeApi, protocol: str, kind: str, message: str
) -> None:
    assert refused(create(api, protocol, kind)) == (400, message)


def test_other_actions_are_refused_as_by_nova(api: ComputeApi) -> None:
    spice = act(api, "os-getSPICEConsole", "spice-html5")
    assert refused(spice) == (400, "Unavailable console type spice-html5.")
    assert refused(act(api, "os-getRDPConsole", "rdp-html5")) == (400, MALFORMED)
    api.conductor.agents.read_console_log.return_value = None
    log = api.request("POST", f"{SERVER}/action", {"os-getConsoleOutput": {"length": 10}})
    assert refused(log) == (501, "The requested functionality is not supported.")


def test_each_version_knows_its_words(api: ComputeApi) -> None:
    assert "Invalid input" in refused(create(api, "mks", "webmks", "2.7"))[1]
    assert refused(create(api, "mks", "webmks", "2.8"))[1].startswith("Unavailable")
    assert "Invalid input" in refused(create(api, "spice", "spice-direct", "2.98"))[1]


def test_states_without_a_console(api: ComputeApi) -> None:
    assert refused(create(api, "vnc", "novnc", number=2)) == (
        409,
        f"Instance {uuid_of(2)} is not ready",
    )
    assert refused(create(api, "vnc", "novnc", number=3)) == (
        409,
        f"Cannot 'get_vnc_console' instance {uuid_of(3)} while it is in task_state deleting",
    )


def test_other_projects_and_readers_open_nothing(api: ComputeApi) -> None:
    assert create(api, "vnc", "novnc", token=auth.OTHER).status_code == 404
    assert create(api, "vnc", "novnc", token=auth.READER).status_code == 403
    assert create(api, "vnc", "novnc", token=auth.ADMIN).status_code == 200


def test_a_host_without_consoles(api: ComputeApi) -> None:
    api.conductor.agents.check_console.return_value = "The VM has no display."
    assert refused(create(api, "vnc", "novnc")) == (400, "Unavailable console type novnc.")
    api.conductor.agents.check_console.side_effect = Unavailable()
    assert create(api, "vnc", "novnc").status_code == 503
    with api.reader.connect() as connection:
        assert connection.execute(sa.select(schema.console_tokens)).all() == []


def test_only_administrators_see_what_a_token_opens(api: ComputeApi) -> None:
    token = token_of(create(api, "vnc", "novnc").json["remote_console"]["url"])
    path = f"/os-console-auth-tokens/{token}"
    assert api.get(path, version="2.31").status_code == 403
    assert refused(api.get(path, version="2.30", token=auth.ADMIN)) == (400, MALFORMED)
    shown = api.get(path, version="2.31", token=auth.ADMIN)
    assert shown.json == {
        "console": {
            "instance_uuid": uuid_of(1),
            "host": "pve1",
            "port": 6080,
            "internal_access_path": None,
        }
    }
    assert api.get(f"{path}?x=1", version="2.99", token=auth.ADMIN).status_code == 400
    other = api.get("/os-console-auth-tokens/other", version="2.31", token=auth.ADMIN)
    assert refused(other) == (404, "Token not found")


def test_a_token_is_kept_as_its_hash_and_used_once(api: ComputeApi) -> None:
    token = token_of(create(api, "serial", "serial").json["remote_console"]["url"])
    with api.reader.connect() as connection:
        [row] = connection.execute(sa.select(schema.console_tokens)).all()
    assert token not in map(str, row)
    assert row.token_hash == token_hash(token)
    opened = api.conductor.use_console_token(internal(), token_hash(token))
    assert opened == ConsoleTarget(uuid_of(1), ConsoleType.SERIAL, "w1", "c1", "pve1", 100_001)
    with pytest.raises(NotFound):
        api.conductor.use_console_token(internal(), token_hash(token))
    path = f"/os-console-auth-tokens/{token}"
    assert api.get(path, version="2.31", token=auth.ADMIN).status_code == 404


def test_a_token_expires(api: ComputeApi) -> None:
    token = token_of(create(api, "vnc", "novnc").json["remote_console"]["url"])
    _set_expiry(api, -1)
    with pytest.raises(NotFound):
        api.conductor.use_console_token(internal(), token_hash(token))
    path = f"/os-console-auth-tokens/{token}"
    assert api.get(path, version="2.31", token=auth.ADMIN).status_code == 404
    create(api, "vnc", "novnc")
    with api.reader.connect() as connection:
        assert len(connection.execute(sa.select(schema.console_tokens)).all()) == 1


def test_a_token_of_a_deleted_server_opens_nothing(api: ComputeApi) -> None:
    token = token_of(create(api, "vnc", "novnc").json["remote_console"]["url"])
    with api.writer.begin() as connection:
        connection.execute(schema.servers.update().values(deleted_at=clock.utcnow()))
    with pytest.raises(NotFound):
        api.conductor.use_console_token(internal(), token_hash(token))


def _set_expiry(api: ComputeApi, seconds: float) -> None:
    with api.writer.begin() as connection:
        connection.execute(schema.console_tokens.update().values(expires_at=clock.after(seconds)))


@pytest.mark.parametrize(
    ("asked", "output"),
    [
        ({}, "one\n\ttwo\nthree"),
        ({"length": None}, "one\n\ttwo\nthree"),
        ({"length": -1}, "one\n\ttwo\nthree"),
        ({"length": "2"}, "\ttwo\nthree"),
        ({"length": 1}, "three"),
        ({"length": 0}, ""),
        ({"length": 9}, "one\n\ttwo\nthree"),
    ],
)
def test_the_last_lines_of_a_log(api: ComputeApi, asked: dict[str, Any], output: str) -> None:
    api.conductor.agents.read_console_log.return_value = "one\r\n\ttwo\r\n\x1bthree"
    answer = api.request("POST", f"{SERVER}/action", {"os-getConsoleOutput": asked})
    assert (answer.status_code, answer.json) == (200, {"output": output})
    bad = api.request("POST", f"{SERVER}/action", {"os-getConsoleOutput": {"length": "x"}})
    assert bad.status_code == 400
    path = f"/servers/{uuid_of(2)}/action"
    assert api.request("POST", path, {"os-getConsoleOutput": {}}).status_code == 409
