from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import requests
from keystoneauth1.access.access import AccessInfoV3
from keystoneauth1.session import Session
from requests.adapters import BaseAdapter

from dashboard.cloud import IDENTITY, Call, Cloud
from dashboard.errors import ApiRefused

SECRET = "a-secret"
_ENDPOINTS = [
    {"interface": "public", "region_id": "one", "region": "one", "url": "http://keystone.example"},
    {"interface": "internal", "region_id": "one", "region": "one", "url": "http://inside.example"},
]
_TOKEN = {
    "token": {
        "methods": ["token"],
        "expires_at": "2099-01-01T00:00:00.000000Z",
        "catalog": [{"type": "identity", "name": "keystone", "endpoints": _ENDPOINTS}],
    }
}


class Keystone(BaseAdapter):
    """Answers every request with a secret."""

    def send(self, request: Any, *_: Any, **__: Any) -> requests.Response:
        answer = requests.Response()
        answer.status_code, answer.request, answer.url = 201, request, str(request.url)
        answer.headers["Content-Type"] = "application/json"
        answer._content = f'{{"secret": "{SECRET}"}}'.encode()
        return answer

    def close(self) -> None:
        """Do nothing."""


def _cloud(api: BaseAdapter, token: str = "token") -> Cloud:
    transport = requests.Session()
    transport.mount("http://", api)
    access, pool = AccessInfoV3(_TOKEN, token), ThreadPoolExecutor(1)
    http = Session(session=transport)
    return Cloud(http, access, pool, interface="internal", region=None, seconds=1)


@pytest.fixture
def cloud() -> Cloud:
    return _cloud(Keystone())


def test_changes_and_their_answers_are_in_no_log(
    cloud: Cloud, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    caplog.set_level(logging.DEBUG, "keystoneauth")
    assert cloud.post(IDENTITY, "/x", {"password": "another-secret"}) == {"secret": SECRET}
    assert "secret" not in caplog.text
    cloud.get(IDENTITY, "/x")
    assert "/x" in caplog.text, "it would be there"


def test_the_token_is_sent_and_in_no_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    caplog.set_level(logging.DEBUG, "keystoneauth")
    sent: list[str | None] = []

    class Api(Keystone):
        def send(self, request: Any, *more: Any, **others: Any) -> requests.Response:
            sent.append(request.headers.get("X-Auth-Token"))
            return super().send(request, *more, **others)

    _cloud(Api(), "of-the-user").get(IDENTITY, "/x")
    assert sent == ["of-the-user"]
    assert "/x" in caplog.text
    assert "of-the-user" not in caplog.text


def test_an_api_reads_the_address_of_the_browser() -> None:
    sent: list[str | None] = []

    class Api(Keystone):
        def send(self, request: Any, *more: Any, **others: Any) -> requests.Response:
            sent.append(request.headers.get("X-Forwarded-For"))
            return super().send(request, *more, **others)

    for address in ("192.0.2.7", ""):
        transport = requests.Session()
        transport.mount("http://", Api())
        access, pool = AccessInfoV3(_TOKEN, "token"), ThreadPoolExecutor(1)
        http = Session(session=transport)
        options: dict[str, Any] = {"interface": "internal", "region": None, "seconds": 1}
        Cloud(http, access, pool, **options, address=address).get(IDENTITY, "/x")
    assert sent == ["192.0.2.7", None]


def test_clients_log_in_at_the_public_address(cloud: Cloud) -> None:
    assert cloud.login_url() == "http://keystone.example/v3"


def test_an_api_of_the_release_before_is_asked_what_it_knows() -> None:
    asked: list[str] = []

    class Older(Keystone):
        def send(self, request: Any, *more: Any, **others: Any) -> requests.Response:
            asked.append(request.path_url)
            answer = super().send(request, *more, **others)
            if "ours" in request.path_url:
                answer.status_code = 400
            return answer

    made = _cloud(Older())
    found = made.send(Call(IDENTITY, "/x", {"ours": 1, "name": "a"}, {"name": "a"}))
    assert found == {"secret": SECRET}
    assert asked == ["/v3/x?ours=1&name=a", "/v3/x?name=a"]
    with pytest.raises(ApiRefused):
        made.send(Call(IDENTITY, "/x", {"ours": 1}))
