"""Whose pages may open consoles."""

from __future__ import annotations

import pytest

from console.origins import refusal

HTTPS = ("https://cloud.example.org/vnc_auto.html", "wss://cloud.example.org/")
HTTP = ("http://127.0.0.1:6080/vnc_auto.html", "ws://127.0.0.1:6080/")


@pytest.mark.parametrize(
    ("origin", "host", "forwarded", "urls"),
    [
        (None, "cloud.example.org", None, HTTPS),
        ("https://cloud.example.org", "cloud.example.org", None, HTTPS),
        ("https://cloud.example.org:8443", "cloud.example.org:6080", None, HTTPS),
        ("http://cloud.example.org", "cloud.example.org", "https", HTTPS),
        ("https://horizon.example.org", "cloud.example.org", None, HTTPS),
        ("http://[::1]:6080", "[::1]:6080", None, HTTP),
    ],
)
def test_may(origin: str | None, host: str, forwarded: str | None, urls: tuple[str, str]) -> None:
    assert refusal(origin, host, forwarded, ["horizon.example.org"], urls) is None


@pytest.mark.parametrize(
    ("origin", "forwarded", "why"),
    [
        ("https://evil.example.org", None, "Origin header does not match this host."),
        ("http://cloud.example.org", None, "Origin header protocol does not match this host."),
        ("https://cloud.example.org", "http", "Origin header protocol does not match this host."),
        ("null", None, "Origin header not valid."),
        ("", None, "Origin header not valid."),
    ],
)
def test_may_not(origin: str, forwarded: str | None, why: str) -> None:
    assert refusal(origin, "cloud.example.org", forwarded, [], HTTPS) == why
