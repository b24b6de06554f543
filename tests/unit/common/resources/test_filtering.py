"""Whether new ports are filtered, and the reason why not."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from common import config
from common.resources import networks
from common.resources.filtering import SECONDS, SOON_SECONDS, Filtering

OFF = "the datacenter's firewall is off"


class Clusters:
    """What clusters say, and when they were asked."""

    def __init__(self, **said: str) -> None:
        self.said: Mapping[str, str] = said
        self.asked = 0
        self.now = 100.0
        self.conf = config.load([networks.register])
        self.filtering = Filtering[str](self.conf, self._unfiltered, lambda: self.now)

    def _unfiltered(self, connection: str) -> Mapping[str, str]:
        assert connection == "connection"
        self.asked += 1
        return self.said

    def why_not(self) -> str:
        return self.filtering.why_not("connection")


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"a": "", "b": ""}, ""),
        ({"a": "", "b": OFF}, f"[networks] firewall is auto, and in cluster b {OFF}"),
        (
            {"b": OFF, "a": OFF},
            f"[networks] firewall is auto, and in cluster a {OFF}; in cluster b {OFF}",
        ),
        ({}, "[networks] firewall is auto, and no cluster has reported yet"),
    ],
)
def test_by_default_ports_are_filtered_where_every_cluster_can(
    said: Mapping[str, str], why: str
) -> None:
    clusters = Clusters(**said)
    assert clusters.why_not() == why
    assert clusters.filtering.on("connection") is not bool(why)


def test_an_operator_s_choice_asks_no_cluster() -> None:
    clusters = Clusters(a=OFF)
    clusters.conf.set_override("firewall", "on", group="networks")
    assert clusters.why_not() == ""
    clusters.conf.set_override("firewall", "off", group="networks")
    assert clusters.why_not() == "[networks] firewall is off"
    assert clusters.asked == 0


def test_an_answer_is_believed_for_some_seconds() -> None:
    clusters = Clusters()
    assert clusters.why_not()
    clusters.said = {"a": ""}
    assert clusters.why_not()
    clusters.now += SOON_SECONDS
    assert not clusters.why_not()
    clusters.said = {"a": OFF}
    clusters.now += SECONDS / 2
    assert not clusters.why_not()
    assert clusters.asked == 2
    clusters.now += SECONDS / 2
    assert clusters.why_not()
