"""Ranges of VNIs, and the names of vnets."""

from __future__ import annotations

import pytest

from common import ids
from common.errors import Invalid
from common.resources import vnets


def test_ranges_are_parsed() -> None:
    both = vnets.parse_all(["*:tenants:10000-19999", " c1:z9:7"])
    assert [vars(one) for one in both] == [
        {"cluster": "*", "zone": "tenants", "first": 10000, "last": 19999},
        {"cluster": "c1", "zone": "z9", "first": 7, "last": 7},
    ]
    assert [one.holds("c1") for one in both] == [True, True]
    assert [one.holds("c2") for one in both] == [True, False]


@pytest.mark.parametrize(
    "text",
    [
        *("", "tenants:1-2", ":tenants:1-2", "*::1-2", "*:tenants:", "*:tenants:x-2"),
        *("*:tenants:0-2", "*:tenants:2-1", "*:tenants:1-16777216", "*:tenants10:1-2", "*:9z:1-2"),
    ],
)
def test_other_ranges_are_refused(text: str) -> None:
    with pytest.raises(Invalid) as refused:
        vnets.parse(text)
    assert refused.value.message.startswith(f"{text}: ")


def test_names_fit_proxmox_ve() -> None:
    network_id = ids.new_uuid()
    names = [vnets.name(network_id, turn) for turn in range(3)]
    assert len(set(names)) == 3
    assert all(len(one) == 8 and vnets.is_ours(one) for one in names)
    assert vnets.name(network_id) == names[0]
    assert not any(map(vnets.is_ours, ("vmbr0", "mn12345", "mnABCDEF", "xmn12345", "mn1234567")))


def test_aliases_are_read_as_they_are_written() -> None:
    network = "5b0d2b6f-4a0b-4a57-9f0e-000000000001"
    for project, read in (("demo", "demo"), ("", ""), ("not / an alias", "")):
        text = vnets.alias(network, "blue", 7, project)
        assert vnets.owner(text) == (network, "blue")
        assert (vnets.epoch(text), vnets.project(text)) == (7, read)
    assert vnets.project(vnets.alias(network, "blue", 0, "demo")) == "demo"
