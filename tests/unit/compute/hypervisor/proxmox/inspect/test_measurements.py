"""What becomes of round-robin data: resolution, units, and whose they are."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

from common.messages import measurements as messages
from common.messages.measurements import Measured, Period
from common.messages.questions import Measure
from compute.hypervisor.proxmox.api.errors import ApiError, category_of
from compute.hypervisor.proxmox.inspect import measurements
from compute.hypervisor.proxmox.inspect.measurements import OF_NODE, OF_STORAGE, OF_VM, measured

#: a multiple of all resolutions
END = 172_800 * 10_000
READ_AT = datetime.datetime.fromtimestamp(END + 1, datetime.UTC)


def points(step: int, count: int, **values: Any) -> list[dict[str, Any]]:
    return [{"time": END - step * back, **values} for back in range(count - 1, -1, -1)]


def vm(given: list[dict[str, Any]], period: Period = Period.HOUR, since: Any = None) -> Measured:
    moment = None if since is None else datetime.datetime.fromtimestamp(since, datetime.UTC)
    return measured(given, OF_VM, period, moment, READ_AT)


def test_units() -> None:
    found = vm([{"time": END - 60}, {"time": END, "cpu": 0.12345678, "mem": 5, "netin": 7.5}])
    assert found.times == (END - 60, END)
    assert found.values == {
        "cpu": (None, 12.346),
        "memory_used": (None, 5.0),
        "network_in": (None, 7.5),
    }
    assert (found.resolution_seconds, found.read_at) == (60, READ_AT)


@pytest.mark.parametrize(
    ("period", "step", "count", "resolution", "shown"),
    [
        # Proxmox VE 8
        (Period.HOUR, 60, 70, 60, 60),
        (Period.DAY, 1800, 70, 1800, 48),
        (Period.WEEK, 10_800, 70, 10_800, 56),
        (Period.MONTH, 43_200, 70, 43_200, 60),
        (Period.YEAR, 604_800, 70, 604_800, 52),
        # 9.2
        (Period.HOUR, 60, 60, 60, 60),
        (Period.DAY, 60, 1440, 600, 144),
        (Period.WEEK, 1800, 336, 3600, 168),
        (Period.MONTH, 1800, 1440, 14_400, 180),
        (Period.YEAR, 21_600, 1440, 172_800, 180),
    ],
)
def test_each_version_has_few_points(
    period: Period, step: int, count: int, resolution: int, shown: int
) -> None:
    found = vm(points(step, count, cpu=0.5), period)
    assert found.resolution_seconds == resolution
    assert len(found.times) == shown
    assert set(found.values["cpu"]) == {50.0}
    assert found.times[-1] == END
    assert found.times[0] > END - period.seconds


def test_an_interval_has_the_mean_of_what_is_known() -> None:
    minutes = points(60, 20)
    for one, value in ((11, 0.2), (12, 0.4)):
        minutes[one]["cpu"] = value
    found = vm(minutes, Period.DAY)
    assert found.times == (END - 600, END)
    assert found.values["cpu"] == (None, 30.0)


def test_points_from_before_an_upgrade_have_longer_intervals() -> None:
    old = [{"time": END - 86_400 * 20 + 43_200 * n, "cpu": 0.1} for n in range(30)]
    new = [{"time": END - 1800 * back, "cpu": 0.3} for back in range(240, -1, -1)]
    found = vm(old + new, Period.MONTH)
    assert found.resolution_seconds == 43_200
    assert found.values["cpu"][0] == 10.0
    assert found.values["cpu"][-1] == 30.0


def test_what_began_before_the_server_is_left_out() -> None:
    former = [{**one, "cpu": 1.0} for one in points(60, 60)[:30]]
    own = [{**one, "cpu": 0.1} for one in points(60, 60)[30:]]
    # The VMID became the server's within the interval of the 30th point.
    found = vm(former + own, since=END - 60 * 30 + 1)
    assert set(found.values["cpu"]) == {10.0}
    assert len(found.times) == 29
    younger = vm(points(604_800, 70, cpu=1.0), Period.YEAR, since=END - 86_400)
    assert (younger.times, younger.values["cpu"]) == ((), ())


def test_nothing_recorded() -> None:
    assert vm([]) == Measured(Period.HOUR, 60, READ_AT)
    assert vm(points(60, 60)).values == {}
    assert vm([{"time": END, "cpu": 1}]).values["cpu"] == (100.0,)


class Refusing:
    """A client whose reads fail."""

    def __init__(self, text: str) -> None:
        self.text = text

    def get(self, path: str, **params: Any) -> Any:
        raise ApiError(category_of(self.text), self.text, status=500, text=self.text)


@pytest.mark.parametrize(
    ("text", "is_known"),
    [
        (
            "RRD error: rrdcached@unix:/var/run/rrdcached.sock: rrd_fetch_r failed: opening "
            "'/var/lib/rrdcached/db/pve-vm-9.0/999': No such file or directory",
            True,
        ),
        ("RRD error: opening '/var/lib/rrdcached/db/pve2-vm/9': No such file or directory", True),
        ("got wrong time resolution (21600 != 60)", True),
        ("RRD error: unable to connect to rrdcached: Connection refused", False),
    ],
)
def test_what_was_never_recorded_is_no_failure(text: str, is_known: bool) -> None:
    client: Any = Refusing(text)
    asked = Measure("pve1", Period.HOUR, vmid=100)
    if is_known:
        assert measurements.read(client, asked).times == ()
        return
    with pytest.raises(ApiError):
        measurements.read(client, asked)


def test_each_metric_is_read() -> None:
    assert set(OF_VM) == set(messages.OF_SERVER)
    assert set(OF_NODE) == set(messages.OF_HOST)
    assert set(OF_STORAGE) == set(messages.OF_STORAGE)
