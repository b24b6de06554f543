"""What a request says of how its client came, and who is believed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from oslo_config import cfg

from common.errors import ConfigurationError
from web import proxies

FOR, PROTO, HOST, PREFIX = (
    f"HTTP_X_FORWARDED_{name}" for name in ("FOR", "PROTO", "HOST", "PREFIX")
)
GOOD = {FOR: "2001:db8::7", PROTO: "https", HOST: "cloud.example:8774", PREFIX: "/east"}


def seen(trusted: list[str], peer: str, headers: dict[str, str]) -> tuple[str, dict[str, Any]]:
    """Return the status, and what the application sees of these headers."""
    conf = cfg.ConfigOpts()
    conf([], default_config_files=[])
    proxies.register(conf)
    conf.set_override("trusted_proxies", trusted, group="web")
    statuses, found = [], {}

    def app(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        found.update({name: environ[name] for name in environ if name.startswith("HTTP_")})
        start_response("200 OK", [])
        return []

    def start_response(status: str, headers: list[tuple[str, str]]) -> Any:
        statuses.append(status)

    list(proxies.Proxies(app, conf)({"REMOTE_ADDR": peer, **headers}, start_response))  # type: ignore[arg-type]
    return statuses[0], found


@pytest.mark.parametrize(
    ("trusted", "peer", "believed"),
    [
        ([], "127.0.0.1", False),
        ([], "", False),
        (["127.0.0.1"], "127.0.0.1", True),
        (["127.0.0.1"], "127.0.0.2", False),
        (["10.0.0.0/8", "2001:db8::/32"], "10.9.9.9", True),
        (["10.0.0.0/8", "2001:db8::/32"], "2001:db8::5", True),
        (["10.0.0.0/8"], "::ffff:10.1.1.1", True),
        (["10.0.0.0/8"], "", False),
        (["unix"], "", True),
        (["unix"], "127.0.0.1", False),
    ],
)
def test_only_configured_proxies_are_believed(
    trusted: list[str], peer: str, believed: bool
) -> None:
    _, found = seen(trusted, peer, {**GOOD, "HTTP_FORWARDED": "host=evil"})
    assert found == (GOOD if believed else {})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        (PROTO, "javascript"),
        (PROTO, "https://x"),
        (HOST, "evil/../x"),
        (HOST, 'a"><script>'),
        (HOST, "user@host"),
        (HOST, "host:port"),
        (HOST, ""),
        (PREFIX, "//evil.example"),
        (PREFIX, "/a b"),
        (PREFIX, "east"),
        (PREFIX, '/"x'),
        (FOR, "unknown"),
        (FOR, "192.0.2.7:4711"),
        (FOR, ""),
    ],
)
def test_what_is_no_host_scheme_or_path_is_left_out(name: str, value: str) -> None:
    assert seen(["10.0.0.1"], "10.0.0.1", {name: value})[1] == {}


def test_the_nearest_proxy_counts() -> None:
    given = {
        FOR: "198.51.100.1, 192.0.2.7",
        PROTO: "http, https",
        HOST: "evil.example, cloud.example",
    }
    _, found = seen(["10.0.0.1"], "10.0.0.1", given)
    assert found == {FOR: "192.0.2.7", PROTO: "https", HOST: "cloud.example"}


@pytest.mark.parametrize("host", ["a b", "a/b", "a\tb", "javascript://x", "[::1", "é", "a:b:c"])
def test_a_host_with_a_bad_character_is_refused(host: str) -> None:
    assert seen([], "10.0.0.1", {"HTTP_HOST": host}) == ("400 Bad Request", {})


@pytest.mark.parametrize(
    "host", ["a..b", ".a", ".", "a" * 64, "a." * 131, "[a..b]", "[1:2]", "[::1.2]", "a:123456"]
)
def test_a_host_that_is_none_is_refused(host: str) -> None:
    assert seen([], "10.0.0.1", {"HTTP_HOST": host}) == ("400 Bad Request", {})


@pytest.mark.parametrize(
    "host", ["a", "a.b-c.d:80", "[::1]:80", "10.0.0.1", "my_host:8774", "a.b."]
)
def test_hosts_pass(host: str) -> None:
    assert seen([], "10.0.0.1", {"HTTP_HOST": host}) == ("200 OK", {"HTTP_HOST": host})


def test_a_proxy_is_an_address() -> None:
    with pytest.raises(ConfigurationError, match="trusted_proxies"):
        seen(["proxy.example"], "10.0.0.1", {})
