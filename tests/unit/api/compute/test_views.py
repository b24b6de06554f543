"""Views that need no request."""

from __future__ import annotations

import dataclasses
import datetime

import pytest

from api.compute import sshkeys
from api.compute.views import hosts, hypervisors
from common import clock, quotas
from common.errors import Invalid
from db.reads.hosts import Host

HOST = Host(1, "u", "pve1", {}, 1, "s", False, None, False, None, 0, 0, 0, 0)


@pytest.mark.parametrize(
    ("text", "number"), [("8.2.4", 8_002_004), ("9", 9_000_000), ("", 0), ("8.x.1-2", 8_000_000)]
)
def test_version_number(text: str, number: int) -> None:
    assert hypervisors.version_number(text) == number


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, None), (59, "up 0:00"), (3660, "up 1:01"), (86_400, "up 1 day, 0:00")],
)
def test_uptime(seconds: int, text: str | None) -> None:
    host = dataclasses.replace(HOST, facts={"uptime_seconds": seconds})
    assert hypervisors.uptime(host) == text


def test_up() -> None:
    now = clock.utcnow()
    assert hosts.is_up(now, False, 60)
    assert not hosts.is_up(now, True, 60)
    assert not hosts.is_up(None, False, 60)
    assert not hosts.is_up(now - datetime.timedelta(seconds=60), False, 60)


def test_fingerprints() -> None:
    with pytest.raises(Invalid, match="failed to generate fingerprint"):
        sshkeys.fingerprint(sshkeys.SSH, "ssh-rsa")
    with pytest.raises(Invalid, match="failed to generate X509 fingerprint"):
        sshkeys.fingerprint(sshkeys.X509, "no certificate")
    _, certificate = sshkeys.generate(sshkeys.X509, "demo")
    assert len(sshkeys.fingerprint(sshkeys.X509, certificate).split(":")) == 20


def test_quota_limits() -> None:
    assert quotas.allows(quotas.UNLIMITED, 10**9)
    assert quotas.allows(3, 3)
    assert not quotas.allows(3, 4)
