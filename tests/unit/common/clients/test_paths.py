"""Names in the paths of openstacksdk, which joins them as they are."""

from __future__ import annotations

from typing import Any

import pytest
import requests
from keystoneauth1.adapter import Adapter
from keystoneauth1.token_endpoint import Token
from openstack import exceptions
from openstack.compute.v2.flavor import Flavor
from openstack.compute.v2.keypair import Keypair
from openstack.compute.v2.server import Server
from requests.adapters import BaseAdapter

from common.clients.paths import Session, whole

_URL = "http://api.example/v2.1"


class Api(BaseAdapter):
    """Answers that it is done, and has the path of each deletion as it is sent."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[str] = []

    def send(self, request: Any, *_: Any, **__: Any) -> requests.Response:
        if request.method == "DELETE":  # the others ask for versions
            self.sent.append(request.path_url)
        answer = requests.Response()
        answer.status_code, answer.request, answer.url = 204, request, request.url
        return answer

    def close(self) -> None:
        """Do nothing."""


@pytest.fixture
def api() -> Api:
    return Api()


@pytest.fixture
def sdk(api: Api) -> Adapter:
    """What the SDK's resources send requests by."""
    transport = requests.Session()
    transport.mount("http://", api)
    auth = Token(_URL, "t")
    return Adapter(Session(auth, session=transport), "compute", endpoint_override=_URL)


_NAMES = {
    "web#1": "web%231",
    "#": "%23",
    "a?b": "a%3Fb",
    "web 1": "web%201",
    "wéb": "w%C3%A9b",
    "50%": "50%25",
    "a;b&c+d": "a;b&c+d",
    "-web": "-web",
}


@pytest.mark.parametrize("name", _NAMES)
def test_a_tag_is_that_which_is_named(api: Api, sdk: Adapter, name: str) -> None:
    server = Server(id="1")
    server.tags = [name, "web"]
    server.remove_tag(sdk, name)
    assert api.sent == [f"/v2.1/servers/1/tags/{_NAMES[name]}"]


@pytest.mark.parametrize("name", [".", ".."])
def test_no_tag_is_a_step_in_the_path(api: Api, sdk: Adapter, name: str) -> None:
    server = Server(id="1")
    server.tags = [name, "web"]
    with pytest.raises(exceptions.NotFoundException):
        server.remove_tag(sdk, name)
    assert not api.sent


def test_so_is_a_flavor_and_a_key_pair(api: Api, sdk: Adapter) -> None:
    for kind in (Flavor, Keypair):
        kind.existing(id="web#1").delete(sdk)
    assert api.sent == ["/v2.1/flavors/web%231", "/v2.1/os-keypairs/web%231"]


@pytest.mark.parametrize(
    "url",
    [
        *("http://[fe80::1]:8774/v2.1/servers", "/servers/detail?name=a%23b&x=..", "", "/"),
        *("http://api.example/v2.1/", "/servers/detail?", "/images/x/file", "/a..b/.c/d."),
    ],
)
def test_other_urls_are_as_they_were(url: str) -> None:
    assert whole(url) == url
