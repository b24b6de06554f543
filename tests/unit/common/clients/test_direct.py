"""Sessions that connect directly, whatever the environment says of proxies."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
import requests
from requests.adapters import HTTPAdapter

from common.clients import direct
from tests.unit import sources

SERVICES = (
    *("api", "cli", "common", "compute", "conductor", "console", "dashboard", "identity"),
    *("launcher", "placement", "scheduler", "web"),
)

EXCEPT = {
    Path(direct.__file__),
    sources.ROOT / "conductor/notifications/compose.py",  # a mapping is named so
}


@pytest.fixture(autouse=True)
def proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.setenv("https_proxy", "http://proxy.test:3128")


@pytest.mark.parametrize("url", ["https://keystone.test/v3", "https://127.0.0.1:8006/"])
def test_a_session_has_no_proxy_of_the_environment(url: str) -> None:
    assert requests.Session().merge_environment_settings(url, {}, None, None, None)["proxies"]
    settings = direct.session().merge_environment_settings(url, {}, None, None, None)
    assert not settings["proxies"]


def test_a_session_keeps_as_many_connections_as_asked() -> None:
    mounted = direct.session(7).get_adapter("https://keystone.test")
    assert isinstance(mounted, HTTPAdapter)
    assert mounted.poolmanager.connection_pool_kw["maxsize"] == 7


@pytest.mark.parametrize(
    ("url", "is_here"),
    [
        ("http://127.0.0.1:5000/v3", True),
        ("http://127.8.0.1/", True),
        ("http://[::1]:5000/v3", True),
        ("http://localhost:5000", True),
        ("http://192.0.2.1:5000/v3", False),
        ("http://127.0.0.1.example/", False),
        ("", False),
    ],
)
def test_an_address_of_this_machine(url: str, is_here: bool) -> None:
    assert direct.is_of_this_machine(url) is is_here


def test_the_variable_that_other_programs_follow(monkeypatch: pytest.MonkeyPatch) -> None:
    assert direct.proxied("http://127.0.0.1:5000/v3") is None
    assert direct.proxied("https://keystone.test/v3") == "https_proxy"
    monkeypatch.setenv("HTTP_PROXY", "http://proxy.test:3128")
    assert direct.proxied("http://127.0.0.1:5000/v3") == "HTTP_PROXY"
    monkeypatch.setenv("no_proxy", "localhost,127.0.0.1")
    assert direct.proxied("http://127.0.0.1:5000/v3") is None


def test_nothing_else_makes_connections_that_follow_the_environment() -> None:
    found = [
        f"{path.relative_to(sources.ROOT)}:{node.lineno}"
        for folder in SERVICES
        for path in sorted((sources.ROOT / folder).rglob("*.py"))
        for node in sources.nodes(path)
        if isinstance(node, ast.Call) and _follows(node) and path not in EXCEPT
    ]
    assert found == []


def _follows(call: ast.Call) -> bool:
    """Return whether a call makes a connection, or a session, with the environment's proxies."""
    if sources.named(call) not in _NAMES:
        return False
    name = ast.unparse(call.func)
    given = {one.arg: ast.unparse(one.value) for one in call.keywords}
    if name == "connect" and "ssl" in given:  # of websockets
        return given.get("proxy") != "None"
    if name in ("HttpSession", "ksa_session.Session", "OTLPSpanExporter"):
        return "session" not in given
    return name in _FOLLOW or name.endswith(_ALSO)


_FOLLOW = {
    *("requests.Session", "requests.session"),
    *(f"requests.{verb}" for verb in ("get", "post", "put", "patch", "delete", "head", "request")),
}
_ALSO = ("urlopen", "AuthProtocol")
_NAMES = {
    *("connect", "HttpSession", "Session", "OTLPSpanExporter", *_ALSO),
    *(name.rpartition(".")[2] for name in _FOLLOW),
}
