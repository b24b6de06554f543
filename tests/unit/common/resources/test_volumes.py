"""Statuses of volumes: the rules name each other's statuses, and devices have Linux's names."""

from __future__ import annotations

import pytest

from common.resources import volumes
from common.resources.volumes import ATTACH, DETACH, RULES, VolumeStatus


@pytest.mark.parametrize(
    ("slot", "name"), [(0, "/dev/sda"), (1, "/dev/sdb"), (25, "/dev/sdz"), (26, "/dev/sdaa")]
)
def test_device(slot: int, name: str) -> None:
    assert volumes.device(slot) == name


def test_a_serial_fits_a_scsi_disk() -> None:
    assert volumes.serial("0d3f1a2b-1111-2222-3333-444455556666") == "0d3f1a2b-1111-2222-3"


def test_what_an_action_shows_lets_no_other_action_begin() -> None:
    during = {rule.during for rule in RULES.values()} - {None}
    for action, rule in RULES.items():
        assert not rule.begins & during, action


def test_an_attached_volume_can_only_be_detached() -> None:
    able = {action for action, rule in RULES.items() if VolumeStatus.IN_USE in rule.begins}
    assert able == {DETACH}
    assert RULES[ATTACH].begins == {VolumeStatus.AVAILABLE}
