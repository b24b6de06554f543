"""Services notify the service manager that has started them."""

from __future__ import annotations

import secrets
import socket

import pytest

from launcher.run import notify_systemd


def test_the_manager_is_notified(monkeypatch: pytest.MonkeyPatch) -> None:
    address = f"@micronova-{secrets.token_hex(8)}"
    monkeypatch.setenv("NOTIFY_SOCKET", address)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
        channel.bind(f"\0{address[1:]}")
        channel.settimeout(10)
        notify_systemd("READY=1")
        assert channel.recv(100) == b"READY=1"


def test_a_manager_that_is_gone_stops_nothing(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", f"@micronova-{secrets.token_hex(8)}")
    notify_systemd("STOPPING=1")
    assert "STOPPING=1" in caplog.text
