"""Views that need no request."""

from __future__ import annotations

import dataclasses
import datetime

import pytest

from api.compute import sshkeys
from api.compute.views import explanations, hosts, hypervisors
from common import clock, codec
from common.errors import Invalid
from common.messages.scheduling import Decision, Refused
from common.resources import quotas
from db.reads.hosts.hosts import Host

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
    host = dataclasses.replace(HOST, last_seen_at=now, forced_down=False, facts={})
    assert (hosts.is_up(host, 60), hosts.trouble(host, 60)) == (True, None)
    offline = {"online": False, "healthy": False, "health": "The node is offline."}
    old = now - datetime.timedelta(seconds=60)
    for change, why in (
        ({"forced_down": True}, "The service is forced down."),
        ({"last_seen_at": None}, "Its agent has never reported."),
        ({"last_seen_at": old}, f"Its agent has not reported since {clock.iso(old)}."),
        ({"facts": offline}, "The node is offline."),
    ):
        changed = dataclasses.replace(host, **change)
        assert (hosts.is_up(changed, 60), hosts.trouble(changed, 60)) == (False, why)
    ill = dataclasses.replace(host, facts={**offline, "online": True})
    assert (hosts.is_up(ill, 60), hosts.trouble(ill, 60)) == (True, "The node is offline.")


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


def test_the_sentences_of_a_decision_are_written_when_it_is_shown() -> None:
    full = Refused(("", " of 9 MiB free"), ("a", "b"), ((1, 2),))
    zone = Refused(("in zone {x}",), ("c",))
    decision = Decision("s", None, refused={"ram": (full,), "zone": (zone,)})
    stored = codec.loads(codec.dumps(decision))
    assert explanations.refusals(stored)["refused"] == {
        "ram": {"a": "1 of 9 MiB free", "b": "2 of 9 MiB free"},
        "zone": {"c": "in zone {x}"},
    }


def test_decisions_that_were_stored_before_are_read_as_well() -> None:
    stored = {"host": None, "refused": {"ram": {"1 MiB free": ["a", "b"], "2 MiB free": ["c"]}}}
    shown = {"a": "1 MiB free", "b": "1 MiB free", "c": "2 MiB free"}
    assert explanations.refusals(stored) == {"host": None, "refused": {"ram": shown}}
    assert explanations.refusals({}) == {"refused": {}}
