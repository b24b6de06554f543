"""The log of who did what: an event for each request, without secrets."""

from __future__ import annotations

import json
import os
import stat
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import falcon.testing
import pytest
from pycadf import attachment, cadftaxonomy, cadftype, event
from pycadf import timestamp as cadf_time

from common.errors import ConfigurationError
from tests.fixtures import auth
from tests.fixtures.compute import ComputeApi, a_full_server, uuid_of
from tests.functional.api_compute.conftest import MakeApi
from web.audit import Audit, EventFile

PASSWORD, USER_DATA, TOKEN = "hunter-2-password", "c2VjcmV0LXVzZXItZGF0YQ==", "console-secret-17"
SERVER = uuid_of(1)


class Audited:
    """An API and its events."""

    def __init__(self, api: ComputeApi, file: Path, ignored: tuple[str, ...] = ()) -> None:
        self.api, self.file = api, file
        app: Any = Audit(api.app, "compute", EventFile(str(file)), ignored)
        self._client = falcon.testing.TestClient(app)

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        token: str | None = auth.MEMBER,
        headers: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        """Ask, and return the one event of it."""
        before = len(self.lines())
        sent = {"OpenStack-API-Version": "compute 2.90", **(headers or {})}
        if token is not None:
            sent["X-Auth-Token"] = token
        path, _, query = path.partition("?")
        more = {} if body is None else {"json": body}
        self._client.simulate_request(
            method, f"/v2.1{path}", headers=sent, query_string=query, **more
        )
        [line] = self.lines()[before:]
        made: dict[str, Any] = json.loads(line)
        return made

    def lines(self) -> list[str]:
        return self.file.read_text().splitlines() if self.file.exists() else []


@pytest.fixture
def audited(make: MakeApi, tmp_path: Path) -> Audited:
    made = make(a_full_server(1))
    made.conductor.agents.set_password.return_value = None
    return Audited(made, tmp_path / "audit.log")


def brief(event: Mapping[str, Any]) -> tuple[str, str, str, str, str]:
    target = event["target"]
    return (
        *(event["action"], target["typeURI"], target["id"]),
        *(event["reason"]["reasonCode"], event["outcome"]),
    )


@pytest.mark.parametrize(
    ("method", "path", "body", "expected"),
    [
        ("GET", "/servers", None, ("read/list", "servers", "unknown", "200", "success")),
        ("GET", f"/servers/{SERVER}", None, ("read", "servers", SERVER, "200", "success")),
        (
            *("PUT", f"/servers/{SERVER}", {"server": {"name": "other"}}),
            ("update", "servers", SERVER, "200", "success"),
        ),
        (
            *("POST", f"/servers/{SERVER}/action", {"changePassword": {"adminPass": PASSWORD}}),
            ("update/changePassword", "servers/action", SERVER, "202", "success"),
        ),
        ("DELETE", f"/servers/{SERVER}", None, ("delete", "servers", SERVER, "204", "success")),
        (
            *("GET", f"/servers/{uuid_of(9)}", None),
            ("read", "servers", uuid_of(9), "404", "failure"),
        ),
        (
            *("POST", f"/servers/{SERVER}/action", {"reboot": {}}),
            ("update/reboot", "servers/action", SERVER, "400", "failure"),
        ),
        ("GET", "/nothing", None, ("read", "", "unknown", "404", "failure")),
        (
            *("GET", f"/servers/{SERVER}/os-instance-actions", None),
            ("read/list", "servers/os-instance-actions", SERVER, "200", "success"),
        ),
    ],
)
def test_an_event_says_what_was_done_to_what(
    audited: Audited, method: str, path: str, body: Any, expected: tuple[str, ...]
) -> None:
    found = brief(audited.ask(method, path, body))
    action, nouns, target, code, outcome = expected
    kind = "/".join(["service/compute", *([nouns] if nouns else [])])
    assert found == (action, kind, target, code, outcome)


def test_an_event_says_who_asked_from_where(audited: Audited) -> None:
    token = auth.token("alice", "blue", "member")
    made = audited.ask("GET", "/servers", token=token, headers={"User-Agent": "curl/8"})
    who = made["initiator"]
    assert (who["id"], who["project_id"]) == ("alice", "blue")
    assert who["host"] == {"address": "", "agent": "curl/8"}
    assert who["request_id"].startswith("req-")
    assert who["credential"] == {"type": "token", "identity_status": "Confirmed"}


def test_a_server_that_is_made_is_named(audited: Audited) -> None:
    flavors = audited.api.get("/flavors", token=auth.MEMBER).json["flavors"]
    body = {
        "server": {
            "name": "web",
            "flavorRef": flavors[0]["id"],
            "imageRef": "",
            "networks": "none",
            "adminPass": PASSWORD,
            "user_data": USER_DATA,
        }
    }
    made = audited.ask("POST", "/servers", body)
    assert made["action"] == "create"
    assert made["outcome"] == (
        "failure" if int(made["reason"]["reasonCode"]) >= 400 else "success"
    )


