"""Copies are made where that is which is copied."""

from __future__ import annotations

from common.messages.facts import StorageFacts
from conductor.volumes.storage_choice import VolumePlacement, choose
from db.reads.volumes.backends import Backend

DATA = StorageFacts("data", "rbd", True, True, 100, 90, ("images",))
BACKENDS = [Backend(f"h{n}", "c1", f"pve{n}", "nova", DATA) for n in (1, 2)]


def chosen(**placement: object) -> str:
    found = choose(BACKENDS, {}, VolumePlacement(1, **placement))  # type: ignore[arg-type]
    return found if isinstance(found, str) else found.host


def test_a_copy_is_made_on_the_host_of_its_source() -> None:
    assert chosen() == "h1"
    assert chosen(on="h2") == "h2"
    assert "host h3 has" in chosen(on="h3")


def test_one_of_a_servers_image_on_the_node_of_that() -> None:
    assert chosen(at=("c1", "pve2")) == "h2"
    assert "node pve2, which has the server's image" in chosen(at=("c2", "pve2"))
