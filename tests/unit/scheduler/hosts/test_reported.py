"""The table of hosts: what administrators and the clock do to it."""

from __future__ import annotations

import dataclasses
import datetime

import pytest

from common import clock
from common.context import RequestContext
from common.errors import Unavailable
from common.messages.facts import Heartbeat
from common.messages.scheduling import VolumeNeed
from common.resources import image_files
from common.resources.aggregates import AggregateFacts, AllAggregates
from scheduler.filters.image import image_reach
from scheduler.filters.service import service_enabled, service_up
from scheduler.filters.volumes import volume_reach
from scheduler.hosts.host import Host
from scheduler.hosts.reported import REGISTERED_SECONDS, HostTable
from scheduler.manager import SchedulerManager
from tests.unit.scheduler.decide.test_choose import a_host, a_request

NOW = clock.utcnow()
NAMES = ("a", "b", "c")


class Site:
    """A table whose time is set by hand."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.table = HostTable(lambda: self.seconds)
        self.hear(*NAMES)

    def hear(self, *names: str) -> None:
        facts = tuple(a_host(name).facts for name in names)
        self.table.update(Heartbeat("w", NOW, names, facts))

    def record(self, version: int, **said: tuple[str, ...]) -> None:
        zone = AggregateFacts("u", "n", {"availability_zone": "z"}, ("a",))
        self.table.update_aggregates(AllAggregates(version, (zone,), **said))

    def hosts(self) -> dict[str, Host]:
        return {host.name: host for host in self.table.all(NOW)}


def test_a_step_of_the_clock_makes_no_host_silent() -> None:
    site = Site()
    for step in (datetime.timedelta(hours=1), datetime.timedelta(hours=-1)):
        assert {host.silent_seconds for host in site.table.all(NOW + step)} == {0.0}
    site.seconds = 61.0
    assert {host.silent_seconds for host in site.table.all(NOW)} == {61.0}


def test_a_host_is_silent_since_its_agent_last_reported() -> None:
    site = Site()

    def silent() -> dict[str, float]:
        return {host.name: host.silent_seconds for host in site.table.all(NOW)}

    def beat(*names: str) -> None:
        site.table.update(Heartbeat("w", NOW, names))

    beat("d", "b")
    site.seconds = 10.0
    beat("a", "d")
    assert silent() == {"a": 0.0, "b": 10.0, "c": 10.0}
    site.seconds = 20.0
    beat("c")
    assert silent() == {"a": 10.0, "b": 20.0, "c": 0.0}
    site.record(1)
    beat("b")
    site.hear("d")
    assert silent() == {"a": 10.0, "b": 0.0, "c": 0.0, "d": 0.0}
    renamed = dataclasses.replace(a_host("e").facts, uuid=a_host("a").facts.uuid)
    site.table.update(Heartbeat("w", NOW, (), (renamed,)))
    assert silent()["e"] == float("inf")
    site.seconds = 2 * REGISTERED_SECONDS
    site.record(2, hosts=())
    assert silent() == {}
    beat("a")
    site.hear("a")
    assert silent() == {"a": 0.0}


def refusals(site: Site) -> dict[str, str | None]:
    """Asked of one host, and of all at once."""
    columns, request = site.table.all(NOW), a_request()
    found = {}
    for position, host in enumerate(columns):
        reason = service_up(host, request) or service_enabled(host, request)
        masks = [accept.refused(columns, request) for accept in (service_up, service_enabled)]
        assert (reason is not None) == any(m is not None and m[position] for m in masks)
        found[host.name] = reason
    return found


def test_what_administrators_say_refuses_hosts_by_itself() -> None:
    site = Site()
    site.record(1, disabled=("b",), forced_down=("c",))
    assert refusals(site) == {
        "a": None,
        "b": "disabled by an administrator",
        "c": "forced down by an administrator",
    }
    # Neither its agent's heartbeats and facts change that, nor an older record that comes late.
    site.hear("b", "c")
    site.record(0)
    assert [name for name, reason in refusals(site).items() if reason] == ["b", "c"]
    site.record(2, disabled=("c",))
    assert {name: bool(why) for name, why in refusals(site).items()} == {
        "a": False,
        "b": False,
        "c": True,
    }
    assert site.hosts()["a"].zone == "z"


def test_a_host_that_the_cloud_has_no_more_is_forgotten() -> None:
    site = Site()
    site.table.note_failure("b", NOW)
    site.record(1, hosts=NAMES)
    # Just reported, and not in the record yet: it is not forgotten.
    site.hear("d")
    site.record(1, hosts=NAMES)
    assert set(site.hosts()) == {*NAMES, "d"}
    site.seconds = REGISTERED_SECONDS
    site.record(2, hosts=("a", "c", "d"))
    assert set(site.hosts()) == {"a", "c", "d"}
    assert site.hosts()["a"].zone == "z"
    # A beat alone doesn't bring it back; its facts do.
    site.table.update(Heartbeat("w", NOW, ("b",), ()))
    assert "b" not in site.hosts()
    site.hear("b")
    site.record(2, hosts=("a", "c", "d"))
    assert site.hosts()["b"].failures == 0.0


def test_a_record_without_hosts_makes_none_forgotten() -> None:
    site = Site()
    site.seconds = REGISTERED_SECONDS
    site.record(1)
    assert set(site.hosts()) == set(NAMES)


def test_what_if_is_not_answered_before_anything_is_known() -> None:
    manager = SchedulerManager(None, None, HostTable(), lambda _: None)  # type: ignore[arg-type]
    with pytest.raises(Unavailable):
        manager.preview(RequestContext(), (), ())
    with pytest.raises(Unavailable):
        manager.capacity(RequestContext(), a_request(), ())


def test_what_another_cloud_uploaded_is_none_of_this_cloud_s_images() -> None:
    """Users choose the IDs of images, and clouds share storages."""
    image, mine, theirs = (f"{number}1111111-2222-4333-8444-555555555555" for number in "123")
    site = Site()
    uploads = {
        name: image_files.listed(image_files.ImageFile(cloud, image, "0"))
        for name, cloud in (("a", mine), ("b", theirs))
    }
    reported = [
        dataclasses.replace(a_host(name).facts, images=(of,)) for name, of in uploads.items()
    ]
    reported.append(dataclasses.replace(a_host("c").facts, images=(image,)))  # an operator's file
    site.table.update(Heartbeat("w", NOW, NAMES, tuple(reported)))
    site.table.all(NOW)
    site.table.update_aggregates(AllAggregates(1, cloud=mine))
    columns, request = site.table.all(NOW), dataclasses.replace(a_request(), image_id=image)
    refused = image_reach.refused(columns, request)
    assert refused is not None
    assert dict(zip((one.name for one in columns), refused.tolist(), strict=True)) == {
        "a": False,
        "b": True,
        "c": False,
    }
    assert [one.name for one in columns if image_reach(one, request)] == ["b"]
    need = VolumeNeed(None, image_id=image)
    volume = dataclasses.replace(request, image_id=None, volumes=(need,))
    refusals = {one.name: volume_reach(one, volume) or "" for one in columns}
    assert [name for name, why in refusals.items() if "on none of" in why] == ["b"]
