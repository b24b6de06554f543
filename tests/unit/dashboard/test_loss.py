"""What is lost with servers, and that several are asked about as one is."""

from __future__ import annotations

from dashboard.cloud import Missing
from dashboard.pages.server import actions, loss
from dashboard.pages.server_list import BULK

SERVER = {
    "id": "s",
    "name": "",
    "addresses": {"vmbr0": [{"addr": "10.0.0.2"}, {"addr": "fd00::2"}]},
    "os-extended-volumes:volumes_attached": [
        {"id": "v", "delete_on_termination": True},
        {"id": "w", "delete_on_termination": False},
    ],
}


def test_addresses_and_volumes() -> None:
    names = loss.names_of({"volumes": [{"id": "v", "name": "data"}, {"id": "w", "name": ""}]})
    found = loss.loss(SERVER, names)
    assert found.name == "s"
    assert found.addresses == (("vmbr0", "10.0.0.2"), ("vmbr0", "fd00::2"))
    assert found.volumes == (("data", True), ("w", False))


def test_volumes_without_a_name_are_shown_by_their_id() -> None:
    assert loss.names_of(Missing("gone", 503)) == {}
    assert loss.loss(SERVER, {}).volumes == (("v", True), ("w", False))


def test_several_servers_are_asked_about_as_one_is() -> None:
    for name, action in BULK.items():
        one = actions.DELETE if name == "delete" else actions.ACTIONS[name]
        assert (action.key, action.value, bool(action.asks)) == (
            one.key,
            one.value,
            bool(one.asks),
        )
    assert BULK["stop"].asks.startswith("Each is shut down: what runs in it ends")
    assert BULK["reboot"].asks.endswith("Its disks remain.")
