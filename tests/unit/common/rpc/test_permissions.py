"""Names and patterns of what services may do at the broker."""

from __future__ import annotations

import re
import uuid

import pytest

from common.errors import Forbidden
from common.messages.topics import COMPUTE_TOPIC, CONDUCTOR_EVENTS_TOPIC, HOST_FACTS_TOPIC
from common.rpc import events, permissions, senders
from common.rpc.permissions import Notifications
from compute.rpc_api import WorkerRpc

NUMBER = uuid.uuid4().hex


@pytest.mark.parametrize(
    ("user", "sender"),
    [
        ("micronova-api", (senders.API, None)),
        ("micronova-compute-a-1", (senders.COMPUTE, "a-1")),
        ("micronova-compute-conductor", (senders.COMPUTE, "conductor")),
        ("micronova-compute-", (None, None)),
        ("micronova-compute", (None, None)),
        ("micronova-conductor-x", (None, None)),
        ("micronova", (None, None)),
        ("conductor", (None, None)),
        ("guest", (None, None)),
        ("", (None, None)),
        (None, (None, None)),
    ],
)
def test_a_user_says_whose_it_is(user: str | None, sender: tuple[str | None, str | None]) -> None:
    assert tuple(senders.sender_of(user)) == sender


@pytest.mark.parametrize("role", permissions.ROLES)
def test_a_user_is_found_again(role: str) -> None:
    worker = "agents.1" if role == senders.COMPUTE else ""
    found = senders.sender_of(senders.user_of(role, worker))
    assert (found.role, found.worker or "") == (role, worker)


@pytest.mark.parametrize(
    ("topic", "surface"),
    [
        (COMPUTE_TOPIC, WorkerRpc),
        (HOST_FACTS_TOPIC, events.HostEvents),
        (CONDUCTOR_EVENTS_TOPIC, events.ConductorEvents),
    ],
)
def test_every_method_is_some_role_s(topic: str, surface: type) -> None:
    for name in (one for one in vars(surface) if not one.startswith("_")):
        senders.check("micronova", topic, name)
        allowed = 0
        for role in permissions.ROLES:
            try:
                senders.check(senders.user_of(role, "w"), topic, name)
            except Forbidden:
                continue
            allowed += 1
        assert 1 <= allowed <= 4, name


def test_what_no_service_asks_is_refused_to_every_user() -> None:
    for user in (None, "micronova", "guest", "micronova-conductor"):
        with pytest.raises(Forbidden):
            senders.check(user, CONDUCTOR_EVENTS_TOPIC, "create_server")


def test_a_worker_s_name_is_no_pattern() -> None:
    found = permissions.of(senders.COMPUTE, "a.b|.*")
    for pattern in (found.configure, found.write, found.read, found.topics["openstack"][1]):
        assert not re.search(pattern, "compute.axb")
        assert not re.search(pattern, "compute.other")
    assert re.search(found.read, "compute.a.b|.*")


def test_an_agent_s_rights() -> None:
    found = permissions.of(senders.COMPUTE, "w1")
    for name in ("compute.w1", f"compute_announce_fanout_{NUMBER}"):
        assert re.search(found.configure, name)
        assert re.search(found.read, name)
    for name in ("compute.w2", "conductor", "scheduler", f"host_facts_fanout_{NUMBER}", "nova"):
        assert not re.search(found.read, name)
        assert not re.search(found.configure, name)
    assert not re.search(found.write, "")  # the default exchange has the name amq.default
    assert not re.search(found.write, "amq.default")
    assert re.search(found.write, "host_facts_fanout")
    assert not re.search(found.read, "host_facts_fanout")


def test_nobody_may_use_the_default_exchange() -> None:
    for role in permissions.ROLES:
        found = permissions.of(role, "w")
        for pattern in (found.configure, found.write, found.read):
            assert not re.search(pattern, "amq.default")
            assert not re.search(pattern, "amq.gen-x")


def test_conductors_send_the_notifications_that_are_configured() -> None:
    configured = Notifications("nova", ("notifications.info",))
    found = permissions.of(senders.CONDUCTOR, notifications=configured)
    assert re.search(found.configure, "notifications.info")
    assert re.search(found.read, "nova")
    assert not re.search(found.read, "notifications.error")
    assert found.topics["nova"] == (r"^(notifications\.info)$",) * 2
    assert "nova" not in permissions.of(senders.API, notifications=configured).topics


def test_the_commands_of_a_user() -> None:
    made = permissions.of(senders.CONSOLE)
    first, *others = permissions.commands("micronova-console", made, "/nova")
    assert first[:4] == ["set_permissions", "-p", "/nova", "micronova-console"]
    assert [words[4] for words in others] == ["openstack", "replies"]
    assert others[1][5] == "^$"  # it answers nobody
