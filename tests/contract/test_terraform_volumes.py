"""The calls of Terraform's openstack_blockstorage_volume_v3 and
openstack_compute_volume_attach_v2, in their order."""

from __future__ import annotations

from typing import Any

import pytest

from tests.contract.gophercloud import SECONDS, Gophercloud, Refused
from tests.functional.waiting import eventually

_CREATING = ("downloading", "creating")
#: gophercloud 1 puts the catalog's type into the header
_SERVICES = ("volumev3", "volume", "block-storage")


def create(cloud: Gophercloud, near: str | None = None, **asked: Any) -> Any:
    """The resource's create, and its read; ``near``: a server that its storage is to serve."""
    hints = {} if near is None else {"OS-SCH-HNT:scheduler_hints": {"local_to_instance": near}}
    body = {"volume": {"size": 1, **asked}, **hints}
    made = cloud.volume("POST", "volumes", body)["volume"]
    cloud.wait(made["id"], _CREATING, ("available",))
    return cloud.show(made["id"])


def attach(cloud: Gophercloud, server: str, volume: str) -> str:
    """The attachment's create; returns its ID."""
    path = f"servers/{server}/os-volume_attachments"
    made = cloud.compute("POST", path, {"volumeAttachment": {"volumeId": volume}})
    attachment = str(made["volumeAttachment"]["id"])

    def attached() -> bool:
        # 404 is "ATTACHING" to it.
        there = cloud.has("compute", f"{path}/{attachment}")
        return there and bool(cloud.show(volume)["status"] == "in-use")

    eventually(attached, SECONDS, 0.05)
    shown = cloud.compute("GET", f"{path}/{attachment}")["volumeAttachment"]
    assert (shown["serverId"], shown["volumeId"]) == (server, volume)
    assert shown["device"]
    return attachment


def detach(cloud: Gophercloud, server: str, attachment: str) -> list[int]:
    """The attachment's delete, which asks again and again until it is gone.

    Returns how the requests were answered that came while it was being detached.
    """
    path = f"servers/{server}/os-volume_attachments/{attachment}"
    answers: list[int] = []

    def gone() -> bool:
        if not cloud.has("compute", path):
            return True
        try:
            cloud.compute("DELETE", path)
        except Refused as error:
            answers.append(error.status)
        return False

    eventually(gone, SECONDS, 0.05)
    return answers


def delete(cloud: Gophercloud, volume: str) -> None:
    """The resource's delete."""
    shown = cloud.show(volume)
    for one in shown["attachments"]:
        cloud.compute("DELETE", f"servers/{one['server_id']}/os-volume_attachments/{one['id']}")
    if shown["attachments"]:
        cloud.wait(volume, ("in-use", "attaching", "detaching"), ("available",))
    cloud.volume("DELETE", f"volumes/{volume}?cascade=true")
    cloud.wait(volume, ("deleting", "downloading", "available"), ("deleted",))


@pytest.mark.parametrize("service", _SERVICES)
def test_life(cloud: Gophercloud, node: Any, service: str) -> None:
    asked = {"name": "tf", "description": "", "metadata": {"made-by": "terraform"}}
    made = create(cloud, node.id, **asked)
    volume = made["id"]
    # What it stores of an answer must be what a later plan finds again.
    kept = {name: made[name] for name in ("size", "name", "metadata", "availability_zone")}
    assert (kept["size"], kept["name"], kept["metadata"]) == (1, "tf", {"made-by": "terraform"})
    assert kept["availability_zone"]
    attachment = attach(cloud, node.id, volume)
    (shown,) = cloud.show(volume)["attachments"]
    assert (shown["id"], shown["server_id"]) == (volume, node.id)

    # enable_online_resize
    assert cloud.show(volume)["status"] == "in-use"
    action, extend = f"volumes/{volume}/action", {"os-extend": {"new_size": 2}}
    with pytest.raises(Refused, match="400"):
        cloud.volume("POST", action, extend)
    cloud.volume("POST", action, extend, version="3.42", service=service)
    cloud.wait(volume, ("extending",), ("available", "in-use"))
    update = {"volume": {"name": "tf2", "description": "d", "metadata": {"a": "b"}}}
    cloud.volume("PUT", f"volumes/{volume}", update, version="3.42", service=service)
    read = cloud.show(volume)
    assert (read["size"], read["name"], read["description"]) == (2, "tf2", "d")
    assert {name: read[name] for name in kept if name == "availability_zone"} == {
        "availability_zone": kept["availability_zone"]
    }
    assert read["metadata"] == {"a": "b"}

    assert set(detach(cloud, node.id, attachment)) <= {400, 404}
    cloud.wait(volume, ("in-use", "detaching"), ("available",))
    # Gone already is well.
    assert detach(cloud, node.id, attachment) == []
    delete(cloud, volume)
    assert not cloud.has("volume", f"volumes/{volume}")


def test_a_volume_that_a_server_has_is_detached_first(cloud: Gophercloud, node: Any) -> None:
    volume = create(cloud, node.id, name="tf-attached")["id"]
    attach(cloud, node.id, volume)
    delete(cloud, volume)
    assert cloud.compute("GET", f"servers/{node.id}/os-volume_attachments") == {
        "volumeAttachments": []
    }


def test_a_snapshot_and_a_volume_of_it(cloud: Gophercloud) -> None:
    source = create(cloud, name="tf-source")["id"]
    asked = {"volume_id": source, "name": "tf-shot", "description": "", "force": False}
    made = cloud.volume("POST", "snapshots", {"snapshot": asked})["snapshot"]

    def available() -> bool:
        status = cloud.volume("GET", f"snapshots/{made['id']}")["snapshot"]["status"]
        assert status in ("creating", "available")
        return bool(status == "available")

    eventually(available, SECONDS, 0.05)
    # The data source asks by name, and by volume.
    query = f"snapshots?name=tf-shot&volume_id={source}"
    (found,) = cloud.volume("GET", query)["snapshots"]
    assert (found["id"], found["volume_id"], found["size"]) == (made["id"], source, 1)
    copy = create(cloud, name="tf-copy", snapshot_id=made["id"])
    assert copy["snapshot_id"] == made["id"]
    clone = create(cloud, name="tf-clone", source_vol_id="", source_volid=copy["id"])
    for volume in (clone["id"], copy["id"], source):
        delete(cloud, volume)
    assert not cloud.has("volume", f"snapshots/{made['id']}")