def test_refusals_are_events(audited: Audited) -> None:
    refused = audited.ask("GET", "/servers", token=None)
    assert brief(refused) == ("read", "service/compute", "unknown", "401", "failure")
    assert refused["initiator"]["id"] == "unknown"
    assert refused["requestPath"] == "/v2.1/servers"
    forbidden = audited.ask("GET", "/os-hypervisors")
    assert brief(forbidden)[3:] == ("403", "failure")
    assert forbidden["initiator"]["id"] == "demo"


@pytest.mark.parametrize("token", [None, "nonsense", auth.MEMBER])
def test_headers_make_nobody_else(audited: Audited, token: str | None) -> None:
    forged = {
        "X-User-Id": "root",
        "X-User-Name": "root",
        "X-Project-Id": "admin",
        "X-Identity-Status": "Confirmed",
        "X-Forwarded-For": "203.0.113.9",
    }
    text = json.dumps(audited.ask("GET", "/servers", token=token, headers=forged))
    assert "root" not in text
    assert "203.0.113.9" not in text


def test_events_hold_no_secret(audited: Audited) -> None:
    secret_token = auth.token("alice", "blue", "member")
    audited.ask("GET", f"/servers?name={PASSWORD}&{TOKEN}%20=1&limit=3", token=secret_token)
    audited.ask("POST", f"/servers/{SERVER}/action", {"changePassword": {"adminPass": PASSWORD}})
    audited.ask("POST", f"/servers/{SERVER}/action", {PASSWORD: USER_DATA})
    audited.ask("POST", f"/servers/{SERVER}/action", {"rebuild": {"user_data": USER_DATA}})
    for token in (auth.MEMBER, auth.ADMIN, None):
        audited.ask("GET", f"/os-console-auth-tokens/{TOKEN}", token=token)
        audited.ask("GET", f"//os-console-auth-tokens//{TOKEN}", token=token)
        audited.ask("GET", f"/os-console-auth-tokens/{TOKEN}/", token=token)
    text = audited.file.read_text()
    for secret in (PASSWORD, USER_DATA, TOKEN, secret_token, auth.MEMBER, auth.ADMIN):
        assert secret not in text, secret
    assert "?name&limit" in text


def test_an_event_is_one_line_whatever_is_sent(audited: Audited) -> None:
    made = audited.ask(
        "GET", "/servers/%0a%7b%22outcome%22:1%7d%ff", headers={"User-Agent": "a\u00ff\u00e9"}
    )
    assert made["outcome"] == "failure"


def test_methods_may_be_left_out_but_their_refusals_not(make: MakeApi, tmp_path: Path) -> None:
    audited = Audited(make(a_full_server(1)), tmp_path / "log", ("get", " HEAD"))
    with pytest.raises(ValueError, match="not enough"):
        audited.ask("GET", "/servers")
    assert brief(audited.ask("GET", "/servers", token=None))[3] == "401"
    assert brief(audited.ask("GET", "/os-hypervisors"))[3] == "403"
    assert brief(audited.ask("DELETE", f"/servers/{SERVER}"))[3] == "204"


def test_an_event_is_cadf(audited: Audited) -> None:
    made = audited.ask("DELETE", f"/servers/{SERVER}")
    assert cadftype.is_valid_eventType(made["eventType"])
    assert cadftaxonomy.is_valid_action(made["action"])
    assert cadftaxonomy.is_valid_outcome(made["outcome"])
    assert cadf_time.is_valid(made["eventTime"])
    assert made["typeURI"] == f"{cadftype.CADF_VERSION_1_0_0}event"
    required = {event.EVENT_KEYNAME_ID, event.EVENT_KEYNAME_INITIATOR, event.EVENT_KEYNAME_TARGET}
    assert required | {event.EVENT_KEYNAME_OBSERVER} <= made.keys()
    assert attachment.ATTACHMENT_KEYNAME_CONTENT not in made


def test_the_file_may_be_rotated(tmp_path: Path) -> None:
    at = [0.0]
    path = tmp_path / "log"
    file = EventFile(str(path), now=lambda: at[0])
    file.append(b"1\n")
    path.rename(tmp_path / "log.1")
    file.append(b"2\n")
    at[0] = 2.0
    file.append(b"3\n")
    assert (path.read_text(), (tmp_path / "log.1").read_text()) == ("3\n", "1\n2\n")
    assert stat.S_IMODE(path.stat().st_mode) & 0o007 == 0


def test_a_file_that_can_t_be_written_is_said_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="audit_log"):
        EventFile(str(tmp_path / "nowhere" / "log"))


def test_a_full_disk_stops_no_request() -> None:
    file = EventFile("/dev/full")
    file.append(b"lost\n")


def test_lines_of_threads_are_whole(tmp_path: Path) -> None:
    path, line = tmp_path / "log", b"x" * 700 + b"\n"
    files = [EventFile(str(path)) for _ in range(4)]

    def work(file: EventFile) -> Callable[[], None]:
        return lambda: [file.append(line) for _ in range(200)] and None

    threads = [threading.Thread(target=work(file)) for file in files for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert path.read_bytes() == line * 1600
    assert os.path.getsize(path) == 701 * 1600
