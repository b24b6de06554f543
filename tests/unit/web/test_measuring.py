"""What of requests is measured."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from common.metrics import exposition
from web.measuring import ACTION, ROUTE, Measured

API = "measured-here"


def ask(method: str, status: str, **found: str) -> None:
    def app(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        environ |= {{"route": ROUTE, "action": ACTION}[name]: one for name, one in found.items()}
        start_response(status, [])
        return [b""]

    environ = {"REQUEST_METHOD": method, "PATH_INFO": "/x"}
    list(Measured(app, API)(environ, lambda *_: None))


def lines() -> list[str]:
    return [one for one in exposition.text().decode().splitlines() if API in one]


def test_what_no_operation_answers_has_no_histogram() -> None:
    for method in ("GET", "POST", "OPTIONS", "HEAD", "PATCH", "BREW", "X" * 50):
        for status in ("404 Not Found", "405 Method Not Allowed", "401 Unauthorized"):
            ask(method, status)
    assert not [one for one in lines() if "seconds" in one]
    counted = [one for one in lines() if "requests_total" in one]
    assert len(counted) == 6 * 3
    ask("GET", "200 OK", route="/servers/{id}")
    ask("POST", "202 Accepted", route="/servers/{id}/action", action="os-start")
    timed = [one for one in lines() if "route_seconds_total{" in one]
    assert len(timed) == 2
    assert any('action="os-start"' in one for one in timed)
