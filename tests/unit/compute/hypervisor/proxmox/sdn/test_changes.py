"""Whose the changes are that wait in an SDN configuration; the answers are those on record."""

from __future__ import annotations

import pytest

from common import ids
from common.resources import vnets
from compute.hypervisor.proxmox.sdn import changes

NETWORK = ids.named("network", "of a project")
OURS = vnets.name(NETWORK)
NEW = {
    "vnet": OURS,
    "type": "vnet",
    "state": "new",
    "digest": None,
    "pending": {"zone": "tenants", "tag": 5000, "alias": f"{NETWORK} north"},
}
DELETED = {
    "vnet": OURS,
    "alias": f"{NETWORK} north",
    "zone": "tenants",
    "state": "deleted",
    "pending": {},
}


def test_ours_wait_for_nobody() -> None:
    applied = {"vnet": "blue", "zone": "tenants", "tag": 9, "type": "vnet", "digest": None}
    assert list(changes.of_others("vnet", [NEW, DELETED, applied])) == []
    assert changes.value(NEW, "tag") == 5000
    for entry in (NEW, DELETED):
        assert changes.is_network(entry, NETWORK, "north")
        assert not changes.is_network(entry, NETWORK, "south")
    assert not changes.is_network(applied, NETWORK, "north")
    by_hand = {**DELETED, "alias": NETWORK}
    assert not changes.is_network(by_hand, NETWORK, "north")


@pytest.mark.parametrize(
    "entry",
    [
        {**NEW, "vnet": "blue"},
        {**NEW, "pending": {"zone": "tenants", "alias": "first"}},
        {**DELETED, "state": "changed", "pending": {"tag": 7}},
    ],
    ids=["name", "alias", "edited"],
)
def test_what_others_did_is_named(entry: dict[str, object]) -> None:
    said = list(changes.of_others("vnet", [entry]))
    assert said == [f"vnet {entry['vnet']} ({entry['state']})"]
    zone = {"zone": "zsimple", "type": "simple", "state": "new", "pending": {"ipam": "pve"}}
    assert list(changes.of_others("zone", [zone])) == ["zone zsimple (new)"]


def test_hidden_paths_are_named() -> None:
    everything = {"/sdn": {"SDN.Audit": 1, "SDN.Use": 1}}
    plain = {"/sdn/zones/localnetwork": {"SDN.Use": 1}}
    assert changes.hidden({**everything, **plain}) == []
    assert changes.hidden({"/": {"SDN.Allocate": 1}}) == []
    theirs = {"/sdn/zones/theirs": {"SDN.Use": 1}}
    assert changes.hidden({**everything, **theirs}) == ["/sdn/zones/theirs"]
    # What isn't inherited is not seen below.
    for granted in ({}, {"/sdn": {"SDN.Audit": 0}}):
        assert changes.hidden(granted) == ["/sdn/zones", "/sdn/controllers"]
