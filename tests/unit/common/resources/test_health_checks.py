"""How members are checked: URLs that name them alone, and what a policy says."""

from __future__ import annotations

from typing import Any

import pytest

from common.resources.groups import checks, options
from common.resources.health_checks import Checks, Location, check_text, parsed


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("http://{nodename}:8080/health", Location(False, 8080, "/health")),
        ("https://{nodename}/a?b=c#d", Location(True, 443, "/a?b=c")),
        ("http://{nodename}", Location(False, 80, "/")),
        ("http://{nodename}/of/{nodename}", Location(False, 80, "/of/web%201")),
    ],
)
def test_a_url_names_the_member(url: str, found: Location) -> None:
    assert parsed(url, "web 1") == found


@pytest.mark.parametrize(
    "url",
    [
        *("http://169.254.169.254/latest", "http://example.org/{nodename}", "ftp://{nodename}/"),
        *("http://{nodename}.example.org/", "http://user@{nodename}/", "http://{nodename}@evil/"),
        *("http://evil/{nodename}", "http://{nodename}:99999/", "//{nodename}/", "", "x"),
        *("http://{nodename}/a\r\nHost: b", "http://{nodename}/a b", "http://{nodename}/é"),
        *("http://evil//{nodename}/", "http://{nodename}:0x50/", "http://[{nodename}/"),
        "http://{nodename}/" + 1100 * "a",
    ],
)
def test_a_url_of_anything_else_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        parsed(url, "web-1")


def test_an_answer_contains_plain_text() -> None:
    check_text("status: OK, 1.2")
    for text in ("^OK$", "a|b", 7, 300 * "a"):
        with pytest.raises(ValueError, match="What an answer contains is"):
            check_text(text)


def policy(**detection: Any) -> dict[str, Any]:
    return {"properties": {"detection": detection}}


def test_a_policy_polls_a_url() -> None:
    mode = {"type": "NODE_STATUS_POLL_URL", "options": {"poll_url": "http://{nodename}/"}}
    spec = policy(interval=30, node_update_timeout=90, detection_modes=[mode])
    found = checks(options({}), spec)
    assert found == Checks(
        url="http://{nodename}/",
        interval_seconds=30,
        retry_seconds=3,
        threshold=3,
        grace_seconds=90,
    )
    options_ = {
        **mode["options"],  # type: ignore[dict-item]
        "poll_url_ssl_verify": False,
        "poll_url_conn_error_as_unhealthy": False,
        "poll_url_healthy_response": "OK",
        "poll_url_retry_limit": 5,
        "poll_url_retry_interval": 7,
    }
    found = checks(options({}), policy(detection_modes=[{**mode, "options": options_}]))
    assert (found.verify, found.refused_is_sick, found.contains) == (False, False, "OK")
    assert (found.threshold, found.retry_seconds, found.interval_seconds) == (5, 7, 60)


def test_options_of_a_group() -> None:
    given = {"micronova.health_agent": "true", "micronova.health_tcp_port": "22"}
    found = checks(options({**given, "micronova.health_interval": 10}), None)
    assert (found.agent, found.tcp_port, found.interval_seconds) == (True, 22, 10)
    assert found.retry_seconds == 10
    assert (found.is_any, found.needs_address) == (True, True)
    assert not checks(
        options({}), policy(detection_modes=[{"type": "NODE_STATUS_POLLING"}])
    ).is_any
    with pytest.raises(ValueError, match="must be a number from 0 to 65535"):
        options({"micronova.health_tcp_port": "-1"})
    with pytest.raises(ValueError, match="its own address only"):
        options({"micronova.health_url": "http://10.0.0.1/"})
