"""Consoles end to end: plain websocket clients, the proxy, the agent, a simulated Proxmox VE."""

from __future__ import annotations

import contextlib
import sqlite3
from typing import Any

import pytest
import requests

pytest.importorskip("websockets")

from websockets.exceptions import InvalidStatus

from tests.functional.cloud import EmbeddedCloud, eventually
from tests.functional.console.visits import (
    console_url,
    enter_screen,
    picture,
    visiting,
    websocket_url,
)

SEEN = b"\0\xff\xff\xff"[::-1]


def gets_nothing(url: str, **more: Any) -> bool:
    """Whether a client of this URL sees the websocket close before any byte."""
    with visiting(url, **more) as visitor:
        return visitor.receive() is None


def test_the_screen_shows_its_picture(three_nodes: EmbeddedCloud, server: Any) -> None:
    with visiting(console_url(three_nodes, server)) as visitor:
        assert enter_screen(visitor) == "screen"
        assert picture(visitor)[:4] == SEEN


def test_a_key_reaches_the_guest(three_nodes: EmbeddedCloud, server: Any) -> None:
    with visiting(console_url(three_nodes, server)) as visitor:
        enter_screen(visitor)
        before = picture(visitor)
        visitor.send(b"\4\1\0\0\0\0\0\x61")
        assert picture(visitor) != before


def test_the_serial_line_boots_and_echoes(three_nodes: EmbeddedCloud, server: Any) -> None:
    url = console_url(three_nodes, server, "serial", "serial")
    with visiting(url, subprotocols=["binary"]) as visitor:
        shown = b""
        while not shown.endswith(b"login: "):
            shown += visitor.receive() or b"!"
        assert b"Linux version" in shown
        visitor.send(b"root")
        assert visitor.exactly(4) == b"root"


def test_a_url_works_once(three_nodes: EmbeddedCloud, server: Any) -> None:
    url = console_url(three_nodes, server)
    with visiting(url) as visitor:
        enter_screen(visitor)
        assert gets_nothing(url)
    assert gets_nothing(url)


def test_wrong_tokens_get_nothing(three_nodes: EmbeddedCloud, server: Any) -> None:
    url = websocket_url(console_url(three_nodes, server))
    assert gets_nothing(url[:-3] + "AAA")
    assert gets_nothing(url.partition("?")[0])
    assert gets_nothing(url.replace("/?", "/relay?"))


def test_an_old_token_gets_nothing(three_nodes: EmbeddedCloud, server: Any) -> None:
    url = console_url(three_nodes, server)
    with sqlite3.connect(three_nodes.state_dir / "cloud.sqlite", timeout=30) as connection:
        connection.execute("UPDATE console_tokens SET expires_at = '2020-01-01 00:00:00.000000'")
    connection.close()
    assert gets_nothing(url)


def test_a_token_opens_its_own_server_only(three_nodes: EmbeddedCloud, server: Any) -> None:
    # What a client adds about another server or console changes nothing.
    url = websocket_url(console_url(three_nodes, server))
    with visiting(f"{url}&server=other&type=serial") as visitor:
        assert enter_screen(visitor) == "screen"


def test_another_project_gets_no_token(three_nodes: EmbeddedCloud, server: Any) -> None:
    admin = three_nodes.connection("micronova")
    project = admin.identity.create_project(name="consoles-other")
    user = admin.identity.create_user(name="consoles-other", password="hidden-9")
    role = admin.identity.find_role("member")
    admin.identity.assign_project_role_to_user(project, user, role)
    other = admin.connect_as(
        username="consoles-other", password="hidden-9", project_name="consoles-other"
    )
    try:
        answer = other.compute.post(
            f"/servers/{server.id}/remote-consoles",
            json={"remote_console": {"protocol": "vnc", "type": "novnc"}},
            microversion="2.6",
        )
        assert answer.status_code == 404
    finally:
        admin.identity.delete_user(user)
        admin.identity.delete_project(project)


def test_a_stopped_server_shows_nothing_and_a_stop_ends_a_console(
    three_nodes: EmbeddedCloud, server: Any
) -> None:
    compute = three_nodes.connection().compute
    with visiting(console_url(three_nodes, server)) as visitor:
        enter_screen(visitor)
        compute.stop_server(server)
        compute.wait_for_server(server, status="SHUTOFF", wait=60)
        assert visitor.receive() is None
    assert gets_nothing(console_url(three_nodes, server))


def test_a_server_has_five_consoles_at_the_most(three_nodes: EmbeddedCloud, server: Any) -> None:
    with contextlib.ExitStack() as visits:
        for _ in range(5):
            enter_screen(visits.enter_context(visiting(console_url(three_nodes, server))))
        assert gets_nothing(console_url(three_nodes, server))
    eventually(lambda: not gets_nothing(console_url(three_nodes, server)), 20)


def test_pages_of_other_hosts_open_nothing(three_nodes: EmbeddedCloud, server: Any) -> None:
    url = console_url(three_nodes, server)
    with (
        pytest.raises(InvalidStatus) as refused,
        visiting(url, additional_headers={"Origin": "https://evil.example.org"}),
    ):
        pass
    assert refused.value.response.status_code == 403
    # It was refused before the token was looked at.
    with visiting(url, additional_headers={"Origin": "http://127.0.0.1"}) as visitor:
        assert enter_screen(visitor) == "screen"


def test_the_page_is_novnc_and_leads_nowhere_else(three_nodes: EmbeddedCloud, server: Any) -> None:
    url = console_url(three_nodes, server)
    page = requests.get(url, timeout=60)
    assert page.status_code == 200
    assert all(word in page.text for word in ("<html", "<script", "noVNC"))
    assert "default-src 'none'" in page.headers["Content-Security-Policy"]
    base = url.partition("/vnc_auto.html")[0]
    module = requests.get(f"{base}/novnc/core/rfb.js", timeout=60)
    assert module.headers["Content-Type"].startswith("text/javascript")
    for path in ("/novnc/LICENSE.txt", "/../config.py", "/%2e%2e/service.py", "/"):
        assert requests.get(f"{base}{path}", timeout=60).status_code == 404


def test_no_secret_is_in_a_log(three_nodes: EmbeddedCloud, server: Any) -> None:
    url = console_url(three_nodes, server)
    with visiting(url) as visitor:
        enter_screen(visitor)
    token = url.rpartition("token%3D")[2]
    api_token = (three_nodes.state_dir / "simulator" / "token.json").read_text()
    secret = api_token.partition('"secret":"')[2].partition('"')[0]
    assert len(token) > 40 and len(secret) > 30
    for log in (three_nodes.state_dir / "log").glob("*.log"):
        text = log.read_text()
        assert token not in text
        assert "PVEVNC" not in text
        assert secret not in text
