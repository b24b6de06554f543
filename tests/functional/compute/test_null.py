"""The driver without a hypervisor: the same flows, at once."""

from __future__ import annotations

import dataclasses
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from common.context import internal
from common.messages.commands import Placed, PowerAction, RetireTemplate, Size
from common.messages.guests import GuestTarget, PasswordProblem
from common.messages.questions import Diagnose, SetPassword
from common.messages.reports import Category
from common.resources.states import PowerState, ResourceType
from tests.fixtures.null import DRIVER
from tests.functional.compute.conftest import (
    Worker,
    a_build,
    a_copy,
    a_destroy,
    a_growth,
    a_power,
    a_shape,
    a_swap,
    an_end,
    configuration,
)


@pytest.fixture
def null(tmp_path: Path) -> Iterator[Worker]:
    text = f"""
[DEFAULT]
transport_url = micronova-local://{uuid.uuid4().hex}
[compute]
driver = {DRIVER}
worker = worker1
[null]
hosts = 250
"""
    running = Worker(configuration(tmp_path, text))
    running.start()
    yield running
    running.stop()


def test_all_hosts_are_reported_in_parts(null: Worker) -> None:
    beats = null.conductor.wait_for(
        lambda: (
            [beat for beat in null.conductor.heartbeats if beat.facts]
            if sum(len(beat.facts) for beat in null.conductor.heartbeats) >= 250
            else None
        )
    )
    assert {len(beat.facts) for beat in beats[:2]} == {200, 50}
    assert all(set(beat.hosts) == {facts.host for facts in beat.facts} for beat in beats)


def test_the_life_of_a_server(null: Worker) -> None:
    build = a_build()
    build = dataclasses.replace(build, placed=Placed("null0001", "null", "null0001", 100_001))
    assert null.run(build).ok
    assert null.run(dataclasses.replace(build, attempt=2)).ok
    other = dataclasses.replace(a_build(), placed=build.placed)
    taken = null.run(other)
    assert taken.failure is not None
    assert taken.failure.category is Category.STORAGE_CONFLICT
    assert null.run(a_power(build, PowerAction.STOP)).power_state == PowerState.SHUTDOWN
    assert not null.run(a_power(build, PowerAction.PAUSE)).ok
    for action, seen in (
        (PowerAction.START, PowerState.RUNNING),
        (PowerAction.PAUSE, PowerState.PAUSED),
        (PowerAction.UNPAUSE, PowerState.RUNNING),
        (PowerAction.SUSPEND, PowerState.SUSPENDED),
        (PowerAction.SUSPEND, PowerState.SUSPENDED),
        (PowerAction.RESUME, PowerState.RUNNING),
    ):
        assert null.run(a_power(build, action)).power_state == seen
    assert null.run(a_shape(build, Size(4, 1024))).power_state == PowerState.RUNNING
    assert null.run(a_shape(build, Size(4, 1024), running=False)).ok
    assert null.run(a_growth(build, 5)).ok
    swap = a_swap(build)
    for _ in range(2):
        assert null.run(swap).power_state == PowerState.RUNNING
    assert null.run(an_end(build, keep=False)).ok
    assert null.run(a_swap(build, running=False)).ok
    assert null.run(an_end(build, keep=True)).ok
    assert null.run(a_swap(build, rescue=True)).power_state == PowerState.RUNNING
    assert null.run(an_end(build, keep=False, rescued=True)).power_state == PowerState.RUNNING
    assert not null.run(a_swap(build, image=None)).ok
    there = null.hypervisors[0].inspect(build.placed.vmid, None, build.resource_id)
    assert (there.vcpus, there.memory_mib, there.disk_gib) == (4, 1024, 5)
    assert null.run(a_destroy(build)).gone
    assert null.run(a_destroy(build)).gone
    assert not null.run(a_power(build, PowerAction.START)).ok


def test_how_a_vm_does(null: Worker) -> None:
    build = dataclasses.replace(a_build(), placed=Placed("null0001", "null", "null0001", 100_001))
    assert null.run(build).ok
    target = GuestTarget(build.resource_id, "worker1", "null", "null0001", 100_001)
    seen = null.client.ask(internal(), target, Diagnose(target))
    assert (seen.power_state, seen.vcpus, seen.memory_mib) == (PowerState.RUNNING, 2, 512)
    refused = null.client.ask(internal(), target, SetPassword(target, "root", "secret"))
    assert refused is PasswordProblem.NOT_SUPPORTED


def test_an_image_of_a_server(null: Worker) -> None:
    build = dataclasses.replace(a_build(), placed=Placed("null0001", "null", "null0001", 100_009))
    assert null.run(build).ok
    copy = a_copy(build, 100_010, storage="memory")
    outcome = null.run(copy)
    assert outcome.disk is not None
    assert outcome.disk.virtual_size_bytes == 2 << 30
    templates = null.hypervisors[0].templates  # type: ignore[attr-defined]
    assert templates == {100_010: copy.image_id}
    failure = null.run(a_copy(build, 100_010, image_id="another")).failure
    assert failure is not None
    assert failure.category is Category.STORAGE_CONFLICT
    assert templates == {100_010: copy.image_id}
    gone = RetireTemplate(
        copy.operation_id + 1000,
        1,
        ResourceType.TEMPLATE,
        "null/100010",
        copy.placed,
        copy.deadline,
    )
    assert null.run(gone).gone
    assert templates == {}
